import { beforeEach, describe, expect, it } from 'vitest';
import type { Log } from '../observability/log.ts';
import { type Refusals, refusedRequests } from './refused-requests.ts';

const GREEDY = { kind: 'node', username: 'system:node:greedy', over: 'time' } as const;

let lines: unknown[];
let stored: Refusals[];
let faults: unknown[];
let isBroken: boolean;
let refuse: ReturnType<typeof refusedRequests>;

beforeEach(() => {
  [lines, stored, faults, isBroken] = [[], [], [], false];
  const log = { warn: (...line: unknown[]) => lines.push(line) } as unknown as Log;
  refuse = refusedRequests({
    log,
    store: async (refusals) => {
      if (isBroken) throw new Error('the table is away');
      stored.push(refusals);
    },
    noteFault: (error) => faults.push(error),
  });
});

describe('refusals', () => {
  it('of one identity are a line and a write per minute, with their number', async () => {
    for (let second = 0; second < 180; second += 1) {
      for (let request = 0; request < 10; request += 1) await refuse(GREEDY, 1_000 * second);
    }
    expect(stored.map(({ count }) => count)).toEqual([1, 600, 600]);
    expect(lines).toHaveLength(3);
    expect(lines[1]).toEqual(['requests of an identity were refused', { ...GREEDY, count: 600 }]);
  });

  it('wait for nothing between two reports', () => {
    expect(refuse(GREEDY, 0)).toBeInstanceOf(Promise);
    expect(refuse(GREEDY, 1)).toBeUndefined();
  });

  it('of several identities are counted apart', async () => {
    await refuse(GREEDY, 0);
    await refuse({ ...GREEDY, username: 'vera', kind: 'person' }, 0);
    expect(stored.map(({ username }) => username)).toEqual(['system:node:greedy', 'vera']);
  });

  it('that could not be stored are stored with the next report', async () => {
    isBroken = true;
    await refuse(GREEDY, 0);
    await refuse(GREEDY, 30_000);
    isBroken = false;
    await refuse(GREEDY, 60_000);
    expect(faults).toHaveLength(1);
    expect(stored.map(({ count }) => count)).toEqual([3]);
  });

  it('that come while a report fails are counted, too', async () => {
    isBroken = true;
    const reported = refuse(GREEDY, 0);
    for (let request = 0; request < 3; request += 1) await refuse(GREEDY, 1);
    await reported;
    isBroken = false;
    await refuse(GREEDY, 60_000);
    expect(stored.map(({ count }) => count)).toEqual([5]);
  });

  it('of an identity that is no longer in memory are not counted when their report fails', async () => {
    isBroken = true;
    const reported = refuse(GREEDY, 0);
    for (let other = 0; other < 200; other += 1) void refuse({ ...GREEDY, username: `other-${other}` }, 0);
    await reported;
    isBroken = false;
    await refuse(GREEDY, 60_000);
    expect(stored.map(({ count }) => count)).toEqual([1]);
  });

  it('are reported a minute after the last report, or when the clock was set back', async () => {
    for (const atMs of [100_000, 159_999, 160_000, 160_000, 160_000]) await refuse(GREEDY, atMs);
    expect(stored.map(({ count }) => count)).toEqual([1, 2]);
    await refuse(GREEDY, 159_999);
    expect(stored.map(({ count }) => count)).toEqual([1, 2, 3]);
  });

  it.each([
    [199, 3],
    [200, 1],
  ])('that are not reported yet outlive %i other identities with a count of %i', async (others, reported) => {
    for (let request = 0; request < 3; request += 1) await refuse(GREEDY, 0);
    for (let other = 0; other < others; other += 1) await refuse({ ...GREEDY, username: `other-${other}` }, 0);
    await refuse(GREEDY, 60_000);
    expect(stored.filter(({ username }) => username === GREEDY.username).map(({ count }) => count)).toEqual([
      1,
      reported,
    ]);
  });

  it('of an identity that was reported again are not dropped before older ones', async () => {
    await refuse(GREEDY, 0);
    for (let other = 0; other < 199; other += 1) await refuse({ ...GREEDY, username: `other-${other}` }, 0);
    await refuse(GREEDY, 60_000);
    await refuse({ ...GREEDY, username: 'another' }, 60_000);
    expect(refuse(GREEDY, 60_000)).toBeUndefined();
  });
});
