/** Which nodes a tick asks EC2 about, when there are more than it may ask about at once. */
import { describe, expect, it } from 'vitest';
import { memoryCloud } from '../../../demo/ec2/cloud.ts';
import { fleetControllers } from '../../../server/fleet-controllers.ts';
import { defined } from '../../defined.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';
import { textHash } from '../../text.ts';
import { slotOf } from '../../ticks/tick.ts';
import { defaultPolicy } from '../policy.ts';
import { type AskedSeconds, isComparisonDue, planPolls } from './poll-plan.rule.ts';
import type { PollStrides } from './watch-list.rule.ts';
import { cloudStore } from './watch-list-store.ts';

const START_MS = Date.UTC(2026, 0, 1);
const PERIOD_SECONDS = defaultPolicy.nodeMonitorPeriodSeconds;
const HOUR_MS = 3_600_000;
const silent = (): void => {};

/** Nodes that are not Ready. Their instances have been running for an hour, so EC2 is asked about 2,000 per tick. */
async function watching(nodes: number) {
  let nowMs = START_MS;
  const clock = { nowMs: () => nowMs };
  const items = memoryItemStore();
  const cloud = memoryCloud({ clock, region: 'us-east-1', accountId: '123456789012' });
  const list = cloudStore(items);
  const since = nowMs - HOUR_MS;
  const running = { memory: {}, comparedMs: nowMs, state: 'running', sinceMs: since, addresses: '[]' };
  for (let index = 0; index < nodes; index += 1) {
    const instanceId = `i-${String(index).padStart(17, '0')}`;
    cloud.put({ instanceId, zone: 'us-east-1a', instanceType: 'm5.large', launchedAtMs: since });
    const nodeName = `vm-${index}`;
    const node = { nodeName, uid: nodeName, providerId: `aws:///us-east-1a/${instanceId}`, createdAtMs: since };
    const state = {
      ready: 'Unknown',
      hasShutdownTaint: false,
      outOfServiceTaint: 'absent',
      uninitialised: false,
    } as const;
    await list.watch({ ...node, ...state }, 1);
  }
  for (const row of await list.read()) await list.remember(row, running);
  const asked = new Map<string, number>();
  const askedPerTick: number[] = [];
  const controllers = fleetControllers({
    items,
    clock,
    random: { uuid: () => 'u', fraction: () => 0.5 },
    policy: defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: silent },
    cloud: {
      ...cloud,
      describeInstances(instances) {
        askedPerTick.push(instances.length);
        for (const { instanceId } of instances) asked.set(instanceId, nowMs);
        return cloud.describeInstances(instances);
      },
    },
  });
  return {
    items,
    askedPerTick,
    /** Seconds since EC2 was asked about the node that waits longest. */
    longestWaitSeconds: () =>
      asked.size < nodes ? Number.POSITIVE_INFINITY : (nowMs - Math.min(...asked.values())) / 1_000,
    async tickAt(seconds: number) {
      nowMs = START_MS + seconds * 1_000;
      await controllers.tickCloudNode(slotOf(nowMs, PERIOD_SECONDS));
    },
  };
}

it('asks about each node once in its interval, and about 2,000 nodes per tick', async () => {
  const { tickAt, longestWaitSeconds, askedPerTick } = await watching(4_500);
  for (let seconds = 0; seconds <= 60; seconds += PERIOD_SECONDS) {
    await tickAt(seconds);
    if (seconds >= 10) expect(longestWaitSeconds()).toBeLessThanOrEqual(10);
  }
  expect(Math.max(...askedPerTick)).toBeLessThan(2_100);
});

it('asks about each node within three ticks when only the tick of each minute runs', async () => {
  const { tickAt, longestWaitSeconds } = await watching(4_500);
  for (let minute = 0; minute < 3; minute += 1) await tickAt(minute * 60);
  expect(longestWaitSeconds()).toBeLessThanOrEqual(120);
  await tickAt(180);
  expect(longestWaitSeconds()).toBeLessThanOrEqual(120);
});

it('asks again about the nodes of a tick that was killed before it stored its times', async () => {
  const { items, tickAt, longestWaitSeconds } = await watching(2_100);
  const put = items.write;
  items.write = async (write, options) => {
    if (write.key.pk === 'cloud-asked') throw new Error('killed');
    return put(write, options);
  };
  await expect(tickAt(0)).rejects.toThrow('could not finish');
  items.write = put;
  for (const seconds of [5, 10]) await tickAt(seconds);
  expect(longestWaitSeconds()).toBeLessThanOrEqual(10);
});

it('stores no time while every node is due at every tick', async () => {
  const { items, tickAt } = await watching(10);
  await tickAt(0);
  expect(items.items('control').filter(({ pk }) => pk === 'cloud-asked')).toEqual([]);
});

describe('the groups of a tick', () => {
  const GROUPS = 128;
  const NOW_SECONDS = 1_000_000;
  /** A node of this group. */
  const row = (group: number, name: string) => {
    let suffix = 0;
    while (textHash(`${name}${suffix}`) % GROUPS !== group) suffix += 1;
    return { nodeName: `${name}${suffix}`, seen: { memory: {} } };
  };
  const everyTick = { open: 1, longSame: 1, areAllDue: true, perTick: { open: 9, longSame: 9 } };
  /** Nodes named `o…` have an open answer. */
  const stridesOf = (over: Partial<PollStrides>): PollStrides => ({
    ...everyTick,
    classOf: (each) => ((each as ReturnType<typeof row>).nodeName.startsWith('o') ? 'open' : 'longSame'),
    strideOf: () => 1,
    ...over,
  });
  const askedBefore = (seconds: Readonly<Record<number, number>>) =>
    Array.from({ length: GROUPS }, (_, group) => NOW_SECONDS - (seconds[group] ?? 10_000));
  const planOf = (rows: readonly ReturnType<typeof row>[], strides: Partial<PollStrides>, asked: AskedSeconds = {}) =>
    planPolls(rows, stridesOf(strides), { slotStartMs: NOW_SECONDS * 1_000 + 999, periodSeconds: 5, asked });

  it('are those that have waited for their interval, or have a time in the future', () => {
    const rows = [1, 2, 3, 4].map((group) => row(group, 'a'));
    const [, , short, future] = rows;
    const asked = askedBefore({ 1: 14, 2: 14, 3: 15, 4: -2 });
    expect(planOf(rows, { longSame: 3 }, { longSame: asked }).due).toEqual([short, future]);
  });

  it('are the longest waiting ones, in the order of their numbers, until they have the nodes of a tick', () => {
    const rows = [7, 5, 6, 8].flatMap((group) => [row(group, 'a'), row(group, 'b')]);
    const dueOf = (longSame: number) =>
      planOf(rows, { longSame: 2, perTick: { open: 9, longSame } }, { longSame: askedBefore({ 8: 20_000 }) }).due.map(
        ({ nodeName }) => textHash(nodeName) % GROUPS,
      );
    expect([1, 2, 3, 4, 5].map((perTick) => dueOf(perTick).join())).toEqual([
      '8,8',
      '8,8',
      '8,8,5,5',
      '8,8,5,5',
      '8,8,5,5,6,6',
    ]);
  });

  it('are never those of a class that is due at every tick: its times stay as they are', () => {
    const [open, same] = [row(3, 'o'), row(3, 'a')];
    const asked = { open: askedBefore({ 3: 0 }), longSame: askedBefore({ 3: 9 }) };
    const plan = planOf([open, same], { longSame: 2 }, asked);
    expect(plan.due).toEqual([open]);
    expect(plan.askedAfter(new Set([open]))).toEqual({ ...asked, longSame: askedBefore({ 3: 9 }) });
    expect(planOf([open, same], {}, asked).askedAfter(new Set([open, same]))).toBeUndefined();
  });

  it('have their new time when all their nodes were processed; other times stay, and absent ones are 0', () => {
    const [whole, part, alone] = [[row(1, 'a'), row(1, 'b')], [row(2, 'a'), row(2, 'b')], row(3, 'a')];
    const plan = planOf([...whole, ...part, alone], { longSame: 2 }, {});
    expect(plan.due).toEqual([...whole, ...part, alone]);
    const after = plan.askedAfter(new Set([...whole, part[0]!]))?.longSame;
    expect(after).toEqual(Array.from({ length: GROUPS }, (_, group) => (group === 1 ? NOW_SECONDS : 0)));
  });

  it.each([
    [undefined, 10_000_000, false],
    [0, 299_999, false],
    [0, 599_000, true],
  ])('a row compared at %s is compared again after 300 to 599 s: at %i: %s', (comparedMs, nowMs, isDue) => {
    const names = Array.from({ length: 1_000 }, (_, index) => `n${index}`);
    const due = names.filter((nodeName) =>
      isComparisonDue({ nodeName, seen: { memory: {}, ...defined({ comparedMs }) } }, nowMs),
    );
    expect(due).toHaveLength(isDue ? names.length : 0);
  });

  it('rows are compared at their own moments', () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `n${index}`);
    const dueAt = (seconds: number) =>
      names.filter((nodeName) => isComparisonDue({ nodeName, seen: { memory: {}, comparedMs: 0 } }, seconds * 1_000));
    const atMoment = names.filter((name) => textHash(name) % 300 === 200);
    expect(dueAt(500).length - dueAt(499).length).toBe(atMoment.length);
    expect(dueAt(500)).toEqual(expect.arrayContaining(atMoment));
  });
});
