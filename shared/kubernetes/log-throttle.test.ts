import { describe, expect, it } from 'vitest';
import { silentLog } from '../../test/support/agent-api.ts';
import { StoreFault } from '../store/item-store.ts';
import { failedRequests, oncePerMinute, refusedSignIns } from './log-throttle.ts';
import * as status from './status.ts';

describe('what keeps happening', () => {
  it('is logged again after a minute, with the number of repetitions', () => {
    const throttled = oncePerMinute();
    const logged: unknown[] = [];
    for (const nowMs of [0, 1, 59_999, 60_000, 60_001, 300_000]) {
      throttled('away', nowMs, (repeated) => logged.push([nowMs, repeated]));
    }
    expect(logged).toEqual([
      [0, 0],
      [60_000, 2],
      [300_000, 1],
    ]);
  });

  it('is logged again when the clock was set back by more than a minute', () => {
    const throttled = oncePerMinute();
    const logged: unknown[] = [];
    for (const nowMs of [3_600_000, 3_550_000, 0])
      throttled('away', nowMs, (repeated) => logged.push([nowMs, repeated]));
    expect(logged).toEqual([
      [3_600_000, 0],
      [0, 1],
    ]);
  });

  it('forgets the oldest of too many reasons, and grows no further', () => {
    const throttled = oncePerMinute();
    const logged: string[] = [];
    const come = (reason: string) => throttled(reason, 0, () => logged.push(reason));
    for (let number = 0; number < 201; number += 1) come(`reason ${number}`);
    come('reason 1');
    come('reason 0');
    expect(logged).toHaveLength(202);
    expect(logged.at(-1)).toBe('reason 0');
  });
});

describe('requests that we could not serve', () => {
  it('are logged by cause, regardless of table, request or object', () => {
    const logged: unknown[] = [];
    const note = failedRequests({ ...silentLog, error: (_, fields) => logged.push(fields) }, 'request failed');
    const throttled = (table: string) => new StoreFault('throttled', `${table} is slow`, { retryable: true });
    const first = throttled('health');
    note(first, { path: '/a' }, 0);
    note(throttled('objects'), { path: '/b' }, 1_000);
    note(new StoreFault('timeout', 'no answer', { retryable: true }), { path: '/c' }, 2_000);
    note(status.serviceUnavailable('n1 cannot be asked for'), { path: '/d' }, 3_000);
    note(status.serviceUnavailable('n2 cannot be asked for'), { path: '/e' }, 4_000);
    note(new TypeError('x is not a function'), { path: '/f' }, 5_000);
    note(new TypeError('y is not a function'), { path: '/g' }, 6_000);
    expect(logged).toMatchObject([
      { error: first, path: '/a', repeated: 0 },
      { path: '/c' },
      { path: '/d' },
      { path: '/f' },
      { path: '/g' },
    ]);
  });
});

describe('refused sign-ins', () => {
  it('are logged once per minute and reason, with the number of repetitions', () => {
    const logged: unknown[] = [];
    const nothing = () => {};
    const note = refusedSignIns({
      debug: nothing,
      info: nothing,
      error: nothing,
      warn: (_, fields) => logged.push([fields?.['reason'], fields?.['repeated']]),
    });
    for (const nowMs of [0, 1, 59_999]) note('token has expired', '192.0.2.1', nowMs);
    note('unknown key', '192.0.2.1', 30_000);
    note('token has expired', '192.0.2.1', 60_000);
    expect(logged).toEqual([
      ['token has expired', 0],
      ['unknown key', 0],
      ['token has expired', 2],
    ]);
  });
});
