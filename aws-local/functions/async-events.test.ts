import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AsyncPolicy } from '../assembly/plan.ts';
import { asyncEvents } from './async-events.ts';
import type { InvocationOutcome } from './local-function.ts';

const failed: InvocationOutcome = { kind: 'failed', error: { errorType: 'E', errorMessage: '', stack: '' } };

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
});
afterEach(() => {
  vi.useRealTimers();
});

async function secondsOfInvocations(policy: AsyncPolicy, outcome: InvocationOutcome): Promise<number[]> {
  const seconds: number[] = [];
  const invoke = async () => {
    seconds.push(Date.now() / 1_000);
    return outcome;
  };
  asyncEvents({ fn: { invoke }, policy, nowMs: () => Date.now() }).put({});
  await vi.advanceTimersByTimeAsync(3_600_000);
  return seconds;
}

describe('an asynchronous event', () => {
  it('is delivered once when the function succeeds', async () => {
    const policy = { maximumRetryAttempts: 2, maximumEventAgeSeconds: 21_600 };
    expect(await secondsOfInvocations(policy, { kind: 'returned', payload: 'null' })).toEqual([0]);
  });

  it.each([
    [{ maximumRetryAttempts: 2, maximumEventAgeSeconds: 21_600 }, [0, 60, 180]],
    [{ maximumRetryAttempts: 1, maximumEventAgeSeconds: 21_600 }, [0, 60]],
    [{ maximumRetryAttempts: 2, maximumEventAgeSeconds: 100 }, [0, 60]],
    [{ maximumRetryAttempts: 0, maximumEventAgeSeconds: 21_600 }, [0]],
  ])('of a function that fails is repeated as %j allows', async (policy, seconds) => {
    expect(await secondsOfInvocations(policy, failed)).toEqual(seconds);
  });

  it('of a throttled function is repeated within its age, whatever its retry attempts', async () => {
    const policy = { maximumRetryAttempts: 0, maximumEventAgeSeconds: 60 };
    expect(await secondsOfInvocations(policy, { kind: 'throttled' })).toEqual([0, 1, 3, 7, 15, 31]);
  });
});
