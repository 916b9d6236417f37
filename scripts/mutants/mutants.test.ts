import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { AREAS, filesOf, sourcesOf, TESTS } from './areas.ts';
import { reasonToIgnore, type Syntax } from './ignore-prose.ts';
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
  expect(nearTests(ROOT, 'shared/ticks/waker.ts', filesOf(ROOT, TESTS))).toEqual([]);
});

const named = (name: string) => ({ type: 'Identifier', name });

it('leaves out sentences, log lines, metrics and errors, and no other value', () => {
  const member = (object: string, property: string) => ({
    type: 'MemberExpression',
    object: { type: 'MemberExpression', object: { type: 'ThisExpression' }, property: named(object) },
    property: named(property),
  });
  expect(reasonToIgnore({ type: 'StringLiteral', value: 'a sentence' })).toBe('a sentence');
  expect(reasonToIgnore({ type: 'StringLiteral', value: 'word' })).toBeUndefined();
  expect(reasonToIgnore({ type: 'CallExpression', callee: member('logger', 'info') })).toBe('a log line or a metric');
  expect(reasonToIgnore({ type: 'CallExpression', callee: member('store', 'read') })).toBeUndefined();
  const statement = (callee: Syntax) => ({
    type: 'ExpressionStatement',
    expression: { type: 'CallExpression', callee },
  });
  expect(reasonToIgnore(statement(member('meter', 'count')))).toBe('a log line or a metric');
  expect(reasonToIgnore(statement(member('store', 'write')))).toBeUndefined();
  expect(reasonToIgnore({ type: 'NewExpression', callee: named('TickFault') })).toBe('an error');
  expect(reasonToIgnore({ type: 'NewExpression', callee: named('Map') })).toBeUndefined();
});

it('leaves out the default of the name or uid of an object that is there', () => {
  const nameOf = (property: string, type = 'MemberExpression') => ({
    type: 'LogicalExpression',
    operator: '??',
    left: { type, object: { type, object: named('pod'), property: named('metadata') }, property: named(property) },
  });
  const text = { type: 'StringLiteral', value: '' };
  expect(reasonToIgnore(text, nameOf('name'))).toBe('a default that no stored object needs');
  expect(reasonToIgnore(text, nameOf('uid'))).toBe('a default that no stored object needs');
  expect(reasonToIgnore(text, nameOf('namespace'))).toBeUndefined();
  expect(reasonToIgnore(text, nameOf('name', 'OptionalMemberExpression'))).toBeUndefined();
  expect(reasonToIgnore(text, { ...nameOf('name'), operator: '||' })).toBeUndefined();
  expect(reasonToIgnore({ ...text, value: 'x' }, nameOf('name'))).toBeUndefined();
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
