/**
 * A renewal of a Lease that is no node's, such as that of a leader election: one conditional update of its item,
 * without a log entry and a head. Watches of Leases compare reads (storage.ts), so they see it.
 *
 * Of two candidates that write on one version one is refused, as with a commit: the condition is the same. A commit
 * that follows has a higher version, whatever clock the renewal had: object-store.ts exceeds the version that it
 * replaces.
 *
 * Cost: one write unit per KB of the item, which has less than one: client-go's Lease has 500 bytes with its
 * managedFields. A commit of it costs six.
 */
import type { WriteResult } from '../../api/resource-storage.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import type { Item, ItemStore } from '../../store/item-store.ts';
import {
  changeOf,
  holds,
  objectPartition,
  objectSortKey,
  RESOURCE_VERSIONS_PER_MS,
  shardOf,
} from '../../store/layout.ts';
import { OBJECT, objectOf, objectText, packObjectText, resourceVersionOf } from '../../store/object-record.ts';
import { CLIENT_TEXT_MAX } from '../../store/object-store.ts';
import type { KubeObject } from '../types.ts';
import { LEASES } from './resource.ts';

/** What a commit has to see: the index of owners, and deletions. */
const committedParts = ({ metadata }: KubeObject) => [
  metadata.uid,
  metadata.ownerReferences ?? [],
  metadata.finalizers ?? [],
  metadata.deletionTimestamp,
];

/** Whether the change may be written without a commit. */
export const isRenewal = (next: KubeObject, old: KubeObject): boolean =>
  jsonEqual(committedParts(next), committedParts(old)) && objectText(next).length <= CLIENT_TEXT_MAX;

/** Above the version that it replaces and the clock, and of the shard. @param tie in [0, 1) */
function versionAfter(old: KubeObject, shard: number, at: { readonly nowMs: number; readonly tie: number }): number {
  const nowVersion = at.nowMs * RESOURCE_VERSIONS_PER_MS + Math.floor(at.tie * RESOURCE_VERSIONS_PER_MS);
  const least = Math.max(nowVersion, resourceVersionOf(old) + 1);
  const { shards } = LEASES;
  return least + ((((shard - least) % shards) + shards) % shards);
}

export async function renewObject(
  items: Pick<ItemStore, 'write'>,
  { next, old }: { readonly next: KubeObject; readonly old: KubeObject },
  at: { readonly nowMs: number; readonly tie: number },
): Promise<WriteResult> {
  const { namespace = '', name = '' } = old.metadata;
  const sk = objectSortKey(namespace, name);
  const shard = shardOf(sk, LEASES.shards);
  const version = versionAfter(old, shard, at);
  const text = objectText(next);
  const { set } = changeOf(
    { version: OBJECT.version, object: OBJECT.object },
    { version, object: packObjectText(text) },
  );
  const outcome = await items.write({
    kind: 'update',
    key: { table: 'objects', pk: objectPartition(LEASES.resource, shard), sk },
    set,
    // The workload controllers have nothing to do for it.
    remove: [OBJECT.changesWorkloads.name],
    when: holds(OBJECT.version, resourceVersionOf(old)),
  });
  const written = { ...next, metadata: { ...next.metadata, resourceVersion: String(version) } };
  return outcome.kind === 'written' || isOurs(outcome.current, written)
    ? { kind: 'written', object: written }
    : { kind: 'conflict' };
}

/** The answer to the first attempt was lost: what refuses the second one is the first. */
const isOurs = (current: Item | undefined, written: KubeObject): boolean =>
  current !== undefined && jsonEqual(objectOf(current), written);
