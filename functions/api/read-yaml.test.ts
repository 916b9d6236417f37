import { describe, expect, it } from 'vitest';
import { readYaml } from './read-yaml.ts';

describe('YAML', () => {
  it.each<[string, string, unknown]>([
    ['a map', 'a: 1\nb: [x, {c: yes}]', { a: 1, b: ['x', { c: true }] }],
    ['an anchor and its aliases', 'a: &x {b: 1}\nc: *x\nd:\n  <<: *x', { a: { b: 1 }, c: { b: 1 }, d: { b: 1 } }],
    ['text that begins like an anchor', 'a: "&b"\nc: \'*d\'\ne: "["', { a: '&b', c: '*d', e: '[' }],
    [
      'a timestamp and a sexagesimal number as text',
      'a: 2026-01-01T00:00:00Z\nb: 1:30',
      { a: '2026-01-01T00:00:00Z', b: '1:30' },
    ],
    ['nothing', '', null],
  ])('reads %s', (_, text, value) => {
    expect(readYaml(text)).toEqual({ kind: 'read', value, duplicates: [] });
  });

  it.each<[string, string, unknown, string]>([
    ['a duplicate key', '\na: 1\nb: 2\na: 3', { a: 3, b: 2 }, 'line 4: key "a" already set in map'],
    ['one of a nested map', 'a:\n- b: {c: 1, c: 2}', { a: [{ b: { c: 2 } }] }, 'line 2: key "c" already set in map'],
    ['a number and a text of the same digits', '1: a\n"1": b', { 1: 'b' }, 'line 2: key "1" already set in map'],
  ])('reads the last value of %s, and names its line', (_, text, value, duplicate) => {
    expect(readYaml(text)).toEqual({ kind: 'read', value, duplicates: [`yaml: unmarshal errors:\n  ${duplicate}`] });
  });

  it('reads the names of inherited properties as own keys', () => {
    const read = readYaml('__proto__: {a: 1}\nconstructor: 2');
    if (read.kind !== 'read') throw new Error(read.message);
    expect(Object.entries(read.value as object)).toEqual([
      ['__proto__', { a: 1 }],
      ['constructor', 2],
    ]);
    expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  });

  it.each<[string, string]>([
    ['a map as a key', '{a: 1}: b'],
    ['a list as a key', '? [a]\n: b'],
    ['101 aliases', `a: &a x\n${Array.from({ length: 101 }, (_, i) => `b${i}: *a`).join('\n')}`],
    ['101 anchors', Array.from({ length: 101 }, (_, i) => `a${i}: &a${i} x`).join('\n')],
    ['201 levels of lists', `a: ${'['.repeat(201)}${']'.repeat(201)}`],
    ['20,000 levels of lists', `a: ${'['.repeat(20_000)}${']'.repeat(20_000)}`],
    ['55,000 keys in brackets', `x: {${Array.from({ length: 55_000 }, (_, i) => i.toString(36)).join(', ')}}`],
    ['120,000 items', `x:\n${'- \n'.repeat(120_000)}`],
    ['an unknown alias', 'a: *b'],
    ['an alias of an unknown anchor as a key', '*b : 1'],
  ])('refuses %s', (_, text) => {
    expect(readYaml(text)).toMatchObject({ kind: 'malformed' });
  });

  it.each<[string, string]>([
    ['lists', '- '.repeat(5_000)],
    ['maps', Array.from({ length: 500 }, (_, level) => `${' '.repeat(level)}a:\n`).join('')],
    ['keys', '? '.repeat(5_000)],
    ['brackets', `${'['.repeat(201)}${']'.repeat(201)}`],
    ['brackets that are never closed', '{a: '.repeat(5_000)],
  ])('names the limit for a document that nests %s too deeply', (_, text) => {
    expect(readYaml(text)).toEqual({
      kind: 'malformed',
      message: 'a YAML document nests at most 200 levels deep',
    });
    expect(readYaml('- '.repeat(200))).toMatchObject({ kind: 'read' });
  });

  it('names line and column of the first of many faults', () => {
    expect(readYaml(`a: 1\nb: "${'\\q'.repeat(40_000)}"`)).toEqual({
      kind: 'malformed',
      message: 'Invalid escape sequence \\q at line 2, column 5',
    });
    expect(readYaml(`a: 1\n${'}\n'.repeat(10_000)}`)).toEqual({
      kind: 'malformed',
      message: 'Unexpected flow-map-end token in YAML stream: "}" at line 2, column 1',
    });
  });

  it('reads a map of 12,000 keys', () => {
    const text = Array.from({ length: 12_000 }, (_, i) => `k${i}: v`).join('\n');
    const read = readYaml(text);
    if (read.kind !== 'read') throw new Error(read.message);
    expect(Object.keys(read.value as object)).toHaveLength(12_000);
  });
});
