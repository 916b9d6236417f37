/**
 * What a process keeps of every object of a resource between its works. A read fetches only what changed since the
 * last one.
 *
 * Exact: a read returns every change that was committed before it began (shard-changes.ts).
 *
 * Cost: one read unit per shard of the resource, and what changed. The first read of a process lists all objects.
 */

import type { Clock } from '../clock.ts';
import { shardsOf } from '../kinds/resources.ts';
import type { KubeObject } from '../kinds/types.ts';
import type { ItemStore } from './item-store.ts';
import { objectSortKey } from './layout.ts';
import { readShardChanges, readShardCursors, type ShardCursors } from './shard-changes.ts';

export interface ObjectCopy<Kept> {
  /** Every object. */
  read(): Promise<readonly Kept[]>;
  /** The same from a list of all objects, which replaces the copy. */
  list(): Promise<readonly Kept[]>;
}

export interface ObjectCopyOptions<Kept> {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly resource: string;
  /** All objects of the resource, strongly consistent. */
  readonly listAll: () => Promise<readonly KubeObject[]>;
  readonly keep: (object: KubeObject) => Kept;
}

interface Known<Kept> {
  readonly version: number;
  readonly kept: Kept;
}

const keyOf = ({ metadata: { namespace = '', name = '' } }: KubeObject): string => objectSortKey(namespace, name);

export function objectCopy<Kept>({ resource, listAll, keep, ...store }: ObjectCopyOptions<Kept>): ObjectCopy<Kept> {
  const options = { ...store, shardsOf };
  let known = new Map<string, Known<Kept>>();
  let cursors: ShardCursors | undefined;
  let all: readonly Kept[] = [];
  let running: Promise<readonly Kept[]> | undefined;
  let next: Promise<readonly Kept[]> | undefined;

  const versionOf = ({ metadata }: KubeObject): number => Number(metadata.resourceVersion ?? 0);
  const knownOf = (object: KubeObject): Known<Kept> => ({ version: versionOf(object), kept: keep(object) });

  async function list(): Promise<readonly Kept[]> {
    // Before the list: a change that the list lacks is read again.
    const listedAt = await readShardCursors(options, resource);
    const listed = await listAll();
    known = new Map(listed.map((object) => [keyOf(object), knownOf(object)]));
    cursors = listedAt;
    all = [...known.values()].map(({ kept }) => kept);
    return all;
  }

  async function refresh(): Promise<readonly Kept[]> {
    if (cursors === undefined) return list();
    const read = await readShardChanges(options, resource, cursors);
    if (read.kind === 'expired') return list();
    for (const { type, object } of read.changes) {
      const key = keyOf(object);
      // The list may have a newer version than its cursors.
      if ((known.get(key)?.version ?? 0) > versionOf(object)) continue;
      if (type === 'DELETED') known.delete(key);
      else known.set(key, knownOf(object));
    }
    cursors = read.cursors;
    if (read.changes.length > 0) all = [...known.values()].map(({ kept }) => kept);
    return all;
  }

  function start(run: () => Promise<readonly Kept[]>): Promise<readonly Kept[]> {
    running = run().finally(() => {
      running = undefined;
    });
    return running;
  }

  /** One at a time. A call during a read needs one that begins later; all such calls share it. */
  function queued(run: () => Promise<readonly Kept[]>): Promise<readonly Kept[]> {
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
