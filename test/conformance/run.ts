/**
 * npm run conformance
 *
 * Runs the tests that carry a conformance id and prints one line per area: cases that hold as upstream, cases with an
 * outcome of ours (deviations.ts), cases about missing features, and the total. Exit code 1 if a case fails or is
 * skipped, if a deviation has no test, or if a case that is listed as left out has one.
 */
import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deviations, leftOut } from './deviations.ts';
import { filesOnRules } from './shown-on-rules.ts';
import { areasOf, type TestOutcome, totalOf } from './tally.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
/** Where cases may stand: here, or beside what they are about. */
const AGENT_PLACE = 'test/conformance/agent/';
const PLACES = [
  'test/conformance/*.test.ts',
  `${AGENT_PLACE}*.test.ts`,
  'test/contract/binding-race.test.ts',
  'shared/**/*.test.ts',
];
const CARRIES_ID = /['"`][A-Z]{2}-\d{2}\b/;

interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

function filesWithCases(): string[] {
  const files = globSync(PLACES, { cwd: PROJECT });
  return files.filter((file) => CARRIES_ID.test(readFileSync(join(PROJECT, file), 'utf8'))).sort();
}

async function runVitest(files: readonly string[]): Promise<VitestReport> {
  const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-conformance-'));
  const outputFile = join(folder, 'report.json');
  try {
    const program = join(PROJECT, 'node_modules/vitest/vitest.mjs');
    const args = [program, 'run', '--reporter=json', `--outputFile=${outputFile}`, ...files];
    const child = spawn(process.execPath, args, { cwd: PROJECT, stdio: ['ignore', 'ignore', 'inherit'] });
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', () => resolve());
    });
    return JSON.parse(readFileSync(outputFile, 'utf8')) as VitestReport;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const report = await runVitest(filesWithCases());
const outcomes: TestOutcome[] = report.testResults.flatMap(({ name, assertionResults }) =>
  assertionResults.map(({ title, status }) => ({ title, status, ofAgent: name.includes(`/${AGENT_PLACE}`) })),
);
const areas = areasOf(outcomes, deviations, leftOut);
const counts = ({ passed, deviating, leftOut: without, total }: ReturnType<typeof totalOf>): string =>
  `passed ${String(passed).padStart(3)}  deviating ${String(deviating).padStart(2)}  left out ${String(without).padStart(2)}  total ${String(total).padStart(3)}`;
for (const area of areas) {
  const wrong = area.wrong.length === 0 ? '' : `  WRONG ${area.wrong.join(', ')}`;
  console.log(`${area.code.padEnd(8)}  ${area.name.padEnd(28)}  ${counts(area)}${wrong}`);
}
const all = totalOf(areas);
console.log(`          ${'all'.padEnd(28)}  ${counts(all)}`);
const idsIn = (isOnRules: boolean): Set<string> =>
  new Set(
    report.testResults
      .filter(({ name }) => filesOnRules.some((file) => name.endsWith(`/${file}`)) === isOnRules)
      .flatMap(({ name, assertionResults }) =>
        assertionResults.flatMap(({ title }) => {
          const id = /^[A-Z]{2}-\d{2}\b/.exec(title)?.[0];
          return id === undefined ? [] : [`${name.includes(`/${AGENT_PLACE}`) ? 'agent/' : ''}${id}`];
        }),
      ),
  );
const elsewhere = idsIn(false);
const onRulesOnly = [...idsIn(true)].filter((id) => !elsewhere.has(id));
console.log(`          shown in files of rules only: ${onRulesOnly.length} (docs/deviations.md)`);
// A file that cannot be loaded has no results, so its cases would only be missing.
const broken = report.testResults.filter(({ assertionResults }) => assertionResults.length === 0);
for (const { name, message } of broken) console.error(`${name}: ${message.split('\n', 1)[0]}`);
process.exitCode = broken.length === 0 && all.total === all.passed + all.deviating + all.leftOut ? 0 : 1;
