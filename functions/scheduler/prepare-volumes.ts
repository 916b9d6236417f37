/**
 * Before a pod with unbound claims is bound, its volumes are: upstream's Reserve and PreBind. Upstream waits in PreBind
 * until the claims are bound. Here nothing waits: the pod is nominated to the node and tried again when a claim
 * changes. It then fits the node of its volumes alone.
 *
 * One commit, on the condition that pod, claims and volumes are as they were read. Two schedulers that choose for one
 * claim: the second is refused. One that is killed has written everything or nothing.
 */
import type { KubePod } from '../../shared/kinds/types.ts';
import { jsonEqual } from '../../shared/kubernetes/json.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import { withCondition } from './report-rejection.ts';
import type { ClaimStep } from './volumes.rule.ts';

export type VolumesPrepared = { readonly kind: 'prepared'; readonly pod: KubePod } | { readonly kind: 'refused' };

/** Reason of the condition PodScheduled. It is no failure, and no event is written. */
const REASON = 'WaitingForVolumes';

export async function prepareVolumes(
  { objects }: Pick<WorkDependencies, 'objects'>,
  {
    pod,
    object,
    nodeName,
    steps,
  }: {
    readonly pod: SchedulablePod;
    readonly object: KubePod;
    readonly nodeName: string;
    readonly steps: readonly ClaimStep[];
  },
  nowMs: number,
): Promise<VolumesPrepared> {
  const writes = steps.flatMap(writeOf);
  const names = steps.map((step) => (step.kind === 'claimVolume' ? step.next.spec?.claimRef?.name : claimOf(step)));
  const message = `waiting for the volumes of node ${nodeName}: persistentvolumeclaims ${names.sort().join(', ')}`;
  const { conditions = [], ...status } = object.status ?? {};
  const isShown = pod.scheduledCondition?.message === message;
  const next: KubePod = {
    ...object,
    status: {
      ...status,
      conditions: isShown ? conditions : withCondition(conditions, { reason: REASON, message }, nowMs),
      nominatedNodeName: nodeName,
    },
  };
  const ref = { resource: 'pods', namespace: pod.namespace, name: pod.name };
  // The pod first: its stored form is the result.
  const isChanged = !jsonEqual(next, object);
  if (isChanged) writes.unshift({ kind: 'update', ref, object: next, previous: object });
  if (writes.length === 0) return { kind: 'prepared', pod: object };
  try {
    const outcome = await objects.commit({ writes });
    if (outcome.kind !== 'committed') return { kind: 'refused' };
    return { kind: 'prepared', pod: isChanged ? (outcome.objects[0] as KubePod) : object };
  } catch (fault) {
    if (!(fault instanceof StoreFault) || !fault.retryable) throw fault;
    return { kind: 'refused' };
  }
}

const claimOf = (step: Exclude<ClaimStep, { kind: 'claimVolume' }>): string | undefined =>
  (step.kind === 'wait' ? step.claim : step.next).metadata.name;

function writeOf(step: ClaimStep): ObjectWrite[] {
  if (step.kind === 'wait') return [];
  const { previous, next } = step;
  if (jsonEqual(previous, next)) return [];
  const resource = step.kind === 'claimVolume' ? 'persistentvolumes' : 'persistentvolumeclaims';
  const { namespace = '', name = '' } = previous.metadata;
  return [{ kind: 'update', ref: { resource, namespace, name }, object: next, previous }];
}
