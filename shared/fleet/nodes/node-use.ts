/**
 * How often the set of pods of a node has grown, in the `control` table:
 *
 *   pk `use#<shard>` sk <node name>   v: incremented by every transaction that binds a pod to the node or resizes one
 *
 * Whoever binds a pod reads `v`, then the pods of the node, and binds on the condition that `v` is unchanged. So no
 * binding overlooks another one. Pods that leave the node only free what it offers and do not change `v`.
 *
 * The row is deleted after its Node (functions/scheduler/work.ts), and `v` begins again at 1. The copy of the
 * scheduler forgets the version when it reads a new Node, so it never compares versions of two rows.
 */
import { countedText } from '../../kinds/pods/pod-needs.ts';
import type { KubePod } from '../../kinds/types.ts';
import {
  type Condition,
  controlPages,
  type DeleteWrite,
  type ItemKey,
  type ItemStore,
  type TransactWrite,
  type UpdateWrite,
} from '../../store/item-store.ts';
import { is, lacks, shardOf } from '../../store/layout.ts';
import { nodeNameOf } from '../../store/object-record.ts';
import type { ObjectWrite } from '../../store/object-store.ts';

/** A partition accepts 1,000 write units per second; a binding needs two. */
const SHARDS = 16;

const partitionOf = (shard: number): string => `use#${shard}`;
const keyOf = (nodeName: string): ItemKey => ({
  table: 'control',
  pk: partitionOf(shardOf(nodeName, SHARDS)),
  sk: nodeName,
});

const unchanged = (version: number): Condition => (version === 0 ? lacks('v') : is('v', version));

/** For the transaction that binds a pod by the state that was read at `seenVersion`. */
export const useNode = (nodeName: string, seenVersion: number): UpdateWrite => ({
  kind: 'update',
  key: keyOf(nodeName),
  add: { v: 1 },
  when: unchanged(seenVersion),
});

/** For the transaction that deletes the row of a node that no longer exists. */
export const dropUse = (nodeName: string, seenVersion: number): DeleteWrite => ({
  kind: 'delete',
  key: keyOf(nodeName),
  when: unchanged(seenVersion),
});

/** 0: no pod was bound to the node since the row began. */
export const useVersionOf = (item: { readonly [name: string]: unknown } | undefined): number => {
  const version = item?.['v'];
  return typeof version === 'number' ? version : 0;
};

/** Versions by node name, strongly consistent. Absent: 0. */
export async function readNodeUses(items: ItemStore): Promise<Map<string, number>> {
  const versions = new Map<string, number>();
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
  await Promise.all(
    shards.map(async (shard) => {
      const pages = controlPages(items, partitionOf(shard), {
        consistent: true,
        tooMany: 'there are more nodes with pods than one read may return',
      });
      for await (const page of pages) for (const item of page) versions.set(item['sk'] as string, useVersionOf(item));
    }),
  );
  return versions;
}

const isActive = ({ status }: KubePod): boolean => status?.phase !== 'Succeeded' && status?.phase !== 'Failed';

/** The node on which a pod counts; undefined: on none. */
const activeNodeOf = (pod: KubePod | undefined): string | undefined =>
  pod !== undefined && isActive(pod) ? nodeNameOf('pods', pod) : undefined;

const changesRequests = (pod: KubePod, previous: KubePod | undefined): boolean =>
  previous !== undefined && pod.spec !== previous.spec && countedText(pod) !== countedText(previous);

/**
 * For a client's write of a pod, in the same transaction, when the pod begins to count on a node, or counts with other
 * requests.
 */
export function podUseWrites(write: ObjectWrite): TransactWrite[] {
  if (write.kind === 'delete') return [];
  const nodeName = activeNodeOf(write.object);
  const previous: KubePod | undefined = write.kind === 'update' ? write.previous : undefined;
  // A write that leaves the spec as it is passes on the same spec.
  const isSame = nodeName === activeNodeOf(previous) && !changesRequests(write.object, previous);
  if (nodeName === undefined || isSame) return [];
  return [{ kind: 'update', key: keyOf(nodeName), add: { v: 1 } }];
}
