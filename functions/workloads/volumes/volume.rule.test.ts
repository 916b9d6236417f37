import { describe, expect, it } from 'vitest';
import type { KubePersistentVolume, KubePersistentVolumeClaim } from '../../../shared/kinds/types.ts';
import { decideVolume } from './volume.rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const BY_US = { 'pv.kubernetes.io/bound-by-controller': 'yes' };
const MADE_BY = 'pv.kubernetes.io/provisioned-by';
const REFERENCE = { namespace: 'default', name: 'c', uid: 'u', resourceVersion: '7' };

const volume = (
  spec: object = {},
  metadata: object = {},
  status: object = { phase: 'Bound' },
): KubePersistentVolume => ({
  metadata: { name: 'v', ...metadata },
  spec: { claimRef: REFERENCE, persistentVolumeReclaimPolicy: 'Retain', ...spec },
  status,
});
const claim = (spec: object = {}, status: object = { phase: 'Bound' }, uid = 'u'): KubePersistentVolumeClaim => ({
  metadata: { namespace: 'default', name: 'c', uid },
  spec,
  status,
});
const decide = (given: KubePersistentVolume, of?: KubePersistentVolumeClaim) =>
  decideVolume({ volume: given, nowMs: NOW_MS, ...(of && { claim: of }) });

describe('a volume that is being deleted', () => {
  const deletionTimestamp = '2026-01-01T00:00:00Z';
  const finalizers = ['kubernetes.io/pv-protection', 'example.com/own'];

  it('loses its protection, and no other finalizer, unless it is bound', () => {
    const left = decide(volume({}, { deletionTimestamp, finalizers }, { phase: 'Released' })).volume;
    expect(left.metadata.finalizers).toEqual(['example.com/own']);
    const bound = volume({}, { deletionTimestamp, finalizers });
    expect(decide(bound, claim({ volumeName: 'v' })).volume).toBe(bound);
  });
  it('without protection stays as it is', () => {
    const given = volume({}, { deletionTimestamp }, { phase: 'Released' });
    expect(decide(given).volume).toBe(given);
  });
});

describe('a volume without a claim', () => {
  it('is available, with the time of the change', () => {
    const given = volume({ claimRef: undefined }, {}, {});
    const { volume: next } = decide(given);
    expect(next.status).toEqual({ phase: 'Available', lastPhaseTransitionTime: '2026-01-01T00:00:00Z' });
    expect(decide(next).volume).toBe(next);
  });
  it('is reserved by a name, and the claim binds it when it is there', () => {
    for (const uid of [undefined, '']) {
      const given = volume({ claimRef: { namespace: 'default', name: 'c', uid } }, {}, {});
      expect(decide(given).claimWaits).toBeUndefined();
      expect(decide(given, claim())).toMatchObject({ claimWaits: true, volume: { status: { phase: 'Available' } } });
    }
  });
});

describe('a volume of a claim', () => {
  it('is bound, and the claim is synced until it is bound too', () => {
    const given = volume({}, {}, { phase: 'Available' });
    expect(decide(given, claim({ volumeName: 'v' }))).toEqual({
      volume: { ...given, status: { phase: 'Bound', lastPhaseTransitionTime: '2026-01-01T00:00:00Z' } },
    });
    expect(decide(given, claim({ volumeName: 'v' }, { phase: 'Pending' })).claimWaits).toBe(true);
  });
  it('waits for a claim that names none, and says why another volume mode cannot be bound', () => {
    const given = volume();
    expect(decide(given, claim())).toEqual({ volume: given, claimWaits: true });
    expect(decide(given, claim({ volumeMode: 'Block' }))).toEqual({
      volume: given,
      event: {
        type: 'Warning',
        reason: 'VolumeMismatch',
        message: 'Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" due to incompatible volumeMode.',
      },
    });
  });

  describe('that is bound to another one', () => {
    const elsewhere = claim({ volumeName: 'other' });

    it('is free again: without the reference of the binder, or reserved by that of a person', () => {
      const ours = decide(volume({}, { annotations: BY_US }), elsewhere).volume;
      expect(ours.spec).not.toHaveProperty('claimRef');
      expect(ours.metadata).not.toHaveProperty('annotations');
      expect(ours.status?.phase).toBe('Available');
      const reserved = decide(volume(), elsewhere).volume;
      expect(reserved.spec?.claimRef).toEqual({ namespace: 'default', name: 'c' });
    });
    it.each([
      ['made for it and to be deleted', { [MADE_BY]: 'example.com/p' }, 'Delete', 'Released'],
      ['made for it and to be kept', { [MADE_BY]: 'example.com/p' }, 'Retain', 'Available'],
      ['of a person and to be deleted', {}, 'Delete', 'Available'],
    ])('%s', (_case, annotations, persistentVolumeReclaimPolicy, phase) => {
      const given = volume({ persistentVolumeReclaimPolicy }, { annotations });
      expect(decide(given, elsewhere).volume.status?.phase).toBe(phase);
    });
  });
});

describe('a volume of a deleted claim', () => {
  const policy = { persistentVolumeReclaimPolicy: 'Delete' };
  const onNode = {
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }],
      },
    },
  };

  it.each([
    ['absent', undefined],
    ['another one of its name', claim({ volumeName: 'v' }, { phase: 'Bound' }, 'other')],
  ])('is released and kept (%s)', (_case, of) => {
    expect(decide(volume(), of)).toMatchObject({ volume: { status: { phase: 'Released' } } });
    expect(decide(volume(), of).removeOn).toBeUndefined();
  });

  it('is removed by the agent of its node', () => {
    const given = volume({ ...policy, ...onNode }, { annotations: { [MADE_BY]: 'nodekeeper.dev/local' } });
    expect(decide(given)).toMatchObject({ removeOn: 'n', volume: { status: { phase: 'Released' } } });
    const without = volume(policy, { annotations: { [MADE_BY]: 'nodekeeper.dev/local' } });
    expect(decide(without)).not.toHaveProperty('removeOn');
  });

  it.each([
    ['by its provisioner', policy, { [MADE_BY]: 'example.com/p' }],
    ['by its driver', { ...policy, csi: { driver: 'd', volumeHandle: 'h' } }, {}],
  ])('is removed %s', (_case, spec, annotations) => {
    const decision = decide(volume(spec, { annotations }));
    expect(decision).toEqual({
      volume: expect.objectContaining({ status: expect.objectContaining({ phase: 'Released' }) }),
    });
  });

  it('that no plugin can remove has failed, with one event', () => {
    const why = 'error getting deleter volume plugin for volume "v": no deletable volume plugin matched';
    const decision = decide(volume(policy));
    expect(decision.event).toEqual({ type: 'Warning', reason: 'VolumeFailedDelete', message: why });
    expect(decision.volume.status).toMatchObject({ phase: 'Failed', message: why });
    expect(decide(decision.volume)).toEqual({ volume: decision.volume });
  });

  it.each(['Released', 'Failed'])('stays %s', (phase) => {
    const given = volume({}, {}, { phase });
    expect(decide(given).volume).toBe(given);
  });
});
