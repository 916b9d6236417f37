/** The use of this machine over the last minute, for the Lease. */
import type { NodeUsage } from '../../shared/fleet/nodes/node-usage.ts';

/** The window of `kubectl top` with the metrics server: a newer value in each minute. Milliseconds. */
const WINDOW_MS = 60_000;

/** One reading of the machine. */
export interface UsageReading {
  readonly monotonicMs: number;
  /** Since the machine started. */
  readonly cpuBusySeconds: number;
  readonly memoryBytes: number;
}

/** The window that ends at this reading. Undefined while it is too short. */
export function usageSince(start: UsageReading, end: UsageReading, nowMs: number): NodeUsage | undefined {
  const elapsedMs = end.monotonicMs - start.monotonicMs;
  if (elapsedMs < WINDOW_MS) return undefined;
  return {
    cpuCores: Math.max(0, end.cpuBusySeconds - start.cpuBusySeconds) / (elapsedMs / 1_000),
    memoryBytes: Math.round(end.memoryBytes),
    windowSeconds: Math.round(elapsedMs / 1_000),
    atSeconds: Math.floor(nowMs / 1_000),
  };
}
