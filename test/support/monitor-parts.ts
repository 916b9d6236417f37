/** node-monitor's parts over tables in memory, for tests of one step of its tick. */
import { randomUUID } from 'node:crypto';
import {
  type MonitorDependencies,
  type MonitorPorts,
  monitorDependencies,
} from '../../functions/node-monitor/dependencies.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';

export interface EmittedMetric {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly zone?: string;
}

export function monitorParts(
  ports: MonitorPorts,
  {
    nowMs,
    policy = {},
    items = memoryItemStore(),
  }: { readonly nowMs: number; readonly policy?: Partial<Policy>; readonly items?: ItemStore },
) {
  const emitted: EmittedMetric[] = [];
  const warnings: { readonly message: string; readonly fields: unknown }[] = [];
  const common = workDependencies({
    items,
    clock: { nowMs: () => nowMs },
    random: { uuid: randomUUID, fraction: () => 0.5 },
    policy: { ...defaultPolicy, ...policy },
    log: { debug() {}, info() {}, error() {}, warn: (message, fields) => warnings.push({ message, fields }) },
    meter: { add: (name, value, unit, dimensions) => emitted.push({ name, value, unit, ...dimensions }) },
  });
  const dependencies: MonitorDependencies = monitorDependencies(common, ports);
  const events = async () => (await dependencies.objects.list({ resource: 'events' })).objects;
  return { dependencies, emitted, warnings, events };
}
