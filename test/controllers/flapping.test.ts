import { describe, expect, it } from 'vitest';
import { replay } from '../../cli/replay.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { applyDisruption, NO_DISRUPTION } from '../../shared/fleet/zone-state.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import type { Item } from '../../shared/store/item-store.ts';
import { healthKey } from '../../shared/store/layout.ts';
import { type ControlledFleet, type FleetOptions, START_MS, settledFleet } from '../support/controlled-fleet.ts';

const TAINT = 'flapping:NoSchedule';
const NAMES = ['a-0', 'a-1', 'a-2', 'a-3', 'a-4'];

/** A status post as of a kubelet: conditions of others stay. */
const postReady = (fleet: ControlledFleet, name: string): Promise<void> =>
  fleet.changeNode(name, (node) => {
    const lastHeartbeatTime = rfc3339(fleet.nowMs());
    const ready = { type: 'Ready', status: 'True', lastHeartbeatTime, lastTransitionTime: lastHeartbeatTime } as const;
    const others = (node.status?.conditions ?? []).filter(({ type }) => type !== 'Ready');
    return { ...node, status: { ...node.status, conditions: [...others, ready] } };
  });

/** Heartbeats of these nodes every 10 s; with a status post for a node that is not Ready. */
async function alive(fleet: ControlledFleet, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await fleet.beat(name);
    if ((await fleet.ready(name)) !== 'True') await postReady(fleet, name);
  }
  await fleet.streams();
}

/** Five nodes; each of `flapping` is silent for 60 s from each of these times on. */
async function flappingFleet(
  silentFrom: readonly number[],
  { flapping = ['a-0'], ...options }: FleetOptions & { readonly flapping?: readonly string[] } = {},
) {
  const { fleet } = await settledFleet({ a: 5 }, options);
  const isSilent = (name: string, seconds: number): boolean =>
    flapping.includes(name) && silentFrom.some((from) => seconds >= from && seconds < from + 60);
  const run = (from: number, to: number) =>
    fleet.run(from, to, async (seconds) => {
      if (seconds % 10 !== 0) return;
      await alive(
        fleet,
        NAMES.filter((name) => !isSilent(name, seconds)),
      );
    });
  return { fleet, run };
}

const condition = async (fleet: ControlledFleet, name = 'a-0') =>
  (await fleet.node(name))?.status?.conditions?.find(({ type }) => type === 'Flapping');
const recordsOf = async (fleet: ControlledFleet, name = 'a-0') => {
  const { decisions } = await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 10_000 });
  return decisions.map(({ record }) => record).filter(({ about }) => about.name === name);
};
const flapRecords = async (fleet: ControlledFleet) =>
  (await recordsOf(fleet)).filter(({ act }) => act.startsWith('Flapping'));
const eventsOf = (fleet: ControlledFleet) => fleet.events('Flapping');
const rowOf = async (fleet: ControlledFleet, name: string): Promise<Item | undefined> =>
  fleet.tables.get(healthKey(name), { consistent: true });

describe('a node that is marked again and again', () => {
  it('is flapping from the third mark on, and stable 600 s after the last one', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300]);
    // Marked at 135, 235 and 335 s, 45 s after the last heartbeat.
    await run(5, 335);
    expect(await fleet.taints('a-0')).not.toContain(TAINT);
    await run(340, 340);
    expect(await fleet.taints('a-0')).toContain(TAINT);
    await run(345, 930);
    expect(await fleet.ready('a-0')).toBe('True');
    expect(await fleet.taints('a-0')).toEqual([TAINT]);
    expect(await condition(fleet)).toMatchObject({ status: 'True', reason: 'MarkedRepeatedly' });
    await run(935, 935);
    expect(await fleet.taints('a-0')).toEqual([]);
    expect(await condition(fleet)).toMatchObject({ status: 'False', reason: 'Stable', message: 'No mark for 600 s' });
    for (const name of NAMES.slice(1)) expect(await condition(fleet, name)).toBeUndefined();
  });

  it('has one event, one record of the begin and one of the end, which replay', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300]);
    await run(5, 1_000);
    expect(await eventsOf(fleet)).toMatchObject([
      {
        type: 'Warning',
        count: 1,
        message:
          'Marked Unknown 3 times in 200 s (threshold 3 within 3600 s); ' +
          'taint nodekeeper.dev/flapping until 600 s pass without a mark',
      },
    ]);
    const records = await flapRecords(fleet);
    expect(records.map(({ act, reason }) => `${act}: ${reason}`)).toEqual([
      'FlappingBegan: Marked Unknown 3 times in 200 s (threshold 3 within 3600 s): ' +
        'taint nodekeeper.dev/flapping:NoSchedule until 600 s pass without a mark',
      'FlappingEnded: No mark for 600 s: taint nodekeeper.dev/flapping removed',
    ]);
    for (const record of records) expect(replay(record)).toMatchObject({ same: true, checked: true });
  });

  it('is counted by a metric of its zone while it lasts', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300]);
    await run(5, 1_000);
    const values = fleet.metrics.filter(({ name }) => name === 'flapping_nodes');
    expect(new Set(values.map(({ value, zone }) => `${zone} ${value}`))).toEqual(new Set(['a 1']));
    // One per tick, from the tick after the begin to the tick of the end.
    expect(values).toHaveLength((935 - 345) / 5 + 1);
  });

  it('costs no request more until it flaps, and 7 bytes and a letter in its row', async () => {
    const costOf = async (flapThreshold: number) => {
      const { fleet, run } = await flappingFleet([100, 200], { policy: { flapThreshold } });
      fleet.consumed();
      await run(5, 400);
      const { requests, writeUnits, readUnits } = fleet.consumed();
      return { fleet, cost: { requests: requests.length, writeUnits, readUnits } };
    };
    const on = await costOf(3);
    expect((await rowOf(on.fleet, 'a-0'))?.['F']).toHaveLength(7);
    expect((await rowOf(on.fleet, 'a-1'))?.['F']).toBeUndefined();
    expect(on.cost).toEqual((await costOf(0)).cost);
  });

  it('stays flapping with each further mark', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300, 800]);
    // Marked again at 835 s.
    await run(5, 1_430);
    expect(await fleet.taints('a-0')).toEqual([TAINT]);
    await run(1_435, 1_435);
    expect(await fleet.taints('a-0')).toEqual([]);
    expect(await flapRecords(fleet)).toHaveLength(2);
  });

  it('begins flapping also with the shortest stable time, after a tick that was missed', async () => {
    const policy = { flapThreshold: 1, flapStableSeconds: 15 };
    const { fleet, run } = await flappingFleet([100], { policy });
    await run(5, 135);
    expect(await fleet.ready('a-0')).toBe('Unknown');
    expect(await fleet.taints('a-0')).not.toContain(TAINT);
    await run(145, 145);
    expect(await fleet.taints('a-0')).toContain(TAINT);
  });

  it('has the effect of the policy', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300], { policy: { flapEffect: 'PreferNoSchedule' } });
    await run(5, 400);
    expect(await fleet.taints('a-0')).toEqual(['flapping:PreferNoSchedule']);
  });

  it('keeps the taint off when a person removes it, and the record of its end follows', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300]);
    await run(5, 400);
    await fleet.changeNode('a-0', (node) => {
      const { taints: _, ...spec } = node.spec ?? {};
      return { ...node, spec };
    });
    await run(405, 930);
    expect(await fleet.taints('a-0')).toEqual([]);
    await run(935, 935);
    expect((await flapRecords(fleet)).map(({ act }) => act)).toEqual(['FlappingBegan', 'FlappingEnded']);
  });

  it('is not counted with flapThreshold 0, and a flapping one is released', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300]);
    await run(5, 400);
    const off = fleet.makeControllers(fleet.tables, undefined, { ...fleet.policy, flapThreshold: 0 });
    fleet.at(405);
    await off.tickNodeMonitor(fleet.slot());
    expect(await fleet.taints('a-0')).toEqual([]);
    expect(await rowOf(fleet, 'a-0')).not.toHaveProperty('F');
  });

  it('begins anew when its Node is created again', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 400]);
    await run(5, 300);
    await fleet.removeNode('a-0');
    await fleet.register('a-0', { zone: 'a' });
    await fleet.post('a-0');
    await run(305, 600);
    expect(await condition(fleet)).toBeUndefined();
    expect((await recordsOf(fleet)).filter(({ act }) => act === 'MarkUnknown')).toHaveLength(3);
  });
});

describe('marks that do not count', () => {
  it('are those of total disruption, and those of the nodes that were silent first', async () => {
    // The last heartbeats differ by up to 10 s: a-0 is marked before the tick that finds all nodes silent.
    const { fleet } = await settledFleet({ a: 3 });
    const names = ['a-0', 'a-1', 'a-2'];
    const silences = [100, 300, 500];
    let disruptions = 0;
    await fleet.run(5, 700, async (seconds) => {
      const from = silences.find((each) => seconds >= each && seconds < each + 100);
      const isQuiet = (name: string): boolean => from !== undefined && (name === 'a-0' || seconds >= from + 10);
      if (seconds % 10 === 0) {
        await alive(
          fleet,
          names.filter((name) => !isQuiet(name)),
        );
      }
      const { state } = await fleet.records();
      disruptions = Math.max(disruptions, state.disruption.sinceMs);
      for (const name of names) expect(await condition(fleet, name), `${name} at ${seconds} s`).toBeUndefined();
    });
    expect(disruptions).toBeGreaterThan(START_MS + 500_000);
    const marks = (await recordsOf(fleet)).filter(({ act }) => act === 'MarkUnknown');
    expect(marks).toHaveLength(3);
  });

  /** a-0 is marked at 135, 235 and 335 s. Probes fail from `failingFrom` to 420 s. */
  async function failingPath(failingFrom: number, to: number) {
    let accepted = true;
    const beat = async () => (accepted ? ({ kind: 'accepted' } as const) : ({ kind: 'failed', reason: 'x' } as const));
    const { fleet } = await settledFleet({ a: 5 }, { probe: { beat } });
    await fleet.run(5, to, async (seconds) => {
      const isSilent = [100, 200, 300].some((from) => seconds >= from && seconds < from + 60);
      accepted = seconds < failingFrom || seconds > 420;
      if (seconds % 10 === 0) await alive(fleet, isSilent ? NAMES.slice(1) : NAMES);
    });
    expect((await fleet.records()).state.gate.pathFailedAtMs).toBe(START_MS + failingFrom * 1_000);
    return fleet;
  }

  it('are those shortly before the heartbeat path failed: no begin', async () => {
    const fleet = await failingPath(340, 600);
    expect(await flapRecords(fleet)).toEqual([]);
    expect(await fleet.taints('a-0')).toEqual([]);
  });

  it('are those shortly before the heartbeat path failed: an earlier end', async () => {
    const fleet = await failingPath(345, 840);
    const atSeconds = (await flapRecords(fleet)).map(({ act, atMs }) => `${act} ${(atMs - START_MS) / 1_000}`);
    // 600 s after the second mark.
    expect(atSeconds).toEqual(['FlappingBegan 340', 'FlappingEnded 835']);
  });

  it('are those before each of several failures of the path, also after later ones', async () => {
    let accepted = true;
    const beat = async () => (accepted ? ({ kind: 'accepted' } as const) : ({ kind: 'failed', reason: 'x' } as const));
    const { fleet } = await settledFleet({ a: 5 }, { probe: { beat } });
    // a-0 is marked at 135, 235 and 335 s. The path fails right after the last mark, and again after it recovered.
    const failing = [340, 440, 520];
    await fleet.run(5, 800, async (seconds) => {
      const isSilent = [100, 200, 300].some((from) => seconds >= from && seconds < from + 60);
      accepted = !failing.some((from) => seconds >= from && seconds < from + 30);
      if (seconds % 10 === 0) await alive(fleet, isSilent ? NAMES.slice(1) : NAMES);
    });
    const { gate } = (await fleet.records()).state;
    expect([gate.pathFailedAtMs, ...(gate.earlierPathFailuresMs ?? [])]).toEqual(
      failing.toReversed().map((seconds) => START_MS + seconds * 1_000),
    );
    expect(await flapRecords(fleet)).toEqual([]);
    expect(await fleet.taints('a-0')).toEqual([]);
  });

  it('are those before each total disruption, also after later ones', () => {
    let record = NO_DISRUPTION;
    for (let at = 1; at <= 20; at += 1) {
      record = applyDisruption(record, 'enter', at * 1_000);
      record = applyDisruption(record, 'leave', at * 1_000 + 500);
    }
    expect(record.startedAtMs).toBe(20_000);
    expect(record.earlierStartsMs).toEqual([19_000, 18_000, 17_000, 16_000, 15_000, 14_000, 13_000]);
  });

  it('are forgotten with their faults after a day, and a tick of node-monitor is one write unit again', async () => {
    const profiles = Array.from({ length: 8 }, (_, index) => ({
      name: `profile-${index}`,
      nodeSelector: { matchLabels: { link: String(index) } },
      ...{ beatIntervalSeconds: 10 + 10 * index, leaseDurationSeconds: 300, nodeMonitorGracePeriodSeconds: 300 },
    }));
    let accepted = true;
    const beat = async () => (accepted ? ({ kind: 'accepted' } as const) : ({ kind: 'failed', reason: 'x' } as const));
    const { fleet } = await settledFleet({ a: 5 }, { probe: { beat }, policy: { profiles } });
    /** Every ten minutes the path fails for 40 s, and later all machines are silent for 80 s. */
    const run = (from: number, to: number, hasFaults: boolean) =>
      fleet.run(from, to, async (seconds) => {
        const second = hasFaults ? seconds % 600 : 0;
        accepted = second < 100 || second >= 140;
        const isSilent = second >= 300 && second < 380;
        if (seconds % 10 === 0 && !isSilent) await alive(fleet, NAMES);
      });
    await run(5, 5_400, true);
    const earlierFaults = async () => {
      const { gate, disruption } = (await fleet.records()).state;
      return [gate.earlierPathFailuresMs?.length, disruption.earlierStartsMs?.length];
    };
    expect(await earlierFaults()).toEqual([7, 7]);
    const unitsOfTick = () =>
      fleet.consumed().requests.find(({ table, writeUnits }) => table === 'control' && writeUnits > 0)?.writeUnits;
    fleet.consumed();
    await fleet.controllers.tickNodeMonitor(fleet.slot() + 1);
    expect(unitsOfTick()).toBe(2);
    await run(100_000, 100_600, false);
    fleet.consumed();
    await fleet.controllers.tickNodeMonitor(fleet.slot() + 1);
    expect(unitsOfTick()).toBe(1);
    expect(await earlierFaults()).toEqual([undefined, undefined]);
  });

  it('are those from before an upgrade: the row of an earlier version has none', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300]);
    await run(5, 260);
    await fleet.tables.write({ kind: 'update', key: healthKey('a-0'), remove: ['F'] });
    await run(265, 700);
    expect(await condition(fleet)).toBeUndefined();
    expect((await rowOf(fleet, 'a-0'))?.['F']).toHaveLength(7);
  });
});

describe('ticks that run twice or late', () => {
  it('begin flapping once', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300]);
    await run(5, 335);
    fleet.at(340);
    const other = fleet.makeControllers(fleet.tables);
    await Promise.all([
      fleet.controllers.tickNodeMonitor(fleet.slot()),
      other.tickNodeMonitor(fleet.slot()),
      other.tickNodeMonitor(fleet.slot() + 1),
    ]);
    await fleet.streams();
    expect(await fleet.taints('a-0')).toContain(TAINT);
    expect(await flapRecords(fleet)).toHaveLength(1);
    expect(await eventsOf(fleet)).toHaveLength(1);
  });

  it('do not end it on a row that was read before another mark', async () => {
    const { fleet, run } = await flappingFleet([100, 200, 300]);
    await run(5, 930);
    const before = (await rowOf(fleet, 'a-0'))?.['F'];
    const stale = fleet.makeControllers({
      ...fleet.tables,
      // Another process marks the node after the scan.
      async scan(query) {
        const page = await fleet.tables.scan(query);
        const F = Uint8Array.from(before as Uint8Array);
        F[3] = (F[3] ?? 0) ^ 1;
        await fleet.tables.write({ kind: 'update', key: healthKey('a-0'), set: { F } });
        return page;
      },
    });
    fleet.at(935);
    await stale.tickNodeMonitor(fleet.slot());
    expect(await fleet.taints('a-0')).toEqual([TAINT]);
    expect(await flapRecords(fleet)).toHaveLength(1);
  });
});
