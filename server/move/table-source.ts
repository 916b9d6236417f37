/** A cluster in tables as the source of a move (docs/decisions/0059-moving-a-cluster.md). */
import { isDeepStrictEqual } from 'node:util';
import type { Condition, ItemStore } from '../../shared/store/item-store.ts';
import {
  ARRIVAL_KEY,
  arrivalOf,
  FENCE_KEY,
  type FenceState,
  fenceItem,
  fenceOf,
  isCluster,
} from '../../shared/store/move-rows.ts';
import { MoveError, type MoveSource } from './move.ts';

/** @param requireStopped throws while functions write */
export const tableSource = (items: ItemStore, requireStopped: () => Promise<void>): MoveSource => ({
  fence: async () => fenceOf(await items.get(FENCE_KEY, { consistent: true })),
  async setFence(fence, expected) {
    if (fence !== undefined) await requireStopped();
    if (expected === undefined && !isCluster(arrivalOf(await items.get(ARRIVAL_KEY, { consistent: true })))) {
      throw new MoveError('the tables are the destination of another move, and were never opened: they are no cluster');
    }
    const when = whenIn(expected);
    const outcome = await items.write(
      fence === undefined
        ? { kind: 'delete', key: FENCE_KEY, when }
        : { kind: 'put', key: FENCE_KEY, item: fenceItem(fence), when },
    );
    if (outcome.kind === 'written') return true;
    // A repeated request finds its own success.
    return isDeepStrictEqual(fenceOf(outcome.current), fence && fenceOf(fenceItem(fence)));
  },
  rows: async () => ({ items, waiting: 0, close: async () => {} }),
});

function whenIn(expected: FenceState | undefined): Condition {
  if (expected === undefined) return { kind: 'itemAbsent' };
  const { moveId, isReady } = expected;
  return {
    kind: 'all',
    of: [
      { kind: 'compare', attribute: 'moveId', op: '=', value: moveId },
      { kind: 'compare', attribute: 'isReady', op: '=', value: isReady },
    ],
  };
}
