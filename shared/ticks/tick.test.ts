import { describe, expect, it } from 'vitest';
import { settledFleet } from '../../test/support/controlled-fleet.ts';
import { defaultPolicy, type Policy } from '../fleet/policy.ts';
import { type ItemStore, StoreFault } from '../store/item-store.ts';
import { parkedStore } from './parked-store.ts';
import {
  claimSlot,
  currentSlot,
  isTicking,
  reportsAge,
  reportTickAge,
  secondsToSlot,
  slotOf,
  slotStartMs,
  slotVerdict,
  tickGapMaxMs,
  ticksWereMissing,
} from './tick.ts';

describe('slots', () => {
  it('count whole periods since the epoch', () => {
    expect(slotOf(0, 5)).toBe(0);
    expect(slotOf(9_999, 5)).toBe(1);
    expect(slotStartMs(slotOf(1_767_225_603_000, 5), 5)).toBe(1_767_225_600_000);
  });

  it('are due up to a minute and a period late, and stale after that', () => {
    expect(slotVerdict({ slot: 0, nowMs: 65_000, periodSeconds: 5 })).toBe('due');
    expect(slotVerdict({ slot: 0, nowMs: 65_001, periodSeconds: 5 })).toBe('stale');
  });

  it('may be claimed by a clock that is two seconds behind', () => {
    expect(currentSlot(7_999, 5)).toBe(1);
    expect(currentSlot(8_000, 5)).toBe(2);
  });

  it('are waited for in whole seconds, and never too short', () => {
    expect(secondsToSlot(2, 5_000, 5)).toBe(5);
    expect(secondsToSlot(2, 5_001, 5)).toBe(5);
    expect(secondsToSlot(2, 9_001, 5)).toBe(1);
    expect(secondsToSlot(2, 10_001, 5)).toBe(0);
  });

  it('are claimed forward only', () => {
    const claim = claimSlot({ slot: 7, periodSeconds: 5 });
    expect(claim).toMatchObject({ set: { slot: 7, s: 35 }, add: { fence: 1 } });
    expect(claim.when).toMatchObject({
      kind: 'any',
      of: [
        { kind: 'lacks', attribute: 's' },
        { attribute: 's', op: '<', value: 35 },
      ],
    });
  });
});

describe('ticksWereMissing', () => {
  const missingAfter = (gapMs: number, policy: Partial<Policy> = {}) =>
    ticksWereMissing({
      lastTickAtMs: 100_000,
      nowMs: 100_000 + gapMs,
      gapMaxMs: tickGapMaxMs({ ...defaultPolicy, ...policy }),
    });

  it('allows late and lost ticks up to half of the grace period', () => {
    expect(missingAfter(5_000)).toBe(false);
    expect(missingAfter(15_000)).toBe(false);
    expect(missingAfter(20_000)).toBe(false);
    expect(missingAfter(20_001)).toBe(true);
  });

  it('follows the grace period, not the period', () => {
    expect(missingAfter(30_000, { nodeMonitorGracePeriodSeconds: 60 })).toBe(false);
    expect(missingAfter(20_001, { nodeMonitorPeriodSeconds: 10 })).toBe(true);
  });

  it('allows for jitter where the grace period is two periods', () => {
    const tight = { nodeMonitorPeriodSeconds: 5, nodeMonitorGracePeriodSeconds: 10 } as const;
    expect(missingAfter(5_400, tight)).toBe(false);
    expect(missingAfter(7_501, tight)).toBe(true);
  });

  it('is true before the first tick', () => {
    expect(ticksWereMissing({ lastTickAtMs: undefined, nowMs: 0, gapMaxMs: 20_000 })).toBe(true);
  });
});

describe('isTicking', () => {
  const ticking = (ageMs: number) => isTicking({ claimedAtMs: 100_000, nowMs: 100_000 + ageMs, periodSeconds: 5 });

  it('is true for two periods after a claim', () => {
    expect(ticking(10_000)).toBe(true);
    expect(ticking(10_001)).toBe(false);
  });

  it('is false before the first claim, and after the clock stepped back', () => {
    expect(isTicking({ claimedAtMs: undefined, nowMs: 0, periodSeconds: 5 })).toBe(false);
    expect(ticking(-30_000)).toBe(false);
  });
});

describe('the age of a tick', () => {
  const reportedAt = (periodSeconds: number): number[] =>
    Array.from({ length: 120 / periodSeconds }, (_, slot) => slot)
      .filter((slot) => reportsAge({ slot, periodSeconds, ageMs: 60_000 }))
      .map((slot) => slot * periodSeconds);

  it.each([
    [5, [0, 30, 60, 90]],
    [20, [0, 40, 60, 100]],
    [60, [0, 60]],
  ])('is reported twice a minute where there are so many, with a period of %i s', (periodSeconds, seconds) => {
    expect(reportedAt(periodSeconds)).toEqual(seconds);
  });

  it('is reported by the next tick when the first of a half minute is lost', () => {
    expect(reportsAge({ slot: 7, slotBefore: 5, periodSeconds: 5, ageMs: 0 })).toBe(true);
    expect(reportsAge({ slot: 8, slotBefore: 7, periodSeconds: 5, ageMs: 0 })).toBe(false);
  });

  it('is reported by each tick that comes later than a scheduler may be', () => {
    expect(reportsAge({ slot: 1, periodSeconds: 5, ageMs: 60_000 })).toBe(false);
    expect(reportsAge({ slot: 1, periodSeconds: 5, ageMs: 60_001 })).toBe(true);
  });
});

function agesOf(slot: number, lateMs: number): unknown[] {
  const added: unknown[] = [];
  const meter = { add: (...metric: unknown[]) => added.push(metric) } as never;
  reportTickAge(meter, { slot, periodSeconds: 5, nowMs: slot * 5_000 + lateMs });
  return added.map((metric) => (metric as unknown[])[1]);
}

it('the first tick of each half minute reports its age in seconds, the others only when they are late', () => {
  expect(agesOf(12, 1_500)).toEqual([1.5]);
  expect(agesOf(18, -200)).toEqual([0]);
  expect(agesOf(13, 1_500)).toEqual([]);
  expect(agesOf(13, 120_000)).toEqual([120]);
});

/** A fleet with a node-monitor that wakes the others. */
async function waking({ between, nodes = 3 }: { between?: (items: ItemStore) => ItemStore; nodes?: number } = {}) {
  const names: string[] = [];
  const times: number[] = [];
  let fails = false;
  const { fleet, names: nodeNames } = await settledFleet(
    { a: nodes },
    {
      ...(between === undefined ? {} : { between }),
      waker: {
        async wake(wanted, atMs) {
          names.push(...wanted);
          times.push(atMs);
          return fails ? wanted.map((name) => ({ name, reason: 'no' })) : [];
        },
      },
    },
  );
  return {
    fleet,
    nodeNames,
    times,
    fail: () => {
      fails = true;
    },
    /** Four quiet ticks; pod-gc has made its first sweep. */
    async settle() {
      fleet.at(0);
      await fleet.controllers.tickPodGc(fleet.slot());
      await fleet.run(0, 15, () => fleet.beat(...nodeNames));
      names.splice(0);
      times.splice(0);
    },
    async tick(seconds: number) {
      fleet.at(seconds);
      await fleet.controllers.tickNodeMonitor(fleet.slot());
      return names.splice(0);
    },
  };
}

describe('a tick of node-monitor', () => {
  it('wakes no function at rest, for four queries of half a unit, and one more per period of pod-gc', async () => {
    const { fleet, nodeNames, settle, tick } = await waking();
    await settle();
    const unitsOf = async (seconds: number) => {
      await fleet.beat(...nodeNames);
      fleet.consumed();
      expect(await tick(seconds)).toEqual([]);
      return fleet
        .consumed()
        .requests.filter(({ operation }) => operation === 'Query')
        .map(({ readUnits }) => readUnits);
    };
    // The first is that of its own records, the second that of reports of silent machines.
    expect(await unitsOf(20)).toEqual([1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
    expect(await unitsOf(25)).toEqual([1, 0.5, 0.5, 0.5, 0.5, 0.5]);
  });

  it('wakes evictor at once for nodes that it queues, and in each tick while they wait', async () => {
    const { fleet, tick } = await waking();
    await fleet.run(0, 35, (seconds) => (seconds % 10 === 0 ? fleet.beat('a-0') : Promise.resolve()));
    await tick(40);
    expect(await tick(45)).toContain('evictor');
    expect(await tick(50)).toContain('evictor');
  });

  it('wakes evictor when a timer is due, and when the retry of a parked record is', async () => {
    const { fleet, settle, tick } = await waking();
    await settle();
    expect(await tick(20)).toEqual([]);
    await parkedStore(fleet.tables).park(
      { resource: 'nodes', namespace: '', name: 'a-0', uid: 'u', resourceVersion: 1, text: '{}' },
      ['timers'],
      fleet.nowMs() + 10_000,
    );
    expect(await tick(25)).toEqual([]);
    expect(await tick(30)).toEqual(['evictor']);
  });

  it('wakes cloud-node while its list has a node', async () => {
    const { fleet, settle, tick } = await waking();
    await settle();
    await fleet.tables.write({ kind: 'put', key: { table: 'control', pk: 'cloud', sk: 'a-0' }, item: {} });
    expect(await tick(20)).toEqual(['cloud-node']);
    expect(await tick(25)).toEqual(['cloud-node']);
  });

  it('wakes pod-gc once per period of its own, while its list has work', async () => {
    const { fleet, settle, tick } = await waking();
    await settle();
    const pod = { namespace: 'default', name: 'p', uid: 'u', nodeName: undefined, phase: 'Running' };
    const store = (terminating: boolean) =>
      fleet.tables.write({
        kind: 'put',
        key: { table: 'control', pk: 'pod-gc', sk: `pod#${pod.namespace}/${pod.name}` },
        item: { u: pod.uid, c: 0, p: terminating ? 'Running' : 'Succeeded', ...(terminating ? { t: 1 } : {}) },
      });
    await store(false);
    expect(await tick(20)).toEqual([]);
    await store(true);
    expect(await tick(25)).toEqual([]);
    expect(await tick(40)).toEqual(['pod-gc']);
    expect(await tick(45)).toEqual([]);
  });

  it('passes the start of its slot on: each of its ticks is one of theirs', async () => {
    const { fleet, settle, times, tick } = await waking();
    await settle();
    await fleet.tables.write({ kind: 'put', key: { table: 'control', pk: 'cloud', sk: 'a-0' }, item: {} });
    await tick(22.3);
    await tick(29.9);
    expect(times.map((atMs) => (atMs / 1_000) % 60)).toEqual([20, 25]);
  });

  it('wakes a function when the check of its work fails, and finishes when a wake-up fails', async () => {
    const { fleet, settle, fail, tick } = await waking({
      between: (items) => ({
        ...items,
        query: (request) =>
          request.pk === 'cloud'
            ? Promise.reject(new StoreFault('throttled', 'down', { retryable: true }))
            : items.query(request),
      }),
    });
    await settle();
    fail();
    expect(await tick(20)).toEqual(['cloud-node']);
    expect((await fleet.records()).state.gate.lastTickAtMs).toBe(fleet.nowMs());
  });
});
