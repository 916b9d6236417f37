/**
 * Labels and taints of every Node, which a process keeps between syncs. A sync reads only what changed since the last
 * one.
 *
 * Exact: a read returns every change that was committed before it began (shared/store/shard-changes.ts).
 *
 * Cost: one read unit per shard of Nodes, and what changed. The first read of a process lists all Nodes.
 */

import type { Clock } from '../../../shared/clock.ts';
import { shardsOf } from '../../../shared/kinds/resources.ts';
import type { KubeNode } from '../../../shared/kinds/types.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import type { ObjectStore } from '../../../shared/store/object-store.ts';
import { readShardChanges, readShardCursors, type ShardCursors } from '../../../shared/store/shard-changes.ts';
import { listObjects } from '../pods/list-objects.ts';
import { type DaemonNode, daemonNodeOf } from './placement.rule.ts';

export interface NodeCopy {
  /** Every Node. */
  read(): Promise<readonly DaemonNode[]>;
  /** The same from a list of all Nodes, which replaces the copy. */
  list(): Promise<readonly DaemonNode[]>;
}

interface Known {
  readonly version: number;
  readonly node: DaemonNode;
}

const RESOURCE = 'nodes';

export function nodeCopy(dependencies: {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly objects: ObjectStore;
}): NodeCopy {
  const options = { ...dependencies, shardsOf };
  let known = new Map<string, Known>();
  let cursors: ShardCursors | undefined;
  let nodes: readonly DaemonNode[] = [];
  let running: Promise<readonly DaemonNode[]> | undefined;
  let next: Promise<readonly DaemonNode[]> | undefined;

  const knownOf = (node: KubeNode): Known => ({
    version: Number(node.metadata.resourceVersion ?? 0),
    node: daemonNodeOf(node),
  });

  async function list(): Promise<readonly DaemonNode[]> {
    // Before the list: a change that the list lacks is read again.
    const listedAt = await readShardCursors(options, RESOURCE);
    const listed = (await listObjects(dependencies, RESOURCE, '')) as readonly KubeNode[];
    known = new Map(listed.map((node) => [node.metadata.name ?? '', knownOf(node)]));
    cursors = listedAt;
    nodes = [...known.values()].map(({ node }) => node);
    return nodes;
  }

  async function refresh(): Promise<readonly DaemonNode[]> {
    if (cursors === undefined) return list();
    const read = await readShardChanges(options, RESOURCE, cursors);
    if (read.kind === 'expired') return list();
    for (const { type, object } of read.changes) {
      const changed = knownOf(object);
      const { name } = changed.node;
      // The list may have a newer version than its cursors.
      if ((known.get(name)?.version ?? 0) > changed.version) continue;
      if (type === 'DELETED') known.delete(name);
      else known.set(name, changed);
    }
    cursors = read.cursors;
    if (read.changes.length > 0) nodes = [...known.values()].map(({ node }) => node);
    return nodes;
  }

  function start(run: () => Promise<readonly DaemonNode[]>): Promise<readonly DaemonNode[]> {
    running = run().finally(() => {
      running = undefined;
    });
    return running;
  }

  /** One at a time. A call during a read needs one that begins later; all such calls share it. */
  function queued(run: () => Promise<readonly DaemonNode[]>): Promise<readonly DaemonNode[]> {
    if (running === undefined) return start(run);
    next ??= running
      .catch(() => {})
      .then(() => {
        next = undefined;
        return start(run);
      });
    return next;
  }

  return { read: () => queued(refresh), list: () => queued(list) };
}
