/**
 * Transactions that are in progress, and the requests that conflict with them.
 *
 * A transaction is in progress from its arrival to its answer. Another one with an item in common is cancelled with
 * `TransactionConflict` for that item, and a plain write to such an item is refused with
 * `TransactionConflictException`. Reads do not conflict. DynamoDB does not queue conflicting requests.
 *
 * Source: Amazon DynamoDB Developer Guide, "Amazon DynamoDB Transactions: How it works", "Transaction conflict
 * handling".
 */
export interface TransactionLocks {
  /** Begins a transaction unless it conflicts: the items, by position, that are part of another one. */
  begin(
    items: readonly string[],
  ): { readonly kind: 'begun'; end(): void } | { readonly kind: 'conflict'; readonly at: readonly number[] };
  /** Whether a transaction that is in progress contains the item. */
  isLocked(item: string): boolean;
}

export function transactionLocks(): TransactionLocks {
  const locked = new Set<string>();
  return {
    begin(items) {
      const at = items.flatMap((item, index) => (locked.has(item) ? [index] : []));
      if (at.length > 0) return { kind: 'conflict', at };
      for (const item of items) locked.add(item);
      return {
        kind: 'begun',
        end() {
          for (const item of items) locked.delete(item);
        },
      };
    },
    isLocked: (item) => locked.has(item),
  };
}
