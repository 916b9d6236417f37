/**
 * The heartbeat: renews the node's Lease, round after round (component-helpers/apimachinery/lease/controller.go).
 *
 * A round renews the Lease known from the round before; if that fails, or none is known, it reads or creates the Lease
 * and renews what it read. Between rounds it waits one interval, counted from the end of a round.
 *
 * The loop keeps one Lease and no queue, so an outage of any length costs no memory. Only its stop signal ends it.
 * It continues during a graceful shutdown of the machine.
 *
 * Differences from upstream:
 * - The wait after the first round is a part of the interval that depends on the node's name. So nodes that start at
 *   the same time do not renew at the same time.
 * - A Retry-After is obeyed, within bounds.
 * - The answer to a heartbeat may set interval and duration, those of the node's profile. Without them the configured
 *   ones apply. The server evaluates the node by the same times. A longer interval is followed after five minutes.
 * - A deleted Node is registered again before the Lease is created.
 * - Only an answer with the sent Lease counts. A captive portal may answer every request with 200.
 */
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentTime } from '../ports/time.ts';
import {
  answeredTiming,
  type FollowedTiming,
  firstWaitMs,
  followedTiming,
  jitteredMs,
  type LeaseTiming,
  leaseDurationSeconds,
  logsVersionOf,
  podsVersionOf,
  renewIntervalMs,
  servicesVersionOf,
  volumesVersionOf,
} from '../rules/lease.ts';
import { type ClockReading, clockReading, elapsedMs } from '../rules/offline-stop.ts';
import { LeaseClient, type LeaseClientDependencies } from './lease-client.ts';

export type LeaseLoopDependencies = Omit<
  LeaseClientDependencies,
  'nodeName' | 'durationSeconds' | 'intervalMs' | 'onAccepted'
>;

export type BeatListener = (atMs: number, silentMs: number) => void;
export type DirectBeatListener = (sentAt: ClockReading) => void;

export interface LeaseLoop {
  /** Renews until stopped. */
  run(): Promise<void>;
  /** One round. */
  round(): Promise<void>;
  /** Ends the wait between two rounds, or after the round that runs. */
  beatNow(): void;
  /** The Lease that the next round begins with. */
  cached(): KubeObject | undefined;
  /**
   * Called after each acknowledged heartbeat with its time (milliseconds since the Unix epoch) and the time since the
   * previous one (milliseconds; 0 for the first). After a long interval the controller may have marked the Node.
   */
  onBeat(listener: BeatListener): void;
  /**
   * Called after each heartbeat that the cluster itself answered, before all other listeners, with the time before it
   * was sent. A relay may have made up its answers.
   */
  onDirectBeat(listener: DirectBeatListener): void;
  /** Called when the answer to a heartbeat says that pods of this node changed since the previous one. */
  onPodsChange(listener: () => void): void;
  /** Called when the answer to a heartbeat says that a log was requested since the previous one. */
  onLogRequest(listener: () => void): void;
  /** Something is to be done for volumes of this node. */
  onVolumeWork(listener: () => void): void;
  /** Services, their endpoints or NetworkPolicies may have changed. */
  onServicesChange(listener: () => void): void;
}

export function createLeaseLoop(
  config: Pick<AgentConfig, 'nodeName' | 'nodeLeaseDurationSeconds'>,
  dependencies: LeaseLoopDependencies,
): LeaseLoop {
  const { nodeName } = config;
  const { time, fraction, stop } = dependencies;
  const durationSeconds = leaseDurationSeconds(config.nodeLeaseDurationSeconds);
  const configured: LeaseTiming = { intervalMs: renewIntervalMs(durationSeconds), durationSeconds };
  let timing: FollowedTiming = configured;
  const beats = new AcknowledgedBeats(time);
  const client = new LeaseClient({
    ...dependencies,
    nodeName,
    durationSeconds: () => timing.durationSeconds,
    intervalMs: () => timing.intervalMs,
    onAccepted: (lease, isRelayed, sentAt) => {
      cached = lease;
      timing = followedTiming(timing, answeredTiming(lease) ?? configured, time.monotonicMs(), isRelayed);
      if (!isRelayed) beats.addDirect(sentAt);
      beats.add(lease);
    },
  });
  let cached: KubeObject | undefined;
  let wake = new AbortController();
  let waits = AbortSignal.any([stop, wake.signal]);

  async function round(): Promise<void> {
    if (cached !== undefined && (await client.renew(cached))) return;
    if (stop.aborted) return;
    const ensured = await client.ensure();
    cached = ensured?.lease;
    if (ensured?.kind === 'found') await client.renew(ensured.lease);
  }

  return {
    round,
    async run() {
      for (let isFirst = true; !stop.aborted; isFirst = false) {
        await round();
        const { intervalMs } = timing;
        const waitMs = isFirst ? firstWaitMs(intervalMs, nodeName) : jitteredMs(intervalMs, fraction());
        await time.sleep(waitMs, waits);
        // Stryker disable next-line ConditionalExpression: saves two signals per heartbeat
        if (!wake.signal.aborted) continue;
        wake = new AbortController();
        waits = AbortSignal.any([stop, wake.signal]);
      }
    },
    beatNow: () => wake.abort(),
    cached: () => cached,
    onBeat: (listener) => beats.onBeat(listener),
    onDirectBeat: (listener) => beats.onDirectBeat(listener),
    onPodsChange: (listener) => beats.onPodsChange(listener),
    onLogRequest: (listener) => beats.onLogRequest(listener),
    onVolumeWork: (listener) => beats.onVolumeWork(listener),
    onServicesChange: (listener) => beats.onServicesChange(listener),
  };
}

/** Notifies of acknowledged heartbeats, and of the changes of pods and log requests that their answers report. */
class AcknowledgedBeats {
  readonly #time: Pick<AgentTime, 'nowMs' | 'uptimeMs'>;
  readonly #beatListeners: BeatListener[] = [];
  readonly #directListeners: DirectBeatListener[] = [];
  readonly #podsListeners: (() => void)[] = [];
  readonly #logListeners: (() => void)[] = [];
  readonly #volumeListeners: (() => void)[] = [];
  readonly #servicesListeners: (() => void)[] = [];
  #podsVersion: string | undefined;
  #logsVersion: string | undefined;
  #volumesVersion: string | undefined;
  #servicesVersion: string | undefined;
  #lastAt: ClockReading | undefined;

  constructor(time: Pick<AgentTime, 'nowMs' | 'uptimeMs'>) {
    this.#time = time;
  }

  onBeat(listener: BeatListener): void {
    this.#beatListeners.push(listener);
  }

  onDirectBeat(listener: DirectBeatListener): void {
    this.#directListeners.push(listener);
  }

  onPodsChange(listener: () => void): void {
    this.#podsListeners.push(listener);
  }

  onLogRequest(listener: () => void): void {
    this.#logListeners.push(listener);
  }

  onVolumeWork(listener: () => void): void {
    this.#volumeListeners.push(listener);
  }

  onServicesChange(listener: () => void): void {
    this.#servicesListeners.push(listener);
  }

  addDirect(sentAt: ClockReading): void {
    for (const listener of this.#directListeners) listener(sentAt);
  }

  add(lease: KubeObject): void {
    const logsVersion = logsVersionOf(lease);
    const isLogRequested = logsVersion !== this.#logsVersion;
    this.#logsVersion = logsVersion;
    const volumesVersion = volumesVersionOf(lease);
    const isVolumeAsked = volumesVersion !== this.#volumesVersion;
    this.#volumesVersion = volumesVersion;
    const servicesVersion = servicesVersionOf(lease);
    const haveServicesChanged = servicesVersion !== this.#servicesVersion;
    this.#servicesVersion = servicesVersion;
    const podsVersion = podsVersionOf(lease);
    const havePodsChanged = podsVersion !== this.#podsVersion;
    this.#podsVersion = podsVersion;
    const at = clockReading(this.#time);
    // With suspends, and with pauses by a hypervisor: the cluster counts them.
    const silentMs = this.#lastAt === undefined ? 0 : elapsedMs(this.#lastAt, at);
    this.#lastAt = at;
    for (const listener of this.#beatListeners) listener(at.wallMs, silentMs);
    if (havePodsChanged) for (const listener of this.#podsListeners) listener();
    if (isLogRequested) for (const listener of this.#logListeners) listener();
    if (isVolumeAsked) for (const listener of this.#volumeListeners) listener();
    if (haveServicesChanged) for (const listener of this.#servicesListeners) listener();
  }
}
