import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePattern } from '../../patterns.ts';
import { parseJsonPath, valuesAt } from './json-path.ts';
import { defaulted, pruned } from './prune.ts';
import { compileSchema, type JsonSchema } from './schema-node.ts';
import { validateValue } from './validate-value.ts';

const nodeOf = (schema: JsonSchema) => compileSchema(schema, compilePattern);
const of = (schema: JsonSchema, value: unknown, old?: unknown): readonly string[] =>
  validateValue(
    nodeOf({ type: 'object', properties: { x: schema } }),
    { x: value },
    old === undefined ? undefined : { x: old },
  ).map(({ field, message }) => `${field}: ${message}`);

describe('a value', () => {
  it.each<[JsonSchema, unknown, readonly string[]]>([
    [{ type: 'string', maxLength: 2 }, 'abc', ['x: Too long: may not be more than 2 bytes']],
    [
      { type: 'string', minLength: 2 },
      '\u{1f600}',
      ['x: Invalid value: "\u{1f600}": x in body should be at least 2 chars long'],
    ],
    [
      { type: 'integer', exclusiveMaximum: true, maximum: 3 },
      3,
      ['x: Invalid value: 3: x in body should be less than 3'],
    ],
    [{ type: 'integer', multipleOf: 2 }, 3, ['x: Invalid value: 3: x in body should be a multiple of 2']],
    [{ type: 'number' }, 3, []],
    [{ type: 'integer' }, 3.5, ['x: Invalid value: "number": x in body must be of type integer: "number"']],
    [{ type: 'string' }, null, ['x: Invalid value: "null": x in body must be of type string: "null"']],
    [{ type: 'string', nullable: true, enum: ['a'] }, null, []],
    [
      { 'x-kubernetes-int-or-string': true },
      true,
      ['x: Invalid value: "boolean": x in body must be of type integer,string: "boolean"'],
    ],
    [
      { type: 'array', items: { type: 'string' }, maxItems: 1 },
      ['a', 1],
      [
        'x: Too many: 2: must have at most 1 items',
        'x[1]: Invalid value: "integer": x[1] in body must be of type string: "integer"',
      ],
    ],
    [
      { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
      ['a', 'a'],
      ['x[1]: Duplicate value: "a"'],
    ],
    [
      { type: 'object', additionalProperties: { type: 'integer' } },
      { a: 'b' },
      ['x.a: Invalid value: "string": x.a in body must be of type integer: "string"'],
    ],
    [{ type: 'object', minProperties: 1 }, {}, ['x: Invalid value: 0: x in body should have at least 1 properties']],
    [
      { type: 'string', format: 'date-time' },
      'now',
      ['x: Invalid value: "now": x in body must be of type date-time: "now"'],
    ],
    [{ type: 'string', format: 'no-such-format' }, 'now', []],
    [
      { type: 'integer', anyOf: [{ minimum: 5 }, { maximum: 1 }] },
      3,
      [
        '<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)',
        'x: Invalid value: 3: x in body should be greater than or equal to 5',
      ],
    ],
    [
      { type: 'integer', oneOf: [{ minimum: 1 }, { minimum: 2 }] },
      3,
      ['<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ],
    [{ type: 'integer', not: { minimum: 1 } }, 3, ['<nil>: Invalid value: "": "x" must not validate the schema (not)']],
    [
      { type: 'object', properties: { apiVersion: { type: 'string' } }, 'x-kubernetes-embedded-resource': true },
      { apiVersion: '' },
      ['x.apiVersion: Invalid value: "": must not be empty', 'x.kind: Required value'],
    ],
    [
      { type: 'object', 'x-kubernetes-embedded-resource': true },
      { apiVersion: 'a/b/c', kind: '%', metadata: { name: '..', labels: { a: 'x y' } } },
      [
        'x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
        expect.stringContaining('x.kind: Invalid value: "%": may have mixed case, but should otherwise match: a DNS'),
        `x.metadata.name: Invalid value: "..": may not be '..'`,
        expect.stringContaining('x.metadata.labels: Invalid value: "x y"'),
      ],
    ],
    [
      { type: 'object', 'x-kubernetes-embedded-resource': true },
      { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 42 } },
      [
        'x.metadata: Invalid value: {"namespace":42}: json: cannot unmarshal number into Go struct field ObjectMeta.namespace of type string',
      ],
    ],
  ])('by %j: %j', (schema, value, causes) => {
    expect(of(schema, value)).toEqual(causes);
  });

  it('that an update leaves as it was is not refused, in lists by their keys', () => {
    const items: JsonSchema = {
      type: 'object',
      properties: { k: { type: 'string' }, n: { type: 'integer', maximum: 1 } },
      required: ['k'],
    };
    const list: JsonSchema = {
      type: 'array',
      items,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
    };
    const old = [
      { k: 'a', n: 5 },
      { k: 'b', n: 6 },
    ];
    expect(
      of(
        list,
        [
          { k: 'b', n: 6 },
          { k: 'a', n: 7 },
        ],
        old,
      ),
    ).toEqual(['x[1].n: Invalid value: 7: x[1].n in body should be less than or equal to 1']);
    const atomic: JsonSchema = { ...list, 'x-kubernetes-list-type': 'atomic' };
    expect(of(atomic, [...old, { k: 'c' }], old)).toHaveLength(2);
    expect(of(atomic, old, old)).toEqual([]);
    expect(of({ ...list, maxItems: 1 }, old.toReversed(), old)).toEqual([]);
  });

  it('is compared with its former value once, however deep what is wrong lies', () => {
    let reads = 0;
    const item = () => ({
      get v() {
        reads += 1;
        return 1;
      },
    });
    const nested = (n: number): unknown =>
      Array.from({ length: 50 }).reduce((inner) => ({ inner }), { items: Array.from({ length: 20 }, item), n });
    let schema: JsonSchema = {
      type: 'object',
      properties: {
        items: { type: 'array', 'x-kubernetes-preserve-unknown-fields': true },
        n: { type: 'integer', maximum: 1 },
      },
    };
    for (let depth = 0; depth < 50; depth += 1) {
      schema = { type: 'object', required: ['absent'], properties: { inner: schema } };
    }
    for (const old of [7, 8]) {
      reads = 0;
      expect(of(schema, nested(7), nested(old)).length > 0).toBe(old === 8);
      expect(reads).toBeLessThan(100);
    }
  });

  it('may have duplicates where it had some before, in any list', () => {
    const set: JsonSchema = { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' };
    const schema: JsonSchema = { type: 'object', properties: { a: set, b: set } };
    const before = { a: ['1', '1'], b: ['2'] };
    expect(of(schema, { ...before, b: ['2', '2'] }, before)).toEqual([]);
    expect(of(schema, before, { a: ['1'], b: ['2'] })).toEqual(['x.a[1]: Duplicate value: "1"']);
  });

  it('is not visited without end, however its schemas nest', () => {
    let schema: JsonSchema = { maximum: 0 };
    for (let depth = 0; depth < 10; depth += 1) schema = { anyOf: [schema, schema] };
    const list: JsonSchema = { type: 'array', items: { type: 'integer', not: schema } };
    const values = Array.from({ length: 20_000 }, () => 1);
    expect(of(list, values)).toEqual(['<nil>: Forbidden: the schema takes too long to evaluate']);
  });

  it('of an unlucky pattern is matched in linear time', () => {
    expect(of({ type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(20_000)}b`)).toHaveLength(1);
  });
});

describe('pruning and defaults', () => {
  const node = nodeOf({
    type: 'object',
    properties: {
      a: { type: 'object', properties: { b: { type: 'integer', default: 1 }, n: { type: 'string', nullable: true } } },
      open: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { known: { type: 'object', properties: {} } },
      },
      list: { type: 'array', items: { type: 'object', properties: { d: { type: 'string', default: 'x' } } } },
      map: {
        type: 'object',
        additionalProperties: { type: 'object', properties: { e: { type: 'integer', default: 2 } } },
      },
      whole: { type: 'object', default: {}, properties: { f: { type: 'integer', default: 3 } } },
    },
  });

  it('keep what is known, and what is preserved', () => {
    const unknown: string[] = [];
    const value = {
      a: { b: 2, c: 1, n: null },
      open: { x: { y: 1 }, known: { z: 1 } },
      list: [{ q: 1 }],
      map: { k: { w: 1 } },
      z: 1,
    };
    expect(pruned(node, value, '', unknown)).toEqual({
      a: { b: 2, n: null },
      open: { x: { y: 1 }, known: {} },
      list: [{}],
      map: { k: {} },
    });
    expect(unknown).toEqual(['a.c', 'open.known.z', 'list[0].q', 'map.k.w', 'z']);
  });

  it('keep what is known in the metadata of an embedded resource, and report its types', () => {
    const embedded = nodeOf({
      type: 'object',
      properties: { x: { type: 'object', 'x-kubernetes-embedded-resource': true } },
    });
    const [unknown, typeFaults]: [string[], { path: string; message: string }[]] = [[], []];
    const value = { x: { kind: 'A', metadata: { name: 'a', colour: 'red' } } };
    expect(pruned(embedded, value, '', unknown, typeFaults)).toEqual({ x: { kind: 'A', metadata: { name: 'a' } } });
    expect([unknown, typeFaults]).toEqual([['x.metadata.colour'], []]);
    pruned(embedded, { x: { metadata: { name: 1 } } }, '', unknown, typeFaults);
    expect(typeFaults[0]?.message).toMatch(/^x\.metadata: Invalid value: {"name":1}: json: cannot unmarshal number/);
  });

  it('fill in what is absent, below what is there', () => {
    expect(defaulted(node, { a: {}, list: [{}], map: { k: {} } })).toEqual({
      a: { b: 1 },
      list: [{ d: 'x' }],
      map: { k: { e: 2 } },
      whole: { f: 3 },
    });
    expect(defaulted(node, { a: { b: null } })).toMatchObject({ a: { b: 1 } });
  });

  it('done again change nothing, whatever the value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const once = defaulted(node, pruned(node, value, '', []));
        const unknown: string[] = [];
        expect(defaulted(node, pruned(node, once, '', unknown))).toEqual(once);
        expect(unknown).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a JSON path', () => {
  const object = {
    a: {
      'b.c': [
        { type: 'Ready', status: 'True' },
        { type: 'Other', status: 'False' },
      ],
    },
    n: 1,
  };
  it.each<[string, unknown[]]>([
    ['.n', [1]],
    ['.a.b\\.c[1].type', ['Other']],
    [".a['b.c'][*].status", ['True', 'False']],
    ['.a.b\\.c[?(@.type=="Ready")].status', ['True']],
    [".a.b\\.c[?(@.type != 'Ready')].status", ['False']],
    ['.absent.more', []],
  ])('%s', (text, values) => {
    expect(valuesAt(parseJsonPath(text) ?? [], object)).toEqual(values);
  });

  it('of another form is none', () => {
    expect(['a', '.a[', '.a[?(@.b)]', '..a'].map(parseJsonPath)).toEqual([undefined, undefined, undefined, undefined]);
  });
});
