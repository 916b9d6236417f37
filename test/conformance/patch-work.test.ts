/**
 * Small patches that cause much work. The API refuses each with 413 before it uses up a function's time; a heartbeat is
 * too short for them. The limit is a number of visited values, so these tests need no clock.
 */
import { describe, expect, it } from 'vitest';
import { PATCH_WORK_MAX } from '../../shared/kubernetes/patch/result.ts';
import { APPLY, apiInMemory, JSON_PATCH, NODES, node, pod, podsIn, STRATEGIC } from '../support/api-in-memory.ts';

const PODS = podsIn('default');
const REFUSED = `a patch may walk ${PATCH_WORK_MAX} values`;

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** One large value, then `count` operations on it. */
const patchOf = (value: unknown, count: number, operation: (index: number) => Operation): readonly Operation[] => [
  { op: 'add', path: '/x', value },
  ...Array.from({ length: count }, (_, index) => operation(index)),
];
const lists = (length: number) => Array.from({ length }, () => []);
const members = (length: number) => Object.fromEntries(lists(length).map((list, index) => [`k${index}`, list]));
const moveBetween = (index: number): Operation =>
  index % 2 === 0 ? { op: 'move', from: '/x', path: '/y' } : { op: 'move', from: '/y', path: '/x' };

describe('a JSON patch that', () => {
  it.each<[string, readonly Operation[]]>([
    ['moves a large value to and fro', patchOf(lists(60_000), 5_000, moveBetween)],
    ['moves a large object to and fro', patchOf(members(15_000), 3_000, moveBetween)],
    ['copies a large value over another', patchOf(lists(2_000), 5_000, () => ({ op: 'copy', from: '/x', path: '/y' }))],
    [
      'inserts at the head of a long list',
      patchOf(lists(60_000), 5_000, () => ({ op: 'add', path: '/x/0', value: 1 })),
    ],
    ['removes from the head of a long list', patchOf(lists(60_000), 5_000, () => ({ op: 'remove', path: '/x/0' }))],
    [
      'replaces a member of a value that it moves',
      patchOf(lists(60_000), 4_000, (index) =>
        index % 3 === 2 ? { op: 'replace', path: '/x/0', value: index } : moveBetween(index % 3),
      ),
    ],
  ])('%s is refused', async (_, body) => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('n1') });
    const before = (await api.send('GET', `${NODES}/n1`)).text;
    const text = JSON.stringify(body);
    if (text.length > 390_000) throw new Error(`the body is too large to be a test: ${text.length}`);
    const answer = await api.send('PATCH', `${NODES}/n1/status`, { body: text, contentType: JSON_PATCH });
    expect(answer).toMatchObject({ code: 413, body: { reason: 'RequestEntityTooLarge' } });
    expect(answer.body.message).toContain(REFUSED);
    expect((await api.send('GET', `${NODES}/n1`)).text).toBe(before);
    expect(api.faults).toEqual([]);
  });

  it('has more operations than upstream allows is refused with its text', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('n1') });
    const body = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '', value: 1 }));
    const answer = await api.send('PATCH', `${NODES}/n1`, { body, contentType: JSON_PATCH });
    expect(answer.code).toBe(413);
    expect(answer.body.message).toContain('The allowed maximum operations in a JSON patch is 10000, got 10001');
  });

  it('sets a thousand labels one by one is carried out', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('n1', { metadata: { labels: { first: '' } } }) });
    const body = Array.from({ length: 1_000 }, (_, index) => ({
      op: 'add',
      path: `/metadata/labels/l${index}`,
      value: '',
    }));
    const answer = await api.send('PATCH', `${NODES}/n1`, { body, contentType: JSON_PATCH });
    expect(answer.code).toBe(200);
    expect(Object.keys(answer.body.metadata.labels)).toHaveLength(1_001);
  });
});

describe('a strategic merge patch that', () => {
  it('names one container thousands of times, which has thousands of variables, is refused', async () => {
    const api = apiInMemory();
    await api.send('POST', PODS, { body: pod('p') });
    const env = (length: number) => Array.from({ length }, (_, index) => ({ name: `A${index}` }));
    const containers = [
      { name: 'main', env: env(5_000) },
      ...Array.from({ length: 5_000 }, () => ({ name: 'main', env: env(1) })),
    ];
    const answer = await api.send('PATCH', `${PODS}/p`, { body: { spec: { containers } }, contentType: STRATEGIC });
    expect(answer.code).toBe(413);
    expect(answer.body.message).toContain(REFUSED);
  });
});

describe('an apply in YAML that', () => {
  const head = 'apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n';
  const numbered = (count: number, line: (index: number) => string): string =>
    Array.from({ length: count }, (_, index) => line(index)).join('\n');
  it.each<[string, string]>([
    ['has 55,000 keys in brackets', `x: {${numbered(55_000, (index) => index.toString(36)).replaceAll('\n', ', ')}}`],
    ['has 20,000 anchors', numbered(20_000, (index) => `a${index}: &a${index} x`)],
    ['has 30,000 aliases', `q: &q x\n${numbered(30_000, (index) => `a${index}: *q`)}`],
    ['nests 20,000 lists', `a: ${'['.repeat(20_000)}${']'.repeat(20_000)}`],
    ['has a map as a key', '{a: 1}: b'],
  ])('%s is refused', async (_, text) => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('n1') });
    const answer = await api.send('PATCH', `${NODES}/n1?fieldManager=m`, { body: head + text, contentType: APPLY });
    expect(answer).toMatchObject({ code: 400, body: { reason: 'BadRequest' } });
    expect(answer.body.message).toMatch(/^error decoding YAML: a (?:YAML document|key of a map) /);
  });
});
