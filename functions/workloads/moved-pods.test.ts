/** A hub puts a copy in the place of a pod while a controller reads: between the index and the pods, or earlier. */
import { expect, it } from 'vitest';
import { copyOf, copyWrites } from '../../shared/kinds/pods/site-copy.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { ownedPartition } from '../../shared/store/layout.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import { type WorkloadCluster, workloadCluster } from '../../test/support/workload-cluster.ts';

const COPY_UID = '0affc556-9975-4f3a-bd05-5bc6dae285ff';

/** One transaction, as in functions/api/agents/site-moves.ts. */
async function move({ objects }: WorkloadCluster, pod: KubePod): Promise<void> {
  const { namespace = '', name = '', uid = '' } = pod.metadata;
  const object = copyOf(pod, { name, uid }, { uid: COPY_UID, nodeName: 'n2' });
  const ref = { resource: 'pods', namespace };
  const create: ObjectWrite = { kind: 'create', ref: { ...ref, name: object.metadata.name ?? '' }, object };
  const remove: ObjectWrite = { kind: 'delete', ref: { ...ref, name }, previous: pod };
  const { kind } = await objects.commit({ writes: [create, remove], extra: copyWrites(create, [remove]) });
  expect(kind).toBe('committed');
}

/** Controllers that miss the pod and its copy, after some reads of the index. */
function whileMoving(cluster: WorkloadCluster, pod: KubePod, after: number) {
  const owner = ownedPartition(pod.metadata.ownerReferences?.[0]?.uid ?? '');
  let [reads, moves] = [0, 0];
  const controllers = cluster.makeControllers({
    ...cluster.tables,
    async query(asked) {
      const page = await cluster.tables.query(asked);
      if (asked.pk !== owner) return page;
      reads += 1;
      if (reads !== after + 1) return page;
      moves += 1;
      await move(cluster, pod);
      return page;
    },
  });
  return { controllers, moves: () => moves };
}

async function deliver(cluster: WorkloadCluster, { controllers }: ReturnType<typeof whileMoving>): Promise<void> {
  const { faults, postponed } = await controllers.onWorkloadRecords(await cluster.records());
  expect([...faults, ...postponed]).toEqual([]);
}

/** Whether the move came into the sync. */
async function setIsMoved(after: number): Promise<boolean> {
  const cluster = workloadCluster();
  await cluster.createSet(3);
  await cluster.settleRunning();
  const [pod, other] = await cluster.pods();
  const moving = whileMoving(cluster, pod!, after);
  await cluster.change('pods', other?.metadata.name ?? '', (each) => ({
    ...each,
    status: { ...each.status, conditions: [] },
  }));
  await deliver(cluster, moving);
  if (moving.moves() === 0) return false;
  await cluster.settleRunning();
  expect(cluster.tables.changes('objects', 0).filter(isNewPod), `after ${after} reads`).toHaveLength(4);
  expect((await cluster.pods()).map(({ metadata }) => metadata.uid)).toContain(COPY_UID);
  return true;
}

it('a ReplicaSet that read neither creates no pod', async () => {
  let after = 0;
  while (await setIsMoved(after)) after += 1;
  expect(after).toBeGreaterThan(0);
});

async function recreateIsMoved(after: number): Promise<boolean> {
  const cluster = workloadCluster();
  await cluster.createDeployment({ replicas: 2, strategy: { type: 'Recreate' } });
  await cluster.settleRunning();
  await cluster.change('deployments', 'web', (deployment) => {
    const { template, ...spec } = deployment.spec as { readonly template: { readonly spec: object } };
    const containers = [{ name: 'c', image: 'v2' }];
    return { ...deployment, spec: { ...spec, template: { ...template, spec: { ...template.spec, containers } } } };
  });
  await cluster.settle();
  const [first, last] = await cluster.list<KubePod>('pods');
  const moving = whileMoving(cluster, last!, after);
  await cluster.remove('pods', first?.metadata.name ?? '');
  await deliver(cluster, moving);
  if (moving.moves() === 0) return false;
  await cluster.settle();
  const left = (await cluster.list<KubePod>('pods')).map(({ metadata }) => metadata.uid);
  expect(left, `after ${after} reads`).toEqual([COPY_UID]);
  return true;
}

it('a Deployment with Recreate that read neither waits for the copy', async () => {
  let after = 0;
  while (await recreateIsMoved(after)) after += 1;
  expect(after).toBeGreaterThan(1);
});

const isNewPod = ({ key, type }: { readonly key: { readonly pk: string }; readonly type: string }): boolean =>
  key.pk.startsWith('o#pods#') && type === 'INSERT';
