import { describe, expect, it } from 'vitest';
import { silentLog, virtualTime } from '../../../test/support/agent-api.ts';
import { LOGIND_SHUTDOWN, PRESHUTDOWN, type ShutdownRules } from '../../rules/shutdown-start.ts';
import { ShutdownInhibitor } from './shutdown-inhibitor.ts';

/** `granted` in order; the last one counts for all later reads. */
function world(granted: readonly number[], rules: ShutdownRules = LOGIND_SHUTDOWN) {
  const time = virtualTime(0);
  const acts: string[] = [];
  const errors: string[] = [];
  const faults: { hold?: Error; release?: Error } = {};
  let reads = 0;
  let locks = 0;
  const inhibitor = new ShutdownInhibitor(
    {
      rules,
      async delayMaxMs() {
        reads += 1;
        return granted[Math.min(reads, granted.length) - 1] ?? 0;
      },
      raiseDelayMax: async (delayMs) => void acts.push(`raise ${delayMs}`),
      async hold() {
        if (faults.hold !== undefined) throw faults.hold;
        locks += 1;
        const lock = locks;
        acts.push(`hold ${lock}`);
        return {
          async release() {
            acts.push(`release ${lock}`);
            if (faults.release !== undefined) throw faults.release;
          },
        };
      },
      async *watch() {},
    },
    time,
    { ...silentLog, error: (message) => errors.push(message) },
  );
  return { inhibitor, time, acts, errors, faults, reads: () => reads };
}

const buckets = [
  { priority: 0, shutdownGracePeriodSeconds: 20 },
  { priority: 10, shutdownGracePeriodSeconds: 10 },
];
const never = new AbortController().signal;

describe('the delay of a shutdown', () => {
  it.each([30_000, 60_000])('is not changed when %i ms are granted', async (grantedMs) => {
    const { inhibitor, acts, reads } = world([grantedMs]);
    await inhibitor.ensureDelay(buckets, never);
    expect([acts, reads()]).toEqual([[], 1]);
  });

  it('is raised, and read again until it is granted', async () => {
    const { inhibitor, acts, time, reads } = world([5_000, 5_000, 29_999, 30_000]);
    await inhibitor.ensureDelay(buckets, never);
    expect([acts, time.waits, reads()]).toEqual([['raise 30000'], [100, 200], 4]);
  });

  it('is too short after the last read', async () => {
    const { inhibitor, time } = world([5_000]);
    await expect(inhibitor.ensureDelay(buckets, never)).rejects.toThrow(
      'after 5 attempts waiting for logind InhibitDelayMaxSec to update to 30s (ShutdownGracePeriod), current value is 5s',
    );
    expect(time.waits).toEqual([100, 200, 400, 800]);
  });

  it('is read once where it changes at once', async () => {
    const { inhibitor, time, reads } = world([5_000], PRESHUTDOWN);
    await expect(inhibitor.ensureDelay(buckets, never)).rejects.toThrow('current value is 5s');
    expect([time.waits, reads()]).toEqual([[], 2]);
  });
});

describe('the lock', () => {
  it('is acquired before the previous one is released', async () => {
    const { inhibitor, acts } = world([]);
    await inhibitor.release();
    await inhibitor.acquire();
    await inhibitor.acquire();
    await inhibitor.release();
    await inhibitor.release();
    expect(acts).toEqual(['hold 1', 'hold 2', 'release 1', 'release 2']);
  });

  it('stays when another one cannot be acquired', async () => {
    const { inhibitor, acts, faults } = world([]);
    await inhibitor.acquire();
    faults.hold = new Error('no bus');
    await expect(inhibitor.acquire()).rejects.toThrow('no bus');
    await inhibitor.release();
    expect(acts).toEqual(['hold 1', 'release 1']);
  });

  it('is forgotten when it cannot be released', async () => {
    const { inhibitor, acts, errors, faults } = world([]);
    await inhibitor.acquire();
    faults.release = new Error('no bus');
    await inhibitor.release();
    await inhibitor.release();
    expect([acts, errors]).toEqual([['hold 1', 'release 1'], ['Failed to release the lock']]);
  });
});
