/** Long runs of a mixed fleet, in small, and the bugs of profiles and promises that their laws must find. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { GateRecord } from '../../shared/fleet/gate.ts';
import { DEFAULT_PROFILE } from '../../shared/fleet/nodes/node-profile.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import type { Item, ItemStore } from '../../shared/store/item-store.ts';
import { LONG_FAULTS, type LongOptions, runLong } from '../../simulation/long-run/run-long.ts';
import { rowsChanged, rowsWithout } from './rows-without.ts';

/** A run needs some seconds of CPU, on a machine that may be busy. */
const TIMEOUT_MS = 240_000;
const QUIET = { seed: 3, nodes: 300, hours: 1, faults: [], fleet: 'mixed' } as const satisfies LongOptions;
const HELD = { falseMarks: 0, lateMarks: 0, chainFaults: 0, wrongProfiles: 0 };

const secondsIn = (histogram: Readonly<Record<string, number>>): number[] => Object.keys(histogram).map(Number);

describe('a long run of a mixed fleet', { timeout: TIMEOUT_MS }, () => {
  it('keeps the laws per profile without faults, and marks each kind in its own time', async () => {
    const result = await runLong({ ...QUIET, hours: 3 });
    expect(result).toMatchObject(HELD);
    const { default: ofDefault, solar, fast } = result.profiles;
    // One policy has 60 s in place of 40 s, one has 100 s in place of 200 s.
    expect(Math.min(...secondsIn(ofDefault!.calmDetection))).toBeGreaterThanOrEqual(40);
    expect(Math.max(...secondsIn(ofDefault!.calmDetection))).toBeLessThanOrEqual(65.5);
    expect(Math.max(...secondsIn(solar!.calmDetection))).toBeGreaterThan(100);
    expect(Math.max(...secondsIn(solar!.calmDetection))).toBeLessThanOrEqual(205.5);
    expect(Math.min(...secondsIn(fast!.calmDetection))).toBeLessThan(20);
    // The run is relevant: there were broken promises, new Nodes that were never Ready, and corrected labels.
    const all = [ofDefault!, solar!, fast!];
    expect(all.flatMap(({ promiseDetection }) => secondsIn(promiseDetection)).length).toBeGreaterThan(0);
    expect(all.flatMap(({ startDetection }) => secondsIn(startDetection)).length).toBeGreaterThan(0);
    expect(all.reduce((sum, { nodeHours }) => sum + nodeHours, 0)).toBeCloseTo(900, 6);
  });

  it('keeps the laws per profile under all faults together', async () => {
    const result = await runLong({ ...QUIET, hours: 2, faults: LONG_FAULTS });
    expect(result).toMatchObject(HELD);
    expect(result.ticksWithClosedGate).toBeGreaterThan(0);
    for (const { rightMarks } of Object.values(result.profiles)) expect(rightMarks).toBeGreaterThan(0);
  });
});

describe('a planted bug of profiles and promises is found', { timeout: TIMEOUT_MS }, () => {
  const FAR_SECONDS = 10_000_000;
  const neverEnding = (row: Item): Item => (Number(row['S']) > 0 ? { ...row, S: Number(row['S']) + FAR_SECONDS } : row);
  const isSweep = (item: Item): boolean => item['pk'] === 'fleet' && item['sk'] === 'profiles';
  /** The evaluation of all Nodes after a change of the policy counts as done after its first part. */
  const unfinishedSweep = (items: ItemStore): ItemStore => ({
    ...items,
    async query(request) {
      const page = await items.query(request);
      return { ...page, items: page.items.map((item) => (isSweep(item) ? { ...item, round: 3 } : item)) };
    },
  });
  /** The gate does not know the interval of the tick before. */
  const withoutIntervals = (items: ItemStore): ItemStore => ({
    ...items,
    async query(request) {
      const page = await items.query(request);
      const stripped = (item: Item): Item =>
        typeof item['gate'] === 'string' ? { ...item, gate: withoutBeats(item['gate']) } : item;
      return { ...page, items: page.items.map(stripped) };
    },
  });

  it.each<
    [
      string,
      Partial<LongOptions>,
      law: 'falseMarks' | 'lateMarks' | 'wrongProfiles',
      kinds: readonly ('default' | 'solar' | 'fast')[],
    ]
  >([
    [
      'a new profile before the machine can learn it',
      { plant: { items: (items) => rowsWithout(items, 'C') } },
      'falseMarks',
      ['default', 'fast'],
    ],
    ['a promise that is ignored', { plant: { items: (items) => rowsWithout(items, 'S') } }, 'falseMarks', []],
    [
      'a promise that never ends',
      { plant: { items: (items) => rowsChanged(items, 'S', neverEnding) } },
      'lateMarks',
      [],
    ],
    [
      'a startup grace period that is ignored',
      { hours: 2, plant: { policy: { nodeStartupGracePeriodSeconds: 5 } } },
      'falseMarks',
      ['default'],
    ],
    [
      'a removed profile before its machines can learn it',
      { hours: 3, policies: withAndWithoutSolar(), plant: { items: withoutIntervals } },
      'falseMarks',
      ['solar'],
    ],
    [
      'nodes that are not evaluated again after a change of the policy',
      { hours: 2, plant: { items: unfinishedSweep } },
      'wrongProfiles',
      [],
    ],
  ])('%s', async (_, planted, law, kinds) => {
    const result = await runLong({
      ...QUIET,
      ...planted,
      until: (current) =>
        current[law] > 0 &&
        (law === 'wrongProfiles' || kinds.every((kind) => (current.profiles[kind]?.[law] ?? 0) > 0)),
    });
    expect(result[law]).toBeGreaterThan(0);
    if (law === 'wrongProfiles') return;
    for (const kind of kinds) expect(result.profiles[kind]?.[law]).toBeGreaterThan(0);
  });

  it('every node by the top-level times: patient machines are marked early, fast ones late', async () => {
    const plant = { items: (items: ItemStore) => rowsWithout(items, 'P') };
    const { profiles } = await runLong({ ...QUIET, nodes: 100, plant });
    expect(profiles.solar?.falseMarks).toBeGreaterThan(0);
    expect(profiles.fast?.lateMarks).toBeGreaterThan(0);
    expect(profiles.default).toMatchObject({ falseMarks: 0, lateMarks: 0 });
  });

  describe('in the gate', () => {
    const GATE = '../../shared/fleet/gate.ts';
    afterEach(() => {
      vi.doUnmock(GATE);
      vi.resetModules();
    });

    /** A default profile that notices an outage long after the grace period of fast machines. */
    const patient = {
      ...defaultPolicy,
      ...{ beatIntervalSeconds: 60, leaseDurationSeconds: 180, nodeMonitorGracePeriodSeconds: 200 },
      profiles: [
        {
          name: 'fast',
          nodeSelector: { matchLabels: { 'sim.nodekeeper.dev/power': 'fast' } },
          ...{ beatIntervalSeconds: 5, leaseDurationSeconds: 15, nodeMonitorGracePeriodSeconds: 15 },
        },
      ],
    };
    const OUTAGES: LongOptions = { ...QUIET, faults: ['apiOutage'], policies: [patient] };

    it('every node by the gate of the default profile', async () => {
      expect((await runLong(OUTAGES)).falseMarks).toBe(0);
      vi.doMock(GATE, async (original) => {
        const gate = await original<typeof import('../../shared/fleet/gate.ts')>();
        return { ...gate, gateOf: (record: GateRecord) => gate.gateOf(record, DEFAULT_PROFILE) };
      });
      vi.resetModules();
      const planted = await import('../../simulation/long-run/run-long.ts');
      const { profiles } = await planted.runLong(OUTAGES);
      expect(profiles.fast?.falseMarks).toBeGreaterThan(0);
      expect(profiles.default?.falseMarks).toBe(0);
    });
  });
});

/** Machines of a removed profile have a sixth of its interval. */
function withAndWithoutSolar(): readonly Policy[] {
  const nodeSelector = { matchLabels: { 'sim.nodekeeper.dev/power': 'solar' } };
  const times = { beatIntervalSeconds: 60, leaseDurationSeconds: 180, nodeMonitorGracePeriodSeconds: 200 };
  return [{ ...defaultPolicy, profiles: [{ name: 'solar', nodeSelector, ...times }] }, defaultPolicy];
}

function withoutBeats(gate: string): string {
  return JSON.stringify(JSON.parse(gate, (name, value: unknown) => (name === 'beatSeconds' ? undefined : value)));
}
