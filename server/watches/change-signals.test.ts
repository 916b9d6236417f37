import { expect, it, vi } from 'vitest';
import { changeSignals } from './change-signals.ts';

it('a wait ends at the next commit of its resource, at once for one that was missed', async () => {
  const signals = changeSignals();
  const waiting = signals.wait('nodes', { seen: 0, milliseconds: 60_000 });
  signals.changed('pods');
  signals.changed('nodes');
  expect(await waiting).toBe(true);
  expect(await signals.wait('nodes', { seen: 0, milliseconds: 60_000 })).toBe(true);
});

it('a wait ends with its time', async () => {
  vi.useFakeTimers();
  try {
    const waiting = changeSignals().wait('nodes', { seen: 0, milliseconds: 1_000 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await waiting).toBe(false);
  } finally {
    vi.useRealTimers();
  }
});

it('every wait ends a second after a commit that may withdraw access', async () => {
  vi.useFakeTimers();
  try {
    const signals = changeSignals();
    const waits = ['nodes', 'pods'].map((resource) => signals.wait(resource, { seen: 0, milliseconds: 60_000 }));
    signals.withdrawn();
    signals.withdrawn();
    expect(signals.withdrawals()).toBe(2);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await Promise.all(waits)).toEqual([true, true]);
  } finally {
    vi.useRealTimers();
  }
});

it('wakes many watches in parts: heartbeats are served between them', async () => {
  const signals = changeSignals();
  let woken = 0;
  const all = Array.from({ length: 1_000 }, async () => {
    await signals.wait('pods', { seen: 0, milliseconds: 60_000 });
    woken += 1;
  });
  signals.changed('pods');
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(woken).toBe(200);
  await Promise.all(all);
  expect(woken).toBe(1_000);
});
