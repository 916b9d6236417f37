import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { AREAS, filesOf, sourcesOf, TESTS } from './areas.ts';
import { type Place, reasonToIgnore, type Syntax } from './ignore-prose.ts';
import { nearTests } from './near-tests.ts';
import { refusalsUnder } from './refuse-types.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

it.each(Object.keys(AREAS))('the area %s has files, and each of its globs matches', (area) => {
  expect(sourcesOf(ROOT, area).length).toBeGreaterThan(20);
});

it('refuses an unknown area', () => {
  expect(() => sourcesOf(ROOT, 'other')).toThrow('unknown area other: one of controllers, store, access, agent');
});

it('runs the tests of the noun, some others that load the file, and the suites that do', () => {
  const source = 'scripts/mutants/near-tests.ts';
  const own = 'scripts/mutants/mutants.test.ts';
  expect(nearTests(ROOT, source, ['test/imports.test.ts', own])).toEqual([own]);
  const tests = nearTests(ROOT, 'functions/pod-gc/remove-pod.ts', filesOf(ROOT, TESTS));
  expect(tests[0]).toBe('functions/pod-gc/remove-pod.test.ts');
  expect(tests).toContain('test/controllers/pod-gc.test.ts');
  const ofOthers = tests.filter((test) => !/^(functions\/pod-gc|test\/(conformance|controllers))\//.test(test));
  expect(ofOthers).toHaveLength(6);
  const whole = 'test/agent/pod-volumes.test.ts';
  expect(nearTests(ROOT, 'agent/adapters/volumes/pod-volumes.ts', [whole, tests[0]!])).toEqual([whole]);
  expect(nearTests(ROOT, 'shared/defined.ts', [whole])).toEqual([]);
});

it('does not count a type as loaded', () => {
  expect(nearTests(ROOT, 'scripts/mutants/ignore-prose.ts', ['scripts/mutants/mutants.test.ts'])).toHaveLength(1);
  expect(nearTests(ROOT, 'shared/observability/log.ts', filesOf(ROOT, TESTS))).toEqual([]);
});

const named = (name: string) => ({ type: 'Identifier', name });
const member = (object: Syntax, property: string) => ({ type: 'MemberExpression', object, property: named(property) });

it('leaves out sentences, log lines, metrics and errors, and no other value', () => {
  const own = (object: string, property: string) => member(member({ type: 'ThisExpression' }, object), property);
  const reasonOf = (node: Syntax) => reasonToIgnore({ node });
  expect(reasonOf({ type: 'StringLiteral', value: 'a sentence' })).toBe('a sentence');
  expect(reasonOf({ type: 'StringLiteral', value: 'word' })).toBeUndefined();
  expect(reasonOf({ type: 'CallExpression', callee: own('logger', 'info') })).toBe('a log line or a metric');
  const ofPrivate = { type: 'MemberExpression', property: { type: 'PrivateName', id: named('log') } };
  const held: Syntax = { ...ofPrivate, object: { type: 'ThisExpression' } };
  expect(reasonOf({ type: 'CallExpression', callee: member(held, 'info') })).toBe('a log line or a metric');
  expect(reasonOf({ type: 'CallExpression', callee: own('store', 'read') })).toBeUndefined();
  const statement = (callee: Syntax) => ({
    type: 'ExpressionStatement',
    expression: { type: 'CallExpression', callee },
  });
  expect(reasonOf(statement(own('meter', 'count')))).toBe('a log line or a metric');
  expect(reasonOf(statement(own('store', 'write')))).toBeUndefined();
  expect(reasonOf({ type: 'NewExpression', callee: named('TickFault') })).toBe('an error');
  expect(reasonOf({ type: 'NewExpression', callee: named('Map') })).toBeUndefined();
  const field = (key: string, value: string) => within({ ...EMPTY, value }, { type: 'ClassProperty', key: named(key) });
  expect(reasonToIgnore(field('name', 'EnvError'))).toBe('an error');
  expect(reasonToIgnore(field('name', 'pods'))).toBeUndefined();
  expect(reasonToIgnore(field('kind', 'EnvError'))).toBeUndefined();
});

const EMPTY: Syntax = { type: 'StringLiteral', value: '' };
/** A node within others, the nearest first. */
const within = (node: Syntax, ...around: readonly Syntax[]): Place => {
  const [parent, ...rest] = around;
  return parent === undefined ? { node } : { node, parentPath: within(parent, ...rest) };
};
const metadataOf = (object: string) => member(named(object), 'metadata');
const or = (left: Syntax, operator = '??') => ({ type: 'LogicalExpression', operator, left });
const property = (key: string) => ({ type: 'ObjectProperty', key: named(key) });
const [PATTERN, DEFAULT, FUNCTION] = ['ObjectPattern', 'AssignmentPattern', 'FunctionDeclaration'].map((type) => ({
  type,
})) as [Syntax, Syntax, Syntax];
const declared = (init: Syntax) => ({ type: 'VariableDeclarator', init });
/** `{ field = '' } = init` */
const destructured = (field: string, init: Syntax) => within(EMPTY, DEFAULT, property(field), PATTERN, declared(init));
/** `{ metadata: { field = '' } }`, within others */
const nested = (field: string, ...around: readonly Syntax[]) =>
  within(EMPTY, DEFAULT, property(field), PATTERN, ...around);

it.each([
  ["pod.metadata.name ?? ''", within(EMPTY, or(member(metadataOf('pod'), 'name')))],
  ["metadata.uid ?? ''", within(EMPTY, or(member(named('metadata'), 'uid')))],
  ["pod.metadata.namespace ?? ''", within(EMPTY, or(member(metadataOf('pod'), 'namespace')))],
  ["{ name = '' } = node.metadata", destructured('name', metadataOf('node'))],
  ["{ resourceVersion = '' } = metadata", destructured('resourceVersion', named('metadata'))],
  ["{ namespace = '' } = claim.metadata", destructured('namespace', metadataOf('claim'))],
  ["f({ metadata: { uid = '' } })", nested('uid', property('metadata'), PATTERN, FUNCTION)],
  ["{ metadata: { uid = '' } } = pod", nested('uid', property('metadata'), PATTERN, declared(named('pod')))],
])('leaves out the default of a field of every stored object: %s', (_text, place) => {
  expect(reasonToIgnore(place)).toBe('a default that no stored object needs');
});

const optional = (object: Syntax, of: string) => ({ ...member(object, of), type: 'OptionalMemberExpression' });

it.each([
  ["pod?.metadata.name ?? ''", within(EMPTY, or(optional(metadataOf('pod'), 'name')))],
  ["pod.metadata.name || ''", within(EMPTY, or(member(metadataOf('pod'), 'name'), '||'))],
  ["pod.metadata.name ?? 'x'", within({ ...EMPTY, value: 'x' }, or(member(metadataOf('pod'), 'name')))],
  ["container.name ?? ''", within(EMPTY, or(member(named('container'), 'name')))],
  ["metadata.namespace ?? ''", within(EMPTY, or(member(named('metadata'), 'namespace')))],
  ["node.metadata.generateName ?? ''", within(EMPTY, or(member(metadataOf('node'), 'generateName')))],
  ["{ namespace = '' } = node.metadata", destructured('namespace', metadataOf('node'))],
  ["{ name = '' } = pod?.metadata", destructured('name', optional(named('pod'), 'metadata'))],
  ["{ name = '' } = pod?.metadata ?? {}", destructured('name', or(optional(named('pod'), 'metadata')))],
  ["{ name = '' } = claimRef", destructured('name', named('claimRef'))],
  ["f({ name = '' })", nested('name', FUNCTION)],
  ["f({ metadata: { name = '' } = {} })", nested('name', DEFAULT, property('metadata'), PATTERN, FUNCTION)],
  ["{ metadata: { name = '' } } = a ?? b", nested('name', property('metadata'), PATTERN, declared(or(named('a'))))],
  ["f(name = '')", within(EMPTY, DEFAULT, FUNCTION)],
  ["name: ''", within(EMPTY, property('name'))],
])('keeps a default that may be needed: %s', (_text, place) => {
  expect(reasonToIgnore(place)).toBeUndefined();
});

it('leaves out what the compiler refuses, except for what a mutant leaves unused', () => {
  const root = mkdtempSync(join(tmpdir(), 'mutants-'));
  writeFileSync(join(root, 'tsconfig.json'), '{ "compilerOptions": { "strict": true, "noUnusedLocals": true } }');
  const fileName = join(root, 'rule.ts');
  writeFileSync(fileName, "const hour = 24;\nexport const kind: 'day' | 'night' = hour > 12 ? 'night' : 'day';\n");
  const refusalOf = refusalsUnder(root);
  const change = (start: number, end: number, replacement: string) =>
    refusalOf({
      fileName,
      replacement,
      location: { start: { line: 1, column: start }, end: { line: 1, column: end } },
    });
  expect(change(37, 46, 'true')).toBeUndefined();
  expect(change(49, 56, '""')).toContain(`Type '""' is not assignable`);
  expect(change(37, 46, '')).toBe('Expression expected.');
  rmSync(root, { recursive: true });
});
