/** What a tick records and wakes around its decisions, and how it ends when a part of that fails. */
import { describe, expect, it } from 'vitest';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import {
  type ControlledFleet,
  type FleetOptions,
  START_MS,
  settledFleet,
} from '../../test/support/controlled-fleet.ts';
import type { ProbeOutcome } from './probes.ts';

const DOWN = new StoreFault('throttled', 'down', { retryable: true });
const tick = (fleet: ControlledFleet, seconds: number) => {
  fleet.at(seconds);
  return fleet.controllers.tickNodeMonitor(fleet.slot());
};
const recordsOf = async (fleet: ControlledFleet) =>
  (await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 1_000 })).decisions.map(
    ({ record }) => record,
  );

/** Rejects the writes with such a key while `isDown`. */
const failing =
  (isDown: () => boolean, matches: (pk: string) => boolean) =>
  (items: ItemStore): ItemStore => ({
    ...items,
    write: (write, options) => (isDown() && matches(write.key.pk) ? Promise.reject(DOWN) : items.write(write, options)),
    transact: (writes) =>
      isDown() && writes.some(({ key }) => matches(key.pk)) ? Promise.reject(DOWN) : items.transact(writes),
  });
const isEvent = (pk: string) => pk.startsWith('o#events#');

/** Five nodes; a-0 to a-2 send heartbeats until `until`. */
async function fleetUntil(until: number, options: FleetOptions = {}) {
  const { fleet } = await settledFleet({ a: 5 }, options);
  const beat = (seconds: number) => (seconds % 10 === 0 ? fleet.beat('a-0', 'a-1', 'a-2') : Promise.resolve());
  await fleet.run(0, until, beat);
  return { fleet, beat };
}

describe('a tick', () => {
  it('wakes evictor once for the nodes that it queues, at the start of its slot', async () => {
    const woken: [string, number][] = [];
    const waker = {
      async wake(names: readonly string[], atMs: number) {
        woken.push(...names.filter((name) => name === 'evictor').map((name): [string, number] => [name, atMs]));
        return [];
      },
    };
    const { fleet } = await fleetUntil(40, { waker });
    expect(woken).toEqual([]);
    await fleet.beat('a-0', 'a-1', 'a-2');
    await tick(fleet, 46.5);
    expect(woken).toEqual([['evictor', START_MS + 45_000]]);
    // They wait now: the look for due work wakes it.
    await fleet.beat('a-0', 'a-1', 'a-2');
    await tick(fleet, 50);
    expect(woken).toHaveLength(2);
    const quiet = await fleetUntil(40, { waker });
    woken.length = 0;
    await quiet.fleet.beat('a-0', 'a-1', 'a-2', 'a-3', 'a-4');
    await tick(quiet.fleet, 45);
    expect(woken).toEqual([]);
  });

  it('records a zone that changes its state, on the ClusterStatus too', async () => {
    const { fleet } = await fleetUntil(60);
    expect(await fleet.events('ZoneDisrupted')).toEqual([]);
    await fleet.run(65, 110);
    const [event] = await fleet.events('ZoneDisrupted');
    expect(event).toMatchObject({
      involvedObject: { kind: 'ClusterStatus' },
      message: expect.stringContaining('Zone a'),
    });
    expect(await fleet.events('TotalDisruption')).toHaveLength(1);
  });

  it('writes its slot and its fence into the records of the whole fleet and of its nodes', async () => {
    const { fleet } = await fleetUntil(60);
    await fleet.run(65, 105);
    const { state } = await fleet.records();
    const records = (await recordsOf(fleet)).filter(({ slot }) => slot === state.slot);
    expect(new Set(records.map(({ act }) => act))).toEqual(
      new Set(['MarkUnknown', 'TaintLifted', 'TotalDisruptionEntered', 'ZoneRateSet', 'ZoneStateSet']),
    );
    expect(new Set(records.map(({ fence }) => fence))).toEqual(new Set([state.fence]));
  });

  it('repeats the report of its gate until the event is written, and only then has finished', async () => {
    const faults = { isDown: false };
    const { fleet } = await fleetUntil(60, { between: failing(() => faults.isDown, isEvent) });
    faults.isDown = true;
    // No tick for longer than half a grace period: the gate closes.
    fleet.at(90);
    await fleet.beat('a-0', 'a-1', 'a-2', 'a-3', 'a-4');
    await expect(tick(fleet, 90)).rejects.toMatchObject({ errors: [DOWN] });
    expect((await fleet.records()).state.gate).toMatchObject({
      lastTickAtMs: START_MS + 60_000,
      reasons: ['missedTicks'],
    });
    expect(await fleet.events('GateClosed')).toEqual([]);
    faults.isDown = false;
    await tick(fleet, 95);
    expect(await fleet.events('GateClosed')).toHaveLength(1);
    expect((await fleet.records()).state.gate.lastTickAtMs).toBe(START_MS + 95_000);
  });

  it('has finished although the event of a zone cannot be written, and reports the fault', async () => {
    const faults = { isDown: false };
    const isClusterEvent = (pk: string) => faults.isDown && isEvent(pk);
    const { fleet } = await fleetUntil(60, { between: failing(() => faults.isDown, isClusterEvent) });
    for (let seconds = 65; seconds <= 100; seconds += 5) await tick(fleet, seconds);
    faults.isDown = true;
    await expect(tick(fleet, 105)).rejects.toMatchObject({ errors: expect.arrayContaining([DOWN]) });
    expect((await fleet.records()).state.gate.lastTickAtMs).toBe(START_MS + 105_000);
    expect(await fleet.events('ZoneDisrupted')).toEqual([]);
  });

  it('leaves a tick with decisions unfinished until they are applied', async () => {
    let claimed: unknown;
    const { fleet } = await fleetUntil(40, {
      between: (items) => ({
        ...items,
        async write(write, options) {
          const outcome = await items.write(write, options);
          if (write.kind === 'update' && write.set?.['slot'] !== undefined && write.key.sk === 'state')
            claimed = write.set;
          return outcome;
        },
      }),
    });
    expect(claimed).toHaveProperty('doneAt');
    await fleet.beat('a-0', 'a-1', 'a-2');
    await tick(fleet, 45);
    expect(claimed).not.toHaveProperty('doneAt');
    expect((claimed as { by: string }).by).toHaveLength(8);
    expect((await fleet.records()).state.gate.lastTickAtMs).toBe(START_MS + 45_000);
  });

  it('decides again when other ticks change the state before its claim, three times at most', async () => {
    let overtakes = 0;
    let claims = 0;
    const { fleet } = await fleetUntil(40, {
      between: (items) => ({
        ...items,
        async write(write, options) {
          if (write.kind !== 'update' || write.key.sk !== 'state' || write.set?.['slot'] === undefined)
            return items.write(write, options);
          claims += 1;
          if (overtakes > 0) {
            overtakes -= 1;
            await items.write({ kind: 'update', key: write.key, add: { fence: 1 } });
          }
          return items.write(write, options);
        },
      }),
    });
    await fleet.beat('a-0', 'a-1', 'a-2', 'a-3', 'a-4');
    overtakes = 2;
    claims = 0;
    expect(await tick(fleet, 45)).toMatchObject({ kind: 'ran' });
    expect(claims).toBe(3);
    overtakes = 3;
    claims = 0;
    await expect(tick(fleet, 50)).rejects.toMatchObject({ retryable: true });
    expect(claims).toBe(3);
    expect(await tick(fleet, 50)).toMatchObject({ kind: 'ran' });
  });
});

describe('probes of a tick', () => {
  async function probed(outcomes: readonly ProbeOutcome['kind'][], policy: FleetOptions['policy'] = {}) {
    const sent: number[] = [];
    const left = [...outcomes];
    const beat = async (): Promise<ProbeOutcome> => {
      sent.push(1);
      return (left.shift() ?? 'accepted') === 'accepted'
        ? { kind: 'accepted' }
        : { kind: 'failed', reason: 'answered 503' };
    };
    const { fleet } = await settledFleet({ a: 1 }, { probe: { beat }, policy });
    await fleet.beat('a-0');
    await tick(fleet, 0);
    const { probes } = (await fleet.records()).state.gate;
    const warned = fleet.told.filter(({ message }) => message === 'probe heartbeat failed').map(({ fields }) => fields);
    return {
      sent: sent.length,
      accepted: probes.map(({ accepted }) => accepted),
      sentAtMs: probes[0]?.sentAtMs,
      warned,
      fleet,
    };
  }

  it('are one while it is accepted', async () => {
    const { sent, accepted, sentAtMs, warned } = await probed(['accepted']);
    expect([sent, accepted, sentAtMs, warned]).toEqual([1, [true], START_MS, []]);
  });

  it('are three when the first one fails, with a log line', async () => {
    const { sent, accepted, warned } = await probed(['failed', 'accepted', 'failed']);
    expect([sent, accepted, warned]).toEqual([3, [true, false, false], [{ reason: 'answered 503' }]]);
  });

  it('are none if the policy does not use them', async () => {
    const { sent, accepted } = await probed([], { ingestGate: 'off' });
    expect([sent, accepted]).toEqual([0, []]);
  });
});

it('continues with a longer period: its slots have smaller numbers', async () => {
  const { fleet } = await settledFleet({ a: 2 });
  await fleet.run(0, 60, () => fleet.beat('a-0', 'a-1'));
  const policy = { ...fleet.policy, nodeMonitorPeriodSeconds: 10 };
  const next = fleet.makeControllers(fleet.tables, undefined, policy);
  const kinds = new Set<string>();
  for (let seconds = 70; seconds <= 120; seconds += 10) {
    fleet.at(seconds);
    await fleet.beat('a-0');
    kinds.add((await next.tickNodeMonitor(Math.floor(fleet.nowMs() / 10_000))).kind);
  }
  expect([...kinds]).toEqual(['ran']);
  expect(await fleet.ready('a-1')).toBe('Unknown');
});
