/**
 * Machines that announce a silence. Most keep the promise and return before its end, some stay away longer, and some
 * promises are withdrawn while the machine is silent.
 */
import type { VirtualTime } from '../virtual-time.ts';
import type { FleetTables } from './fleet-tables.ts';
import type { Heartbeats } from './heartbeats.ts';
import type { LongLaws } from './long-laws.ts';
import type { Silences } from './silences.ts';

/** Mean number of promises per node and hour. */
const PROMISES_A_NODE_HOUR = 0.03;
const PROMISED_MIN_MS = 60_000;
const PROMISED_MAX_MS = 1_500_000;
/** Shares of promises that are broken, and that are withdrawn. */
const BROKEN_SHARE = 0.3;
const WITHDRAWN_SHARE = 0.15;
/** A broken promise: silence after its end, over the grace period of every profile. Milliseconds. */
const BROKEN_MIN_MS = 20_000;
const BROKEN_MAX_MS = 500_000;
/** Function health-stream ends a promise this long after the first heartbeat. Milliseconds. */
const ENDED_AFTER_MS = 2_000;
const LOOKS_APART_MS = 10_000;
const LOOKS_MAX = 1_000;

export function makePromises(options: {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly nodes: number;
  readonly heartbeats: Heartbeats;
  readonly tables: FleetTables;
  readonly laws: LongLaws;
  readonly silences: Silences;
}): void {
  const { time, fraction, nodes, heartbeats, tables, laws, silences } = options;
  const meanMs = 3_600_000 / (PROMISES_A_NODE_HOUR * nodes);

  async function promise(node: number): Promise<void> {
    const promisedMs = PROMISED_MIN_MS + fraction() * (PROMISED_MAX_MS - PROMISED_MIN_MS);
    const [isBroken, isWithdrawn] = [fraction() < BROKEN_SHARE, fraction() < WITHDRAWN_SHARE];
    const [overMs, share] = [BROKEN_MIN_MS + fraction() * (BROKEN_MAX_MS - BROKEN_MIN_MS), fraction()];
    const silentMs = isBroken ? promisedMs + overMs : promisedMs * (0.1 + 0.85 * share);
    const untilMs = time.nowMs() + promisedMs;
    laws.onPromise(node, untilMs);
    await tables.promiseSilence(node, untilMs);
    const returned = silences.silence(node, silentMs);
    if (isWithdrawn) time.after(silentMs * share, () => void end(node, untilMs));
    await returned;
    await endAfterHeartbeat(node, untilMs, time.nowMs());
  }

  /** The promise ends as by health-stream, when the first heartbeat is stored. */
  async function endAfterHeartbeat(node: number, untilMs: number, returnedMs: number): Promise<void> {
    await time.sleep(ENDED_AFTER_MS);
    for (let looks = 0; looks < LOOKS_MAX && time.nowMs() < untilMs; looks += 1) {
      if (heartbeats.lastMs(node, time.nowMs()) > returnedMs) return end(node, untilMs);
      await time.sleep(LOOKS_APART_MS);
    }
  }

  async function end(node: number, untilMs: number): Promise<void> {
    if (time.nowMs() >= untilMs) return;
    if (await tables.endPromise(node)) laws.onPromiseEnded(node);
  }

  function next(): void {
    time.after(-Math.log(1 - fraction()) * meanMs, next);
    const node = Math.floor(fraction() * nodes);
    if (!silences.isBusy(node) && !tables.isMarked(node)) void promise(node);
  }
  time.after(meanMs, next);
}
