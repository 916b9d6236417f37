import { describe, expect, it } from 'vitest';
import { replay } from '../../cli/replay.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { defaultPolicy, type NodeProfile, type Policy } from '../../shared/fleet/policy.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { type ControlledFleet, controlledFleet, START_MS } from '../support/controlled-fleet.ts';

const CELL: NodeProfile = {
  name: 'cell',
  nodeSelector: { matchLabels: { link: 'cell' } },
  beatIntervalSeconds: 60,
  leaseDurationSeconds: 180,
  nodeMonitorGracePeriodSeconds: 240,
};
const FAST: NodeProfile = {
  name: 'fast',
  nodeSelector: { matchLabels: { link: 'fibre' } },
  beatIntervalSeconds: 5,
  leaseDurationSeconds: 20,
  nodeMonitorGracePeriodSeconds: 15,
};
const profiles = [CELL, FAST];

/** One node per link, with the name of the link; Ready. */
async function fleetOf(links: readonly string[], policy: Partial<Policy> = { profiles }) {
  const fleet = controlledFleet({ policy });
  for (const link of links) {
    await fleet.register(link, { zone: 'a', labels: { link } });
    await fleet.post(link);
  }
  await fleet.streams();
  return fleet;
}

const label = (fleet: ControlledFleet, name: string, link: string) =>
  fleet.changeNode(name, (node) => ({
    ...node,
    metadata: { ...node.metadata, labels: { ...node.metadata.labels, link } },
  }));

const markedAt = async (fleet: ControlledFleet, name: string): Promise<number | undefined> => {
  const at = (await fleet.health(name))?.markedAtMs;
  return at === undefined ? undefined : (at - START_MS) / 1_000;
};

async function decisionsOf(fleet: ControlledFleet, nodeName: string) {
  const { decisions } = await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 1_000 });
  return decisions.map(({ record }) => record).filter(({ about }) => about.name === nodeName);
}

describe('a fleet with profiles', () => {
  it('marks each node within one period after the grace period of its own profile (L1, L2)', async () => {
    const fleet = await fleetOf(['cell', 'wire', 'fibre', 'cellular']);
    await fleet.run(0, 300, async (seconds) => {
      if (seconds === 0) await fleet.beat('cell', 'wire', 'fibre');
      if (seconds % 10 === 0) await fleet.beat('cellular');
    });
    expect(await markedAt(fleet, 'fibre')).toBe(20);
    expect(await markedAt(fleet, 'wire')).toBe(45);
    expect(await markedAt(fleet, 'cell')).toBe(245);
    expect(await markedAt(fleet, 'cellular')).toBeUndefined();
    const records = await decisionsOf(fleet, 'cell');
    const mark = records.find(({ act }) => act === 'MarkUnknown')!;
    expect(mark.reason).toContain('(grace period 240 s of profile cell)');
    expect(replay(mark)).toMatchObject({ same: true, checked: true });
  });

  it('stores the name in the Node and in its row, and no name for the top-level times', async () => {
    const fleet = await fleetOf(['cell', 'wire']);
    expect((await fleet.node('cell'))?.metadata.annotations).toEqual({ 'nodekeeper.dev/profile': 'cell' });
    expect((await fleet.node('wire'))?.metadata.annotations).toBeUndefined();
    expect(await fleet.health('cell')).toMatchObject({ profile: 'cell' });
    expect((await fleet.health('wire'))?.profile).toBeUndefined();
  });

  it('marks no live node that moves to a stricter profile before it can learn its new interval', async () => {
    const fleet = await fleetOf(['cell']);
    // The last heartbeat at the old interval comes one interval after the change.
    await fleet.run(0, 400, async (seconds) => {
      if (seconds === 60) await fleet.beat('cell');
      if (seconds === 65) await label(fleet, 'cell', 'fibre');
      if (seconds >= 120 && seconds % 5 === 0 && seconds <= 300) await fleet.beat('cell');
    });
    expect(await markedAt(fleet, 'cell')).toBe(320);
  });

  it('marks a node that stays silent after a change of its profile', async () => {
    const fleet = await fleetOf(['cell']);
    await fleet.run(0, 200, async (seconds) => {
      if (seconds === 60) await fleet.beat('cell');
      if (seconds === 65) await label(fleet, 'cell', 'fibre');
    });
    // 10 s for the requests of that moment, one interval of the most patient profile, one grace period, one period.
    expect(await markedAt(fleet, 'cell')).toBe(65 + 10 + 60 + 15 + 5);
  });

  it('reports a kubelet with heartbeats too rare for its profile, once a day', async () => {
    const fleet = await fleetOf(['fibre', 'wire']);
    const day = 86_400;
    const texts: string[] = [];
    const names = new Set<string>();
    for (const seconds of [0, 5, 3_600, 7_200, day, day + 3_600]) {
      fleet.at(seconds);
      await fleet.beat('fibre', 'wire');
      await fleet.controllers.tickNodeMonitor(fleet.slot());
      for (const { metadata, message } of await fleet.events('BeatIntervalTooLong')) {
        if (!names.has(metadata.name ?? '')) texts.push(String(message));
        names.add(metadata.name ?? '');
      }
    }
    const text =
      'The Lease lasts 40 s, so a kubelet sends a heartbeat every 10 s. The grace period of profile fast is 15 s: one lost ' +
      'heartbeat marks the node.';
    expect(texts).toEqual([text, text]);
    expect([...names].every((name) => name.startsWith('fibre.'))).toBe(true);
  });

  it('records a change of profile once, with its reason, and the record replays', async () => {
    const fleet = await fleetOf(['cell']);
    await label(fleet, 'cell', 'wire');
    await fleet.streams();
    const changes = (await decisionsOf(fleet, 'cell')).filter(({ act }) => act === 'ProfileChanged');
    expect(changes.map(({ reason }) => reason)).toEqual([
      'cell to default: link=wire; heartbeat every 10 s, grace period 40 s',
    ]);
    expect(replay(changes[0]!)).toMatchObject({ same: true, checked: true });
    expect((await fleet.health('cell'))?.profile).toBeUndefined();
  });
});

describe('a change of the profiles of the policy', () => {
  /** The same tables under another policy. */
  const under = (fleet: ControlledFleet, policy: Partial<Policy>) =>
    fleet.makeControllers(fleet.tables, undefined, { ...defaultPolicy, ...policy });

  it('evaluates every Node again within ten minutes, some per tick, and then reads none', async () => {
    const names = Array.from({ length: 250 }, (_, index) => `n-${String(index).padStart(3, '0')}`);
    const fleet = controlledFleet({});
    for (const name of names) {
      await fleet.register(name, { zone: 'a', labels: { link: 'cell' } });
      await fleet.post(name);
    }
    const controllers = under(fleet, { profiles });
    const profileCounts: number[] = [];
    for (let seconds = 0; seconds <= 180; seconds += 5) {
      fleet.at(seconds);
      if (seconds % 10 === 0) await fleet.beat(...names);
      fleet.consumed();
      await controllers.tickNodeMonitor(fleet.slot());
      const digests = await Promise.all(names.map((name) => fleet.health(name)));
      profileCounts.push(digests.filter((digest) => digest?.profile === 'cell').length);
    }
    expect(profileCounts.slice(0, 4)).toEqual([100, 200, 250, 250]);
    expect((await fleet.records()).profileSweep).toMatchObject({ round: 3 });
    fleet.at(185);
    fleet.consumed();
    await controllers.tickNodeMonitor(fleet.slot());
    expect(fleet.consumed().requests.filter(({ table }) => table === 'objects')).toEqual([]);
  });

  it.each([
    {
      change: 'a stricter profile is added',
      before: { beatIntervalSeconds: 60, leaseDurationSeconds: 180, nodeMonitorGracePeriodSeconds: 240 },
      after: { beatIntervalSeconds: 60, leaseDurationSeconds: 180, nodeMonitorGracePeriodSeconds: 240, profiles },
    },
    {
      change: 'the interval becomes shorter',
      before: { beatIntervalSeconds: 60, leaseDurationSeconds: 180, nodeMonitorGracePeriodSeconds: 240 },
      after: {},
    },
    {
      change: 'the profile of the nodes is removed, and a stricter one selects them',
      before: { profiles: [{ ...CELL, nodeSelector: FAST.nodeSelector }] },
      after: { profiles: [FAST] },
    },
  ])('marks no live node while function heartbeat has the old policy: $change', async ({ before, after }) => {
    const fleet = await fleetOf(['fibre'], before);
    await fleet.run(0, 60, async (seconds) => seconds === 55 && fleet.beat('fibre'));
    const controllers = under(fleet, after);
    // Function heartbeat is updated 115 s after node-monitor: the answers at 115 s and 175 s still have the old
    // interval.
    for (let seconds = 65; seconds <= 400; seconds += 5) {
      fleet.at(seconds);
      if (seconds === 115 || seconds === 175 || seconds >= 235) await fleet.beat('fibre');
      await controllers.tickNodeMonitor(fleet.slot());
      expect(await markedAt(fleet, 'fibre')).toBeUndefined();
    }
  });

  it.each([
    { change: 'removed', after: [FAST] },
    { change: 'faster', after: [{ ...CELL, beatIntervalSeconds: 20, nodeMonitorGracePeriodSeconds: 80 }, FAST] },
  ])('marks no live node that leaves a profile for a strict one while that profile is $change', async ({ after }) => {
    const fleet = await fleetOf(['cell']);
    await fleet.run(0, 60, async (seconds) => seconds === 60 && fleet.beat('cell'));
    fleet.at(62);
    await label(fleet, 'cell', 'fibre');
    const controllers = under(fleet, { profiles: after });
    // Its next heartbeat comes one old interval after the last. It learns the new one from that answer.
    for (let seconds = 65; seconds <= 400; seconds += 5) {
      fleet.at(seconds);
      if (seconds >= 120) await fleet.beat('cell');
      await controllers.tickNodeMonitor(fleet.slot());
      expect(await markedAt(fleet, 'cell')).toBeUndefined();
    }
  });

  it('treats nodes of a removed profile as default, after a deployment and one of their old intervals', async () => {
    const fleet = await fleetOf(['cell']);
    await fleet.run(0, 60, async (seconds) => seconds === 60 && fleet.beat('cell'));
    const controllers = under(fleet, {});
    let atSeconds: number | undefined;
    for (let seconds = 65; seconds <= 300 && atSeconds === undefined; seconds += 5) {
      fleet.at(seconds);
      // Its next heartbeat at the old interval; the answer has the new one.
      if (seconds >= 120 && seconds % 10 === 0 && seconds <= 200) await fleet.beat('cell');
      await controllers.tickNodeMonitor(fleet.slot());
      atSeconds = await markedAt(fleet, 'cell');
    }
    // 65 s, 120 s of a deployment, one old interval, one grace period, one period.
    expect(atSeconds).toBe(65 + 120 + 60 + 40 + 5);
    expect((await fleet.node('cell'))?.metadata.annotations).toBeUndefined();
  });

  it.each([
    { what: 'until it succeeds', brokenUntilSeconds: 300, without: [], round: 3 },
    { what: 'for an hour', brokenUntilSeconds: Number.POSITIVE_INFINITY, without: ['bad'], round: 3 },
  ])('repeats the second round for a Node that fails in it, $what', async ({ brokenUntilSeconds, without, round }) => {
    const fleet = controlledFleet({});
    let seconds = 0;
    let attempts = 0;
    const failing: ItemStore = {
      ...fleet.tables,
      transact: async (writes) => {
        const isOfBad = writes.some((write) => 'key' in write && write.key.sk === 'bad');
        if (isOfBad) attempts += 1;
        if (isOfBad && seconds < brokenUntilSeconds) throw new Error('refused');
        return fleet.tables.transact(writes);
      },
    };
    const names = ['bad', 'good'];
    for (const name of names) {
      await fleet.register(name, { zone: 'a', labels: { link: 'cell' } });
      await fleet.post(name);
    }
    const controllers = fleet.makeControllers(failing, undefined, { ...defaultPolicy, profiles });
    for (; seconds <= 3_800; seconds += 5) {
      fleet.at(seconds);
      if (seconds % 10 === 0) await fleet.beat(...names);
      await controllers.tickNodeMonitor(fleet.slot()).catch(() => undefined);
    }
    const digests = await Promise.all(names.map((name) => fleet.health(name)));
    expect(digests.flatMap((each) => (each?.profile === 'cell' ? [] : [each?.nodeName]))).toEqual(without);
    expect((await fleet.records()).profileSweep).toMatchObject({ round });
    expect(attempts).toBeLessThanOrEqual(62);
  });

  it('continues after a tick that was killed, and is not stopped by one bad Node', async () => {
    let broken = 'n-050';
    const fleet = controlledFleet({});
    const failing: ItemStore = {
      ...fleet.tables,
      transact: async (writes) => {
        if (writes.some((write) => 'key' in write && write.key.sk === broken)) throw new Error('refused');
        return fleet.tables.transact(writes);
      },
    };
    const names = Array.from({ length: 150 }, (_, index) => `n-${String(index).padStart(3, '0')}`);
    for (const name of names) {
      await fleet.register(name, { zone: 'a', labels: { link: 'cell' } });
      await fleet.post(name);
    }
    const controllers = fleet.makeControllers(failing, undefined, { ...defaultPolicy, profiles });
    const run = async (from: number, to: number) => {
      for (let seconds = from; seconds <= to; seconds += 5) {
        fleet.at(seconds);
        if (seconds % 10 === 0) await fleet.beat(...names);
        await controllers.tickNodeMonitor(fleet.slot()).catch(() => undefined);
      }
    };
    await run(0, 15);
    const without = async () => {
      const digests = await Promise.all(names.map((name) => fleet.health(name)));
      return digests.flatMap((digest) => (digest?.profile === 'cell' ? [] : [digest?.nodeName]));
    };
    expect(await without()).toEqual(['n-050']);
    broken = '';
    await run(20, 135);
    expect(await without()).toEqual([]);
  });
});
