import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../../shared/fleet/policy.ts';
import { replayed } from '../../../test/support/replayed.ts';
import { detachDraft, volumeDetacherReplay, volumeKeptDraft } from './decisions.ts';
import { type AttachedVolume, decideVolumeDetach, type VolumeNode } from './rule.ts';

const NOW_MS = 360_001;
const situation = { nodeName: 'n', uid: 'u', nowMs: NOW_MS, policy: defaultPolicy };
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

describe('the record of a volume', () => {
  it.each<[string, { volume?: Partial<AttachedVolume>; node?: Partial<VolumeNode>; doubt?: string }, string, string]>([
    ['not mounted', { volume: { mounted: false } }, 'VolumeDetached', 'volume vol-1: not mounted'],
    [
      'of a node out of service',
      { node: { outOfService: true } },
      'VolumeDetached',
      'volume vol-1: node is out of service, force detach',
    ],
    [
      'that never is detached',
      { volume: { tagged: false } },
      'VolumeKept',
      'volume vol-1: volume does not carry our tag',
    ],
    ['that waits', { node: { ready: 'True' } }, 'VolumeKept', 'volume vol-1: mounted on a healthy node'],
    [
      'while the gate is closed',
      { doubt: 'the gate is closed' },
      'VolumeKept',
      'volume vol-1: mounted; the gate is closed',
    ],
  ])('%s has all that the rule read, and replays', (_name, over, act, reason) => {
    const question = { ...over, volume: { ...volume, ...over.volume }, node: { ...node, ...over.node } };
    const isUnreliable = over.doubt !== undefined;
    const decision = decideVolumeDetach(question, NOW_MS, defaultPolicy);
    const draft = detachDraft(situation, decision, question);
    expect(draft).toEqual({
      act,
      about: { kind: 'Node', name: 'n', uid: 'u' },
      atMs: NOW_MS,
      reason,
      rule: 'volume',
      inputs: {
        volume: question.volume,
        node: question.node,
        ...(isUnreliable ? { doubt: over.doubt } : {}),
        policy: { forceDetachTimeoutSeconds: 360, disableForceDetachOnTimeout: false },
      },
      outcome: decision,
    });
    expect('doubt' in draft.inputs).toBe(isUnreliable);
    expect(replayed(draft, volumeDetacherReplay)).toEqual(draft.outcome);
  });

  it('that is kept for a fact from outside replays to what was recorded', () => {
    const draft = volumeKeptDraft(situation, 'vol-1', 'EC2 refused the request');
    expect(draft).toEqual({
      act: 'VolumeKept',
      about: { kind: 'Node', name: 'n', uid: 'u' },
      atMs: NOW_MS,
      reason: 'volume vol-1: EC2 refused the request',
      rule: 'fact',
      inputs: { volume: 'vol-1' },
      outcome: {},
    });
    expect(replayed(draft, volumeDetacherReplay)).toEqual({});
  });
});
