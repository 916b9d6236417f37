import { describe, expect, it } from 'vitest';
import type { FleetState, FleetZone } from '../../shared/fleet/fleet-store.ts';
import { type GateRecord, UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import type { MonitorOutcome } from '../../shared/fleet/marks.rule.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { silenceStore } from '../../shared/fleet/silences/silence-store.ts';
import { NO_DISRUPTION } from '../../shared/fleet/zone-state.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { START_MS } from '../../test/support/controlled-fleet.ts';
import { type EmittedMetric, monitorParts } from '../../test/support/monitor-parts.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import type { Decided } from './decide-tick.ts';
import type { MonitorPorts } from './dependencies.ts';
import {
  evaluatesIntervals,
  measure,
  measureCost,
  minutesToReport,
  recordSilences,
  reportGate,
  reportRareBeats,
  reportsCost,
} from './report-tick.ts';

const NOW_MS = START_MS;
const HOUR_MS = 3_600_000;
const FAILING = new StoreFault('throttled', 'the table is throttled', { retryable: true });

const monitor = (ports: MonitorPorts = {}, options: Omit<Parameters<typeof monitorParts>[1], 'nowMs'> = {}) =>
  monitorParts(ports, { ...options, nowMs: NOW_MS });

/** Rejects every write of an item of the API. */
const readOnly = (): ItemStore => {
  const items = memoryItemStore();
  return { ...items, write: () => Promise.reject(FAILING), transact: () => Promise.reject(FAILING) };
};

const outcome = (parts: Partial<MonitorOutcome> = {}): MonitorOutcome => ({
  decisions: [],
  zoneMetrics: [],
  gate: { kind: 'open' },
  lateNodes: 0,
  accused: [],
  beats: { owed: 0, received: 0 },
  plannedNodes: new Map(),
  flappingNodes: new Map(),
  withheldMarks: 0,
  beyondQueue: new Map(),
  ...parts,
});

const stateBefore = (gate: Partial<GateRecord> = {}): FleetState => ({
  slot: 1,
  fence: 1,
  gate: { ...UNTRIED_GATE, ...gate },
  disruption: NO_DISRUPTION,
  claimedAtMs: NOW_MS - 5_000,
  claimId: 'claim',
  nodes: 0,
  sent: undefined,
  lookFailedAtMs: undefined,
});

const decided = (parts: Partial<Decided> = {}): Decided => ({
  outcome: outcome(),
  gate: UNTRIED_GATE,
  before: stateBefore(),
  disruption: NO_DISRUPTION,
  drafts: [],
  ...parts,
});

const zoneOf = (zone: string, size: number, unhealthy: number) => ({
  zone,
  size,
  healthPercent: (100 * (size - unhealthy)) / size,
  unhealthy,
});
const record = (zone: string, createdAtMs: number | undefined): FleetZone => ({
  zone,
  state: 'Normal',
  limiter: { tatMs: undefined, ratePerSecond: 0.1 },
  ...(createdAtMs === undefined ? {} : { createdAtMs }),
});
const queued = (zone: string, nodeName: string, addedAtMs: number) => ({ zone, nodeName, uid: 'u', addedAtMs });

describe('metrics of a tick', () => {
  function measured({
    parts = {},
    records = {},
    ...tick
  }: {
    readonly parts?: Partial<MonitorOutcome>;
    readonly records?: Partial<Parameters<typeof measure>[1]>;
  } & Partial<Decided>): EmittedMetric[] {
    const { dependencies, emitted } = monitor();
    const all = { state: stateBefore(), zones: [], queue: [], ...records };
    measure(dependencies, all, decided({ outcome: outcome(parts), ...tick }), NOW_MS);
    return emitted;
  }
  const named = (emitted: readonly EmittedMetric[], name: string) => emitted.filter((each) => each.name === name);

  it('are none in a cluster without nodes, also after a total disruption that did not end', () => {
    expect(measured({})).toEqual([]);
    const disruption = { ...NO_DISRUPTION, total: true, sinceMs: NOW_MS - HOUR_MS };
    expect(measured({ disruption })).toEqual([]);
  });

  it('of a healthy zone are its size, its health and its unhealthy nodes', () => {
    const emitted = measured({ parts: { zoneMetrics: [zoneOf('a', 4, 1)] }, records: { zones: [record('a', 0)] } });
    expect(emitted).toEqual([
      { name: 'node_collector_zone_size', value: 4, unit: 'Count', zone: 'a' },
      { name: 'node_collector_zone_health', value: 75, unit: 'Percent', zone: 'a' },
      { name: 'node_collector_unhealthy_nodes_in_zone', value: 1, unit: 'Count', zone: 'a' },
      { name: 'not_ready_share_max', value: 25, unit: 'Percent' },
      { name: 'disrupted_zones', value: 0, unit: 'Count' },
    ]);
  });

  it('of a zone begin when its record is a minute old, or of unknown age', () => {
    const sizes = (records: readonly FleetZone[]) =>
      named(
        measured({ parts: { zoneMetrics: [zoneOf('a', 2, 0)] }, records: { zones: records } }),
        'node_collector_zone_size',
      );
    expect(sizes([record('a', NOW_MS - 60_000)])).toHaveLength(1);
    expect(sizes([record('a', undefined)])).toHaveLength(1);
    expect(sizes([record('a', NOW_MS - 59_999)])).toEqual([]);
    expect(sizes([record('b', 0)])).toEqual([]);
  });

  it('count planned, flapping and waiting nodes of each zone, and leave out zones without', () => {
    const emitted = measured({
      parts: {
        zoneMetrics: [zoneOf('a', 9, 0), zoneOf('b', 9, 0)],
        plannedNodes: new Map([['a', 2]]),
        flappingNodes: new Map([['a', 3]]),
        beyondQueue: new Map([['a', { nodes: 5, sinceMs: NOW_MS }]]),
      },
      records: {
        zones: [record('a', 0), record('b', 0)],
        queue: [queued('a', 'n1', NOW_MS), queued('a', 'n2', NOW_MS), queued('c', 'n3', NOW_MS)],
      },
    });
    const ofZones = (name: string) => named(emitted, name).map(({ zone, value }) => [zone, value]);
    expect(ofZones('planned_silence_nodes')).toEqual([['a', 2]]);
    expect(ofZones('flapping_nodes')).toEqual([['a', 3]]);
    expect(ofZones('node_collector_queued_nodes_in_zone')).toEqual([['a', 2 + 5]]);
  });

  it('have the worst zone for alarms, and count the zones in disruption', () => {
    const zoneMetrics = [zoneOf('a', 10, 2), zoneOf('b', 10, 6), zoneOf('c', 10, 10)];
    const emitted = measured({ parts: { zoneMetrics } });
    expect(named(emitted, 'not_ready_share_max')).toMatchObject([{ value: 100 }]);
    expect(named(emitted, 'disrupted_zones')).toMatchObject([{ value: 2 }]);
  });

  it('have the share of the heartbeats that arrived, while any is owed', () => {
    const shareOf = (owed: number, received: number) =>
      named(measured({ parts: { beats: { owed, received } } }), 'heartbeats_received_share').map(({ value }) => value);
    expect(shareOf(8, 6)).toEqual([75]);
    expect(shareOf(8, 0)).toEqual([0]);
    expect(shareOf(0, 0)).toEqual([]);
  });

  it('have the longest time in a queue, or before a place in it, in seconds', () => {
    const ageOf = (addedAtMs: readonly number[], beyondMs: readonly number[] = []) =>
      named(
        measured({
          parts: { beyondQueue: new Map(beyondMs.map((sinceMs, zone) => [`z${zone}`, { nodes: 1, sinceMs }])) },
          records: { queue: addedAtMs.map((each, index) => queued('a', `n${index}`, each)) },
        }),
        'queue_age_seconds_max',
      ).map(({ value, unit }) => [value, unit]);
    expect(ageOf([])).toEqual([]);
    expect(ageOf([NOW_MS - 3_000, NOW_MS - 7_500, NOW_MS - 1_000])).toEqual([[7.5, 'Seconds']]);
    expect(ageOf([NOW_MS - 3_000], [NOW_MS - 2_000, NOW_MS - 90_000])).toEqual([[90, 'Seconds']]);
    // A clock that stepped back.
    expect(ageOf([NOW_MS + 4_000])).toEqual([[0, 'Seconds']]);
  });

  it('count late nodes and withheld marks, and leave out a zero', () => {
    const emitted = measured({ parts: { lateNodes: 3, withheldMarks: 2 } });
    expect(emitted).toEqual([
      { name: 'late_nodes', value: 3, unit: 'Count' },
      { name: 'withheld_marks', value: 2, unit: 'Count' },
    ]);
  });

  it.each([
    [
      'gate_holding',
      (isUp: boolean, sinceMs: number) => ({
        gate: { ...UNTRIED_GATE, reasons: isUp ? (['missedTicks'] as const) : [], sinceMs },
      }),
    ],
    [
      'total_disruption',
      (isUp: boolean, sinceMs: number) => ({
        parts: { zoneMetrics: [zoneOf('a', 2, 2)] },
        disruption: { ...NO_DISRUPTION, total: isUp, sinceMs },
      }),
    ],
  ])('have %s as 1 while it lasts, as 0 for five minutes after, and then no more', (name, at) => {
    const values = (isUp: boolean, forMs: number) =>
      named(measured(at(isUp, NOW_MS - forMs)), name).map(({ value }) => value);
    expect(values(true, 0)).toEqual([1]);
    expect(values(true, 9 * HOUR_MS)).toEqual([1]);
    expect(values(false, 0)).toEqual([0]);
    expect(values(false, 299_999)).toEqual([0]);
    expect(values(false, 300_000)).toEqual([]);
  });
});

describe('the running cost', () => {
  const SLOT_SECONDS = defaultPolicy.nodeMonitorPeriodSeconds;
  const slot = NOW_MS / 1_000 / SLOT_SECONDS;
  const taking = () => {
    let taken = 0;
    const takeUnits = () => {
      taken += 1;
      return { readUnits: 20, writeUnits: 3 };
    };
    return { takeUnits, taken: () => taken };
  };

  it('is emitted in the first minutes of a quarter of a day, with all units of the tick', () => {
    const { takeUnits } = taking();
    const { dependencies, emitted } = monitor({ takeUnits });
    measureCost(dependencies, { slot, nodes: [aNode({ nodeName: 'n' })] });
    expect(emitted.map(({ name, unit }) => [name, unit])).toEqual([
      ['cost_dollars_per_day', 'None'],
      ['tick_consumed_units', 'Count'],
    ]);
    expect(emitted[1]?.value).toBe(23);
  });

  it('is not emitted at another time, and leaves the units to be read', () => {
    const { takeUnits, taken } = taking();
    const { dependencies, emitted } = monitor({ takeUnits });
    measureCost(dependencies, { slot: slot + 1, nodes: [] });
    measureCost(dependencies, { slot: slot + 3_600 / SLOT_SECONDS, nodes: [] });
    expect([emitted, taken()]).toEqual([[], 0]);
  });

  it('is not emitted where the tables report no units', () => {
    const { dependencies, emitted } = monitor();
    measureCost(dependencies, { slot, nodes: [] });
    expect(emitted).toEqual([]);
  });

  it('is proportional to the heartbeats of each profile', () => {
    const cell = { name: 'cell', nodeSelector: {}, beatIntervalSeconds: 100 };
    const dollarsOf = (profiles: readonly (string | undefined)[]): number => {
      const { dependencies, emitted } = monitor({ takeUnits: taking().takeUnits }, { policy: { profiles: [cell] } });
      measureCost(dependencies, {
        slot,
        nodes: profiles.map((profile, index) =>
          aNode({ nodeName: `n${index}`, ...(profile === undefined ? {} : { profile }) }),
        ),
      });
      return emitted[0]?.value ?? Number.NaN;
    };
    const atRest = dollarsOf([]);
    const ofDefault = dollarsOf([undefined]) - atRest;
    const ofCell = dollarsOf(['cell']) - atRest;
    expect(ofCell).toBeGreaterThan(0);
    expect(ofDefault).toBeGreaterThan(5 * ofCell);
    expect(dollarsOf([undefined, 'cell', 'cell']) - atRest).toBeCloseTo(ofDefault + 2 * ofCell, 9);
  });
});

describe('heartbeats that are too rare', () => {
  const policy = { leaseDurationSeconds: 40, nodeMonitorGracePeriodSeconds: 40 };
  const nodes = [
    aNode({ nodeName: 'rare', leaseDurationSeconds: 100 }),
    aNode({ nodeName: 'usual', leaseDurationSeconds: 40 }),
  ];

  it('are an event on their Node, once per day', async () => {
    const { dependencies, events } = monitor({}, { policy });
    for (const afterMs of [0, HOUR_MS, 24 * HOUR_MS]) {
      expect(await reportRareBeats(dependencies, { nodes }, NOW_MS + afterMs)).toEqual([]);
    }
    const found = await events();
    expect(found.map((event) => [event['reason'], event['type'], event['involvedObject']])).toEqual(
      Array.from({ length: 2 }, () => [
        'BeatIntervalTooLong',
        'Warning',
        expect.objectContaining({ kind: 'Node', name: 'rare', uid: 'uid-rare' }),
      ]),
    );
  });

  it('write nothing where there are none', async () => {
    const { dependencies } = monitor({}, { policy, items: readOnly() });
    expect(await reportRareBeats(dependencies, { nodes: nodes.slice(1) }, NOW_MS)).toEqual([]);
  });

  it('that cannot be written are a fault, not an exception', async () => {
    const { dependencies } = monitor({}, { policy, items: readOnly() });
    expect(await reportRareBeats(dependencies, { nodes }, NOW_MS)).toHaveLength(1);
  });
});

describe('silences that have ended', () => {
  /** A node with a silence of 30 s that ends in the hour, and a tick after the hour. */
  async function recorded({
    items = memoryItemStore(),
    gate = UNTRIED_GATE,
    freshSinceMs = 0,
  }: {
    readonly items?: ItemStore;
    readonly gate?: GateRecord;
    readonly freshSinceMs?: number;
  } = {}) {
    const { dependencies } = monitor({}, { items, policy: { profiles: [{ name: 'cell', nodeSelector: {} }] } });
    const results: (readonly unknown[])[] = [];
    const tick = async (atMs: number, renewedAtMs: number) => {
      const nodes = [aNode({ nodeName: 'n', zone: 'a', createdAtMs: NOW_MS - HOUR_MS, renewedAtMs })];
      const at = decided({ gate, disruption: { ...NO_DISRUPTION, freshSinceMs } });
      results.push(await recordSilences(dependencies, { slot: atMs / 5_000, nowMs: atMs, nodes, decided: at }));
    };
    for (let seconds = 0; seconds <= 40; seconds += 5) {
      await tick(NOW_MS + seconds * 1_000, NOW_MS + (seconds < 30 ? 0 : 30) * 1_000);
    }
    await tick(NOW_MS + HOUR_MS, NOW_MS + HOUR_MS);
    const hours = async () => (await silenceStore(items).list({ nowMs: NOW_MS + HOUR_MS, limit: 10 })).hours;
    return { dependencies, results, hours, tick };
  }

  it('are written after their hour, with the limits of their profile', async () => {
    const { hours, results, dependencies } = await recorded();
    expect(results.flat()).toEqual([]);
    expect(await hours()).toMatchObject([
      { zone: 'a', profile: 'default', periodSeconds: 5, observedSeconds: 40, graceSeconds: 40, counts: [[11, 1]] },
    ]);
    expect(dependencies.silences.ended()).toEqual([]);
  });

  it('do not count while the gate of any profile is closed', async () => {
    const open = { reasons: [], sinceMs: 0, freshSinceMs: 0, provenAtMs: undefined };
    const profiles = { cell: { ...open, reasons: ['failingPath'] as const }, default: open };
    for (const gate of [
      { ...UNTRIED_GATE, reasons: ['failingPath'] as const },
      { ...UNTRIED_GATE, profiles },
    ]) {
      const { hours, dependencies } = await recorded({ gate });
      expect(await hours()).toEqual([]);
      expect(dependencies.silences.ended()).toEqual([]);
    }
  });

  it('do not count if they began before the gate opened, or before total disruption ended', async () => {
    const counts = async (parts: Parameters<typeof recorded>[0]) =>
      (await (await recorded(parts)).hours()).map((hour) => hour.counts);
    expect(await counts({ freshSinceMs: NOW_MS })).toEqual([[[11, 1]]]);
    expect(await counts({ freshSinceMs: NOW_MS + 1 })).toEqual([[]]);
    expect(await counts({ gate: { ...UNTRIED_GATE, freshSinceMs: NOW_MS + 1 } })).toEqual([[]]);
  });

  it('that cannot be written are faults, and are written by a later tick', async () => {
    const items = memoryItemStore();
    let refuses = true;
    const failing: ItemStore = { ...items, write: (write) => (refuses ? Promise.reject(FAILING) : items.write(write)) };
    const { results, hours, tick } = await recorded({ items: failing });
    expect(results.at(-1)).toHaveLength(1);
    expect(await hours()).toEqual([]);
    refuses = false;
    await tick(NOW_MS + HOUR_MS + 5_000, NOW_MS + HOUR_MS);
    expect(results.at(-1)).toEqual([]);
    expect(await hours()).toHaveLength(1);
  });
});

describe('a transition of the safety gate', () => {
  const CLOSED: GateRecord = {
    ...UNTRIED_GATE,
    reasons: ['failingPath'],
    sinceMs: NOW_MS,
    lastTickAtMs: NOW_MS - 5_000,
  };
  const OPEN: GateRecord = { ...CLOSED, reasons: [], freshSinceMs: NOW_MS - 20_000 };

  async function reported(gate: GateRecord, before: Partial<GateRecord>, items?: ItemStore) {
    const published: unknown[] = [];
    const eventBus = {
      async publish(events: readonly unknown[]) {
        published.push(...events);
        return { failed: [] };
      },
    };
    const { dependencies, events, warnings } = monitor({ eventBus }, items === undefined ? {} : { items });
    const faults = await reportGate(dependencies, decided({ gate, before: stateBefore(before) }), NOW_MS);
    return { faults, published, warnings, events: await events() };
  }
  const eventsOf = (found: Awaited<ReturnType<typeof reported>>) =>
    found.events.map((event) => [event['reason'], event['type'], event['involvedObject']]);
  const NAMESPACE = expect.objectContaining({ kind: 'Namespace', name: 'kube-node-lease' });

  it('is reported once when it closes: in the log, as an event and on the bus', async () => {
    const found = await reported(CLOSED, { lastTickAtMs: NOW_MS - 5_000 });
    expect(found.faults).toEqual([]);
    expect(eventsOf(found)).toEqual([['GateClosed', 'Warning', NAMESPACE]]);
    expect(found.published).toEqual([{ type: 'GateClosed', id: `GateClosed/${NOW_MS}`, reasons: ['failingPath'] }]);
    expect(found.warnings).toMatchObject([{ fields: { reasons: ['failingPath'] } }]);
  });

  it('is reported when it opens, with the start of the new grace period', async () => {
    const found = await reported(OPEN, {
      reasons: ['failingPath'],
      sinceMs: NOW_MS - 60_000,
      lastTickAtMs: NOW_MS - 5_000,
    });
    expect(eventsOf(found)).toEqual([['GateOpened', 'Normal', NAMESPACE]]);
    expect(found.warnings).toMatchObject([{ fields: { closedFor: ['failingPath'] } }]);
    expect(found.published).toEqual([
      { type: 'GateOpened', id: `GateOpened/${NOW_MS}`, freshSince: '2025-12-31T23:59:40Z' },
    ]);
  });

  it('to other reasons is an event, and nothing on the bus', async () => {
    const found = await reported(
      { ...CLOSED, reasons: ['failingPath', 'missedTicks'], sinceMs: NOW_MS - 60_000 },
      { reasons: ['failingPath'], sinceMs: NOW_MS - 60_000, lastTickAtMs: NOW_MS - 5_000 },
    );
    expect(eventsOf(found)).toEqual([['GateClosed', 'Warning', NAMESPACE]]);
    expect(found.published).toEqual([]);
  });

  it('to other reasons is an event beside that of its close, once', async () => {
    const items = memoryItemStore();
    const more: GateRecord = { ...CLOSED, reasons: ['failingPath', 'missedTicks'] };
    await reported(CLOSED, { lastTickAtMs: NOW_MS - 5_000 }, items);
    await reported(more, { ...CLOSED, lastTickAtMs: NOW_MS }, items);
    const { events } = await reported(more, { ...CLOSED, lastTickAtMs: NOW_MS }, items);
    const missed = events.map(({ message }) => String(message).includes('missed ticks'));
    expect(missed.toSorted()).toEqual([false, true]);
  });

  it('is nothing while it stays as it was', async () => {
    const found = await reported(CLOSED, { reasons: ['failingPath'], sinceMs: NOW_MS, lastTickAtMs: NOW_MS });
    expect([found.faults, found.events, found.published, found.warnings]).toEqual([[], [], [], []]);
  });

  it('is published although its event cannot be written', async () => {
    const found = await reported(CLOSED, {}, readOnly());
    expect(found.faults).toHaveLength(1);
    expect(found.published).toHaveLength(1);
  });
});

describe('the cost is reported', () => {
  it('by each tick that begins one of the first five minutes of a quarter of a day, so within one hour', () => {
    const startMs = Date.UTC(2026, 0, 1);
    const secondsTold: number[] = [];
    for (let seconds = 0; seconds < 43_200; seconds += 5)
      if (reportsCost(startMs + seconds * 1_000)) secondsTold.push(seconds);
    expect(secondsTold).toEqual([0, 21_600].flatMap((first) => [0, 60, 120, 180, 240].map((more) => first + more)));
  });
});

describe('the minutes of refused requests that a tick reports', () => {
  it.each([5, 7, 30, 60, 90, 300])('are each one once, with a period of %i s', (periodSeconds) => {
    const reported: number[] = [];
    for (let atMs = periodSeconds * 1_000; atMs <= 3_700_000; atMs += periodSeconds * 1_000) {
      reported.push(...minutesToReport(atMs, atMs - periodSeconds * 1_000));
    }
    expect(reported).toEqual(reported.toSorted((one, other) => one - other));
    expect(new Set(reported).size).toBe(reported.length);
    expect(reported.length).toBeGreaterThanOrEqual(55);
  });

  it('are over for at least ten seconds', () => {
    expect(minutesToReport(65_000, 60_000)).toEqual([]);
    expect(minutesToReport(70_000, 65_000)).toEqual([0]);
    expect(minutesToReport(75_000, 70_000)).toEqual([]);
  });

  it('are the last five after a long gap, and none at the first tick of a cluster', () => {
    expect(minutesToReport(3_610_000, 10_000)).toEqual([55, 56, 57, 58, 59].map((minute) => minute * 60_000));
    expect(minutesToReport(3_610_000, undefined)).toEqual([]);
  });
});

it('evaluates in the first tick of an hour alone', () => {
  const hourMs = 3_600_000;
  const inHour = [0, 4_999, 5_000, hourMs - 1].map((ms) => evaluatesIntervals(7 * hourMs + ms, 5));
  expect(inHour).toEqual([true, true, false, false]);
});
