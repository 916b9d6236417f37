/**
 * What expressions cost at most, by the tables of Kubernetes 1.36: TestCostEstimation of
 * k8s.io/apiextensions-apiserver pkg/apiserver/schema/cel, and k8s.io/apiserver pkg/cel/library/cost_test.go.
 */

import { describe, expect, it } from 'vitest';
import { extentsOf, sizesOf } from '../../shared/kinds/custom-resources/rule-costs.ts';
import { ruleTypes } from '../../shared/kinds/custom-resources/rule-values.ts';
import { compileSchema, type JsonSchema } from '../../shared/kinds/custom-resources/schema-node.ts';
import { AUTHORIZER_TYPE } from '../../shared/kubernetes/cel/authorizer.ts';
import type { Environment } from '../../shared/kubernetes/cel/environment.ts';
import { celFunctions, compileExpression, expressionCostMax } from '../../shared/kubernetes/cel/expressions.ts';
import {
  BOOL,
  BYTES,
  type CelType,
  DYN,
  INT,
  listOf,
  mapOf,
  objectType,
  STRING,
} from '../../shared/kubernetes/cel/types.ts';

const environmentOf = (
  variables: [string, CelType][],
  fieldsOf: Environment['fieldsOf'] = () => undefined,
): Environment => ({ variables: new Map(variables), functions: celFunctions, fieldsOf, isConstructible: () => false });

/** The cost of a rule at `spec`. */
function ruleCost(spec: JsonSchema, rule: string): number {
  const root = compileSchema({ type: 'object', properties: { spec } }, () => ({
    kind: 'compiled',
    matches: () => true,
    find: () => [],
  }));
  const node = root.properties.get('spec');
  const types = ruleTypes(root);
  const [type, extent] = [node && types.typeOf(node), node && extentsOf(root)(node)];
  if (type === undefined || extent === undefined) throw new Error('rules cannot read the schema');
  const environment = environmentOf(
    [
      ['self', type],
      ['oldSelf', type],
    ],
    types.fieldsOf,
  );
  expect(compileExpression(environment, rule, [BOOL])).toMatchObject({ kind: 'compiled' });
  return expressionCostMax(environment, rule, sizesOf(extent));
}

type Of = (max: number | undefined) => JsonSchema;
const defined = (schema: Record<string, unknown>): JsonSchema =>
  Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
const scalar = (type: string): JsonSchema => {
  if (type === 'int-or-string') return { 'x-kubernetes-int-or-string': true };
  return ['duration', 'date', 'date-time', 'byte'].includes(type) ? { type: 'string', format: type } : { type };
};
const text = (maxLength?: number, more = {}): JsonSchema => defined({ type: 'string', maxLength, ...more });
const list = (items: JsonSchema, maxItems?: number): JsonSchema => defined({ type: 'array', items, maxItems });
const map = (additionalProperties: JsonSchema, maxProperties?: number): JsonSchema =>
  defined({ type: 'object', additionalProperties, maxProperties });
const lists =
  (type: string): Of =>
  (max) =>
    list(scalar(type), max);
const maps =
  (type: string): Of =>
  (max) =>
    map(scalar(type), max);
const pair: JsonSchema = {
  type: 'object',
  properties: { required: { type: 'string' }, optional: { type: 'string' } },
  required: ['required'],
};

/** The schema, the rule, its cost; a bound for the schema, and the cost then. */
const RULES: readonly (readonly [name: string, of: Of, rule: string, cost: number, max: number, bounded: number])[] = [
  ['numbers', lists('number'), 'self.all(x, true)', 4718591, 10, 32],
  ['texts', lists('string'), 'self.all(x, true)', 3145727, 20, 62],
  ['booleans', lists('boolean'), 'self.all(x, true)', 1887437, 5, 17],
  ['lists of numbers', (max) => list(list(scalar('number')), max), 'self.all(x, true)', 3145727, 100, 302],
  ['objects', (max) => list(pair, max), 'self.all(x, true)', 555128, 50, 152],
  ['a map of numbers', maps('number'), 'self.all(x, true)', 1348169, 10, 32],
  ['a map of texts', maps('string'), 'self.all(x, true)', 1179647, 3, 11],
  ['a map of booleans', maps('boolean'), 'self.all(x, true)', 943718, 100, 302],
  ['a presence', maps('boolean'), 'has(self.x)', 1, 1024, 1],
  ['contains', text, "self.contains('test')", 314574, 10, 5],
  ['startsWith', text, "self.startsWith('test')", 2, 15, 2],
  ['endsWith', text, "self.endsWith('test')", 2, 30, 2],
  ['a sum of texts', text, `size(self + "hello") > size("hello")`, 314578, 4, 7],
  ['a number of a list', lists('number'), 'self[1] == 0.0', 2, 5000, 2],
  ['a text of a list', lists('string'), 'self[1] == self[1]', 314577, 8, 314577],
  ['a pattern', text, 'self.matches("x")', 314574, 50, 22],
  ['a pattern of nothing', text, '"".matches("(((((((((())))))))))[0-9]")', 7, 10, 7],
  ['no pattern', text, 'self.matches("")', 1, 100, 1],
  ['texts of a map', (max) => map(text(max), max), 'self.all(x, x.contains(self[x]))', 2752507, 10, 72],
  ['a list of no items', lists('number'), 'self[3] == 0.0', 2, 0, 2],
  ['a map of no members', maps('number'), `self["x"] == 0.0`, 2, 0, 2],
  ['a text of no characters', text, `self == "x"`, 2, 0, 1],
  ['bytes', (max) => text(max, { format: 'byte' }), `self == b"x"`, 2, 0, 1],
  ['more than fits', lists('number'), 'self.all(x, x == 0.0)', 6291454, 3 * 1024 * 2048, 25165826],
  [
    'maps with bounds in a list',
    (max) => list(map(defined({ ...pair, maxProperties: max }), max), max),
    'self.all(x, x["y"].required == "z")',
    7340027,
    10,
    72,
  ],
  [
    'maps with bounds in one without',
    (max) => list(map(pair, max)),
    'self.all(x, x["y"].required == "z")',
    7340027,
    10,
    7340027,
  ],
  ['ints or strings', lists('int-or-string'), 'self.all(x, true)', 4718591, 10, 32],
  ['an int or string', lists('int-or-string'), 'self[0] == 5', 3, 10, 3],
  ['a boolean of a list', lists('boolean'), 'self[0] == false', 2, 25, 2],
  ['an object of a list', (max) => list(pair, max), 'self[0] == null', 2, 422, 2],
  ['an item of an item', (max) => list(list(scalar('number')), max), 'self[0][0] == -1.0', 3, 51, 3],
  ['maps of a list', (max) => list(map(scalar('number')), max), 'self.all(x, x.y == 25.2)', 6291452, 12, 74],
  ['a member of an item', (max) => list(map(scalar('number')), max), 'self[0].x > 2.0', 4, 3000, 4],
  ['durations', lists('duration'), 'self.all(x, true)', 2359295, 5, 17],
  ['a duration', lists('duration'), 'self[0].getHours() == 2', 4, 525, 4],
  ['dates', lists('date'), 'self.all(x, true)', 725936, 15, 47],
  ['a date', lists('date'), 'self[2].getDayOfMonth() == 13', 4, 42, 4],
  ['times', lists('date-time'), 'self.all(x, true)', 428963, 25, 77],
  ['a time', lists('date-time'), 'self[2].getMinutes() == 45', 4, 99, 4],
  ['a map of ints or strings', maps('int-or-string'), 'self.all(x, true)', 1348169, 15, 47],
  ['a map of objects', (max) => map(pair, max), 'self.all(x, true)', 428963, 20, 62],
  ['a map of maps', (max) => map(map(scalar('number')), max), 'self.all(x, true)', 1179647, 10, 32],
  ['a map of lists', (max) => map(list(scalar('number')), max), 'self.all(x, true)', 1179647, 25, 77],
  ['a map of durations', maps('duration'), 'self.all(x, true)', 1048577, 5, 17],
  ['a map of dates', maps('date'), 'self.all(x, true)', 524288, 10, 32],
  ['a map of times', maps('date-time'), 'self.all(x, true)', 349526, 25, 77],
  ['find', text, "self.find('[0-9]+') == ''", 629147, 10, 11],
  ['join', (max) => list(text(max), max), "self.join(' ') == 'aa bb'", 329853068905, 10, 43],
  ['isSorted', (max) => list(text(max), max), 'self.isSorted() == true', 329854432052, 10, 52],
  [
    'replace',
    (max) => ({ type: 'object', properties: { str: text(max), before: text(2), after: text(4) } }),
    "self.str.replace(self.before, self.after) == 'does not matter'",
    629154,
    4,
    12,
  ],
  [
    'split',
    (max) => ({ type: 'object', properties: { str: text(max), separator: text(max) } }),
    'self.str.split(self.separator) == []',
    629160,
    10,
    22,
  ],
  ['lowerAscii', text, "self.lowerAscii() == 'lower!'", 314575, 10, 6],
  ['sizes', maps('integer'), 'oldSelf.size() == self.size()', 5, 10, 5],
  ['equal times', maps('date-time'), `self["a"] == self["b"]`, 8, 7, 8],
  ['equal durations', maps('duration'), `self["c"] == self["d"]`, 8, 42, 8],
  ['permitted values', (max) => text(max, { enum: ['A', 'B', 'C', 'LongValue'] }), "self.contains('A')", 2, 1000, 401],
  [
    'a quantity',
    (maxLength) => defined({ 'x-kubernetes-int-or-string': true, maxLength }),
    'isQuantity(self)',
    314574,
    20,
    9,
  ],
];

describe('the cost of a rule is at most that of Kubernetes for', () => {
  it.each(RULES)('%s', (_, of, rule, cost, max, bounded) => {
    expect([ruleCost(of(undefined), rule), ruleCost(of(max), rule)]).toEqual([cost, bounded]);
  });
});

describe('a loop within loops', () => {
  it.each([
    ['self.all(x, self.all(y, true))', 352],
    ['self.all(x, self.all(y, self.all(z, true)))', 3552],
  ])('exceeds every limit unless its list has a bound: %s', (rule, bounded) => {
    expect(ruleCost(lists('number')(undefined), rule)).toBeGreaterThan(10_000_000);
    expect(ruleCost(lists('number')(10), rule)).toBe(bounded);
  });
});

const SHOUT = "'ABCDEFGHIJ abcdefghij'";
const PHRASE = "'abc 123 def 123'";
const IPV4 = "ip('192.168.0.1')";
const IPV6 = "ip('2001:db8:3333:4444:5555:6666:7777:8888')";
const CIDR = "cidr('192.168.0.0/16')";
const CHECK =
  "authorizer.group('apps').resource('deployments').subresource('status').namespace('test').name('backend')";
const named = (name: string): string => `format.named('${name}').value()`;

const CALLS: readonly (readonly [expression: string, cost: number])[] = [
  ['[1, 2, 3, 4, 5].sum()', 15],
  ['[uint(1), uint(2), uint(3), uint(4), uint(5)].max()', 20],
  ['[false, true, false, true, false].isSorted()', 15],
  ["[duration('1s'), duration('2s'), duration('3s'), duration('4s'), duration('5s')].sum()", 20],
  ['[1, 2, 3, 4, 5].indexOf(3)', 15],
  ["'01234567890123456789012345678901234567890123456789'.lastIndexOf('123')", 5],
  ["url('https:://kubernetes.io/').getQuery()", 4],
  ["url('https:://kubernetes.io/') == url('https:://kubernetes.io/')", 9],
  ["url('https:://kubernetes.io/') == url('http://x.b')", 5],
  [IPV4, 2],
  [IPV6, 4],
  [`${IPV4}.family()`, 3],
  [`${IPV6}.isGlobalUnicast()`, 5],
  [`${IPV6} == ${IPV4}`, 7],
  ["ip.isCanonical('2001:db8:3333:4444:5555:6666:7777:8888')", 8],
  [`${CIDR}.masked()`, 3],
  [`${CIDR}.ip()`, 3],
  [`${CIDR} == cidr('2001:db8::/32')`, 5],
  [`${CIDR}.containsCIDR(cidr('192.0.0.0/30'))`, 11],
  [`${CIDR}.containsCIDR('192.168.0.0/16')`, 11],
  [`${CIDR}.containsIP(ip('192.169.0.1'))`, 8],
  [`${CIDR}.containsIP('192.0.0.1')`, 7],
  [`${SHOUT}.lowerAscii()`, 3],
  [`${SHOUT}.upperAscii() == ${SHOUT}.upperAscii()`, 9],
  [`strings.quote(${SHOUT}) == strings.quote(${SHOUT})`, 11],
  [`${PHRASE}.replace('123', '456', 1)`, 3],
  [`${PHRASE}.split(' ', 1)`, 3],
  [`${PHRASE}.substring(5, 8)`, 2],
  ["'  abc 123 def 123  '.trim()", 2],
  [`${PHRASE}.findAll('123', 1)`, 2],
  [`${CHECK}.check('create').allowed()`, 350_007],
  ['quantity("2M") == quantity("0.002G") && quantity("2000k") == quantity("2M")', 6],
  ['quantity("50k").add(20).sub(quantity("100k")).sub(-50000).asInteger() > 0', 7],
  [`${named('dns1123Subdomain')}.validate('my-name')`, 34],
  [`${named('dns1123Label')} == ${named('dns1123Label')}`, 11],
  ['sets.contains([1, 2, 3, 4], [2, 3])', 29],
  ['sets.contains([[1], [2, 3]], [[2, 3]])', 53],
  ['!sets.equivalent([1, 2], [2, 2, 2])', 34],
  ['sets.intersects([[1], [2, 3]], [[1, 2], [2, 3]])', 65],
  ['semver("1234.56789012345.67890123456789")', 4],
  ['semver("1.2.3").major()', 2],
  ["{'a': 1, 'b': 2}.all(k, v, v > 0)", 41],
  ["{'a': 1, 'b': 2}.exists(k, v, v > 0)", 43],
  ["{'a': 1, 'b': 2}.existsOne(k, v, v > 0)", 40],
  ["{'a': 1, 'b': 2}.transformMap(k, v, v < 5, v + 1)", 75],
  ["{'a': 1, 'b': 2}.transformMapEntry(k, v, v < 5, {k: v + 1})", 135],
  ['[1, 2].exists(i, v, v > 0)', 23],
  ['[1, 2].transformList(i, v, v < 5, v + 1)', 53],
];

describe('the cost of a call is at most that of Kubernetes for', () => {
  const environment = environmentOf([['authorizer', objectType(AUTHORIZER_TYPE)]]);
  it.each(CALLS)('%s', (expression, cost) => {
    expect(compileExpression(environment, expression, [DYN])).toMatchObject({ kind: 'compiled' });
    expect(expressionCostMax(environment, expression, () => undefined)).toBe(cost);
  });
});

type Sizes = Readonly<Record<string, number>>;
const texts = (...names: string[]): [string, CelType][] => names.map((name) => [name, STRING]);
const textLists = (...names: string[]): [string, CelType][] => names.map((name) => [name, listOf(STRING)]);
const nestedMaps: CelType = mapOf(STRING, mapOf(STRING, BOOL));

/** TestCost of cel-go checker/cost_test.go: variables, and the sizes that are known. */
type Sized = [expression: string, cost: number, variables?: [string, CelType][], sizes?: Sizes];
const SIZED: readonly Sized[] = [
  ["input['key']", 2, [['input', mapOf(STRING, STRING)]]],
  ['has(input.testAttr.nestedAttr)', 2, [['input', nestedMaps]]],
  ['input.all(x, true)', 302, textLists('input'), { input: 100 }],
  ['input.all(x, x.all(y, true))', 1752, [['input', listOf(listOf(BOOL))]], { input: 50, 'input.@items': 10 }],
  ['[1, 2, 3].all(x, true)', 20],
  ["input.matches('[0-9]')", 103, texts('input'), { input: 500 }],
  ['a || b || c || d', 4, ['a', 'b', 'c', 'd'].map((name) => [name, BOOL])],
  ['2 in [1, 2, 3]', 13],
  ['string(input) == string(input)', 152, [['input', BYTES]], { input: 500 }],
  ['bytes(input) == bytes(input)', 302, texts('input'), { input: 500 }],
  ['input.contains(arg1)', 2502, texts('input', 'arg1'), { input: 500, arg1: 500 }],
  ['input.startsWith(arg1)', 52, texts('input', 'arg1'), { arg1: 500 }],
  ['size(input)', 2, texts('input')],
  [
    '(x > 2 ? input1 : input2).all(y, true)',
    7,
    [['x', INT], ...textLists('input1', 'input2')],
    { input1: 1, input2: 1 },
  ],
  ['input.all(k, input[k].all(x, true))', 187, [['input', nestedMaps]], { input: 5, 'input.@values': 10 }],
  ['input.all(k, k.contains(k))', 32, [['input', nestedMaps]], { input: 5, 'input.@keys': 10 }],
  [
    'input.all(k, input[k].all(k, true) && k.contains(k))',
    34,
    [['input', nestedMaps]],
    { input: 2, 'input.@values': 2, 'input.@keys': 5 },
  ],
  ['(list1 + list2).all(x, true)', 64, textLists('list1', 'list2'), { list1: 10, list2: 10 }],
  ['"abcdefg".contains(str1 + str2)', 6, texts('str1', 'str2'), { str1: 10, str2: 10 }],
  [
    "[list1, list2].exists(l, l.exists(v, v.startsWith('hi')))",
    265,
    textLists('list1', 'list2'),
    { list1: 10, 'list1.@items': 64, list2: 20, 'list2.@items': 128 },
  ],
  ['((5 != 6) == (1 == 2)) == ((3 <= 4) == (9 != 9))', 7],
  ['[1,2,3,4,5].filter(x, x % 2 == 0)', 101],
  ['[1,2,3,4,5].map(x, x).filter(x, x % 2 == 0)', 177],
  ['[1,2,3,4,5].map(x, x).exists(x, x == 5) == true', 118],
  ['[1,2,3,4,5].map(x, x).map(x, x)', 162],
  ['[1,2,3,4,5].map(x, x)[4]', 87],
  ["{'a': [1,2], 'b': [1,2], 'c': [1,2], 'd': [1,2], 'e': [1,2]}.b", 81],
  ['[[1, 1], [2, 2], [3, 3], [4, 4], [5, 5]].all(y, y.all(y, y == 1))', 136],
  ['["a", "ab", "abc", "abcd", "abcde"].map(x, [x, x]).all(y, y.all(y, y.startsWith("a")))', 217],
  [
    "input.map(x, [x, x]).all(y, y.all(y, y.startsWith('a')))",
    208,
    textLists('input'),
    { input: 5, 'input.@items': 10 },
  ],
  ['[1,2,3,4,5].map(x, x).map(x, x) + [1]', 173],
  ['[1,2,3].all(i, i in [1,2,3].map(j, j + j))', 230],
  ['dyn([1,2,3]).all(i, i in dyn([1,2,3]).map(j, j + j))', 234],
  ["{'hello': 'hi'}['hello'] != {'hello': 'bye'}['hello']", 63],
  ['type(self.val1) == int', Number.POSITIVE_INFINITY, [['self', mapOf(STRING, INT)]]],
  [
    "timestamp(self.val1) == timestamp('2011-08-18T00:00:00.000+01:00') + duration('19h3m37s10ms')",
    7,
    [['self', mapOf(STRING, objectType('google.protobuf.Timestamp'))]],
  ],
];

describe('the cost of an expression is at most that of cel-go for', () => {
  it.each(SIZED.map((each) => ({ each, name: each[0] })))('$name', ({ each }) => {
    const [expression, cost, variables = [], sizes = {}] = each;
    const environment = environmentOf(variables);
    expect(compileExpression(environment, expression, [DYN])).toMatchObject({ kind: 'compiled' });
    expect(expressionCostMax(environment, expression, (path) => sizes[path.join('.')])).toBe(cost);
  });
});
