import { freshMetadata, inheritMetadata, typed, withoutEmpty } from '../../kubernetes/normal-form.ts';
import { DEFAULT_PREEMPTION_POLICY } from '../pods/pod-admission.ts';
import type { Prepare } from '../served-kind.ts';
import type { KubeObject, KubePriorityClass } from '../types.ts';
import { SCHEDULING_GROUP } from './resource.ts';

const storedForm = (object: KubePriorityClass): KubeObject =>
  typed(SCHEDULING_GROUP, 'v1', 'PriorityClass', {
    ...withoutEmpty(object, 'globalDefault', 'description'),
    metadata: object.metadata,
    preemptionPolicy: object.preemptionPolicy || DEFAULT_PREEMPTION_POLICY,
    value: object.value ?? 0,
  });

export const preparePriorityClass: Prepare = {
  hasGeneration: true,
  prepareForCreate: (object) =>
    storedForm({ ...object, metadata: { ...freshMetadata(object.metadata), generation: 1 } }),
  prepareForUpdate: (next, old) => storedForm({ ...next, metadata: inheritMetadata(next.metadata, old.metadata) }),
};

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
