import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../types.ts';
import {
  type LeaseChange,
  leaseMergePatch,
  leaseOf,
  leaseReplacement,
  microsOf,
  microTimeText,
} from './lease-record.ts';

const OWNER = { apiVersion: 'v1', kind: 'Node', name: 'edge-1', uid: 'node-uid' };

const aLease = (change: Partial<KubeObject> = {}): KubeObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'edge-1', namespace: 'kube-node-lease', ownerReferences: [OWNER] },
  spec: { holderIdentity: 'edge-1', leaseDurationSeconds: 40, renewTime: '2026-11-20T17:50:26.123456Z' },
  ...change,
});

const changeFor = (lease: KubeObject): LeaseChange => {
  const result = leaseReplacement(lease);
  if (result.kind !== 'change') throw new Error(result.kind);
  return result.change;
};

const stored = (lease: KubeObject, nodeUid = 'node-uid') => {
  const change = changeFor(lease);
  const { set } = change.ownerUid === undefined || change.ownerUid === nodeUid ? change : change.spelledOut;
  return leaseOf({ pk: 's01', sk: 'edge-1', u: nodeUid, v: 17, i: 'lease-uid', c: 1_700_000_000, ...set });
};

describe('a Lease in a row', () => {
  it('keeps what a kubelet writes in numbers and flags only', () => {
    const { set } = changeFor(aLease());
    expect(set).toEqual({ t: 1_795_197_026_123_456, d: 40, o: 1 });
  });

  it('is read as it was written, with its system fields', () => {
    expect(stored(aLease())).toEqual({
      ...aLease(),
      metadata: {
        ...aLease().metadata,
        uid: 'lease-uid',
        resourceVersion: '17',
        creationTimestamp: '2023-11-14T22:13:20Z',
      },
    });
  });

  it('keeps the usage of the machine in one short attribute, and any other text as it was written', () => {
    const withUsage = (usage: string) =>
      aLease({ metadata: { ...aLease().metadata, annotations: { a: 'b', 'nodekeeper.dev/usage': usage } } });
    const { set } = changeFor(withUsage('0.250 1024 60 1'));
    expect(set).toMatchObject({ U: '0.250 1024 60 1', x: '{"annotations":{"a":"b"}}' });
    for (const usage of ['0.250 1024 60 1', 'free text']) {
      expect(stored(withUsage(usage))?.metadata.annotations).toEqual({ a: 'b', 'nodekeeper.dev/usage': usage });
    }
    expect(changeFor(withUsage('free text')).remove).toContain('U');
    expect(changeFor(aLease()).remove).toContain('U');
  });

  it.each<[string, Partial<KubeObject>]>([
    ['no holder', { spec: { leaseDurationSeconds: 40 } }],
    ['another holder', { spec: { holderIdentity: 'somebody' } }],
    [
      'every field',
      {
        spec: {
          holderIdentity: 'edge-1',
          leaseDurationSeconds: 1,
          acquireTime: '2026-01-01T00:00:00.000001Z',
          renewTime: '1999-12-31T23:59:59.999999Z',
          leaseTransitions: 3,
          strategy: 'OldestEmulationVersion',
          preferredHolder: 'edge-2',
        },
      },
    ],
    [
      'labels, annotations and finalizers',
      {
        metadata: {
          name: 'edge-1',
          namespace: 'kube-node-lease',
          labels: { a: 'b' },
          annotations: { 'x/y': 'ü' },
          finalizers: ['keep/it'],
        },
      },
    ],
    [
      'two owners',
      {
        metadata: {
          name: 'edge-1',
          namespace: 'kube-node-lease',
          ownerReferences: [OWNER, { ...OWNER, kind: 'Other', controller: true }],
        },
      },
    ],
    [
      'an owner with flags',
      {
        metadata: { name: 'edge-1', namespace: 'kube-node-lease', ownerReferences: [{ ...OWNER, controller: true }] },
      },
    ],
    [
      'another Node as owner',
      {
        metadata: { name: 'edge-1', namespace: 'kube-node-lease', ownerReferences: [{ ...OWNER, uid: 'earlier' }] },
      },
    ],
  ])('keeps %s', (_, change) => {
    const lease = aLease(change);
    const back = stored(lease);
    expect(back?.spec).toEqual(lease.spec);
    expect(back?.metadata).toMatchObject(lease.metadata);
    expect(Object.keys(back?.metadata ?? {}).sort()).toEqual(
      [...Object.keys(lease.metadata), 'creationTimestamp', 'resourceVersion', 'uid'].sort(),
    );
  });

  it('removes what the replaced Lease had and this one has not', () => {
    expect([...changeFor(aLease()).remove].sort()).toEqual(['U', 'a', 'h', 'n', 'x']);
    const { remove } = changeFor(aLease({ metadata: { name: 'edge-1' }, spec: {} }));
    expect([...remove].sort()).toEqual(['U', 'a', 'd', 'n', 'o', 't', 'x']);
  });

  it('is too large when its labels are', () => {
    const labels = { long: 'x'.repeat(500) };
    expect(leaseReplacement(aLease({ metadata: { name: 'edge-1', labels } })).kind).toBe('tooLarge');
  });

  it('is none where a row holds only a digest', () => {
    expect(leaseOf({ pk: 's01', sk: 'edge-1', u: 'node-uid' })).toBeUndefined();
  });
});

describe('a merge patch of a Lease', () => {
  it('changes the fields it names and no other', () => {
    const patch = { kind: 'Lease', metadata: { name: 'edge-1' }, spec: { renewTime: '1970-01-01T00:00:01Z' } };
    expect(leaseMergePatch('edge-1', patch)).toMatchObject({
      kind: 'change',
      change: { set: { t: 1_000_000 }, remove: [] },
    });
  });

  it('removes a field by null, and the holder as well', () => {
    const result = leaseMergePatch('edge-1', { spec: { leaseDurationSeconds: null, holderIdentity: null } });
    expect(result).toMatchObject({ kind: 'change', change: { set: { h: '' }, remove: ['d'] } });
  });

  it('restores the node as the holder by its name', () => {
    const result = leaseMergePatch('edge-1', { spec: { holderIdentity: 'edge-1' } });
    expect(result).toMatchObject({ kind: 'change', change: { set: {}, remove: ['h'] } });
  });

  it.each([
    ['labels', { metadata: { labels: { a: 'b' } } }],
    ['rare fields', { spec: { strategy: 'x' } }],
    ['the whole spec', { spec: null }],
    ['a field we do not know', { other: 1 }],
  ])('needs the stored Lease for %s', (_, patch) => {
    expect(leaseMergePatch('edge-1', patch)).toEqual({ kind: 'needsRead' });
  });
});

describe('micro times', () => {
  it.each([
    ['2026-11-20T17:50:26.123456Z', '2026-11-20T17:50:26.123456Z'],
    ['2026-11-20T17:50:26Z', '2026-11-20T17:50:26.000000Z'],
    ['2026-11-20T19:50:26.5+02:00', '2026-11-20T17:50:26.500000Z'],
    ['1969-12-31T23:59:59.999999Z', '1969-12-31T23:59:59.999999Z'],
  ])('%s', (text, canonical) => {
    expect(microTimeText(microsOf(text))).toBe(canonical);
  });
});
