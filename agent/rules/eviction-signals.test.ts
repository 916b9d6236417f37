import { describe, expect, it } from 'vitest';
import type { MachineUse } from '../ports/machine.ts';
import {
  type EvictionSettings,
  mostUrgent,
  NO_PRESSURE,
  observe,
  observed,
  type PressureState,
  type Threshold,
  thresholdsOf,
  underPressure,
} from './eviction-signals.ts';

const MIB = 1_024 ** 2;
const FS = { capacityBytes: 1_000 * MIB, availableBytes: 500 * MIB, inodes: 1_000, inodesFree: 500 };
const use = (memoryMib: number, over: Partial<MachineUse> = {}): MachineUse => ({
  memoryAvailableBytes: memoryMib * MIB,
  nodeFs: FS,
  imageFs: FS,
  cpuBusySeconds: 0,
  pidsMax: 1_000,
  pidsUsed: 10,
  ...over,
});
const quantity = (mib: number) => ({ kind: 'quantity', value: mib * MIB }) as const;

const settings = (over: Partial<EvictionSettings> = {}): EvictionSettings => ({
  evictionHard: {},
  evictionSoft: {},
  evictionSoftGracePeriodMs: {},
  evictionMinimumReclaim: {},
  enforceNodeAllocatable: false,
  ...over,
});

/** Measures one after the other; the due thresholds of each. */
function series(thresholds: readonly Threshold[], measurements: readonly (readonly [number, MachineUse])[]) {
  let state: PressureState = NO_PRESSURE;
  return measurements.map(([atMs, each]) => {
    state = observed(state, thresholds, observe(each, 2_000 * MIB), atMs);
    return { due: state.unresolved.map(({ signal, graceMs }) => `${signal} ${graceMs}`), state };
  });
}

describe('a hard threshold', () => {
  it('is due at once, and no longer when it is not met', () => {
    const thresholds = thresholdsOf(settings({ evictionHard: { 'memory.available': quantity(100) } }));
    const [met, equal] = series(thresholds, [
      [0, use(99)],
      [10_000, use(100)],
    ]);
    expect(met?.due).toEqual(['memory.available 0']);
    expect(equal?.due).toEqual([]);
  });

  it('stays due until its minimum is reclaimed', () => {
    const thresholds = thresholdsOf(
      settings({
        evictionHard: { 'memory.available': quantity(100) },
        evictionMinimumReclaim: { 'memory.available': quantity(50) },
      }),
    );
    const due = series(thresholds, [
      [0, use(120)],
      [10_000, use(99)],
      [20_000, use(149)],
      [30_000, use(150)],
      [40_000, use(149)],
    ]).map((each) => each.due.length);
    expect(due).toEqual([0, 1, 1, 0, 0]);
  });
});

describe('a soft threshold', () => {
  const thresholds = thresholdsOf(
    settings({
      evictionSoft: { 'memory.available': quantity(300) },
      evictionSoftGracePeriodMs: { 'memory.available': 30_000 },
    }),
  );

  it('is due after its grace period, counted from when it was first met', () => {
    const due = series(thresholds, [
      [0, use(200)],
      [20_000, use(200)],
      [30_000, use(200)],
    ]).map((each) => each.due.length);
    expect(due).toEqual([0, 0, 1]);
  });

  it('begins again after a moment above it', () => {
    const due = series(thresholds, [
      [0, use(200)],
      [20_000, use(300)],
      [30_000, use(200)],
      [50_000, use(200)],
      [60_000, use(200)],
    ]).map((each) => each.due.length);
    expect(due).toEqual([0, 0, 0, 0, 1]);
  });

  it('is a pressure from the first moment on, until the transition period is over', () => {
    const [first, , later] = series(thresholds, [
      [0, use(200)],
      [10_000, use(400)],
      [299_999, use(400)],
    ]);
    const isUnder = (state: PressureState | undefined, atMs: number) =>
      underPressure('MemoryPressure', state?.sightings ?? {}, atMs, 300_000);
    expect(isUnder(first?.state, 0)).toBe(true);
    expect(isUnder(later?.state, 299_999)).toBe(true);
    expect(isUnder(later?.state, 300_000)).toBe(false);
  });
});

describe('the limit of all pods', () => {
  const thresholds = thresholdsOf(
    settings({ evictionHard: { 'memory.available': quantity(100) }, enforceNodeAllocatable: true }),
  );

  it('has the threshold of the machine', () => {
    const pods = { limitBytes: 1_000 * MIB, workingSetBytes: 950 * MIB };
    const state = observed(NO_PRESSURE, thresholds, observe(use(1_000), 2_000 * MIB, pods), 0);
    expect(state.unresolved.map(({ signal }) => signal)).toEqual(['allocatableMemory.available']);
  });

  it('is not measured without a group', () => {
    expect(observed(NO_PRESSURE, thresholds, observe(use(1_000), 2_000 * MIB), 0).unresolved).toEqual([]);
  });
});

it('memory is reclaimed before anything else', () => {
  const thresholds = thresholdsOf(
    settings({
      evictionHard: {
        'nodefs.available': { kind: 'percent', percent: 60 },
        'pid.available': { kind: 'quantity', value: 995 },
        'memory.available': quantity(100),
      },
    }),
  );
  const state = observed(NO_PRESSURE, thresholds, observe(use(50), 2_000 * MIB), 0);
  expect(state.unresolved).toHaveLength(3);
  expect(mostUrgent(state.unresolved)?.signal).toBe('memory.available');
  expect(mostUrgent(state.unresolved.filter(({ signal }) => signal !== 'memory.available'))?.signal).toBe(
    'nodefs.available',
  );
});
