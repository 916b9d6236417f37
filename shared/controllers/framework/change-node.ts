/** One Node, read, decided upon and committed with its digest; again, bounded, where another write was faster. */

import { shardsOf } from '../../api/storage/cluster-objects.ts';
import type { KubeNode, ObjectRef, Taint } from '../../kube/types.ts';
import { type CheckWrite, type ItemKey, StoreFault, type TransactWrite } from '../../ports/item-store.ts';
import { is } from '../../store/conditions.ts';
import { healthWritesFor } from '../../store/node-writes.ts';
import { type ObjectStore, type ObjectWrite, objectKey } from '../../store/object-store.ts';

const ATTEMPTS_MAX = 6;

export const nodeRef = (nodeName: string): ObjectRef => ({ resource: 'nodes', namespace: '', name: nodeName });

const nodeKey = (nodeName: string): ItemKey => objectKey(nodeRef(nodeName), shardsOf('nodes'));

/** For a commit's `extra`: there is no such Node. */
export const nodeAbsent = (nodeName: string): CheckWrite => ({
  kind: 'check',
  key: nodeKey(nodeName),
  when: { kind: 'itemAbsent' },
});

/** For a commit's `extra`: the Node is at this version. */
export const nodeUnchanged = (nodeName: string, resourceVersion: number): CheckWrite => ({
  kind: 'check',
  key: nodeKey(nodeName),
  when: is('rv', resourceVersion),
});

export type NodeChangeOutcome =
  | { readonly kind: 'written'; readonly node: KubeNode }
  /** As it is, nothing is to be changed. */
  | { readonly kind: 'nothing' }
  /** There is no such Node, or one of another uid. */
  | { readonly kind: 'gone' }
  /** A condition of `extra` did not hold; index in `extra`. */
  | { readonly kind: 'refused'; readonly index: number }
  /** The Node would be larger than an item may be. */
  | { readonly kind: 'tooLarge' };

export interface NodeChange {
  readonly next: KubeNode;
  /** Events told with the change; those told before are left out. */
  readonly events?: readonly ObjectWrite[];
  /** Further writes of the commit. They come before the digest. */
  readonly extra?: readonly TransactWrite[];
  /** Instead of the digest that follows from `next`, such as one with a condition. */
  readonly health?: (plain: readonly TransactWrite[]) => readonly TransactWrite[];
}

/**
 * `decide` gets the Node as it is now and answers what is to become of it, undefined for nothing. `first`: the Node as the
 * caller read it a moment ago, so that it need not be read again.
 *
 * @throws StoreFault when other commits stayed in the way
 */
export async function changeNode(
  objects: ObjectStore,
  target: { readonly nodeName: string; readonly uid: string; readonly nowMs: number; readonly first?: KubeNode },
  decide: (node: KubeNode) => NodeChange | undefined,
): Promise<NodeChangeOutcome> {
  const ref = nodeRef(target.nodeName);
  let node = target.first ?? ((await objects.get(ref)) as KubeNode | undefined);
  const told = new Set<string>();
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    if (node === undefined || node.metadata.uid !== target.uid) return { kind: 'gone' };
    const change = decide(node);
    if (change === undefined) return { kind: 'nothing' };
    const extra = change.extra ?? [];
    const events = (change.events ?? []).filter((event) => !told.has(event.ref.name));
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
        return { kind: 'written', node: outcome.objects[0] as KubeNode };
      case 'extraRefused':
        return { kind: 'refused', index: outcome.index };
      case 'tooLarge':
      case 'overfull':
        return { kind: 'tooLarge' };
      case 'conflict':
        if (outcome.index === 0) node = outcome.current as KubeNode | undefined;
        else told.add(events[outcome.index - 1]!.ref.name);
        break;
      case 'contended':
        node = (await objects.get(ref)) as KubeNode | undefined;
    }
  }
  throw new StoreFault('throttled', 'a Node kept changing under its controller', { retryable: true });
}

/** The Node with these taints; without any the field is absent, as it is stored. */
export function withTaints(node: KubeNode, taints: readonly Taint[]): KubeNode {
  const { taints: _, ...spec } = node.spec ?? {};
  return { ...node, spec: taints.length === 0 ? spec : { ...spec, taints: [...taints] } };
}
