import { describe, expect, it } from 'vitest';
import { type Fence, isInState } from '../../shared/store/move-rows.ts';
import { fenceChange } from './fence-change.ts';

const FENCE: Fence = { moveId: 'm1', to: '/new', sinceMs: 7, isReady: false };
const OTHER: Fence = { ...FENCE, moveId: 'm2', to: '/other' };

/** A served store. What stops its work ends when the test says so. */
function served(first: Fence | undefined) {
  let fence = first;
  let fault: Error | undefined;
  const events: string[] = [];
  const { promise: worked, resolve: finishWork } = Promise.withResolvers<void>();
  const store = {
    fence: () => fence,
    async setFence(next: Fence | undefined, expected: Parameters<typeof isInState>[1]) {
      if (fault !== undefined) throw fault;
      if (!isInState(fence, expected)) return false;
      fence = next;
      events.push(next === undefined ? 'lifted' : 'fenced');
      return true;
    },
    pending: () => [],
  };
  const change = fenceChange({
    consumers: ['stream'],
    onDraining: (is) => void events.push(is ? 'refuses writes' : 'accepts writes'),
    async stopWork(drained) {
      events.push('stop');
      await drained();
      await worked;
      events.push('stopped');
    },
    startWork() {
      if (fence === undefined) events.push('start');
    },
  });
  return {
    events,
    finishWork,
    set: (next: Fence | undefined, expected: Fence | undefined) => change(store, next, expected),
    fail(error: Error | undefined) {
      fault = error;
    },
  };
}
const turns = async (): Promise<void> => {
  for (let count = 0; count < 5; count += 1) await new Promise((resolve) => setImmediate(resolve));
};
const FENCED = ['refuses writes', 'stop', 'stopped', 'fenced', 'accepts writes'];

describe('the fence of a cluster that is served', () => {
  it('is lifted by one of two commands at once, and the work starts once', async () => {
    const { set, events } = served(FENCE);
    expect(await Promise.all([set(undefined, FENCE), set(undefined, FENCE)])).toEqual([true, false]);
    expect(events).toEqual(['lifted', 'start']);
  });

  it('that was lifted already is not lifted again: nothing stops for it', async () => {
    const { set, events } = served(undefined);
    expect(await set(undefined, FENCE)).toBe(false);
    expect(events).toEqual([]);
  });

  it('is set while nothing works, although another command is refused meanwhile', async () => {
    const { set, events, finishWork } = served(undefined);
    const answers = [set(FENCE, undefined), set(undefined, OTHER), set(OTHER, undefined)];
    await turns();
    expect(events).toEqual(['refuses writes', 'stop']);
    finishWork();
    expect(await Promise.all(answers)).toEqual([true, false, false]);
    expect(events).toEqual(FENCED);
  });

  it('that the disk refused stops nothing for longer, nor the commands after it', async () => {
    const { set, events, finishWork, fail } = served(undefined);
    finishWork();
    fail(new Error('EIO'));
    await expect(set(FENCE, undefined)).rejects.toThrow('EIO');
    expect(events.splice(0)).toEqual(['refuses writes', 'stop', 'stopped', 'accepts writes', 'start']);
    fail(undefined);
    expect(await set(FENCE, undefined)).toBe(true);
    expect(await set({ ...FENCE, isReady: true }, FENCE)).toBe(true);
    expect(events).toEqual([...FENCED, 'fenced']);
  });
});
