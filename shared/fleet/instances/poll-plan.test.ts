/** Which nodes a tick asks EC2 about, when there are more than it may ask about at once. */
import { expect, it } from 'vitest';
import { memoryCloud } from '../../../demo/ec2/cloud.ts';
import { fleetControllers } from '../../../server/fleet-controllers.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';
import { slotOf } from '../../ticks/tick.ts';
import { defaultPolicy } from '../policy.ts';
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
