import { describe, expect, it } from 'vitest';
import { isStatusError } from '../kubernetes/http.ts';
import { NODES_GROUP } from './authorize.ts';
import { PROBE_GROUP, PROBE_USER } from './probe-identity.ts';
import {
  API_LIMITS,
  CONCURRENT_API_LIMITS,
  HEARTBEAT_LIMITS,
  type RefusedRequest,
  requestThrottle,
  type Visit,
} from './request-throttle.ts';
import type { UserInfo } from './user-info.ts';

const node = (name: string): UserInfo => ({ username: `system:node:${name}`, groups: [NODES_GROUP] });
const probe: UserInfo = { username: PROBE_USER, groups: [PROBE_GROUP] };
const person: UserInfo = { username: 'vera', groups: [] };
const master: UserInfo = { username: 'fleet', groups: ['system:masters'] };

/** One environment: requests follow each other. */
function environment(limits = HEARTBEAT_LIMITS) {
  const refused: RefusedRequest[] = [];
  let nowMs = 0;
  let busyMs = 0;
  const throttle = requestThrottle(limits, {
    busyMs: () => busyMs,
    onRefused: (each) => void refused.push(each),
  });
  return {
    refused,
    pass: (milliseconds: number) => {
      nowMs += milliseconds;
    },
    /** @returns the message of a refusal */
    serve(user: UserInfo, used: { readonly busyMs: number; readonly waitMs?: number; readonly nodes?: number }) {
      const visit = throttle.begin(nowMs);
      try {
        visit.admit(user);
      } catch (error) {
        void visit.end(nowMs);
        if (isStatusError(error)) return error.status;
        throw error;
      }
      busyMs += used.busyMs;
      nowMs += used.busyMs + (used.waitMs ?? 0);
      if (used.nodes !== undefined) visit.carries(used.nodes);
      void visit.end(nowMs);
      return undefined;
    },
  };
}

describe('a clock that was set back', () => {
  it.each([6_000, 29_000, 3_600_000])('by %i ms refuses no node, and forgives none', (backMs) => {
    const some = environment();
    some.pass(2 * backMs);
    expect(some.serve(node('n1'), { busyMs: 2 })).toBeUndefined();
    expect(some.serve(node('greedy'), { busyMs: 1_500 })).toBeUndefined();
    some.pass(-backMs);
    expect(some.serve(node('n1'), { busyMs: 2 })).toBeUndefined();
    expect(some.serve(node('greedy'), { busyMs: 1_500 })).toMatchObject({ details: { retryAfterSeconds: 20 } });
  });
});

it('requests that a process serves at the same time pay once for what it computes, and nothing for their waits', () => {
  let busyMs = 0;
  const throttle = requestThrottle(CONCURRENT_API_LIMITS, { busyMs: () => busyMs });
  const visits = Array.from({ length: 100 }, () => throttle.begin(0));
  for (const visit of visits) {
    visit.admit(node('n1'));
    busyMs += 19;
  }
  // 1.9 s of computing, of a burst of 2 s: each of them had waited for all.
  for (const visit of visits) void visit.end(1_900);
  expect(() => throttle.begin(1_900).admit(node('n1'))).not.toThrow();
});

it.each([
  [19_999, true],
  [20_000, false],
])('the account of an identity outlives %i other identities: %s', (count, isKept) => {
  const some = environment();
  const isRefused = (name: string) => some.serve(node(name), { busyMs: 0 }) !== undefined;
  for (let request = 0; request < HEARTBEAT_LIMITS.node.rate.burst; request += 1) isRefused('greedy');
  expect(isRefused('greedy')).toBe(true);
  for (let other = 0; other < count; other += 1) isRefused(`other-${other}`);
  expect(isRefused('greedy')).toBe(isKept);
});

describe('the share of an identity', () => {
  it('refuses one that uses seconds, and none of the others', () => {
    const some = environment();
    expect(some.serve(node('greedy'), { busyMs: 1_500 })).toBeUndefined();
    expect(some.serve(node('greedy'), { busyMs: 1_500 })).toMatchObject({
      code: 429,
      reason: 'TooManyRequests',
      message:
        '"system:node:greedy" sends too many requests: limit is 5 % of the time of a process after a burst of 500 ms, please try again later',
      details: { retryAfterSeconds: 20 },
    });
    for (const other of [node('n1'), probe, person, master]) expect(some.serve(other, { busyMs: 2 })).toBeUndefined();
    expect(some.refused).toEqual([{ kind: 'node', username: 'system:node:greedy', over: 'time' }]);
  });

  it('is at most a twentieth of the heartbeat function, whatever a node sends', () => {
    const some = environment();
    let usedMs = 0;
    const throughMs = 600_000;
    for (let atMs = 0; atMs < throughMs; atMs += 50) {
      if (some.serve(node('greedy'), { busyMs: 300 }) === undefined) {
        usedMs += 300;
        atMs += 300;
      }
      some.pass(50);
    }
    expect(usedMs).toBeLessThan(0.05 * throughMs + 1_000 + 2 * 300);
  });

  it('never refuses a node that sends a heartbeat per second while each waits for slow tables', () => {
    const some = environment();
    for (let second = 0; second < 900; second += 1) {
      expect(some.serve(node('n1'), { busyMs: 4, waitMs: 800 })).toBeUndefined();
      some.pass(196);
    }
  });

  it('never refuses the start of a kubelet, of kubectl, Helm and kube-state-metrics at the API', () => {
    const some = environment(API_LIMITS);
    for (let request = 0; request < 60; request += 1) {
      expect(some.serve(node('kubelet'), { busyMs: 15, waitMs: 30 })).toBeUndefined();
    }
    for (let request = 0; request < 250; request += 1) {
      expect(some.serve(person, { busyMs: 20, waitMs: 30 })).toBeUndefined();
    }
    const metrics: UserInfo = { username: 'system:serviceaccount:monitoring:kube-state-metrics', groups: [] };
    for (let kind = 0; kind < 30; kind += 1) {
      expect(some.serve(metrics, { busyMs: 500, waitMs: 300 })).toBeUndefined();
    }
  });

  it('does not apply to system:masters', () => {
    const some = environment();
    for (let request = 0; request < 100; request += 1) expect(some.serve(master, { busyMs: 900 })).toBeUndefined();
  });

  it('of a batch is paid by each of its nodes', () => {
    const relay = node('relay');
    const honest = environment();
    for (let batch = 0; batch < 60; batch += 1) {
      expect(honest.serve(relay, { busyMs: 900, waitMs: 100, nodes: 100 })).toBeUndefined();
      honest.pass(9_000);
    }
    const greedy = environment();
    const answers = Array.from({ length: 10 }, () => greedy.serve(relay, { busyMs: 900, nodes: 1 })?.code);
    expect(answers.filter((code) => code === 429).length).toBeGreaterThan(7);
  });

  it('of an item is its count alone: its batch pays the time', () => {
    const throttle = requestThrottle(HEARTBEAT_LIMITS, { busyMs: () => performance.now() });
    for (let item = 0; item < 20; item += 1) {
      const visit = throttle.begin(0, false);
      visit.admit(node('n1'));
      void visit.end(3_600_000);
    }
    expect(() => throttle.begin(0, false).admit(node('n1'))).toThrow('1 requests per second after a burst of 20');
  });
});

describe('the account of an identity', () => {
  const limit = { rate: { ratePerSecond: 1, burst: 2 }, time: { share: 0.1, burstMs: 100, waitMsMax: 25 } };
  const generous = { rate: { ratePerSecond: 1_000, burst: 1_000 }, time: { share: 1, burstMs: 60_000, waitMsMax: 0 } };
  const limits = { node: limit, probe: generous, person: generous };
  const refusalOf = (visit: Visit, user: UserInfo) => {
    try {
      visit.admit(user);
      return undefined;
    } catch (error) {
      return isStatusError(error) ? error.status : error;
    }
  };

  it('is that of its name, with the limits of its kind', () => {
    const throttle = requestThrottle(limits);
    const admits = (user: UserInfo) => refusalOf(throttle.begin(0), user) === undefined;
    const asNode = (username: string) => ({ username, groups: ['x', NODES_GROUP] });
    expect([1, 2, 3].map(() => admits(asNode('a')))).toEqual([true, true, false]);
    expect([1, 2, 3].map(() => admits(asNode('b')))).toEqual([true, true, false]);
    for (const groups of [[PROBE_GROUP], [], ['x']])
      expect([1, 2, 3].map(() => admits({ username: `of ${groups}`, groups }))).toEqual([true, true, true]);
    expect([1, 2, 3].map(() => admits({ ...asNode('c'), groups: [NODES_GROUP, 'system:masters'] }))).toEqual([
      true,
      true,
      true,
    ]);
  });

  it('says what the limit of the rate is, and when the next request is admitted', () => {
    const throttle = requestThrottle(limits);
    const at = (nowMs: number) => refusalOf(throttle.begin(nowMs), node('n1'));
    expect([at(0), at(0)]).toEqual([undefined, undefined]);
    expect(at(1)).toMatchObject({
      code: 429,
      message:
        '"system:node:n1" sends too many requests: limit is 1 requests per second after a burst of 2, please try again later',
      details: { retryAfterSeconds: 1 },
    });
    // A refused request pays nothing.
    expect([at(999) === undefined, at(1_000) === undefined, at(1_000) === undefined]).toEqual([false, true, false]);
  });

  it('pays for the time of a request when it ends, divided among the nodes of a batch', () => {
    const used = (nodes: number | undefined, busyMs: number, waitMs = 0) => {
      let busy = 0;
      const throttle = requestThrottle(limits, { busyMs: () => busy });
      const visit = throttle.begin(0);
      visit.admit(node('n1'));
      if (nodes !== undefined) visit.carries(nodes);
      busy += busyMs;
      void visit.end(busyMs + waitMs);
      return refusalOf(throttle.begin(busyMs + waitMs), node('n1')) === undefined;
    };
    expect([used(undefined, 100), used(undefined, 101)]).toEqual([true, false]);
    expect([used(0, 100), used(0, 101)]).toEqual([true, false]);
    expect([used(2, 200), used(2, 201)]).toEqual([true, false]);
    // Of the wait, 25 ms per node at most.
    expect([used(undefined, 76, 24), used(undefined, 76, 25), used(undefined, 75, 1_000)]).toEqual([true, false, true]);
    expect([used(2, 150, 50), used(2, 152, 50)]).toEqual([true, false]);
  });

  it('pays nothing for a request that was not admitted, or is exempt', () => {
    let busyMs = 0;
    const throttle = requestThrottle(limits, { busyMs: () => busyMs });
    const visit = throttle.begin(0);
    busyMs += 5_000;
    expect(visit.end(5_000)).toBeUndefined();
    expect(refusalOf(throttle.begin(5_000), node('n1'))).toBeUndefined();
  });

  it('reports a refusal at its time, and the end of the request waits for the report', async () => {
    const reports: unknown[][] = [];
    const report = Promise.resolve();
    const onRefused = (...refused: unknown[]) => {
      reports.push(refused);
      return report;
    };
    const throttle = requestThrottle(limits, { onRefused });
    for (let request = 0; request < 2; request += 1) throttle.begin(7).admit(node('n1'));
    const visit = throttle.begin(7);
    expect(refusalOf(visit, node('n1'))).toMatchObject({ code: 429 });
    expect(visit.end(9)).toBe(report);
    expect(reports).toEqual([[{ kind: 'node', username: 'system:node:n1', over: 'rate' }, 7]]);
    const admitted = throttle.begin(60_000);
    admitted.admit(node('n1'));
    expect(admitted.end(60_000)).toBeUndefined();
  });

  it.each([
    [5_000, true],
    [5_001, false],
  ])('that is %i ms ahead of the clock stays so: %s', (backMs, isAhead) => {
    const throttle = requestThrottle(limits);
    const at = (nowMs: number) => refusalOf(throttle.begin(nowMs), node('n1')) === undefined;
    expect([at(100_000), at(100_000)]).toEqual([true, true]);
    // The clock was set back: the bucket is as full as before. In requests that overlap it is not older than before.
    expect(at(100_000 - backMs)).toBe(false);
    expect(at(100_000 - backMs + 1_000)).toBe(!isAhead);
  });

  it('is the least recent one when it is dropped, not the first', () => {
    const throttle = requestThrottle(limits);
    const admits = (name: string) => refusalOf(throttle.begin(0), node(name)) === undefined;
    for (const name of ['first', 'first', 'second', 'second']) admits(name);
    for (let other = 0; other < 19_998; other += 1) admits(`other-${other}`);
    admits('first');
    admits('another');
    expect([admits('first'), admits('second')]).toEqual([false, true]);
  });
});
