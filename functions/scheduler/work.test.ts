import { describe, expect, it } from 'vitest';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import type { KubeDecision, KubePod } from '../../shared/kinds/types.ts';
import { queueStore } from '../../shared/scheduling/queue-store.ts';
import type { ItemStore, TransactWrite } from '../../shared/store/item-store.ts';
import { MERGE } from '../../test/support/api-in-memory.ts';
import { ScheduledCluster } from '../../test/support/scheduled-cluster.ts';
import { dropUnusedRows } from './work.ts';

interface ListedDecisions {
  readonly items: readonly KubeDecision[];
  readonly metadata: { readonly continue?: string };
}

/** A store that also appends each written transaction to `commits`. */
const recording =
  (commits: (readonly TransactWrite[])[]) =>
  (items: ItemStore): ItemStore => ({
    ...items,
    async transact(writes) {
      const outcome = await items.transact(writes);
      if (outcome.kind === 'written') commits.push(writes);
      return outcome;
    },
  });

describe('the scheduler', () => {
  it('binds a new pod after its stream record, without a sweep', async () => {
    const cluster = new ScheduledCluster();
    await cluster.node('n1');
    await cluster.pod('p', { requests: { cpu: '1' } });
    await cluster.settle();
    expect(await cluster.nodeOf('p')).toBe('n1');
    expect(cluster.fleet.told.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('says of a pod with claims what keeps them from it', async () => {
    const cluster = new ScheduledCluster();
    await cluster.node('n1');
    const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
    const volumes = ['data', 'logs'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
    await cluster.pod('p', { spec: { volumes } });
    await cluster.settle();
    expect(await cluster.reasons('p')).toBe('persistentvolumeclaim "data" not found.');
    const resources = { requests: { storage: '1Gi' } };
    const spec = { accessModes: ['ReadWriteOnce'], storageClassName: '', resources };
    await cluster.send('POST', claims, { body: { metadata: { name: 'data' }, spec } });
    await cluster.at(301);
    expect(await cluster.reasons('p')).toBe('persistentvolumeclaim "logs" not found.');
    await cluster.send('POST', claims, { body: { metadata: { name: 'logs', finalizers: ['a/b'] }, spec } });
    await cluster.at(602);
    expect(await cluster.reasons('p')).toBe('pod has unbound immediate PersistentVolumeClaims.');
    await cluster.send('DELETE', `${claims}/logs`);
    await cluster.at(903);
    expect(await cluster.reasons('p')).toBe('persistentvolumeclaim "logs" is being deleted.');
  });

  it('sets the seconds of the node’s profile in the default tolerations', async () => {
    const nodeSelector = { matchLabels: { link: 'cell' } };
    const profiles = [{ name: 'cell', nodeSelector, podEvictionTimeoutSeconds: 900 }];
    const cluster = new ScheduledCluster({ policy: { profiles } });
    await cluster.node('n1', { labels: { link: 'cell' } });
    await cluster.pod('p');
    await cluster.settle();
    const bound = (await cluster.fleet.objects.get({ resource: 'pods', namespace: 'default', name: 'p' })) as KubePod;
    expect(bound.spec?.nodeName).toBe('n1');
    expect(bound.spec?.tolerations?.map(({ tolerationSeconds }) => tolerationSeconds)).toEqual([900, 900]);
  });

  it('measures a pod when it has waited as long as the alarm allows, although no attempt is due', async () => {
    const oldest: number[] = [];
    const plugins: (string | undefined)[] = [];
    const cluster = new ScheduledCluster({
      policy: { pendingPodAlarmSeconds: 60 },
      meter: {
        add(name, value, _unit, dimensions) {
          if (name === 'scheduler_oldest_pending_seconds') oldest.push(value);
          if (name === 'scheduler_unschedulable_pods') plugins.push(dimensions?.['plugin']);
        },
      },
    });
    await cluster.node('n1', { unschedulable: true });
    await cluster.pod('p');
    await cluster.settle();
    expect(plugins).toEqual(['NodeUnschedulable']);
    oldest.length = 0;
    await cluster.at(59);
    expect(oldest).toEqual([]);
    await cluster.at(65);
    expect(oldest).toEqual([65]);
    await cluster.at(120);
    expect(oldest).toEqual([65]);
  });

  it('deletes the row of a node that no longer exists, and binds to a new node of that name', async () => {
    const cluster = new ScheduledCluster();
    const rows = async (): Promise<string[]> => {
      const shards = Array.from({ length: 16 }, (_, shard) => `use#${shard}`);
      const pages = await Promise.all(
        shards.map((pk) => cluster.fleet.tables.query({ table: 'control', pk, consistent: true })),
      );
      return pages.flatMap(({ items }) => items.map(({ sk, v }) => `${sk} ${v}`)).sort();
    };
    for (const name of ['n1', 'n2']) await cluster.node(name);
    for (const name of ['n1', 'n2']) await cluster.running(`on-${name}`, name);
    await cluster.running('on-n2-too', 'n2');
    await cluster.send('DELETE', '/api/v1/nodes/n2');
    await cluster.settle();
    expect(await rows()).toEqual(['n1 1', 'n2 2']);
    // A new process reads the versions.
    const other = cluster.fleet.makeControllers(cluster.fleet.tables);
    await cluster.pod('p');
    await cluster.fleet.streams();
    await other.tickScheduler(0);
    expect(await rows()).toEqual(['n1 2']);
    await cluster.node('n2', { allocatable: { pods: '3' } });
    await cluster.send('PATCH', '/api/v1/nodes/n1', { body: { spec: { unschedulable: true } }, contentType: MERGE });
    for (const name of ['q', 'r']) await cluster.pod(name);
    await cluster.settle();
    // Two pods still name n2, so one more has room.
    expect([await cluster.nodeOf('q'), await cluster.nodeOf('r')]).toEqual(['n2', '']);
    expect(await rows()).toEqual(['n1 2', 'n2 1']);
  });

  it('binds twelve pods in one transaction, with one decision record for those of one owner', async () => {
    const commits: (readonly TransactWrite[])[] = [];
    const cluster = new ScheduledCluster({ between: recording(commits) });
    await cluster.node('n1');
    const names = Array.from({ length: 12 }, (_, index) => `web-7d9c6b8f4-${index.toString(36).padStart(5, 'b')}`);
    for (const name of names) await cluster.pod(name);
    await cluster.settle();
    const [binding, ...others] = commits.filter((writes) => writes.some(({ key }) => key.sk === 'order'));
    expect(others).toEqual([]);
    expect(binding!.filter(({ key }) => /^dp?#/.test(key.pk))).toHaveLength(1);
    for (const name of names) {
      expect(await cluster.nodeOf(name)).toBe('n1');
      const about = { kind: 'Pod', namespace: 'default', name } as const;
      const { decisions } = await decisionStore(cluster.fleet.tables).list({ nowMs: 0, limit: 10, about });
      expect(decisions.map(({ record }) => record.act)).toEqual(['PodScheduled']);
    }
    for (const limit of [1, 5, 12, 50]) {
      const path = `/apis/nodekeeper.dev/v1alpha1/decisions?fieldSelector=act%3DPodScheduled&limit=${limit}`;
      const listed: (string | undefined)[] = [];
      let next = '';
      for (let pages = 0; pages <= names.length; pages += 1) {
        const page = (await cluster.send('GET', `${path}&continue=${next}`)) as unknown as ListedDecisions;
        listed.push(...page.items.map(({ spec }) => spec?.about?.name));
        next = page.metadata.continue ?? '';
        if (next === '') break;
      }
      expect(listed.sort()).toEqual(names);
    }
  });

  it('binds half of a group that has too many actions for one transaction', async () => {
    const commits: (readonly TransactWrite[])[] = [];
    const cluster = new ScheduledCluster({ between: recording(commits) });
    const numbers = Array.from({ length: 12 }, (_, index) => index);
    const gone = Array.from({ length: 15 }, (_, index) => `gone${index}`);
    const labels = { app: 'web' };
    for (const name of gone) {
      await cluster.node(name);
      await cluster.running(`on${name}`, name, { labels });
      await cluster.send('DELETE', `/api/v1/nodes/${name}`);
    }
    for (const index of numbers) await cluster.createNode(`n${index}`);
    const term = { labelSelector: { matchLabels: labels }, topologyKey: 'kubernetes.io/hostname' };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
    // Each on a node of its own, with a decision record of its own.
    for (const index of numbers) {
      await cluster.pod(`p${index}`, { spec: { affinity }, requests: { cpu: '3' } });
    }
    commits.length = 0;
    await cluster.settle();
    const bound = commits
      .filter((writes) => writes.some(({ key }) => key.sk === 'order'))
      .map((writes) => writes.filter(({ key }) => key.pk.startsWith('o#pods#')).length);
    expect(bound).toEqual([6, 6]);
    for (const index of numbers) expect(await cluster.nodeOf(`p${index}`)).not.toBe('');
  });

  it('ends its pass in time while there is a request at each end, and the next pass serves it', async () => {
    let ends = 0;
    const isEnd = (write: Parameters<ItemStore['write']>[0]): boolean =>
      write.key.sk === 'turn' && write.kind === 'update' && write.set?.['done'] !== undefined;
    const cluster: ScheduledCluster = new ScheduledCluster({
      between: (items) => ({
        ...items,
        async write(write, options) {
          if (isEnd(write) && ends < 100) {
            ends += 1;
            cluster.fleet.at(ends);
            await queueStore(items).request();
          }
          return items.write(write, options);
        },
      }),
    });
    await cluster.node('n1');
    await cluster.pod('p');
    await cluster.settle();
    expect(ends).toBe(25);
    const turn = await queueStore(cluster.fleet.tables).peek();
    expect([turn.busyUntilMs, turn.wanted > turn.done]).toEqual([0, true]);
    ends = 100;
    await cluster.tick();
    const next = await queueStore(cluster.fleet.tables).peek();
    expect(next.wanted).toBe(next.done);
  });

  it('begins elsewhere in the queue after a pass that was killed, perhaps by its first pod', async () => {
    const cluster = new ScheduledCluster();
    await cluster.node('n1', { allocatable: { pods: '1' } });
    await cluster.pod('first');
    cluster.fleet.at(1);
    await cluster.pod('second');
    await queueStore(cluster.fleet.tables).begin({ id: 'killed', nowMs: cluster.fleet.nowMs(), untilMs: 1 });
    await cluster.settle();
    expect([await cluster.nodeOf('first'), await cluster.nodeOf('second')]).toEqual(['', 'n1']);
  });

  it('is woken by node-monitor when a waiting pod is due, and only then', async () => {
    const cluster = new ScheduledCluster();
    await cluster.pod('p');
    await cluster.settle();
    cluster.fleet.at(0.5);
    await cluster.fleet.controllers.tickNodeMonitor(cluster.fleet.slot());
    expect(cluster.woken).not.toContain('scheduler');
    cluster.fleet.at(5);
    await cluster.fleet.controllers.tickNodeMonitor(cluster.fleet.slot());
    expect(cluster.woken).toContain('scheduler');
  });
});

/** `refused`: names of nodes with a row that stays. */
async function droppedOf(rows: number, refused: readonly string[] = []) {
  const dropped: string[] = [];
  let transactions = 0;
  const unused = Array.from({ length: rows }, (_, index) => ({ nodeName: `n${index}`, version: index + 1 }));
  const copy = { unusedRows: () => unused, rowDropped: (name: string) => void dropped.push(name) };
  const transact = (actions: readonly object[]) => {
    transactions += 1;
    const isRefused = refused.some((name) => JSON.stringify(actions).includes(`"${name}"`));
    return Promise.resolve(isRefused ? { kind: 'refused', index: 1 } : { kind: 'written' });
  };
  await dropUnusedRows({ items: { transact } } as never, copy as never);
  return { dropped, transactions };
}

it('deletes 25 rows of removed nodes in one pass', async () => {
  const { dropped, transactions } = await droppedOf(26);
  expect(dropped).toEqual(Array.from({ length: 25 }, (_, index) => `n${index}`));
  expect(transactions).toBe(25);
});

it('keeps a row where the deletion is refused', async () => {
  expect(await droppedOf(3, ['n1'])).toEqual({ dropped: ['n0', 'n2'], transactions: 3 });
});

it('writes nothing without such rows', async () => {
  expect(await droppedOf(0)).toEqual({ dropped: [], transactions: 0 });
});
