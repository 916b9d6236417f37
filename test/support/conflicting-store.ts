/**
 * An item store in which concurrent transactions conflict, as in DynamoDB. A transaction is in progress for some time,
 * on the clock of `pause`: virtual time in a benchmark or a test. Another transaction on one of its items is cancelled,
 * and a plain write to one is refused. The memory store alone applies every write at once, so nothing ever overlaps.
 *
 * A plain write is repeated as the DynamoDB adapter does it: bounded, with jitter.
 *
 * Source: Amazon DynamoDB Developer Guide, "Amazon DynamoDB Transactions: How it works", "Transaction conflict
 * handling".
 */
import { transactionLocks } from '../../aws-local/dynamodb/transaction-locks.ts';
import { CONFLICT_ATTEMPTS_MAX, CONFLICT_PAUSES } from '../../shared/aws/dynamodb-request.ts';
import { backoffMs } from '../../shared/backoff.ts';
import { type ItemKey, type ItemStore, StoreFault } from '../../shared/store/item-store.ts';

export interface ConflictOptions {
  /** How long a transaction is in progress. Milliseconds; some 10 on AWS. */
  readonly transactionMs: number;
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** A number in [0, 1), for jitter. */
  readonly random: () => number;
}

export interface ConflictingStore extends ItemStore {
  readonly counters: { readonly transactions: number; readonly conflicts: number };
}

export function conflictingStore(
  items: ItemStore,
  { transactionMs, pause, random }: ConflictOptions,
): ConflictingStore {
  const locks = transactionLocks();
  const counters = { transactions: 0, conflicts: 0 };
  const nameOf = ({ table, pk, sk }: ItemKey): string => `${table}\n${pk}\n${sk}`;
  return {
    ...items,
    counters,
    async write(write, options) {
      for (let attempt = 1; locks.isLocked(nameOf(write.key)); attempt += 1) {
        counters.conflicts += 1;
        if (attempt >= CONFLICT_ATTEMPTS_MAX) {
          throw new StoreFault('throttled', 'transactions kept conflicting with a write', { retryable: true });
        }
        await pause(backoffMs(CONFLICT_PAUSES, attempt - 1, random()));
      }
      return items.write(write, options);
    },
    async transact(writes) {
      counters.transactions += 1;
      const locked = locks.begin(writes.map(({ key }) => nameOf(key)));
      if (locked.kind === 'conflict') {
        counters.conflicts += 1;
        // A cancelled transaction needs a round trip, too.
        await pause(transactionMs / 2);
        return { kind: 'contended' };
      }
      try {
        await pause(transactionMs);
        return await items.transact(writes);
      } finally {
        locked.end();
      }
    },
  };
}
