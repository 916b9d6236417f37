/**
 * Heartbeats of a fleet in closed form: when the last one of a machine was stored, at any moment, without an event per
 * heartbeat. Each heartbeat has its own random numbers, a hash of seed, machine and number. So a read that lags behind
 * sees exactly what an earlier read saw.
 *
 *   sent       number k at phase + k × interval, with the jitter of a kubelet; none while the machine is silent.
 *              The answer to a heartbeat may ask for another interval. The machine has a new phase from then on
 *   delivered  after some milliseconds; under network faults at a later attempt, or up to 15 s late
 *   stored     when it is delivered. If the endpoint is out at that moment, it is repeated until its end, or until the
 *              next one is sent
 *
 * The last heartbeat at a moment is the latest delivery up to then. Numbers are searched backwards until no earlier
 * heartbeat can have been delivered later. In calm that is one or two heartbeats.
 */
import type { Episode, FaultPlan } from '../faults/catalogue.ts';
import { endOf, isWithin, overlaps, severityAt } from './episodes.ts';

/** A kubelet's interval is longer by up to this share, at random. Source: JitterFactor of its lease controller. */
const JITTER_SHARE = 0.04;
/** One way. Milliseconds. */
const LATENCY_MIN_MS = 5;
const LATENCY_MAX_MS = 40;
/** Attempts per heartbeat, and the time from one to the next. Source: maxUpdateRetries of the kubelet. */
const ATTEMPTS = 5;
const RETRY_AFTER_MS = 3_000;
export const LATE_MAX_MS = 15_000;
/** Longest wait of an agent that was refused. Milliseconds. Source: agent/rules/backoff.ts, as in the kubelet. */
const REFUSED_WAIT_MAX_MS = 7_000;
/** Shares at the worst severity, as in faulty-network.ts: of the lost requests, half lose only their answer. */
export const LOST_SHARE = 0.25;
export const LATE_SHARE = 0.3;
/** Latest delivery of a heartbeat after it was sent, under network faults. Milliseconds. */
const DELIVERED_LATEST_MS = (ATTEMPTS - 1) * RETRY_AFTER_MS + LATE_MAX_MS + LATENCY_MAX_MS;
/** Maximum difference between true time and the clock of a process of the heartbeat function. Milliseconds. */
const SKEW_MAX_MS = 1_000;

/** Purposes of random numbers. Those of attempts are `+ attempt`. */
const PHASE = 0;
const JITTER = 1;
const LATENCY = 2;
const SKEW = 3;
const LOST = 8;
const LATE = 16;
const DELAY = 24;
const REFUSED = 32;
/** The heartbeat of a machine that returns. */
const FIRST_AFTER_SILENCE = -2;

/** stored: what the table has. delivered: as if no outage of ours had refused any. */
export type HeartbeatView = 'stored' | 'delivered';

export interface HeartbeatOptions {
  readonly nodes: number;
  readonly seed: number;
  readonly startMs: number;
  /** At the start. */
  readonly intervalMsOf: (node: number) => number;
  readonly plan: FaultPlan;
  /** By how much all clocks are ahead of true time at a moment. */
  readonly clockAheadMs: (atMs: number) => number;
}

interface Delivery {
  readonly intervalMs: number;
  readonly sentMs: number;
  readonly atMs: number;
  readonly lastMs: number;
  readonly view: HeartbeatView;
}

/** Heartbeats at one interval. */
interface Stretch {
  /** When the machine began to follow the interval. True time. */
  readonly fromMs: number;
  /** The heartbeat before, with the answer that asked for the interval. True time. */
  readonly askedMs: number;
  /** The time of heartbeat 0, without its jitter. */
  readonly phaseMs: number;
  readonly intervalMs: number;
  readonly meanMs: number;
  readonly before: Stretch | undefined;
}

const meanOf = (intervalMs: number): number => intervalMs * (1 + JITTER_SHARE / 2);

export class Heartbeats {
  readonly #options: HeartbeatOptions;
  /** The last one of each machine. */
  readonly #stretches: Stretch[];
  /** When the machine registered. What it sent before belongs to an earlier Node. */
  readonly #registeredMs: Float64Array;
  readonly #silentFromMs: Float64Array;
  readonly #silentUntilMs: Float64Array;
  /** The answer for every moment from `#knownFromMs` to `#knownUntilMs`. */
  readonly #knownMs: Float64Array;
  readonly #knownFromMs: Float64Array;
  readonly #knownUntilMs: Float64Array;
  readonly #outages: readonly Episode[];
  readonly #lost: readonly Episode[];
  readonly #late: readonly Episode[];
  readonly #hasSkew: boolean;

  constructor(options: HeartbeatOptions) {
    const { nodes, intervalMsOf, startMs, plan } = options;
    this.#options = options;
    const never = (): Float64Array => new Float64Array(nodes).fill(Number.POSITIVE_INFINITY);
    this.#stretches = Array.from({ length: nodes }, (_, node) => {
      const intervalMs = intervalMsOf(node);
      const meanMs = meanOf(intervalMs);
      const phaseMs = startMs - meanMs * this.#fraction(node, 0, PHASE);
      const never = Number.NEGATIVE_INFINITY;
      return { fromMs: never, askedMs: never, phaseMs, intervalMs, meanMs, before: undefined };
    });
    this.#registeredMs = new Float64Array(nodes).fill(startMs);
    this.#silentFromMs = never();
    this.#silentUntilMs = never();
    this.#knownMs = new Float64Array(nodes);
    this.#knownFromMs = never();
    this.#knownUntilMs = new Float64Array(nodes);
    this.#outages = plan.episodes('apiOutage');
    this.#lost = plan.episodes('lostBeats');
    this.#late = plan.episodes('lateBeats');
    this.#hasSkew = plan.has('skew');
  }

  /** The machine sends nothing in this interval, and a heartbeat at the end of it. */
  silence(node: number, fromMs: number, untilMs: number): void {
    this.#silentFromMs[node] = fromMs;
    this.#silentUntilMs[node] = untilMs;
    this.#knownFromMs[node] = Number.POSITIVE_INFINITY;
  }

  isSilent(node: number, atMs: number): boolean {
    return atMs >= this.#silentFromMs[node]! && atMs < this.#silentUntilMs[node]!;
  }

  silentUntilMs(node: number): number {
    return this.#silentUntilMs[node]!;
  }

  register(node: number, atMs: number): void {
    this.#registeredMs[node] = atMs;
    this.silence(node, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  /** From the heartbeat of this true time on, the machine has another interval. Its next heartbeat is in the future. */
  follow(node: number, intervalMs: number, at: { readonly lastMs: number; readonly nowMs: number }): void {
    const meanMs = meanOf(intervalMs);
    const phaseMs = Math.max(at.lastMs + meanMs, at.nowMs + JITTER_SHARE * intervalMs);
    const before = this.#stretches[node];
    this.#stretches[node] = { fromMs: at.nowMs, askedMs: at.lastMs, phaseMs, intervalMs, meanMs, before };
    this.#knownFromMs[node] = Number.POSITIVE_INFINITY;
  }

  /** When the machine sends its next heartbeat, if it is not silent then. True time. */
  nextSentMs(node: number, atMs: number): number {
    const stretch = this.#stretches[node]!;
    const newest = newestOf(stretch, atMs);
    for (let number = Math.max(0, newest - 1); number <= newest + 1; number += 1) {
      const sentMs = this.#sentMs(node, stretch, number);
      if (sentMs > atMs) return Math.max(sentMs, this.isSilent(node, sentMs) ? this.#silentUntilMs[node]! : sentMs);
    }
    return atMs + stretch.meanMs;
  }

  /** The longest interval that the machine followed since then. Milliseconds. */
  longestIntervalMs(node: number, sinceMs: number): number {
    let longestMs = 0;
    for (let stretch = this.#stretches[node]; stretch !== undefined; stretch = stretch.before) {
      longestMs = Math.max(longestMs, stretch.intervalMs);
      if (stretch.askedMs <= sinceMs) break;
    }
    return longestMs;
  }

  /** True time of the last heartbeat, or of the registration. */
  lastMs(node: number, atMs: number, view: HeartbeatView = 'stored'): number {
    if (view === 'stored' && atMs >= this.#knownFromMs[node]! && atMs < this.#knownUntilMs[node]!) {
      return this.#knownMs[node]!;
    }
    return this.#search(node, atMs, view);
  }

  /** The receipt time that the heartbeat function stored for the heartbeat of this true time. */
  receiptMs(node: number, lastMs: number): number {
    const skewMs = this.#hasSkew ? SKEW_MAX_MS * (2 * this.#fraction(node, lastMs, SKEW) - 1) : 0;
    return Math.round(lastMs + this.#options.clockAheadMs(lastMs) + skewMs);
  }

  /** How many heartbeats network faults lost, or delivered late, at their first attempt. */
  countStruck(untilMs: number): { readonly lostBeats: number; readonly lateBeats: number } {
    const count = (episodes: readonly Episode[], share: number, purpose: number): number => {
      let struck = 0;
      for (const { fromMs, untilMs: endMs, severity } of episodes) {
        for (let node = 0; node < this.#options.nodes; node += 1) {
          struck += this.#countIn(node, [fromMs, Math.min(endMs, untilMs)], (number) => {
            return this.#fraction(node, number, purpose) < share * severity;
          });
        }
      }
      return struck;
    };
    return { lostBeats: count(this.#lost, LOST_SHARE, LOST), lateBeats: count(this.#late, LATE_SHARE, LATE) };
  }

  /** The heartbeats of an interval of time for which a condition on their number holds. */
  #countIn(node: number, [fromMs, untilMs]: readonly [number, number], holds: (number: number) => boolean): number {
    let count = 0;
    let endMs = untilMs;
    for (let stretch = this.#stretches[node]; stretch !== undefined; stretch = stretch.before) {
      const last = newestOf(stretch, endMs);
      const first = newestOf(stretch, Math.max(fromMs, stretch.fromMs));
      for (let number = Math.max(0, first); number < last; number += 1) if (holds(number)) count += 1;
      endMs = Math.min(endMs, stretch.fromMs);
      if (endMs <= fromMs) break;
    }
    return count;
  }

  #search(node: number, atMs: number, view: HeartbeatView): number {
    const registeredMs = this.#registeredMs[node]!;
    const returnMs = this.#silentUntilMs[node]!;
    const latest = this.#stretches[node]!;
    const { intervalMs } = latest;
    let lastMs = registeredMs;
    if (returnMs <= atMs) {
      lastMs = this.#delivery(node, FIRST_AFTER_SILENCE, { sentMs: returnMs, intervalMs, atMs, lastMs, view });
    }
    let untilMs = atMs;
    search: for (let stretch: Stretch | undefined = latest; stretch !== undefined; stretch = stretch.before) {
      for (let number = newestOf(stretch, untilMs); number >= 0; number -= 1) {
        const sentMs = this.#sentMs(node, stretch, number);
        if (sentMs <= registeredMs || sentMs + this.#latestMs(lastMs, atMs) < lastMs) break search;
        if (sentMs > untilMs || this.isSilent(node, sentMs)) continue;
        lastMs = this.#delivery(node, number, { sentMs, intervalMs: stretch.intervalMs, atMs, lastMs, view });
      }
      untilMs = Math.min(untilMs, stretch.fromMs);
    }
    if (view === 'stored' && atMs >= latest.fromMs) this.#remember(node, atMs, lastMs);
    return lastMs;
  }

  /** Until the next heartbeat can be delivered. Not around faults that decide about deliveries. */
  #remember(node: number, atMs: number, lastMs: number): void {
    this.#knownFromMs[node] = Number.POSITIVE_INFINITY;
    const fromMs = atMs - DELIVERED_LATEST_MS;
    if (overlaps(this.#outages, fromMs, atMs) || overlaps(this.#lost, fromMs, atMs)) return;
    if (overlaps(this.#late, fromMs, atMs)) return;
    const returnMs = this.#silentUntilMs[node]!;
    let nextMs = returnMs + LATENCY_MAX_MS > atMs ? returnMs + LATENCY_MIN_MS : Number.POSITIVE_INFINITY;
    const stretch = this.#stretches[node]!;
    // The last heartbeat before this stretch may be on its way.
    if (stretch.fromMs + LATENCY_MAX_MS > atMs) return;
    const newest = Math.max(newestOf(stretch, atMs), 0);
    for (let number = Math.max(newest - 1, 0); number <= newest + 1; number += 1) {
      const sentMs = this.#sentMs(node, stretch, number);
      if (sentMs + LATENCY_MAX_MS > atMs) nextMs = Math.min(nextMs, sentMs + LATENCY_MIN_MS);
    }
    this.#knownFromMs[node] = atMs;
    this.#knownUntilMs[node] = nextMs;
    this.#knownMs[node] = lastMs;
  }

  #sentMs(node: number, { phaseMs, meanMs, intervalMs }: Stretch, number: number): number {
    const jitter = this.#fraction(node, number, JITTER) - 0.5;
    return phaseMs + number * meanMs + jitter * JITTER_SHARE * intervalMs;
  }

  /** Latest delivery after sending, of heartbeats that could be delivered between these moments. */
  #latestMs(fromMs: number, untilMs: number): number {
    const isTouched =
      overlaps(this.#lost, fromMs - DELIVERED_LATEST_MS, untilMs) ||
      overlaps(this.#late, fromMs - DELIVERED_LATEST_MS, untilMs);
    return isTouched ? DELIVERED_LATEST_MS : LATENCY_MAX_MS;
  }

  /** The later of `lastMs` and the deliveries of one heartbeat up to `atMs`. */
  #delivery(node: number, number: number, { sentMs, intervalMs, atMs, lastMs, view }: Delivery): number {
    const latencyMs = LATENCY_MIN_MS + (LATENCY_MAX_MS - LATENCY_MIN_MS) * this.#fraction(node, number, LATENCY);
    /** Infinity: not at all. */
    const storedMs = (deliveredMs: number): number => {
      const endMs = view === 'delivered' ? undefined : endOf(this.#outages, deliveredMs);
      if (endMs === undefined) return deliveredMs;
      const repeatedMs = endMs + REFUSED_WAIT_MAX_MS * this.#fraction(node, number, REFUSED);
      const isOut = repeatedMs > sentMs + intervalMs || isWithin(this.#outages, repeatedMs);
      return isOut ? Number.POSITIVE_INFINITY : repeatedMs;
    };
    let latestMs = lastMs;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const triedMs = sentMs + attempt * RETRY_AFTER_MS;
      const lost = LOST_SHARE * severityAt(this.#lost, triedMs);
      if (lost > 0 && this.#fraction(node, number, LOST + attempt) < lost) continue;
      const late = LATE_SHARE * severityAt(this.#late, triedMs);
      const isLate = late > 0 && this.#fraction(node, number, LATE + attempt) < late;
      const delayMs = isLate ? LATE_MAX_MS * this.#fraction(node, number, DELAY + attempt) : 0;
      const atLastMs = storedMs(triedMs + latencyMs + delayMs);
      if (atLastMs <= atMs) latestMs = Math.max(latestMs, atLastMs);
      // The client of a late request has timed out, and tries again.
      if (!isLate) break;
    }
    return latestMs;
  }

  /** In [0, 1): the same for the same heartbeat and purpose. */
  #fraction(node: number, number: number, purpose: number): number {
    let mixed = Math.imul(this.#options.seed ^ Math.imul(node + 1, 0x9e3779b1), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 15) ^ (number | 0), 0xc2b2ae35);
    mixed = Math.imul(mixed ^ (mixed >>> 13) ^ Math.imul(purpose + 1, 0x27d4eb2f), 0x165667b1);
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296;
  }
}

/** No later number of this stretch was sent up to this moment. */
const newestOf = ({ phaseMs, meanMs }: Stretch, atMs: number): number => Math.floor((atMs - phaseMs) / meanMs) + 1;
