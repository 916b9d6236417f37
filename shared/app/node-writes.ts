/**
 * What joins the commit of a Node: its digest in the `health` table. Every writer of Nodes, the API and the controllers
 * alike, takes it from here, so that the digest always says what the stored Node says.
 */

import type { KubeNode, KubeObject } from '../kube/types.ts';
import { jsonEqual } from '../kube/wire/json-value.ts';
import type { TransactWrite } from '../ports/item-store.ts';
import { describeNode, forgetNode } from '../store/health-store.ts';
import type { ObjectWrite } from '../store/object-store.ts';
import { digestOf, sameDigest } from './node-digest.ts';

export type NodeWrite =
  | {
      readonly kind: 'create';
      readonly next: KubeObject;
      /** The node itself posted status with it: a sign of life, received now. */
      readonly statusPost: boolean;
      readonly nowMs: number;
    }
  | {
      readonly kind: 'update';
      readonly next: KubeObject;
      readonly old: KubeObject;
      /** As above. Never for a controller's write: what we do to a node is no sign of its life. */
      readonly statusPost: boolean;
      readonly nowMs: number;
    }
  | { readonly kind: 'delete'; readonly old: KubeObject };

/** To be put into the commit's `extra`. An update that the monitor need not know of joins nothing. */
export function healthWritesFor(write: NodeWrite): TransactWrite[] {
  if (write.kind === 'delete') return [forgetNode(write.old.metadata.name ?? '')];
  const digest = digestOf(write.next);
  if (write.kind === 'update' && !write.statusPost && sameDigest(digest, digestOf(write.old))) return [];
  return [
    describeNode(
      write.next.metadata.name ?? '',
      { ...digest, ...(write.statusPost ? { statusAtMs: write.nowMs } : {}) },
      { isNew: write.kind === 'create' },
    ),
  ];
}

/**
 * The same for a Node that came through the API. Status changes through the API are posts of the node: the main
 * resource leaves status alone, and a Node that is created with conditions brings its first post along.
 */
export function nodeHealthWrites(write: ObjectWrite, nowMs: number): TransactWrite[] {
  switch (write.kind) {
    case 'create':
      return healthWritesFor({
        kind: 'create',
        next: write.object,
        statusPost: ((write.object as KubeNode).status?.conditions ?? []).length > 0,
        nowMs,
      });
    case 'update':
      return healthWritesFor({
        kind: 'update',
        next: write.object,
        old: write.previous,
        statusPost: !jsonEqual(write.object.status, write.previous.status),
        nowMs,
      });
    case 'delete':
      return healthWritesFor({ kind: 'delete', old: write.previous });
  }
}
