/**
 * The budgets of the cluster, as this process read them last. So changes of pods cost next to nothing where there are no
 * budgets: one query in 30 seconds, while pods change.
 *
 * A budget that is created or changed meanwhile is unknown to other processes for at most this time. Its own record starts
 * a sync, and a due time starts another one afterwards.
 */
import type { KubePodDisruptionBudget } from '../../kube/types.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ObjectStore } from '../../store/object-store.ts';
import { listObjects } from '../workload-rules/list-objects.ts';

/** Milliseconds. */
export const KNOWN_FOR_MS = 30_000;

export interface KnownBudgets {
  in(namespace: string): Promise<readonly KubePodDisruptionBudget[]>;
  /** A budget was created or changed. */
  forget(): void;
}

export function knownBudgets(objects: ObjectStore, clock: Clock): KnownBudgets {
  let known: { readonly atMs: number; readonly budgets: Promise<readonly KubePodDisruptionBudget[]> } | undefined;
  const read = (): Promise<readonly KubePodDisruptionBudget[]> => {
    const nowMs = clock.nowMs();
    if (known === undefined || nowMs - known.atMs >= KNOWN_FOR_MS) {
      const budgets = listObjects({ objects }, 'poddisruptionbudgets', '');
      known = { atMs: nowMs, budgets };
      // A failed read is repeated by the next caller.
      budgets.catch(() => {
        known = undefined;
      });
    }
    return known.budgets;
  };
  return {
    in: async (namespace) => (await read()).filter(({ metadata }) => metadata.namespace === namespace),
    forget: () => {
      known = undefined;
    },
  };
}
