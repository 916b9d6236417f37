import { describe, expect, it } from 'vitest';
import { replay } from '../../../cli/replay.ts';
import { type DecisionRecord, sealed } from '../../../shared/decisions/decision-record.ts';
import { OFFLINE_STOP_AFTER } from '../../../shared/kinds/pods/offline-stop.ts';
import type { KubeResourceQuota } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { addDue } from '../../../shared/ticks/due-rows.ts';
import { recordedReads } from '../../../test/support/recorded-reads.ts';
import { type WorkloadCluster, workloadCluster } from '../../../test/support/workload-cluster.ts';
import { ownedPodOf } from '../owned-pods.rule.ts';
import { podsDeletedDraft } from './decisions.ts';
import { byLogShard, firstToDelete } from './rule.ts';

const names = (objects: readonly { metadata: { name?: string } }[]) => objects.map(({ metadata }) => metadata.name);

/** Log entries of a resource, as many as transactions and shards. */
const logItems = ({ tables }: WorkloadCluster, resource: string) =>
  tables.items('objects').filter(({ pk }) => String(pk).startsWith(`l#${resource}#`)).length;

describe('a ReplicaSet', () => {
  it('gets its pods, with its reference, labels and defaults, and a status', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(3);
    await cluster.settle();
    const pods = await cluster.pods();
    expect(pods).toHaveLength(3);
    expect(pods[0]).toMatchObject({
      kind: 'Pod',
      metadata: {
        name: expect.stringMatching(/^web-[bcdfghjklmnpqrstvwxz2456789]{5}$/),
        generateName: 'web-',
        labels: { app: 'web' },
        ownerReferences: [{ kind: 'ReplicaSet', name: 'web', controller: true, blockOwnerDeletion: true }],
      },
      spec: {
        dnsPolicy: 'ClusterFirst',
        tolerations: expect.arrayContaining([expect.objectContaining({ tolerationSeconds: 300 })]),
      },
      status: { phase: 'Pending' },
    });
    const [set] = await cluster.sets();
    expect(set?.status).toEqual({ replicas: 3, fullyLabeledReplicas: 3, observedGeneration: 1 });
    expect(await cluster.events('SuccessfulCreate')).toHaveLength(3);
  });

  it.each(['another', 'the same'])(
    'chooses other names for its pods if %s owner has a pod of the name',
    async (owner) => {
      // Names follow from the uid of the set, and those of a second cluster are the same.
      const other = workloadCluster();
      await other.createSet(2);
      await other.settle();
      const chosen = other.tables
        .changes('objects', 0)
        .flatMap(({ key, type }) => (key.pk.startsWith('o#pods#') && type === 'INSERT' ? [key.sk.split('/')[1]!] : []));
      expect(chosen).toHaveLength(2);
      const cluster = workloadCluster();
      const set = await cluster.createSet(2);
      const { uid = '' } = set.metadata;
      const taken = chosen[owner === 'another' ? 0 : 1]!;
      const labels = { app: owner === 'another' ? 'other' : 'web' };
      await cluster.create('pods', {
        kind: 'Pod',
        metadata: { name: taken, labels },
        spec: { containers: [{ name: 'c', image: 'i' }] },
      });
      await cluster.settle();
      const ours = (await cluster.pods()).filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid);
      expect(ours).toHaveLength(2);
      expect(names(ours).includes(taken)).toBe(owner === 'the same');
    },
  );

  it('gets no pod in place of a terminating one that must not run twice, which its decisions count', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(2);
    const annotations = { [OFFLINE_STOP_AFTER]: '2h' };
    const scale = (replicas: number) =>
      cluster.change('replicasets', 'web', (set) => {
        const template = { ...(set.spec?.['template'] as object), metadata: { labels: { app: 'web' }, annotations } };
        return { ...set, spec: { ...set.spec, replicas, template } };
      });
    await scale(2);
    await cluster.settleRunning();
    const [first] = await cluster.pods();
    await cluster.markPod(first?.metadata.name ?? '');
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(1);
    await scale(3);
    await cluster.settleRunning();
    expect(await cluster.pods()).toHaveLength(2);
    const created = (await cluster.decisions()).filter(({ act }) => act === 'PodsCreated');
    expect(created.map(({ reason }) => reason)).toContainEqual(
      expect.stringMatching(/^3 pods are wanted and 1 are active, 1 terminate and must not run twice: created web-/),
    );
    for (const record of created) expect(replay(record)).toMatchObject({ same: true, checked: true });
    await cluster.remove('pods', first?.metadata.name ?? '');
    await cluster.settleRunning();
    expect(await cluster.pods()).toHaveLength(3);
  });

  it('creates the pods of one transaction in one shard of the change log, and all batches in several', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(200);
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(200);
    // 1, 2, 4, 8, and 12 times 16 or less.
    expect(logItems(cluster, 'pods')).toBe(16);
    const shards = cluster.tables.items('objects').flatMap(({ pk }) => (/^l#pods#/.test(String(pk)) ? [pk] : []));
    expect(new Set(shards).size).toBeGreaterThan(4);
    expect(new Set(names(await cluster.pods())).size).toBe(200);
  });

  it('deletes the pods of one shard of the change log together, and its decisions replay', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(100);
    await cluster.settleRunning();
    const before = logItems(cluster, 'pods');
    await cluster.change('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas: 10 } }));
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(10);
    // 6 transactions; each of the 8 shards ends in one of them.
    expect(logItems(cluster, 'pods') - before).toBeLessThanOrEqual(6 + 8);
    const deleted = (await cluster.decisions()).filter(({ act }) => act === 'PodsDeleted');
    expect(deleted).toHaveLength(6);
    expect(deleted.filter((record) => !replay(record).same)).toEqual([]);
  });

  it('replays an older record: its pods were deleted in the order of deletion', () => {
    const set = { metadata: { namespace: 'default', name: 'web', uid: 'u' }, spec: { replicas: 1 } };
    const pods = ['e', 'd', 'c', 'b', 'a'].map((name, index) =>
      ownedPodOf({
        metadata: { name, namespace: 'default', uid: name, creationTimestamp: formatTime(index * 1_000) },
      }),
    );
    const relatedPods: typeof pods = [];
    const remove = firstToDelete(pods, 4, { relatedPods, nowMs: 9_000 });
    const decision = { create: 0, remove };
    const inOrder = remove.map(({ name }) => name);
    const byShard = byLogShard(remove, { namespace: 'default', logShards: 8 }).map(({ name }) => name);
    expect(byShard).not.toEqual(inOrder);
    const record = (names: readonly string[]) => {
      const of = { decision, pods, relatedPods, names, before: 0, logShards: 8 };
      return sealed({ ...podsDeletedDraft('ReplicaSet', set, of, 9_000), v: 1, policy: '' } as DecisionRecord);
    };
    expect(replay(record(byShard))).toMatchObject({ same: true, checked: true });
    expect(replay(record(inOrder)).same).toBe(false);
  });

  it('decides and writes nothing when it is settled', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(2);
    await cluster.settle();
    const before = cluster.tables.changes('objects', 0).length;
    const ref = { pk: 'o#replicasets#00', sk: 'default/web' };
    const change = cluster.tables.changes('objects', 0).find(({ key }) => key.pk === ref.pk)!;
    await cluster.controllers.onWorkloadRecords([change]);
    await cluster.tick();
    expect(cluster.tables.changes('objects', 0).length).toBe(before);
  });

  it('WR-35 replaces a pod that is being deleted at once, and counts it no longer', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(3);
    await cluster.settleRunning();
    const [first] = await cluster.pods();
    await cluster.markPod(first?.metadata.name ?? '');
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(3);
    expect(await cluster.list('pods')).toHaveLength(4);
    expect((await cluster.sets())[0]?.status?.replicas).toBe(3);
  });

  it('WR-37 replaces a failed pod and leaves it alone', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(2);
    await cluster.settleRunning();
    const [first] = await cluster.pods();
    const name = first?.metadata.name ?? '';
    await cluster.change('pods', name, (pod) => ({ ...pod, status: { ...pod.status, phase: 'Failed' } }));
    await cluster.settle();
    const pods = await cluster.pods();
    expect(pods).toHaveLength(3);
    expect(names(pods)).toContain(name);
  });

  it('is scaled down by the order of deletion, with an event for each pod', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(3);
    await cluster.settleRunning();
    const [first] = await cluster.pods();
    const name = first?.metadata.name ?? '';
    await cluster.change('pods', name, (pod) => ({ ...pod, status: { ...pod.status, conditions: [] } }));
    await cluster.settle();
    await cluster.change('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas: 2 } }));
    await cluster.settle();
    expect(names(await cluster.pods())).not.toContain(name);
    expect(await cluster.pods()).toHaveLength(2);
    expect(await cluster.events('SuccessfulDelete')).toEqual([`Deleted pod: ${name}`]);
  });

  describe('of a controller with another set', () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', controller: true };

    /** Two running pods of `web` on two nodes, and `other` with two pods on the node of the first, or the second. */
    async function twoSets(crowded: number) {
      const cluster = workloadCluster();
      const { uid = '' } = (await cluster.create('configmaps', { kind: 'ConfigMap', metadata: { name: 'owner' } }))
        .metadata;
      for (const name of ['web', 'other']) {
        await cluster.createSet(2, { name });
        await cluster.change('replicasets', name, (set) => ({
          ...set,
          metadata: { ...set.metadata, ownerReferences: [{ ...owner, uid }] },
        }));
      }
      await cluster.settle();
      const podsOf = async (set: string) =>
        (await cluster.pods()).filter(({ metadata }) => metadata.ownerReferences?.[0]?.name === set);
      const bind = (name: string, nodeName: string) =>
        cluster.change('pods', name, (pod) => ({ ...pod, spec: { ...pod.spec, nodeName } }));
      const ours = names(await podsOf('web')) as string[];
      for (const [index, name] of ours.entries()) await bind(name, `n${index}`);
      for (const name of names(await podsOf('other'))) await bind(name!, `n${crowded}`);
      await cluster.settleRunning();
      // Pods that failed do not count: they would outweigh the others.
      for (const [index, set] of ['web', 'web', 'other', 'other'].entries()) {
        await cluster.create('pods', {
          kind: 'Pod',
          metadata: {
            name: `failed-${index}`,
            labels: { app: 'web' },
            ownerReferences: (await podsOf(set))[0]!.metadata.ownerReferences!,
          },
          spec: { nodeName: `n${1 - crowded}` },
          status: { phase: 'Failed' },
        });
      }
      await cluster.settleRunning();
      const scale = (replicas: number) =>
        cluster.change('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas } }));
      return { cluster, ours, podsOf, scale, uid };
    }

    it.each([0, 1])('is scaled down on the node that has more active pods of both: n%i', async (crowded) => {
      const { cluster, ours, podsOf, scale } = await twoSets(crowded);
      await scale(1);
      await cluster.settle();
      const left = names(await podsOf('web')).filter((name) => !name?.startsWith('failed'));
      expect(left).toEqual([ours[1 - crowded]]);
    });

    it.each([
      [0, false],
      [1, true],
      [2, false],
    ])('reads the pods of the other only to choose: of 2 pods with %i wanted: %s', async (replicas, isRead) => {
      const { cluster, scale, uid } = await twoSets(0);
      await scale(replicas);
      const recorded = recordedReads(cluster.tables);
      await cluster.makeControllers(recorded.items).onWorkloadRecords(await cluster.records());
      await cluster.change('replicasets', 'web', (set) => ({
        ...set,
        metadata: { ...set.metadata, labels: { a: 'b' } },
      }));
      await cluster.makeControllers(recorded.items).onWorkloadRecords(await cluster.records());
      expect(recorded.take().some((read) => read.includes(uid))).toBe(isRead);
    });
  });

  it('WR-23 adopts an orphan that matches instead of creating a pod', async () => {
    const cluster = workloadCluster();
    await cluster.create('pods', { kind: 'Pod', metadata: { name: 'orphan', labels: { app: 'web' } }, spec: {} });
    await cluster.createSet(1);
    await cluster.settle();
    expect(names(await cluster.pods())).toEqual(['orphan']);
    expect((await cluster.pods())[0]?.metadata.ownerReferences).toMatchObject([{ name: 'web', controller: true }]);
    await cluster.create('pods', { kind: 'Pod', metadata: { name: 'second', labels: { app: 'web' } }, spec: {} });
    await cluster.settle();
    // Adopted, and one of the two is deleted: it has one too many.
    expect(await cluster.pods()).toHaveLength(1);
  });

  it('adopts more orphans than fit one transaction before it counts', async () => {
    const cluster = workloadCluster();
    const created = Array.from({ length: 20 }, (_, index) => `orphan-${index}`);
    for (const name of created) {
      await cluster.create('pods', { kind: 'Pod', metadata: { name, labels: { app: 'web' } }, spec: {} });
    }
    await cluster.records();
    await cluster.createSet(20);
    await cluster.settle();
    expect(names(await cluster.pods())).toEqual(created.toSorted());
  });

  it('releases a pod that no longer matches, and replaces it', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(1);
    await cluster.settleRunning();
    const name = (await cluster.pods())[0]?.metadata.name ?? '';
    await cluster.change('pods', name, (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { app: 'debug' } } }));
    await cluster.settle();
    const pods = await cluster.pods();
    expect(pods).toHaveLength(2);
    expect(pods.find(({ metadata }) => metadata.name === name)?.metadata.ownerReferences).toBeUndefined();
  });

  it('reports pods that cannot be created, and says so until they can', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(1, { labels: {} });
    await cluster.settle();
    expect(await cluster.events('FailedCreate')).toEqual(['Error creating: unable to create pods, no labels']);
    expect((await cluster.sets())[0]?.status?.conditions).toMatchObject([
      { type: 'ReplicaFailure', reason: 'FailedCreate' },
    ]);
  });

  it('creates no pod in a namespace that is being deleted, without an event', async () => {
    const cluster = workloadCluster();
    const namespace = { metadata: { name: 'default', namespace: '', deletionTimestamp: '2026-01-01T00:00:00Z' } };
    await cluster.objects.commit({
      writes: [{ kind: 'create', ref: { resource: 'namespaces', namespace: '', name: 'default' }, object: namespace }],
    });
    await cluster.createSet(1);
    await cluster.settle();
    expect(await cluster.pods()).toEqual([]);
    expect(await cluster.events('FailedCreate')).toEqual([]);
  });

  it('is looked at again when a Ready pod becomes available', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(1);
    await cluster.change('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, minReadySeconds: 10 } }));
    await cluster.settleRunning();
    const available = async () => (await cluster.sets())[0]?.status?.availableReplicas;
    expect(await available()).toBeUndefined();
    cluster.advance(11_000);
    expect(await cluster.tick()).toMatchObject({ due: 1 });
    expect(await available()).toBe(1);
    cluster.advance(5_000);
    expect(await cluster.tick()).toMatchObject({ due: 0 });
  });
});

const rc = (replicas: number) => ({
  apiVersion: 'v1',
  kind: 'ReplicationController',
  metadata: { name: 'web' },
  spec: {
    replicas,
    selector: { app: 'web' },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'v1' }] } },
  },
});

it('is synced once for several due rows', async () => {
  const cluster = workloadCluster();
  const ref = { resource: 'replicasets', namespace: 'default', name: 'web' };
  await cluster.createSet(20);
  await cluster.records();
  for (let seconds = 1; seconds <= 6; seconds += 1) {
    await addDue(cluster.tables, { atMs: cluster.now() + seconds * 1_000, key: { kind: 'workload', ref } });
  }
  cluster.advance(10_000);
  // Works on one owner at the same time would overtake each other, and the tick would end with a fault.
  expect(await cluster.tick()).toMatchObject({ due: 1 });
  expect(await cluster.pods()).toHaveLength(20);
  cluster.advance(5_000);
  expect(await cluster.tick()).toMatchObject({ due: 0 });
});

describe('a ReplicationController', () => {
  it('gets its pods, is scaled, and counts them', async () => {
    const cluster = workloadCluster();
    await cluster.create('replicationcontrollers', rc(3));
    await cluster.settleRunning();
    const owners = (await cluster.pods()).map(({ metadata }) => metadata.ownerReferences);
    const reference = { apiVersion: 'v1', kind: 'ReplicationController', name: 'web', controller: true };
    expect(owners).toMatchObject([[reference], [reference], [reference]]);
    await cluster.change('replicationcontrollers', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas: 1 } }));
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(1);
    const [set] = await cluster.list('replicationcontrollers');
    expect(set).toMatchObject({
      // The selector is stored as it was sent.
      spec: { selector: { app: 'web' } },
      status: { replicas: 1, readyReplicas: 1, availableReplicas: 1, observedGeneration: 2 },
    });
    expect(await cluster.events('SuccessfulDelete')).toHaveLength(2);
  });

  it('adopts an orphan that it selects, and releases a pod that it no longer selects', async () => {
    const cluster = workloadCluster();
    await cluster.create('pods', { kind: 'Pod', metadata: { name: 'orphan', labels: { app: 'web' } }, spec: {} });
    await cluster.create('replicationcontrollers', rc(1));
    await cluster.settle();
    expect(names(await cluster.pods())).toEqual(['orphan']);
    await cluster.change('pods', 'orphan', (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { app: 'x' } } }));
    await cluster.settle();
    const pods = await cluster.pods();
    expect(pods).toHaveLength(2);
    expect(pods.find(({ metadata }) => metadata.name === 'orphan')?.metadata.ownerReferences).toBeUndefined();
  });

  it('is repaired by the sweep when its record was lost', async () => {
    const cluster = workloadCluster();
    await cluster.tick();
    await cluster.create('replicationcontrollers', rc(2));
    await cluster.records();
    cluster.advance(900_000);
    expect(await cluster.tick()).toMatchObject({ swept: 1 });
    expect(await cluster.pods()).toHaveLength(2);
  });
});

describe('a transaction that would be too large is split', () => {
  const bigSet = (replicas: number) => ({
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'web' },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'web' } },
      template: {
        // Three bytes each: a pod has 180 KB, and a transaction of 16 pods with their log entries over 4 MB.
        metadata: { labels: { app: 'web' }, annotations: { text: '€'.repeat(60_000) } },
        spec: { containers: [{ name: 'c', image: 'v1' }] },
      },
    },
    status: { replicas: 0 },
  });

  it('when pods are large: they are created, adopted and deleted', async () => {
    const cluster = workloadCluster();
    await cluster.create('replicasets', bigSet(31));
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(31);
    expect((await cluster.sets())[0]?.status).not.toHaveProperty('conditions');
    await cluster.change('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas: 0 } }));
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(0);
  });

  it('when many quotas count its pods', async () => {
    const cluster = workloadCluster();
    const hard = { pods: '100' };
    for (let index = 0; index < 80; index += 1) {
      const quota = { kind: 'ResourceQuota', metadata: { name: `q${index}` }, spec: { hard } };
      await cluster.create('resourcequotas', { ...quota, status: { hard, used: { pods: '0' } } });
    }
    await cluster.createSet(31);
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(31);
    expect(await cluster.events('FailedCreate')).toEqual([]);
    const quotas = await cluster.list<KubeResourceQuota>('resourcequotas');
    expect(quotas.map(({ status }) => status?.used)).toEqual(quotas.map(() => ({ pods: '31' })));
  });

  it('when large pods are adopted', async () => {
    const cluster = workloadCluster();
    const { template } = bigSet(0).spec;
    for (let index = 0; index < 16; index += 1) {
      await cluster.create('pods', {
        kind: 'Pod',
        metadata: { ...template.metadata, name: `p${index}` },
        spec: template.spec,
      });
    }
    await cluster.create('replicasets', bigSet(16));
    await cluster.settle();
    const pods = await cluster.pods();
    expect(pods.filter(({ metadata }) => metadata.ownerReferences?.[0]?.kind === 'ReplicaSet')).toHaveLength(16);
    expect(pods).toHaveLength(16);
  });
});
