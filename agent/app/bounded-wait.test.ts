import { describe, expect, it } from 'vitest';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import { waitAtMost } from './bounded-wait.ts';

describe('a bounded wait', () => {
  const started = (stop?: AbortSignal) => {
    const time = new SteppedTime(0);
    const work = Promise.withResolvers<string>();
    let outcome: unknown;
    void waitAtMost(time, 1_000, work.promise, stop).then(
      (kind) => {
        outcome = kind;
      },
      (error: unknown) => {
        outcome = error;
      },
    );
    return { time, work, outcome: () => outcome };
  };

  it('ends with the work', async () => {
    const { time, work, outcome } = started();
    await time.pass(999);
    expect(outcome()).toBeUndefined();
    work.resolve('result');
    await time.pass(0);
    expect(outcome()).toBe('done');
  });

  it('ends with the limit, and the work continues', async () => {
    const { time, work, outcome } = started();
    await time.pass(1_000);
    expect(outcome()).toBe('timedOut');
    work.reject(new Error('late'));
    await time.pass(0);
    expect(outcome()).toBe('timedOut');
  });

  it('fails as the work does', async () => {
    const { time, work, outcome } = started();
    const fault = new Error('broken');
    work.reject(fault);
    await time.pass(0);
    expect(outcome()).toBe(fault);
  });

  it('ends at a stop, before the limit', async () => {
    const stop = new AbortController();
    const { time, outcome } = started(stop.signal);
    await time.pass(1);
    stop.abort();
    await time.pass(0);
    expect(outcome()).toBe('timedOut');
  });

  it('leaves no timer behind', async () => {
    const sleeping = new Set<AbortSignal>();
    const sleep = async (_: number, signal?: AbortSignal) => {
      if (signal !== undefined) sleeping.add(signal);
      await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
      if (signal !== undefined) sleeping.delete(signal);
    };
    expect(await waitAtMost({ sleep }, 1_000, Promise.resolve())).toBe('done');
    await Promise.resolve();
    expect(sleeping.size).toBe(0);
  });
});
