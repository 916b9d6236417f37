/**
 * What node-monitor adds to the row of a node (health-row.ts):
 *
 *   m  when we marked it Unknown for its silence (ms); goes away with the next status post
 *   w  1: pods of this node are still to be set not ready
 */
import type { NodeHealth } from '../domain/node-health.ts';
import { type Item, type ItemStore, StoreFault, type UpdateWrite } from '../ports/item-store.ts';
import { DIGEST_ATTRIBUTES, healthKey, nodeHealthOf } from './health-row.ts';
import { describeNode, markUnknown, type NodeDigest } from './health-store.ts';
import { HEALTH_SHARDS, healthPartition } from './layout.ts';

const MARKED_AT = 'm';
const PODS_TO_MARK = 'w';
const SCANNED_ATTRIBUTES = [...DIGEST_ATTRIBUTES, MARKED_AT, PODS_TO_MARK];
/** Pages of one shard in a scan: 1 MB each, about 5,000 nodes. */
const SCAN_PAGES_MAX = 64;
/** Shards read at once. */
const SCAN_CONCURRENCY_MAX = 16;

/** The digest of a row with the monitor's own marks; undefined for a row that only holds a lease. */
export function fleetHealthOf(row: Item): NodeHealth | undefined {
  const health = nodeHealthOf(row);
  if (health === undefined) return undefined;
  const markedAtMs = row[MARKED_AT] as number | undefined;
  if (markedAtMs === undefined && row[PODS_TO_MARK] === undefined) return health;
  return {
    ...health,
    ...(markedAtMs === undefined ? {} : { markedAtMs }),
    ...(row[PODS_TO_MARK] === undefined ? {} : { podsToMark: true }),
  };
}

/**
 * The digest of every Node. A shard that cannot be read is a fault, never a smaller world. Eventually consistent reads
 * cost half and only ever make a beat look older: condition before acting.
 */
export async function scanFleet(items: ItemStore, options: { readonly consistent: boolean }): Promise<NodeHealth[]> {
  const shards: NodeHealth[][] = Array.from({ length: HEALTH_SHARDS }, () => []);
  let nextShard = 0;
  const work = async (): Promise<void> => {
    while (nextShard < HEALTH_SHARDS) {
      const shard = nextShard;
      nextShard += 1;
      await scanShard(items, shard, options.consistent, shards[shard]!);
    }
  };
  await Promise.all(Array.from({ length: SCAN_CONCURRENCY_MAX }, work));
  return shards.flat();
}

async function scanShard(items: ItemStore, shard: number, consistent: boolean, into: NodeHealth[]): Promise<void> {
  let after: string | undefined;
  for (let pages = 0; pages < SCAN_PAGES_MAX; pages += 1) {
    const page = await items.query({
      table: 'health',
      pk: healthPartition(shard),
      consistent,
      attributes: SCANNED_ATTRIBUTES,
      ...(after === undefined ? {} : { after }),
    });
    for (const row of page.items) {
      const health = fleetHealthOf(row);
      if (health !== undefined) into.push(health);
    }
    if (page.next === undefined) return;
    after = page.next;
  }
  throw new StoreFault('too-large', 'a shard of the health table has more pages than a scan reads', {
    retryable: false,
  });
}

/** Digests of these nodes, strongly consistent, by name; one that is not there has no Node. */
export async function readFleetHealth(
  items: ItemStore,
  nodeNames: readonly string[],
): Promise<ReadonlyMap<string, NodeHealth>> {
  if (nodeNames.length === 0) return new Map();
  const rows = await items.getMany(nodeNames.map(healthKey), { consistent: true });
  const found = new Map<string, NodeHealth>();
  for (const row of rows) {
    const health = row === undefined ? undefined : fleetHealthOf(row);
    if (health !== undefined) found.set(health.nodeName, health);
  }
  return found;
}

/**
 * Marks a node Unknown for its silence, to be committed together with its Node. A beat or status post received since
 * `seen` was read refuses it: a living node is never marked on old knowledge.
 */
export function markSilent(
  seen: NodeHealth,
  change: { readonly nowMs: number; readonly noExecute: NodeHealth['noExecute']; readonly podsToMark: boolean },
): UpdateWrite {
  const write = markUnknown(seen, { noExecute: change.noExecute });
  return {
    ...write,
    set: { ...write.set, [MARKED_AT]: change.nowMs, ...(change.podsToMark ? { [PODS_TO_MARK]: 1 } : {}) },
  };
}

/**
 * Writes the digest, to be committed together with its Node. A new Node starts without anything an earlier one of its
 * name left behind (D2); a status post ends a mark; a node that is Ready has no pods to be marked.
 */
export function describeFleetNode(
  nodeName: string,
  digest: NodeDigest,
  change: { readonly isNew: boolean },
): UpdateWrite {
  const write = describeNode(nodeName, digest);
  const remove = [...(write.remove ?? [])];
  if (change.isNew || digest.ready !== 'Unknown' || digest.statusAtMs !== undefined) remove.push(MARKED_AT);
  if (change.isNew || digest.ready === 'True') remove.push(PODS_TO_MARK);
  if (change.isNew && digest.statusAtMs === undefined) remove.push('l');
  return { ...write, remove };
}

/** All pods of the node are set not ready: the next pass need not look again. Refused for another Node. */
export const podsMarked = (nodeName: string, uid: string): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  remove: [PODS_TO_MARK],
  when: {
    kind: 'all',
    of: [
      { kind: 'compare', attribute: 'u', op: '=', value: uid },
      { kind: 'has', attribute: PODS_TO_MARK },
    ],
  },
});
