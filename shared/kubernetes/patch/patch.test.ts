import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject, jsonEqual } from '../json.ts';
import { applyMergePatch, mergeValue } from './patch.ts';

/** JSON objects as a parser makes them, `__proto__` members included. */
const jsonObject = fc
  .dictionary(fc.oneof(fc.constantFrom('a', 'b', 'metadata', '__proto__'), fc.string()), fc.jsonValue())
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);

const _withoutNulls = (value: unknown): unknown => {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([key, member]) => [key, _withoutNulls(member)]),
  );
};

describe('applyMergePatch', () => {
  // RFC 7396, appendix A.
  it.each([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('merges %j with %j into %j', (target, patch, object) => {
    expect(applyMergePatch(target, patch)).toEqual({ kind: 'patched', object });
  });

  it('replaces targets and patches that are no objects by value', () => {
    expect(mergeValue(['a', 'b'], ['c', 'd'])).toEqual(['c', 'd']);
    expect(mergeValue({ a: 'b' }, ['c'])).toEqual(['c']);
    expect(mergeValue({ a: 'foo' }, null)).toBeNull();
    expect(mergeValue([1, 2], { a: 'b', c: null })).toEqual({ a: 'b' });
  });

  it('refuses a patch that is no object', () => {
    for (const patch of [null, [], 'x', 1]) expect(applyMergePatch({}, patch)).toMatchObject({ kind: 'malformed' });
  });

  it('keeps a __proto__ member as data', () => {
    const result = applyMergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}'));
    expect(({} as JsonObject)['polluted']).toBeUndefined();
    expect(result.kind === 'patched' && Object.keys(result.object)).toEqual(['__proto__']);
    expect(result.kind === 'patched' && result.object['polluted']).toBeUndefined();
  });

  it('refuses a patch made to exhaust the stack', () => {
    expect(applyMergePatch({}, JSON.parse(`${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`))).toMatchObject({
      kind: 'malformed',
    });
  });

  it('leaves its inputs alone and shares nothing with them', () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (target, patch) => {
        const before = JSON.stringify([target, patch]);
        const result = applyMergePatch(target, patch);
        if (result.kind === 'patched') scribble(result.object);
        expect(JSON.stringify([target, patch])).toBe(before);
      }),
    );
  });

  it('does nothing more when applied again', () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (target, patch) => {
        const once = mergeValue(target, patch);
        expect(jsonEqual(mergeValue(once, patch), once)).toBe(true);
      }),
    );
  });
});

/** Changes everything that can be reached. */
function scribble(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const member of Object.values(value)) scribble(member);
  if (Array.isArray(value)) value.push('scribble');
  else (value as JsonObject)['scribble'] = true;
}
