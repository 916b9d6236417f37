/** Area FD: force detach of volumes. */
import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/domain/policy.ts';
import {
  type AttachedVolume,
  type DetachDecision,
  type DetachPolicy,
  decideVolumeDetach,
  type VolumeNode,
} from '../../shared/domain/volume-detach.ts';

class Attachment {
  volume: AttachedVolume = {
    volumeId: 'vol-1',
    wanted: false,
    mounted: true,
    detachRequestedAtMs: undefined,
    tagged: true,
    isRootDevice: false,
    managedByAws: false,
    attachedTo: 'i-1',
  };
  node: VolumeNode = { ready: undefined, outOfService: false, instanceId: 'i-1', instance: 'running' };
  readonly policy: DetachPolicy;
  nowSeconds = 0;
  last: DetachDecision | undefined;

  constructor(policy: Partial<DetachPolicy> = {}) {
    this.policy = { ...defaultPolicy, ...policy };
  }

  look(): DetachDecision {
    this.last = decideVolumeDetach({ volume: this.volume, node: this.node }, this.nowSeconds * 1_000, this.policy);
    this.volume = {
      ...this.volume,
      detachRequestedAtMs: this.last.kind === 'wanted' ? undefined : this.last.detachRequestedAtMs,
    };
    return this.last;
  }

  /** Looks each second from now to the given one; the second at which it was detached, if it was. */
  runTo(seconds: number): number | undefined {
    for (; this.nowSeconds <= seconds; this.nowSeconds += 1) {
      if (this.look().kind === 'detach') return this.nowSeconds;
    }
    return undefined;
  }
}

describe('force detach', () => {
  it('FD-02 a mounted volume stays while the wait is not over, Ready condition or not', () => {
    expect(new Attachment({ forceDetachTimeoutSeconds: 4_200 }).runTo(4_199)).toBeUndefined();
  });

  it('FD-04 with the timeout switched off only the out-of-service taint detaches', () => {
    const attachment = new Attachment({ forceDetachTimeoutSeconds: 1, disableForceDetachOnTimeout: true });
    attachment.node = { ...attachment.node, ready: 'False' };
    expect(attachment.runTo(1_000)).toBeUndefined();
    attachment.node = { ...attachment.node, outOfService: true };
    expect(attachment.look()).toMatchObject({ kind: 'detach', forcedReason: 'out-of-service' });
  });

  it('FD-06 a pod that wants it again restarts the six minutes', () => {
    const attachment = new Attachment();
    attachment.node = { ...attachment.node, ready: 'Unknown' };
    expect(attachment.runTo(299)).toBeUndefined();
    attachment.volume = { ...attachment.volume, wanted: true };
    expect(attachment.runTo(309)).toBeUndefined();
    attachment.volume = { ...attachment.volume, wanted: false };
    expect(attachment.runTo(2_000)).toBe(671);
  });

  it('FD-08 a missing Node is unhealthy: detached just after six minutes', () => {
    const attachment = new Attachment();
    attachment.node = { ...attachment.node, ready: undefined, instanceId: undefined };
    expect(attachment.runTo(2_000)).toBe(361);
  });

  it('FD-10 a terminating pod on a dead node still wants its volume', () => {
    const attachment = new Attachment();
    attachment.node = { ...attachment.node, ready: 'Unknown' };
    attachment.volume = { ...attachment.volume, wanted: true };
    expect(attachment.runTo(1_800)).toBeUndefined();
    expect(attachment.last).toEqual({ kind: 'wanted' });
  });
});
