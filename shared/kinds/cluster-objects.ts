/** Opens the store of Kubernetes objects. Every process must use the same shards and selectable fields. */

import type { Clock, RandomSource } from '../clock.ts';
import { defined } from '../defined.ts';
import type { ItemStore } from '../store/item-store.ts';
import { type ObjectStore, objectStore } from '../store/object-store.ts';
import { findStored, shardsOf } from './resources.ts';
import type { KubeObject } from './types.ts';

export interface ClusterObjectsOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Waits between attempts at a contended commit. Milliseconds. Absent: no wait. */
  readonly pause?: (milliseconds: number) => Promise<unknown>;
}

export const selectableFieldsOf = (resource: string, object: KubeObject): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(findStored(resource)?.selectableFields ?? {}).map(([field, read]) => [field, read(object)]),
  );

export const clusterObjects = ({ items, clock, random, pause }: ClusterObjectsOptions): ObjectStore =>
  objectStore({
    items,
    clock,
    shardsOf,
    selectableFields: selectableFieldsOf,
    random: random.fraction,
    ...defined({ pause }),
  });
