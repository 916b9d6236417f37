/**
 * All objects of a resource, page by page.
 *
 * The objects of one kind that select pods, as this process read them last. So changes of pods cost next to nothing
 * where there are none: one query in 30 seconds, while pods change.
 *
 * One that is created or changed meanwhile is unknown to other processes for at most this time. Its own record starts
 * a sync, and a due time starts another one afterwards.
 *
 * Spaces what reads all pods of a namespace. Each change of a pod may change the count, and the count costs what the
 * namespace has: without a pause, the creation of 10,000 pods, or a slow rollout among them, would count for as long as
 * it lasts, and delay the workloads of every other namespace. A count that reads up to FREE_OBJECTS is never spaced.
 *
 * Known in one process. Others count at most as often again.
 */

import type { Clock } from '../../shared/clock.ts';
import { defined } from '../../shared/defined.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import type { ObjectStore } from '../../shared/store/object-store.ts';

const PAGE_OBJECTS = 500;
const PAGES_MAX = 200;

/**
 * Strongly consistent. `namespace`: '' for every namespace.
 *
 * @throws StoreFault when there are more than one read may return
 */
export async function listObjects(
  { objects }: { readonly objects: ObjectStore },
  resource: string,
  namespace: string,
): Promise<readonly KubeObject[]> {
  const found: KubeObject[] = [];
  let continueAfter: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await objects.list({ resource, namespace, limit: PAGE_OBJECTS, ...defined({ continueAfter }) });
    found.push(...page.objects);
    if (page.next === undefined) return found;
    continueAfter = page.next;
  }
  throw new StoreFault('too-large', `there are more ${resource} than one read may return`, { retryable: false });
}

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

const FREE_OBJECTS = 5_000;
/** An object needs 0.03 ms of one core to be read, so a count needs 3 % of it. */
const PAUSE_MS_PER_OBJECT = 1;
/** Milliseconds. */
const PAUSE_MS_MAX = 30_000;
/** Counts in memory. The oldest one is dropped first, and is then not spaced. */
const KNOWN_MAX = 1_000;

export interface SpacedCounts {
  /** When it may begin. Epoch milliseconds; undefined: now. `name`: of what is counted. */
  pausedUntilMs(name: string): number | undefined;
  /** `count` gets the objects, which are counted as it reads them. */
  run(name: string, objects: ObjectStore, count: (objects: ObjectStore) => Promise<void>): Promise<void>;
}

export function spacedCounts(clock: Clock): SpacedCounts {
  const pausedUntilMs = new Map<string, number>();
  return {
    pausedUntilMs(name) {
      const untilMs = pausedUntilMs.get(name);
      return untilMs === undefined || untilMs <= clock.nowMs() ? undefined : untilMs;
    },
    async run(name, objects, count) {
      let read = 0;
      try {
        await count({
          ...objects,
          async list(request) {
            const page = await objects.list(request);
            read += page.objects.length;
            return page;
          },
        });
      } finally {
        pausedUntilMs.delete(name);
        const pauseMs = Math.min(PAUSE_MS_MAX, PAUSE_MS_PER_OBJECT * read);
        if (read > FREE_OBJECTS) pausedUntilMs.set(name, clock.nowMs() + pauseMs);
        if (pausedUntilMs.size > KNOWN_MAX) pausedUntilMs.delete(pausedUntilMs.keys().next().value as string);
      }
    },
  };
}
