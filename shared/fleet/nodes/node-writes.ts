/**
 * The writes that belong to every commit of a Node: its digest in the `health` table. The API and the controllers both
 * use them, so the digest always matches the stored Node.
 */

import { defined } from '../../defined.ts';
import type { KubeNode, KubeObject } from '../../kinds/types.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import type { TransactWrite } from '../../store/item-store.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { describeNode, forgetNode } from './health-store.ts';
import { type DigestOfNode, digestOf, sameDigest } from './node-digest.ts';

export type NodeWrite =
  | {
      readonly kind: 'create';
      readonly next: KubeObject;
      /** The write is a status post of the node itself, received now. */
      readonly statusPost: boolean;
      readonly nowMs: number;
    }
  | {
      readonly kind: 'update';
      readonly next: KubeObject;
      readonly old: KubeObject;
      /**
       * Whether the write is a status post. Never for a controller's write, which does not prove that the node is
       * alive.
       */
      readonly statusPost: boolean;
      readonly nowMs: number;
    }
  | { readonly kind: 'delete'; readonly old: KubeObject };

/** For the commit's `extra`. Empty for an update that does not change the digest. */
export function healthWritesFor(write: NodeWrite): TransactWrite[] {
  if (write.kind === 'delete') return [forgetNode(write.old.metadata.name ?? '')];
  const digest = digestOf(write.next);
  const before = write.kind === 'update' ? digestOf(write.old) : undefined;
  if (before !== undefined && !write.statusPost && sameDigest(digest, before)) return [];
  const isMoved = before !== undefined && before.profile !== digest.profile;
  return [
    describeNode(
      write.next.metadata.name ?? '',
      {
        ...digest,
        ...defined({
          statusAtMs: write.statusPost ? write.nowMs : undefined,
          profileChangedAtMs: isMoved ? write.nowMs : undefined,
          silenceEndedAtMs: endOfSilence(before, digest, write.nowMs),
        }),
      },
      { isNew: write.kind === 'create' },
    ),
  ];
}

/** When this write ends a promise: now, or at the promised time if that is over; undefined when it ends none. */
function endOfSilence(before: DigestOfNode | undefined, next: DigestOfNode, nowMs: number): number | undefined {
  if (before?.plannedUntilMs === undefined || next.plannedUntilMs !== undefined) return undefined;
  return Math.min(before.plannedUntilMs, nowMs);
}

const hasConditions = (node: KubeNode): boolean => (node.status?.conditions ?? []).length > 0;
const readyOf = (node: KubeNode) => node.status?.conditions?.find(({ type }) => type === 'Ready');

/**
 * The same for a write through the API. A change of the Ready condition is a status post of the node, because its
 * heartbeat time changes with every post. Other changes, such as capacity or volumes, do not prove that the node is
 * alive. A Node that is created with conditions includes its first post.
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
        statusPost: hasConditions(write.object),
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
