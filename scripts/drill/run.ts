/**
 * npm run drill -- [--from REF] [--home serve|aws] [--machines N] [--settle SECONDS]
 *
 * Changes a running cluster from the build of a ref to this one, back and forward again, while machines beat, clients
 * write and pods are rolled out. Exit code 1 after a false mark, a lost write, a restarted container or a rollout that
 * did not end.
 */
import { oneOf, optionValues, wholeNumber } from '../../shared/host/command-line.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { openAwsHome } from './aws-home.ts';
import { Builds, commitOf, previousRef } from './build.ts';
import { isClean, type Phase, runDrill } from './drill.ts';
import type { Build, Home } from './home.ts';
import { faultsOf, phaseTable } from './phase-table.ts';
import { openServeHome } from './serve-home.ts';

const USAGE = `Usage: npm run drill -- [--from REF] [--home both|serve|aws] [--machines N] [--settle SECONDS]

  --from REF        the build before this one (the last tag, else HEAD~1)
  --home HOME       one machine, the emulation of AWS, or both (both)
  --machines N      simulated machines (500)
  --settle SECONDS  after each change, for marks that come late (75)
`;
const WAIT_SECONDS_MAX = 600;
/** Above it, simulated machines and the cluster wait for the processor longer than a grace period. */
const LOAD_PER_CORE_MAX = 4;
const BETWEEN_FUNCTIONS_MS = 2_000;

const HOMES: Readonly<Record<'serve' | 'aws', (builds: readonly [Build, Build]) => Promise<Home>>> = {
  serve: ([first]) => openServeHome(first),
  aws: (builds) => openAwsHome(builds, BETWEEN_FUNCTIONS_MS),
};

async function run(words: readonly string[]): Promise<void> {
  const text = { type: 'string' } as const;
  const values = optionValues(words, {
    from: text,
    home: text,
    machines: text,
    settle: text,
    help: { type: 'boolean' },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const chosen = oneOf('home', values.home, ['both', 'serve', 'aws']);
  const options = {
    machines: wholeNumber('machines', values.machines, { least: 1, most: 10_000, otherwise: 500 }),
    settleSeconds: wholeNumber('settle', values.settle, { least: 0, most: 3_600, otherwise: 75 }),
    waitSecondsMax: WAIT_SECONDS_MAX,
  };
  const ref = values.from ?? previousRef();
  const builds = new Builds();
  process.once('exit', () => builds.remove());
  const phases: Phase[] = [];
  const from = builds.ofCommit(ref, commitOf(ref));
  const current = builds.current();
  for (const [name, open] of Object.entries(HOMES)) {
    if (chosen !== 'both' && chosen !== name) continue;
    const home = await open([from, current]);
    try {
      await runDrill(home, [current, from, current], options, (phase) => {
        phases.push(phase);
        console.error([phaseTable([phase]), ...faultsOf(phase)].join('\n'));
      });
    } finally {
      await home.stop();
    }
  }
  console.log(phaseTable(phases));
  const faulty = phases.filter((phase) => !isClean(phase));
  if (faulty.length === 0) return;
  process.exitCode = 1;
  const load = Math.max(...faulty.map(({ loadPerCore }) => loadPerCore));
  if (load < LOAD_PER_CORE_MAX) return;
  console.log(`load of ${load.toFixed(1)} per core: a machine that cannot beat is marked`);
}

// At its exit, clusters and builds are removed.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
try {
  await run(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof StartError)) throw error;
  console.error(`drill: ${error.message}`);
  process.exitCode = 2;
}
