/** Reads one Node, decides, and commits it with its digest. Retried a bounded number of times on a conflict. */

import { shardsOf } from '../../kinds/resources.ts';
import type { KubeNode, ObjectRef, Taint } from '../../kinds/types.ts';
import { is } from '../../store/attributes.ts';
import { type CheckWrite, type ItemKey, StoreFault, type TransactWrite } from '../../store/item-store.ts';
import { type ObjectStore, type ObjectWrite, objectKey } from '../../store/object-store.ts';
import { healthWritesFor } from './node-writes.ts';

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
