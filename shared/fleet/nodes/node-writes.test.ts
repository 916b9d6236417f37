import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../kinds/types.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';
import { objectStore } from '../../store/object-store.ts';
import { readHealth, scanHealth } from './health-store.ts';
import { healthWritesFor, nodeHealthWrites } from './node-writes.ts';

const T0 = Date.UTC(2026, 0, 1);

const aNode = (parts: { ready?: string; taints?: unknown[]; labels?: Record<string, string> } = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'n1',
    uid: 'u1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...(parts.labels === undefined ? {} : { labels: parts.labels }),
  },
  spec: parts.taints === undefined ? {} : { taints: parts.taints },
  status: parts.ready === undefined ? {} : { conditions: [{ type: 'Ready', status: parts.ready }] },
});

async function store() {
  const items = memoryItemStore();
  const objects = objectStore({ items, clock: { nowMs: () => T0 }, shardsOf: () => 1 });
  const ref = { resource: 'nodes', namespace: '', name: 'n1' };
  return {
    items,
    digest: async () => (await readHealth(items, ['n1'])).get('n1'),
    async create(object: KubeObject, nowMs = T0): Promise<KubeObject> {
      const write = { kind: 'create', ref, object } as const;
      const outcome = await objects.commit({ writes: [write], extra: nodeHealthWrites(write, nowMs) });
      if (outcome.kind !== 'committed') throw new Error(outcome.kind);
      return outcome.objects[0]!;
    },
    async update(object: KubeObject, previous: KubeObject, nowMs: number): Promise<KubeObject> {
      const next = { ...object, metadata: { ...previous.metadata, ...object.metadata } };
      const write = { kind: 'update', ref, object: next, previous } as const;
      const outcome = await objects.commit({ writes: [write], extra: nodeHealthWrites(write, nowMs) });
      if (outcome.kind !== 'committed') throw new Error(outcome.kind);
      return outcome.objects[0]!;
    },
    async remove(previous: KubeObject): Promise<void> {
      const write = { kind: 'delete', ref, previous } as const;
      await objects.commit({ writes: [write], extra: nodeHealthWrites(write, T0) });
    },
  };
}

describe('what joins the commit of a Node', () => {
  it('describes a new Node, suspect until it is Ready', async () => {
    const world = await store();
    await world.create(aNode({ labels: { 'topology.kubernetes.io/zone': 'a' } }));
    expect(await world.digest()).toEqual({
      nodeName: 'n1',
      uid: 'u1',
      zone: 'a',
      ready: undefined,
      excluded: false,
      suspect: true,
      noExecute: { notReady: false, unreachable: false },
      createdAtMs: T0,
      renewedAtMs: undefined,
      statusAtMs: undefined,
      markedAtMs: undefined,
      podsToMark: false,
    });
  });

  it('counts a status post as a sign of life, and a change of the spec not', async () => {
    const world = await store();
    let node = await world.create(aNode());
    node = await world.update(aNode({ ready: 'True' }), node, T0 + 5_000);
    expect(await world.digest()).toMatchObject({ ready: 'True', suspect: false, statusAtMs: T0 + 5_000 });
    const taints = [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }];
    await world.update({ ...aNode({ ready: 'True', taints }) }, node, T0 + 9_000);
    expect(await world.digest()).toMatchObject({
      suspect: true,
      noExecute: { notReady: false, unreachable: true },
      statusAtMs: T0 + 5_000,
    });
  });

  it('does not count a change of status without a change of Ready as a sign of life: another client wrote it', async () => {
    const world = await store();
    let node = await world.create(aNode({ ready: 'True' }), T0);
    const { conditions } = node.status as { conditions: { type: string; status: string }[] };
    node = await world.update(
      { ...node, status: { conditions, capacity: { 'example.com/dongle': '4' } } },
      node,
      T0 + 5_000,
    );
    expect((await world.digest())?.statusAtMs).toBe(T0);
    const beaten = conditions.map((each) => ({ ...each, lastHeartbeatTime: '2026-01-01T00:00:09Z' }));
    await world.update({ ...node, status: { conditions: beaten } }, node, T0 + 9_000);
    expect((await world.digest())?.statusAtMs).toBe(T0 + 9_000);
  });

  it('joins nothing to an update that the monitor need not know of', () => {
    const old = aNode({ ready: 'True' });
    const next = { ...old, metadata: { ...old.metadata, annotations: { a: 'b' } } };
    expect(healthWritesFor({ kind: 'update', next, old, statusPost: false, nowMs: T0 })).toEqual([]);
  });

  it('forgets a deleted Node: a new one of the same name starts without its state', async () => {
    const world = await store();
    let node = await world.create(aNode({ ready: 'True' }), T0);
    expect(await world.digest()).toMatchObject({ statusAtMs: T0 });
    await world.remove(node);
    expect(await scanHealth(world.items, { consistent: true })).toEqual([]);
    node = await world.create(aNode(), T0 + 60_000);
    expect((await world.digest())?.statusAtMs).toBeUndefined();
  });
});
