/** An object store in memory, over a clock that the test moves. */
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type ObjectWrite, objectStore } from '../../shared/store/object-store.ts';

export const START_MS = Date.UTC(2026, 0, 1);

export function memoryObjects({ items = memoryItemStore() as ItemStore, shards = 1 } = {}) {
  let nowMs = START_MS;
  const options = { items, clock: { nowMs: () => nowMs }, shardsOf: () => shards };
  const store = objectStore(options);
  /** The object as stored. */
  const commit = async (write: ObjectWrite): Promise<KubeObject> => {
    const outcome = await store.commit({ writes: [write] });
    if (outcome.kind !== 'committed') throw new Error(outcome.kind);
    return outcome.objects[0]!;
  };
  return {
    items,
    options,
    store,
    commit,
    /** The version of the new object. */
    async create(name: string, resource = 'things'): Promise<number> {
      const ref = { resource, namespace: '', name };
      const { metadata } = await commit({ kind: 'create', ref, object: { metadata: { name } } });
      return Number(metadata.resourceVersion);
    },
    pass(milliseconds: number): void {
      nowMs += milliseconds;
    },
  };
}
