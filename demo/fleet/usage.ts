/**
 * The usage that a simulated machine reports. No process runs on it, so it uses what its pods request, and a fixed
 * amount for its system. As an agent, it reports a new value in each minute, and none in its first one.
 */
import type { NodeUsage } from '../../shared/fleet/nodes/node-usage.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordOf, recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';

const WINDOW_SECONDS = 60;
const WINDOW_MS = WINDOW_SECONDS * 1_000;
/** The usage of an idle machine with Debian and an agent. */
const SYSTEM = { cpuCores: 0.04, memoryBytes: 320 * 2 ** 20 };

export type MachineUse = Pick<NodeUsage, 'cpuCores' | 'memoryBytes'>;

function amountOf(value: unknown): number {
  const parsed = parseQuantity(String(value ?? '0'));
  return parsed.kind === 'parsed' ? Number(parsed.quantity.nanos) / 1e9 : 0;
}

/** @param pods all pods that are bound to the machine; finished pods use nothing */
export function useOf(pods: readonly KubeObject[]): MachineUse {
  let { cpuCores, memoryBytes } = SYSTEM;
  for (const pod of pods) {
    if (['Succeeded', 'Failed'].includes(String(pod.status?.['phase']))) continue;
    for (const container of recordsOf(recordOf(pod.spec)['containers'])) {
      const requests = recordOf(recordOf(container['resources'])['requests']);
      cpuCores += amountOf(requests['cpu']);
      memoryBytes += amountOf(requests['memory']);
    }
  }
  return { cpuCores, memoryBytes };
}

/** The last full minute since the machine was started. */
export function usageAt(use: MachineUse, startedAtMs: number, nowMs: number): NodeUsage | undefined {
  const minutes = Math.floor((nowMs - startedAtMs) / WINDOW_MS);
  if (minutes < 1) return undefined;
  const atSeconds = Math.floor(startedAtMs / 1_000) + minutes * WINDOW_SECONDS;
  return { ...use, memoryBytes: Math.round(use.memoryBytes), windowSeconds: WINDOW_SECONDS, atSeconds };
}
