/**
 * Taint eviction of one node's pods (domain/pod-eviction.ts), whatever gave rise to it: a taint, a pod or a timer. Always
 * over the whole node as it stands, so a late or repeated call finds nothing to do.
 *
 * Order: pods are deleted first and timers written after, events of cancelled ones before. So a process that dies on the
 * way leaves a timer that is due again and a pod that is terminating already, never a pod nobody remembers.
 */

import type { Toleration } from '../../domain/kubernetes.ts';
import type { NoExecuteTaint } from '../../domain/nodes/taint-times.ts';
import { noExecuteTaints } from '../../domain/nodes/taint-times.ts';
import { gateVerdictFor } from '../../domain/zones/gate.ts';
import type { KubeNode, KubeObject } from '../../kube/types.ts';
import { itemBytes } from '../../ports/item-size.ts';
import { type CheckWrite, type PutWrite, StoreFault } from '../../ports/item-store.ts';
import type { FleetState } from '../../store/fleet-store.ts';
import { resourceVersionOf } from '../../store/object-record.ts';
import type { BoundPod } from '../../store/object-store.ts';
import { podEvictionNote } from '../decisions/decision-notes.ts';
import { inPartsOfBytes } from '../framework/bounded-work.ts';
import { nodeRef, nodeUnchanged } from '../framework/change-node.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import type { TickMark } from '../framework/ledger.ts';
import * as metric from '../framework/metric-names.ts';
import { type EventToTell, recordEvents, subjectOf } from '../framework/record-event.ts';
import { reportUnwritable } from '../framework/report-unwritable.ts';
import { deletePod, type PodDeletion } from './delete-pod.ts';
import {
  decidePodEvictions,
  type EvictablePod,
  type EvictionTimer,
  type EvictionWorld,
  type PodEvictionDecision,
} from './rule.ts';
import { type EvictionTimerStore, earliestTimers, type NodeTimers, TIMERS_ALONG_MAX } from './timer-store.ts';

const ATTEMPTS_MAX = 6;
/** Records that are stored in one transaction with timers, of which all parts may change. Bytes. */
const RECORDS_BYTES_MAX = 1_000_000;
/** Pods of one node deleted in one call: a node with thousands due does not keep a worker from the other nodes. */
export const DELETIONS_A_CALL_MAX = 100;

/** @throws TypeError when what is stored of it cannot be read */
function evictablePod({ pod, boundAtMs }: BoundPod): EvictablePod {
  const tolerations = pod.spec?.['tolerations'] ?? [];
  if (!Array.isArray(tolerations) || tolerations.some((each) => typeof each !== 'object' || each === null)) {
    throw new TypeError(`tolerations of pod ${pod.metadata.namespace}/${pod.metadata.name} cannot be read`);
  }
  return {
    namespace: pod.metadata.namespace ?? '',
    name: pod.metadata.name ?? '',
    uid: pod.metadata.uid ?? '',
    nodeName: pod.spec?.['nodeName'] as string | undefined,
    boundAtMs,
    tolerations: tolerations as Toleration[],
    terminating: pod.metadata.deletionTimestamp !== undefined,
  };
}

/**
 * @throws StoreFault when others kept changing the node's timers, AggregateError of what single pods failed for, after the others
 * were dealt with; calling again is safe.
 */
export async function evictPods(
  dependencies: ControllerDependencies,
  nodeName: string,
  at: { readonly nowMs: number; readonly state: FleetState; readonly tick?: TickMark },
): Promise<void> {
  const { objects, timers: timerStore, policy } = dependencies;
  const { nowMs, state } = at;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const [before, node] = await Promise.all([timerStore.read(nodeName), objects.get(nodeRef(nodeName))]);
    const taints: readonly NoExecuteTaint[] | undefined =
      node === undefined ? undefined : noExecuteTaints((node as KubeNode).spec?.taints ?? []);
    if (before.timers.length === 0 && (taints === undefined || taints.length === 0)) return;
    const bound = taints === undefined ? [] : await objects.listBound(nodeName);
    // Before anything is decided: the next decision has to find the same time.
    await objects.keepBindings(nodeName, bound);
    const pods = bound.map(({ pod }) => pod);
    const faults: unknown[] = [];
    const world: EvictionWorld = {
      nodeName,
      taints,
      pods: bound.flatMap((each) => {
        try {
          return [evictablePod(each)];
        } catch (fault) {
          faults.push(fault);
          return [];
        }
      }),
      timers: before.timers,
      gate: gateVerdictFor(state.gate, { nowMs, policy }),
      freshSinceMs: state.gate.freshSinceMs,
    };
    const decisions = decidePodEvictions(world, nowMs, policy);
    const record = recorderOf(dependencies, world, nowMs, at.tick);
    // Only pods of a Node that is there are deleted.
    const guard = nodeUnchanged(nodeName, node === undefined ? 0 : resourceVersionOf(node));
    const changes = await applyDecisions(dependencies, decisions, pods, { world, nowMs, record, guard, faults });
    if (changes === 'changed') continue;
    if (changes !== undefined && !(await replaceTimers(timerStore, before, changes))) continue;
    if (faults.length > 0) throw new AggregateError(faults, `pods of node ${nodeName} could not be evicted`);
    return;
  }
  throw new StoreFault('throttled', 'a node or its eviction timers kept changing', { retryable: true });
}

/** Records of decisions over this world. The timer is known by the pod's uid. */
function recorderOf(
  { ledger, policy }: ControllerDependencies,
  world: EvictionWorld,
  nowMs: number,
  tick: TickMark | undefined,
): (decision: PodEvictionDecision) => PutWrite {
  const pods = new Map(world.pods.map((pod) => [pod.uid, pod]));
  const timers = new Map(world.timers.map((timer) => [timer.podUid, timer]));
  return (decision) => {
    const of = { pod: pods.get(decision.podUid), timer: timers.get(decision.podUid) };
    return ledger.write(podEvictionNote(decision, { ...world, ...of }, nowMs, policy), tick);
  };
}

/** What the timers come to, and the records that belong to it. */
interface TimerChanges {
  readonly timers: ReadonlyMap<string, EvictionTimer>;
  readonly records: readonly { readonly podUid: string; readonly write: PutWrite }[];
}

/** In as many steps as the records need, each with its own timers. False when others were at it too. */
async function replaceTimers(
  store: EvictionTimerStore,
  before: NodeTimers,
  { timers, records }: TimerChanges,
): Promise<boolean> {
  let current = before;
  // What is not stored for lack of room is decided again, and recorded when it is.
  const kept = earliestTimers([...timers.values()]);
  const isKept = new Set(kept.map(({ podUid }) => podUid));
  const told =
    kept.length === timers.size ? records : records.filter(({ podUid }) => isKept.has(podUid) || !timers.has(podUid));
  const sized = inPartsOfBytes(told, TIMERS_ALONG_MAX, RECORDS_BYTES_MAX, ({ write }) => itemBytes(write.item));
  for (const part of sized.length === 0 ? [[]] : sized) {
    const isLast = part.length === 0 || part.at(-1) === told.at(-1);
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

/** The timers as they are to be stored; undefined when they stay as they are. 'changed': what is left must be decided again. */
async function applyDecisions(
  dependencies: ControllerDependencies,
  decisions: readonly PodEvictionDecision[],
  pods: readonly KubeObject[],
  {
    world,
    nowMs,
    record,
    guard,
    faults,
  }: {
    readonly world: EvictionWorld;
    readonly nowMs: number;
    readonly record: (decision: PodEvictionDecision) => PutWrite;
    readonly guard: CheckWrite;
    /** Gets what single pods fail for. */
    readonly faults: unknown[];
  },
): Promise<TimerChanges | 'changed' | undefined> {
  const { meter, log } = dependencies;
  const timers = new Map(world.timers.map((timer) => [timer.podUid, timer]));
  const records: { podUid: string; write: PutWrite }[] = [];
  const note = (decision: PodEvictionDecision): void => {
    records.push({ podUid: decision.podUid, write: record(decision) });
  };
  const podsByUid = new Map(pods.map((pod) => [pod.metadata.uid ?? '', pod]));
  const told: EventToTell[] = [];
  let changed = false;
  let deletions = 0;
  const keep = ({ namespace, name, podUid }: PodEvictionDecision, atMs: number): void => {
    timers.set(podUid, { namespace, name, podUid, atMs });
    changed = true;
  };
  for (const decision of decisions) {
    const pod = podsByUid.get(decision.podUid);
    const timer = timers.get(decision.podUid);
    switch (decision.kind) {
      case 'schedule':
      case 'move':
        keep(decision, decision.atMs);
        note(decision);
        break;
      case 'hold':
        if (decision.timerExists) break;
        keep(decision, decision.atMs);
        note(decision);
        break;
      case 'cancel':
        if (pod !== undefined) {
          told.push({ ...decision.event, about: subjectOf('Pod', pod), once: `cancel ${timer?.atMs ?? ''}` });
        }
        timers.delete(decision.podUid);
        note(decision);
        changed = true;
        break;
      case 'drop':
        timers.delete(decision.podUid);
        // That a pod which is gone or going has no timer any more is nothing that was decided.
        if (world.taints === undefined) note(decision);
        changed = true;
        break;
      case 'delete': {
        if (pod === undefined) break;
        deletions += 1;
        if (deletions > DELETIONS_A_CALL_MAX) {
          if (timer === undefined) keep(decision, nowMs);
          break;
        }
        const event = { ...decision.event, about: subjectOf('Pod', pod), once: 'marking' };
        let outcome: PodDeletion;
        try {
          const { condition } = decision;
          outcome = await deletePod(dependencies, pod, { condition, event, nowMs, guard, record: record(decision) });
        } catch (fault) {
          // Its own: the pods after it have their turn, and its timer brings it back at the next tick.
          faults.push(fault);
          if (timer === undefined) keep(decision, nowMs);
          break;
        }
        if (outcome.kind === 'tooLarge') {
          await reportUnwritable(dependencies, { kind: 'Pod', object: pod, what: 'mark the pod for deletion', nowMs });
        }
        if (outcome.kind === 'changed') return 'changed';
        if (outcome.kind === 'contended') {
          keep(decision, timer?.atMs ?? nowMs);
          break;
        }
        if (outcome.kind === 'deleted') {
          meter.add(metric.POD_DELETIONS, 1, 'Count');
          log.info('a pod is deleted by taint eviction', {
            pod: `${decision.namespace}/${decision.name}`,
            reason: decision.reason,
            lateMs: timer === undefined ? 0 : Math.max(0, nowMs - timer.atMs),
          });
        }
        if (timers.delete(decision.podUid)) changed = true;
      }
    }
  }
  if (told.length > 0) await recordEvents(dependencies, told, nowMs);
  return changed ? { timers, records } : undefined;
}
