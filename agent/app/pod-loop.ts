/**
 * Makes the machine run the pods that the API binds to it, and tells the API how they do. Source: upstream
 * pkg/kubelet/kubelet.go (syncLoop, HandlePodAdditions), pod_workers.go, status/status_manager.go.
 *
 * There is no watch. The answer to a heartbeat says that pods of this node changed; then, and every few minutes anyway
 * (less often by a machine that has none), all of them are listed. A list that cannot be had changes nothing: what runs goes on.
 *
 * Each pod has one entry and at most one `step` under way, which compares what is wanted with what runs and does what is
 * missing; asked for meanwhile, it runs once more. Only a stop that is under way can be hastened from outside. New pods
 * are admitted one by one, in the order of their creation, before any of them starts.
 *
 *   bound → admitted → started → (ended) ┬→ deleted: stopped, deletion confirmed, forgotten
 *         └→ refused: Failed             └→ gone from the API: stopped, forgotten
 *
 * Entries are as many as the API has pods for this node; nothing else grows while the API is away. What has to be told
 * is the newest status of each pod, not a queue.
 */
import { recordsOf, textOf } from '../../shared/kube/normal-form.ts';
import { parseTimeMs } from '../../shared/kube/time.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { Log } from '../../shared/ports/log.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { PodRuntime, RunningPod } from '../ports/pod-runtime.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { type Doubling, doublingWaitMs, retryAfterWaitMs } from '../rules/backoff.ts';
import { killRequest } from '../rules/kill-request.ts';
import { answeredWith, describeAnswer, objectIn } from '../rules/kube-answer.ts';
import { nodePath } from '../rules/lease.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import { type Admission, admitPod, type Refusal } from '../rules/pod-admission.ts';
import { deletionGraceSeconds } from '../rules/pod-grace.ts';
import { hasEnded, podStatusOf, rejectedStatus } from '../rules/pod-status.ts';
import type { PodStatus } from '../rules/shutdown-status.ts';
import { listPods } from './pod-list.ts';

/** Longest time without a look at the list; a missed word of a change costs no more than this. Milliseconds. */
const LIST_EVERY_MS = 300_000;
/** … while there are none, when it can only be the start of a pod that is late: half of what an idle machine asks beside beats. */
export const LIST_WITHOUT_PODS_MS = 1_800_000;
const LIST_JITTER = 0.1;
const LIST_WAITS: Doubling = { firstMs: 1_000, limitMs: 60_000 };
const STEP_WAITS: Doubling = { firstMs: 1_000, limitMs: 300_000 };
/** Failed steps in a row before a pod is left alone until the next list or change. */
const STEPS_MAX = 10;
/** A status that is told while the machine goes down may not hold it up longer. Milliseconds. */
const LAST_WORD_MS = 3_000;
/** For a pod that nothing is known about but that it runs. Seconds. */
const ORPHAN_GRACE_SECONDS = 1;

export interface PodLoopDependencies {
  readonly nodeName: string;
  readonly api: KubeApi;
  readonly runtime: PodRuntime;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly meter: AgentMeter;
  /** As Go names it. */
  readonly operatingSystem: string;
  /** Address of this machine; pods share it. */
  readonly hostIp: () => string | undefined;
  readonly recordEvent: (pod: KubeObject, event: NodeEvent) => void;
  /** Asked first, of every new pod: the shutdown's word. */
  readonly gate: () => Admission;
  /** Asked last, because admitting takes resources: the topology's word. */
  readonly topology: { admit(pod: KubeObject): Admission; release(podUid: string): void };
}

export interface PodLoop {
  /** Until stopped. Pods are left running. */
  run(stop: AbortSignal): Promise<void>;
  /** The pods of this node may have changed. */
  podsChanged(): void;
  /** Pods that run or are about to. */
  activePods(): readonly KubeObject[];
  /**
   * Ends a pod for good. Resolves when nothing of it runs and its status was told, or could not be.
   * @throws Error when it does not end in time.
   */
  killPod(pod: KubeObject, graceSeconds: number, change: (status: PodStatus) => PodStatus): Promise<void>;
  /** Lists, decides and acts once. False when the list, or the Node for an admission, could not be had. */
  sync(stop?: AbortSignal): Promise<boolean>;
  /** Resolves when no step is under way. */
  settled(): Promise<void>;
}

interface Kill {
  graceSeconds: number;
  readonly change: (status: PodStatus) => PodStatus;
  readonly done: PromiseWithResolvers<void>;
}

interface Entry {
  readonly uid: string;
  pod: KubeObject;
  /** In the API's last list. */
  present: boolean;
  admission: 'waiting' | 'admitted' | 'refused';
  /** The runtime was told to start it, by this process. */
  started: boolean;
  /** An agent before this one started it, and nothing was looked at since. */
  adopted: boolean;
  /** The runtime was told to end it, and has. */
  ended: boolean;
  kill?: Kill;
  /** The newest status; undefined before there was one of ours. */
  status?: PodStatus;
  /** The status that the API has from us, as text. */
  told?: string;
  /** The API was told that the pod has ended, on its deletion. */
  confirmed: boolean;
  /** Grace of the stop under way. Seconds. */
  stoppingSeconds?: number;
  /** Containers of which an event was told: their id when they started, or that they wait. */
  readonly seen: Map<string, string>;
  step?: Promise<void>;
  again: boolean;
  failures: number;
  /** On the monotonic clock. Milliseconds. */
  retryAtMs?: number;
}

/** A step could not do its work; it is tried again. */
class StepFailure extends Error {}

const podPath = ({ metadata }: KubeObject): string =>
  `/api/v1/namespaces/${encodeURIComponent(metadata.namespace ?? '')}/pods/${encodeURIComponent(metadata.name ?? '')}`;

const isOver = (status: PodStatus | undefined): boolean =>
  status?.['phase'] === 'Succeeded' || status?.['phase'] === 'Failed';

/** In the order of their starts. */
const containersIn = (found: RunningPod) => [...(found.initContainers ?? []), ...found.containers];

const runsIn = (found: RunningPod | undefined): boolean =>
  found !== undefined && containersIn(found).some(({ state }) => state.kind === 'running');

/** By the states of upstream's metric of running containers. */
function containersByState(found: readonly RunningPod[]): ReadonlyMap<string, number> {
  const counts = new Map([
    ['created', 0],
    ['running', 0],
    ['exited', 0],
  ]);
  const names = { waiting: 'created', running: 'running', terminated: 'exited' } as const;
  for (const { state } of found.flatMap(containersIn)) {
    counts.set(names[state.kind], (counts.get(names[state.kind]) ?? 0) + 1);
  }
  return counts;
}

/** Somebody else wrote another phase or readiness than we told, as the node controller does after a silence. */
function isContradicted(ours: PodStatus | undefined, stored: PodStatus | undefined): boolean {
  if (ours === undefined || stored === undefined) return false;
  if (ours['phase'] !== stored['phase']) return true;
  const conditions = recordsOf(stored['conditions']);
  return recordsOf(ours['conditions']).some(
    (own) => conditions.find((each) => each['type'] === own['type'])?.['status'] !== own['status'],
  );
}

const byAge = (one: KubeObject, other: KubeObject): number =>
  (parseTimeMs(one.metadata.creationTimestamp) ?? 0) - (parseTimeMs(other.metadata.creationTimestamp) ?? 0) ||
  textOf(one.metadata.name).localeCompare(textOf(other.metadata.name));

export function createPodLoop(dependencies: PodLoopDependencies): PodLoop {
  const { nodeName, api, runtime, time, fraction, log, meter, recordEvent } = dependencies;
  const entries = new Map<string, Entry>();
  let wanted = true;
  let wake = new AbortController();
  let stopped: AbortSignal | undefined;

  const fields = ({ pod }: Entry) => ({
    namespace: pod.metadata.namespace,
    pod: pod.metadata.name,
    podUid: pod.metadata.uid,
  });
  const hasNoMoreToRun = (entry: Entry): boolean => hasEnded(entry.pod) || isOver(entry.status);

  // What runs. Steps that ask at the same time share one look, which began after they asked.
  let looking: Promise<readonly RunningPod[]> | undefined;
  let nextLook: Promise<readonly RunningPod[]> | undefined;
  function look(): Promise<readonly RunningPod[]> {
    if (looking === undefined) {
      looking = runtime
        .pods()
        .then((found) => {
          meter.gauge('kubelet_running_pods', found.filter(runsIn).length);
          for (const [state, count] of containersByState(found)) {
            meter.gauge('kubelet_running_containers', count, { container_state: state });
          }
          return found;
        })
        .finally(() => {
          looking = undefined;
        });
      return looking;
    }
    nextLook ??= looking
      .catch(() => [])
      .then(() => {
        nextLook = undefined;
        return look();
      });
    return nextLook;
  }
  const runningOf = async (entry: Entry): Promise<RunningPod | undefined> =>
    (await look()).find(({ uid }) => uid === entry.uid);

  function newEntry(pod: KubeObject, present: boolean): Entry {
    const uid = pod.metadata.uid ?? '';
    const entry: Entry = {
      uid,
      pod,
      present,
      admission: hasEnded(pod) ? 'admitted' : 'waiting',
      started: false,
      adopted: false,
      ended: false,
      confirmed: false,
      seen: new Map(),
      again: false,
      failures: 0,
    };
    entries.set(uid, entry);
    return entry;
  }

  // ---- listing and admission

  async function sync(stop?: AbortSignal): Promise<boolean> {
    wanted = false;
    const list = await listPods(api, nodeName, stop);
    if (list.kind === 'failed') {
      if (!stop?.aborted) log.warn('the pods of this node cannot be listed', { why: list.why });
      const waitMs = list.answer?.kind === 'answered' ? retryAfterWaitMs(list.answer, fraction()) : 0;
      if (waitMs > 0) await time.sleep(waitMs, stop);
      return false;
    }
    const running = await runtime.pods();
    for (const entry of entries.values()) entry.present = false;
    for (const pod of list.pods) {
      const known = entries.get(pod.metadata.uid ?? '');
      if (known === undefined) newEntry(pod, true);
      else {
        Object.assign(known, { pod, present: true });
        if (isContradicted(known.status, pod.status)) delete known.told;
      }
    }
    for (const { uid, namespace, name } of running) {
      if (!entries.has(uid)) newEntry({ metadata: { uid, namespace, name } }, false);
    }
    const decided = await admitNew(running, stop);
    for (const entry of [...entries.values()]) if (isDue(entry)) kick(entry);
    return decided;
  }

  /** A pod that waits to be admitted is left alone, unless it is to end. */
  const isDue = ({ present, admission, pod }: Entry): boolean =>
    !present || admission !== 'waiting' || pod.metadata.deletionTimestamp !== undefined;

  /** False when it could not be decided, because the Node is not known. */
  async function admitNew(running: readonly RunningPod[], stop?: AbortSignal): Promise<boolean> {
    const fresh = [...entries.values()]
      .filter(
        (each) => each.present && each.admission === 'waiting' && each.pod.metadata.deletionTimestamp === undefined,
      )
      .sort((one, other) => byAge(one.pod, other.pod));
    const adopted = fresh.filter(({ uid }) => running.some((each) => each.uid === uid));
    for (const entry of adopted) {
      const verdict = dependencies.topology.admit(entry.pod);
      if (verdict.kind === 'refused')
        log.warn('a pod that runs would not be admitted now', { ...fields(entry), ...verdict });
      entry.admission = 'admitted';
      entry.adopted = true;
    }
    const others = fresh.filter((entry) => !adopted.includes(entry));
    if (others.length === 0) return true;
    const refusal = barred();
    const node = refusal === undefined ? await ownNode(stop) : undefined;
    for (const entry of others) {
      const verdict = refusal ?? (node === undefined ? undefined : judge(entry, node));
      if (verdict === undefined) return false;
      if (verdict.kind === 'refused') refuse(entry, verdict);
      else entry.admission = 'admitted';
    }
    return true;
  }

  /** Why no pod at all is run now; undefined while they may be. */
  function barred(): Refusal | undefined {
    if (runtime.refusal !== undefined) return { kind: 'refused', ...runtime.refusal };
    const verdict = dependencies.gate();
    return verdict.kind === 'refused' ? verdict : undefined;
  }

  async function ownNode(stop?: AbortSignal): Promise<KubeObject | undefined> {
    const answer = await api.send({
      method: 'GET',
      path: nodePath(nodeName),
      ...(stop === undefined ? {} : { signal: stop }),
    });
    const node = answeredWith(answer, 200) ? objectIn(answer) : undefined;
    if (node === undefined && !stop?.aborted)
      log.warn('the Node cannot be read, so no pod is admitted', { why: describeAnswer(answer) });
    return node;
  }

  function judge(entry: Entry, node: KubeObject): Admission {
    const others = [...entries.values()].filter(
      (each) => each !== entry && each.present && each.admission === 'admitted' && !hasNoMoreToRun(each),
    );
    const admission = admitPod({
      pod: entry.pod,
      node,
      others: others.map(({ pod }) => pod),
      operatingSystem: dependencies.operatingSystem,
    });
    return admission.kind === 'refused' ? admission : dependencies.topology.admit(entry.pod);
  }

  function refuse(entry: Entry, { reason, message }: Refusal): void {
    entry.admission = 'refused';
    entry.status = rejectedStatus(entry.pod.status ?? {}, { reason, message }, time.nowMs());
    meter.count('kubelet_admission_rejections_total', { reason });
    recordEvent(entry.pod, { type: 'Warning', reason, message });
    log.info('a pod was refused', { ...fields(entry), reason, message });
  }

  // ---- one pod at a time

  function kick(entry: Entry): void {
    if (entry.step !== undefined) {
      entry.again = true;
      hasten(entry);
      return;
    }
    delete entry.retryAtMs;
    entry.step = steps(entry).finally(() => {
      delete entry.step;
    });
  }

  /** Runs what is due, and again for whoever asked meanwhile. Never rejects. */
  async function steps(entry: Entry): Promise<void> {
    do {
      entry.again = false;
      try {
        await step(entry);
        entry.failures = 0;
      } catch (cause) {
        entry.failures += 1;
        const why = cause instanceof Error ? cause.message : String(cause);
        log.warn('a pod could not be brought where it should be', { ...fields(entry), why, attempt: entry.failures });
        if (entry.failures < STEPS_MAX) {
          entry.retryAtMs = time.monotonicMs() + doublingWaitMs(STEP_WAITS, entry.failures - 1);
          wake.abort();
        } else entry.failures = 0;
      }
    } while (entry.again && !stopped?.aborted);
  }

  /** Seconds the pod may take to end now; undefined while it is to run. The shortest of what is asked for counts. */
  function graceOf(entry: Entry): number | undefined {
    const asked: number[] = [];
    if (entry.kill !== undefined) asked.push(entry.kill.graceSeconds);
    if (entry.pod.metadata.deletionTimestamp !== undefined) asked.push(deletionGraceSeconds(entry.pod));
    if (!entry.present)
      asked.push(entry.pod.spec === undefined ? ORPHAN_GRACE_SECONDS : killRequest(entry.pod, undefined).graceSeconds);
    if (asked.length === 0 && hasNoMoreToRun(entry)) asked.push(killRequest(entry.pod, undefined).graceSeconds);
    return asked.length === 0 ? undefined : Math.min(...asked);
  }

  function hasten(entry: Entry): void {
    const graceSeconds = graceOf(entry);
    if (entry.stoppingSeconds === undefined || graceSeconds === undefined || graceSeconds >= entry.stoppingSeconds)
      return;
    entry.stoppingSeconds = graceSeconds;
    // The stop under way resolves with it, or rejects for both.
    runtime.stop(entry.uid, graceSeconds).catch(() => undefined);
  }

  async function stopContainers(entry: Entry, graceSeconds: number): Promise<void> {
    const found = await runningOf(entry);
    if (found === undefined || (entry.ended && !runsIn(found))) return;
    for (const container of found.containers) {
      if (container.state.kind !== 'running' || !entry.present) continue;
      recordEvent(entry.pod, { type: 'Normal', reason: 'Killing', message: `Stopping container ${container.name}` });
    }
    entry.stoppingSeconds = graceSeconds;
    try {
      await runtime.stop(entry.uid, graceSeconds);
      entry.ended = true;
    } finally {
      delete entry.stoppingSeconds;
    }
  }

  async function step(entry: Entry): Promise<void> {
    if (entries.get(entry.uid) !== entry) return;
    const graceSeconds = graceOf(entry);
    if (graceSeconds === undefined) return keepRunning(entry);
    if (entry.admission === 'refused' && entry.present) await tellStatus(entry);
    else await stopContainers(entry, graceSeconds);
    // This process ends, and leaves everything as it is.
    if (stopped?.aborted) return;
    if (!entry.present) return forget(entry);
    if (entry.kill !== undefined) return endKilled(entry, entry.kill);
    if (entry.pod.metadata.deletionTimestamp !== undefined) return confirmDeletion(entry);
    if (entry.status !== undefined) await tellStatus(entry);
  }

  async function keepRunning(entry: Entry): Promise<void> {
    if (entry.admission !== 'admitted') return;
    if (!entry.started) {
      await startPod(entry);
      entry.started = true;
    }
    const found = await runningOf(entry);
    tellContainers(entry, found);
    entry.adopted = false;
    entry.status = statusOf(entry, found, entry.pod);
    // Sidecars outlive the rest; with the rest over they end too, before the status says so.
    if (isOver(entry.status) && runsIn(found)) entry.again = true;
    else await tellStatus(entry);
  }

  async function startPod(entry: Entry): Promise<void> {
    meter.count('kubelet_started_pods_total');
    try {
      await runtime.start(entry.pod);
      entry.ended = false;
    } catch (cause) {
      meter.count('kubelet_started_pods_errors_total');
      const message = `Error starting pod: ${(cause as Error).message}`;
      recordEvent(entry.pod, { type: 'Warning', reason: 'FailedSync', message });
      throw cause;
    }
  }

  const statusOf = (entry: Entry, running: RunningPod | undefined, pod: KubeObject): PodStatus =>
    podStatusOf({
      pod,
      running,
      before: entry.status ?? entry.pod.status ?? {},
      nowMs: time.nowMs(),
      hostIp: dependencies.hostIp(),
    });

  /** Nothing starts again: whatever its policy, the pod has ended with its containers. */
  const lastStatusOf = async (entry: Entry): Promise<PodStatus> =>
    statusOf(entry, await runningOf(entry), { ...entry.pod, spec: { ...entry.pod.spec, restartPolicy: 'Never' } });

  function tellContainers(entry: Entry, found: RunningPod | undefined): void {
    for (const { name, state, containerId = '' } of found === undefined ? [] : containersIn(found)) {
      const waits =
        state.kind === 'waiting' && state.reason !== 'ContainerCreating' && state.reason !== 'PodInitializing';
      if (state.kind === 'running' && entry.seen.get(name) !== containerId) {
        entry.seen.set(name, containerId);
        // Of one that was found running the agent before has told.
        if (!entry.adopted) {
          recordEvent(entry.pod, { type: 'Normal', reason: 'Started', message: `Started container ${name}` });
        }
      }
      if (!waits || entry.seen.get(name) === `${containerId}?`) continue;
      entry.seen.set(name, `${containerId}?`);
      const { reason, message = '' } = state;
      const text = reason === 'CrashLoopBackOff' ? `Back-off restarting failed container ${name}` : `Error: ${message}`;
      recordEvent(entry.pod, {
        type: 'Warning',
        reason: reason === 'CrashLoopBackOff' ? 'BackOff' : 'Failed',
        message: text,
      });
    }
  }

  async function endKilled(entry: Entry, kill: Kill): Promise<void> {
    if (!isOver(entry.status)) {
      // It was made to end, however well its containers took it.
      entry.status = { ...(entry.status ?? entry.pod.status), phase: 'Failed' };
      entry.status = kill.change(await lastStatusOf(entry));
    }
    try {
      await tellStatus(entry, LAST_WORD_MS);
    } finally {
      kill.done.resolve();
    }
    if (entry.pod.metadata.deletionTimestamp !== undefined) await confirmDeletion(entry);
  }

  async function confirmDeletion(entry: Entry): Promise<void> {
    if (entry.confirmed) return;
    // Whoever holds the pod back wants to know how it ended; for the others its end is at hand.
    if (entry.admission === 'admitted' && (entry.pod.metadata.finalizers ?? []).length > 0 && !hasEnded(entry.pod)) {
      entry.status = isOver(entry.status) ? (entry.status as PodStatus) : await lastStatusOf(entry);
      await tellStatus(entry);
    }
    const answer = await api.send({
      method: 'DELETE',
      path: podPath(entry.pod),
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        gracePeriodSeconds: 0,
        preconditions: { uid: entry.uid },
      },
    });
    // 404 and 409: that pod is gone already, and maybe another one has its name.
    if (!answeredWith(answer, 200, 202, 404, 409)) throw new StepFailure(`delete: ${describeAnswer(answer)}`);
    entry.confirmed = true;
    const left = objectIn(answer);
    if (answeredWith(answer, 202) || (left?.metadata.uid === entry.uid && (left.metadata.finalizers ?? []).length > 0))
      return;
    entry.present = false;
    await forget(entry);
  }

  async function forget(entry: Entry): Promise<void> {
    await runtime.remove(entry.uid);
    dependencies.topology.release(entry.uid);
    entry.kill?.done.resolve();
    entries.delete(entry.uid);
  }

  async function tellStatus(entry: Entry, timeoutMs?: number): Promise<void> {
    const { status } = entry;
    const text = JSON.stringify(status);
    if (status === undefined || entry.told === text) return;
    const answer = await api.send({
      method: 'PATCH',
      path: `${podPath(entry.pod)}/status`,
      // The uid keeps this from another pod of the same name.
      body: { metadata: { uid: entry.uid }, status },
      contentType: 'application/strategic-merge-patch+json',
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    if (answeredWith(answer, 200)) {
      entry.told = text;
      return;
    }
    if (answeredWith(answer, 404, 409)) podsChanged();
    throw new StepFailure(`status: ${describeAnswer(answer)}`);
  }

  function podsChanged(): void {
    wanted = true;
    wake.abort();
  }

  // ---- the loop

  runtime.onChange((podUid) => {
    const entry = entries.get(podUid);
    if (entry !== undefined && (entry.started || entry.kill !== undefined) && !stopped?.aborted) kick(entry);
  });

  async function run(stop: AbortSignal): Promise<void> {
    stopped = stop;
    let failures = 0;
    let listAtMs = time.monotonicMs();
    while (!stop.aborted) {
      wake = new AbortController();
      if ((wanted && failures === 0) || time.monotonicMs() >= listAtMs) {
        const done = await sync(stop).catch((cause: unknown) => {
          log.error('the pods of this node could not be looked after', { cause: String(cause) });
          return false;
        });
        failures = done ? 0 : failures + 1;
        const everyMs = entries.size > 0 ? LIST_EVERY_MS : LIST_WITHOUT_PODS_MS;
        const waitMs = done ? everyMs * (1 + LIST_JITTER * fraction()) : doublingWaitMs(LIST_WAITS, failures - 1);
        listAtMs = time.monotonicMs() + waitMs;
      }
      const nowMs = time.monotonicMs();
      let nextMs = listAtMs;
      for (const entry of [...entries.values()]) {
        if (entry.retryAtMs === undefined) continue;
        if (entry.retryAtMs <= nowMs) kick(entry);
        else nextMs = Math.min(nextMs, entry.retryAtMs);
      }
      if (stop.aborted || (wanted && failures === 0)) continue;
      await time.sleep(Math.max(0, nextMs - time.monotonicMs()), AbortSignal.any([stop, wake.signal]));
    }
  }

  async function settled(): Promise<void> {
    await Promise.all([...entries.values()].map(({ step: under }) => under));
  }

  return {
    run,
    sync,
    settled,
    podsChanged,
    activePods: () =>
      [...entries.values()]
        .filter((entry) => entry.present && entry.admission === 'admitted' && !hasNoMoreToRun(entry) && !entry.kill)
        .map(({ pod }) => pod),
    async killPod(pod, graceSeconds, change) {
      const entry = entries.get(pod.metadata.uid ?? '');
      if (entry === undefined || hasNoMoreToRun(entry)) return;
      const { giveUpAfterSeconds } = killRequest(pod, graceSeconds);
      if (entry.kill === undefined) entry.kill = { graceSeconds, change, done: Promise.withResolvers<void>() };
      else entry.kill.graceSeconds = Math.min(entry.kill.graceSeconds, graceSeconds);
      kick(entry);
      const over = new AbortController();
      const ended = entry.kill.done.promise.then(() => true);
      const gaveUp = time.sleep(giveUpAfterSeconds * 1_000, over.signal).then(() => false);
      const inTime = await Promise.race([ended, gaveUp]);
      over.abort();
      if (!inTime) throw new Error('timeout waiting to kill pod');
    },
  };
}
