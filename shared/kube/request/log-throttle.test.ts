import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../test/support/agent-api.ts';
import { StoreFault } from '../../ports/item-store.ts';
import * as status from '../status.ts';
import { failedRequests, toldEachMinute } from './log-throttle.ts';

describe('what keeps happening', () => {
  it('is told when a minute is over, with how often it came meanwhile', () => {
    const sparingly = toldEachMinute();
    const told: unknown[] = [];
    for (const nowMs of [0, 1, 59_999, 60_000, 60_001, 300_000]) {
      sparingly('away', nowMs, (repeated) => told.push([nowMs, repeated]));
    }
    expect(told).toEqual([
      [0, 0],
      [60_000, 2],
      [300_000, 1],
    ]);
  });

  it('is told again when the clock was set back by more than a minute', () => {
    const sparingly = toldEachMinute();
    const told: unknown[] = [];
    for (const nowMs of [3_600_000, 3_550_000, 0]) sparingly('away', nowMs, (repeated) => told.push([nowMs, repeated]));
    expect(told).toEqual([
      [3_600_000, 0],
      [0, 1],
    ]);
  });

  it('forgets the oldest of too many reasons, and grows no further', () => {
    const sparingly = toldEachMinute();
    const told: string[] = [];
    const come = (reason: string) => sparingly(reason, 0, () => told.push(reason));
    for (let number = 0; number < 201; number += 1) come(`reason ${number}`);
    come('reason 1');
    come('reason 0');
    expect(told).toHaveLength(202);
    expect(told.at(-1)).toBe('reason 0');
  });
});

describe('requests that we could not serve', () => {
  it('are told by their cause, whichever table, request or object it was', () => {
    const told: unknown[] = [];
    const note = failedRequests({ ...silentLog, error: (_, fields) => told.push(fields) }, 'request failed');
    const throttled = (table: string) => new StoreFault('throttled', `${table} is slow`, { retryable: true });
    const first = throttled('health');
    note(first, { path: '/a' }, 0);
    note(throttled('objects'), { path: '/b' }, 1_000);
    note(new StoreFault('timeout', 'no answer', { retryable: true }), { path: '/c' }, 2_000);
    note(status.serviceUnavailable('n1 cannot be asked for'), { path: '/d' }, 3_000);
    note(status.serviceUnavailable('n2 cannot be asked for'), { path: '/e' }, 4_000);
    note(new TypeError('x is not a function'), { path: '/f' }, 5_000);
    note(new TypeError('y is not a function'), { path: '/g' }, 6_000);
    expect(told).toMatchObject([
      { error: first, path: '/a', repeated: 0 },
      { path: '/c' },
      { path: '/d' },
      { path: '/f' },
      { path: '/g' },
    ]);
  });
});
