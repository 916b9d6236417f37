/**
 * Reads one Node, decides, and commits it with its digest. Retried a bounded number of times on a conflict.
 *
 * The writes that belong to every commit of a Node: its digest in the `health` table. The API and the controllers both
 * use them, so the digest always matches the stored Node.
 */

import { defined } from '../../defined.ts';
import { shardsOf } from '../../kinds/resources.ts';
import type { KubeNode, KubeObject, ObjectRef, Taint } from '../../kinds/types.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import { type CheckWrite, type ItemKey, StoreFault, type TransactWrite } from '../../store/item-store.ts';
import { is } from '../../store/layout.ts';
import { type ObjectStore, type ObjectWrite, objectKey } from '../../store/object-store.ts';
import { describeNode, forgetNode } from './health-store.ts';
import { type DigestOfNode, digestOf, sameDigest } from './node-digest.ts';

const ATTEMPTS_MAX = 6;

export const nodeRef = (nodeName: string): ObjectRef => ({ resource: 'nodes', namespace: '', name: nodeName });

const nodeKey = (nodeName: string): ItemKey => objectKey(nodeRef(nodeName), shardsOf('nodes'));

/** For a commit's `extra`: the Node does not exist. */
export const nodeAbsent = (nodeName: string): CheckWrite => ({
  kind: 'check',
  key: nodeKey(nodeName),
  when: { kind: 'itemAbsent' },
});

/** For a commit's `extra`: the Node has this version. */
export const nodeUnchanged = (nodeName: string, resourceVersion: number): CheckWrite => ({
  kind: 'check',
  key: nodeKey(nodeName),
  when: is('rv', resourceVersion),
});

export type NodeChangeOutcome =
  | { readonly kind: 'written'; readonly node: KubeNode }
  /** Its current state needs no change. */
  | { readonly kind: 'nothing' }
  /** The Node does not exist, or has another uid. */
  | { readonly kind: 'gone' }
  /** A condition in `extra` failed; index in `extra`. */
  | { readonly kind: 'refused'; readonly index: number }
  /** The change would exceed the size limit of an item. `node`: the Node as stored. */
  | { readonly kind: 'tooLarge'; readonly node: KubeNode };

export interface NodeChange {
  readonly next: KubeNode;
  /** Events recorded with the change. Those that exist already are left out. */
  readonly events?: readonly ObjectWrite[];
  /** Further writes of the commit, before the digest. */
  readonly extra?: readonly TransactWrite[];
  /** Replaces the digest that follows from `next`, for example by one with a condition. */
  readonly health?: (plain: readonly TransactWrite[]) => readonly TransactWrite[];
}

/**
 * `decide` receives the current Node and returns its change; undefined for none. `first`: the Node as the caller has
 * just read it, which saves a read.
 *
 * @throws StoreFault when other commits kept conflicting
 */
export async function changeNode(
  objects: ObjectStore,
  target: { readonly nodeName: string; readonly uid: string; readonly nowMs: number; readonly first?: KubeNode },
  decide: (node: KubeNode) => NodeChange | undefined,
): Promise<NodeChangeOutcome> {
  const ref = nodeRef(target.nodeName);
  let node: KubeNode | undefined = target.first ?? (await objects.get(ref));
  const recorded = new Set<string>();
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    if (node === undefined || node.metadata.uid !== target.uid) return { kind: 'gone' };
    const change = decide(node);
    if (change === undefined) return { kind: 'nothing' };
    const extra = change.extra ?? [];
    const events = (change.events ?? []).filter((event) => !recorded.has(event.ref.name));
    const plain = healthWritesFor({
      kind: 'update',
      next: change.next,
      old: node,
      statusPost: false,
      nowMs: target.nowMs,
    });
    const outcome = await objects.commit({
      writes: [{ kind: 'update', ref, object: change.next, previous: node }, ...events],
      extra: [...extra, ...(change.health?.(plain) ?? plain)],
    });
    switch (outcome.kind) {
      case 'committed':
        return { kind: 'written', node: outcome.objects[0]! };
      case 'extraRefused':
        return { kind: 'refused', index: outcome.index };
      case 'tooLarge':
      case 'overfull':
        return { kind: 'tooLarge', node };
      case 'conflict':
        if (outcome.index === 0) node = outcome.current;
        else recorded.add(events[outcome.index - 1]!.ref.name);
        break;
      case 'contended':
        node = await objects.get(ref);
    }
  }
  throw new StoreFault('throttled', 'the Node changed too often to be written', { retryable: true });
}

/** The Node with these taints. Without taints the field is absent, as in stored Nodes. */
export function withTaints(node: KubeNode, taints: readonly Taint[]): KubeNode {
  const { taints: _, ...spec } = node.spec ?? {};
  return { ...node, spec: taints.length === 0 ? spec : { ...spec, taints: [...taints] } };
}

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
