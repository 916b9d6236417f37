import fc from 'fast-check';
import { createPatch } from 'rfc6902';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../json.ts';
import { applyJsonPatch, JSON_PATCH_OPERATIONS_MAX } from './json-patch.ts';

const jsonObject = fc
  .dictionary(fc.string(), fc.jsonValue())
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);

const patched = (target: JsonObject, ...patch: unknown[]) => {
  const result = applyJsonPatch(target, patch);
  return result.kind === 'patched' ? result.object : result;
};

describe('applyJsonPatch', () => {
  it('adds, removes, replaces, moves, copies and tests', () => {
    const target = { a: [1, 2, 3], b: { c: 'x' }, 'k/e~y': 1 };
    expect(patched(target, { op: 'add', path: '/a/1', value: 9 })).toMatchObject({ a: [1, 9, 2, 3] });
    expect(patched(target, { op: 'add', path: '/a/-', value: 9 })).toMatchObject({ a: [1, 2, 3, 9] });
    expect(patched(target, { op: 'remove', path: '/a/0' })).toMatchObject({ a: [2, 3] });
    expect(patched(target, { op: 'replace', path: '/b/c', value: null })).toMatchObject({ b: { c: null } });
    expect(patched(target, { op: 'move', from: '/a/0', path: '/a/2' })).toMatchObject({ a: [2, 3, 1] });
    expect(patched(target, { op: 'copy', from: '/b', path: '/d' })).toMatchObject({ b: { c: 'x' }, d: { c: 'x' } });
    expect(patched(target, { op: 'replace', path: '/k~1e~0y', value: 2 })).toMatchObject({ 'k/e~y': 2 });
    expect(patched(target, { op: 'test', path: '/b', value: { c: 'x' } })).toEqual(target);
    expect(patched(target, { op: 'add', path: '/b/constructor', value: 1 })).toMatchObject({ b: { constructor: 1 } });
  });

  it.each([
    [{ op: 'test', path: '/a/0', value: 2 }],
    [{ op: 'test', path: '/none', value: null }],
    [{ op: 'remove', path: '/none' }],
    [{ op: 'remove', path: '/a/length' }],
    [{ op: 'remove', path: '/a/3' }],
    [{ op: 'remove', path: '' }],
    [{ op: 'replace', path: '/a/3', value: 1 }],
    [{ op: 'replace', path: '/none', value: 1 }],
    [{ op: 'add', path: '/a/4', value: 1 }],
    [{ op: 'add', path: '/a/01', value: 1 }],
    [{ op: 'add', path: '/a/-1', value: 1 }],
    [{ op: 'add', path: '/none/x', value: 1 }],
    [{ op: 'add', path: '/b/c/x', value: 1 }],
    [{ op: 'add', path: '/toString/x', value: 1 }],
    [{ op: 'add', path: '/__proto__/x', value: 1 }],
    [{ op: 'add', path: '/constructor/prototype/x', value: 1 }],
    [{ op: 'move', from: '/b', path: '/b/c' }],
    [{ op: 'move', from: '/a/0', path: '/a/3' }],
    [{ op: 'copy', from: '/a/9', path: '/z' }],
    [{ op: 'replace', path: '', value: 1 }],
  ])('refuses %j as unprocessable', (operation) => {
    const target = { a: [1, 2, 3], b: { c: 'x' } };
    expect(applyJsonPatch(target, [operation])).toMatchObject({
      kind: 'unprocessable',
      message: expect.stringMatching(/^the server rejected our request due to an error in our request: /),
    });
    expect(target).toEqual({ a: [1, 2, 3], b: { c: 'x' } });
    expect(({} as JsonObject)['x']).toBeUndefined();
  });

  it.each([
    [{}],
    [null],
    [[1]],
    [[{ op: 'jump', path: '/a' }]],
    [[{ op: 'add', path: 'a', value: 1 }]],
    [[{ op: 'add', value: 1 }]],
    [[{ op: 'add', path: '/a' }]],
    [[{ op: 'move', path: '/a' }]],
  ])('calls %j malformed', (patch) => {
    expect(applyJsonPatch({ a: 1 }, patch)).toMatchObject({ kind: 'malformed' });
  });

  it('applies all operations or none', () => {
    expect(patched({ a: 1 }, { op: 'add', path: '/b', value: 2 }, { op: 'test', path: '/a', value: 2 })).toMatchObject({
      kind: 'unprocessable',
    });
  });

  it('bounds the number of operations', () => {
    const operations = (count: number) => Array.from({ length: count }, () => ({ op: 'test', path: '/a', value: 1 }));
    expect(applyJsonPatch({ a: 1 }, operations(JSON_PATCH_OPERATIONS_MAX))).toMatchObject({ kind: 'patched' });
    expect(applyJsonPatch({ a: 1 }, operations(JSON_PATCH_OPERATIONS_MAX + 1))).toMatchObject({ kind: 'tooLarge' });
  });

  it('stops copies that double each time', () => {
    const bomb = Array.from({ length: 64 }, (_, index) => ({ op: 'copy', from: '', path: `/x${index}` }));
    expect(applyJsonPatch({ a: [1, 2, 3] }, bomb)).toMatchObject({ kind: 'tooLarge' });
    const longText = Array.from({ length: 100 }, (_, index) => ({ op: 'copy', from: '/a', path: `/x${index}` }));
    expect(applyJsonPatch({ a: 'x'.repeat(100_000) }, longText)).toMatchObject({ kind: 'tooLarge' });
  });

  it('stops copies that nest ever deeper', () => {
    const deeper = Array.from({ length: 20 }, (_, index) => ({ op: 'copy', from: '', path: '/a'.repeat(2 ** index) }));
    expect(applyJsonPatch({}, deeper)).toMatchObject({ kind: 'malformed' });
    expect(applyJsonPatch({}, deeper.slice(0, 7))).toMatchObject({ kind: 'patched' });
    expect(applyJsonPatch({ a: {} }, [{ op: 'add', path: '/a'.repeat(500), value: 1 }])).toMatchObject({
      kind: 'malformed',
    });
  });

  it('applies what the library diffs, leaving its inputs alone', () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (from, to) => {
        // The library does not see a member `__proto__`.
        fc.pre(!JSON.stringify([from, to]).includes('"__proto__"'));
        const before = JSON.stringify(from);
        const patch = createPatch(from, to);
        const asSent = JSON.stringify(patch);
        expect(applyJsonPatch(from, JSON.parse(asSent))).toEqual({ kind: 'patched', object: to });
        expect(JSON.stringify(from)).toBe(before);
        expect(JSON.stringify(patch)).toBe(asSent);
      }),
    );
  });

  it('treats __proto__ as any other member', () => {
    const apply = (target: string, patch: object[]) => {
      const result = applyJsonPatch(JSON.parse(target) as JsonObject, patch);
      return result.kind === 'patched' ? JSON.stringify(result.object) : result.kind;
    };
    const value = JSON.parse('{"__proto__":{"p":1}}') as JsonObject;
    expect(apply('{"a":{}}', [{ op: 'add', path: '/a/__proto__', value }])).toBe(
      '{"a":{"__proto__":{"__proto__":{"p":1}}}}',
    );
    expect(apply('{"__proto__":{"b":1}}', [{ op: 'replace', path: '/__proto__', value: 2 }])).toBe('{"__proto__":2}');
    expect(apply('{"__proto__":{"b":1}}', [{ op: 'add', path: '/__proto__/c', value: 2 }])).toBe(
      '{"__proto__":{"b":1,"c":2}}',
    );
    expect(apply('{"__proto__":1}', [{ op: 'move', from: '/__proto__', path: '/a' }])).toBe('{"a":1}');
    expect(apply('{"a":1}', [{ op: 'copy', from: '/a', path: '/__proto__' }])).toBe('{"a":1,"__proto__":1}');
    expect(apply('{"a":1}', [{ op: 'remove', path: '/__proto__' }])).toBe('unprocessable');
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
    expect(({} as JsonObject)['p']).toBeUndefined();
  });

  it('never throws, whatever the patch', () => {
    const operation = fc.record({
      op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'nope'),
      path: fc.oneof(fc.constantFrom('', '/a', '/a/0', '/b/c', '/__proto__'), fc.string()),
      from: fc.constantFrom('', '/a', '/a/0', '/b'),
      value: fc.jsonValue(),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 5 }), (patch) => {
        expect(applyJsonPatch({ a: [1, { x: 1 }], b: { c: 1 } }, patch).kind).toBeTypeOf('string');
      }),
    );
  });
});
