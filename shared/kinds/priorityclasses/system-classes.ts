import type { KubeObject } from '../types.ts';
import { preparePriorityClass } from './defaults.ts';

/** Classes every cluster has, by name. */
export const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

/** The two classes every cluster has from the start, without system fields. */
export const systemPriorityClasses = (): KubeObject[] =>
  Object.entries(SYSTEM_PRIORITIES).map(([name, value]) =>
    preparePriorityClass.prepareForCreate({ metadata: { name }, value }, { nowMs: 0 }),
  );

export const isSystemPriorityClass = (name: string): boolean => Object.hasOwn(SYSTEM_PRIORITIES, name);
