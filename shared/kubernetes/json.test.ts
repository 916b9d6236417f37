import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BODY_DEPTH_MAX, fieldFaults, parseJson } from './json.ts';

const duplicates = (text: string) => {
  const parsed = parseJson(text);
  return parsed.kind === 'parsed' ? parsed.duplicates : parsed;
};

describe('parseJson', () => {
  it('names a member that stands twice by its path, once', () => {
    expect(duplicates('{"spec":{"x":1,"x":2,"x":3}}')).toEqual(['duplicate field "spec.x"']);
    expect(duplicates('{"spec":{"taints":[{"key":"a"},{"key":"b","key":"c"}]},"kind":"Node","kind":"Node"}')).toEqual([
      'duplicate field "spec.taints[1].key"',
      'duplicate field "kind"',
    ]);
  });

  it('names the first duplicate below a key of any length', () => {
    const key = 'k'.repeat(1_000);
    const faults = duplicates(`{"${key}":{${Array.from({ length: 300 }, (_, i) => `"m${i % 150}":1`).join(',')}}}`);
    expect((faults as string[]).length).toBeLessThan(100);
    expect(faults).toContain(`duplicate field "${key}.m0"`);
    const members = Array.from({ length: 300 }, (_, i) => `"m${i}":1`).join(',');
    expect(fieldFaults(`{"${key}":{${members}},"a":1,"a":1}`, ['b'])).toEqual(['duplicate field "a"']);
  });

  it('has duplicate and unknown members in the order of the text', () => {
    expect(fieldFaults('{"spec":{"y":"foo","x":2,"x":3},"z":1}', ['z', 'spec.y'])).toEqual([
      'unknown field "spec.y"',
      'duplicate field "spec.x"',
      'unknown field "z"',
    ]);
  });

  it('uses the last of two equal members, as Go does', () => {
    expect(parseJson('{"a":1,"a":2}')).toMatchObject({ value: { a: 2 } });
  });

  it('sees through escapes in keys and structure in strings', () => {
    expect(duplicates('{"a":1,"\\u0061":2}')).toEqual(['duplicate field "a"']);
    expect(duplicates('{"a":"{\\"b\\":1,\\"b\\":2}","c":"a","d":["a","a"]}')).toEqual([]);
  });

  it('keeps equal names in different objects apart', () => {
    expect(duplicates('[{"a":{"a":1}},{"a":{"b":[{"a":1},{"a":2}]}}]')).toEqual([]);
  });

  it('says what is wrong with text that is no JSON', () => {
    expect(parseJson('{"metadata":')).toMatchObject({
      kind: 'malformed',
      message: expect.stringMatching(/^invalid JSON/),
    });
    expect(parseJson('')).toMatchObject({ kind: 'malformed' });
  });

  it('bounds nesting', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(parseJson(nested(BODY_DEPTH_MAX))).toMatchObject({ kind: 'parsed' });
    expect(parseJson(nested(BODY_DEPTH_MAX + 1))).toMatchObject({ kind: 'malformed' });
    expect(parseJson(nested(500_000))).toMatchObject({ kind: 'malformed' });
  });

  it('finds no duplicates in what JSON.stringify writes, and reads it back', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(parseJson(text)).toEqual({ kind: 'parsed', value: JSON.parse(text), duplicates: [] });
      }),
    );
  });
});
