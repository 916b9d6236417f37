/** Rules in CEL of custom kinds: what they see, when they are evaluated, what a failure says, and what ends them. */
import { describe, expect, it } from 'vitest';
import type { Cause } from '../../kubernetes/status.ts';
import { escapedName } from './rule-values.ts';
import { ruleFaults, rulesOf } from './rules.ts';
import { compileSchema, type JsonSchema } from './schema-node.ts';

const nodeOf = (schema: JsonSchema) => compileSchema(schema, () => ({ kind: 'compiled', matches: () => true }));
const texts = (causes: readonly Cause[]) => causes.map(({ field, message }) => `${field}: ${message}`);
const root = (spec: JsonSchema, rules: object[] = []): JsonSchema => ({
  type: 'object',
  properties: { spec },
  ...(rules.length === 0 ? {} : { 'x-kubernetes-validations': rules as never }),
});
const object = (spec: unknown, name = 'a') => ({ apiVersion: 'example.com/v1', kind: 'A', metadata: { name }, spec });
const faultsOf = (schema: JsonSchema) => texts(ruleFaults(nodeOf(schema), '$', false));

/** What a schema with these rules says of an object. */
function found(schema: JsonSchema, spec: unknown, old?: unknown): readonly string[] {
  expect(faultsOf(schema)).toEqual([]);
  return foundByStored(schema, spec, old);
}

/** What rules of a definition say that no longer could be stored. */
function foundByStored(schema: JsonSchema, spec: unknown, old?: unknown): readonly string[] {
  const before = old === undefined ? undefined : object(old, 'before');
  return texts(rulesOf(nodeOf(schema))(object(spec), before, []));
}

const withRules = (schema: JsonSchema, ...rules: object[]): JsonSchema => ({
  ...schema,
  'x-kubernetes-validations': rules as never,
});
const text: JsonSchema = { type: 'string' };
const integer: JsonSchema = { type: 'integer' };
const pair: JsonSchema = { type: 'object', properties: { a: integer, b: integer } };

describe('a rule sees', () => {
  const members = (properties: Record<string, JsonSchema>): JsonSchema => ({ type: 'object', properties });
  it.each<[string, JsonSchema, unknown, string, boolean]>([
    ['integers', pair, { a: 1, b: 2 }, 'self.a < self.b', true],
    ['integers that are not so', pair, { a: 2, b: 2 }, 'self.a < self.b', false],
    ['an absent member', pair, { a: 1 }, '!has(self.b)', true],
    [
      'a number as a double',
      members({ a: { type: 'number' } }),
      { a: 5 },
      'self.a == 5.0 && type(self.a) == double',
      true,
    ],
    ['a boolean', members({ a: { type: 'boolean' } }), { a: true }, 'self.a', true],
    ['a list', { type: 'array', items: integer }, [1, 2, 3], 'self.all(x, x > 0) && self.size() == 3', true],
    [
      'a map',
      { type: 'object', additionalProperties: text },
      { x: 'y' },
      "self['x'] == 'y' && self.all(k, k == 'x')",
      true,
    ],
    [
      'int-or-string as dyn',
      { 'x-kubernetes-int-or-string': true },
      '50%',
      "type(self) == string ? self == '50%' : self == 50",
      true,
    ],
    [
      'a date-time',
      { type: 'string', format: 'date-time' },
      '2026-01-02T03:04:05Z',
      'self.getFullYear() == 2026',
      true,
    ],
    ['a date', { type: 'string', format: 'date' }, '2026-01-02', 'self.getDate() == 2', true],
    ['a duration', { type: 'string', format: 'duration' }, '90m', "self == duration('1h30m')", true],
    ['a duration in words', { type: 'string', format: 'duration' }, '2 days', "self == duration('48h')", true],
    ['bytes', { type: 'string', format: 'byte' }, 'aGk=', "self == b'hi'", true],
    ['another format as a string', { type: 'string', format: 'ipv4' }, '10.0.0.1', "self.startsWith('10.')", true],
    ['null where it is permitted', members({ a: { ...pair, nullable: true } }), { a: null }, 'self.a == null', true],
    ['a name with a dot', members({ 'a.b': integer }), { 'a.b': 1 }, 'self.a__dot__b == 1', true],
    ['a name with a dash', members({ 'a-b': integer }), { 'a-b': 1 }, 'self.a__dash__b == 1', true],
    ['a name with underscores', members({ a__b: integer }), { a__b: 1 }, 'self.a__underscores__b == 1', true],
    ['a reserved name', members({ namespace: text }), { namespace: 'x' }, "self.__namespace__ == 'x'", true],
    [
      'a map by its own keys',
      { type: 'object', additionalProperties: integer },
      { 'a-b': 1 },
      "self['a-b'] == 1",
      true,
    ],
  ])('%s', (_what, schema, value, rule, holds) => {
    const expected = holds ? 0 : 1;
    expect(found(root(withRules(schema, { rule })), value)).toHaveLength(expected);
    expect(found(root(withRules(schema, { rule: `!(${rule})` })), value)).toHaveLength(1 - expected);
  });

  it.each([
    ['spec.a', 'spec__dot__a'],
    ['/', '__slash__'],
    ['true', '__true__'],
    ['a_b', 'a_b'],
    ['1a', undefined],
    ['ä', undefined],
  ])('the member %s as %s', (name, escaped) => expect(escapedName(name)).toBe(escaped));

  it('name, generateName, kind and apiVersion at the root, and no other metadata', () => {
    const rule = "self.metadata.name == 'a' && !has(self.metadata.generateName) && self.kind == 'A'";
    expect(found(root(pair, [{ rule }]), {})).toEqual([]);
    expect(faultsOf(root(pair, [{ rule: 'has(self.metadata.labels)' }]))[0]).toContain("undefined field 'labels'");
    expect(faultsOf(root(withRules(pair, { rule: 'has(self.metadata)' })))[0]).toContain("undefined field 'metadata'");
  });

  it('no unknown members that are preserved', () => {
    const open: JsonSchema = { ...pair, 'x-kubernetes-preserve-unknown-fields': true };
    expect(faultsOf(root(withRules(open, { rule: 'has(self.c)' })))[0]).toContain("undefined field 'c'");
    const untyped: JsonSchema = {
      type: 'object',
      properties: { any: { 'x-kubernetes-preserve-unknown-fields': true } },
    };
    expect(faultsOf(root(withRules(untyped, { rule: 'has(self.any)' })))[0]).toContain("undefined field 'any'");
  });
});

describe('a rule that does not hold', () => {
  const rule = 'self.a < self.b';
  const value = { a: 2, b: 1 };
  it.each<[string, object, string]>([
    ['shows the rule', { rule }, 'spec: Invalid value: failed rule: self.a < self.b'],
    ['shows its message', { rule, message: ' a below b ' }, 'spec: Invalid value: a below b'],
    [
      'shows its messageExpression',
      { rule, message: 'x', messageExpression: "'a is %d'.format([self.a])" },
      'spec: Invalid value: a is 2',
    ],
    [
      'shows its message if the messageExpression fails',
      { rule, message: 'x', messageExpression: 'string(self.a / 0)' },
      'spec: Invalid value: x',
    ],
    [
      'shows its message if the messageExpression has line breaks',
      { rule, message: 'x', messageExpression: "'a\\nb'" },
      'spec: Invalid value: x',
    ],
    ['names its field', { rule, fieldPath: '.a' }, 'spec.a: Invalid value: failed rule: self.a < self.b'],
    ['names a quoted field', { rule, fieldPath: "['b']" }, 'spec.b: Invalid value: failed rule: self.a < self.b'],
    ['is forbidden', { rule, reason: 'FieldValueForbidden' }, 'spec: Forbidden: failed rule: self.a < self.b'],
    ['is required', { rule, reason: 'FieldValueRequired' }, 'spec: Required value: failed rule: self.a < self.b'],
    ['is a duplicate', { rule, reason: 'FieldValueDuplicate' }, 'spec: Duplicate value'],
    [
      'fails by an error',
      { rule: 'self.a / 0 == 1' },
      'spec: Invalid value: "object": division by zero evaluating rule: self.a / 0 == 1',
    ],
  ])('%s', (_what, each, cause) => {
    expect(found(root(withRules(pair, each)), value)).toEqual([cause]);
  });

  it('shows the value of a scalar, and paths of items, keys and the root', () => {
    const positive = withRules(integer, { rule: 'self > 0' });
    const schema = root(
      {
        type: 'object',
        properties: {
          list: { type: 'array', items: positive },
          map: { type: 'object', additionalProperties: positive },
        },
      },
      [{ rule: 'self.spec.list.size() == 0' }],
    );
    expect(found(schema, { list: [1, -1], map: { 'a.b': -2 } })).toEqual([
      '<nil>: Invalid value: failed rule: self.spec.list.size() == 0',
      'spec.list[1]: Invalid value: -1: failed rule: self > 0',
      'spec.map[a.b]: Invalid value: -2: failed rule: self > 0',
    ]);
  });

  it('is an operand of a wrong type where the type is known only then', () => {
    const schema = root(withRules({ 'x-kubernetes-int-or-string': true }, { rule: 'self < 5' }));
    expect(found(schema, 'x')[0]).toMatch(
      /^spec: Invalid value: "": 'no such overload.*': call arguments did not match a supported operator, function or macro signature for rule: self < 5$/,
    );
  });

  it('is not evaluated for null, for an absent value, and in an object that is not complete', () => {
    const schema = root({
      type: 'object',
      properties: { a: withRules({ ...integer, nullable: true }, { rule: 'false' }) },
    });
    expect(found(schema, { a: null })).toEqual([]);
    expect(found(schema, {})).toEqual([]);
    const missing: Cause = { reason: 'FieldValueRequired', message: 'Required value', field: 'spec.x' };
    expect(texts(rulesOf(nodeOf(schema))(object({ a: 1 }), undefined, [missing]))).toEqual([
      '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    ]);
  });
});

describe('a transition rule', () => {
  const fixed = withRules(integer, { rule: 'self == oldSelf', message: 'fixed' });
  it('is evaluated where there is a former value', () => {
    const schema = root({ type: 'object', properties: { a: fixed } });
    expect(found(schema, { a: 1 })).toEqual([]);
    expect(found(schema, { a: 1 }, { a: 1 })).toEqual([]);
    expect(found(schema, { a: 1 }, {})).toEqual([]);
    expect(found(schema, { a: 2 }, { a: 1 })).toEqual(['spec.a: Invalid value: 2: fixed']);
  });

  it('knows the former item of a list with keys, and the former member of a map', () => {
    const list: JsonSchema = {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['n'],
      items: { type: 'object', required: ['n'], properties: { n: text, v: fixed } },
    };
    const before = [
      { n: 'a', v: 1 },
      { n: 'b', v: 2 },
    ];
    expect(
      found(
        root(list),
        [
          { n: 'b', v: 2 },
          { n: 'a', v: 3 },
          { n: 'c', v: 9 },
        ],
        before,
      ),
    ).toEqual(['spec[1].v: Invalid value: 3: fixed']);
    expect(found(root({ type: 'object', additionalProperties: fixed }), { k: 2, n: 1 }, { k: 1 })).toEqual([
      'spec[k]: Invalid value: 2: fixed',
    ]);
  });

  it('is refused where items of a list have no former value', () => {
    const list: JsonSchema = { type: 'array', items: fixed };
    expect(faultsOf(root(list))).toEqual([
      '$.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within $.properties[spec]',
    ]);
  });

  it('with optionalOldSelf is evaluated on creation too', () => {
    const rule = 'oldSelf.hasValue() ? self >= oldSelf.value() : self == 1';
    const schema = root({ type: 'object', properties: { a: withRules(integer, { rule, optionalOldSelf: true }) } });
    expect(found(schema, { a: 1 })).toEqual([]);
    expect(found(schema, { a: 2 })).toHaveLength(1);
    expect(found(schema, { a: 2 }, { a: 1 })).toEqual([]);
    expect(found(schema, { a: 0 }, { a: 1 })).toHaveLength(1);
  });
});

describe('a value without a schema', () => {
  it('is compared with the whole, although no rule reads it', () => {
    const open: JsonSchema = { ...pair, 'x-kubernetes-preserve-unknown-fields': true };
    const schema = root(withRules(open, { rule: 'self == oldSelf', message: 'fixed' }));
    expect(found(schema, { a: 1, c: [1] }, { a: 1, c: [1] })).toEqual([]);
    expect(found(schema, { a: 1, c: [2] }, { a: 1, c: [1] })).toEqual(['spec: Invalid value: fixed']);
    expect(found(schema, { a: 1 }, { a: 1, c: [1] })).toEqual(['spec: Invalid value: fixed']);
  });
});

describe('a list of unique items', () => {
  const set: JsonSchema = { type: 'array', 'x-kubernetes-list-type': 'set', items: text };
  const keyed: JsonSchema = {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['a-b'],
    items: { type: 'object', properties: { 'a-b': text, v: integer } },
  };
  const [x, y] = [
    { 'a-b': 'x', v: 1 },
    { 'a-b': 'y', v: 2 },
  ];
  it('is equal to one in another order', () => {
    const isFixed = { rule: 'self == oldSelf', message: 'fixed' };
    expect(found(root(withRules(set, isFixed)), ['b', 'a'], ['a', 'b'])).toEqual([]);
    expect(found(root(withRules(set, isFixed)), ['b', 'c'], ['a', 'b'])).toHaveLength(1);
    expect(found(root(withRules(keyed, isFixed)), [y, x], [x, y])).toEqual([]);
    expect(found(root(withRules(keyed, isFixed)), [y, { ...x, v: 3 }], [x, y])).toHaveLength(1);
    expect(found(root(withRules(set, { rule: "self != ['a', 'a']" })), ['a', 'b'])).toEqual([]);
    const { 'x-kubernetes-list-type': _listType, ...list } = set;
    expect(found(root(withRules(list, isFixed)), ['b', 'a'], ['a', 'b'])).toHaveLength(1);
  });

  it('has each item once after an addition', () => {
    const rule = "self + ['b', 'c'] == ['c', 'a', 'b'] && (self + self).size() == 2";
    expect(found(root(withRules(set, { rule })), ['a', 'b'])).toEqual([]);
    const merges = { rule: 'size(self + oldSelf) == 3 && (self + oldSelf)[1].v == 2' };
    expect(
      found(
        root(withRules(keyed, merges)),
        [
          { 'a-b': 'z', v: 1 },
          { ...y, v: 9 },
        ],
        [x, y],
      ),
    ).toEqual([]);
  });
});

describe('what an update leaves unchanged', () => {
  const schema = root({
    type: 'object',
    properties: {
      a: withRules(integer, { rule: 'self > 0' }),
      b: integer,
      parts: { type: 'array', items: withRules(integer, { rule: 'self > 0' }) },
      up: withRules(integer, { rule: 'self > oldSelf' }),
    },
  });
  it('keeps values that break a rule, but not a transition rule', () => {
    expect(found(schema, { a: 0, b: 2, parts: [0] }, { a: 0, b: 1, parts: [0] })).toEqual([]);
    expect(found(schema, { a: -1 }, { a: 0 })).toHaveLength(1);
    expect(found(schema, { parts: [0, 1] }, { parts: [0] })).toHaveLength(1);
    expect(found(schema, { up: 1 }, { up: 1 })).toHaveLength(1);
  });
});

describe('a definition with a rule that cannot be evaluated', () => {
  const at = '$.properties[spec].x-kubernetes-validations[0]';
  it.each<[string, object, string]>([
    [
      'an unknown member',
      { rule: 'self.c > 1' },
      `${at}.rule: Invalid value: {"rule":"self.c > 1"}: compilation failed: ERROR: <input>:1:5: undefined field 'c'\n | self.c > 1\n | ....^`,
    ],
    [
      'no bool',
      { rule: 'self.a' },
      `${at}.rule: Invalid value: {"rule":"self.a"}: cel expression must evaluate to a bool`,
    ],
    [
      'a message that is no text',
      { rule: 'true', messageExpression: 'self.a' },
      `${at}.messageExpression: Invalid value: {"rule":"true","messageExpression":"self.a"}: messageExpression must evaluate to a string`,
    ],
    [
      'optionalOldSelf without oldSelf',
      { rule: 'true', optionalOldSelf: true },
      `${at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule`,
    ],
    [
      'a fieldPath that leads nowhere',
      { rule: 'true', fieldPath: '.c' },
      `${at}.fieldPath: Invalid value: ".c": must be a valid path`,
    ],
    [
      'a fieldPath that is none',
      { rule: 'true', fieldPath: 'a' },
      `${at}.fieldPath: Invalid value: "a": must be a valid path`,
    ],
  ])('is refused: %s', (_what, rule, cause) => {
    expect(faultsOf(root(withRules(pair, rule)))).toEqual([cause]);
  });

  it('is refused: types that differ, a syntax error, and a messageExpression that does not compile', () => {
    expect(faultsOf(root(withRules(pair, { rule: "self.a == 'x'" })))[0]).toContain(
      "found no matching overload for '_==_' applied to '(int, string)'",
    );
    expect(faultsOf(root(withRules(pair, { rule: 'self.a ==' })))[0]).toContain(
      'compilation failed: ERROR: <input>:1:',
    );
    expect(faultsOf(root(withRules(pair, { rule: 'true', messageExpression: 'self.c' })))[0]).toContain(
      'messageExpression compilation failed: ERROR: <input>:1:5: undefined field',
    );
  });
});

describe('bounds', () => {
  const numbers: JsonSchema = { type: 'array', items: integer };
  const many = Array.from({ length: 20_000 }, (_, index) => index);
  const dear = 'self.all(x, self.exists(y, y == x + 1000000) == false)';

  it('a rule over a large list ends with a cost error', () => {
    const began = performance.now();
    expect(foundByStored(root(withRules(numbers, { rule: dear }, { rule: 'false' })), many)).toEqual([
      `spec: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${dear}`,
    ]);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it('a comparison of values without a schema costs what they are long', () => {
    const open: JsonSchema = {
      type: 'object',
      properties: { n: numbers },
      'x-kubernetes-preserve-unknown-fields': true,
    };
    const value = { n: many.slice(0, 1_000), c: { text: 'x'.repeat(50_000), more: many } };
    const rule = 'self.n.all(x, self == oldSelf)';
    expect(found(root(withRules(open, { rule })), value, structuredClone(value))).toEqual([
      `spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${rule}`,
    ]);
  });

  it('all rules of one object share one budget', () => {
    const rule = 'self.all(x, x + 1 > x)';
    const rules = Array.from({ length: 100 }, () => ({ rule }));
    expect(foundByStored(root(withRules(numbers, ...rules)), many)).toEqual([
      'spec: Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run',
    ]);
  });

  it('a messageExpression that costs too much ends the evaluation', () => {
    const messageExpression = `${dear} ? 'a' : 'b'`;
    expect(
      foundByStored(root(withRules(numbers, { rule: 'false', messageExpression }, { rule: 'false' })), many),
    ).toEqual([
      `spec: Invalid value: "array": no further validation rules will be run due to call cost exceeds limit for messageExpression: "${messageExpression}"`,
    ]);
  });
});
