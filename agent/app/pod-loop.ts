/**
 * Runs the pods that the API binds to this node, and reports their status. Source: upstream pkg/kubelet/kubelet.go
 * (syncLoop, HandlePodAdditions), pod_workers.go, status/status_manager.go.
 *
 * There is no watch. The answer to a heartbeat says that pods of this node changed. Then, and every few minutes, all
 * pods of the node are listed. A failed list changes nothing: pods keep running.
 *
 *   bound → admitted → started → (finished) ┬→ deleted: stopped, deletion confirmed, removed
 *         └→ refused: Failed                └→ no longer in the API: stopped, removed
 *
 * The loop keeps one entry per pod of this node, with its newest status and no queue. An outage of the API costs no
 * memory.
 */
import type { KubePod } from '../../shared/kube/types.ts';
import type { RunningPod } from '../ports/pod-runtime.ts';
import { type Doubling, doublingWaitMs, retryAfterWaitMs } from '../rules/backoff.ts';
import { killRequest } from '../rules/kill-request.ts';
import { isContradicted } from '../rules/pod-status.ts';
import type { PodStatus } from '../rules/shutdown-status.ts';
import { waitAtMost } from './bounded-wait.ts';
import { listPods } from './pod-list.ts';
import type { PodLoopDependencies } from './pods/dependencies.ts';
import { PodAdmissions } from './pods/pod-admissions.ts';
import { hasFinished, isDeleted, newPodEntry, type PodEntry } from './pods/pod-entry.ts';
import { PodWorkers } from './pods/pod-workers.ts';

/** Longest time between two lists, for changes that no heartbeat announced. Milliseconds. */
const LIST_EVERY_MS = 300_000;
/** The same while the node has no pods, to halve the requests of an idle machine besides heartbeats. Milliseconds. */
export const LIST_WITHOUT_PODS_MS = 1_800_000;
const LIST_JITTER = 0.1;
const LIST_WAITS: Doubling = { firstMs: 1_000, limitMs: 60_000 };

export interface PodLoop {
  /** Until stopped. Pods are left running. */
  run(stop: AbortSignal): Promise<void>;
  /** The pods of this node may have changed. */
  podsChanged(): void;
  /** Pods that run or are about to. */
  activePods(): readonly KubePod[];
  /**
   * Terminates a pod for good. Resolves when none of its containers runs and its status was reported, or the report
   * failed.
   * @throws Error when it does not terminate in time.
   */
  killPod(pod: KubePod, graceSeconds: number, change: (status: PodStatus) => PodStatus): Promise<void>;
  /** Lists, decides and acts once. False when the list failed, or the Node for an admission could not be read. */
  sync(stop?: AbortSignal): Promise<boolean>;
  /** Resolves when no step is under way. */
  settled(): Promise<void>;
}

export const createPodLoop = (dependencies: PodLoopDependencies): PodLoop => new ListingPodLoop(dependencies);

class ListingPodLoop implements PodLoop {
  readonly #dependencies: PodLoopDependencies;
  readonly #entries = new Map<string, PodEntry>();
  readonly #admissions: PodAdmissions;
  readonly #workers: PodWorkers;
  #listRequested = true;
  #wake = new AbortController();
  #stop: AbortSignal | undefined;

  constructor(dependencies: PodLoopDependencies) {
    this.#dependencies = dependencies;
    this.#admissions = new PodAdmissions(dependencies, this.#entries);
    this.#workers = new PodWorkers({
      ...dependencies,
      entries: this.#entries,
      isStopping: () => this.#isStopping(),
      requestList: () => this.podsChanged(),
      onRetry: () => this.#wake.abort(),
    });
    dependencies.probes.onResult((podUid) => {
      const entry = this.#entries.get(podUid);
      if (entry?.started !== true || this.#isStopping()) return;
      // A sidecar that has started lets the next container start.
      void dependencies.runtime.start(entry.pod).catch(() => undefined);
      this.#workers.request(entry);
    });
    dependencies.runtime.onChange((podUid) => {
      const entry = this.#entries.get(podUid);
      if (entry === undefined || this.#isStopping()) return;
      if (entry.started || entry.kill !== undefined) this.#workers.request(entry);
    });
  }

  async run(stop: AbortSignal): Promise<void> {
    const { time } = this.#dependencies;
    this.#stop = stop;
    let failures = 0;
    let listAtMs = time.monotonicMs();
    while (!stop.aborted) {
      this.#wake = new AbortController();
      if ((this.#listRequested && failures === 0) || time.monotonicMs() >= listAtMs) {
        failures = (await this.#trySync(stop)) ? 0 : failures + 1;
        listAtMs = time.monotonicMs() + this.#listWaitMs(failures);
      }
      const retryAtMs = this.#retryDuePods();
      if (stop.aborted || (this.#listRequested && failures === 0)) continue;
      const waitMs = Math.min(listAtMs, retryAtMs) - time.monotonicMs();
      await time.sleep(Math.max(0, waitMs), AbortSignal.any([stop, this.#wake.signal]));
    }
    this.#dependencies.probes.stop();
  }

  async sync(stop?: AbortSignal): Promise<boolean> {
    this.#listRequested = false;
    const pods = await this.#list(stop);
    if (pods === undefined) return false;
    const running = await this.#dependencies.runtime.pods();
    this.#updateEntries(pods, running);
    this.#dependencies.inputs.keepOnly(new Set(this.#entries.keys()));
    const isDecided = await this.#admissions.decide(new Set(running.map(({ uid }) => uid)), stop);
    for (const entry of [...this.#entries.values()]) {
      // A pod that waits for its admission is left alone, unless it has to stop.
      if (!entry.present || entry.admission !== 'waiting' || isDeleted(entry)) this.#workers.request(entry);
    }
    return isDecided;
  }

  settled(): Promise<void> {
    return this.#workers.settled();
  }

  podsChanged(): void {
    this.#listRequested = true;
    this.#wake.abort();
  }

  activePods(): readonly KubePod[] {
    return [...this.#entries.values()]
      .filter((each) => each.present && each.admission === 'admitted' && !hasFinished(each) && !each.kill)
      .map(({ pod }) => pod);
  }

  async killPod(pod: KubePod, graceSeconds: number, change: (status: PodStatus) => PodStatus): Promise<void> {
    const entry = this.#entries.get(pod.metadata.uid ?? '');
    if (entry === undefined || hasFinished(entry)) return;
    const { giveUpAfterSeconds } = killRequest(pod, graceSeconds);
    if (entry.kill === undefined) entry.kill = { graceSeconds, change, done: Promise.withResolvers<void>() };
    else entry.kill.graceSeconds = Math.min(entry.kill.graceSeconds, graceSeconds);
    this.#workers.request(entry);
    const outcome = await waitAtMost(this.#dependencies.time, giveUpAfterSeconds * 1_000, entry.kill.done.promise);
    if (outcome === 'timedOut') throw new Error('timeout waiting to kill pod');
  }

  #isStopping(): boolean {
    return this.#stop?.aborted === true;
  }

  async #trySync(stop: AbortSignal): Promise<boolean> {
    try {
      return await this.sync(stop);
    } catch (cause) {
      this.#dependencies.log.error('the pods of this node could not be synchronized', { cause: String(cause) });
      return false;
    }
  }

  /** @param failures syncs that failed in a row */
  #listWaitMs(failures: number): number {
    if (failures > 0) return doublingWaitMs(LIST_WAITS, failures - 1);
    const everyMs = this.#entries.size > 0 ? LIST_EVERY_MS : LIST_WITHOUT_PODS_MS;
    return everyMs * (1 + LIST_JITTER * this.#dependencies.fraction());
  }

  /** Returns when the next retry is due, on the monotonic clock. Milliseconds; Infinity when there is none. */
  #retryDuePods(): number {
    const nowMs = this.#dependencies.time.monotonicMs();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const entry of [...this.#entries.values()]) {
      if (entry.retryAtMs === undefined) continue;
      if (entry.retryAtMs <= nowMs) this.#workers.request(entry);
      else nextMs = Math.min(nextMs, entry.retryAtMs);
    }
    return nextMs;
  }

  /** Undefined when the list failed. Waits as long as a Retry-After asks for. */
  async #list(stop?: AbortSignal): Promise<readonly KubePod[] | undefined> {
    const { api, nodeName, time, fraction, log } = this.#dependencies;
    const list = await listPods(api, nodeName, stop);
    if (list.kind !== 'failed') return list.pods;
    if (!stop?.aborted) log.warn('the pods of this node cannot be listed', { why: list.why });
    const waitMs = list.answer?.kind === 'answered' ? retryAfterWaitMs(list.answer, fraction()) : 0;
    if (waitMs > 0) await time.sleep(waitMs, stop);
    return undefined;
  }

  #updateEntries(listed: readonly KubePod[], running: readonly RunningPod[]): void {
    for (const entry of this.#entries.values()) entry.present = false;
    for (const pod of listed) {
      const entry = this.#entries.get(pod.metadata.uid ?? '');
      if (entry === undefined) this.#add(newPodEntry(pod, true));
      else {
        Object.assign(entry, { pod, present: true });
        if (isContradicted(entry.status, pod.status)) delete entry.reported;
      }
    }
    for (const { uid, namespace, name } of running) {
      if (!this.#entries.has(uid)) this.#add(newPodEntry({ metadata: { uid, namespace, name } }, false));
    }
  }

  #add(entry: PodEntry): void {
    this.#entries.set(entry.uid, entry);
  }
}
