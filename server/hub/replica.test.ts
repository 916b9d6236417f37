import { describe, expect, it } from 'vitest';
import { clusterObjects } from '../../shared/kinds/cluster-objects.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { NODES, node, pod, podsIn } from '../../test/support/api-in-memory.ts';
import { followedCluster } from '../../test/support/followed-cluster.ts';

const random = { uuid: () => '', fraction: () => 0.5 };

describe('a replica', () => {
  it('lists the cluster, then follows it', async () => {
    const cluster = await followedCluster();
    await cluster.api.send('POST', NODES, { body: node('a') });
    const items = memoryItemStore();
    const { replica, advance, warnings } = await cluster.follow(items);
    expect(warnings).toEqual([]);
    expect(replica.link()).toEqual({ kind: 'up' });
    const objects = clusterObjects({ items, clock: cluster.api, random });
    expect((await objects.list({ resource: 'nodes' })).objects.map(({ metadata }) => metadata.name)).toEqual(['a']);
    await cluster.api.send('POST', podsIn('default'), { body: pod('p') });
    await advance(15_000);
    const [copy] = (await objects.list({ resource: 'pods' })).objects;
    const original = await cluster.api.send('GET', `${podsIn('default')}/p`);
    expect(JSON.stringify(copy)).toBe(original.text.trim());
    expect(replica.holds('leases')).toBe(false);
    await replica.stop();
  });
});
