import { describe, expect, it } from 'vitest';
import { settledFleet } from '../../../test/support/controlled-fleet.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../../test/support/scripted-commits.ts';
import type { KubeNode, KubeObject } from '../../kinds/types.ts';
import { StoreFault } from '../../store/item-store.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';
import { type ObjectWrite, objectStore } from '../../store/object-store.ts';
import { changeNode, healthWritesFor, nodeAbsent, nodeHealthWrites, nodeUnchanged, withTaints } from './change-node.ts';
import { readHealth, scanHealth } from './health-store.ts';

const TAINT = { key: 'k', effect: 'NoSchedule' } as const;
const labelled = (node: KubeNode, value: string): KubeNode => ({
  ...node,
  metadata: { ...node.metadata, labels: { ...node.metadata.labels, changed: value } },
});

async function fleetOfOne() {
  const { fleet } = await settledFleet({ a: 1 });
  const node = (await fleet.node('a-0'))!;
  const target = { nodeName: 'a-0', uid: node.metadata.uid!, nowMs: fleet.nowMs() };
  const label = async () => (await fleet.node('a-0'))?.metadata.labels?.['changed'];
  return { fleet, node, target, label };
}

describe('a change of a Node', () => {
  it('is written with its digest', async () => {
    const { fleet, target } = await fleetOfOne();
    const outcome = await changeNode(fleet.objects, target, (node) => ({
      next: withTaints(node, [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }]),
    }));
    expect(outcome).toMatchObject({ kind: 'written', node: { spec: { taints: [{ effect: 'NoExecute' }] } } });
    expect(await fleet.taints('a-0')).toEqual(['unreachable:NoExecute']);
    expect((await fleet.health('a-0'))?.noExecute).toEqual({ notReady: false, unreachable: true });
  });

  it('is not written where nothing is to be changed', async () => {
    const { fleet, node, target } = await fleetOfOne();
    expect(await changeNode(fleet.objects, target, () => undefined)).toEqual({ kind: 'nothing' });
    expect(await fleet.node('a-0')).toEqual(node);
  });

  it('is not decided for a Node that no longer exists, or that was created again', async () => {
    const { fleet, target } = await fleetOfOne();
    const never = () => {
      throw new Error('decided');
    };
    expect(await changeNode(fleet.objects, { ...target, uid: 'other' }, never)).toEqual({ kind: 'gone' });
    expect(await changeNode(fleet.objects, { ...target, nodeName: 'a-1' }, never)).toEqual({ kind: 'gone' });
  });

  it('is decided again on what another process wrote meanwhile', async () => {
    const { fleet, node, target, label } = await fleetOfOne();
    await fleet.changeNode('a-0', (each) => labelled(each, 'by another'));
    const seen: unknown[] = [];
    const outcome = await changeNode(fleet.objects, { ...target, first: node }, (each) => {
      seen.push(each.metadata.labels?.['changed']);
      return { next: withTaints(each, [TAINT]) };
    });
    expect([outcome.kind, seen, await label()]).toEqual(['written', [undefined, 'by another'], 'by another']);
    await fleet.removeNode('a-0');
    expect(await changeNode(fleet.objects, { ...target, first: node }, (each) => ({ next: each }))).toEqual({
      kind: 'gone',
    });
  });

  it('is refused by a condition of the caller', async () => {
    const { fleet, node, target, label } = await fleetOfOne();
    const outcome = await changeNode(fleet.objects, target, (each) => ({
      next: labelled(each, 'x'),
      extra: [nodeAbsent('a-1'), nodeAbsent('b-7'), nodeUnchanged('b-8', 1)],
    }));
    expect([outcome, await label()]).toEqual([{ kind: 'refused', index: 2 }, undefined]);
    expect(node.metadata.name).toBe('a-0');
  });

  it('that does not fit an item returns the Node as stored', async () => {
    const { fleet, node, target } = await fleetOfOne();
    const outcome = await changeNode(fleet.objects, target, (each) => ({ next: labelled(each, 'x'.repeat(500_000)) }));
    expect(outcome).toEqual({ kind: 'tooLarge', node });
  });
});

describe('a change of a Node under contention', () => {
  const node = { metadata: { name: 'n', uid: 'u', resourceVersion: '1' } } as KubeNode;
  const event = (name: string): ObjectWrite => ({
    kind: 'create',
    ref: { resource: 'events', namespace: 'default', name },
    object: { metadata: { name } },
  });
  async function run(outcomes: readonly ScriptedOutcome[], events: readonly ObjectWrite[] = []) {
    const { objects, commits, reads, written } = scriptedCommits(outcomes, () => node);
    const outcome = await changeNode(objects, { nodeName: 'n', uid: 'u', nowMs: 0, first: node }, (each) => ({
      next: each,
      events,
    })).catch((fault: unknown) => fault);
    return { outcome, commits, reads, written: written() };
  }

  it('leaves out an event that exists', async () => {
    const { outcome, written } = await run([{ kind: 'conflict', index: 2 }, 'committed'], [event('one'), event('two')]);
    expect(written).toEqual([
      ['update n', 'create one', 'create two'],
      ['update n', 'create one'],
    ]);
    expect(outcome).toMatchObject({ kind: 'written' });
  });

  it('reads the Node again after a lost commit, six times at most', async () => {
    const { outcome, commits, reads } = await run([]);
    expect([commits.length, reads.length]).toEqual([6, 6]);
    expect(outcome).toBeInstanceOf(StoreFault);
    expect(outcome).toMatchObject({ retryable: true });
  });

  it.each<ScriptedOutcome>([{ kind: 'tooLarge', index: 0 }, { kind: 'overfull' }])('ends after %j', async (ended) => {
    const { outcome, commits } = await run([ended]);
    expect([outcome, commits.length]).toEqual([{ kind: 'tooLarge', node }, 1]);
  });
});

it('a Node without taints has no field for them', () => {
  const node = { metadata: { name: 'n' }, spec: { providerID: 'p', taints: [TAINT] } } as KubeNode;
  expect(withTaints(node, []).spec).toEqual({ providerID: 'p' });
  expect(withTaints(node, [TAINT, TAINT]).spec?.taints).toHaveLength(2);
  expect(withTaints({ metadata: {} }, []).spec).toEqual({});
});

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
