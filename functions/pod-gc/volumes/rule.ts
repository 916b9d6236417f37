/**
 * When a volume is detached after the last pod on its node stopped using it.
 *
 * To detach a volume from a machine that still writes damages the file system. A volume that stays attached only delays
 * a pod. So a volume
 * stays attached while the safety gate is closed, while the instance state is unknown, and when the volume is not
 * identified with certainty. A mounted volume of a healthy node is never detached by timeout. The timeout starts when
 * the last pod object is deleted: on a dead node a user must delete the pod first.
 *
 * Source: pkg/controller/volume/attachdetach/reconciler/reconciler.go; EC2 DetachVolume for `force`.
 */

import type { InstanceState } from '../../../shared/fleet/instances/instance.ts';
import type { Policy } from '../../../shared/fleet/policy.ts';
import type { ConditionStatus } from '../../../shared/kubernetes/kubernetes.ts';

export interface AttachedVolume {
  readonly volumeId: string;
  /** Reported by the node in status.volumesInUse. */
  readonly mounted: boolean;
  /**
   * When no pod object on this node, terminating pods included, was first found to use it. Epoch milliseconds.
   */
  readonly detachRequestedAtMs: number;
  /** Has the tag that our IAM permission to detach requires. */
  readonly tagged: boolean;
  readonly isRootDevice: boolean;
  /** The attachment is managed by an AWS service, so other callers are refused. */
  readonly managedByAws: boolean;
  /** The instance it is attached to, from EC2. */
  readonly attachedTo: string;
}

export interface VolumeNode {
  /** Status of Ready; absent without the condition or without the Node: both are unhealthy. */
  readonly ready: ConditionStatus | undefined;
  /** Has a taint with the key out-of-service; see isOutOfService. */
  readonly outOfService: boolean;
  /** From its providerID; absent without a Node or a providerID. */
  readonly instanceId: string | undefined;
  /** State of the instance the volume is attached to, from EC2; unknown after a failed call. */
  readonly instance: InstanceState | 'notFound' | 'unknown';
}

/** Label `reason` of attachdetach_controller_forced_detaches. */
export type ForcedDetachReason = 'timeout' | 'out-of-service';

export type DetachDecision =
  /** Keep detachRequestedAtMs. */
  | { readonly kind: 'wait'; readonly detachRequestedAtMs: number; readonly reason: string }
  /** Nodekeeper never detaches it; an operator must. Keep detachRequestedAtMs. */
  | { readonly kind: 'refuse'; readonly detachRequestedAtMs: number; readonly reason: string }
  | {
      readonly kind: 'detach';
      readonly detachRequestedAtMs: number;
      /**
       * DetachVolume with Force: only for an instance that is stopped or terminated, or a node that is out of service.
       */
      readonly force: boolean;
      /** Counted as forced when the check that it is safe was skipped. */
      readonly forcedReason: ForcedDetachReason | undefined;
      readonly reason: string;
    };

export type DetachPolicy = Pick<Policy, 'forceDetachTimeoutSeconds' | 'disableForceDetachOnTimeout'>;

export function decideVolumeDetach(
  question: {
    readonly volume: AttachedVolume;
    readonly node: VolumeNode;
    /** Why our view of nodes is unreliable (D9); absent while the safety gate is open. */
    readonly doubt?: string | undefined;
  },
  nowMs: number,
  policy: DetachPolicy,
): DetachDecision {
  const { volume, node, doubt } = question;
  const { detachRequestedAtMs } = volume;
  const wait = (reason: string): DetachDecision => ({ kind: 'wait', detachRequestedAtMs, reason });

  const forbidden = reasonNeverToDetach(volume, node);
  if (forbidden !== undefined) return { kind: 'refuse', detachRequestedAtMs, reason: forbidden };

  const expired = nowMs - detachRequestedAtMs > policy.forceDetachTimeoutSeconds * 1_000;
  const timedOut = expired && !policy.disableForceDetachOnTimeout;
  const healthy = node.ready === 'True';

  if (volume.mounted && !node.outOfService) {
    if (healthy) return wait('mounted on a healthy node');
    if (!timedOut) return wait(expired ? 'mounted; detach on timeout is disabled' : 'mounted; timeout is not over');
    // Only the timeout asks for detaching here: the safety gate must be open and the instance state known.
    if (doubt !== undefined) return wait(`mounted; ${doubt}`);
    if (node.instance === 'unknown') return wait('mounted; EC2 request about the instance failed');
  }
  const forcedReason: ForcedDetachReason | undefined = timedOut
    ? 'timeout'
    : node.outOfService
      ? 'out-of-service'
      : undefined;
  const down = node.instance === 'stopped' || node.instance === 'terminated';
  return {
    kind: 'detach',
    detachRequestedAtMs,
    force: volume.mounted && (down || node.outOfService),
    forcedReason,
    reason: !volume.mounted
      ? 'not mounted'
      : node.outOfService
        ? 'node is out of service'
        : 'node has been unhealthy for longer than the timeout',
  };
}

function reasonNeverToDetach(volume: AttachedVolume, node: VolumeNode): string | undefined {
  if (!volume.tagged) return 'volume does not carry our tag';
  if (volume.isRootDevice) return 'volume is the root device';
  if (volume.managedByAws) return 'attachment is managed by an AWS service';
  if (node.instanceId !== undefined && node.instanceId !== volume.attachedTo) {
    return `volume is attached to ${volume.attachedTo}, the node is ${node.instanceId}`;
  }
  return undefined;
}
