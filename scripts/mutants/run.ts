/**
 * npm run mutants -- AREA [--files N] [--lines L] [--seed S] [--minutes M] | --file F…
 *
 * Stryker changes the code a little, one mutant at a time, and runs the near tests that reach the change: a mutant that
 * no test detects shows a test that is missing. Prints each survivor, then the score of each file. Exit code 1 below
 * 92 %.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { randomFrom } from '../../test/support/seeded.ts';
import { filesOf, sourcesOf, TESTS } from './areas.ts';
import { nearTests } from './near-tests.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCORE_MIN = 0.92;

const USAGE = `Usage: npm run mutants -- AREA [--files N] [--lines L] [--seed S] [--minutes M]
       npm run mutants -- --file FILE… [--minutes M]

  AREA         controllers, store, access or agent
  --files N    this many files of the area, chosen by the seed (3)
  --lines L    of each chosen file only this many successive lines, chosen by the seed (all)
  --seed S     another choice (1)
  --minutes M  bound of the run of one mutant (2): more on a busy machine, where a slow run is no detected mutant
  --file FILE  this file instead, which may lie outside of all areas; repeatable`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    files: { type: 'string', default: '3' },
    lines: { type: 'string' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '2' },
    file: { type: 'string', multiple: true },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}

const nextFraction = randomFrom(Number(values.seed));

function chosenFiles(): readonly string[] {
  if (values.file !== undefined) return values.file;
  const ranked = sourcesOf(ROOT, positionals[0] ?? '').map((file) => ({ file, rank: nextFraction() }));
  return ranked
    .sort((a, b) => a.rank - b.rank)
    .slice(0, Number(values.files))
    .map(({ file }) => file);
}

/** What Stryker changes of a file: all of it, or a block of lines. */
function partOf(file: string): string {
  if (values.lines === undefined) return file;
  const linesTotal = readFileSync(join(ROOT, file), 'utf8').split('\n').length;
  const lines = Number(values.lines);
  const first = 1 + Math.floor(nextFraction() * Math.max(1, linesTotal - lines + 1));
  return `${file}:${first}-${first + lines - 1}`;
}

const all = filesOf(ROOT, TESTS);
const sources = chosenFiles().map((file) => ({ file, tests: nearTests(ROOT, file, all) }));
for (const { file, tests } of sources)
  console.log(`${file}: ${tests.length === 0 ? 'no test' : `${tests.length} test files`}`);
const reached = sources.filter(({ tests }) => tests.length > 0);
const ranksTotal = Math.max(0, ...reached.map(({ tests }) => tests.length));
const nearestFirst = Array.from({ length: ranksTotal }, (_, rank) => reached.flatMap(({ tests }) => tests[rank] ?? []));
process.env['MUTANTS_TESTS'] = JSON.stringify([...new Set(nearestFirst.flat())]);
process.chdir(ROOT);
const results = await new Stryker({
  mutate: reached.map(({ file }) => partOf(file)),
  testRunner: 'vitest',
  vitest: { configFile: 'scripts/mutants/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  // Evaluated once, when a module is loaded: such a mutant costs a run of all tests.
  ignoreStatic: true,
  ignorers: ['prose'],
  checkers: ['types'],
  plugins: ['@stryker-mutator/vitest-runner', './scripts/mutants/ignore-prose.ts', './scripts/mutants/refuse-types.ts'],
  ignorePatterns: ['cdk.out', '.nodekeeper', 'dist', '.wine'],
  // Not below node_modules: Node.js starts no TypeScript there, and tests start some.
  tempDirName: 'dist/mutants',
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  concurrency: 1,
  dryRunTimeoutMinutes: 20,
  // A mutant that exceeds it counts as detected. Most that loop are found sooner, by the number of their hits.
  timeoutMS: Number(values.minutes) * 60_000,
}).runMutationTest();
const count = (...statuses: readonly string[]) => results.filter(({ status }) => statuses.includes(status)).length;
const detected = count('Killed', 'Timeout');
const of = detected + count('Survived', 'NoCoverage');
console.log(
  `${detected} of ${of} detected, ${count('CompileError')} refused by the compiler, ${count('Ignored')} left out`,
);
process.exitCode = detected >= SCORE_MIN * of ? 0 : 1;
