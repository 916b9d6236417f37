import { describe, expect, it } from 'vitest';
import type { KubePersistentVolume, KubePersistentVolumeClaim, KubeStorageClass } from '../../shared/kinds/types.ts';
import type { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import type { SchedulableNode, SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { volumesOfPod } from './volumes.rule.ts';

const DONE = { 'pv.kubernetes.io/bind-completed': 'yes' };
const SELECTED = 'volume.kubernetes.io/selected-node';
const ZONE = 'topology.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';

const node = (name: string, labels: Readonly<Record<string, string>> = {}) =>
  ({ name, labels: { 'kubernetes.io/hostname': name, ...labels } }) as unknown as SchedulableNode;
const pod = (...claims: readonly string[]) =>
  ({ namespace: 'default', name: 'p', uid: 'p', claims }) as unknown as SchedulablePod;
const claim = (name: string, spec: object = {}, metadata: object = {}): KubePersistentVolumeClaim => ({
  metadata: { namespace: 'default', name, uid: `uid-${name}`, resourceVersion: '7', ...metadata },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'late',
    resources: { requests: { storage: '1Gi' } },
    ...spec,
  },
  status: { phase: 'Pending' },
});
const bound = (name: string, volumeName: string, spec: object = {}): KubePersistentVolumeClaim => ({
  ...claim(name, { volumeName, ...spec }, { annotations: DONE }),
  status: { phase: 'Bound' },
});
const volume = (name: string, spec: object = {}, labels: object = {}): KubePersistentVolume => ({
  metadata: { name, labels: { ...labels } },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'late', ...spec },
  status: { phase: 'Available' },
});
const reachedBy = (...terms: readonly object[]) => ({ nodeAffinity: { required: { nodeSelectorTerms: [...terms] } } });
const onName = (name: string) => ({ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] });
const storage = (more: object = {}): KubeStorageClass => ({
  metadata: { name: 'late' },
  provisioner: 'kubernetes.io/no-provisioner',
  volumeBindingMode: 'WaitForFirstConsumer',
  ...more,
});

interface Stored {
  readonly claims: readonly KubePersistentVolumeClaim[];
  readonly volumes?: readonly KubePersistentVolume[];
  readonly storage?: KubeStorageClass;
  readonly others?: readonly SchedulablePod[];
}

function volumesOf({ claims, volumes = [], storage: given = storage(), others = [] }: Stored) {
  const named = claims.map(({ metadata }) => metadata.name ?? '');
  return volumesOfPod(
    pod(...named),
    {
      claims: new Map(claims.map((each) => [`default/${each.metadata.name}`, each])),
      volumes: new Map(volumes.map((each) => [each.metadata.name ?? '', each])),
      classes: new Map([['late', given]]),
    },
    { pods: new Map(others.map((each) => [each.uid, each])) } as unknown as Snapshot,
  );
}
const reasonOn = (of: ReturnType<typeof volumesOf>, on: SchedulableNode) =>
  of.filter({ node: on } as Parameters<typeof of.filter>[0])?.reasons[0];

describe('no node can have the volumes of a pod', () => {
  it.each<[string, KubePersistentVolumeClaim, string]>([
    [
      'a claim is lost',
      { ...bound('c', 'v'), status: { phase: 'Lost' } },
      'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
    ],
    [
      'a claim is being deleted',
      claim('c', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      'persistentvolumeclaim "c" is being deleted',
    ],
    [
      'a claim names its volume and is not bound',
      claim('c', { volumeName: 'v' }),
      'pod has unbound immediate PersistentVolumeClaims',
    ],
    [
      'the class of a claim is unknown',
      claim('c', { storageClassName: 'other' }),
      'pod has unbound immediate PersistentVolumeClaims',
    ],
  ])('when %s', (_case, given, text) => {
    const of = volumesOf({ claims: [given] });
    expect(of.rejection).toEqual({ plugin: 'VolumeBinding', text });
    expect([of.claims, of.stepsOn(node('a')), reasonOn(of, node('a'))]).toEqual([[], [], undefined]);
  });
  it('and says it of the first claim that is missing', () => {
    const snapshot = { pods: new Map() } as unknown as Snapshot;
    const nothing = { claims: new Map(), volumes: new Map(), classes: new Map() };
    expect(volumesOfPod(pod('x', 'y'), nothing, snapshot).rejection?.text).toBe('persistentvolumeclaim "x" not found');
    expect(volumesOfPod(pod(), nothing, snapshot).rejection).toBeUndefined();
  });
});

describe('a bound claim', () => {
  it('allows the nodes that match a term of its volume', () => {
    const of = volumesOf({
      claims: [bound('c', 'v')],
      volumes: [volume('v', reachedBy(onName('a'), { matchExpressions: [{ key: 'disk', operator: 'Exists' }] }))],
    });
    expect(reasonOn(of, node('a'))).toBeUndefined();
    expect(reasonOn(of, node('b', { disk: 'ssd' }))).toBeUndefined();
    expect(reasonOn(of, node('c'))).toBe('node(s) had volume node affinity conflict');
    expect(of.stepsOn(node('a'))).toEqual([]);
    expect(of.claims).toHaveLength(1);
  });
  it('allows no node without its volume', () => {
    expect(reasonOn(volumesOf({ claims: [bound('c', 'v')] }), node('a'))).toBe(
      'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
    );
  });

  const zoned = (labels: object) => volumesOf({ claims: [bound('c', 'v')], volumes: [volume('v', {}, labels)] });
  it.each<[object, Readonly<Record<string, string>>, boolean]>([
    [{ [ZONE]: 'east' }, { [ZONE]: 'east' }, true],
    [{ [ZONE]: 'east' }, { [ZONE]: 'west' }, false],
    [{ [ZONE]: 'east__west' }, { [ZONE]: 'west' }, true],
    [{ [ZONE]: 'east__west' }, { [ZONE]: 'est' }, false],
    [{ [ZONE]: 'east' }, {}, true],
    [{ [ZONE]: 'east' }, { [REGION]: 'r' }, false],
    [{ [REGION]: 'r' }, { [ZONE]: 'east', [REGION]: 'r' }, true],
    [{ [REGION]: 'r', [ZONE]: 'east' }, { [ZONE]: 'east', [REGION]: 'other' }, false],
    [{}, { [ZONE]: 'east' }, true],
    [{ 'failure-domain.beta.kubernetes.io/zone': 'east' }, { 'failure-domain.beta.kubernetes.io/zone': 'west' }, false],
    [
      { 'failure-domain.beta.kubernetes.io/region': 'r' },
      { 'failure-domain.beta.kubernetes.io/region': 'other' },
      false,
    ],
  ])('with the labels %j on a node with %j: %s', (labels, ofNode, expected) => {
    const reason = reasonOn(zoned(labels), node('a', ofNode));
    expect(reason).toBe(expected ? undefined : 'node(s) had no available volume zone');
  });
});

describe('a claim for one pod alone', () => {
  const alone = { accessModes: ['ReadWriteOncePod'] };
  const other = (more: object) =>
    ({ ...pod('c'), uid: 'other', nodeName: 'a', phase: 'Running', ...more }) as unknown as SchedulablePod;
  const of = (spec: object, ...others: readonly SchedulablePod[]) =>
    volumesOf({ claims: [bound('c', 'v', spec)], volumes: [volume('v')], others });

  it('is in use by another pod of its namespace with the claim, and by no other', () => {
    const used = 'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode';
    expect(reasonOn(of(alone, other({})), node('b'))).toBe(used);
    expect(reasonOn(of({}, other({})), node('b'))).toBeUndefined();
    for (const more of [{ uid: 'p' }, { namespace: 'elsewhere' }, { claims: ['d'] }]) {
      expect(reasonOn(of(alone, other(more)), node('b'))).toBeUndefined();
    }
  });
});

describe('unbound claims', () => {
  const steps = (given: Stored, on: SchedulableNode) =>
    volumesOf(given)
      .stepsOn(on)
      .map((step) => {
        if (step.kind === 'wait') return ['wait', step.claim.metadata.name];
        const { metadata } = step.next;
        return step.kind === 'selectNode'
          ? [metadata.name, metadata.annotations?.[SELECTED]]
          : [metadata.name, (step.next as KubePersistentVolume).spec?.claimRef?.name];
      });

  it('get different volumes, the small request the small one', () => {
    const claims = [claim('large', { resources: { requests: { storage: '2Gi' } } }), claim('small')];
    const volumes = [volume('one', { capacity: { storage: '3Gi' } }), volume('two')];
    expect(steps({ claims, volumes }, node('a'))).toEqual([
      ['two', 'small'],
      ['one', 'large'],
    ]);
    const of = volumesOf({ claims, volumes: volumes.slice(0, 1) });
    expect(reasonOn(of, node('a'))).toBe("node(s) didn't find available persistent volumes to bind");
    expect(of.stepsOn(node('a'))).toEqual([]);
  });

  it('get no volume that the node does not reach, by whatever term', () => {
    const labelled = { matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] };
    const both = { ...onName('a'), ...labelled };
    const reached = (terms: readonly object[], on: SchedulableNode) =>
      steps({ claims: [claim('c')], volumes: [volume('v', reachedBy(...terms))] }, on).length === 1;
    expect(reached([labelled], node('a', { disk: 'ssd' }))).toBe(true);
    expect(reached([labelled], node('a'))).toBe(false);
    expect(reached([both], node('a', { disk: 'ssd' }))).toBe(true);
    expect(reached([both], node('a'))).toBe(false);
    expect(reached([both], node('b', { disk: 'ssd' }))).toBe(false);
    expect(reached([onName('b'), labelled], node('a', { disk: 'ssd' }))).toBe(true);
    expect(reached([onName('a'), onName('b')], node('b'))).toBe(true);
    const notA = { matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['a'] }] };
    expect(reached([notA], node('b'))).toBe(true);
    expect(reached([notA], node('a'))).toBe(false);
    const host = (operator: string) => ({
      matchExpressions: [{ key: 'kubernetes.io/hostname', operator, values: ['a'] }],
    });
    expect([reached([host('In')], node('a')), reached([host('In')], node('b'))]).toEqual([true, false]);
    expect([reached([host('NotIn')], node('a')), reached([host('NotIn')], node('b'))]).toEqual([false, true]);
  });

  it('are claimed by their uid, with the mark of the controller unless a person wrote the reference', () => {
    const claimRef = { namespace: 'default', name: 'c' };
    const next = (given: KubePersistentVolume) => {
      const [step] = volumesOf({ claims: [claim('c')], volumes: [given] }).stepsOn(node('a'));
      return step?.kind === 'claimVolume' ? step.next : undefined;
    };
    const full = {
      kind: 'PersistentVolumeClaim',
      namespace: 'default',
      name: 'c',
      uid: 'uid-c',
      apiVersion: 'v1',
      resourceVersion: '7',
    };
    expect(next(volume('v'))).toMatchObject({
      metadata: { annotations: { 'pv.kubernetes.io/bound-by-controller': 'yes' } },
      spec: { claimRef: full },
    });
    const reserved = next(volume('v', { claimRef }));
    expect(reserved?.spec?.claimRef).toEqual(full);
    expect(reserved?.metadata.annotations).toEqual({});
    const claimed = volume('v', { claimRef: { ...claimRef, uid: 'uid-c' } });
    expect(next(claimed)).toBe(claimed);
  });

  it('of a class with a provisioner select the node, within the topologies of the class', () => {
    const made = storage({ provisioner: 'example.com/p' });
    expect(steps({ claims: [claim('c')], storage: made }, node('a'))).toEqual([['c', 'a']]);
    expect(steps({ claims: [claim('c')], storage: storage({ provisioner: '' }) }, node('a'))).toEqual([]);
    const within = storage({
      provisioner: 'example.com/p',
      allowedTopologies: [
        {
          matchLabelExpressions: [
            { key: ZONE, values: ['east'] },
            { key: 'disk', values: ['ssd'] },
          ],
        },
        { matchLabelExpressions: [{ key: ZONE, values: ['west'] }] },
      ],
    });
    const fits = (labels: Readonly<Record<string, string>>) =>
      steps({ claims: [claim('c')], storage: within }, node('a', labels)).length === 1;
    expect(fits({ [ZONE]: 'east', disk: 'ssd' })).toBe(true);
    expect(fits({ [ZONE]: 'east' })).toBe(false);
    expect(fits({ [ZONE]: 'west' })).toBe(true);
    expect(fits({})).toBe(false);
  });

  it('with a selected node fit that node alone, and get no volume there', () => {
    const selected = claim('c', {}, { annotations: { [SELECTED]: 'a' } });
    const given = { claims: [selected], volumes: [volume('v')], storage: storage({ provisioner: 'example.com/p' }) };
    expect(steps(given, node('a'))).toEqual([['wait', 'c']]);
    expect(reasonOn(volumesOf(given), node('b'))).toBe("node(s) didn't find available persistent volumes to bind");
  });
});
