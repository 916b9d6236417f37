import { describe, expect, it, vi } from 'vitest';
import { systemTimeLimit } from '../../shared/clock.ts';
import { clusterObjects, shardsOf } from '../../shared/kinds/resources.ts';
import { changeLog } from '../../shared/store/change-log.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { writeHistory } from '../../shared/store/store-history.ts';
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

const ofNodes = (items: ReturnType<typeof memoryItemStore>) =>
  items.items('objects').filter(({ pk }) => /^[lo]#nodes#/.test(String(pk)));

/** Its transactions fail after some. */
function dyingStore(items: ItemStore) {
  let left = Number.POSITIVE_INFINITY;
  return {
    diesAfter(writes: number) {
      left = writes;
    },
    items: {
      ...items,
      async transact(all: Parameters<ItemStore['transact']>[0]) {
        left -= 1;
        if (left < 0) throw new StoreFault('unreachable', 'the disk fails', { retryable: true });
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
    expect(replica.link()).toEqual({ kind: 'down', sinceMs: readAtMs, why: 'the link is cut', hasFailed: true });
    await replica.stop();
  });

  it('has the change of a write that passed when it has caught up', async () => {
    const cluster = await followedCluster();
    const items = memoryItemStore();
    const { replica } = await cluster.follow(items);
    // Nor does it depend on reads of the cluster's tables that may be late.
    cluster.freezeReads();
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
    expect(ofNodes(items)).toEqual([]);
    await cluster.forbid([]);
    await advance(15_000);
    expect(replica.holds('nodes')).toBe(true);
    expect(await namesOf(items, cluster, 'nodes')).toEqual(['a']);
    await replica.stop();
  });

  it('keeps nothing of it either when its process dies while it deletes or lists', async () => {
    const isHeldBefore = { deleting: true, listing: false };
    for (const [what, isHeldFirst] of Object.entries(isHeldBefore)) {
      let interrupted = 0;
      for (let writes = 0; writes < 200; writes += 1) {
        const cluster = await followedCluster();
        await cluster.api.send('POST', NODES, { body: node('a') });
        await cluster.api.send('POST', NODES, { body: node('b') });
        const items = memoryItemStore();
        const store = dyingStore(items);
        if (!isHeldFirst) store.diesAfter(writes);
        const first = await cluster.follow(store.items);
        if (isHeldFirst) {
          await cluster.forbid(['nodes']);
          store.diesAfter(writes);
          await first.advance(15_000);
        }
        await first.replica.stop();
        const left = ofNodes(items).length;
        if (left > 0) interrupted += 1;
        await cluster.forbid(['nodes']);
        const second = await cluster.follow(items);
        expect(second.replica.holds('nodes'), `${what}, ${writes} writes`).toBe(false);
        expect(ofNodes(items), `${what}, ${writes} writes`).toEqual([]);
        await second.replica.stop();
        if (isHeldFirst ? left === 0 : first.replica.holds('nodes')) break;
      }
      expect(interrupted, what).toBeGreaterThan(1);
    }
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

  it('has only what belongs to the nodes of its site, and follows when that changes', async () => {
    const cluster = await followedCluster();
    const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
    const podOn = (name: string, nodeName: string, refers: string) => {
      const container = { name: 'c', image: 'i', envFrom: [{ configMapRef: { name: refers } }] };
      return pod(name, { spec: { nodeName, containers: [container] } });
    };
    const maps = '/api/v1/namespaces/default/configmaps';
    for (const name of ['a', 'b']) {
      await cluster.api.send('POST', NODES, { body: node(name) });
      await cluster.api.send('POST', maps, { body: map(`of-${name}`) });
      await cluster.api.send('POST', podsIn('default'), { body: podOn(`p-${name}`, name, `of-${name}`) });
    }
    await cluster.api.send('POST', maps, { body: map('later') });
    await cluster.bindTo(['a']);
    const items = memoryItemStore();
    const { replica, advance, warnings } = await cluster.follow(items);
    const held = async () =>
      (await Promise.all(['nodes', 'pods', 'configmaps'].map((each) => namesOf(items, cluster, each))))
        .flat()
        // In the volume of every pod's token.
        .filter((name) => name !== 'kube-root-ca.crt');
    expect(await held()).toEqual(['a', 'p-a', 'of-a']);
    expect([replica.isPart('pods'), replica.isPart('services')]).toEqual([true, false]);
    await cluster.api.send('POST', podsIn('default'), { body: podOn('second', 'a', 'later') });
    await cluster.api.send('POST', podsIn('default'), { body: podOn('other', 'b', 'of-b') });
    await advance(30_000);
    expect(await held()).toEqual(['a', 'p-a', 'second', 'later', 'of-a']);
    await cluster.api.send('DELETE', `${podsIn('default')}/p-a`, { body: { gracePeriodSeconds: 0 } });
    await advance(30_000);
    expect(await held()).toEqual(['a', 'second', 'later']);
    await cluster.bindTo(['b']);
    await advance(60_000);
    expect(await held()).toEqual(['b', 'other', 'p-b', 'of-b']);
    await cluster.forbid([]);
    await advance(60_000);
    expect(await namesOf(items, cluster, 'pods')).toEqual(['other', 'p-b', 'second']);
    expect(replica.isPart('pods')).toBe(false);
    expect(warnings).toEqual([]);
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

  it('is made anew when an older backup is in the place of its cluster, with versions that go on from there', async () => {
    const former = await followedCluster();
    await former.api.send('POST', NODES, { body: node('kept') });
    await former.api.send('POST', NODES, { body: node('lost') });
    const items = memoryItemStore();
    const { replica, advance, warnings } = await former.follow(items);
    expect(await namesOf(items, former, 'nodes')).toEqual(['kept', 'lost']);
    const cursor = replica.version('nodes');
    // The same uids: it is the same cluster, at an earlier time.
    const restored = await followedCluster();
    await writeHistory(restored.api.items, 'backup');
    restored.skew(120_000);
    for (const name of ['kept', 'lost']) await restored.api.send('POST', NODES, { body: node(name) });
    await restored.api.send('DELETE', `${NODES}/lost`);
    former.replaceBy(restored);
    await advance(30_000);
    expect(warnings).toEqual([expect.stringContaining('restored from a backup')]);
    expect(await namesOf(items, former, 'nodes')).toEqual(['kept']);
    const changes = changeLog({ items, clock: replica.versionClock, shardsOf });
    const watch = { resource: 'nodes', after: cursor, limit: 10, eager: true };
    expect(await changes.readChanges(watch)).toEqual({ kind: 'expired' });
    await restored.api.send('POST', NODES, { body: node('new') });
    await advance(30_000);
    expect(await namesOf(items, former, 'nodes')).toEqual(['kept', 'new']);
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
