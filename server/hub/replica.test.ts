import { describe, expect, it, vi } from 'vitest';
import { systemTimeLimit } from '../../shared/clock.ts';
import { clusterObjects } from '../../shared/kinds/cluster-objects.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import type { ChangeRead } from '../../shared/watches/change-read.ts';
import { silentLog } from '../../test/support/agent-api.ts';
import { NODES, node, pod, podsIn } from '../../test/support/api-in-memory.ts';
import { type FollowedCluster, followedCluster } from '../../test/support/followed-cluster.ts';
import { openReplica } from './replica.ts';

const random = { uuid: () => '', fraction: () => 0.5 };

async function namesOf(items: ItemStore, cluster: FollowedCluster, resource: string): Promise<(string | undefined)[]> {
  const { objects } = await clusterObjects({ items, clock: cluster.clock, random }).list({ resource });
  return objects.map(({ metadata }) => metadata.name);
}

/** With the number of its transactions. */
function countedStore() {
  const items = memoryItemStore();
  let writes = 0;
  return {
    writes: () => writes,
    items: {
      ...items,
      transact(all: Parameters<ItemStore['transact']>[0]) {
        writes += 1;
        return items.transact(all);
      },
    },
  };
}

describe('a replica', () => {
  it('lists the cluster, then follows it', async () => {
    const cluster = await followedCluster();
    await cluster.api.send('POST', NODES, { body: node('a') });
    const items = memoryItemStore();
    const { replica, advance, warnings } = await cluster.follow(items);
    expect(warnings).toEqual([]);
    expect(replica.link()).toEqual({ kind: 'up' });
    expect(await namesOf(items, cluster, 'nodes')).toEqual(['a']);
    await cluster.api.send('POST', podsIn('default'), { body: pod('p') });
    await advance(15_000);
    const copy = await clusterObjects({ items, clock: cluster.clock, random }).get({
      resource: 'pods',
      namespace: 'default',
      name: 'p',
    });
    const original = await cluster.api.send('GET', `${podsIn('default')}/p`);
    expect(JSON.stringify(copy)).toBe(original.text.trim());
    expect(replica.holds('leases')).toBe(false);
    await replica.stop();
  });

  it('writes nothing while nothing changes', async () => {
    const cluster = await followedCluster();
    const { items, writes } = countedStore();
    const { replica, advance } = await cluster.follow(items);
    await advance(60_000);
    const before = writes();
    await advance(1_200_000);
    expect(replica.link()).toEqual({ kind: 'up' });
    expect(writes()).toBe(before);
    await replica.stop();
  });

  it('serves its file without the cluster, and says since when', async () => {
    const cluster = await followedCluster();
    await cluster.api.send('POST', NODES, { body: node('a') });
    const items = memoryItemStore();
    const first = await cluster.follow(items);
    const readAtMs = cluster.clock.nowMs();
    await cluster.api.send('POST', NODES, { body: node('b') });
    await first.advance(15_000);
    await first.replica.stop();
    cluster.cut(true);
    const { replica } = await cluster.follow(items);
    expect(replica.holds('nodes')).toBe(true);
    expect(await namesOf(items, cluster, 'nodes')).toEqual(['a', 'b']);
    // The last complete read that a change has stored.
    expect(replica.link()).toEqual({ kind: 'down', sinceMs: readAtMs, why: 'the link is cut' });
    await replica.stop();
  });

  it('has the change of a write that passed when it has caught up', async () => {
    const cluster = await followedCluster();
    const items = memoryItemStore();
    const { replica } = await cluster.follow(items);
    await cluster.api.send('POST', NODES, { body: node('a') });
    await replica.caughtUp('nodes');
    expect(await namesOf(items, cluster, 'nodes')).toEqual(['a']);
    await replica.stop();
  });

  it('keeps nothing of what it may not read any more', async () => {
    const cluster = await followedCluster();
    await cluster.api.send('POST', NODES, { body: node('a') });
    const items = memoryItemStore();
    const { replica, advance } = await cluster.follow(items);
    await cluster.forbid(['nodes']);
    await advance(15_000);
    expect(replica.holds('nodes')).toBe(false);
    const ofNodes = items.items('objects').filter(({ pk }) => /^[lo]#nodes#/.test(String(pk)));
    expect(ofNodes).toEqual([]);
    await cluster.forbid([]);
    await advance(15_000);
    expect(replica.holds('nodes')).toBe(true);
    expect(await namesOf(items, cluster, 'nodes')).toEqual(['a']);
    await replica.stop();
  });

  it('is not said to be complete while the cluster has more changes than one round reads', async () => {
    let more = true;
    const bodyOf = (path: string, sent: Buffer | undefined): unknown => {
      if (path.endsWith('/kube-system')) return { metadata: { uid: 'one' } };
      if (sent === undefined) return { metadata: { resourceVersion: '5' }, items: [] };
      const { spec } = JSON.parse(sent.toString()) as ChangeRead;
      const resources = spec.resources.map((each) => ({
        ...each,
        outcome: 'changes',
        through: '5',
        more,
        changes: [],
      }));
      return { status: { resources } };
    };
    const waits: number[] = [];
    const clock = { nowMs: () => 1_000_000 };
    const replica = await openReplica({
      ...{ items: memoryItemStore(), clock, random, startTimeLimit: systemTimeLimit, log: silentLog },
      upstream: {
        send: async ({ path, body }) => ({
          ...{ status: 200, headers: {}, body: Buffer.from(JSON.stringify(bodyOf(path, body))) },
        }),
      },
      async pause(milliseconds) {
        waits.push(milliseconds);
        await new Promise(setImmediate);
      },
      onChanged() {},
    });
    await vi.waitFor(() => expect(waits.length).toBeGreaterThan(1));
    expect(waits.slice(0, 2)).toEqual([0, 0]);
    expect(replica.link()).toMatchObject({ kind: 'down' });
    more = false;
    await vi.waitFor(() => expect(replica.link()).toEqual({ kind: 'up' }));
    await replica.stop();
  });

  it('does not mix two clusters', async () => {
    const former = await followedCluster();
    await former.api.send('POST', NODES, { body: node('former') });
    const items = memoryItemStore();
    await (await former.follow(items)).replica.stop();
    const cluster = await followedCluster({ uuid: () => crypto.randomUUID() });
    await cluster.api.send('POST', NODES, { body: node('present') });
    const { replica, warnings } = await cluster.follow(items);
    expect(warnings).toEqual([expect.stringContaining('another cluster')]);
    expect(await namesOf(items, cluster, 'nodes')).toEqual(['present']);
    await replica.stop();
  });

  it('notices another cluster although no request fails', async () => {
    const former = await followedCluster();
    await former.api.send('POST', NODES, { body: node('former') });
    const items = memoryItemStore();
    const { replica, advance, warnings } = await former.follow(items);
    await advance(60_000);
    const cluster = await followedCluster({ uuid: () => crypto.randomUUID() });
    cluster.skew(120_000);
    await cluster.api.send('POST', NODES, { body: node('present') });
    former.replaceBy(cluster);
    await advance(60_000);
    expect(warnings).toEqual([expect.stringContaining('another cluster')]);
    expect(await namesOf(items, cluster, 'nodes')).toEqual(['present']);
    await replica.stop();
  });
});
