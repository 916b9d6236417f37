import { describe, expect, it } from 'vitest';
import { type AttachedVolume, decideVolumeDetach, type VolumeNode } from './rule.ts';

const policy = { forceDetachTimeoutSeconds: 360, disableForceDetachOnTimeout: false };
const volume: AttachedVolume = {
  volumeId: 'vol-1',
  mounted: true,
  detachRequestedAtMs: 0,
  tagged: true,
  isRootDevice: false,
  managedByAws: false,
  attachedTo: 'i-1',
};
const node: VolumeNode = { ready: 'Unknown', outOfService: false, instanceId: 'i-1', instance: 'running' };
const decide = (
  over: { volume?: Partial<AttachedVolume>; node?: Partial<VolumeNode>; doubt?: string },
  nowMs = 360_001,
) =>
  decideVolumeDetach(
    { volume: { ...volume, ...over.volume }, node: { ...node, ...over.node }, doubt: over.doubt },
    nowMs,
    policy,
  );

describe('decideVolumeDetach', () => {
  it('waits through the last millisecond of the timeout', () => {
    expect(decide({}, 360_000)).toMatchObject({ kind: 'wait', reason: 'mounted; timeout is not over' });
    expect(decide({}, 360_001)).toEqual({
      kind: 'detach',
      detachRequestedAtMs: 0,
      force: false,
      forcedReason: 'timeout',
      reason: 'node has been unhealthy for longer than the timeout',
    });
  });

  it('never detaches a mounted volume from a healthy node by timeout', () => {
    expect(decide({ node: { ready: 'True' } }, 1e12)).toMatchObject({
      kind: 'wait',
      reason: 'mounted on a healthy node',
    });
  });

  it('detaches an unmounted volume at once; after the timeout it counts as forced, healthy or not', () => {
    const unmounted = { volume: { mounted: false }, node: { ready: 'True' as const } };
    expect(decide(unmounted, 1)).toMatchObject({ kind: 'detach', force: false, forcedReason: undefined });
    expect(decide(unmounted)).toMatchObject({ kind: 'detach', force: false, forcedReason: 'timeout' });
  });

  it('detaches it at once when a user declared the node out of service, even a Ready one', () => {
    expect(decide({ node: { outOfService: true, ready: 'True' } }, 1)).toMatchObject({
      kind: 'detach',
      force: true,
      forcedReason: 'out-of-service',
    });
  });

  it('uses Force only on an instance that is down', () => {
    expect(decide({ node: { instance: 'stopped' } })).toMatchObject({ kind: 'detach', force: true });
    expect(decide({ node: { instance: 'terminated' } })).toMatchObject({ kind: 'detach', force: true });
    expect(decide({ node: { instance: 'stopping' } })).toMatchObject({ kind: 'detach', force: false });
  });

  it('waits while the safety gate is closed or EC2 does not answer, unless a user declared the node out of service', () => {
    expect(decide({ doubt: 'probes fail' })).toMatchObject({ kind: 'wait', reason: 'mounted; probes fail' });
    expect(decide({ node: { instance: 'unknown' } }).kind).toBe('wait');
    expect(decide({ doubt: 'probes fail', node: { outOfService: true, instance: 'unknown' } }).kind).toBe('detach');
  });

  it.each<[string, Partial<AttachedVolume>]>([
    ['volume does not carry our tag', { tagged: false }],
    ['volume is the root device', { isRootDevice: true }],
    ['attachment is managed by an AWS service', { managedByAws: true }],
    ['volume is attached to i-2, the node is i-1', { attachedTo: 'i-2' }],
  ])('refuses when %s', (reason, over) => {
    expect(decide({ volume: over, node: { outOfService: true } })).toMatchObject({ kind: 'refuse', reason });
  });
});
