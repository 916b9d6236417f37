/**
 * What a node costs by the way of its heartbeats, their interval and the capacity mode of the tables, for several sizes
 * of the fleet. Pure.
 */
import type { Dollars } from '../../shared/cost/prices.ts';
import { type BillReport, type BillRow, type BillSettings, billRows } from './bill.ts';
import type { Measurement } from './measurement.ts';

/** One interval for the whole fleet: that of a profile, or of a mix of profiles. */
export interface IntervalChoice {
  readonly name: string;
  readonly beatSeconds: number;
}

/** How heartbeats arrive. */
export interface Way {
  readonly name: string;
  readonly settings: Pick<BillSettings, 'door' | 'relayMachines'>;
}

export interface CostTableRow {
  readonly way: Way;
  readonly interval: IntervalChoice;
  /** One per size, ascending as they were passed. */
  readonly sizes: readonly BillRow[];
}

/** Machines per relay. */
const RELAY_MACHINES = 25;

const WAYS: readonly Way[] = [
  { name: 'HTTP API', settings: { door: 'api', relayMachines: 0 } },
  { name: 'HTTP API, relay', settings: { door: 'api', relayMachines: RELAY_MACHINES } },
  { name: 'function URL', settings: { door: 'url', relayMachines: 0 } },
  { name: 'function URL, relay', settings: { door: 'url', relayMachines: RELAY_MACHINES } },
];

/** Without measured batches there are no rows of relays. */
export function costTable(
  measurement: Measurement,
  choices: { readonly sizes: readonly number[]; readonly intervals: readonly IntervalChoice[] },
  settings: BillSettings,
  prices: Dollars,
): CostTableRow[] {
  const ways = WAYS.filter(
    ({ settings: { relayMachines } }) => relayMachines === 0 || measurement.batches !== undefined,
  );
  return ways.flatMap((way) =>
    choices.intervals.map((interval) => {
      const own = { ...settings, ...way.settings, beatSeconds: interval.beatSeconds };
      return { way, interval, sizes: billRows(measurement, choices.sizes, own, prices) };
    }),
  );
}

export type Figure = (report: BillReport) => number;

/** A Markdown table with one row per way and interval, and two columns per size: both capacity modes. */
export function* tableLines(rows: readonly CostTableRow[], figure: Figure): Generator<string> {
  const sizes = rows[0]?.sizes ?? [];
  const modes = ['on demand', 'provisioned'] as const;
  const columns = modes.flatMap((mode) => sizes.map(({ nodes }) => `${mode}, ${nodes.toLocaleString('en-US')}`));
  yield `| heartbeats through | interval | ${columns.join(' | ')} |`;
  yield `|---|---|${columns.map(() => '---').join('|')}|`;
  for (const { way, interval, sizes: each } of rows) {
    const cells = [
      ...each.map(({ onDemand }) => figure(onDemand)),
      ...each.map(({ provisioned }) => figure(provisioned)),
    ];
    yield `| ${way.name} | ${interval.name} | ${cells.map(dollarsText).join(' | ')} |`;
  }
}

/** Three digits after the point for amounts below $1, cents up to $100, whole dollars above. */
export const dollarsText = (dollars: number): string =>
  `$${dollars < 1 ? dollars.toFixed(3) : dollars < 100 ? dollars.toFixed(2) : Math.round(dollars).toLocaleString('en-US')}`;

const BILL_COLUMNS = [
  'nodes',
  ...['on demand', 'provisioned'].flatMap((mode) => [`${mode}, per month`, 'per node', 'additional node']),
];

/** Per node: the whole bill, divided by the nodes. Additional node: without what the cluster costs when it is empty. */
export function* billLines(rows: readonly BillRow[]): Generator<string> {
  yield `| ${BILL_COLUMNS.join(' | ')} |`;
  yield `|${BILL_COLUMNS.map(() => '---').join('|')}|`;
  for (const { nodes, onDemand, provisioned } of rows) {
    const cells = [onDemand, provisioned].flatMap(({ bill: { dollars }, dollarsPerNode }) => [
      dollarsText(dollars),
      ...(nodes === 0 ? ['', ''] : [`$${(dollars / nodes).toFixed(3)}`, `$${dollarsPerNode.toFixed(3)}`]),
    ]);
    yield `| ${[nodes.toLocaleString('en-US'), ...cells].join(' | ')} |`;
  }
}

/** Additional dollars per node and month, on demand. */
interface Target {
  readonly way: string;
  readonly beatSeconds: number;
  readonly dollars: number;
}

const TARGETS: readonly Target[] = [
  { way: 'function URL', beatSeconds: 10, dollars: 0.27 },
  { way: 'function URL, relay', beatSeconds: 10, dollars: 0.2 },
  { way: 'function URL', beatSeconds: 60, dollars: 0.1 },
];

/** One line per target: whether the largest cost of a node, over all sizes, is within it. */
export function* targetLines(rows: readonly CostTableRow[]): Generator<string> {
  for (const { way, beatSeconds, dollars } of TARGETS) {
    const row = rows.find((each) => each.way.name === way && each.interval.beatSeconds === beatSeconds);
    if (row === undefined) continue;
    const worst = Math.max(...row.sizes.map(({ onDemand }) => onDemand.dollarsPerNode));
    const verdict =
      worst <= dollars
        ? `within the target of $${dollars}`
        : `over the target of $${dollars} by $${(worst - dollars).toFixed(4)}`;
    yield `${way}, ${beatSeconds} s, on demand: $${worst.toFixed(4)} per node at most, ${verdict}`;
  }
}
