/**
 * What a cluster costs while it runs, as far as node-monitor can know it: an estimate at list price, on demand, in the
 * region of the price table (prices.ts).
 *
 * Counted: beats; a status post by each machine every five minutes; node-monitor's own ticks, with the units the tables said
 * they took. Not counted: the other functions, lists of pods, pods, people, watches, logs, metrics, alarms and data out.
 * `npm run cost` counts all of it; docs/cost.md compares.
 */
import { PRICES, SECONDS_A_DAY } from './prices.ts';

export interface RunningFleet {
  readonly nodes: number;
  readonly beatIntervalSeconds: number;
  /** Between two ticks of node-monitor. Seconds. */
  readonly periodSeconds: number;
  /** Taken by one tick. */
  readonly tickReadUnits: number;
  readonly tickWriteUnits: number;
}

/** How often the cost is told; a divisor of a day. It follows the number of nodes, and a metric is billed by the hour in which it is told. */
export const COST_PERIOD_SECONDS = 21_600;
/** Ticks that begin these first minutes of a period tell it, each: one that is lost loses nothing, and all are in one hour. */
const COST_MINUTES = 5;
const MINUTE_MS = 60_000;
const REPORT_INTERVAL_SECONDS = 300;
/** Assumed: billed time on 256, 512 and 512 MB. */
const BEAT_GIGABYTE_SECONDS = 0.01 * 0.25;
const REPORT_GIGABYTE_SECONDS = 0.025 * 0.5;
const TICK_GIGABYTE_SECONDS = 0.05 * 0.5;
/** A post that says nothing new (decision 0008) reads the Node and its row, and writes the row. */
const REPORT_WRITE_UNITS = 1;
const REPORT_READ_UNITS = 2;

const DOLLARS_A_REQUEST = PRICES.httpApiRequest + PRICES.lambdaRequest;
const DOLLARS_A_BEAT = DOLLARS_A_REQUEST + PRICES.writeUnit + BEAT_GIGABYTE_SECONDS * PRICES.lambdaGigabyteSecond;
const DOLLARS_A_REPORT =
  DOLLARS_A_REQUEST +
  REPORT_WRITE_UNITS * PRICES.writeUnit +
  REPORT_READ_UNITS * PRICES.readUnit +
  REPORT_GIGABYTE_SECONDS * PRICES.lambdaGigabyteSecond;

/** Whether the tick of the slot that begins then tells the cost. */
export const tellsCost = (slotStartMs: number): boolean =>
  slotStartMs % MINUTE_MS === 0 && slotStartMs % (COST_PERIOD_SECONDS * 1_000) < COST_MINUTES * MINUTE_MS;

/** Dollars a day. */
export function runningDollarsPerDay(fleet: RunningFleet): number {
  const tick =
    fleet.tickReadUnits * PRICES.readUnit +
    fleet.tickWriteUnits * PRICES.writeUnit +
    PRICES.lambdaRequest +
    TICK_GIGABYTE_SECONDS * PRICES.lambdaGigabyteSecond;
  const aSecond =
    (fleet.nodes * DOLLARS_A_BEAT) / fleet.beatIntervalSeconds +
    (fleet.nodes * DOLLARS_A_REPORT) / REPORT_INTERVAL_SECONDS +
    tick / fleet.periodSeconds;
  return aSecond * SECONDS_A_DAY;
}
