/**
 * npm run store-plain -- --table NAME [--region REGION] [--endpoint URL]
 *
 * Stores every compressed text of the `objects` table as a string, and decisions that share an item in items of their own,
 * for the return to a release that cannot read them (docs/operations/roll-back.md). Deploy `storedObjects: plain` first:
 * no new ones are then written.
 *
 * It may run while the cluster works, and again. Objects keep their resourceVersion. An object that has changed
 * meanwhile is left as it is. Cost: a read of the table, and a write of each compressed item.
 */
import { parseArgs } from 'node:util';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamoDbItemStore } from '../shared/adapters/dynamodb/item-store.ts';
import { decisionsIn, decisionWrite } from '../shared/controllers/decisions/decision-store.ts';
import { defined } from '../shared/domain/defined.ts';
import type { Item, ItemPosition, ItemStore, Write } from '../shared/ports/item-store.ts';
import { is } from '../shared/store/conditions.ts';
import {
  decisionsPartition,
  objectSortKey,
  podDecisionsPartition,
  resourceVersionKey,
} from '../shared/store/layout.ts';
import { logAttributes, logEntries, objectText } from '../shared/store/object-record.ts';
import { type StoredText, unpackText } from '../shared/store/packed-text.ts';

/** 1 MB each: a table of 100 GB. */
const PAGES_MAX = 100_000;

/** Returns how many items were written. */
export async function storePlainTexts(items: ItemStore): Promise<number> {
  let written = 0;
  let after: ItemPosition | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await items.scan({
      table: 'objects',
      segment: 0,
      segments: 1,
      consistent: true,
      ...defined({ after }),
    });
    for (const item of page.items) {
      const writes = plainWrites(item);
      const [first] = writes;
      if (first === undefined) continue;
      const outcome = writes.length === 1 ? await items.write(first) : await items.transact(writes);
      if (outcome.kind === 'written') written += 1;
    }
    if (page.next === undefined) return written;
    after = page.next;
  }
  throw new Error('the table has more pages than one run may read');
}

type StoredRow = Item & {
  readonly pk: string;
  readonly sk: string;
  readonly rv: number;
  readonly o?: StoredText;
  readonly e?: StoredText;
  readonly d?: StoredText;
  readonly ttl?: number;
};

/** Empty for an item without a compressed text. The condition: the item has not changed since it was read. */
function plainWrites(item: Item): Write[] {
  const { pk, sk, rv, o, e, d, ttl } = item as StoredRow;
  const key = { table: 'objects', pk, sk } as const;
  if (o instanceof Uint8Array) return [{ kind: 'update', key, set: { o: unpackText(o) }, when: is('rv', rv) }];
  // An older release reads each decision by its own key.
  if (pk.startsWith(decisionsPartition()) || pk.startsWith(podDecisionsPartition())) {
    return [
      ...decisionsIn(item).map((record) => decisionWrite(record, { textFormat: 'plain' })),
      { kind: 'delete', key },
    ];
  }
  // A decision never changes.
  if (d instanceof Uint8Array)
    return [{ kind: 'update', key, set: { d: unpackText(d) }, when: { kind: 'itemExists' } }];
  if (e === undefined) return [];
  // An older release reads one change per log item. The last one replaces the folded item.
  return logEntries('', item).map((entry) => {
    const { type, resourceVersion, object, ref, previous } = entry.change();
    const text = objectText(object);
    const change = {
      ...{ type, resourceVersion, text, stored: text, key: objectSortKey(ref.namespace, ref.name) },
      previous: previous === undefined ? undefined : JSON.stringify(previous),
    };
    const attributes = { ...logAttributes([change], 'plain'), ...defined({ ttl }) };
    return { kind: 'put', key: { ...key, sk: resourceVersionKey(resourceVersion) }, item: attributes };
  });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { table: { type: 'string' }, region: { type: 'string' }, endpoint: { type: 'string' } },
  });
  const { table, region, endpoint } = values;
  if (table === undefined) throw new Error('--table NAME: the objects table, as the stack names it');
  const client = new DynamoDBClient(defined({ region, endpoint }));
  const items = dynamoDbItemStore({ client, tables: { objects: table, health: '-', control: '-' } });
  console.log(`${await storePlainTexts(items)} items written`);
}
