/**
 * npm run cost -- --nodes 1000
 *
 * The monthly cost of a cluster, item by item, from the requests that local mode counted.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { describePolicyFault } from '../../shared/config/policy.ts';
import { policyFromYaml } from '../../shared/config/policy-file.ts';
import { dollarsOf, PRICE_LIST, type PriceList, parsePriceList } from '../../shared/cost/prices.ts';
import { policyOf, profileNames } from '../../shared/fleet/nodes/node-profile.ts';
import {
  type BillLine,
  type BillReport,
  type BillSettings,
  billReport,
  billRows,
  POLLERS,
  POLLERS_MIN,
} from './bill.ts';
import { billLines, costTable, type IntervalChoice, tableLines, targetLines } from './cost-table.ts';
import { measureCost } from './measure.ts';
import type { Measurement } from './measurement.ts';
import { type CostOptions, parseCostOptions, USAGE, UsageError } from './options.ts';
import { readMeasurement } from './recorded.ts';

const IDLE_TARGET_DOLLARS = 12;
const NODE_TARGET_DOLLARS = 0.5;

async function run(args: readonly string[]): Promise<number> {
  let options: CostOptions | 'help';
  let list: PriceList;
  try {
    options = parseCostOptions(args);
    if (options === 'help') {
      console.log(USAGE);
      return 0;
    }
    list = priceList(options.prices);
    options = { ...options, beatSeconds: mixedBeatSeconds(options) };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    return 2;
  }
  const measurement = await measurementOf(options);
  if (measurement === undefined) return 2;
  if (options.relayMachines > 0 && measurement.batches === undefined) {
    console.error(`${options.from} has no batches of heartbeats: --relay needs a measurement that counted them`);
    return 2;
  }
  if (options.save !== undefined) writeFileSync(options.save, `${JSON.stringify(measurement, undefined, 2)}\n`);
  report(measurement, list, options);
  return 0;
}

/** The interval at which a fleet of one profile sends as many heartbeats as the mix. Seconds. */
function mixedBeatSeconds({ profiles, mix, beatSeconds }: CostOptions): number {
  if (profiles === undefined) {
    if (mix !== undefined) throw new UsageError('--mix needs --profiles');
    return beatSeconds;
  }
  const parsed = policyFromYaml(readFileSync(profiles, 'utf8'), profiles);
  if (parsed.kind === 'faults') throw new UsageError(parsed.faults.map(describePolicyFault).join('\n'));
  const names = profileNames(parsed.policy);
  const unknown = [...(mix?.keys() ?? [])].find((name) => !names.includes(name));
  if (unknown !== undefined) throw new UsageError(`--mix: no such profile: ${unknown}; known: ${names.join(', ')}`);
  const perSecond = names.map(
    (name) =>
      (mix === undefined ? 1 / names.length : (mix.get(name) ?? 0)) / policyOf(parsed.policy, name).beatIntervalSeconds,
  );
  return 1 / perSecond.reduce((sum, each) => sum + each, 0);
}

function report(measurement: Measurement, list: PriceList, options: CostOptions): void {
  const prices = dollarsOf(list);
  const { beatSeconds, billing, door, relayMachines, watchers, podsPerNode, zones } = options;
  const { abandonedWatchesPerDay, failuresPerNode, connectionsPerNodeDay } = options;
  const assumed = { abandonedWatchesPerDay, failuresPerNode, connectionsPerNodeDay };
  const common = { beatSeconds, billing, door, relayMachines, watchers, podsPerNode, ...assumed };
  const estimate = { ...common, lambdaTime: 'estimated', idlePollers: POLLERS_MIN } as const;
  if (options.table) {
    printCostTable(measurement, list, options, { ...estimate, nodes: 0, zones });
    return;
  }
  if (!options.json) {
    const rows = billRows(measurement, options.nodes, { ...estimate, nodes: 0, zones }, prices);
    console.log(`${[...billLines(rows)].join('\n')}\n`);
  }
  // Several sizes are compared. The lines are those of one.
  if (!options.json && options.nodes.length > 1) return;
  for (const nodes of options.nodes) {
    // Zones count as part of the nodes.
    const settings = { ...estimate, nodes, zones: nodes === 0 ? 0 : zones };
    const estimated = billReport(measurement, settings, prices);
    const clock = billReport(measurement, { ...settings, lambdaTime: 'clock' }, prices);
    const floor = billReport(measurement, { ...settings, lambdaTime: 'floor' }, prices);
    if (options.json) {
      console.log(JSON.stringify({ prices: { readOn: list.readOn, region: list.region }, estimated, clock, floor }));
    } else print(measurement, list, { estimated, clock, floor });
  }
}

/** Intervals of the table, beside that of a mix. Seconds. */
const TABLE_INTERVALS = [10, 60];

function printCostTable(
  measurement: Measurement,
  list: PriceList,
  { nodes, profiles, beatSeconds }: CostOptions,
  settings: BillSettings,
): void {
  const intervals: IntervalChoice[] = TABLE_INTERVALS.map((each) => ({ name: `${each} s`, beatSeconds: each }));
  if (profiles !== undefined) intervals.push({ name: `mix, ${Number(beatSeconds.toFixed(1))} s`, beatSeconds });
  const rows = costTable(measurement, { sizes: nodes, intervals }, settings, dollarsOf(list));
  console.log(`prices of ${list.region}, read ${list.readOn}; counted ${measurement.measuredOn}`);
  const print = (title: string, lines: Iterable<string>): void => console.log(`\n${title}\n\n${[...lines].join('\n')}`);
  print(
    'Additional dollars of a node per month',
    tableLines(rows, ({ dollarsPerNode }) => dollarsPerNode),
  );
  print(
    'Dollars of the cluster per month, idle cost included',
    tableLines(rows, ({ bill }) => bill.dollars),
  );
  print('Targets', targetLines(rows));
}

function priceList(file: string | undefined): PriceList {
  if (file === undefined) return PRICE_LIST;
  const outcome = parsePriceList(readJson(file));
  if (outcome.kind === 'invalid') throw new UsageError(`${file}:\n  ${outcome.faults.join('\n  ')}`);
  return outcome.list;
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new UsageError(`${file}: ${(cause as Error).message}`, { cause });
  }
}

async function measurementOf({ from, fleets, minutes, idleMinutes }: CostOptions): Promise<Measurement | undefined> {
  if (from === undefined) {
    const onStep = (line: string): void => console.error(`measuring ${line}`);
    return measureCost({ fleets, seconds: 60 * minutes, idleSeconds: 60 * idleMinutes, onStep });
  }
  const outcome = readMeasurement(readJson(from));
  if (outcome.kind === 'measurement') return outcome.measurement;
  console.error(`${from}:\n  ${outcome.faults.join('\n  ')}`);
  return undefined;
}

interface Reports {
  readonly estimated: BillReport;
  readonly clock: BillReport;
  readonly floor: BillReport;
}

function print(measurement: Measurement, list: PriceList, { estimated, clock, floor }: Reports): void {
  const { settings, lines, dollars } = estimated.bill;
  const total = (what: string, value: number, digits = 2): void =>
    console.log(`  ${what.padEnd(69)}${money(value, digits)}`);
  console.log(`${titleOf(settings)}; prices of ${list.region}, read ${list.readOn}, before any free tier`);
  console.log(`counted ${measurement.measuredOn} on ${measurement.machine}; Lambda time is estimated\n`);
  printLines(lines);
  total('a month', dollars);
  total('with Lambda time by the clock of that machine', clock.bill.dollars);
  total('with a billed millisecond an invocation', floor.bill.dollars);
  if (settings.nodes > 0) {
    total('a node and month', estimated.dollarsPerNode, 4);
    total('the same without data out', estimated.dollarsPerNodeWithoutDataOut, 4);
  }
  if (settings.nodes > 0 || settings.watchers > 0) {
    console.log('\n  idle: no nodes, no requests\n');
    printLines(estimated.idle.lines);
  }
  total('idle a month', estimated.idle.dollars);
  total(`with ${POLLERS} pollers a queue instead of ${POLLERS_MIN}`, estimated.idleWithAllPollers.dollars);
  total('after the free allowances of an account that has no other use', estimated.idleAfterAllowances);
  console.log(`  ${verdict('idle', estimated.idle.dollars, IDLE_TARGET_DOLLARS)}`);
  if (settings.nodes > 0) console.log(`  ${verdict('a node', estimated.dollarsPerNode, NODE_TARGET_DOLLARS)}\n`);
}

function printLines(lines: readonly BillLine[]): void {
  for (const { item, quantity, unit, dollars } of lines) {
    if (quantity === 0) continue;
    console.log(`  ${item.padEnd(36)}${amount(quantity).padStart(10)} ${unit.padEnd(22)}${money(dollars)}`);
  }
}

const titleOf = ({
  nodes,
  beatSeconds,
  door,
  relayMachines,
  billing,
  watchers,
  podsPerNode,
  zones,
}: BillSettings): string =>
  `${nodes} nodes in ${zones} zones, a beat each ${beatSeconds} s through the ${door === 'url' ? 'URL' : 'HTTP API'}${relayMachines === 0 ? '' : ` by relays of ${relayMachines} machines`}, ${podsPerNode} pods a node, ${watchers} watches, ${billing}`;

const verdict = (what: string, dollars: number, target: number): string =>
  dollars <= target
    ? `${what}: within the target of $${target}`
    : `${what}: over the target of $${target} by $${(dollars - target).toFixed(3)}`;

const amount = (value: number): string =>
  value >= 1e6
    ? `${(value / 1e6).toFixed(2)} M`
    : value >= 1_000
      ? `${(value / 1e3).toFixed(2)} k`
      : String(Number(value.toPrecision(3)));

const money = (dollars: number, digits = 2): string => `$${dollars.toFixed(digits)}`.padStart(11);

process.exitCode = await run(process.argv.slice(2));
