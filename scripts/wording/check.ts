/**
 * npm run wording [-- --update]
 *
 * Looks in comments, string literals and Markdown for the words that the word list replaces. Exit code 1 when a file
 * holds more of them than its ceiling in baseline.json, or fewer. `--update` writes the lower counts back. It also moves
 * the ceilings of files that git knows as renamed since the last commit of the baseline: stage moves first (`git mv`).
 * After a merge conflict in baseline.json keep either side and run `--update`. Without a baseline.json `--update` starts a
 * new one from the current counts: only for a merge that brings text from before this check.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Ceilings, compare, lower } from './ceilings.ts';
import { examine, type Finding } from './findings.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BASELINE = 'scripts/wording/baseline.json';
const SKIPPED_FOLDERS = /^(\..*|node_modules|cdk\.out|dist)$/;
/** Decisions are history; the word list and its tests hold the words on purpose. */
const SKIPPED_PATHS = /^(docs\/decisions|scripts\/wording)\//;

function* filesOf(folder: string): Generator<string> {
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory() && !SKIPPED_FOLDERS.test(entry.name)) yield* filesOf(path);
    if (entry.isFile() && /\.(ts|md)$/.test(path) && !SKIPPED_PATHS.test(path)) yield path;
  }
}

interface Committed {
  readonly ceilings: Ceilings;
  /** By current path of each renamed file: its path in that commit. */
  readonly previousPaths: ReadonlyMap<string, string>;
}

/** The last commit of the baseline. Its ceilings count too, in case a file is moved twice between two commits. */
function committed(): Committed {
  const git = (...args: readonly string[]): string => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout;
  const commit = git('log', '-1', '--format=%H', '--', BASELINE).trim();
  if (commit === '') return { ceilings: {}, previousPaths: new Map() };
  const renames = git('diff', '--find-renames=40%', '-l5000', '--diff-filter=R', '--name-status', commit);
  const pairs = renames.split('\n').map((line) => line.split('\t'));
  return {
    ceilings: JSON.parse(git('show', `${commit}:${BASELINE}`)) as Ceilings,
    previousPaths: new Map(pairs.map(([, from = '', to = '']) => [to, from])),
  };
}

const findings = new Map<string, readonly Finding[]>();
let linesExamined = 0;
for (const path of filesOf('')) {
  const examination = examine(path, readFileSync(join(ROOT, path), 'utf8'));
  findings.set(path, examination.findings);
  linesExamined += examination.linesExamined;
}
const counts = new Map([...findings].map(([path, { length }]) => [path, length]));

const isStarted = existsSync(join(ROOT, BASELINE));
let ceilings = isStarted ? (JSON.parse(readFileSync(join(ROOT, BASELINE), 'utf8')) as Ceilings) : {};
if (process.argv.includes('--update')) {
  const { ceilings: lastCeilings, previousPaths } = committed();
  const previous = isStarted ? { ...lastCeilings, ...ceilings } : Object.fromEntries(counts);
  ceilings = lower(previous, counts, previousPaths);
  writeFileSync(join(ROOT, BASELINE), `${JSON.stringify(ceilings, null, 2)}\n`);
}

const { raised, lowered } = compare(ceilings, counts);
for (const path of raised) {
  console.error(`${path}: ${counts.get(path)} findings, at most ${ceilings[path] ?? 0} allowed`);
  for (const { line, found, write } of findings.get(path) ?? []) {
    console.error(`  ${path}:${line}: "${found}"; write: ${write}`);
  }
}
for (const path of lowered) {
  console.error(`${path}: ${counts.get(path) ?? 0} findings, fewer than its ceiling of ${ceilings[path]}`);
}
if (lowered.length > 0) console.error('Write the lower counts back: npm run wording -- --update');

const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
const summary = `wording: ${linesExamined} lines of prose in ${counts.size} files, ${total} findings`;
if (raised.length + lowered.length > 0) process.exitCode = 1;
console.log(`${summary}; ${raised.length} files above their ceiling, ${lowered.length} below`);
