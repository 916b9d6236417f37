import { hasLease, LEASE } from '../../shared/fleet/nodes/health.ts';
import { type Item, type ItemUpdater, StoreFault } from '../../shared/store/item-store.ts';
import { healthKey } from '../../shared/store/layout.ts';

/**
 * Reads the row of a node's Lease by an update with a condition that no row satisfies. For a function that may only
 * call UpdateItem. Costs one write unit; strongly consistent. undefined if there is no Lease.
 */
export async function peekRow(items: ItemUpdater, nodeName: string): Promise<Item | undefined> {
  const outcome = await items.write({
    kind: 'update',
    key: healthKey(nodeName),
    remove: ['never'],
    // No resourceVersion is negative, and the comparison is false for an absent one.
    when: { kind: 'compare', attribute: LEASE.version.name, op: '<', value: 0 },
  });
  if (outcome.kind === 'written') {
    throw new StoreFault('rejected', 'a lease with a negative version', { retryable: false });
  }
  return outcome.current !== undefined && hasLease(outcome.current) ? outcome.current : undefined;
}
