/** A work that failed, twice, is stored with its due time, and done by the first tick after it. */
import { describe, expect, it } from 'vitest';
import type { KubeObject, OwnerReference } from '../../shared/kinds/types.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { daemonCluster } from '../../test/support/daemon-cluster.ts';

const DOWN = new StoreFault('throttled', 'down', { retryable: true });
type Cluster = ReturnType<typeof daemonCluster>;

const unreadable = (items: ItemStore): ItemStore => ({
  ...items,
  get: () => Promise.reject(DOWN),
  getMany: () => Promise.reject(DOWN),
  query: () => Promise.reject(DOWN),
  scan: () => Promise.reject(DOWN),
});
const rowsOf = async (cluster: Cluster): Promise<string[]> =>
  cluster.tables
    .items('control')
    .flatMap(({ pk, sk }) => (pk === 'workloads-due' && sk !== 'next-sweep' ? [String(sk)] : []));
const textsOf = async (cluster: Cluster): Promise<string[]> =>
  (await rowsOf(cluster)).map((sk) => sk.slice(sk.indexOf('#') + 1)).filter((text) => text !== 'sweep');

const mapOf = (name: string, owner?: KubeObject, blockOwnerDeletion?: boolean): KubeObject => {
  const { name: ownerName = '', uid = '' } = owner?.metadata ?? {};
  const reference: OwnerReference = { apiVersion: 'v1', kind: 'ConfigMap', name: ownerName, uid };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      ...(owner && { ownerReferences: [{ ...reference, ...(blockOwnerDeletion && { blockOwnerDeletion }) }] }),
    },
  };
};
const markDeleted = (cluster: Cluster, resource: string, name: string, finalizer: string) =>
  cluster.change(resource, name, (object) => ({
    ...object,
    metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [finalizer] },
  }));
const namesOf = async (cluster: Cluster, resource: string) =>
  (await cluster.list(resource)).map(({ metadata }) => metadata.name);
const pod = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'v1' }] },
});

interface Case {
  /** Before the failure; settled. */
  readonly given?: (cluster: Cluster) => Promise<unknown>;
  /** The works of these changes fail. */
  readonly change: (cluster: Cluster) => Promise<unknown>;
  readonly rows: readonly string[];
  /** What the repetition brings about. */
  readonly result: (cluster: Cluster) => Promise<unknown>;
  readonly expected: unknown;
}

const cases: Readonly<Record<string, Case>> = {
  'a sync': {
    change: (cluster) => cluster.createSet(2),
    rows: ['replicasets:default/web'],
    result: async (cluster) => (await cluster.pods()).length,
    expected: 2,
  },
  'an adoption': {
    given: (cluster) => cluster.createSet(0),
    change: (cluster) => cluster.create('pods', pod('orphan')),
    rows: ['adopt=pods:default/orphan', 'poddisruptionbudgets:default/'],
    // The set wants none: it adopts the pod, and deletes it.
    result: (cluster) => namesOf(cluster, 'pods'),
    expected: [],
  },
  'a change of nodes': {
    given: (cluster) => cluster.createDaemonSet(),
    change: (cluster) => cluster.createNode('n0'),
    rows: ['daemonSets'],
    result: async (cluster) => (await cluster.pods()).length,
    expected: 1,
  },
  'the collection of dependents': {
    given: async (cluster) =>
      cluster.create('configmaps', mapOf('dependent', await cluster.create('configmaps', mapOf('owner')))),
    change: (cluster) => cluster.remove('configmaps', 'owner'),
    rows: ['collect=00000000-0000-4000-8000-000000000001'],
    result: (cluster) => namesOf(cluster, 'configmaps'),
    expected: [],
  },
  'the check of an owner': {
    change: (cluster) =>
      cluster.create('configmaps', mapOf('dependent', { metadata: { name: 'never', uid: 'never' } })),
    rows: ['dependents=never'],
    result: (cluster) => namesOf(cluster, 'configmaps'),
    expected: [],
  },
  'the end of a deletion': {
    given: async (cluster) =>
      cluster.create('configmaps', mapOf('dependent', await cluster.create('configmaps', mapOf('owner')))),
    change: (cluster) => markDeleted(cluster, 'configmaps', 'owner', 'orphan'),
    rows: ['finish=configmaps:default/owner'],
    result: (cluster) => namesOf(cluster, 'configmaps'),
    expected: ['dependent'],
  },
  'the end of the deletion of an owner': {
    async given(cluster) {
      const owner = await cluster.create('configmaps', mapOf('owner'));
      await cluster.create('configmaps', mapOf('blocks', owner, true));
      await cluster.change('configmaps', 'blocks', (object) => ({
        ...object,
        metadata: { ...object.metadata, finalizers: ['a/b'] },
      }));
      await markDeleted(cluster, 'configmaps', 'owner', 'foregroundDeletion');
    },
    change: (cluster) => cluster.remove('configmaps', 'blocks'),
    rows: ['finish=configmaps:default/owner', 'collect=00000000-0000-4000-8000-000000000002'],
    result: (cluster) => namesOf(cluster, 'configmaps'),
    expected: [],
  },
  'a Deployment that waits for the end of pods': {
    async given(cluster) {
      await cluster.createDeployment({ replicas: 1, strategy: { type: 'Recreate' } });
      await cluster.settleRunning();
      await cluster.change('deployments', 'web', (object) => ({
        ...object,
        spec: {
          ...object.spec,
          template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'v2' }] } },
        },
      }));
      await cluster.settle();
    },
    async change(cluster) {
      for (const name of await namesOf(cluster, 'pods')) await cluster.remove('pods', name ?? '');
    },
    rows: [expect.stringMatching(/^podEnded=replicasets:default\/web-/) as unknown as string],
    result: async (cluster) => (await cluster.pods()).map(({ spec }) => spec?.containers?.[0]?.image),
    expected: ['v2'],
  },
};

describe.each(Object.entries(cases))('%s', (_, { given, change, rows, result, expected }) => {
  it('that failed is due 10 s later, and then done', async () => {
    const cluster = daemonCluster();
    await cluster.tick();
    await given?.(cluster);
    await cluster.settle();
    await change(cluster);
    const outcome = await cluster
      .makeControllers(unreadable(cluster.tables))
      .onWorkloadRecords(await cluster.records());
    expect(outcome.faults).toEqual([]);
    expect(outcome.postponed.length).toBeGreaterThan(0);
    expect(await textsOf(cluster)).toEqual(expect.arrayContaining([...rows]));
    cluster.advance(9_000);
    expect(await cluster.tick()).toMatchObject({ due: 0 });
    cluster.advance(6_000);
    const due = new Set((await rowsOf(cluster)).filter((sk) => Number(sk.slice(0, 14)) <= cluster.now())).size;
    expect(due).toBeGreaterThan(0);
    expect(await cluster.tick()).toMatchObject({ due });
    await cluster.settle();
    expect(await result(cluster)).toEqual(expected);
    const left = await textsOf(cluster);
    for (const text of rows) expect(left).not.toContainEqual(text);
  });
});

it('a work that fails at its due time is moved by a minute, with all its rows', async () => {
  const cluster = daemonCluster();
  await cluster.tick();
  await cluster.createSet(1);
  const batch = await cluster.records();
  const failing = cluster.makeControllers(unreadable(cluster.tables));
  await failing.onWorkloadRecords(batch);
  cluster.advance(1_000);
  await failing.onWorkloadRecords(batch);
  const web = async () => (await textsOf(cluster)).filter((text) => text === 'replicasets:default/web');
  expect(await web()).toHaveLength(2);
  cluster.advance(14_000);
  const broken = cluster.makeControllers({ ...cluster.tables, transact: () => Promise.reject(DOWN) });
  await expect(broken.tickWorkloads(Math.floor(cluster.now() / 5_000))).rejects.toThrow();
  const [row, ...others] = (await rowsOf(cluster)).filter((sk) => sk.endsWith('#replicasets:default/web'));
  expect(others).toEqual([]);
  expect(Number(row?.slice(0, 14))).toBe(cluster.now() + 60_000);
  cluster.advance(60_000);
  expect(await cluster.tick()).toMatchObject({ due: 1 });
  expect(await cluster.pods()).toHaveLength(1);
});

it('a tick that finds nothing due claims no slot', async () => {
  const cluster = daemonCluster();
  await cluster.tick();
  const before = JSON.stringify(cluster.tables.items('control'));
  cluster.stopTicks();
  cluster.advance(5_000);
  expect(await cluster.tick()).toEqual({ kind: 'ran', due: 0, swept: 0 });
  expect(JSON.stringify(cluster.tables.items('control'))).toBe(before);
});
