/**
 * When the node is under pressure (pkg/kubelet/eviction/helpers.go). Only hard thresholds are supported. This agent
 * does not evict pods; the conditions keep new pods away.
 */
import type { EvictionThresholds } from '../config.ts';
import type { MachineUse } from '../ports/machine.ts';
import type { PressureType } from './node-conditions.ts';
import { thresholdAmount } from './node-resources.ts';

export const EVICTION_SIGNALS = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'pid.available',
] as const;
export type EvictionSignal = (typeof EVICTION_SIGNALS)[number];

const PRESSURE_OF: Readonly<Record<EvictionSignal, PressureType>> = {
  'memory.available': 'MemoryPressure',
  'nodefs.available': 'DiskPressure',
  'nodefs.inodesFree': 'DiskPressure',
  'imagefs.available': 'DiskPressure',
  'imagefs.inodesFree': 'DiskPressure',
  'pid.available': 'PIDPressure',
};

interface Observation {
  readonly available: number;
  readonly capacity: number;
}

/** A signal with capacity 0 is not measured, such as inodes on some file systems. */
function observe(use: MachineUse, memoryBytes: number): Readonly<Record<EvictionSignal, Observation>> {
  return {
    'memory.available': { available: use.memoryAvailableBytes, capacity: memoryBytes },
    'nodefs.available': { available: use.nodeFs.availableBytes, capacity: use.nodeFs.capacityBytes },
    'nodefs.inodesFree': { available: use.nodeFs.inodesFree, capacity: use.nodeFs.inodes },
    'imagefs.available': { available: use.imageFs.availableBytes, capacity: use.imageFs.capacityBytes },
    'imagefs.inodesFree': { available: use.imageFs.inodesFree, capacity: use.imageFs.inodes },
    'pid.available': { available: use.pidsMax - use.pidsUsed, capacity: use.pidsMax },
  };
}

/** Signals below their threshold. */
export function signalsMet(use: MachineUse, memoryBytes: number, thresholds: EvictionThresholds): EvictionSignal[] {
  const observed = observe(use, memoryBytes);
  return EVICTION_SIGNALS.filter((signal) => {
    const threshold = thresholds[signal];
    const { available, capacity } = observed[signal];
    return threshold !== undefined && capacity > 0 && thresholdAmount(threshold, capacity) > available;
  });
}

/** When each pressure was last measured. Monotonic milliseconds, as `nowMs` below. */
export type PressureSightings = Readonly<Partial<Record<PressureType, number>>>;

/** The sightings after a measurement. */
export function sightPressures(
  previous: PressureSightings,
  signals: readonly EvictionSignal[],
  nowMs: number,
): PressureSightings {
  const seen = signals.map((signal): [PressureType, number] => [PRESSURE_OF[signal], nowMs]);
  return { ...previous, ...Object.fromEntries(seen) };
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
