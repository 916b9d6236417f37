/**
 * npm run mutants -- --area controllers|store|access|agent [--file F]… [--sample N] [--seed S] [--since-survivors]
 *
 * Changes the code a little, one mutant at a time and in memory, and runs the tests that reach the change: a mutant that
 * no test detects shows a test that is missing. Prints each survivor, then the score; exit code 1 below 95 %.
 *
 * --file F            mutants of this file alone; which may lie outside of all areas
 * --sample N          this many of all, chosen by the seed; without it all
 * --seed S            another sample (default 1)
 * --since-survivors   those that survived the last run of the area
 * --verbose           what detected each mutant
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { randomFrom } from '../../test/support/seeded.ts';
import { ACCEPTED } from './accepted.ts';
import { AREAS, filesOf, sourcesOf, TESTS } from './areas.ts';
import { hunt, scoreOf, type Verdict } from './hunt.ts';
import { type Mutant, mutantsOf } from './mutators.ts';
import { RelatedTests } from './related-tests.ts';
import { sampleOf } from './sample.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCORE_MIN = 0.95;

const { values } = parseArgs({
  options: {
    area: { type: 'string' },
    file: { type: 'string', multiple: true },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    'since-survivors': { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
});
const log = (line: string) => console.error(line);
if (values.area === undefined && values.file === undefined) throw new Error('--area or --file is required');
const sources = values.file ?? sourcesOf(ROOT, values.area ?? '');
const mutants = sources.flatMap((file) => mutantsOf(file, readFileSync(join(ROOT, file), 'utf8')));

/** One mutant across runs, whatever moves around it. */
const nameOf = ({ file, within, change, mutator }: Mutant) => `${file}: ${within}: ${mutator}: ${change}`;
const survivorsFile = join(ROOT, `node_modules/.cache/mutants/survivors-${values.area ?? 'files'}.json`);
function chosen(): readonly Mutant[] {
  if (values['since-survivors']) {
    const before = new Set(JSON.parse(readFileSync(survivorsFile, 'utf8')) as string[]);
    return mutants.filter((mutant) => before.has(nameOf(mutant)));
  }
  if (values.sample === undefined) return mutants;
  return sampleOf(mutants, Number(values.sample), randomFrom(Number(values.seed)));
}

const startedMs = performance.now();
const sample = chosen();
// One set of probes for all areas: each test runs with probes once.
const probed = new Set([...Object.keys(AREAS).flatMap((area) => sourcesOf(ROOT, area)), ...sources]);
const related = await RelatedTests.find(ROOT, [...probed].sort(), filesOf(ROOT, TESTS), log);
const reachedMs = performance.now();
log(`${sample.length} of ${mutants.length} mutants in ${sources.length} files, seed ${values.seed}`);
const verdicts: Verdict[] = [];
const survivors: Mutant[] = [];
for await (const { mutant, verdict } of hunt(ROOT, sample, related, ACCEPTED)) {
  verdicts.push(verdict);
  const name = `${mutant.file}:${mutant.line} ${mutant.within}: ${mutant.mutator}: ${mutant.change}`;
  if (values.verbose)
    log(
      `${verdicts.length} ${verdict.kind} ${name} ${'test' in verdict ? verdict.test : ''}${'failure' in verdict ? `: ${verdict.failure.split('\n')[0]}` : ''}`,
    );
  if (verdict.kind !== 'survived') continue;
  survivors.push(mutant);
  console.log(
    `survived ${name}\n         ${verdict.tests.length} test files reach it: ${verdict.tests.slice(0, 3).join(', ')}`,
  );
}
mkdirSync(join(survivorsFile, '..'), { recursive: true });
writeFileSync(survivorsFile, JSON.stringify(survivors.map(nameOf)));

const { detected, of } = scoreOf(verdicts);
const count = (kind: Verdict['kind']) => verdicts.filter((verdict) => verdict.kind === kind).length;
const seconds = (ms: number) => Math.round(ms / 1_000);
console.log(
  `score ${((100 * detected) / Math.max(1, of)).toFixed(1)} %: ${detected} of ${of} detected ` +
    `(${count('timeout')} by a timeout), ${survivors.length} survived; outside of it ${count('refused by the compiler')} ` +
    `refused by the compiler, ${count('refused by the linter')} by the linter, ${count('accepted')} accepted as equivalent. ` +
    `${seconds(reachedMs - startedMs)} s to find the tests, ${seconds(performance.now() - reachedMs)} s for ${sample.length} mutants`,
);
process.exitCode = detected >= SCORE_MIN * of ? 0 : 1;
