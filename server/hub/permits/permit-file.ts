/**
 * What a hub remembers of permits (site-permits.ts), in its file:
 *
 *   control, pk `permits`, sk `move#<uid of the original>`, `ended#<uid>[ <node>]`, `givenUp#<uid>`, `doubtful`
 *                                  j: JSON
 *
 * A row is written before its decision has an effect. A copy of another cluster deletes none of them: a uid is unique.
 */
import { controlPages, type ItemKey, type ItemStore } from '../../../shared/store/item-store.ts';
import type { Move, PermitChange, PermitRecords } from './site-permits.ts';

const PARTITION = 'permits';
const DOUBTFUL = 'doubtful';
const keyOf = (sk: string): ItemKey => ({ table: 'control', pk: PARTITION, sk });

/** @throws StoreFault */
export async function readPermits(items: ItemStore): Promise<PermitRecords> {
  const moves = new Map<string, Move>();
  const ended = new Set<string>();
  const givenUp = new Set<string>();
  let doubtful: Set<string> | undefined;
  const tooMany = 'there are more permits than one read may return';
  for await (const page of controlPages(items, PARTITION, { consistent: true, tooMany })) {
    for (const { sk, j } of page) {
      const [kind, uid = ''] = String(sk).split('#');
      if (kind === 'move') moves.set(uid, JSON.parse(String(j)) as Move);
      else if (kind === 'ended') ended.add(uid);
      else if (kind === 'givenUp') givenUp.add(uid);
      else if (kind === DOUBTFUL) doubtful = new Set(JSON.parse(String(j)) as string[]);
    }
  }
  return { moves, ended, givenUp, doubtful };
}

/** Resolves when the change is durable. @throws StoreFault: it may be */
export async function savePermit(items: ItemStore, change: PermitChange): Promise<void> {
  const put = (sk: string, value: unknown) =>
    items.write({ kind: 'put', key: keyOf(sk), item: { j: JSON.stringify(value) } });
  switch (change.kind) {
    case 'move':
      await put(`move#${change.origin}`, change.move);
      return;
    case 'ended':
    case 'givenUp':
      await put(`${change.kind}#${change.uid}`, true);
      return;
    case 'doubtful':
      await put(DOUBTFUL, change.uids);
      return;
    case 'forget':
      for (const sk of [
        ...change.ended.map((uid) => `ended#${uid}`),
        ...change.givenUp.map((uid) => `givenUp#${uid}`),
        ...change.origins.map((uid) => `move#${uid}`),
      ])
        await items.write({ kind: 'delete', key: keyOf(sk) });
  }
}
