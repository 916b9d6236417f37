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
 * After a restart without the API, the remembered pods are started, and the first list decides about them.
 *
 * The loop keeps one entry per pod of this node, with its newest status and no queue. An outage of the API costs no
 * memory.
 */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import { siteHubOf } from '../../shared/kinds/pods/site-permit.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { RunningPod } from '../ports/pod-runtime.ts';
import { retryAfterWaitMs } from '../rules/backoff.ts';
import { isMirrorPod, isStaticPod } from '../rules/critical-pod.ts';
import { killRequest } from '../rules/kill-request.ts';
import { answeredWith } from '../rules/kube-answer.ts';
import { type ClockReading, offlineRunMs } from '../rules/offline-stop.ts';
import { finalPodDeletion } from '../rules/pod-requests.ts';
import { endedResizes, isContradicted } from '../rules/pod-status.ts';
import type { PodStatus } from '../rules/shutdown-status.ts';
import { isMirrorOf } from '../rules/static-pod.ts';
import { waitAtMost } from './bounded-wait.ts';
import { listPods } from './pod-list.ts';
import { ActiveDeadlines } from './pods/active-deadlines.ts';
import type { PodLoopDependencies } from './pods/dependencies.ts';
import { OfflineStops } from './pods/offline-stops.ts';
import { PodAdmissions } from './pods/pod-admissions.ts';
import {
  asAllocated,
  countsOnNode,
  hasFinished,
  isDeleted,
  isWantedAgain,
  newPodEntry,
  type PodEntry,
} from './pods/pod-entry.ts';
import { PodResizes } from './pods/pod-resizes.ts';
import { PodWorkers } from './pods/pod-workers.ts';
import { isRunning } from './pods/runtime-view.ts';
import { withSiteReleases } from './site-releases.ts';

/** Longest time between two lists, for changes that no heartbeat announced. Milliseconds. */
const LIST_EVERY_MS = 300_000;
/** The same while the node has no pods, to halve the requests of an idle machine besides heartbeats. Milliseconds. */
export const LIST_WITHOUT_PODS_MS = 1_800_000;
const LIST_JITTER = 0.1;
/** fileCheckFrequency: interval of the reads of static pods. Milliseconds. */
const STATIC_PODS_EVERY_MS = 20_000;
const LIST_WAITS: Backoff = { firstMs: 1_000, limitMs: 60_000 };
/**
 * Wait for a list before remembered pods are started without it: with a network, no pod runs here again that is
 * replaced elsewhere, also while the API is overloaded for a moment. Milliseconds.
 */
export const FIRST_LIST_MS = 3_000;

export interface PodLoop {
  /** Until stopped. Pods are left running. */
  run(stop: AbortSignal): Promise<void>;
  /** The pods of this node may have changed. */
  podsChanged(): void;
  /**
   * The cluster itself answered a heartbeat. Pods that were without one for too long are stopped nevertheless.
   *
   * @param sentAt read before the heartbeat was sent
   */
  heartbeatAnswered(sentAt: ClockReading): void;
  /** Pods that run or are about to. */
  activePods(): readonly KubePod[];
  /** The same, with those that are being killed: they have not terminated yet. */
  unfinishedPods(): readonly KubePod[];
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
  readonly #resizes: PodResizes;
  readonly #workers: PodWorkers;
  readonly #offline: OfflineStops;
  #listRequested = true;
  /** The API has answered a list. */
  #hasListed = false;
  /** It refused the last list: this machine may have been removed from the cluster, so it starts nothing alone. */
  #isRefused = false;
  /** When remembered pods may start without a list. Monotonic milliseconds. */
  #startRememberedAtMs = Number.POSITIVE_INFINITY;
  #hasStartedRemembered = false;
  /** The pods that a previous agent left running are in the entries. */
  #knowsRunning = false;
  /** Monotonic milliseconds. */
  #readStaticAtMs = 0;
  #wake = new AbortController();
  #stop: AbortSignal | undefined;

  constructor(parts: PodLoopDependencies) {
    const { permits } = parts;
    const api = withSiteReleases({
      api: parts.api,
      isOfSite: (uid) => siteHubOf(this.#entries.get(uid)?.pod ?? { metadata: {} }) !== undefined,
      release: async (uid) => (await permits?.release(uid)) === true,
      isUnknown: (uid) => permits?.isCopy(uid) === true,
    });
    const dependencies = { ...parts, api };
    this.#dependencies = dependencies;
    this.#admissions = new PodAdmissions(dependencies, this.#entries);
    this.#resizes = new PodResizes(dependencies, this.#entries);
    const stops = {
      ...dependencies,
      entries: this.#entries,
      request: (entry: PodEntry) => this.#workers.request(entry),
      stopSignal: () => this.#stop,
    };
    this.#offline = new OfflineStops(stops);
    const deadlines = new ActiveDeadlines(stops);
    this.#workers = new PodWorkers({
      ...dependencies,
      entries: this.#entries,
      offline: this.#offline,
      isStopping: () => this.#isStopping(),
      requestList: () => this.podsChanged(),
      onRetry: () => this.#wake.abort(),
      onStep: () => deadlines.watch(),
      remember: () => this.#remember(),
    });
    permits?.connect({
      mayRun: (uid) => this.#mayRun(uid),
      permitting: () => this.#offline.check(),
      permitted: () => this.#permitted(),
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
    void this.#startRememberedInTime(stop);
    while (!stop.aborted) {
      this.#wake = new AbortController();
      if ((this.#listRequested && failures === 0) || time.monotonicMs() >= listAtMs) {
        failures = (await this.#trySync(stop)) ? 0 : failures + 1;
        listAtMs = time.monotonicMs() + this.#listWaitMs(failures);
      }
      const retryAtMs = Math.min(this.#retryDuePods(), this.#readStatic());
      if (stop.aborted || (this.#listRequested && failures === 0)) continue;
      const waitMs = Math.min(listAtMs, retryAtMs) - time.monotonicMs();
      await time.sleep(Math.max(0, waitMs), AbortSignal.any([stop, this.#wake.signal]));
    }
    this.#dependencies.probes.stop();
  }

  async sync(stop?: AbortSignal): Promise<boolean> {
    this.#listRequested = false;
    const staticPods = this.#dependencies.staticPods?.() ?? [];
    // Newer heartbeats say nothing about this list.
    const heartbeat = this.#dependencies.heartbeats.newest();
    const listed = await this.#list(stop);
    if (listed === undefined) {
      await this.#startRemembered();
      await this.#startWithoutNode([...staticPods, ...this.#copies()], false);
      return false;
    }
    this.#hasListed = true;
    const mirrors = await this.#mirrorsOf(staticPods, listed.filter(isMirrorPod));
    const known = new Set(listed.map(({ metadata }) => metadata.uid));
    const copies = this.#copies().filter(({ metadata }) => !known.has(metadata.uid));
    const pods = [...listed.filter((pod) => !isMirrorPod(pod)), ...staticPods, ...copies];
    const running = await this.#dependencies.runtime.pods();
    this.#updateEntries(pods, running, heartbeat);
    this.#useMirrors(mirrors);
    this.#dependencies.inputs.keepOnly(new Set(this.#entries.keys()));
    const decision = this.#admissions.decide(new Set(running.map(({ uid }) => uid)), stop);
    // Running pods are admitted by now. They do not wait for the Node if they must stop.
    this.#offline.adopt(running);
    this.#knowsRunning = true;
    const areAdmitted = await decision;
    const isDecided = (await this.#resizes.decide(stop)) && areAdmitted;
    for (const entry of [...this.#entries.values()]) {
      // A pod that waits for its admission is left alone, unless it has to stop.
      if (!entry.present || entry.admission !== 'waiting' || isDeleted(entry)) this.#workers.request(entry);
    }
    void this.#remember();
    return isDecided;
  }

  /** A network that is down may leave the first list without an answer for longer than a machine should wait. */
  async #startRememberedInTime(stop: AbortSignal): Promise<void> {
    const { time, log } = this.#dependencies;
    this.#startRememberedAtMs = time.monotonicMs() + FIRST_LIST_MS;
    await time.sleep(FIRST_LIST_MS, stop);
    await this.#startRemembered().catch((cause: unknown) => {
      // The list that fails tries again.
      log.error('the remembered pods could not be started', { cause: String(cause) });
    });
  }

  /** Starts the remembered pods, the most important first, unless the API has answered. */
  async #startRemembered(): Promise<void> {
    const { memory, time, log } = this.#dependencies;
    if (this.#hasListed || this.#isStopping()) return;
    await this.#takeOverRunning();
    if (memory === undefined || memory.remembered.length === 0 || this.#hasStartedRemembered) return;
    if (this.#hasListed || this.#isRefused || time.monotonicMs() < this.#startRememberedAtMs) return;
    const priorityOf = ({ spec }: KubePod): number => spec?.priority ?? 0;
    const pods = memory.remembered.toSorted((one, other) => priorityOf(other) - priorityOf(one));
    log.info('the API does not answer: the remembered pods are started', { pods: pods.length });
    await this.#startWithoutNode(pods, true);
    this.#hasStartedRemembered = true;
  }

  /** Starts new pods while the API does not answer. Nothing else changes. */
  async #startWithoutNode(pods: readonly KubePod[], isRemembered: boolean): Promise<void> {
    const isNew = ({ metadata: { uid = '' } }: KubePod): boolean => !this.#entries.has(uid);
    if (!pods.some(isNew)) return;
    const running = await this.#dependencies.runtime.pods();
    // A list may have decided meanwhile.
    if (isRemembered && this.#hasListed) return;
    const entries = pods
      .filter(isNew)
      .map((pod) => ({ ...newPodEntry(pod, true), ...asAllocated(pod, recordedIn(running, pod)), isRemembered }));
    for (const entry of entries) {
      this.#add(entry);
      this.#admissions.admitWithoutNode(
        entry,
        running.some(({ uid }) => uid === entry.uid),
      );
    }
    this.#offline.adopt(running);
    for (const entry of entries) this.#workers.request(entry);
  }

  /** Takes over the pods that run and may have to stop without the API. They need not be remembered. */
  async #takeOverRunning(): Promise<void> {
    const running = await this.#dependencies.runtime.pods();
    const isAffected = (pod: KubePod): boolean => offlineRunMs(pod) !== undefined;
    const pods = running.filter(isRunning).flatMap(({ pod }) => (pod !== undefined && isAffected(pod) ? [pod] : []));
    await this.#startWithoutNode(pods, true);
    this.#knowsRunning = true;
  }

  /** Pods that the hub of the site has moved here, and the cluster does not know yet. */
  #copies(): readonly KubePod[] {
    return this.#dependencies.permits?.copies() ?? [];
  }

  #mayRun(uid: string): boolean {
    const entry = this.#entries.get(uid);
    return !this.#knowsRunning || (entry?.mayRun === true && !entry.stopped);
  }

  #permitted(): void {
    for (const entry of this.#offline.permitted()) this.#workers.request(entry);
    const isNew = ({ metadata: { uid = '' } }: KubePod): boolean => !this.#entries.has(uid);
    if (!this.#copies().some(isNew) || !this.#knowsRunning) return;
    this.#startWithoutNode(this.#copies(), false).catch((cause: unknown) => {
      // The next answer of the hub tries again.
      this.#dependencies.log.error('copies of pods could not be started', { cause: String(cause) });
    });
  }

  /** Keeps which pods run, for a start without the API. Before a list or such a start, nothing is known. */
  async #remember(): Promise<void> {
    if (!this.#hasListed && !this.#hasStartedRemembered) return;
    const wanted = [...this.#entries.values()].filter(isWantedAgain);
    await this.#dependencies.memory?.save(wanted.map(({ pod }) => pod));
  }

  /** The usable mirror pods. The others are removed: of a static pod that changed, or deleted by a user. */
  async #mirrorsOf(staticPods: readonly KubePod[], mirrors: readonly KubePod[]): Promise<readonly KubePod[]> {
    const usable: KubePod[] = [];
    for (const mirror of mirrors) {
      const isShown = staticPods.some((pod) => isMirrorOf(mirror, pod));
      if (isShown && mirror.metadata.deletionTimestamp === undefined) usable.push(mirror);
      else await this.#dependencies.api.send(finalPodDeletion(mirror));
    }
    return usable;
  }

  #useMirrors(mirrors: readonly KubePod[]): void {
    for (const entry of this.#entries.values()) {
      if (!isStaticPod(entry.pod)) continue;
      const mirror = mirrors.find((each) => isMirrorOf(each, entry.pod));
      if (mirror === undefined) delete entry.mirror;
      else entry.mirror = mirror;
      if (mirror === undefined || isContradicted(entry.status, mirror.status)) delete entry.reported;
    }
  }

  settled(): Promise<void> {
    return this.#workers.settled();
  }

  podsChanged(): void {
    // After a suspend, this is earlier than the timers.
    this.#offline.check();
    this.#listRequested = true;
    this.#wake.abort();
  }

  heartbeatAnswered(sentAt: ClockReading): void {
    if (this.#offline.answered(sentAt)) this.podsChanged();
  }

  activePods(): readonly KubePod[] {
    return [...this.#entries.values()].filter((each) => countsOnNode(each) && !each.kill).map(({ pod }) => pod);
  }

  unfinishedPods(): readonly KubePod[] {
    return [...this.#entries.values()].filter(countsOnNode).map(({ pod }) => pod);
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
    if (failures > 0) return backoffMs(LIST_WAITS, failures - 1);
    const everyMs = this.#entries.size > 0 ? LIST_EVERY_MS : LIST_WITHOUT_PODS_MS;
    return everyMs * (1 + LIST_JITTER * this.#dependencies.fraction());
  }

  /** Requests a list when the files of static pods changed. Returns when they are read again; Infinity without any. */
  #readStatic(): number {
    const { staticPods, time } = this.#dependencies;
    if (staticPods === undefined) return Number.POSITIVE_INFINITY;
    const nowMs = time.monotonicMs();
    if (nowMs < this.#readStaticAtMs) return this.#readStaticAtMs;
    this.#readStaticAtMs = nowMs + STATIC_PODS_EVERY_MS;
    const wanted = staticPods().map(({ metadata }) => metadata.uid ?? '');
    const known = [...this.#entries.values()].filter(({ pod, present }) => present && isStaticPod(pod));
    if (wanted.length !== known.length || wanted.some((uid) => !this.#entries.has(uid))) this.#listRequested = true;
    return this.#readStaticAtMs;
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
    this.#isRefused = list.kind === 'failed' && list.answer !== undefined && answeredWith(list.answer, 401, 403);
    if (list.kind !== 'failed') return list.pods;
    if (!stop?.aborted) log.warn('the pods of this node cannot be listed', { why: list.why });
    const waitMs = list.answer?.kind === 'answered' ? retryAfterWaitMs(list.answer, fraction()) : 0;
    if (waitMs > 0) await time.sleep(waitMs, stop);
    return undefined;
  }

  #updateEntries(listed: readonly KubePod[], running: readonly RunningPod[], listedAfter?: ClockReading): void {
    for (const entry of this.#entries.values()) entry.present = false;
    for (const pod of listed) {
      const entry = this.#entries.get(pod.metadata.uid ?? '');
      if (entry === undefined) {
        this.#add({ ...newPodEntry(pod, true), ...asAllocated(pod, recordedIn(running, pod)), listedAfter });
      } else {
        const allocated = asAllocated(pod, entry.admission === 'admitted' ? entry.pod : undefined);
        delete entry.desired;
        Object.assign(entry, { ...allocated, present: true, isRemembered: false, listedAfter });
        if (!isStaticPod(pod) && isOutdated(entry.status, pod.status)) delete entry.reported;
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

/** The pod of the runtime's record, with what a previous agent allocated. */
const recordedIn = (running: readonly RunningPod[], { metadata }: KubePod): KubePod | undefined =>
  running.find(({ uid }) => uid === metadata.uid)?.pod;

/** Whether the stored status is no longer what was reported. */
const isOutdated = (reported: PodStatus | undefined, stored: PodStatus | undefined): boolean =>
  isContradicted(reported, stored) || (reported !== undefined && endedResizes(stored, reported).length > 0);
