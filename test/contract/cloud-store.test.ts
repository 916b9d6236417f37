/** The list of nodes to describe in EC2, on every store. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { WatchedNode } from '../../shared/fleet/instances/watch-list.rule.ts';
import { type CloudStore, cloudStore, leaveWatchWrite } from '../../shared/fleet/instances/watch-list-store.ts';
import { describeOnStores } from './stores.ts';

let count = 0;

describeOnStores('the list of nodes to describe in EC2', (fixture) => {
  let list: CloudStore;
  let node: WatchedNode;
  beforeEach(() => {
    count += 1;
    list = cloudStore(fixture.items());
    node = {
      nodeName: `vm-${count}`,
      uid: `uid-${count}`,
      providerId: 'aws:///us-east-1a/i-0123456789abcdef0',
      createdAtMs: 1_000,
      ready: 'Unknown',
      hasShutdownTaint: false,
      outOfServiceTaint: 'absent',
      uninitialised: true,
    };
  });
  const row = async () => (await list.get(node.nodeName))!;
  const seen = { memory: { notFoundSinceMs: 5, launchedAtMs: 1 }, state: 'notFound', sinceMs: 5 };

  it('returns an added node', async () => {
    await list.watch(node, 7);
    expect(await row()).toEqual({ ...node, resourceVersion: 7, seen: { memory: {} }, seenText: undefined });
    expect((await list.read()).map(({ nodeName }) => nodeName)).toContain(node.nodeName);
  });

  it('accepts later versions of a node, not earlier ones, and keeps what was seen', async () => {
    await list.watch(node, 7);
    expect(await list.remember(await row(), seen)).toBe('written');
    const later = { ...node, hasShutdownTaint: true, outOfServiceTaint: 'ours', uninitialised: false } as const;
    await list.watch({ ...later, ready: undefined }, 8);
    await list.watch(node, 7);
    expect(await row()).toMatchObject({ ...later, ready: undefined, resourceVersion: 8, seen });
  });

  it('forgets what was seen of another uid, whatever its version', async () => {
    await list.watch(node, 7);
    await list.remember(await row(), seen);
    await list.watch({ ...node, uid: 'another' }, 3);
    expect(await row()).toMatchObject({ uid: 'another', resourceVersion: 3, seen: { memory: {} } });
  });

  it('stores an observation only on the version that was read', async () => {
    await list.watch(node, 7);
    const first = await row();
    expect(await list.remember(first, seen)).toBe('written');
    expect(await list.remember(first, { memory: {} })).toBe('refused');
    expect((await fixture.items().transact([leaveWatchWrite(first)])).kind).toBe('refused');
    expect((await fixture.items().transact([leaveWatchWrite(await row())])).kind).toBe('written');
    expect(await list.get(node.nodeName)).toBeUndefined();
    expect(await list.remember(first, seen)).toBe('refused');
  });

  it('drops a node at its version or a later one, and at any version of another uid', async () => {
    await list.watch(node, 7);
    await list.unwatch(node, 6);
    expect(await row()).toBeDefined();
    await list.unwatch(node, 7);
    expect(await list.get(node.nodeName)).toBeUndefined();
    await list.unwatch(node, 9);
    await list.watch(node, 8);
    await list.unwatch({ ...node, uid: 'another' }, 1);
    expect(await list.get(node.nodeName)).toBeUndefined();
  });

  it('keeps a row that was updated since it was read', async () => {
    await list.watch(node, 7);
    const before = await row();
    await list.watch(node, 8);
    await list.drop(before);
    expect(await row()).toMatchObject({ resourceVersion: 8 });
    await list.drop(await row());
    expect(await list.get(node.nodeName)).toBeUndefined();
  });

  describe('read completely', () => {
    it('costs half a read unit if it is short', async () => {
      fixture.consumed();
      await list.read();
      expect(fixture.consumed().reduce((sum, { readUnits }) => sum + readUnits, 0)).toBe(0.5);
    });
  });
});
