/**
 * The objects of one kind that select pods, as this process read them last. So changes of pods cost next to nothing
 * where there are none: one query in 30 seconds, while pods change.
 *
 * One that is created or changed meanwhile is unknown to other processes for at most this time. Its own record starts
 * a sync, and a due time starts another one afterwards.
 */

import type { Clock } from '../../../shared/clock.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { ObjectStore } from '../../../shared/store/object-store.ts';
import { listObjects } from './list-objects.ts';

/** Milliseconds. */
export const KNOWN_FOR_MS = 30_000;

export interface KnownSelectors {
  in(namespace: string): Promise<readonly KubeObject[]>;
  /** There are some, in any namespace. */
  exist(): Promise<boolean>;
  /** One was created or changed. */
  forget(): void;
}

/** @param resource plural name */
export function knownSelectors(objects: ObjectStore, clock: Clock, resource: string): KnownSelectors {
  let known: { readonly atMs: number; readonly all: Promise<readonly KubeObject[]> } | undefined;
  const read = (): Promise<readonly KubeObject[]> => {
    const nowMs = clock.nowMs();
    if (known === undefined || nowMs - known.atMs >= KNOWN_FOR_MS) {
      const all = listObjects({ objects }, resource, '');
      known = { atMs: nowMs, all };
      // A failed read is repeated by the next caller.
      all.catch(() => {
        known = undefined;
      });
    }
    return known.all;
  };
  return {
    in: async (namespace) => (await read()).filter(({ metadata }) => metadata.namespace === namespace),
    exist: async () => (await read()).length > 0,
    forget: () => {
      known = undefined;
    },
  };
}
