/**
 * When the node is under pressure, and which thresholds require an eviction. Source: pkg/kubelet/eviction/helpers.go,
 * eviction_manager.go (synchronize), api/types.go. All functions are pure: the state is a value.
 */
import type { AgentConfig, EvictionThresholds, ThresholdValue } from '../config.ts';
import type { MachineUse } from '../ports/machine.ts';
import type { PressureType } from './node-conditions.ts';
import { thresholdAmount } from './node-resources.ts';

/** The signals that can be configured. */
export const EVICTION_SIGNALS = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'pid.available',
] as const;
export type EvictionSignal = (typeof EVICTION_SIGNALS)[number] | 'allocatableMemory.available';

/** What is reclaimed. As upstream, inodes and pids are resources only here. */
export type StarvedResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids';

interface SignalMeaning {
  readonly pressure: PressureType;
  readonly resource: StarvedResource;
}

const MEANING: Readonly<Record<EvictionSignal, SignalMeaning>> = {
  'memory.available': { pressure: 'MemoryPressure', resource: 'memory' },
  'allocatableMemory.available': { pressure: 'MemoryPressure', resource: 'memory' },
  'nodefs.available': { pressure: 'DiskPressure', resource: 'ephemeral-storage' },
  'nodefs.inodesFree': { pressure: 'DiskPressure', resource: 'inodes' },
  'imagefs.available': { pressure: 'DiskPressure', resource: 'ephemeral-storage' },
  'imagefs.inodesFree': { pressure: 'DiskPressure', resource: 'inodes' },
  'pid.available': { pressure: 'PIDPressure', resource: 'pids' },
};

export const resourceOf = (signal: EvictionSignal): StarvedResource => MEANING[signal].resource;

export interface Observation {
  readonly available: number;
  readonly capacity: number;
}
/** A signal that is not measured is absent. */
export type Observations = Readonly<Partial<Record<EvictionSignal, Observation>>>;

/** Memory of all pods together. */
export interface PodsMemory {
  readonly limitBytes: number;
  readonly workingSetBytes: number;
}

/** A signal with capacity 0 is not measured, such as inodes on some file systems. */
export function observe(use: MachineUse, memoryBytes: number, pods?: PodsMemory): Observations {
  const all: Record<EvictionSignal, Observation> = {
    'memory.available': { available: use.memoryAvailableBytes, capacity: memoryBytes },
    'allocatableMemory.available': {
      available: Math.max(0, (pods?.limitBytes ?? 0) - (pods?.workingSetBytes ?? 0)),
      capacity: pods?.limitBytes ?? 0,
    },
    'nodefs.available': { available: use.nodeFs.availableBytes, capacity: use.nodeFs.capacityBytes },
    'nodefs.inodesFree': { available: use.nodeFs.inodesFree, capacity: use.nodeFs.inodes },
    'imagefs.available': { available: use.imageFs.availableBytes, capacity: use.imageFs.capacityBytes },
    'imagefs.inodesFree': { available: use.imageFs.inodesFree, capacity: use.imageFs.inodes },
    'pid.available': { available: use.pidsMax - use.pidsUsed, capacity: use.pidsMax },
  };
  return Object.fromEntries(Object.entries(all).filter(([, { capacity }]) => capacity > 0));
}

export interface Threshold {
  readonly signal: EvictionSignal;
  readonly value: ThresholdValue;
  /** How much more than the value must be available before the threshold is resolved. */
  readonly minReclaim?: ThresholdValue | undefined;
  /** How long the signal must be below the value before pods are evicted. 0: a hard threshold. Milliseconds. */
  readonly graceMs: number;
}

export type EvictionSettings = Pick<
  AgentConfig,
  'evictionHard' | 'evictionSoft' | 'evictionSoftGracePeriodMs' | 'evictionMinimumReclaim' | 'enforceNodeAllocatable'
>;

/** Hard thresholds before soft ones (ParseThresholdConfig). */
export function thresholdsOf(settings: EvictionSettings): readonly Threshold[] {
  const read = (values: EvictionThresholds, graceOf: (signal: string) => number): Threshold[] =>
    EVICTION_SIGNALS.flatMap((signal) => {
      const value = values[signal];
      const minReclaim = settings.evictionMinimumReclaim[signal];
      return value === undefined ? [] : [{ signal, value, minReclaim, graceMs: graceOf(signal) }];
    });
  const hard = read(settings.evictionHard, () => 0);
  const soft = read(settings.evictionSoft, (signal) => settings.evictionSoftGracePeriodMs[signal] ?? 0);
  // All pods together reach their limit before the machine runs out of memory.
  const allocatable = settings.enforceNodeAllocatable
    ? hard
        .filter(({ signal }) => signal === 'memory.available')
        .map((each): Threshold => ({ ...each, signal: 'allocatableMemory.available' }))
    : [];
  return [...hard, ...soft, ...allocatable];
}

/** The amount below which the threshold is met. */
export const amountOf = ({ value }: Threshold, { capacity }: Observation): number => thresholdAmount(value, capacity);

function isMet(threshold: Threshold, observations: Observations, withReclaim: boolean): boolean {
  const observation = observations[threshold.signal];
  if (observation === undefined) return false;
  const { minReclaim } = threshold;
  const reclaim = withReclaim && minReclaim !== undefined ? thresholdAmount(minReclaim, observation.capacity) : 0;
  return amountOf(threshold, observation) + reclaim > observation.available;
}

/** Thresholds and pressures over time. Times are monotonic milliseconds. */
export interface PressureState {
  /** When a threshold was first met, while it is not resolved. */
  readonly metSinceMs: ReadonlyMap<Threshold, number>;
  /** Thresholds that were due, while their minimum is not reclaimed. */
  readonly unresolved: readonly Threshold[];
  readonly sightings: PressureSightings;
}

export const NO_PRESSURE: PressureState = Object.freeze({ metSinceMs: new Map(), unresolved: [], sightings: {} });

/** When each pressure was last measured. Monotonic milliseconds. */
export type PressureSightings = Readonly<Partial<Record<PressureType, number>>>;

/** The state after a measurement. Its `unresolved` are the thresholds that require an eviction now. */
export function observed(
  previous: PressureState,
  thresholds: readonly Threshold[],
  observations: Observations,
  nowMs: number,
): PressureState {
  const met = thresholds.filter(
    (each) =>
      isMet(each, observations, false) || (previous.unresolved.includes(each) && isMet(each, observations, true)),
  );
  const metSinceMs = new Map(met.map((each) => [each, previous.metSinceMs.get(each) ?? nowMs]));
  // A soft threshold is a pressure from the first moment on.
  const seen = met.map(({ signal }): [PressureType, number] => [MEANING[signal].pressure, nowMs]);
  return {
    metSinceMs,
    unresolved: [...metSinceMs].filter(([each, sinceMs]) => nowMs - sinceMs >= each.graceMs).map(([each]) => each),
    sightings: { ...previous.sightings, ...Object.fromEntries(seen) },
  };
}

/**
 * Whether the node is under this pressure. To prevent flapping, a pressure ends only after the signal was above its
 * threshold for the transition period. Milliseconds.
 */
export function underPressure(
  type: PressureType,
  sightings: PressureSightings,
  nowMs: number,
  transitionPeriodMs: number,
): boolean {
  const seenAtMs = sightings[type];
  return seenAtMs !== undefined && (seenAtMs === nowMs || nowMs - seenAtMs < transitionPeriodMs);
}

/** The threshold to reclaim first: memory before all others. Undefined if none is due. */
export const mostUrgent = (due: readonly Threshold[]): Threshold | undefined =>
  due.find(({ signal }) => resourceOf(signal) === 'memory') ?? due[0];
