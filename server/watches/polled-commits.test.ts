import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { changeSignals } from './change-signals.ts';
import { type CommitPoll, POLL_MS, pollCommits } from './polled-commits.ts';

let newest: Record<string, number>;
let asked: string[][];
let isBroken: boolean;
const signals = changeSignals();
let polled: CommitPoll;

beforeEach(() => {
  vi.useFakeTimers();
  newest = { pods: 5 };
  asked = [];
  isBroken = false;
  polled = pollCommits(
    {
      async newestCommits(resources) {
        asked.push([...resources]);
        if (isBroken) throw new Error('throttled');
        return resources.map((resource) => newest[resource] ?? 0);
      },
    },
    signals,
  );
});
afterEach(() => {
  polled.stop();
  vi.useRealTimers();
});

const wait = (resource: string) =>
  signals.wait(resource, { seen: signals.count(resource), milliseconds: 10 * POLL_MS });

it('asks about nothing while no watch waits', async () => {
  await vi.advanceTimersByTimeAsync(5 * POLL_MS);
  expect(asked).toEqual([]);
});

it('wakes who waits at the first look, and then after a commit of another process', async () => {
  const waits = [wait('pods'), wait('pods')];
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect(await Promise.all(waits)).toEqual([true, true]);
  expect(asked.length).toBe(1);
  const next = wait('pods');
  let isWoken = false;
  void next.then(() => {
    isWoken = true;
  });
  await vi.advanceTimersByTimeAsync(3 * POLL_MS);
  expect(isWoken).toBe(false);
  newest['pods'] = 6;
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect(await next).toBe(true);
});

it('reports withdrawn access after a change of a binding, and twice per minute', async () => {
  void wait('pods');
  await vi.advanceTimersByTimeAsync(2 * POLL_MS);
  const before = signals.withdrawals();
  newest['rolebindings'] = 9;
  void wait('pods');
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect(signals.withdrawals()).toBe(before + 1);
  for (let poll = 0; poll < 60; poll += 1) {
    void wait('pods');
    await vi.advanceTimersByTimeAsync(POLL_MS);
  }
  expect(signals.withdrawals()).toBe(before + 3);
});

it('says why the tables cannot be read, and recovers', async () => {
  isBroken = true;
  void wait('pods');
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect(polled.fault()).toBe('the tables cannot be read: throttled');
  isBroken = false;
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect(polled.fault()).toBeUndefined();
});
