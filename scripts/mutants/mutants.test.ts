import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { AREAS, filesOf, sourcesOf, TESTS } from './areas.ts';
import { reasonToIgnore } from './ignore-prose.ts';
import { nearTests } from './near-tests.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

it.each(Object.keys(AREAS))('the area %s has files, and each of its globs matches', (area) => {
  expect(sourcesOf(ROOT, area).length).toBeGreaterThan(20);
});

it('refuses an unknown area', () => {
  expect(() => sourcesOf(ROOT, 'other')).toThrow('unknown area other: one of controllers, store, access, agent');
});

it('runs the tests of the folder first, then those that the fewest imports separate from the file', () => {
  const source = 'scripts/mutants/near-tests.ts';
  const own = 'scripts/mutants/mutants.test.ts';
  expect(nearTests(ROOT, source, ['test/imports.test.ts', own])).toEqual([own]);
  const tests = filesOf(ROOT, TESTS);
  const [area = ''] = sourcesOf(ROOT, 'store').filter((file) => tests.includes(file.replace(/\.ts$/, '.test.ts')));
  expect(nearTests(ROOT, area, tests)).toContain(area.replace(/\.ts$/, '.test.ts'));
});

it('leaves out sentences, log lines, metrics and errors, and no other value', () => {
  const named = (name: string) => ({ type: 'Identifier', name });
  const member = (object: string, property: string) => ({
    type: 'MemberExpression',
    object: { type: 'MemberExpression', object: { type: 'ThisExpression' }, property: named(object) },
    property: named(property),
  });
  expect(reasonToIgnore({ type: 'StringLiteral', value: 'a sentence' })).toBe('a sentence');
  expect(reasonToIgnore({ type: 'StringLiteral', value: 'word' })).toBeUndefined();
  expect(reasonToIgnore({ type: 'CallExpression', callee: member('logger', 'info') })).toBe('a log line or a metric');
  expect(reasonToIgnore({ type: 'CallExpression', callee: member('store', 'read') })).toBeUndefined();
  expect(reasonToIgnore({ type: 'NewExpression', callee: named('TickFault') })).toBe('an error');
  expect(reasonToIgnore({ type: 'NewExpression', callee: named('Map') })).toBeUndefined();
});
