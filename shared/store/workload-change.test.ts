/** Which changes of an object start the controllers of workloads, field by field. */
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../kinds/types.ts';
import { changesWorkloads } from './workload-change.ts';

type Json = Record<string, unknown>;

/** The object with another value at a path. */
function withField(object: KubeObject, path: string, value: unknown): KubeObject {
  const changed = structuredClone(object);
  const fields = path.split('.');
  let at = changed as unknown as Json;
  for (const field of fields.slice(0, -1)) {
    at[field] ??= {};
    at = at[field] as Json;
  }
  at[fields.at(-1)!] = value;
  return changed;
}

const METADATA: Json = {
  'metadata.labels': { app: 'b' },
  'metadata.ownerReferences': [{ uid: 'o' }],
  'metadata.finalizers': ['f'],
  'metadata.deletionTimestamp': '2026-01-01T00:00:00Z',
  'metadata.deletionGracePeriodSeconds': 7,
};
const COST = 'controller.kubernetes.io/pod-deletion-cost';
const ready = (status: string, lastTransitionTime: string) => ({ type: 'Ready', status, lastTransitionTime });
const spec = { 'spec.x': 1 };
const annotations = { 'metadata.annotations': { note: 'x' } };
const status = { 'status.x': 1 };
const whole = { ...METADATA, ...annotations, ...spec, ...status };

interface Parts {
  /** By path: a value that controllers act on. */
  readonly read: Json;
  readonly unread: Json;
}

const PARTS: Readonly<Record<string, Parts>> = {
  pods: {
    read: {
      ...METADATA,
      'metadata.annotations': { [COST]: '5' },
      'spec.nodeName': 'n1',
      'status.phase': 'Failed',
      'status.conditions': [ready('True', 'a'), { type: 'Other', status: 'True' }],
      'status.containerStatuses': [{ restartCount: 1 }],
      'status.podIP': '10.0.0.2',
      'status.podIPs': [{ ip: '10.0.0.2' }],
    },
    unread: {
      ...spec,
      ...annotations,
      'status.message': 'x',
      'status.conditions': [ready('False', 'a'), { type: 'Other', status: 'True' }],
      'status.containerStatuses': [{ restartCount: 0, image: 'x' }],
    },
  },
  replicasets: { read: whole, unread: {} },
  replicationcontrollers: { read: whole, unread: {} },
  deployments: { read: { ...METADATA, ...annotations, ...spec }, unread: status },
  daemonsets: { read: { ...METADATA, ...annotations, ...spec }, unread: status },
  statefulsets: { read: { ...METADATA, ...annotations, ...spec }, unread: status },
  nodes: {
    read: { 'metadata.labels': { app: 'b' }, 'spec.taints': [{ key: 'k' }] },
    unread: { ...spec, ...annotations, ...status, 'metadata.finalizers': ['f'] },
  },
  jobs: {
    read: {
      ...METADATA,
      ...spec,
      'status.conditions': [{ type: 'Complete' }, { type: 'Suspended' }],
      'status.completionTime': 'x',
    },
    unread: { ...annotations, 'status.active': 3, 'status.conditions': [{ type: 'Suspended' }] },
  },
  cronjobs: { read: { ...METADATA, ...spec }, unread: { ...annotations, ...status } },
  poddisruptionbudgets: {
    read: { ...METADATA, ...spec, 'status.disruptedPods': { p: 'x' } },
    unread: { ...annotations, 'status.currentHealthy': 3 },
  },
  namespaces: {
    read: { 'metadata.labels': { app: 'b' }, 'metadata.deletionTimestamp': 'x', 'metadata.finalizers': ['f'], ...spec },
    unread: { 'metadata.annotations': { a: 'b' }, ...status },
  },
  endpointslices: {
    read: { 'metadata.labels': { app: 'b' }, addressType: 'IPv6', endpoints: [{ addresses: ['10.0.0.1'] }], ports: [] },
    unread: { 'metadata.annotations': { a: 'b' } },
  },
  networkpolicies: { read: spec, unread: { 'metadata.labels': { app: 'b' } } },
  resourcequotas: { read: spec, unread: { ...status, 'metadata.labels': { app: 'b' } } },
  endpoints: {
    read: { 'metadata.labels': { app: 'b' }, ...annotations, subsets: [{ ports: [] }] },
    unread: { 'metadata.managedFields': [{ manager: 'x' }] },
  },
  services: {
    read: {
      'metadata.labels': { app: 'b' },
      'metadata.deletionTimestamp': 'x',
      'metadata.finalizers': ['f'],
      ...spec,
    },
    unread: { ...annotations, ...status },
  },
  persistentvolumeclaims: { read: whole, unread: {} },
  persistentvolumes: { read: whole, unread: {} },
  storageclasses: { read: annotations, unread: { 'metadata.labels': { app: 'b' }, ...spec } },
  customresourcedefinitions: {
    read: {
      'metadata.deletionTimestamp': 'x',
      'metadata.finalizers': ['f'],
      'spec.names': { kind: 'Widget' },
      'status.acceptedNames': { kind: 'Widget' },
    },
    unread: { ...annotations, ...spec, ...status, 'metadata.labels': { app: 'b' } },
  },
};

const BASE: KubeObject = {
  metadata: { name: 'a', namespace: 'default', labels: { app: 'a' } },
  spec: { nodeName: 'n0', taints: [] },
  status: {
    phase: 'Running',
    podIP: '10.0.0.1',
    conditions: [ready('False', 'a')],
    containerStatuses: [{ restartCount: 0 }],
  },
};
const cases = (part: keyof Parts) =>
  Object.entries(PARTS).flatMap(([resource, parts]) =>
    Object.entries(parts[part]).map(([path, value]) => [resource, path, value] as const),
  );

describe('the controllers of workloads are started', () => {
  it.each(cases('read'))('by a change of %s: %s', (resource, path, value) => {
    expect(changesWorkloads(resource, BASE, withField(BASE, path, value))).toBe(true);
    expect(changesWorkloads(resource, withField(BASE, path, value), BASE)).toBe(true);
  });

  it('by the moment at which a pod became ready, and not by that of another condition', () => {
    const pod = (conditions: object[]) => withField(BASE, 'status.conditions', conditions);
    const at = (ofReady: string, ofOther: string) =>
      pod([
        { type: 'Other', status: 'True', lastTransitionTime: ofOther },
        { type: 'Ready', status: 'True', lastTransitionTime: ofReady },
      ]);
    expect(changesWorkloads('pods', at('a', 'a'), at('b', 'a'))).toBe(true);
    expect(changesWorkloads('pods', at('a', 'a'), at('a', 'b'))).toBe(false);
  });

  it.each(['Complete', 'Failed'])('by a Job that is %s', (type) => {
    const job = (conditions: object[]) => withField(BASE, 'status.conditions', conditions);
    expect(changesWorkloads('jobs', job([]), job([{ type }]))).toBe(true);
  });

  it.each(Object.keys(PARTS))('by new %s', (resource) => {
    expect(changesWorkloads(resource, undefined, BASE)).toBe(true);
  });

  it.each(['secrets', 'pods', 'widgets'])('by another owner of one of the %s', (resource) => {
    const owned = withField(BASE, 'metadata.ownerReferences', [{ uid: 'o' }]);
    expect(changesWorkloads(resource, BASE, owned)).toBe(true);
    expect(changesWorkloads(resource, undefined, owned)).toBe(true);
  });

  it('by no list of owners that is empty, and by a new object that waits for its dependents', () => {
    expect(changesWorkloads('widgets', BASE, withField(BASE, 'metadata.ownerReferences', []))).toBe(false);
    const deleted = withField(BASE, 'metadata.deletionTimestamp', '2026-01-01T00:00:00Z');
    expect(changesWorkloads('widgets', undefined, withField(deleted, 'metadata.finalizers', ['orphan']))).toBe(true);
  });

  it.each([
    ['foregroundDeletion', true],
    ['orphan', true],
    ['example.com/other', false],
  ])('by the deletion of an object of any kind that waits for its dependents with %s: %s', (finalizer, isStarted) => {
    const waiting = withField(BASE, 'metadata.finalizers', [finalizer]);
    const deleted = withField(waiting, 'metadata.deletionTimestamp', '2026-01-01T00:00:00Z');
    expect(changesWorkloads('widgets', waiting, deleted)).toBe(isStarted);
    expect(changesWorkloads('widgets', BASE, waiting)).toBe(false);
  });

  it('by a deletion without dependents, of no kind that they do not read', () => {
    const deleted = withField(BASE, 'metadata.deletionTimestamp', '2026-01-01T00:00:00Z');
    expect(changesWorkloads('widgets', BASE, deleted)).toBe(false);
  });

  it('by Endpoints of a client, and not by the lock of a leader election', () => {
    const lock = withField(BASE, 'metadata.annotations', { 'control-plane.alpha.kubernetes.io/leader': 'a' });
    expect(changesWorkloads('endpoints', lock, withField(lock, 'subsets', [{ ports: [] }]))).toBe(false);
    expect(changesWorkloads('endpoints', undefined, lock)).toBe(true);
  });

  it('by a change of the certificates of a namespace, and of no other ConfigMap', () => {
    const map = (name: string, data: object): KubeObject => ({ metadata: { name, namespace: 'default' }, data });
    const change = (name: string) => changesWorkloads('configmaps', map(name, {}), map(name, { a: 'x' }));
    expect(change('kube-root-ca.crt')).toBe(true);
    expect(change('other')).toBe(false);
    expect(changesWorkloads('configmaps', undefined, map('kube-root-ca.crt', {}))).toBe(false);
  });
});

describe('they are not started', () => {
  it.each(cases('unread'))('by a change of %s: %s', (resource, path, value) => {
    expect(changesWorkloads(resource, BASE, withField(BASE, path, value))).toBe(false);
  });

  it.each([...Object.keys(PARTS), 'configmaps', 'widgets'])('by a write of %s that changes nothing', (resource) => {
    expect(changesWorkloads(resource, BASE, structuredClone(BASE))).toBe(false);
  });

  it.each(['secrets', 'widgets', 'configmaps'])('by new %s', (resource) => {
    expect(changesWorkloads(resource, undefined, BASE)).toBe(false);
  });
});
