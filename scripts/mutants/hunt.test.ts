import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it, vi } from 'vitest';
import { type Accepted, accepts } from './accepted.ts';
import { hunt, scoreOf, type Verdict } from './hunt.ts';
import { type Mutant, mutantsOf } from './mutators.ts';
import { RelatedTests } from './related-tests.ts';

const ROOT = fileURLToPath(new URL('../../test/fixtures/mutants', import.meta.url));
const SOURCE = 'due.ts';
const mutants = mutantsOf(SOURCE, readFileSync(join(ROOT, SOURCE), 'utf8'));
const find = (change: string): Mutant => {
  const found = mutants.find((mutant) => mutant.change === change);
  if (found === undefined)
    throw new Error(`no mutant ${change} in ${mutants.map((mutant) => mutant.change).join(', ')}`);
  return found;
};
const BOUNDARY = find('nowMs >= dueMs → nowMs > dueMs');
const FLIPPED = find('nowMs >= dueMs → nowMs < dueMs');
const ENDLESS = find('left -= 2 → left += 2');
const NOT_OF_TYPE = find("'none' → ''");
const LATE = find('seconds > 1 → seconds >= 1');
const UNREACHED = find('value === 0 → value !== 0');

// Three starts of vitest: slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 });
afterAll(() => rmSync(join(ROOT, 'node_modules'), { recursive: true, force: true }));

async function verdictsOf(sample: readonly Mutant[], accepted: readonly Accepted[] = []): Promise<Verdict[]> {
  const tests = ['due.test.ts', 'late.test.ts', 'unrelated.test.ts'];
  const related = await RelatedTests.find(ROOT, [SOURCE], tests, () => {});
  const verdicts: Verdict[] = [];
  for await (const { verdict } of hunt(ROOT, sample, related, accepted, 2_000)) verdicts.push(verdict);
  return verdicts;
}

it('reports the mutant that no test detects, and not the one that a test does', async () => {
  const verdicts = await verdictsOf([BOUNDARY, FLIPPED, LATE, UNREACHED]);
  expect(verdicts).toEqual([
    { kind: 'survived', tests: ['due.test.ts'] },
    { kind: 'killed', test: 'due.test.ts', failure: expect.stringContaining('before and after') },
    { kind: 'survived', tests: ['late.test.ts'] },
    { kind: 'survived', tests: [] },
  ]);
  expect(scoreOf(verdicts)).toEqual({ detected: 1, of: 4 });
});

it('excludes an accepted mutant from the score, with its reason', async () => {
  const { file, within, change } = BOUNDARY;
  const verdicts = await verdictsOf([BOUNDARY, FLIPPED], [{ file, within, change, reason: 'a moment has no length' }]);
  expect(verdicts[0]).toEqual({ kind: 'accepted', reason: 'a moment has no length' });
  expect(scoreOf(verdicts)).toEqual({ detected: 1, of: 1 });
  expect(accepts({ file, within: 'another', change, reason: '' }, BOUNDARY)).toBe(false);
  expect(accepts({ file: 'ue.ts', within, change, reason: '' }, BOUNDARY)).toBe(false);
});

it('counts a mutant that never ends as detected, continues after it, and leaves types to the compiler', async () => {
  const verdicts = await verdictsOf([ENDLESS, NOT_OF_TYPE, FLIPPED]);
  expect(verdicts.map(({ kind }) => kind)).toEqual(['timeout', 'refused by the compiler', 'killed']);
  expect(scoreOf(verdicts)).toEqual({ detected: 2, of: 2 });
});
