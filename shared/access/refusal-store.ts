/**
 * Refused requests in the `control` table, one item per minute and identity:
 *
 *   pk `refusals` sk <start of the minute, ms>-<hash of the identity>
 *                 identity, kind, over, n: number of requests, ttl epoch seconds
 *
 * Each environment of a function adds what it refused, at most once per minute and identity. So a minute may contain
 * requests of the minute before.
 */

import type { Item, ItemStore, ItemUpdater } from '../store/item-store.ts';
import { shortHash } from '../text.ts';

const PARTITION = 'refusals';
export const REFUSAL_MINUTE_MS = 60_000;
/** Nothing reads an older item. Seconds. */
const KEPT_SECONDS = 3_600;
/** Identities of one minute that are read. An identity is a machine, a person or a service account that signed in. */
const READ_MAX = 100;

export interface RefusedIdentity {
  readonly kind: string;
  readonly username: string;
  /** The limit: `rate` of requests, or `time` that they use. */
  readonly over: string;
  readonly count: number;
}

export const refusalMinuteOf = (atMs: number): number => Math.floor(atMs / REFUSAL_MINUTE_MS) * REFUSAL_MINUTE_MS;

export const refusalsAdded =
  (items: ItemUpdater) =>
  async ({ kind, username, over, count }: RefusedIdentity, nowMs: number): Promise<void> => {
    const minuteMs = refusalMinuteOf(nowMs);
    await items.write({
      kind: 'update',
      key: { table: 'control', pk: PARTITION, sk: `${minuteMs}-${shortHash(username)}` },
      set: { identity: username, kind, over, ttl: Math.ceil(minuteMs / 1_000) + KEPT_SECONDS },
      add: { n: count },
    });
  };

/** Refusals of the minute that begins at this time. */
export async function refusalsOf(
  items: Pick<ItemStore, 'query'>,
  minuteMs: number,
): Promise<readonly RefusedIdentity[]> {
  const { items: found } = await items.query({
    table: 'control',
    pk: PARTITION,
    beginsWith: `${minuteMs}-`,
    consistent: false,
    limit: READ_MAX,
  });
  return found.map(identityOf);
}

const identityOf = ({ identity, kind, over, n }: Item): RefusedIdentity => ({
  username: String(identity),
  kind: String(kind),
  over: String(over),
  count: Number(n),
});
