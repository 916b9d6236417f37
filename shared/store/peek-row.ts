import { type Item, type ItemUpdater, StoreFault } from '../ports/item-store.ts';
import { hasLease, healthKey } from './health-row.ts';

/**
 * The row of a node's Lease, learnt from an update that no row can satisfy: for a function that may do nothing but
 * UpdateItem. One write unit; strongly consistent. undefined when there is no Lease.
 */
export async function peekRow(items: ItemUpdater, nodeName: string): Promise<Item | undefined> {
  const outcome = await items.write({
    kind: 'update',
    key: healthKey(nodeName),
    remove: ['never'],
    // No resourceVersion is negative, and an absent one compares with nothing.
    when: { kind: 'compare', attribute: 'v', op: '<', value: 0 },
  });
  if (outcome.kind === 'written') {
    throw new StoreFault('rejected', 'a lease with a negative version', { retryable: false });
  }
  return outcome.current !== undefined && hasLease(outcome.current) ? outcome.current : undefined;
}
