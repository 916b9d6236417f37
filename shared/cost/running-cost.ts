/**
 * The running cost of a cluster, as far as node-monitor can know it: an estimate at the on-demand list price, in the
 * region of the price table (prices.ts).
 *
 * Counted: beats; a status post by each machine every five minutes; node-monitor's own ticks, with the consumed units
 * that the tables reported. Not counted: the other functions, lists of pods, pods, users, watches, logs, metrics,
 * alarms and outgoing data. `npm run cost` counts all of it; docs/cost.md compares.
 */
import { PRICES, SECONDS_PER_DAY } from './prices.ts';

export interface RunningFleet {
  readonly nodes: number;
  /** The rate of all nodes together. */
  readonly beatsPerSecond: number;
  /** Between two ticks of node-monitor. Seconds. */
  readonly periodSeconds: number;
  /** Consumed by one tick. */
  readonly tickReadUnits: number;
  readonly tickWriteUnits: number;
}

/**
 * Interval of the cost metric, a divisor of a day. The cost only changes with the number of nodes, and a metric is
 * billed for each hour with data.
 */
export const COST_PERIOD_SECONDS = 21_600;
const REPORT_INTERVAL_SECONDS = 300;
/** Assumed: billed time on 256, 512 and 512 MB. */
const BEAT_GIGABYTE_SECONDS = 0.01 * 0.25;
const REPORT_GIGABYTE_SECONDS = 0.025 * 0.5;
const TICK_GIGABYTE_SECONDS = 0.05 * 0.5;
/** A post without a change (decision 0008) reads the Node and its row, and writes the row. */
const REPORT_WRITE_UNITS = 1;
const REPORT_READ_UNITS = 2;

const DOLLARS_PER_REQUEST = PRICES.httpApiRequest + PRICES.lambdaRequest;
const DOLLARS_PER_BEAT = DOLLARS_PER_REQUEST + PRICES.writeUnit + BEAT_GIGABYTE_SECONDS * PRICES.lambdaGigabyteSecond;
const DOLLARS_PER_REPORT =
  DOLLARS_PER_REQUEST +
  REPORT_WRITE_UNITS * PRICES.writeUnit +
  REPORT_READ_UNITS * PRICES.readUnit +
  REPORT_GIGABYTE_SECONDS * PRICES.lambdaGigabyteSecond;

/** Dollars per day. */
export function runningDollarsPerDay(fleet: RunningFleet): number {
  const dollarsPerTick =
    fleet.tickReadUnits * PRICES.readUnit +
    fleet.tickWriteUnits * PRICES.writeUnit +
    PRICES.lambdaRequest +
    TICK_GIGABYTE_SECONDS * PRICES.lambdaGigabyteSecond;
  const dollarsPerSecond =
    fleet.beatsPerSecond * DOLLARS_PER_BEAT +
    (fleet.nodes * DOLLARS_PER_REPORT) / REPORT_INTERVAL_SECONDS +
    dollarsPerTick / fleet.periodSeconds;
  return dollarsPerSecond * SECONDS_PER_DAY;
}
