/**
 * Stops pods that must not run on two machines when their time without an answered heartbeat is over (decision 0061).
 * Such a stop is for good: a heartbeat that is answered later does not undo it.
 *
 * Timers are late after a suspend, so the clocks are compared at the due time, every 10 s, and before each answered
 * heartbeat counts.
 */

import { siteHubOf } from '../../../shared/kinds/pods/site-permit.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { RunningPod } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import {
  type ClockReading,
  elapsedMs,
  graceSecondsLeft,
  mayStart,
  OFFLINE_STOP,
  offlineRunMs,
  offlineStoppedStatus,
  stopMessage,
} from '../../rules/offline-stop.ts';
import { type AnsweredHeartbeats, FIRST_HEARTBEAT_MS } from '../answered-heartbeats.ts';
import type { SitePermits } from '../site-permits.ts';
import { hasFinished, logFields, type PodEntry } from './pod-entry.ts';
import { isRunning } from './runtime-view.ts';

/** Longest time between two checks. Milliseconds. */
const CHECK_EVERY_MS = 10_000;

export interface OfflineStopsDependencies {
  readonly time: AgentTime;
  readonly log: Log;
  readonly heartbeats: AnsweredHeartbeats;
  /** Of the hub of the site. Absent: pods that a hub decides about do not run here. */
  readonly permits?: Pick<SitePermits, 'permitOf' | 'lastPermitOf'> | undefined;
  readonly recordEvent: (pod: KubePod, event: NodeEvent) => void;
  readonly entries: ReadonlyMap<string, PodEntry>;
  /** Synchronizes a pod. */
  readonly request: (entry: PodEntry) => void;
  readonly stopSignal: () => AbortSignal | undefined;
}

export class OfflineStops {
  readonly #dependencies: OfflineStopsDependencies;
  readonly #startedAt: ClockReading;
  #isWatching = false;

  constructor(dependencies: OfflineStopsDependencies) {
    this.#dependencies = dependencies;
    this.#startedAt = dependencies.heartbeats.now();
  }

  /** A pod that runs already may go on. `check` decides about it. */
  mayStart({ pod, mayRun, listedAfter }: PodEntry): boolean {
    const { heartbeats, permits } = this.#dependencies;
    const since = siteHubOf(pod) === undefined ? listedAfter : permits?.permitOf(pod);
    return mayRun || mayStart(pod, since, heartbeats.now());
  }

  /** Pods that waited for a permit that they have now. */
  permitted(): readonly PodEntry[] {
    return [...this.#dependencies.entries.values()].filter(
      (each) => each.isWaitingForHeartbeat && siteHubOf(each.pod) !== undefined && this.mayStart(each),
    );
  }

  /** The runtime is about to start it. */
  starts(entry: PodEntry): void {
    entry.isWaitingForHeartbeat = false;
    entry.mayRun = true;
    if (isWatched(entry)) void this.#dependencies.heartbeats.keep();
    this.#watch();
  }

  /**
   * Pods that a previous agent started, and the runtime still runs. No agent may have seen it when their time was over,
   * so the longest silence counts.
   */
  adopt(running: readonly RunningPod[]): void {
    const longestSilenceMs = this.#dependencies.heartbeats.longestSilenceMs();
    for (const each of running) {
      const entry = this.#dependencies.entries.get(each.uid);
      if (entry?.adopted !== true || entry.mayRun || !isRunning(each)) continue;
      entry.mayRun = true;
      const silentMs = this.#silentMs(entry, longestSilenceMs);
      if (this.#leftMs(entry, silentMs) <= 0) this.#stop(entry, silentMs);
    }
    this.#watch();
  }

  /** @returns whether a pod waits for a list that is requested from now on */
  answered(sentAt: ClockReading): boolean {
    const { heartbeats, entries } = this.#dependencies;
    this.check();
    heartbeats.answered(sentAt);
    if ([...entries.values()].some(isWatched)) void heartbeats.keep();
    return [...entries.values()].some((each) => each.isWaitingForHeartbeat && each.present && !hasFinished(each));
  }

  /** Stops the pods that are due. */
  check(): void {
    const answeredMs = this.#dependencies.heartbeats.silentMs();
    for (const entry of [...this.#dependencies.entries.values()]) {
      const silentMs = this.#silentMs(entry, answeredMs);
      if (this.#leftMs(entry, silentMs) <= 0) this.#stop(entry, silentMs);
    }
  }

  #watch(): void {
    if (!this.#isWatching) void this.#checkInTime();
  }

  /** As long as an affected pod may run. */
  async #checkInTime(): Promise<void> {
    const { time, heartbeats, entries, stopSignal } = this.#dependencies;
    this.#isWatching = true;
    for (;;) {
      this.check();
      const silentMs = heartbeats.silentMs();
      const left = [...entries.values()]
        .map((entry) => this.#leftMs(entry, this.#silentMs(entry, silentMs)))
        .filter((leftMs) => leftMs !== Number.POSITIVE_INFINITY);
      if (left.length === 0 || stopSignal()?.aborted === true) break;
      const waitMs = Math.min(CHECK_EVERY_MS, ...left.filter((leftMs) => leftMs > 0));
      await time.sleep(Math.ceil(waitMs), stopSignal());
    }
    this.#isWatching = false;
  }

  /** Time without a permit, for a pod that a hub decides about. An agent that has started waits a moment for one. */
  #silentMs({ pod }: PodEntry, answeredMs: number): number {
    if (siteHubOf(pod) === undefined) return answeredMs;
    const { heartbeats, permits } = this.#dependencies;
    const now = heartbeats.now();
    const permit = permits?.lastPermitOf(pod);
    if (permit !== undefined) return elapsedMs(permit, now);
    return now.uptimeMs - this.#startedAt.uptimeMs < FIRST_HEARTBEAT_MS ? 0 : Number.POSITIVE_INFINITY;
  }

  /** Milliseconds until the pod must stop, 0 or less: it must; Infinity: it is not affected, or does not run. */
  #leftMs(entry: PodEntry, silentMs: number): number {
    const runMs = offlineRunMs(entry.pod);
    return runMs === undefined || !isWatched(entry) ? Number.POSITIVE_INFINITY : runMs - silentMs;
  }

  #stop(entry: PodEntry, silentMs: number): void {
    const { time, log, recordEvent, request } = this.#dependencies;
    const graceSeconds = graceSecondsLeft(entry.pod, silentMs);
    if (entry.kill !== undefined) entry.kill.graceSeconds = Math.min(entry.kill.graceSeconds, graceSeconds);
    else {
      const message = stopMessage(entry.pod, silentMs);
      entry.kill = {
        graceSeconds,
        change: (status) => offlineStoppedStatus(status, message, time.nowMs()),
        done: Promise.withResolvers<void>(),
        isFinal: true,
      };
      recordEvent(entry.pod, { type: 'Warning', reason: OFFLINE_STOP, message });
      log.warn('a pod is stopped without the API', { ...logFields(entry), why: message, graceSeconds });
    }
    request(entry);
  }
}

/** Whether it may run, and has to stop without heartbeats. */
const isWatched = ({ pod, mayRun, stopped }: PodEntry): boolean =>
  mayRun && !stopped && offlineRunMs(pod) !== undefined;
