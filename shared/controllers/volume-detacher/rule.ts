/**
 * When a volume that nobody on its node wants any more is taken from it.
 *
 * A volume detached under a machine that still writes is a damaged volume; one that stays attached is only a pod that
 * waits. So in doubt nothing is detached: not while our own view of the node is in doubt, not when EC2 gave no answer
 * about the instance, and not a volume that is not certainly the one meant. A healthy node's mounted volume is never
 * taken by time. The wait starts when the last pod object is gone: on a dead node somebody must delete the pod first.
 *
 * Source: pkg/controller/volume/attachdetach/reconciler/reconciler.go; EC2 DetachVolume for `force`.
 */

import type { InstanceState } from '../../domain/cloud/instance.ts';
import type { ConditionStatus } from '../../domain/kubernetes.ts';
import type { Policy } from '../../domain/policy.ts';

export interface AttachedVolume {
  readonly volumeId: string;
  /** The node said so last (status.volumesInUse). */
  readonly mounted: boolean;
  /** When it was first seen unwanted: no pod object on this node names it, terminating ones included. */
  readonly detachRequestedAtMs: number;
  /** It carries the tag that our permission to detach asks for. */
  readonly tagged: boolean;
  readonly isRootDevice: boolean;
  /** The attachment belongs to an AWS service, which refuses others. */
  readonly managedByAws: boolean;
  /** The instance EC2 says it is attached to. */
  readonly attachedTo: string;
}

export interface VolumeNode {
  /** Status of Ready; absent for a node without it or a Node that is gone: both are unhealthy. */
  readonly ready: ConditionStatus | undefined;
  /** It has a taint with the key out-of-service; see isOutOfService. */
  readonly outOfService: boolean;
  /** Of its providerID; absent when the Node is gone or names none. */
  readonly instanceId: string | undefined;
  /** What EC2 says of the instance the volume is attached to; unknown after a failed call. */
  readonly instance: InstanceState | 'notFound' | 'unknown';
}

/** Label `reason` of attachdetach_controller_forced_detaches. */
export type ForcedDetachReason = 'timeout' | 'out-of-service';

export type DetachDecision =
  /** Keep the request's time. */
  | { readonly kind: 'wait'; readonly detachRequestedAtMs: number; readonly reason: string }
  /** Never by us; a person has to look. Keep the request's time. */
  | { readonly kind: 'refuse'; readonly detachRequestedAtMs: number; readonly reason: string }
  | {
      readonly kind: 'detach';
      readonly detachRequestedAtMs: number;
      /** DetachVolume with Force: only of an instance that does not run, or that a person declared out of service. */
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
    /** Why our own view of nodes is in doubt (D9); absent when it is not. */
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
    if (!timedOut) return wait(expired ? 'mounted; detaching on timeout is switched off' : 'mounted; time is not over');
    // From here on only time speaks for detaching: our own view and EC2's must both be sure.
    if (doubt !== undefined) return wait(`mounted; ${doubt}`);
    if (node.instance === 'unknown') return wait('mounted; EC2 gave no answer about the instance');
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
        : 'node is unhealthy for too long',
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
