/**
 * Heartbeats of a fleet in closed form: when the last one of a machine was stored, at any moment, without an event per
 * heartbeat. Each heartbeat has its own random numbers, a hash of seed, machine and number. So a read that lags behind
 * sees exactly what an earlier read saw.
 *
 *   sent       number k at phase + k × interval, with the jitter of a kubelet; none while the machine is silent
 *   delivered  after some milliseconds; under network faults at a later attempt, or up to 15 s late
 *   stored     when it is delivered, unless the endpoint is out at that moment
 *
 * The last heartbeat at a moment is the latest delivery up to then. Numbers are searched backwards until no earlier
 * heartbeat can have been delivered later. In calm that is one or two heartbeats.
 */
import type { Episode, FaultPlan } from '../faults/catalogue.ts';
import { isWithin, overlaps, severityAt } from './episodes.ts';

/** A kubelet's interval is longer by up to this share, at random. Source: JitterFactor of its lease controller. */
const JITTER_SHARE = 0.04;
/** One way. Milliseconds. */
const LATENCY_MIN_MS = 5;
const LATENCY_MAX_MS = 40;
/** Attempts per heartbeat, and the time from one to the next. Source: maxUpdateRetries of the kubelet. */
const ATTEMPTS = 5;
const RETRY_AFTER_MS = 3_000;
const LATE_MAX_MS = 15_000;
/** Shares at the worst severity, as in faulty-network.ts: of the lost requests, half lose only their answer. */
const LOST_SHARE = 0.25;
const LATE_SHARE = 0.3;
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
/** The heartbeat of a machine that returns. */
const FIRST_AFTER_SILENCE = -2;

/** stored: what the table has. delivered: as if no outage of ours had refused any. */
export type HeartbeatView = 'stored' | 'delivered';

export interface HeartbeatOptions {
  readonly nodes: number;
  readonly seed: number;
  readonly startMs: number;
  readonly intervalMs: number;
  readonly plan: FaultPlan;
  /** By how much all clocks are ahead of true time at a moment. */
  readonly clockAheadMs: (atMs: number) => number;
}

interface Delivery {
  readonly sentMs: number;
  readonly atMs: number;
  readonly lastMs: number;
  readonly view: HeartbeatView;
}

export class Heartbeats {
  readonly #options: HeartbeatOptions;
  readonly #meanMs: number;
  readonly #phaseMs: Float64Array;
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
    const { nodes, intervalMs, startMs, plan } = options;
    this.#options = options;
    this.#meanMs = intervalMs * (1 + JITTER_SHARE / 2);
    const never = (): Float64Array => new Float64Array(nodes).fill(Number.POSITIVE_INFINITY);
    this.#phaseMs = new Float64Array(nodes).map((_, node) => startMs - this.#meanMs * this.#fraction(node, 0, PHASE));
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
          const last = this.#newest(node, Math.min(endMs, untilMs));
          for (let number = this.#newest(node, fromMs); number < last; number += 1) {
            if (this.#fraction(node, number, purpose) < share * severity) struck += 1;
          }
        }
      }
      return struck;
    };
    return { lostBeats: count(this.#lost, LOST_SHARE, LOST), lateBeats: count(this.#late, LATE_SHARE, LATE) };
  }

  #search(node: number, atMs: number, view: HeartbeatView): number {
    const registeredMs = this.#registeredMs[node]!;
    const returnMs = this.#silentUntilMs[node]!;
    const newest = this.#newest(node, atMs);
    let lastMs = registeredMs;
    if (returnMs <= atMs) lastMs = this.#delivery(node, FIRST_AFTER_SILENCE, { sentMs: returnMs, atMs, lastMs, view });
    for (let number = newest; number >= 0; number -= 1) {
      const sentMs = this.#sentMs(node, number);
      if (sentMs <= registeredMs || sentMs + this.#latestMs(lastMs, atMs) < lastMs) break;
      if (sentMs > atMs || this.isSilent(node, sentMs)) continue;
      lastMs = this.#delivery(node, number, { sentMs, atMs, lastMs, view });
    }
    if (view === 'stored') this.#remember(node, atMs, lastMs, newest);
    return lastMs;
  }

  /** Until the next heartbeat can be delivered. Not around faults that decide about deliveries. */
  #remember(node: number, atMs: number, lastMs: number, newest: number): void {
    this.#knownFromMs[node] = Number.POSITIVE_INFINITY;
    const fromMs = atMs - DELIVERED_LATEST_MS;
    if (overlaps(this.#outages, fromMs, atMs) || overlaps(this.#lost, fromMs, atMs)) return;
    if (overlaps(this.#late, fromMs, atMs)) return;
    const returnMs = this.#silentUntilMs[node]!;
    let nextMs = returnMs + LATENCY_MAX_MS > atMs ? returnMs + LATENCY_MIN_MS : Number.POSITIVE_INFINITY;
    for (let number = newest - 1; number <= newest + 1; number += 1) {
      const sentMs = this.#sentMs(node, number);
      if (sentMs + LATENCY_MAX_MS > atMs) nextMs = Math.min(nextMs, sentMs + LATENCY_MIN_MS);
    }
    this.#knownFromMs[node] = atMs;
    this.#knownUntilMs[node] = nextMs;
    this.#knownMs[node] = lastMs;
  }

  /** No later number was sent up to this moment. */
  #newest(node: number, atMs: number): number {
    return Math.floor((atMs - this.#phaseMs[node]!) / this.#meanMs) + 1;
  }

  #sentMs(node: number, number: number): number {
    const jitter = this.#fraction(node, number, JITTER) - 0.5;
    return this.#phaseMs[node]! + number * this.#meanMs + jitter * JITTER_SHARE * this.#options.intervalMs;
  }

  /** Latest delivery after sending, of heartbeats that could be delivered between these moments. */
  #latestMs(fromMs: number, untilMs: number): number {
    const isTouched =
      overlaps(this.#lost, fromMs - DELIVERED_LATEST_MS, untilMs) ||
      overlaps(this.#late, fromMs - DELIVERED_LATEST_MS, untilMs);
    return isTouched ? DELIVERED_LATEST_MS : LATENCY_MAX_MS;
  }

  /** The later of `lastMs` and the deliveries of one heartbeat up to `atMs`. */
  #delivery(node: number, number: number, { sentMs, atMs, lastMs, view }: Delivery): number {
    const latencyMs = LATENCY_MIN_MS + (LATENCY_MAX_MS - LATENCY_MIN_MS) * this.#fraction(node, number, LATENCY);
    const isStored = (deliveredMs: number): boolean =>
      deliveredMs <= atMs && (view === 'delivered' || !isWithin(this.#outages, deliveredMs));
    let latestMs = lastMs;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const triedMs = sentMs + attempt * RETRY_AFTER_MS;
      const lost = LOST_SHARE * severityAt(this.#lost, triedMs);
      if (lost > 0 && this.#fraction(node, number, LOST + attempt) < lost) continue;
      const late = LATE_SHARE * severityAt(this.#late, triedMs);
      const isLate = late > 0 && this.#fraction(node, number, LATE + attempt) < late;
      const delayMs = isLate ? LATE_MAX_MS * this.#fraction(node, number, DELAY + attempt) : 0;
      const deliveredMs = triedMs + latencyMs + delayMs;
      if (isStored(deliveredMs)) latestMs = Math.max(latestMs, deliveredMs);
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
