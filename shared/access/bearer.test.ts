import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Authentication } from './authenticator.ts';
import {
  type BearerScheme,
  bearerSchemes,
  bearerTokenOf,
  boundedMemory,
  jsonObjectIn,
  lookupMemory,
  staticTokenAuthenticator,
} from './bearer.ts';

describe('a bearer token', () => {
  it.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER  abc ', 'abc'],
    ['Bearer ', ''],
    ['Bearer', undefined],
    ['Basic abc', undefined],
    ['x Bearer abc', undefined],
    ['', undefined],
  ])('of the header %j is %j', (authorization, token) => {
    expect(bearerTokenOf({ authorization })).toBe(token);
  });

  it('is authenticated by the first scheme that recognises it, with its time and its audiences', async () => {
    const calls: unknown[][] = [];
    const answers = (name: string) => async (): Promise<Authentication> => ({ kind: 'refused', reason: name });
    const scheme = (name: string, prefix: string): BearerScheme => ({
      recognises: (token) => token.startsWith(prefix),
      authenticate: (...call) => {
        calls.push([name, ...call]);
        return answers(name)();
      },
    });
    const { authenticate } = bearerSchemes([scheme('one', 'a'), scheme('two', 'ab'), scheme('three', 'b')], {
      authenticate: (...call) => {
        calls.push(['otherwise', ...call]);
        return answers('otherwise')();
      },
    });
    const outcome = async (headers: Record<string, string>) => authenticate(headers, 7, ['vault']);
    expect(await outcome({ authorization: 'Bearer abc' })).toEqual({ kind: 'refused', reason: 'one' });
    expect(await outcome({ authorization: 'Bearer bc' })).toEqual({ kind: 'refused', reason: 'three' });
    for (const headers of [{ authorization: 'Bearer c' }, { authorization: 'Basic ab' }, {}]) await outcome(headers);
    expect(calls).toEqual([
      ['one', 'abc', 7, ['vault']],
      ['three', 'bc', 7, ['vault']],
      ['otherwise', { authorization: 'Bearer c' }, 7],
      ['otherwise', { authorization: 'Basic ab' }, 7],
      ['otherwise', {}, 7],
    ]);
  });
});

it('bytes of unknown origin are a JSON object, or nothing', () => {
  expect(jsonObjectIn(Buffer.from('{"a":"ä"}'))).toEqual({ a: 'ä' });
  for (const text of ['', '{', '[]', 'null', '"a"', '7']) expect(jsonObjectIn(Buffer.from(text)), text).toBeUndefined();
});

describe('a memory of bounded size', () => {
  const memoryWith = (...keys: readonly string[]) => {
    const memory = boundedMemory<string>(2);
    for (const key of keys) memory.keep(key, key);
    return memory;
  };
  const present = (memory: ReturnType<typeof memoryWith>) =>
    ['a', 'b', 'c'].filter((key) => memory.find(key) !== undefined).join('');

  it('drops what was added first', () => {
    expect(present(memoryWith('a', 'b'))).toBe('ab');
    expect(present(memoryWith('a', 'b', 'c'))).toBe('bc');
  });

  it('has an entry that is added again in the place of a new one, and drops no other for it', () => {
    expect(present(memoryWith('a', 'b', 'a'))).toBe('ab');
    expect(present(memoryWith('a', 'b', 'a', 'c'))).toBe('ac');
  });

  it('forgets an entry on demand', () => {
    const memory = memoryWith('a', 'b');
    memory.forget('a');
    expect(present(memory)).toBe('b');
    memory.keep('c', 'c');
    expect(present(memory)).toBe('bc');
  });
});

interface Lookup {
  readonly value: number | undefined;
}

const memoryOf = (entriesMax: number) => lookupMemory<Lookup>(entriesMax, ({ value }) => value !== undefined);

describe('a cache of lookups', () => {
  it('returns the result of the last lookup, found or not', () => {
    const memory = memoryOf(2);
    for (const value of [undefined, 1, undefined, 2]) {
      memory.keep('a', { value });
      expect(memory.find('a')).toEqual({ value });
    }
  });

  it('drops the oldest entry of found and of failed lookups separately', () => {
    const memory = memoryOf(2);
    for (const key of ['a', 'b']) memory.keep(key, { value: 1 });
    for (const key of ['x', 'y', 'z']) memory.keep(key, { value: undefined });
    expect(['a', 'b', 'x', 'y', 'z'].filter((key) => memory.find(key) !== undefined)).toEqual(['a', 'b', 'y', 'z']);
    memory.keep('c', { value: 1 });
    expect(['a', 'b', 'c', 'y', 'z'].filter((key) => memory.find(key) !== undefined)).toEqual(['b', 'c', 'y', 'z']);
  });

  it('frees the place of an entry that no longer exists', () => {
    const memory = memoryOf(2);
    for (const key of ['a', 'b']) memory.keep(key, { value: 1 });
    memory.keep('b', { value: undefined });
    memory.keep('c', { value: 1 });
    expect(memory.find('a')).toEqual({ value: 1 });
  });
});

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');
const LONGEST = 'x'.repeat(4_096);
const { authenticate } = staticTokenAuthenticator([
  { sha256: hashOf('first'), user: 'ada', groups: ['nodekeeper:admins'] },
  // No SHA-256: it must not fail the comparison of the others.
  { sha256: 'abcd', user: 'nobody', groups: [] },
  { sha256: hashOf('second'), user: 'vera', groups: [] },
  { sha256: hashOf(LONGEST), user: 'long', groups: [] },
  { sha256: hashOf(`${LONGEST}x`), user: 'longer', groups: [] },
]);

async function outcomeOf(authorization: string | undefined): Promise<string> {
  const answer = await authenticate(authorization === undefined ? {} : { authorization }, 0);
  return answer.kind === 'authenticated'
    ? answer.user.username
    : answer.kind === 'refused'
      ? answer.reason
      : answer.kind;
}

it('a token authenticates its user, who is in the group of all who are authenticated', async () => {
  expect(await authenticate({ authorization: 'Bearer first' }, 0)).toEqual({
    kind: 'authenticated',
    user: { username: 'ada', groups: ['nodekeeper:admins', 'system:authenticated'] },
  });
  expect(await outcomeOf('Bearer second')).toBe('vera');
});

it.each([
  [undefined, 'anonymous'],
  ['', 'anonymous'],
  ['Basic first', 'not a bearer token'],
  ['Bearer ', 'unknown token'],
  ['Bearer third', 'unknown token'],
  [`Bearer ${LONGEST}`, 'long'],
  [`Bearer ${LONGEST}x`, 'token too long'],
])('the header %s is answered with %s', async (header, outcome) => {
  expect(await outcomeOf(header)).toBe(outcome);
});
