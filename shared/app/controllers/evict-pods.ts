/**
 * Taint eviction of one node's pods (domain/pod-eviction.ts), whatever gave rise to it: a taint, a pod or a timer. Always
 * over the whole node as it stands, so a late or repeated call finds nothing to do.
 *
 * Order: pods are deleted first and timers written after, events of cancelled ones before. So a process that dies on the
 * way leaves a timer that is due again and a pod that is terminating already, never a pod nobody remembers.
 */
import type { NoExecuteTaint } from '../../domain/eviction-timer.ts';
import { noExecuteTaints } from '../../domain/eviction-timer.ts';
import { gateVerdictFor } from '../../domain/gate.ts';
import type { Toleration } from '../../domain/kubernetes.ts';
import {
  decidePodEvictions,
  type EvictablePod,
  type EvictionTimer,
  type PodEvictionDecision,
} from '../../domain/pod-eviction.ts';
import { parseTimeMs } from '../../kube/time.ts';
import type { KubeNode, KubeObject } from '../../kube/types.ts';
import { StoreFault } from '../../ports/item-store.ts';
import type { FleetState } from '../../store/fleet-store.ts';
import { nodeRef } from './change-node.ts';
import { deletePod } from './delete-pod.ts';
import type { ControllerDependencies } from './dependencies.ts';
import * as metric from './metric-names.ts';
import { type EventToTell, recordEvents, subjectOf } from './record-event.ts';

const ATTEMPTS_MAX = 6;

interface PodCondition {
  readonly type?: string;
  readonly status?: string;
  readonly lastTransitionTime?: string | null;
}

function evictablePod(pod: KubeObject): EvictablePod {
  const nodeName = pod.spec?.['nodeName'] as string | undefined;
  const scheduled = ((pod.status?.['conditions'] as PodCondition[] | undefined) ?? []).find(
    (condition) => condition.type === 'PodScheduled' && condition.status === 'True',
  );
  const createdAtMs = parseTimeMs(pod.metadata.creationTimestamp);
  return {
    namespace: pod.metadata.namespace ?? '',
    name: pod.metadata.name ?? '',
    uid: pod.metadata.uid ?? '',
    nodeName,
    boundAtMs:
      nodeName === undefined || nodeName === ''
        ? undefined
        : (parseTimeMs(scheduled?.lastTransitionTime) ?? createdAtMs ?? 0),
    tolerations: (pod.spec?.['tolerations'] as Toleration[] | undefined) ?? [],
    terminating: pod.metadata.deletionTimestamp !== undefined,
  };
}

/** @throws StoreFault when others kept changing the node's timers; calling again is safe. */
export async function evictPods(
  dependencies: ControllerDependencies,
  nodeName: string,
  at: { readonly nowMs: number; readonly state: FleetState },
): Promise<void> {
  const { objects, timers: timerStore, policy } = dependencies;
  const { nowMs, state } = at;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const [before, node] = await Promise.all([timerStore.read(nodeName), objects.get(nodeRef(nodeName))]);
    const taints: readonly NoExecuteTaint[] | undefined =
      node === undefined ? undefined : noExecuteTaints((node as KubeNode).spec?.taints ?? []);
    if (before.timers.length === 0 && (taints === undefined || taints.length === 0)) return;
    const pods = taints === undefined ? [] : await objects.listByNode(nodeName);
    const decisions = decidePodEvictions(
      {
        nodeName,
        taints,
        pods: pods.map(evictablePod),
        timers: before.timers,
        gate: gateVerdictFor(state.gate, { nowMs, policy }),
        freshSinceMs: state.gate.freshSinceMs,
      },
      nowMs,
      policy,
    );
    const timers = await applyDecisions(dependencies, decisions, before.timers, pods, nowMs);
    if (timers === undefined || (await timerStore.replace(before, timers)) === 'written') return;
  }
  throw new StoreFault('throttled', "a node's eviction timers kept changing", { retryable: true });
}

/** The timers as they are to be stored; undefined when they stay as they are. */
async function applyDecisions(
  dependencies: ControllerDependencies,
  decisions: readonly PodEvictionDecision[],
  before: readonly EvictionTimer[],
  pods: readonly KubeObject[],
  nowMs: number,
): Promise<readonly EvictionTimer[] | undefined> {
  const { meter, log } = dependencies;
  const timers = new Map(before.map((timer) => [timer.podUid, timer]));
  const podsByUid = new Map(pods.map((pod) => [pod.metadata.uid ?? '', pod]));
  const told: EventToTell[] = [];
  let changed = false;
  let deleted = 0;
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
        break;
      case 'hold':
        if (!decision.timerExists) keep(decision, decision.atMs);
        break;
      case 'cancel':
        if (pod !== undefined) {
          told.push({ ...decision.event, about: subjectOf('Pod', pod), once: `cancel ${timer?.atMs ?? ''}` });
        }
        timers.delete(decision.podUid);
        changed = true;
        break;
      case 'drop':
        timers.delete(decision.podUid);
        changed = true;
        break;
      case 'delete': {
        if (pod === undefined) break;
        const event =
          decision.event === undefined
            ? undefined
            : { ...decision.event, about: subjectOf('Pod', pod), once: 'marking' };
        const outcome = await deletePod(dependencies, pod, { condition: decision.condition, event, nowMs });
        if (outcome.kind === 'contended') {
          keep(decision, timer?.atMs ?? nowMs);
          break;
        }
        if (outcome.kind === 'deleted') {
          deleted += 1;
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
  if (deleted > 0) meter.add(metric.POD_DELETIONS, deleted, 'Count');
  if (told.length > 0) await recordEvents(dependencies, told, nowMs);
  return changed ? [...timers.values()] : undefined;
}
