import { describe, expect, it } from 'vitest';
import type { KubePersistentVolume, KubePersistentVolumeClaim, KubeStorageClass } from '../../../shared/kinds/types.ts';
import { type ClaimWorld, decideClaim } from './claim.rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const DONE = { 'pv.kubernetes.io/bind-completed': 'yes' };
const BY_US = { 'pv.kubernetes.io/bound-by-controller': 'yes' };

const claim = (spec: object = {}, metadata: object = {}, status: object = {}): KubePersistentVolumeClaim => ({
  metadata: { namespace: 'default', name: 'c', uid: 'u', resourceVersion: '7', ...metadata },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'fast',
    resources: { requests: { storage: '5Gi' } },
    ...spec,
  },
  status,
});
const volume = (name = 'v', spec: object = {}, more: object = {}): KubePersistentVolume => ({
  metadata: { name },
  spec: { capacity: { storage: '10Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'fast', ...spec },
  status: { phase: 'Available' },
  ...more,
});
const storage = (provisioner: string, more: object = {}): KubeStorageClass => ({
  metadata: { name: 'fast' },
  provisioner,
  ...more,
});
const LATE = { volumeBindingMode: 'WaitForFirstConsumer' };

const decide = (world: Partial<ClaimWorld>) =>
  decideClaim({ claim: claim(), volumes: [], isUsed: false, isNodeLost: false, nowMs: NOW_MS, ...world });

const REFERENCE = {
  kind: 'PersistentVolumeClaim',
  namespace: 'default',
  name: 'c',
  uid: 'u',
  apiVersion: 'v1',
  resourceVersion: '7',
};

describe('a claim that is being deleted', () => {
  const leaving = (finalizers?: readonly string[]) =>
    claim({}, { deletionTimestamp: '2026-01-01T00:00:00Z', ...(finalizers && { finalizers }) });
  const protectedBy = ['kubernetes.io/pvc-protection', 'example.com/own'];

  it('keeps its protection while a pod uses it', () => {
    const given = leaving(protectedBy);
    expect(decide({ claim: given, isUsed: true })).toEqual({ claim: given });
  });
  it('loses its protection, and no other finalizer, without a pod', () => {
    expect(decide({ claim: leaving(protectedBy) }).claim.metadata.finalizers).toEqual(['example.com/own']);
    expect(decide({ claim: leaving(protectedBy.slice(0, 1)) }).claim.metadata).not.toHaveProperty('finalizers');
  });
  it.each([[undefined], [['example.com/own']]])('without protection stays as it is (%j)', (finalizers) => {
    const given = leaving(finalizers);
    expect(decide({ claim: given }).claim).toBe(given);
  });
});

describe('a claim that names its volume', () => {
  const named = claim({ volumeName: 'v' });

  it('waits for it', () => {
    expect(decide({ claim: named })).toEqual({ claim: { ...named, status: { phase: 'Pending' } } });
  });

  it('is bound to it, and the reference of the volume is the binder’s', () => {
    const decision = decide({ claim: named, named: volume() });
    expect(decision.claim.metadata.annotations).toEqual(DONE);
    expect(decision.claim.status).toEqual({
      phase: 'Bound',
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '10Gi' },
    });
    expect(decision.volume?.next).toMatchObject({
      metadata: { annotations: BY_US },
      spec: { claimRef: REFERENCE },
      status: { phase: 'Bound', lastPhaseTransitionTime: '2026-01-01T00:00:00Z' },
    });
    expect(decision.event).toBeUndefined();
  });

  it('keeps the reference of a person without the mark of the binder', () => {
    const reserved = volume('v', { claimRef: { namespace: 'default', name: 'c' } });
    const { next } = decide({ claim: named, named: reserved }).volume!;
    expect(next.spec?.claimRef).toEqual(REFERENCE);
    expect(next.metadata.annotations).toBeUndefined();
  });

  it.each<[string, KubePersistentVolume, string]>([
    [
      'is being deleted',
      volume('v', {}, { metadata: { name: 'v', deletionTimestamp: '2026-01-01T00:00:00Z' } }),
      'the volume is marked for deletion "v"',
    ],
    ['is too small', volume('v', { capacity: { storage: '4Gi' } }), 'requested PV is too small'],
    ['has another class', volume('v', { storageClassName: 'slow' }), 'storageClassName does not match'],
    ['has another mode', volume('v', { volumeMode: 'Block' }), 'incompatible volumeMode'],
    ['lacks an access mode', volume('v', { accessModes: ['ReadOnlyMany'] }), 'incompatible accessMode'],
  ])('waits when it %s', (_case, candidate, why) => {
    const decision = decide({ claim: named, named: candidate });
    expect(decision.event).toEqual({
      type: 'Warning',
      reason: 'VolumeMismatch',
      message: `Cannot bind to requested volume "v": ${why}`,
    });
    expect(decision.claim.status?.phase).toBe('Pending');
    expect(decision.volume).toBeUndefined();
  });

  it.each([
    ['of another name', { namespace: 'default', name: 'other', uid: 'x' }],
    ['of another namespace', { namespace: 'other', name: 'c' }],
    ['of its name before', { namespace: 'default', name: 'c', uid: 'before' }],
  ])('waits when it belongs to a claim %s', (_case, claimRef) => {
    expect(decide({ claim: named, named: volume('v', { claimRef }) }).event).toEqual({
      type: 'Warning',
      reason: 'FailedBinding',
      message: 'volume "v" already bound to a different claim.',
    });
  });
});

describe('a claim that names none', () => {
  it('is bound to the best, and its name is the choice of the binder', () => {
    const decision = decide({ volumes: [volume('large', { capacity: { storage: '20Gi' } }), volume()] });
    expect(decision.claim.spec?.volumeName).toBe('v');
    expect(decision.claim.metadata.annotations).toEqual({ ...DONE, ...BY_US });
  });

  it('without a class gets the default one, and one of the class "" does not', () => {
    const fallback = storage('example.com/p', { metadata: { name: 'standard' } });
    const without = claim({ storageClassName: undefined });
    expect(decide({ claim: without, fallback }).claim.spec?.storageClassName).toBe('standard');
    for (const world of [{ claim: without }, { claim: claim({ storageClassName: '' }), fallback }]) {
      expect(decide(world).event).toEqual({
        type: 'Normal',
        reason: 'FailedBinding',
        message: 'no persistent volumes available for this claim and no storage class is set',
      });
    }
  });

  it('of a class that waits is left to the scheduler, also when a volume is there', () => {
    const late = storage('example.com/p', LATE);
    expect(decide({ storage: late, volumes: [volume()] })).toEqual({
      claim: claim({}, {}, { phase: 'Pending' }),
      event: {
        type: 'Normal',
        reason: 'WaitForFirstConsumer',
        message: 'waiting for first consumer to be created before binding',
      },
    });
    const reserved = volume('v', { claimRef: { namespace: 'default', name: 'c' } });
    expect(decide({ storage: late, volumes: [reserved] }).claim.status?.phase).toBe('Bound');
  });
});

describe('a claim that needs a new volume', () => {
  const SELECTED = { 'volume.kubernetes.io/selected-node': 'n' };
  const on = claim({}, { annotations: SELECTED });

  it.each<[string, Partial<ClaimWorld>, string]>([
    ['its class is missing', {}, 'storageclass.storage.k8s.io "fast" not found'],
    [
      'its class makes none',
      { storage: storage('kubernetes.io/no-provisioner') },
      'no volume plugin matched name: kubernetes.io/no-provisioner',
    ],
    [
      'a directory would have no node',
      { storage: storage('nodekeeper.dev/local') },
      'StorageClass "fast": provisioner nodekeeper.dev/local needs volumeBindingMode WaitForFirstConsumer: a directory is on the node of its first consumer',
    ],
  ])('waits when %s', (_case, world, message) => {
    const decision = decide(world);
    expect(decision.event).toEqual({ type: 'Warning', reason: 'ProvisioningFailed', message });
    expect(decision.provisionOn).toBeUndefined();
    expect(decision.claim.metadata.annotations).toBeUndefined();
  });

  it('asks the provisioner of its class', () => {
    const decision = decide({ storage: storage('example.com/p') });
    expect(decision.claim.metadata.annotations).toEqual({
      'volume.kubernetes.io/storage-provisioner': 'example.com/p',
      'volume.beta.kubernetes.io/storage-provisioner': 'example.com/p',
    });
    expect(decision.event).toMatchObject({ type: 'Normal', reason: 'ExternalProvisioning' });
    expect(decision.provisionOn).toBeUndefined();
  });

  it('asks the agent of the selected node', () => {
    const local = storage('nodekeeper.dev/local', LATE);
    expect(decide({ claim: on, storage: local })).toMatchObject({
      provisionOn: 'n',
      claim: { status: { phase: 'Pending' } },
    });
  });

  it('has another node selected when an agent does not answer, and not when a provisioner of others is asked', () => {
    const local = storage('nodekeeper.dev/local', LATE);
    const decision = decide({ claim: on, storage: local, isNodeLost: true });
    expect(decision.claim.metadata).not.toHaveProperty('annotations');
    expect(decision.provisionOn).toBeUndefined();
    expect(decision.event?.message).toBe(
      'failed to provision volume with StorageClass "fast": node "n" does not answer',
    );
    const others = decide({ claim: on, storage: storage('example.com/p', LATE), isNodeLost: true });
    expect(others.claim.metadata.annotations).toMatchObject(SELECTED);
    expect(others.event?.reason).toBe('ExternalProvisioning');
  });
});

describe('a claim that was bound', () => {
  const bound = (spec: object, status: object = { phase: 'Bound' }) => claim(spec, { annotations: DONE }, status);
  const lost = (message: string, reason = 'ClaimLost') => ({ type: 'Warning', reason, message });

  it.each<[string, KubePersistentVolumeClaim, KubePersistentVolume | undefined, object]>([
    [
      'has no name of a volume any more',
      bound({}),
      undefined,
      lost('Bound claim has lost reference to PersistentVolume. Data on the volume is lost!'),
    ],
    [
      'has no volume any more',
      bound({ volumeName: 'v' }),
      undefined,
      lost('Bound claim has lost its PersistentVolume. Data on the volume is lost!'),
    ],
    [
      'has the volume of another claim',
      bound({ volumeName: 'v' }),
      volume('v', { claimRef: { namespace: 'default', name: 'c', uid: 'other' } }),
      lost('Two claims are bound to the same volume, this one is bound incorrectly', 'ClaimMisbound'),
    ],
  ])('is lost when it %s, and says so once', (_case, given, named, event) => {
    const decision = decide({ claim: given, ...(named && { named }) });
    expect(decision.event).toEqual(event);
    expect(decision.claim.status?.phase).toBe('Lost');
    expect(decision.volume).toBeUndefined();
    const again = decide({ claim: decision.claim, ...(named && { named }) });
    expect(again).toEqual({ claim: decision.claim });
  });

  it('is bound again when its volume lost the reference, and keeps its capacity', () => {
    const given = bound({ volumeName: 'v' }, { phase: 'Bound', capacity: { storage: '8Gi' } });
    const decision = decide({ claim: given, named: volume() });
    expect(decision.volume?.next.spec?.claimRef).toEqual(REFERENCE);
    expect(decision.claim.status?.capacity).toEqual({ storage: '8Gi' });
  });

  it('stays the same objects in content when both sides name each other', () => {
    const named = volume('v', { claimRef: REFERENCE }, { status: { phase: 'Bound' } });
    const given = decide({ claim: bound({ volumeName: 'v' }), named }).claim;
    const decision = decide({ claim: given, named });
    expect(decision.claim).toEqual(given);
    expect(decision.volume?.next).toBe(named);
  });
});
