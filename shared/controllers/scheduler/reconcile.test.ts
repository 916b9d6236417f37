import { describe, expect, it } from 'vitest';
import { MERGE } from '../../../test/support/api-in-memory.ts';
import { ScheduledCluster } from '../../../test/support/scheduled-cluster.ts';
import type { KubePod } from '../../kube/types.ts';
import type { ItemStore } from '../../ports/item-store.ts';
import { queueStore } from './queue-store.ts';

describe('the scheduler', () => {
  it('binds a new pod after its stream record, without a sweep', async () => {
    const cluster = new ScheduledCluster();
    await cluster.node('n1');
    await cluster.pod('p', { requests: { cpu: '1' } });
    await cluster.settle();
    expect(await cluster.nodeOf('p')).toBe('n1');
    expect(cluster.fleet.told.filter(({ level }) => level === 'error')).toEqual([]);
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
