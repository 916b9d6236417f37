/** `npm run simulate`: arguments in, timeline and exit code out. */

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describePolicyFault } from '../shared/config/policy.ts';
import { policyFromYaml } from '../shared/config/policy-file.ts';
import { defined } from '../shared/defined.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import type { ItemStore, ItemUpdater } from '../shared/store/item-store.ts';
import { formatDuration } from './duration.ts';
import { startEngineStores } from './engine-store.ts';
import { parseScenario } from './parse-scenario.ts';
import { recordedMemoryStore, recordedStore } from './recorded-store.ts';
import { describeFailure, runScenario, type ScenarioResult } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { openSqlite } from './sqlite-tables.ts';
import { printable, type TimelineEntry } from './timeline.ts';
import { describeFault } from './yaml-source.ts';

/** Every expectation holds; one fails; a file or an argument is not valid. */
export const EXIT = { holds: 0, fails: 1, invalid: 2 } as const;

const DEFAULT_SEED = 1;

export const USAGE = `usage: npm run simulate -- FILE… [options]

  --policy FILE    YAML file of policy fields, instead of the policy of every scenario
  --store NAME     sqlite (default), as nodekeeper serve; engine: the embedded DynamoDB engine; memory: faster
  --seed N         decides uids and which requests fail (${DEFAULT_SEED})
  --json           the timeline as JSON lines
  --quiet          failures and results only
  --help           this text

exit code: 0 every expectation holds, 1 one does not, 2 a file is not valid`;

export interface Terminal {
  print(line: string): void;
  printError(line: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const STORE_NAMES = ['sqlite', 'engine', 'memory'] as const;
type StoreName = (typeof STORE_NAMES)[number];

interface SimulateOptions {
  readonly files: readonly string[];
  readonly policyFile: string | undefined;
  readonly store: StoreName;
  readonly seed: number;
  readonly json: boolean;
  readonly quiet: boolean;
}

type Parsed =
  | { readonly kind: 'help' }
  | { readonly kind: 'invalid'; readonly why: string }
  | ({ readonly kind: 'run' } & SimulateOptions);

function parseOptions(args: readonly string[]): Parsed {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (error) {
    return { kind: 'invalid', why: (error as Error).message.split(/\. |\n/)[0] ?? '' };
  }
  const { values, positionals } = parsed;
  if (values.help === true) return { kind: 'help' };
  const store = STORE_NAMES.find((name) => name === (values.store ?? 'sqlite'));
  if (store === undefined) {
    return { kind: 'invalid', why: `--store must be one of ${STORE_NAMES.join(', ')}, not ${values.store}` };
  }
  const seed = values.seed === undefined ? DEFAULT_SEED : Number(values.seed);
  if (!Number.isSafeInteger(seed) || seed < 0)
    return { kind: 'invalid', why: `--seed must be a whole number, not ${values.seed}` };
  if (positionals.length === 0) return { kind: 'invalid', why: 'name at least one scenario file' };
  return {
    kind: 'run',
    files: positionals,
    policyFile: values.policy,
    store,
    seed,
    json: values.json ?? false,
    quiet: values.quiet ?? false,
  };
}

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      json: { type: 'boolean' },
      quiet: { type: 'boolean' },
      policy: { type: 'string' },
      store: { type: 'string' },
      seed: { type: 'string' },
    },
  });

function readText(file: string): { readonly text: string } | { readonly fault: string } {
  try {
    return { text: readFileSync(file, 'utf8') };
  } catch (error) {
    return { fault: `${file}: cannot be read: ${(error as Error).message}` };
  }
}

/** The files as scenarios and policy; the faults of all of them. */
function readFiles(options: SimulateOptions): { scenarios: Scenario[]; policy: Policy | undefined; faults: string[] } {
  const faults: string[] = [];
  const scenarios: Scenario[] = [];
  for (const file of options.files) {
    const read = readText(file);
    if ('fault' in read) {
      faults.push(read.fault);
      continue;
    }
    const parsed = parseScenario(read.text, file);
    if (parsed.kind === 'ok') scenarios.push(parsed.scenario);
    else faults.push(...parsed.faults.map(describeFault));
  }
  let policy: Policy | undefined;
  if (options.policyFile !== undefined) {
    const read = readText(options.policyFile);
    if ('fault' in read) faults.push(read.fault);
    else {
      const parsed = policyFromYaml(read.text, options.policyFile);
      if (parsed.kind === 'ok') policy = parsed.policy;
      else faults.push(...parsed.faults.map(describePolicyFault));
    }
  }
  return { scenarios, policy, faults };
}

export async function simulate(args: readonly string[], terminal: Terminal): Promise<number> {
  const options = parseOptions(args);
  if (options.kind === 'help') {
    terminal.print(USAGE);
    return EXIT.holds;
  }
  if (options.kind === 'invalid') {
    terminal.printError(`${options.why} (--help lists the options)`);
    return EXIT.invalid;
  }
  const { scenarios, policy, faults } = readFiles(options);
  if (faults.length > 0) {
    for (const fault of faults) terminal.printError(fault);
    return EXIT.invalid;
  }
  const stores = await startStores(options.store, terminal.environment);
  try {
    let failed = false;
    for (const scenario of scenarios) {
      const holds = await simulateOne(scenario, policy, options, stores, terminal);
      failed ||= !holds;
    }
    return failed ? EXIT.fails : EXIT.holds;
  } finally {
    await stores?.stop();
  }
}

/** Where scenarios have their tables, empty for each. */
interface ScenarioStores {
  open(): Promise<{ readonly items: ItemStore; readonly beats: ItemUpdater; drop(): Promise<void> }>;
  stop(): Promise<void>;
}

/** undefined: in memory. */
async function startStores(name: StoreName, environment: Terminal['environment']): Promise<ScenarioStores | undefined> {
  if (name === 'memory') return undefined;
  if (name === 'engine') return startEngineStores(environment);
  return {
    async open() {
      const { store, drop } = openSqlite({ nowMs: Date.now });
      return { items: store.items, beats: store.items, drop };
    },
    stop: async () => {},
  };
}

async function simulateOne(
  scenario: Scenario,
  policy: Policy | undefined,
  options: SimulateOptions,
  stores: ScenarioStores | undefined,
  terminal: Terminal,
): Promise<boolean> {
  const { json, quiet, seed } = options;
  const { name, file } = scenario;
  const startedMs = performance.now();
  const printEntries = (entries: readonly TimelineEntry[]): void => {
    if (quiet) return;
    if (!json) for (const line of printable(entries)) terminal.print(line);
    else for (const entry of entries) terminal.print(JSON.stringify(jsonEntry(name, entry)));
  };
  if (!json) terminal.print(`${name} (${file}, seed ${seed})`);
  const tables = await stores?.open();
  const store = tables === undefined ? recordedMemoryStore() : recordedStore(tables.items, tables.beats);
  let result: ScenarioResult;
  try {
    result = await runScenario(scenario, { store, seed, onEntries: printEntries, ...defined({ policy }) });
  } catch (error) {
    // What ends a simulation is a fault of the system under it: the others go on.
    terminal.printError(`${file}: the simulation ended: ${stackOf(error)}`);
    return false;
  } finally {
    await tables?.drop();
  }
  const { failures, expectations, endMs } = result;
  for (const failure of failures) terminal.printError(describeFailure(failure, formatDuration));
  const tookSeconds = (performance.now() - startedMs) / 1_000;
  if (json) {
    const result = {
      scenario: name,
      kind: 'result',
      holds: failures.length === 0,
      expectations,
      failures: failures.length,
    };
    terminal.print(
      JSON.stringify({ ...result, endSeconds: endMs / 1_000, seed, tookSeconds: Number(tookSeconds.toFixed(2)) }),
    );
  } else {
    const verdict = failures.length === 0 ? 'holds' : `FAILED in ${failures.length} of what is expected`;
    terminal.print(
      `${name}: ${verdict}; ${expectations} expectations over ${formatDuration(endMs)}, in ${tookSeconds.toFixed(1)} s\n`,
    );
  }
  return failures.length === 0;
}

const jsonEntry = (scenario: string, { atMs, kind, name, text }: TimelineEntry) => ({
  scenario,
  atSeconds: atMs / 1_000,
  kind,
  ...(name === '' ? {} : { name }),
  text,
});

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = error instanceof AggregateError ? error.errors.map((each) => `\n  ${stackOf(each)}`).join('') : '';
  return `${error.stack ?? error.message}${inner}${error.cause === undefined ? '' : `\n  caused by ${stackOf(error.cause)}`}`;
}
