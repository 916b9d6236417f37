/**
 * Disruption budgets whose status is true whenever it is read: counted from the pods there are, at the time of asking.
 * Nobody has to follow pods for that. A watch shows what was stored, which an eviction brings up to date.
 *
 * Costs a read of the namespace's pods, for each namespace with a budget in the answer.
 */

import type { KubeObject } from '../../kube/types.ts';
import { covers, withBudgetStatus } from '../kinds/budget-status.ts';
import type { ResourceStorage } from './resource-storage.ts';

const PAGE_ITEMS = 500;
/** A bound, not a limit anyone meets: 10 million objects. */
const PAGES_MAX = 20_000;

export interface Budgets {
  readonly storage: ResourceStorage;
  covering(pod: KubeObject): Promise<readonly KubeObject[]>;
}

export function budgetsOver(stored: ResourceStorage, pods: ResourceStorage): Budgets {
  async function counted(budgets: readonly KubeObject[]): Promise<readonly KubeObject[]> {
    const podsOf = new Map<string, readonly KubeObject[]>();
    for (const { metadata } of budgets) {
      const namespace = metadata.namespace ?? '';
      if (!podsOf.has(namespace)) podsOf.set(namespace, await everything(pods, namespace));
    }
    return budgets.map((budget) => withBudgetStatus(budget, podsOf.get(budget.metadata.namespace ?? '') ?? []));
  }
  return {
    storage: {
      ...stored,
      async get(namespace, name) {
        const budget = await stored.get(namespace, name);
        return budget === undefined ? undefined : (await counted([budget]))[0];
      },
      async list(query) {
        const page = await stored.list(query);
        return { ...page, items: await counted(page.items) };
      },
    },
    async covering(pod) {
      const budgets = await everything(stored, pod.metadata.namespace ?? '');
      // Budgets first, pods after: an eviction that came between moved its budget, and ours will be refused.
      return counted(budgets.filter((budget) => covers(budget, pod)));
    },
  };
}

async function everything(storage: ResourceStorage, namespace: string): Promise<readonly KubeObject[]> {
  const all: KubeObject[] = [];
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const read = await storage.list({
      namespace,
      limit: PAGE_ITEMS,
      ...(after === undefined ? {} : { continueAfter: after }),
    });
    all.push(...read.items);
    if (read.next === undefined) return all;
    after = read.next;
  }
  throw new Error('a list did not end');
}
