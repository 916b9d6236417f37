/**
 * Items of a few nodes that the tables throttle for minutes, as a hot partition does: the Node, what is stored of its
 * pods, and whatever is read or written together with them. Beats and digests are another table's and go on.
 */

import { timersPartition } from '../../shared/fleet/eviction-timer-store.ts';
import { type ItemKey, StoreFault } from '../../shared/store/item-store.ts';
import { nodePodsPartition, objectPartition } from '../../shared/store/layout.ts';
import type { MemoryItemStore } from '../../shared/store/memory/item-store.ts';

const POD_INDEX = nodePodsPartition('');
const TIMERS = timersPartition('');

export function throttledFor(tables: MemoryItemStore, names: () => ReadonlySet<string>): MemoryItemStore {
  const isHot = ({ table, pk, sk }: Pick<ItemKey, 'table' | 'pk' | 'sk'>): boolean => {
    if (names().size === 0) return false;
    if (table === 'objects' && pk.startsWith(objectPartition('nodes'))) return names().has(sk);
    if (table === 'objects' && pk.startsWith(POD_INDEX)) return names().has(pk.slice(POD_INDEX.length));
    return table === 'control' && pk.startsWith(TIMERS) && names().has(pk.slice(TIMERS.length));
  };
  const throttled = (): Promise<never> =>
    Promise.reject(new StoreFault('throttled', 'simulated hot item', { retryable: true }));
  return {
    ...tables,
    get: (key, options) => (isHot(key) ? throttled() : tables.get(key, options)),
    getMany: (keys, options) => (keys.some(isHot) ? throttled() : tables.getMany(keys, options)),
    query: (request) => (isHot({ ...request, sk: '' }) ? throttled() : tables.query(request)),
    write: (write, options) => (isHot(write.key) ? throttled() : tables.write(write, options)),
    transact: (writes) => (writes.some(({ key }) => isHot(key)) ? throttled() : tables.transact(writes)),
  };
}
