/** Permits of one process and of the next ones over the same file. Schedules of everything at once: the model. */
import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { readPermits, savePermit } from './permit-file.ts';
import { type PermitChange, SILENT_MS, SitePermits, type SitePod } from './site-permits.ts';

const FENCE_MS = 700_000;
const pod: SitePod = { uid: 'u', nodeName: 'm1', fenceMs: FENCE_MS, isDeleting: false, hasEnded: false };
const moved = { namespace: 'plant', name: 'p', copy: { metadata: { uid: 'c' } }, atMs: 0, why: '' };
const COPY = { uid: 'c', nodeName: 'm2', moved };

function site() {
  const items = memoryItemStore();
  const time = { nowMs: 1 };
  let isDiskFailing = false;
  const open = async () =>
    new SitePermits({
      records: await readPermits(items),
      monotonicMs: () => time.nowMs,
      async save(change: PermitChange) {
        if (isDiskFailing) throw new Error('disk');
        await savePermit(items, change);
      },
    });
  return {
    time,
    open,
    async begun() {
      const permits = await open();
      await permits.begin([]);
      // The fence of a pod begins when it is seen first.
      permits.lost(['u', 'v', 'e', 'g', 'w', 'r'].map((uid) => ({ ...pod, uid })));
      return permits;
    },
    failDisk: (fails: boolean) => {
      isDiskFailing = fails;
    },
  };
}

describe('a pod of a site', () => {
  it('has the time of a permit from when it is seen first', async () => {
    const { time, begun } = site();
    const permits = await begun();
    time.nowMs += FENCE_MS;
    const added = { ...pod, uid: 'added' };
    expect(permits.lost([added])).toEqual([]);
    time.nowMs += FENCE_MS;
    expect(permits.lost([added])).toEqual([added]);
  });

  it('is permitted to its machine alone', async () => {
    const permits = await site().begun();
    expect(permits.ask('m1', [pod])).toEqual(['u']);
    expect(permits.ask('m2', [pod])).toEqual([]);
  });

  it('is moved after the fence, counted from the last permit, and then permitted to the other machine', async () => {
    const { time, begun } = site();
    const permits = await begun();
    time.nowMs = 500_000;
    permits.ask('m1', [pod]);
    time.nowMs += FENCE_MS - 1;
    expect(permits.isSilent('m1')).toBe(true);
    expect(permits.lost([pod])).toEqual([]);
    expect(await permits.move(pod, COPY)).toBeUndefined();
    time.nowMs += 1;
    expect(await permits.move(pod, COPY)).toMatchObject({ uid: 'c', from: ['u'], state: 'waiting' });
    expect(permits.ask('m1', [pod])).toEqual([]);
    expect(permits.ask('m2', [pod])).toEqual(['c']);
  });

  it('is not moved while its machine asks for permits, also of others', async () => {
    const { time, begun } = site();
    const permits = await begun();
    time.nowMs += FENCE_MS * 2;
    permits.ask('m1', []);
    expect(permits.lost([pod])).toEqual([]);
    time.nowMs += SILENT_MS;
    expect(permits.lost([pod])).toEqual([pod]);
  });

  it('is neither moved nor given up after its machine has released it, nor released after a move', async () => {
    const { time, begun } = site();
    const permits = await begun();
    expect(await permits.release(pod)).toBe(true);
    time.nowMs += FENCE_MS;
    expect(await permits.move(pod, COPY)).toBeUndefined();
    const other = { ...pod, uid: 'v' };
    await permits.move(other, COPY);
    expect(await permits.release(other)).toBe(false);
  });

  it('is moved on from a copy that the cluster does not know', async () => {
    const { time, begun } = site();
    const permits = await begun();
    time.nowMs += FENCE_MS;
    await permits.move(pod, COPY);
    permits.ask('m2', [pod]);
    time.nowMs += FENCE_MS;
    const [copy] = permits.lost([pod]);
    await permits.move(copy!, { uid: 'd', nodeName: 'm3', moved });
    expect(permits.moves().map(([origin, { uid, from }]) => [origin, uid, from])).toEqual([['u', 'd', ['u', 'c']]]);
    expect([permits.ask('m2', [pod]), permits.ask('m3', [pod])]).toEqual([[], ['d']]);
  });

  it('is deletable when its copy was withdrawn and has stopped', async () => {
    const { time, begun } = site();
    const permits = await begun();
    time.nowMs += FENCE_MS;
    await permits.move(pod, COPY);
    permits.ask('m2', [pod]);
    permits.hasStopped('m2', 'c');
    await permits.settle('u', 'c', 'withdrawn');
    expect(permits.ask('m2', [pod])).toEqual([]);
    expect(permits.deletable([pod])).toEqual([]);
    // Of another machine nothing is believed.
    permits.hasStopped('m1', 'c');
    expect(permits.deletable([pod])).toEqual([]);
    permits.hasStopped('m2', 'c');
    expect(permits.deletable([pod])).toMatchObject([pod]);
  });

  it('is deletable with its copy, if a merge was granted after another one was refused', async () => {
    const { time, begun } = site();
    const permits = await begun();
    time.nowMs += FENCE_MS;
    await permits.move(pod, COPY);
    await permits.settle('u', 'c', 'withdrawn');
    permits.hasStopped('m2', 'c');
    const copy = { ...pod, uid: 'c', nodeName: 'm2' };
    expect(permits.ask('m2', [copy])).toEqual([]);
    expect(permits.deletable([copy])).toMatchObject([copy]);
    await permits.forget(new Set(['c']));
    expect(permits.moves()).toHaveLength(1);
  });

  it('is not deletable after its end, unless it was deleted and its machine does not confirm that', async () => {
    const { time, begun } = site();
    const permits = await begun();
    await permits.release(pod);
    time.nowMs += FENCE_MS;
    const ended = { ...pod, hasEnded: true };
    expect(permits.deletable([ended])).toEqual([]);
    expect(permits.deletable([{ ...ended, isDeleting: true }])).toHaveLength(1);
  });
});

describe('the next process', () => {
  it('counts from its start, whatever the one before has permitted', async () => {
    const { time, begun, open } = site();
    (await begun()).ask('m1', [pod]);
    time.nowMs = 10 * FENCE_MS;
    const next = await open();
    expect(next.lost([pod])).toEqual([]);
    expect(next.ask('m1', [pod])).toEqual(['u']);
  });

  it('knows moves, ends and what was given up', async () => {
    const { time, begun, open } = site();
    const permits = await begun();
    const [ended, givenUp] = ['e', 'g'].map((uid) => ({ ...pod, uid }));
    await permits.release(ended!);
    time.nowMs += FENCE_MS;
    await permits.move(pod, COPY);
    await permits.giveUp(givenUp!);
    const next = await open();
    const all = [pod, ended!, givenUp!];
    expect([next.ask('m1', all), next.ask('m2', all)]).toEqual([[], ['c']]);
    expect(next.deletable(all)).toMatchObject([givenUp!]);
  });

  it('over a new file permits what was there before only after its fence', async () => {
    const { time, open } = site();
    const permits = await open();
    expect(permits.ask('m1', [pod])).toEqual([]);
    await permits.begin([pod]);
    const later = { ...pod, uid: 'later' };
    expect(permits.ask('m1', [pod, later])).toEqual(['later']);
    expect(await permits.release(pod)).toBe(false);
    time.nowMs += FENCE_MS;
    expect(permits.ask('m1', [pod])).toEqual(['u']);
    await permits.begin([pod, later]);
    // The next process does not wait again.
    expect((await open()).ask('m1', [pod])).toEqual(['u']);
  });
});

it('nothing is permitted, confirmed or deletable by a decision that may not be durable', async () => {
  const { time, begun, failDisk } = site();
  const permits = await begun();
  time.nowMs += FENCE_MS;
  failDisk(true);
  await expect(permits.move(pod, COPY)).rejects.toThrow('disk');
  const [released, givenUp] = ['r', 'g'].map((uid) => ({ ...pod, uid }));
  await expect(permits.release(released!)).rejects.toThrow('disk');
  await expect(permits.giveUp(givenUp!)).rejects.toThrow('disk');
  const all = [pod, released!, givenUp!];
  expect([permits.ask('m1', all), permits.ask('m2', all)]).toEqual([[], []]);
  expect([permits.moves(), permits.deletable(all)]).toEqual([[], []]);
});

it('what the cluster has no more is forgotten, and a copy that may still run is not', async () => {
  const { time, begun, open } = site();
  const permits = await begun();
  const [ended, givenUp, moved2] = ['e', 'g', 'w'].map((uid) => ({ ...pod, uid }));
  await permits.release(ended!);
  time.nowMs += FENCE_MS;
  await permits.giveUp(givenUp!);
  await permits.move(pod, COPY);
  await permits.settle('u', 'c', 'merged');
  await permits.move(moved2!, { uid: 'd', nodeName: 'm2', moved });
  permits.ask('m2', []);
  await permits.settle('w', 'd', 'withdrawn');
  await permits.forget(new Set(['e', 'g', 'u', 'w']));
  expect((await open()).moves()).toHaveLength(2);
  await permits.forget(new Set(['c']));
  const records = await open();
  expect(records.moves().map(([origin]) => origin)).toEqual(['w']);
  expect(records.deletable([ended!, givenUp!])).toEqual([]);
  time.nowMs += FENCE_MS;
  await permits.forget(new Set(['c']));
  expect((await open()).moves()).toEqual([]);
});
