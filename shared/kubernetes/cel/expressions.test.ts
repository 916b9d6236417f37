import { describe, expect, it } from 'vitest';
import { CelAuthorizer } from './authorizer.ts';
import { CALL_COST_MAX, celFunctions, compileExpression, mutationFunctions } from './expressions.ts';
import { BOOL, type CelType, DYN, INT, listOf, objectType, STRING } from './types.ts';
import { CelFailure, type CelValue, celFromJson } from './values.ts';

const VARIABLES: Readonly<Record<string, CelType>> = {
  object: DYN,
  list: listOf(INT),
  text: STRING,
  authorizer: objectType('kubernetes.authorization.Authorizer'),
};
const environment = {
  variables: new Map(Object.entries(VARIABLES)),
  functions: mutationFunctions,
  fieldsOf: () => undefined,
  isConstructible: () => false,
};
const authorizer = new CelAuthorizer((asked) => ({ allowed: asked.verb === 'get', reason: 'a role' }));

function evaluate(source: string, values: Readonly<Record<string, CelValue>> = {}) {
  const compiled = compileExpression(environment, source, [DYN]);
  if (compiled.kind === 'refused') return { fault: compiled.message };
  const all = { authorizer, ...values };
  const { value, cost } = compiled.program.evaluate((name) => all[name as keyof typeof all], CALL_COST_MAX);
  return value instanceof CelFailure ? { fault: value.message, cost } : { value, cost };
}

/** Expressions that hold, or the fault of one, by upstream's library tests. */
const CASES: readonly (readonly [string, string, string?])[] = [
  ['CL-01', 'isQuantity("1.5Gi") && !isQuantity("1.5Gx")'],
  ['CL-02', 'quantity("200M") == quantity("0.2G") && quantity("50Mi").isGreaterThan(quantity("50M"))'],
  ['CL-03', 'quantity("50k").add(20).sub(quantity("100k")).sub(-50000).asInteger() == 20'],
  ['CL-04', 'quantity("50.703k").asApproximateFloat() == 50703.0 && quantity("-1m").sign() == -1'],
  ['CL-05', 'quantity("0.5").asInteger() == 0', 'cannot convert value to integer'],
  ['CL-06', 'quantity("10 Mo") == quantity("1")', 'quantities must match'],
  ['CL-07', 'isIP("::1") && !isIP("127.0.0.256") && !isIP("::ffff:1.2.3.4") && !isIP("fe80::1%eth0")'],
  ['CL-08', 'ip("2001:db8::1").family() == 6 && ip("10.0.0.1").family() == 4'],
  ['CL-09', '!ip.isCanonical("2001:DB8::1") && ip.isCanonical("2001:db8::1") && ip.isCanonical("::")'],
  ['CL-10', 'string(ip("2001:DB8:0:0:1:0:0:1")) == "2001:db8::1:0:0:1"'],
  ['CL-11', 'ip("0.0.0.0").isUnspecified() && ip("127.0.0.1").isLoopback() && ip("224.0.0.1").isLinkLocalMulticast()'],
  [
    'CL-12',
    'ip("169.254.1.1").isLinkLocalUnicast() && !ip("fe80::1").isGlobalUnicast() && ip("8.8.8.8").isGlobalUnicast()',
  ],
  ['CL-13', 'ip("a.b") == ip("::")', 'parse error during conversion from string'],
  [
    'CL-14',
    'cidr("192.168.0.0/24").containsIP("192.168.0.1") && !cidr("192.168.0.0/24").containsIP(ip("192.168.1.1"))',
  ],
  ['CL-15', 'cidr("192.168.0.0/24").containsCIDR("192.168.0.0/25") && !cidr("10.0.0.0/8").containsCIDR("10.0.0.0/7")'],
  [
    'CL-16',
    'string(cidr("192.168.0.1/24").masked()) == "192.168.0.0/24" && cidr("2001:db8::/32").prefixLength() == 32',
  ],
  ['CL-17', 'cidr("192.168.0.0/") == cidr("::/0")', 'network address parse error during conversion from string'],
  ['CL-18', 'url("https://example.com:80/a%20b?k=1&k=2").getHostname() == "example.com"'],
  ['CL-19', 'url("https://[::1]:80/p?k=1&k=2").getPort() == "80" && url("https://[::1]:80/").getHostname() == "::1"'],
  ['CL-20', 'url("https://example.com/?k=1&k=2&j=3").getQuery() == {"k": ["1", "2"], "j": ["3"]}'],
  ['CL-21', 'isURL("/absolute/path") && !isURL("../relative") && url("/a b").getEscapedPath() == "/a%20b"'],
  ['CL-22', 'url("nope")', 'URL parse error during conversion from string'],
  ['CL-23', '"abc 123".find("[0-9]+") == "123" && "abc".find("[0-9]+") == ""'],
  ['CL-24', '"1 22 333".findAll("[0-9]+") == ["1", "22", "333"] && "1 22 333".findAll("[0-9]+", 2) == ["1", "22"]'],
  ['CL-25', '"a".matches("(")', 'invalid matches argument'],
  ['CL-26', '[1, 2, 2, 3].isSorted() && ![2, 1].isSorted() && [1, 3].sum() == 4 && [1, 3].max() == 3'],
  ['CL-27', '["b", "a"].min() == "a" && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(5) == -1'],
  ['CL-28', 'list.min() == 1', 'min called on empty list'],
  ['CL-29', '!format.dns1123Label().validate("my-name").hasValue()'],
  [
    'CL-30',
    'format.named("dns1123Label").value().validate("my_name").value()[0].startsWith("a lowercase RFC 1123 label")',
  ],
  [
    'CL-31',
    '!format.named("nope").hasValue() && format.uuid().validate("x").value() == ["does not match the UUID format"]',
  ],
  ['CL-32', '!format.date().validate("2021-01-31").hasValue() && format.date().validate("2021-02-30").hasValue()'],
  ['CL-33', 'isSemver("1.0.0-beta.1+build") && !isSemver("v1.0.0") && isSemver("v1.0", true) && !isSemver("01.0.0")'],
  ['CL-34', 'semver("1.2.3").compareTo(semver("1.2.3-rc.1")) == 1 && semver("v01.2", true).minor() == 2'],
  ['CL-35', 'semver("1.0.0-alpha.9").isLessThan(semver("1.0.0-alpha.10"))'],
  ['CL-36', 'semver("nope")', 'Invalid'],
  ['CL-37', 'authorizer.group("").resource("pods").namespace("a").check("get").allowed()'],
  ['CL-38', '!authorizer.path("/healthz").check("post").allowed()'],
  ['CL-39', 'authorizer.serviceAccount("a", "b").group("").resource("x").check("get").reason() == "a role"'],
  [
    'CL-40',
    'authorizer.serviceAccount("A", "b").group("").resource("x").check("get").allowed()',
    'Invalid service account namespace',
  ],
  ['CL-41', 'jsonpatch.escapeKey("k8s.io/my~label") == "k8s.io~1my~0label"'],
  [
    'CL-42',
    'object.?a.?b.orValue("x") == "x" && [1, 2].all(i, v, v == i + 1) && {"a": 1}.transformMap(k, v, v + 1) == {"a": 2}',
  ],
  ['CL-43', 'sets.intersects([1], [1, 2]) && [3, 1].sort() == [1, 3] && [[1], [2]].flatten() == [1, 2]'],
  ['CL-44', "'%d %s %.1f'.format([1, 'abc', 2.0]) == '1 abc 2.0'"],
];

describe('libraries of Kubernetes', () => {
  const cases = CASES.map(([id, source, fault]) => ({ id, source, fault }));
  it.each(cases)('$id: $source', ({ source, fault }) => {
    const outcome = evaluate(source, { object: celFromJson({}), list: [] });
    if (fault === undefined) expect(outcome).toMatchObject({ value: true });
    else expect(outcome.fault).toContain(fault);
  });
});

/** Runtime costs that the tests of cel-go and of k8s.io/apiserver expect. */
const COSTS: readonly (readonly [string, number])[] = [
  ['"Hello World!"', 0],
  ['object', 1],
  ['object["key"]', 2],
  ['object["ke" + "y"]', 3],
  ['has(object.nested.key)', 2],
  ['[1, 2, 3]', 10],
  ['{"a": 1}', 30],
  ['list.all(x, true)', 2],
  ['[1, 2, 3].all(x, true)', 20],
  ["'123'.matches('[0-9]')", 2],
  ['true ? 1 : 2', 0],
  ['2 in [1, 2, 3]', 13],
  ["'12345678901234567890' == '123456789012345678901234567890'", 2],
  ['(1 > 2 || 2 > 1) == true', 3],
  ["[{'k1': 1}, {'k2': 2}].all(x, true)", 77],
  ["'ABCDEFGHIJ abcdefghij'.lowerAscii() == 'abcdefghij ABCDEFGHIJ'.lowerAscii()", 9],
  ["'abc 123 def 123'.split(' ')", 3],
  ["['aa', 'bb', 'cc', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].join(' ')", 15],
  ["'abc 123 def 123'.find('123')", 2],
  ['quantity("50k").add(20).sub(quantity("100k")).asInteger() > 0', 6],
  ['format.named("dns1123Subdomain").value().validate("my-name")', 17],
  ['format.named("dns1123Label").value() == format.named("dns1123Label").value()', 5],
  ["authorizer.path('/healthz').check('get').allowed()", 350_003],
  [
    "authorizer.group('').resource('pods').labelSelector('spec.nodeName=example-node-name.fully.qualified.domain.name.example.com')",
    1_821,
  ],
];

describe('the cost of an evaluation', () => {
  it.each(COSTS)('%s', (source, cost) => {
    const object = celFromJson({ key: 1, nested: { key: 1 } });
    expect(evaluate(source, { object, list: [] })).toMatchObject({ cost });
  });

  const EXPENSIVE: readonly (readonly [string, string])[] = [
    ['nested folds', `${'LIST.all(a, '.repeat(6)}true${')'.repeat(6)}`],
    ['comparisons of large values', 'LIST.all(a, LIST.all(b, object.items == object.items.map(x, x)))'],
    ['texts that grow', '[text, text].all(a, LIST.all(b, LIST.all(c, (a + a).size() > 0)))'],
    [
      'literals of constants',
      `LIST.all(a, LIST.all(b, LIST.all(c, LIST.all(d, ${JSON.stringify([...Array(999).keys()])} != []))))`,
    ],
    ['formatted objects', "LIST.all(a, LIST.all(b, '%s'.format([object]) != ''))"],
    ['regular expressions that backtrack', "LIST.all(a, LIST.all(b, !text.matches('^(a|a?)+$b')))"],
  ];
  const list = JSON.stringify([...Array(100).keys()]);
  const text = 'a'.repeat(50_000);
  const object = celFromJson({ items: Array.from({ length: 2_000 }, (_, i) => ({ i, text: `t${i}` })) });

  it.each(EXPENSIVE)('ends %s', (_, source) => {
    const startMs = performance.now();
    const { fault } = evaluate(source.replaceAll('LIST', list), { object, text });
    expect(fault).toBe('operation cancelled: actual cost limit exceeded');
    // Some tenths of a second; without the limit minutes.
    expect(performance.now() - startMs).toBeLessThan(20_000);
  });
});

it('a result of another type is refused at compilation, with the wanted one', () => {
  const compiled = compileExpression({ ...environment, functions: celFunctions }, '1 + 1', [BOOL]);
  expect(compiled).toEqual({ kind: 'refused', message: 'must evaluate to bool' });
});

it('a fault is shown with its line, its column and the line itself', () => {
  expect(evaluate('true &&\n  nope.x')).toEqual({
    fault: `compilation failed: ERROR: <input>:2:3: undeclared reference to 'nope' (in container '')\n |   nope.x\n | ..^`,
  });
});

it.each(['(', 'a.b.', "'x", '1 +', '`a`', `${'('.repeat(300)}1${')'.repeat(300)}`, `1${' + 1'.repeat(2_000)}`])(
  'malformed text is refused: %s',
  (source) => {
    expect(evaluate(source).fault).toMatch(/^compilation failed: ERROR: <input>:1:\d+: /);
  },
);

it('checks the types of a long expression in time that its length bounds', () => {
  const part = Array.from({ length: 160 }, () => '1==1').join('||');
  const source = Array.from({ length: 100 }, () => `(${part})`).join('||');
  const began = performance.now();
  expect(evaluate(source)).toMatchObject({ value: true });
  expect(performance.now() - began).toBeLessThan(10_000);
});
