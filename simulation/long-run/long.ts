/** `npm run sim -- --long`: reads the arguments, runs the seeds, and prints their sum. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { defined } from '../../shared/defined.ts';
import type { FaultName } from '../faults/catalogue.ts';
import type { WrongMark } from './long-laws.ts';
import { addLong, casesOf, type FaultFigures, type Histogram, type LongResult, percentileOf } from './long-result.ts';
import { type FleetKind, LONG_FAULTS, type LongFault, runLong } from './run-long.ts';

export const LONG_USAGE = `usage: npm run sim -- --long [options]

  --seeds A..B     one run per seed (1..50); odd seeds have all faults, even seeds one fault alone
  --nodes N        machines of each run, 10 to 50000 (2000)
  --hours H        virtual time of each run, 1 to 1000 (10)
  --fleet KIND     alike; mixed: three profiles, changes of labels and policies, planned silences; or sites: of ten
                   machines that report each other, with troubles of their networks and relays (alike)
  --faults LIST    names with commas between, or none, for every seed
  --json           one JSON line per seed, for --sum
  --sum FILES      adds the lines of these files, with commas between, and runs nothing
  --help           this text

exit code: 0 every law holds, 1 one is broken, 2 an argument is not valid`;

const SEEDS_MAX = 10_000;

interface LongPlan {
  readonly seeds: readonly number[];
  readonly nodes: number;
  readonly hours: number;
  readonly fleet: FleetKind;
  readonly faults: readonly LongFault[] | undefined;
  readonly json: boolean;
  readonly sum: readonly string[];
}

export class LongArgumentFault extends Error {
  override readonly name = 'LongArgumentFault';
}

function wholeIn(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new LongArgumentFault(`--${option} must be a whole number from ${least} to ${most}, not ${text}`);
  }
  return value;
}

function seedsOf(text: string): readonly number[] {
  const [first = '', last = first, ...rest] = text.split('..');
  const from = wholeIn('seeds', first, 1, 1_000_000);
  const to = wholeIn('seeds', last, 1, 1_000_000);
  if (rest.length > 0 || to < from || to - from >= SEEDS_MAX) {
    throw new LongArgumentFault(`--seeds must be A..B with A <= B, not ${text}`);
  }
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

function faultsOf(text: string | undefined): readonly LongFault[] | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return [];
  return text.split(',').map((name) => {
    const found = LONG_FAULTS.find((fault) => fault === name);
    if (found !== undefined) return found;
    throw new LongArgumentFault(`no such fault of a long run: ${name}; valid names: ${LONG_FAULTS.join(', ')}`);
  });
}

function fleetOf(text: string): FleetKind {
  if (text === 'alike' || text === 'mixed' || text === 'sites') return text;
  throw new LongArgumentFault(`--fleet must be alike, mixed or sites, not ${text}`);
}

/** @throws LongArgumentFault, or TypeError for an unknown option */
function planOf(args: readonly string[]): LongPlan | 'help' {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...{ long: flag, seeds: text, nodes: text, hours: text, fleet: text, faults: text },
      ...{ json: flag, sum: text, help: flag },
    },
  });
  if (values.help === true) return 'help';
  return {
    seeds: seedsOf(values.seeds ?? '1..50'),
    nodes: wholeIn('nodes', values.nodes ?? '2000', 10, 50_000),
    hours: wholeIn('hours', values.hours ?? '10', 1, 1_000),
    fleet: fleetOf(values.fleet ?? 'alike'),
    faults: faultsOf(values.faults),
    json: values.json ?? false,
    sum: values.sum?.split(',') ?? [],
  };
}

export async function simLong(
  args: readonly string[],
  terminal: { print(line: string): void; printError(line: string): void },
): Promise<0 | 1 | 2> {
  let plan: LongPlan | 'help';
  try {
    plan = planOf(args);
  } catch (error) {
    terminal.printError((error as Error).message);
    return 2;
  }
  if (plan === 'help') {
    terminal.print(LONG_USAGE);
    return 0;
  }
  const { nodes, hours, fleet, faults, json, sum } = plan;
  let total: LongResult | undefined;
  const add = (result: LongResult): void => {
    total = total === undefined ? result : addLong(total, result);
    if (json) terminal.print(JSON.stringify(result));
  };
  for (const file of sum) {
    for (const line of readFileSync(file, 'utf8').split('\n')) if (line !== '') add(JSON.parse(line) as LongResult);
  }
  if (sum.length === 0) {
    const onWrongMark = (mark: WrongMark): void => terminal.printError(lineOf(mark));
    for (const seed of plan.seeds) {
      add(await runLong({ seed, nodes, hours, fleet, onWrongMark, ...defined({ faults }) }));
    }
  }
  if (total === undefined) return 0;
  if (!json) for (const line of longLines(total)) terminal.print(line);
  const { falseMarks, lateMarks, chainFaults, wrongProfiles } = total;
  return falseMarks + lateMarks + chainFaults + wrongProfiles === 0 ? 0 : 1;
}

const lineOf = ({ is, node, kind, during, nowMs, start, intervalMs }: WrongMark): string =>
  `${is} mark of machine ${node} (${kind}) at ${new Date(nowMs).toISOString()}, ` +
  `${((nowMs - start.atMs) / 1_000).toFixed(3)} s after its ${start.of}, interval ${intervalMs / 1_000} s, during ${during || 'no fault'}`;

export function longLines(sum: LongResult): string[] {
  const during = Object.entries(sum.falseMarksDuring).map(([names, count]) => `${count} during ${names || 'no fault'}`);
  return [
    `${sum.runs} runs, ${sum.nodeHours} node-hours, ${sum.ticks} ticks, ${sum.evaluations} evaluations of a node, ` +
      `${Math.round(sum.cpuSeconds)} s of CPU`,
    `marks: ${sum.rightMarks} right, of them ${sum.marksEarlyBySteps} early by steps of the clocks and ` +
      `${sum.marksByOutage} near an outage of ours; ` +
      `${sum.marksAfterHiddenGap} after a gap between ticks that a step of the clocks back hid; ` +
      `${sum.falseMarks} false${during.length === 0 ? '' : ` (${during.join('; ')})`}`,
    ...(sum.marksShortened === 0
      ? []
      : [
          `shortened by witnesses: ${sum.marksShortened}, ` +
            `of them ${sum.marksShortenedOfSenders} of machines that sent heartbeats`,
        ]),
    `late marks outside of faults: ${sum.lateMarks}; faults of the chain: ${sum.chainFaults} ` +
      `(${sum.messages} messages, ${sum.claims} claims)`,
    `without faults: ${casesOf(sum.calmDetection)} nodes, last heartbeat to mark ${spanOf(sum.calmDetection)}`,
    `gate closed in ${sum.ticksWithClosedGate} ticks; ${sum.failures} calls and ticks failed`,
    ...(sum.wrongProfiles === 0 ? [] : [`Nodes without the profile that their labels select: ${sum.wrongProfiles}`]),
    ...profileTable(sum.profiles),
    ...tableOf('one fault alone', sum.alone),
    ...tableOf('several faults at a time', sum.together),
  ];
}

const spanOf = (histogram: Histogram): string => {
  const [half, most] = [percentileOf(histogram, 0.5), percentileOf(histogram, 1)];
  return half === undefined || most === undefined ? '-' : `p50 ${half} s, at most ${most} s`;
};

const secondsOf = (histogram: Histogram, share: number): string => percentileOf(histogram, share)?.toFixed(1) ?? '-';

function tableOf(title: string, figures: LongResult['alone']): string[] {
  const all = Object.entries(figures) as [FaultName, FaultFigures][];
  if (all.length === 0) return [];
  const rows = all.map(([name, { episodes, injected, detection, recovery }]) => [
    ...[name, String(episodes), String(injected), String(casesOf(detection))],
    ...[secondsOf(detection, 0.5), secondsOf(detection, 1), secondsOf(recovery, 0.5), secondsOf(recovery, 1)],
  ]);
  const head = ['fault', 'episodes', 'injected', 'nodes', 'detection p50', 'most', 'recovery p50', 'most'];
  return [title, ...tableLines(head, rows)];
}

/** The table of a mixed fleet. Detection in seconds: p50 / most. */
function profileTable(profiles: LongResult['profiles']): string[] {
  const all = Object.entries(profiles);
  if (all.length < 2) return [];
  const pair = (histogram: Histogram): string => `${secondsOf(histogram, 0.5)} / ${secondsOf(histogram, 1)}`;
  const rows = all.map(([kind, of]) => [
    ...[kind, String(Math.round(of.nodeHours)), String(of.falseMarks), String(of.marksAfterHiddenGap)],
    ...[String(of.lateMarks), `${of.rightMarks} (${of.marksByNetwork})`],
    ...[of.calmDetection, of.beyondGrace, of.detection, of.promiseDetection, of.startDetection, of.recovery].map(pair),
  ]);
  const head = [
    ...['profile', 'node-hours', 'false marks', 'after a hidden gap', 'late marks', 'right marks (by the network)'],
    ...[
      'detection without faults',
      'beyond the grace period',
      'with faults',
      'after a promise',
      'of a new Node',
      'recovery',
    ],
  ];
  return ['by profile; seconds are p50 / at most', ...tableLines(head, rows)];
}

const tableLines = (head: readonly string[], rows: readonly (readonly string[])[]): string[] =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
