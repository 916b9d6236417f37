/** `npm run sim`: reads the arguments, prints figures and failures, and returns the exit code. */
import { parseArgs } from 'node:util';
import { MARKS } from './coverage.ts';
import { FAULT_NAMES, FAULTS, type FaultName, faultsOf } from './faults/catalogue.ts';
import type { LawName } from './laws/law.ts';
import { runWithTwin, type TwinResult } from './laws/twin.ts';
import { simLong } from './long-run/long.ts';
import { PART_NAMES, PARTS, type PartName } from './parts.ts';
import { runSim } from './run-sim.ts';
import type { SimFailure, SimOptions, SimResult } from './sim-options.ts';

export const SIM_EXIT = { holds: 0, fails: 1, invalid: 2 } as const;
const DEFAULT_HOURS = 1;
const SEEDS_MAX = 1_000_000;

export const SIM_USAGE = `usage: npm run sim -- [options]

  --seed N         the seed (1); the same seed and options replay the same run
  --seeds A..B     all of these seeds, one after the other
  --hours H        virtual time of each, in hours (${DEFAULT_HOURS})
  --nodes N        machines at the beginning (5 to 45, by the seed)
  --store sqlite   the tables in a SQLite file, compared with those in memory; slower
  --faults LIST    names with commas between, all or none (the seed's own: all, poison in a third);
                   --faults help lists them
  --parts LIST     parts of the world with commas between, all or none (the seed's own); --parts help lists them
  --twin           run each seed again with correct clocks of machines; a different decision breaks L11
  --long           thousands of machines for many hours under faults of ticks; --long --help lists its options
  --no-shrink      do not search for fewer faults that break the same law
  --json           one JSON line per seed
  --help           this text

exit code: 0 every law holds, 1 one is broken, 2 an argument is not valid`;

export interface SimTerminal {
  print(line: string): void;
  printError(line: string): void;
}

interface Plan {
  readonly seeds: readonly [first: number, last: number];
  readonly hours: number;
  readonly nodes: number | undefined;
  readonly store: 'memory' | 'sqlite';
  /** undefined: the seed's own. */
  readonly faults: readonly FaultName[] | undefined;
  readonly parts: readonly PartName[] | undefined;
  readonly json: boolean;
  readonly shrink: boolean;
  /** Compare each run with the same run under honest clocks. */
  readonly twin: boolean;
}

class ArgumentFault extends Error {
  override readonly name = 'ArgumentFault';
}

function namesIn<Name extends string>(list: string, kind: string, names: readonly Name[]): readonly Name[] {
  if (list === 'all') return names;
  if (list === 'none') return [];
  return list.split(',').map((text) => {
    const found = names.find((name) => name === text);
    if (found === undefined) throw new ArgumentFault(`no such ${kind}: ${text}; valid names: ${names.join(', ')}`);
    return found;
  });
}

function numberOf(option: string, text: string, least: number): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < least)
    throw new ArgumentFault(`--${option} must be a number of at least ${least}, not ${text}`);
  return value;
}

function planOf(args: readonly string[]): Plan | 'help' | 'faults' | 'parts' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string' },
      hours: { type: 'string' },
      nodes: { type: 'string' },
      store: { type: 'string' },
      faults: { type: 'string' },
      parts: { type: 'string' },
      twin: { type: 'boolean' },
      'no-shrink': { type: 'boolean' },
      json: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return 'help';
  if (values.faults === 'help') return 'faults';
  if (values.parts === 'help') return 'parts';
  const range = (values.seeds ?? `${values.seed ?? 1}..${values.seed ?? 1}`).split('..');
  const [first, last] = range.map((text) => Math.floor(numberOf('seeds', text, 0)));
  if (range.length !== 2 || first === undefined || last === undefined || last < first || last - first >= SEEDS_MAX) {
    throw new ArgumentFault(`--seeds must be A..B with A <= B, not ${values.seeds}`);
  }
  const store = values.store ?? 'memory';
  if (store !== 'memory' && store !== 'sqlite') {
    throw new ArgumentFault(`--store must be memory or sqlite, not ${store}`);
  }
  return {
    seeds: [first, last],
    store,
    hours: numberOf('hours', values.hours ?? String(DEFAULT_HOURS), 0.01),
    nodes: values.nodes === undefined ? undefined : Math.floor(numberOf('nodes', values.nodes, 1)),
    faults: values.faults === undefined ? undefined : namesIn(values.faults, 'fault', FAULT_NAMES),
    parts: values.parts === undefined ? undefined : namesIn(values.parts, 'part', PART_NAMES),
    json: values.json ?? false,
    // Fewer faults change what a twin is compared with.
    shrink: values['no-shrink'] !== true && values.twin !== true,
    twin: values.twin ?? false,
  };
}

/** Too late without poison is L2, L6 or L7, and L12 with it. */
const LATE: ReadonlySet<LawName> = new Set(['L2', 'L6', 'L7', 'L12']);
const isAlike = (one: LawName, other: LawName): boolean => one === other || (LATE.has(one) && LATE.has(other));

/**
 * The same law broken by fewer faults: leaves out half of them, then a quarter, and so on, as long as it stays broken.
 */
export async function shrinkFaults(
  options: SimOptions & { readonly faults: readonly FaultName[] },
  failure: SimFailure,
): Promise<{ readonly faults: readonly FaultName[]; readonly failure: SimFailure }> {
  let { faults } = options;
  let last = failure;
  const hours = failure.atMs / 3_600_000 + 0.01;
  for (let size = Math.ceil(faults.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < faults.length; ) {
      const fewer = [...faults.slice(0, from), ...faults.slice(from + size)];
      const again = (await runSim({ ...options, hours, faults: fewer })).failure;
      if (again !== undefined && isAlike(again.law, failure.law)) {
        faults = fewer;
        last = again;
      } else from += size;
    }
  }
  return { faults, failure: last };
}

const commandOf = (plan: Plan, seed: number, faults: readonly FaultName[], hours: number): string =>
  [
    `npm run sim -- --seed ${seed} --hours ${hours}`,
    ...(plan.nodes === undefined ? [] : [`--nodes ${plan.nodes}`]),
    ...(plan.store === 'memory' ? [] : [`--store ${plan.store}`]),
    ...(plan.parts === undefined ? [] : [`--parts ${plan.parts.join(',') || 'none'}`]),
    ...(faults.join() === faultsOf(seed).join() ? [] : [`--faults ${faults.length === 0 ? 'none' : faults.join(',')}`]),
  ].join(' ');

function describe(failure: SimFailure): string[] {
  const { seed, step, atMs, law, message, timeline } = failure;
  return [`seed ${seed}, step ${step}, ${(atMs / 1_000).toFixed(3)} s: ${law} is broken: ${message}`, ...timeline];
}

/** Sums of many runs. */
export interface SimTotals {
  seeds: number;
  nodeHours: number;
  steps: number;
  readonly faults: Record<string, number>;
  readonly marks: Record<string, number>;
  /** Decisions compared with those of a twin run. */
  twinDecisions: number;
  twinDecisionsOfWrongClocks: number;
}

export const noTotals = (): SimTotals => ({
  seeds: 0,
  nodeHours: 0,
  steps: 0,
  faults: {},
  marks: {},
  twinDecisions: 0,
  twinDecisionsOfWrongClocks: 0,
});

export function addTo(totals: SimTotals, result: SimResult | TwinResult): void {
  if ('twin' in result) {
    totals.twinDecisions += result.twin.compared;
    totals.twinDecisionsOfWrongClocks += result.twin.ofWrongClocks;
  }
  totals.seeds += 1;
  totals.nodeHours += result.nodeHours;
  totals.steps += result.steps;
  for (const [name, count] of Object.entries(result.faults)) totals.faults[name] = (totals.faults[name] ?? 0) + count;
  for (const [name, count] of Object.entries(result.marks)) totals.marks[name] = (totals.marks[name] ?? 0) + count;
}

/** Names with a count of 0. */
export const neverHit = (counts: Readonly<Record<string, number>>, names: readonly string[]): string[] =>
  names.filter((name) => (counts[name] ?? 0) === 0);

/** Laws that count how often each clause was checked. */
const COUNTED_LAWS = ['L14', 'L15', 'L16', 'workloads', 'shares', 'S1', 'S2', 'S3'] as const;

function askedLines(marks: Readonly<Record<string, number>>): string[] {
  return COUNTED_LAWS.flatMap((law) => {
    const clauses = Object.entries(marks).filter(([name, count]) => name.startsWith(`${law}:`) && count > 0);
    const total = clauses.reduce((sum, [, count]) => sum + count, 0);
    const list = clauses.map(([name, count]) => `${name.slice(law.length + 1)} ${count}`).join(', ');
    return total === 0 ? [] : [`${law} was checked ${total} times: ${list}`];
  });
}

export function closingLines(totals: SimTotals): string[] {
  const listOf = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ');
  const unhit = neverHit(totals.marks, MARKS);
  return [
    `faults: ${listOf(totals.faults) || 'none'}`,
    `marks: ${MARKS.length - unhit.length} of ${MARKS.length}${unhit.length === 0 ? '' : `, not hit: ${unhit.join(', ')}`}`,
    ...askedLines(totals.marks),
    ...(totals.twinDecisions === 0
      ? []
      : [
          `decisions compared with correct clocks: ${totals.twinDecisions}, ` +
            `of machines with wrong clocks: ${totals.twinDecisionsOfWrongClocks}`,
        ]),
    `${totals.seeds} seeds, ${Math.round(totals.nodeHours)} node-hours, ${totals.steps} steps`,
  ];
}

export async function sim(args: readonly string[], terminal: SimTerminal): Promise<number> {
  if (args.includes('--long')) return simLong(args, terminal);
  let plan: ReturnType<typeof planOf>;
  try {
    plan = planOf(args);
  } catch (error) {
    terminal.printError((error as Error).message);
    return SIM_EXIT.invalid;
  }
  if (plan === 'help') {
    terminal.print(SIM_USAGE);
    return SIM_EXIT.holds;
  }
  if (plan === 'faults' || plan === 'parts') {
    const abouts = plan === 'faults' ? FAULTS : PARTS;
    for (const [name, about] of Object.entries(abouts)) terminal.print(`${name.padEnd(18)}${about}`);
    return SIM_EXIT.holds;
  }
  const totals = noTotals();
  const [first, last] = plan.seeds;
  let failed = 0;
  for (let seed = first; seed <= last; seed += 1) {
    const options = {
      seed,
      hours: plan.hours,
      store: plan.store,
      faults: plan.faults ?? faultsOf(seed),
      ...(plan.nodes === undefined ? {} : { nodes: plan.nodes }),
      ...(plan.parts === undefined ? {} : { parts: plan.parts }),
    };
    const result = await (plan.twin ? runWithTwin(options) : runSim(options));
    addTo(totals, result);
    if (plan.json) terminal.print(JSON.stringify(result));
    if (result.failure === undefined) continue;
    failed += 1;
    if (plan.json) continue;
    for (const line of describe(result.failure)) terminal.print(line);
    terminal.print(`replay: ${commandOf(plan, seed, options.faults, plan.hours)}`);
    if (!plan.shrink) continue;
    const { faults, failure } = await shrinkFaults(options, result.failure);
    const hours = Math.ceil(failure.atMs / 36_000) / 100;
    terminal.print(`with fewer faults: ${commandOf(plan, seed, faults, hours)}`);
  }
  if (!plan.json) for (const line of closingLines(totals)) terminal.print(line);
  return failed === 0 ? SIM_EXIT.holds : SIM_EXIT.fails;
}
