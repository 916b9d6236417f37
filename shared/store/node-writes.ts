/**
 * What joins the commit of a Node: its digest in the `health` table. Every writer of Nodes, the API and the controllers
 * alike, takes it from here, so that the digest always says what the stored Node says.
 */

import type { KubeNode, KubeObject } from '../kube/types.ts';
import { jsonEqual } from '../kube/wire/json-value.ts';
import type { TransactWrite } from '../ports/item-store.ts';
import { describeNode, forgetNode } from './health-store.ts';
import { digestOf, sameDigest } from './node-digest.ts';
import type { ObjectWrite } from './object-store.ts';

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

const readyOf = (node: KubeObject) => (node as KubeNode).status?.conditions?.find(({ type }) => type === 'Ready');

/**
 * The same for a Node that came through the API. A change of the Ready condition is a post of the node, whose heartbeat time
 * moves with each; a person who adds capacity or a controller that notes volumes says nothing of the node's life. A Node
 * that is created with conditions brings its first post along.
 *
 * Source: updateNodeHealth in pkg/controller/nodelifecycle/node_lifecycle_controller.go, which compares the heartbeat
 * times of Ready.
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
        statusPost: !jsonEqual(readyOf(write.object), readyOf(write.previous)),
        nowMs,
      });
    case 'delete':
      return healthWritesFor({ kind: 'delete', old: write.previous });
  }
}
