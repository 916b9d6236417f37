import { describe, expect, it } from 'vitest';
import { callSlots, type Release } from './call-slots.ts';

const LIMITS = { all: 3, ofUser: 2, waiting: 2 };
const never = new AbortController().signal;

/** Waits for every promise that is ready. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the slots of a webhook', () => {
  it('leave one for other users, whatever the first one has queued', async () => {
    const slots = callSlots(LIMITS);
    const order: string[] = [];
    const releases: Release[] = [];
    for (const user of ['ann', 'ann', 'ann', 'ben', 'ben']) {
      void slots.acquire(user, never)?.then((release) => {
        order.push(user);
        releases.push(release);
      });
    }
    await turn();
    expect(order).toEqual(['ann', 'ann', 'ben']);
    releases[2]?.();
    await turn();
    // The slot is free, and ann has two: ben was queued behind her.
    expect(order).toEqual(['ann', 'ann', 'ben', 'ben']);
    releases[0]?.();
    await turn();
    expect(order).toEqual(['ann', 'ann', 'ben', 'ben', 'ann']);
    for (const release of releases) release();
    expect(slots.isIdle()).toBe(true);
  });

  it('free one slot per release, however often it is called', async () => {
    const slots = callSlots({ all: 1, ofUser: 1, waiting: 2 });
    const first = await slots.acquire('ann', never);
    const second = slots.acquire('ben', never);
    const third = slots.acquire('cem', never);
    first?.();
    first?.();
    await second;
    const outcome = await Promise.race([third?.then(() => 'started'), turn().then(() => 'waits')]);
    expect(outcome).toBe('waits');
  });

  it('refuse when too many wait, and forget those that stop waiting', async () => {
    const slots = callSlots({ all: 1, ofUser: 1, waiting: 1 });
    const first = await slots.acquire('ann', never);
    const gone = new AbortController();
    const waits = slots.acquire('ben', gone.signal);
    expect(slots.acquire('cem', never)).toBeUndefined();
    gone.abort(new Error('late'));
    await expect(waits).rejects.toThrow('late');
    const next = slots.acquire('cem', never);
    first?.();
    expect(await next).toBeTypeOf('function');
    await expect(slots.acquire('dan', AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
  });
});
