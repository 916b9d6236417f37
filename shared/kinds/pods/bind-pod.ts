import { defined } from '../../defined.ts';
import { withProfileTolerations } from '../../fleet/nodes/taint.ts';
import { formatTime } from '../../kubernetes/time.ts';
import type { KubeObject, KubePod, PodCondition } from '../types.ts';

export type BindOutcome =
  | { readonly kind: 'bound'; readonly pod: KubeObject }
  /** Answer 409: conflict(pods, name, why). */
  | { readonly kind: 'refused'; readonly why: string };

/**
 * The effect of a POST of pods/binding: the pod is bound to the node permanently. `timeout`: podEvictionTimeoutSeconds
 * of the policy, and of the node's profile.
 */
export function bindPod(
  pod: KubePod,
  nodeName: string,
  nowMs: number,
  timeout?: Parameters<typeof withProfileTolerations>[1],
): BindOutcome {
  if (pod.metadata.deletionTimestamp !== undefined) {
    return { kind: 'refused', why: `pod ${pod.metadata.name} is being deleted, cannot be assigned to a host` };
  }
  const bound = pod.spec?.nodeName ?? '';
  if (bound !== '') {
    return { kind: 'refused', why: `pod ${pod.metadata.name} is already assigned to node ${JSON.stringify(bound)}` };
  }
  if ((pod.spec?.schedulingGates ?? []).length > 0) {
    return { kind: 'refused', why: `pod ${pod.metadata.name} has non-empty .spec.schedulingGates` };
  }
  const { tolerations } = pod.spec ?? {};
  const ofProfile =
    timeout === undefined || tolerations === undefined ? tolerations : withProfileTolerations(tolerations, timeout);
  const { nominatedNodeName: _nominated, ...status } = pod.status ?? {};
  const conditions = (status.conditions ?? []).filter((each) => each.type !== 'PodScheduled');
  const scheduled: PodCondition = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: formatTime(nowMs),
  };
  return {
    kind: 'bound',
    pod: {
      ...pod,
      spec: { ...pod.spec, ...defined({ tolerations: ofProfile && [...ofProfile] }), nodeName },
      status: { ...status, conditions: [...conditions, scheduled] },
    },
  };
}
