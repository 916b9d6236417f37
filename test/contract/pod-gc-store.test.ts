/** The work list of pod-gc, on every store. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type ListedPod, type PodGcStore, podGcStore } from '../../shared/kinds/pods/work-list-store.ts';
import { describeOnStores } from './stores.ts';

const T0 = 1_795_197_000_000;
let count = 0;

describeOnStores('the pod-gc store', (fixture) => {
  let store: PodGcStore;
  let name: string;
  beforeEach(() => {
    count += 1;
    name = `x-${count}`;
    store = podGcStore(fixture.items());
  });

  const pod = (over: Partial<ListedPod> = {}): ListedPod => ({
    namespace: 'default',
    name,
    uid: 'u',
    nodeName: 'n.example',
    phase: 'Running',
    terminating: true,
    evicted: false,
    createdAtMs: T0,
    ...over,
  });
  const podsOf = async () => (await store.read()).pods.filter((each) => each.name === name);
  const volumesOf = async () => (await store.read()).volumes.find(({ nodeName }) => nodeName === name);

  it('returns pods as they were put; the last put counts', async () => {
    await store.putPod(pod());
    expect(await podsOf()).toEqual([pod()]);
    const ended = pod({ nodeName: undefined, phase: undefined, terminating: false, evicted: true });
    await store.putPod(ended);
    expect(await podsOf()).toEqual([ended]);
    await store.dropPod(ended);
    await store.dropPod(ended);
    expect(await podsOf()).toEqual([]);
  });

  it('begins a quarantine once, and begins anew or ends only the one that was seen', async () => {
    const since = async () => (await store.read()).missing.get(name);
    await store.putMissing(name, T0);
    await store.putMissing(name, T0 + 1);
    expect(await since()).toBe(T0);
    await store.restartMissing(name, { seenSinceMs: T0 - 1, sinceMs: T0 + 2 });
    await store.dropMissing(name, T0 - 1);
    expect(await since()).toBe(T0);
    await store.restartMissing(name, { seenSinceMs: T0, sinceMs: T0 + 3 });
    expect(await since()).toBe(T0 + 3);
    await store.dropMissing(name, T0 + 3);
    expect(await since()).toBeUndefined();
  });

  it('reads whether a Node has a name, and its quarantine, together', async () => {
    expect(await store.readNodeName(name)).toEqual({ exists: false, missingSinceMs: undefined });
    await store.putMissing(name, T0);
    expect(await store.readNodeName(name)).toEqual({ exists: false, missingSinceMs: T0 });
  });

  describe('of a node with volumes in an unknown state', () => {
    const memory = { va: { volumeId: 'vol-1', requestedAtMs: T0 } };

    it('keeps what was decided unless a pod left the node since', async () => {
      await store.touchVolumes(name, T0);
      const seen = (await volumesOf())!;
      expect(seen).toEqual({ nodeName: name, touchedAtMs: T0, instanceId: undefined, memory: {} });
      expect(await store.saveVolumes(seen, { instanceId: 'i-1', memory })).toBe('written');
      expect(await volumesOf()).toEqual({ nodeName: name, touchedAtMs: T0, instanceId: 'i-1', memory });
      await store.touchVolumes(name, T0 + 1);
      expect(await store.saveVolumes(seen, { instanceId: 'i-2', memory: {} })).toBe('refused');
      await store.dropVolumes(seen);
      expect(await volumesOf()).toEqual({ nodeName: name, touchedAtMs: T0 + 1, instanceId: 'i-1', memory });
      await store.dropVolumes((await volumesOf())!);
      expect(await volumesOf()).toBeUndefined();
      expect(await store.saveVolumes(seen, { instanceId: 'i-2', memory: {} })).toBe('refused');
    });

    it('continues a wait when the Node is deleted, or when it is only requested', async () => {
      await store.touchVolumes(name, T0);
      await store.noteInstance(name, 'i-9', T0 + 5);
      await store.askVolumes(name, T0 + 6);
      expect(await volumesOf()).toMatchObject({ touchedAtMs: T0, instanceId: 'i-9' });
    });

    it('begins with either', async () => {
      await store.askVolumes(name, T0 + 6);
      expect(await volumesOf()).toMatchObject({ touchedAtMs: T0 + 6, instanceId: undefined });
      await store.dropVolumes((await volumesOf())!);
      await store.noteInstance(name, 'i-9', T0 + 7);
      expect(await volumesOf()).toMatchObject({ touchedAtMs: T0 + 7, instanceId: 'i-9' });
    });
  });

  it('keeps how far the sweep has come', async () => {
    await store.saveSweep({ dueAtMs: T0, after: 'default/p' });
    expect((await store.read()).sweep).toEqual({ dueAtMs: T0, after: 'default/p' });
    await store.saveSweep({ dueAtMs: T0 + 1, after: undefined });
    expect((await store.read()).sweep).toEqual({ dueAtMs: T0 + 1, after: undefined });
  });

  it('knows of no pods of a node that has none', async () => {
    expect(await store.hasPods(name)).toBe(false);
  });
});
