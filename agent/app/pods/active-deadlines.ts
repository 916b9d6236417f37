/**
 * Terminates pods that were active for longer than their `activeDeadlineSeconds`. Source: upstream
 * pkg/kubelet/active_deadline.go.
 *
 * The time counts from the start in the status of the pod. What passed of it before this process is known by the wall
 * clock alone. From then on the uptime of the machine counts: a clock that is set ends no pod.
 */

import type { KubePod } from '../../../shared/kinds/types.ts';
import { textOf } from '../../../shared/kubernetes/normal-form.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import type { AgentTime } from '../../ports/time.ts';
import { killRequest } from '../../rules/kill-request.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import { countsOnNode, isDeleted, type PodEntry } from './pod-entry.ts';

/** As the kubelet. Milliseconds. */
const CHECK_EVERY_MS = 1_000;
const REASON = 'DeadlineExceeded';
const MESSAGE = 'Pod was active on the node longer than the specified deadline';

export interface ActiveDeadlinesDependencies {
  readonly time: AgentTime;
  readonly recordEvent: (pod: KubePod, event: NodeEvent) => void;
  readonly entries: ReadonlyMap<string, PodEntry>;
  /** Synchronizes a pod. */
  readonly request: (entry: PodEntry) => void;
  readonly stopSignal: () => AbortSignal | undefined;
}

export class ActiveDeadlines {
  readonly #dependencies: ActiveDeadlinesDependencies;
  #isWatching = false;

  constructor(dependencies: ActiveDeadlinesDependencies) {
    this.#dependencies = dependencies;
  }

  /** As long as a pod has a deadline. */
  watch(): void {
    if (!this.#isWatching && this.#limited().length > 0) void this.#checkInTime();
  }

  async #checkInTime(): Promise<void> {
    const { time, stopSignal } = this.#dependencies;
    this.#isWatching = true;
    for (let limited = this.#limited(); limited.length > 0; limited = this.#limited()) {
      for (const entry of limited) this.#check(entry);
      await time.sleep(CHECK_EVERY_MS, stopSignal());
      if (stopSignal()?.aborted === true) break;
    }
    this.#isWatching = false;
  }

  #limited(): readonly PodEntry[] {
    return [...this.#dependencies.entries.values()].filter(
      (each) =>
        each.pod.spec?.activeDeadlineSeconds !== undefined &&
        countsOnNode(each) &&
        !isDeleted(each) &&
        each.kill === undefined,
    );
  }

  #check(entry: PodEntry): void {
    const { time, recordEvent, request } = this.#dependencies;
    const { pod, status } = entry;
    if (entry.activeSinceMs === undefined) {
      const starts = [status?.['startTime'], pod.status?.startTime].map((text) => parseTimeMs(textOf(text)));
      const startMs = Math.min(...starts.filter((each) => each !== undefined));
      // It has not started.
      if (startMs === Number.POSITIVE_INFINITY) return;
      entry.activeSinceMs = time.uptimeMs() - Math.max(0, time.nowMs() - startMs);
    }
    const activeMs = time.uptimeMs() - entry.activeSinceMs;
    if (activeMs < (pod.spec?.activeDeadlineSeconds ?? 0) * 1_000) return;
    entry.kill = {
      graceSeconds: killRequest(pod, undefined).graceSeconds,
      change: (last) => ({ ...last, phase: 'Failed', reason: REASON, message: MESSAGE }),
      done: Promise.withResolvers<void>(),
      isFinal: true,
    };
    recordEvent(pod, { type: 'Normal', reason: REASON, message: MESSAGE });
    request(entry);
  }
}
