/**
 * Taint eviction of one node's pods (rule.ts), triggered by a change of a taint or a pod, or by a timer. Evaluates the
 * current state, so a late or repeated call finds nothing to do.
 *
 * A change of taints and a due timer concern all pods of the node. A change of a pod concerns that pod alone: it does
 * not change what is decided about another one. So n changes of pods of one node read n pods, not n².
 *
 * Order: events of cancelled evictions, deletion of pods, then timers. A process that dies half-way leaves a timer that
 * is due again for a pod that is already terminating, never a pod without its timer.
 *
 * A pod that must not run twice (offline-stop.ts) is removed after its mark: the mark is a change of the pod, and sets
 * the timer of the removal. The digest of the node is read only for such a pod: one read unit or less. Why the removal
 * never overtakes the machine:
 *
 * - Only nodekeeper-agent stops such a pod, so one on a machine with a kubelet stays. The version is of the Node that
 *   the removal requires.
 * - The removal is one transaction. It requires that the Node and the signs of life in its row are those of the
 *   decision (podRemoved).
 * - A beat that is stored before the removal refuses it, however stale the read was. The next decision is for later.
 * - A beat that is stored after the removal comes from a machine without an answer for the whole time. So the machine
 *   has stopped the pod, for good. The answer reports that its pods changed, and the pod is no longer listed.
 * - Of two processes that remove a pod at once, the second finds it deleted, or marked with a grace period of 0.
 * - A process that dies before the commit has changed nothing. One that dies after it leaves a timer without a pod.
 * - The timer is set by whatever comes last: the mark, the taint, or the silence (evictionWorks in object-stream).
 */

import type { TickMark } from '../decisions/ledger.ts';
import { defined } from '../defined.ts';
import { type PendingEvent, recordEvents, subjectOf } from '../events/record-event.ts';
import { offlineStoppedAtMs } from '../kinds/pods/offline-stop.ts';
import { siteHubOf } from '../kinds/pods/site-permit.ts';
import type { KubeNode, KubePod } from '../kinds/types.ts';
import type { Toleration } from '../kubernetes/kubernetes.ts';
import { itemBytes, type PutWrite, StoreFault, type TransactWrite } from '../store/item-store.ts';
import { resourceVersionOf } from '../store/object-record.ts';
import type { BoundPod } from '../store/object-store.ts';
import { inPartsOfBytes } from '../ticks/bounded-work.ts';
import type { WorkDependencies } from '../ticks/dependencies.ts';
import type { TickGapPolicy } from '../ticks/tick.ts';
import { deletePod, type PodDeletion, waitsForMachine } from './delete-pod.ts';
import {
  decidePodEvictions,
  type EvictablePod,
  type EvictionTimer,
  type EvictionWorld,
  type PodEvictionDecision,
} from './eviction.rule.ts';
import { type PodEvictorDraft, podEvictionDraft } from './eviction-decisions.ts';
import * as metric from './eviction-metrics.ts';
import { type NodeSigns, unnoticedStepMs } from './eviction-time.rule.ts';
import {
  type EvictionTimerStore,
  earliestTimers,
  evictionTimerStore,
  type NodeTimers,
  TIMERS_ALONG_MAX,
} from './eviction-timer-store.ts';
import type { FleetState } from './fleet-store.ts';
import { gateVerdictFor } from './gate.ts';
import { runsAgent } from './nodes/agent-version.ts';
import { nodeRef, nodeUnchanged } from './nodes/change-node.ts';
import type { NodeHealth } from './nodes/health.ts';
import { podRemoved, readHealth } from './nodes/health-store.ts';
import { PROFILE_ANNOTATION, policyOf } from './nodes/node-profile.ts';
import { reportUnwritable } from './nodes/report-unwritable.ts';
import { type NoExecuteTaint, noExecuteTaints } from './nodes/taint.ts';
import type { Policy } from './policy.ts';

const ATTEMPTS_MAX = 6;
/** Limit of the decision records that share a transaction with timers; all parts of the timers may change. Bytes. */
const RECORDS_BYTES_MAX = 1_000_000;
/** Pods deleted in one call: a node with thousands of due pods must not block a worker for the other nodes. */
export const DELETIONS_PER_CALL_MAX = 100;

/** @throws TypeError when its stored tolerations are malformed */
function evictablePod(
  { pod, boundAtMs }: { readonly pod: KubePod } & Pick<BoundPod, 'boundAtMs'>,
  node: KubeNode | undefined,
  policy: TickGapPolicy,
): EvictablePod {
  const tolerations: unknown = pod.spec?.tolerations ?? [];
  if (!Array.isArray(tolerations) || tolerations.some((each) => typeof each !== 'object' || each === null)) {
    throw new TypeError(`tolerations of pod ${pod.metadata.namespace}/${pod.metadata.name} cannot be read`);
  }
  const isStoppedOffline =
    node !== undefined && runsAgent(node) && waitsForMachine(pod) && siteHubOf(pod) === undefined;
  const offlineStopMs = isStoppedOffline ? offlineStoppedAtMs(pod, unnoticedStepMs(policy)) : undefined;
  return {
    namespace: pod.metadata.namespace ?? '',
    name: pod.metadata.name ?? '',
    uid: pod.metadata.uid ?? '',
    nodeName: pod.spec?.nodeName,
    boundAtMs,
    tolerations: tolerations as Toleration[],
    terminating: pod.metadata.deletionTimestamp !== undefined,
    ...defined({ offlineStopMs, siteHub: siteHubOf(pod) }),
  };
}

/**
 * @throws StoreFault when the node's timers kept changing. @throws AggregateError with the faults of single pods, after
 * the other pods were processed. Calling again is safe.
 */
export async function evictPods(
  dependencies: WorkDependencies,
  nodeName: string,
  at: {
    readonly nowMs: number;
    readonly state: FleetState;
    readonly tick?: TickMark;
    /** `NAMESPACE/NAME` of the pods that changed. Undefined: all pods of the node. */
    readonly changed?: ReadonlySet<string>;
  },
): Promise<void> {
  const { objects, items, policy } = dependencies;
  const timerStore = evictionTimerStore(items);
  const { nowMs, state, changed } = at;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const [before, node]: [NodeTimers, KubeNode | undefined] = await Promise.all([
      timerStore.read(nodeName),
      objects.get(nodeRef(nodeName)),
    ]);
    const taints: readonly NoExecuteTaint[] | undefined =
      node === undefined ? undefined : noExecuteTaints(node.spec?.taints ?? []);
    if (before.timers.length === 0 && (taints === undefined || taints.length === 0)) return;
    const bound = taints === undefined ? [] : await objects.listBound(nodeName, changed);
    const pods = bound.map(({ pod }) => pod);
    const faults: unknown[] = [];
    const evictable = bound.flatMap((each) => {
      try {
        return [evictablePod(each, node, policy)];
      } catch (fault) {
        faults.push(fault);
        return [];
      }
    });
    const health = evictable.some(({ offlineStopMs }) => offlineStopMs !== undefined)
      ? (await readHealth(dependencies.items, [nodeName])).get(nodeName)
      : undefined;
    const world: EvictionWorld = {
      nodeName,
      taints,
      pods: evictable,
      timers: before.timers.filter(({ namespace, name }) => changed?.has(`${namespace}/${name}`) !== false),
      gate: gateVerdictFor(state.gate, { nowMs, policy }),
      freshSinceMs: state.gate.freshSinceMs,
      ...(state.disruption.total && { totalDisruption: true }),
      signs: health && signsOf(health),
    };
    const ofNode = policyOf(policy, node?.metadata.annotations?.[PROFILE_ANNOTATION]);
    const decisions = decidePodEvictions(world, nowMs, ofNode);
    const draft = draftsOf(ofNode, world, nowMs);
    const record = (decision: PodEvictionDecision): PutWrite => dependencies.ledger.write(draft(decision), at.tick);
    // Pods are deleted only while the Node exists and is unchanged.
    const guard = nodeUnchanged(nodeName, node === undefined ? 0 : resourceVersionOf(node));
    const changes = await applyDecisions(dependencies, decisions, pods, {
      world,
      before,
      nowMs,
      record,
      draft,
      guard,
      health,
      faults,
    });
    if (changes === 'changed') continue;
    if (changes !== undefined && !(await replaceTimers(timerStore, before, changes))) continue;
    if (faults.length > 0) throw new AggregateError(faults, `pods of node ${nodeName} could not be evicted`);
    return;
  }
  throw new StoreFault('throttled', 'a node or its eviction timers kept changing', { retryable: true });
}

/** The part of the digest that is recorded with a decision. */
const signsOf = ({ ready, createdAtMs, renewedAtMs, statusAtMs }: NodeHealth): NodeSigns => ({
  createdAtMs,
  ...defined({ ready, renewedAtMs, statusAtMs }),
});

/** Builds drafts of decision records over this world. A timer belongs to the pod's uid. */
function draftsOf(
  policy: Policy,
  world: EvictionWorld,
  nowMs: number,
): (decision: PodEvictionDecision) => PodEvictorDraft {
  const pods = new Map(world.pods.map((pod) => [pod.uid, pod]));
  const timers = new Map(world.timers.map((timer) => [timer.podUid, timer]));
  return (decision) => {
    const of = { pod: pods.get(decision.podUid), timer: timers.get(decision.podUid) };
    return podEvictionDraft(decision, { ...world, ...of }, nowMs, policy);
  };
}

/** The new timers and the records of their changes. */
interface TimerChanges {
  readonly timers: ReadonlyMap<string, EvictionTimer>;
  readonly records: readonly { readonly podUid: string; readonly write: PutWrite }[];
}

/** Replaces the timers in as many transactions as the records need. False when another process changed them. */
async function replaceTimers(
  store: EvictionTimerStore,
  before: NodeTimers,
  { timers, records }: TimerChanges,
): Promise<boolean> {
  let current = before;
  // A timer that does not fit is decided again later, and recorded when it is stored.
  const kept = earliestTimers([...timers.values()]);
  const isKept = new Set(kept.map(({ podUid }) => podUid));
  const recorded =
    kept.length === timers.size ? records : records.filter(({ podUid }) => isKept.has(podUid) || !timers.has(podUid));
  const sized = inPartsOfBytes(recorded, TIMERS_ALONG_MAX, RECORDS_BYTES_MAX, ({ write }) => itemBytes(write.item));
  for (const part of sized.length === 0 ? [[]] : sized) {
    const isLast = part.length === 0 || part.at(-1) === recorded.at(-1);
    const changed = new Set(part.map(({ podUid }) => podUid));
    const others = current.timers.filter(({ podUid }) => !changed.has(podUid));
    const next = isLast ? kept : [...others, ...kept.filter(({ podUid }) => changed.has(podUid))];
    const outcome = await store.replace(
      current,
      next,
      part.map(({ write }) => write),
    );
    if (outcome === 'conflict') return false;
    if (!isLast) current = await store.read(before.nodeName);
  }
  return true;
}

interface EvictionPass {
  readonly world: EvictionWorld;
  /** The timers of all pods of the node. */
  readonly before: NodeTimers;
  readonly nowMs: number;
  readonly record: (decision: PodEvictionDecision) => PutWrite;
  readonly draft: (decision: PodEvictionDecision) => PodEvictorDraft;
  readonly guard: TransactWrite;
  /** The digest that removals were decided on. */
  readonly health: NodeHealth | undefined;
  /** Collects the faults of single pods. */
  readonly faults: unknown[];
}

/** The timers and records of one pass, as its decisions change them. */
class TimerPlan {
  readonly timers: Map<string, EvictionTimer>;
  readonly records: { podUid: string; write: PutWrite }[] = [];
  changed = false;
  readonly #record: EvictionPass['record'];

  constructor({ before, record }: EvictionPass) {
    this.timers = new Map(before.timers.map((timer) => [timer.podUid, timer]));
    this.#record = record;
  }

  set({ namespace, name, podUid }: PodEvictionDecision, atMs: number): void {
    this.timers.set(podUid, { namespace, name, podUid, atMs });
    this.changed = true;
  }

  remove({ podUid }: PodEvictionDecision): void {
    this.timers.delete(podUid);
    this.changed = true;
  }

  recordDecision(decision: PodEvictionDecision): void {
    this.records.push({ podUid: decision.podUid, write: this.#record(decision) });
  }
}

/** The timers to store; undefined when they do not change. 'changed': the Node or a pod changed, decide again. */
async function applyDecisions(
  dependencies: WorkDependencies,
  decisions: readonly PodEvictionDecision[],
  pods: readonly KubePod[],
  pass: EvictionPass,
): Promise<TimerChanges | 'changed' | undefined> {
  const plan = new TimerPlan(pass);
  const podsByUid = new Map(pods.map((pod) => [pod.metadata.uid ?? '', pod]));
  const events: PendingEvent[] = [];
  let deletions = 0;
  for (const decision of decisions) {
    const pod = podsByUid.get(decision.podUid);
    const timer = plan.timers.get(decision.podUid);
    switch (decision.kind) {
      case 'schedule':
      case 'move':
        plan.set(decision, decision.atMs);
        plan.recordDecision(decision);
        break;
      case 'hold':
        if (decision.timerExists) break;
        plan.set(decision, decision.atMs);
        plan.recordDecision(decision);
        break;
      case 'leave':
        await dependencies.ledger.recordOnce(pass.draft(decision), { atMs: decision.atMs, key: decision.podUid });
        break;
      case 'cancel':
        if (pod !== undefined) {
          events.push({ ...decision.event, about: subjectOf('Pod', pod), once: `cancel ${timer?.atMs ?? ''}` });
        }
        plan.remove(decision);
        plan.recordDecision(decision);
        break;
      case 'drop':
        plan.remove(decision);
        if (decision.isRecorded) plan.recordDecision(decision);
        break;
      case 'delete':
      case 'remove':
        if (pod === undefined) break;
        deletions += 1;
        if (deletions > DELETIONS_PER_CALL_MAX) {
          if (timer === undefined) plan.set(decision, pass.nowMs);
          break;
        }
        if ((await evictPod(dependencies, decision, pod, plan, pass)) === 'changed') return 'changed';
    }
  }
  if (events.length > 0) await recordEvents(dependencies, events, pass.nowMs);
  return plan.changed ? { timers: plan.timers, records: plan.records } : undefined;
}

/** Deletes or removes one due pod. Its timer stays while the deletion failed or was contended. */
async function evictPod(
  dependencies: WorkDependencies,
  decision: Extract<PodEvictionDecision, { kind: 'delete' | 'remove' }>,
  pod: KubePod,
  plan: TimerPlan,
  { nowMs, guard, health, record, faults }: EvictionPass,
): Promise<'settled' | 'changed'> {
  const { meter, log } = dependencies;
  const timer = plan.timers.get(decision.podUid);
  const isRemoval = decision.kind === 'remove';
  const event = { ...decision.event, about: subjectOf('Pod', pod), once: isRemoval ? 'removal' : 'marking' };
  let outcome: PodDeletion;
  try {
    outcome = await deletePod(dependencies, pod, {
      condition: isRemoval ? undefined : decision.condition,
      event,
      nowMs,
      guards: isRemoval && health !== undefined ? [guard, podRemoved(health)] : [guard],
      record: record(decision),
    });
  } catch (fault) {
    // A fault of one pod: the pods after it are processed, and its timer is due again at the next tick.
    faults.push(fault);
    if (timer === undefined) plan.set(decision, nowMs);
    return 'settled';
  }
  switch (outcome.kind) {
    case 'changed':
      return 'changed';
    case 'contended':
      plan.set(decision, timer?.atMs ?? nowMs);
      return 'settled';
    case 'tooLarge':
      await reportUnwritable(dependencies, { kind: 'Pod', object: pod, what: 'mark the pod for deletion', nowMs });
      break;
    case 'deleted':
      meter.add(isRemoval ? metric.POD_REMOVALS : metric.POD_DELETIONS, 1, 'Count');
      log.info(isRemoval ? 'terminating pod removed from a silent node' : 'pod deleted by taint eviction', {
        pod: `${decision.namespace}/${decision.name}`,
        reason: decision.reason,
        lateMs: timer === undefined ? 0 : Math.max(0, nowMs - timer.atMs),
      });
      break;
    case 'absent':
      break;
  }
  if (timer !== undefined) plan.remove(decision);
  return 'settled';
}
