/**
 * What a write does to the item that it finds, and the outcome for its caller. Every store of our own decides by it:
 * they differ only in where items are.
 */
import {
  checkTransaction,
  type Item,
  type ItemKey,
  StoreFault,
  TRANSACT_BYTES_MAX,
  type TransactOutcome,
  type TransactWrite,
  type Write,
  type WriteOptions,
  type WriteOutcome,
} from '../item-store.ts';
import { conditionHolds } from './condition-holds.ts';
import { writtenBytes } from './item-weight.ts';
import { checkKey, itemAfter } from './written-item.ts';

/** The item before and after a write; the same one if the write is refused or a check. */
export interface WriteEffect {
  readonly key: ItemKey;
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

/** No item, or only its keys. Some engines return the one for the other, so both count as absent. */
const isBare = (item: Item | undefined): item is undefined => item === undefined || Object.keys(item).length <= 2;

const isRefused = ({ when }: TransactWrite, current: Item | undefined): boolean =>
  when !== undefined && !conditionHolds(when, current);

/** @throws StoreFault `rejected` or `too-large` as the port says */
export function decideWrite(
  write: Write,
  before: Item | undefined,
  options: WriteOptions,
): { readonly outcome: WriteOutcome; readonly effect: WriteEffect } {
  const { key } = write;
  if (isRefused(write, before)) {
    const outcome: WriteOutcome = isBare(before) ? { kind: 'refused' } : { kind: 'refused', current: before };
    return { outcome, effect: { key, before, after: before } };
  }
  const after = itemAfter(write, before);
  return { outcome: writtenOutcome(before, after, options), effect: { key, before, after } };
}

function writtenOutcome(before: Item | undefined, after: Item | undefined, options: WriteOptions): WriteOutcome {
  if (options.returnItem && after !== undefined) return { kind: 'written', item: after };
  if (options.returnPrevious && !isBare(before)) return { kind: 'written', previous: before };
  return { kind: 'written' };
}

/**
 * Evaluates every condition first. Then all writes are done, or none.
 *
 * @throws StoreFault `rejected` or `too-large` as the port says
 */
export function decideTransaction(
  writes: readonly TransactWrite[],
  read: (key: ItemKey) => Item | undefined,
): { readonly outcome: TransactOutcome; readonly effects: readonly WriteEffect[] } {
  checkTransaction(writes);
  const failures: { index: number; current?: Item }[] = [];
  const effects = writes.map((write, index) => {
    const { key } = write;
    checkKey(key);
    const before = read(key);
    const refused = isRefused(write, before);
    if (refused) failures.push(isBare(before) ? { index } : { index, current: before });
    return { key, before, after: refused || write.kind === 'check' ? before : itemAfter(write, before) };
  });
  if (effects.reduce((sum, { before, after }) => sum + writtenBytes(before, after), 0) > TRANSACT_BYTES_MAX) {
    throw new StoreFault('rejected', 'the items of the transaction are larger than 4 MB', { retryable: false });
  }
  return { outcome: failures.length > 0 ? { kind: 'refused', failures } : { kind: 'written' }, effects };
}
