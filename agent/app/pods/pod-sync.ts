/**
 * Brings one pod from its actual state to the desired one, one step per call. A step that fails throws, and the caller
 * retries it.
 *
 *   desired to run     start, or wait for a heartbeat · record events · report the status
 *   desired to stop    stop the containers, then one of:
 *                        no longer in the API    remove it from the machine
 *                        killed by the agent     report its last status
 *                        deleted in the API      confirm the deletion, remove it from the machine
 *                        finished                report its status
 */
import { defined } from '../../../shared/defined.ts';
import { siteHubOf } from '../../../shared/kinds/pods/site-permit.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { RunningPod } from '../../ports/pod-runtime.ts';
import { isStaticPod } from '../../rules/critical-pod.ts';
import { killRequest } from '../../rules/kill-request.ts';
import { answeredWith, describeAnswer, objectIn } from '../../rules/kube-answer.ts';
import { WAITING_FOR_HEARTBEAT, waitingStatus, waitMessage } from '../../rules/offline-stop.ts';
import { deletionGraceSeconds } from '../../rules/pod-grace.ts';
import { changedImages } from '../../rules/pod-images.ts';
import { finalPodDeletion, isPodMissing, podStatusReport } from '../../rules/pod-requests.ts';
import { resizeEvent, resourcesOf, sameResources } from '../../rules/pod-resize.ts';
import { actualResources, hasEnded, type ProbedReadiness, podStatusOf } from '../../rules/pod-status.ts';
import type { PodStatus } from '../../rules/shutdown-status.ts';
import { mirrorCreation } from '../../rules/static-pod.ts';
import { waitAtMost } from '../bounded-wait.ts';
import { dueContainerEvents } from './container-events.ts';
import type { PodLoopDependencies } from './dependencies.ts';
import type { OfflineStops } from './offline-stops.ts';
import { hasFinished, isDeleted, isTerminal, type PodEntry, type PodKill } from './pod-entry.ts';
import { containersOf, isRunning, RuntimeView } from './runtime-view.ts';

/** A status report must not delay the shutdown of the machine by more than this. Milliseconds. */
const LAST_REPORT_TIMEOUT_MS = 3_000;
/** A disk that does not answer must not hide what the pods do. Milliseconds. */
const REMEMBER_TIMEOUT_MS = 3_000;
/** Grace period of a running pod with an unknown spec. Seconds. */
const ORPHAN_GRACE_SECONDS = 1;

/** A step failed. */
class PodSyncError extends Error {
  override readonly name = 'PodSyncError';
}

/** Shortest requested grace period in seconds; undefined while the pod must run. */
export function stopGraceSeconds(entry: PodEntry): number | undefined {
  const { pod, kill, present } = entry;
  const requested: number[] = [];
  if (kill !== undefined) requested.push(kill.graceSeconds);
  if (isDeleted(entry)) requested.push(deletionGraceSeconds(pod));
  if (!present)
    requested.push(pod.spec === undefined ? ORPHAN_GRACE_SECONDS : killRequest(pod, undefined).graceSeconds);
  if (requested.length === 0 && hasFinished(entry)) requested.push(killRequest(pod, undefined).graceSeconds);
  return requested.length === 0 ? undefined : Math.min(...requested);
}

/** Whether a running container, or a record of the runtime, has other resources than those that are allocated. */
const needsResize = (pod: KubePod, running: RunningPod | undefined): boolean =>
  running?.pod !== undefined &&
  containersOf(running).some((container) => {
    const { name } = container;
    const allocated = resourcesOf(pod, name);
    if (allocated === undefined) return false;
    const recorded = running.pod === undefined ? undefined : resourcesOf(running.pod, name);
    return !sameResources(allocated, actualResources(running, container) ?? recorded);
  });

export interface PodSyncDependencies extends PodLoopDependencies {
  readonly entries: Map<string, PodEntry>;
  /** The agent stops, and leaves the pods running. */
  readonly isStopping: () => boolean;
  /** Requests a new list of the pods of this node. */
  readonly requestList: () => void;
  readonly offline: Pick<OfflineStops, 'mayStart' | 'starts'>;
  /** Keeps which pods run. Resolves when it is on disk, or cannot be written. Never rejects. */
  readonly remember: () => Promise<void>;
}

export class PodSync {
  readonly #dependencies: PodSyncDependencies;
  readonly #view: RuntimeView;

  constructor(dependencies: PodSyncDependencies) {
    this.#dependencies = dependencies;
    this.#view = new RuntimeView(dependencies.runtime, dependencies.meter);
  }

  /** @throws Error when the step must be retried */
  async step(entry: PodEntry): Promise<void> {
    if (this.#dependencies.entries.get(entry.uid) !== entry) return;
    const graceSeconds = stopGraceSeconds(entry);
    if (graceSeconds === undefined) return this.#keepRunning(entry);
    if (entry.admission === 'refused' && entry.present) await this.#reportStatus(entry);
    else await this.#stopContainers(entry, graceSeconds);
    if (this.#dependencies.isStopping()) return;
    if (!entry.present) return this.#remove(entry);
    if (entry.kill !== undefined) return this.#finishKill(entry, entry.kill);
    if (isDeleted(entry)) return this.#confirmDeletion(entry);
    if (entry.status !== undefined) await this.#reportRemembered(entry);
  }

  async #keepRunning(entry: PodEntry): Promise<void> {
    if (entry.admission !== 'admitted') return;
    if (entry.started) this.#dependencies.inputs.changed(entry.pod);
    else if (!(await this.#tryStart(entry))) return this.#waitForHeartbeat(entry);
    const running = await this.#resized(entry, await this.#withItsImages(entry));
    for (const event of dueContainerEvents(entry, running)) this.#dependencies.recordEvent(entry.pod, event);
    entry.adopted = false;
    this.#dependencies.probes.update(entry.pod, running);
    entry.status = this.#statusOf(entry, running);
    if (isTerminal(entry.status)) this.#retryDeferred();
    // Sidecars outlive the main containers. The next step stops them, before the status reports the last phase.
    if (isTerminal(entry.status) && isRunning(running)) entry.syncAgain = true;
    else await this.#reportRemembered(entry);
    if (entry.resizing?.error !== undefined) throw new PodSyncError(`resize: ${entry.resizing.error}`);
  }

  /** Lets the containers run with the images of the spec. Returns what runs then. */
  async #withItsImages(entry: PodEntry): Promise<RunningPod | undefined> {
    const running = await this.#view.podWithUid(entry.uid);
    if (running?.pod === undefined || changedImages(entry.pod, running.pod).size === 0) return running;
    await this.#dependencies.runtime.useImages?.(entry.pod);
    return this.#view.podWithUid(entry.uid);
  }

  /** Lets the containers run with the allocated resources. Returns what runs then. */
  async #resized(entry: PodEntry, running: RunningPod | undefined): Promise<RunningPod | undefined> {
    const { runtime, recordEvent } = this.#dependencies;
    const { generation } = entry.resizing ?? entry.pod.metadata;
    if (!needsResize(entry.pod, running)) {
      if (entry.resizing !== undefined) recordEvent(entry.pod, resizeEvent('completed', entry.pod, generation));
      delete entry.resizing;
      return running;
    }
    const outcome = await runtime.resize?.(entry.pod);
    const error = outcome?.kind === 'failed' ? outcome.message : undefined;
    if (error !== undefined && error !== entry.resizing?.error)
      recordEvent(entry.pod, resizeEvent('failed', entry.pod, generation, error));
    entry.resizing = defined({ generation, error });
    const after = await this.#view.podWithUid(entry.uid);
    return needsResize(entry.pod, after) ? after : this.#resized(entry, after);
  }

  /** The pod of this step needs nothing any more: a resize that did not fit may fit now. */
  #retryDeferred(): void {
    const { entries, requestList } = this.#dependencies;
    if ([...entries.values()].some(({ pendingResize }) => pendingResize?.reason === 'Deferred')) requestList();
  }

  /** False if the pod must not start without a list after an answered heartbeat. */
  async #tryStart(entry: PodEntry): Promise<boolean> {
    const { offline } = this.#dependencies;
    if (!offline.mayStart(entry)) return false;
    await this.#prepare(entry);
    // Its volumes may have needed more time than it has left.
    if (!offline.mayStart(entry)) return false;
    offline.starts(entry);
    await this.#start(entry);
    entry.started = true;
    return true;
  }

  async #waitForHeartbeat(entry: PodEntry): Promise<void> {
    const message = waitMessage(entry.pod);
    if (!entry.isWaitingForHeartbeat) {
      entry.isWaitingForHeartbeat = true;
      this.#dependencies.recordEvent(entry.pod, { type: 'Normal', reason: WAITING_FOR_HEARTBEAT, message });
    }
    // A heartbeat was answered since the list was requested.
    const waitsForPermit = siteHubOf(entry.pod) !== undefined;
    if (!waitsForPermit && this.#dependencies.heartbeats.newest() !== entry.listedAfter)
      this.#dependencies.requestList();
    entry.status = waitingStatus(this.#statusOf(entry, undefined), message);
    await this.#reportRemembered(entry);
  }

  /** Sets up the volumes. @throws PodSyncError while they cannot be set up and the pod does not run */
  async #prepare(entry: PodEntry): Promise<void> {
    try {
      await this.#dependencies.inputs.prepare(entry.pod, entry.isRemembered);
    } catch (cause) {
      // A running pod keeps the volumes that the previous agent set up.
      if (entry.adopted) return;
      entry.status = this.#statusOf(entry, undefined);
      await this.#reportStatus(entry);
      throw new PodSyncError((cause as Error).message, { cause });
    }
  }

  async #start(entry: PodEntry): Promise<void> {
    const { meter, runtime, recordEvent } = this.#dependencies;
    meter.count('kubelet_started_pods_total');
    try {
      await runtime.start(entry.pod);
      entry.stopped = false;
    } catch (cause) {
      meter.count('kubelet_started_pods_errors_total');
      const message = `Error starting pod: ${(cause as Error).message}`;
      recordEvent(entry.pod, { type: 'Warning', reason: 'FailedSync', message });
      throw cause;
    }
  }

  async #stopContainers(entry: PodEntry, graceSeconds: number): Promise<void> {
    const { runtime, probes, recordEvent } = this.#dependencies;
    probes.remove(entry.uid);
    const running = await this.#view.podWithUid(entry.uid);
    entry.stopped ||= running === undefined;
    if (running === undefined || (entry.stopped && !isRunning(running))) return;
    for (const { name, state } of containersOf(running)) {
      if (state.kind !== 'running' || !entry.present) continue;
      recordEvent(entry.pod, { type: 'Normal', reason: 'Killing', message: `Stopping container ${name}` });
    }
    entry.stoppingSeconds = graceSeconds;
    try {
      await runtime.stop(entry.uid, graceSeconds);
      entry.stopped = true;
    } finally {
      delete entry.stoppingSeconds;
    }
  }

  #statusOf(entry: PodEntry, running: RunningPod | undefined, isLast = false): PodStatus {
    const { time, hostIp, probes } = this.#dependencies;
    const before = entry.status ?? entry.pod.status ?? {};
    const probed: ProbedReadiness = (container) => probes.readinessOf(entry.uid, container);
    const mayStart = running !== undefined;
    const { pod } = entry;
    const resize = { pending: entry.pendingResize, inProgress: entry.resizing };
    const facts = { pod, running, before, nowMs: time.nowMs(), hostIp: hostIp(), probed, mayStart, isLast };
    return podStatusOf({ ...facts, resize });
  }

  async #lastStatusOf(entry: PodEntry): Promise<PodStatus> {
    const running = await this.#view.podWithUid(entry.uid);
    return this.#statusOf(entry, running, true);
  }

  async #finishKill(entry: PodEntry, kill: PodKill): Promise<void> {
    if (!isTerminal(entry.status)) {
      // A pod that the agent terminates has failed, even if its containers exit with code 0.
      entry.status = { ...(entry.status ?? entry.pod.status), phase: 'Failed' };
      entry.status = kill.change(await this.#lastStatusOf(entry));
      this.#retryDeferred();
    }
    try {
      await this.#reportStatus(entry, LAST_REPORT_TIMEOUT_MS);
    } finally {
      kill.done.resolve();
    }
    if (isDeleted(entry)) await this.#confirmDeletion(entry);
  }

  async #confirmDeletion(entry: PodEntry): Promise<void> {
    if (entry.deletionConfirmed) return;
    await this.#reportEndToFinalizers(entry);
    const answer = await this.#dependencies.api.send(finalPodDeletion(entry.pod));
    if (!answeredWith(answer, 200, 202) && !isPodMissing(answer))
      throw new PodSyncError(`delete: ${describeAnswer(answer)}`);
    entry.deletionConfirmed = true;
    const left = objectIn(answer);
    const isHeld = left?.metadata.uid === entry.uid && (left.metadata.finalizers ?? []).length > 0;
    if (answeredWith(answer, 202) || isHeld) return;
    entry.present = false;
    await this.#remove(entry);
  }

  /** A controller with a finalizer needs the last status of the pod, which would be deleted with the pod. */
  async #reportEndToFinalizers(entry: PodEntry): Promise<void> {
    const { pod, admission, status } = entry;
    if (admission !== 'admitted' || (pod.metadata.finalizers ?? []).length === 0 || hasEnded(pod)) return;
    if (!isTerminal(status)) entry.status = await this.#lastStatusOf(entry);
    await this.#reportStatus(entry);
  }

  async #remove(entry: PodEntry): Promise<void> {
    const { runtime, inputs, topology, entries } = this.#dependencies;
    // The runtime forgets the pod last: the next agent then repeats what was not done.
    await inputs.remove(entry.uid);
    await runtime.remove(entry.uid);
    topology.release(entry.uid);
    entry.kill?.done.resolve();
    entries.delete(entry.uid);
    this.#retryDeferred();
  }

  /** The pod that shows a static pod in the API. Undefined before this node is registered. */
  async #mirrorOf(entry: PodEntry): Promise<KubePod | undefined> {
    if (entry.mirror !== undefined || !entry.present) return entry.mirror;
    const { api, nodeName, nodeUid } = this.#dependencies;
    const uid = nodeUid?.();
    if (uid === undefined) return undefined;
    const answer = await api.send(mirrorCreation(entry.pod, nodeName, uid));
    const mirror = answeredWith(answer, 201) ? objectIn<KubePod>(answer) : undefined;
    if (mirror === undefined) throw new PodSyncError(`mirror pod: ${describeAnswer(answer)}`);
    entry.mirror = mirror;
    delete entry.reported;
    return mirror;
  }

  /** What the API knows is on disk: after a power cut, a ready pod has its Secrets, and a completed one stays ended. */
  async #reportRemembered(entry: PodEntry): Promise<void> {
    await waitAtMost(this.#dependencies.time, REMEMBER_TIMEOUT_MS, this.#dependencies.remember());
    await this.#reportStatus(entry);
  }

  async #reportStatus(entry: PodEntry, timeoutMs?: number): Promise<void> {
    const { status } = entry;
    const shown = isStaticPod(entry.pod) ? await this.#mirrorOf(entry) : entry.pod;
    if (shown === undefined) return;
    const text = JSON.stringify(status);
    if (status === undefined || entry.reported === text) return;
    const before = entry.reported === undefined ? undefined : (JSON.parse(entry.reported) as PodStatus);
    const report = podStatusReport(shown, status, before);
    const answer = await this.#dependencies.api.send({ ...report, ...defined({ timeoutMs }) });
    if (answeredWith(answer, 200)) {
      entry.reported = text;
      return;
    }
    if (isPodMissing(answer)) {
      delete entry.mirror;
      this.#dependencies.requestList();
    }
    throw new PodSyncError(`status: ${describeAnswer(answer)}`);
  }
}
