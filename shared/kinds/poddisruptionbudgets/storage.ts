/**
 * Disruption budgets with a status that is counted at the time of the read, so an eviction is decided on what is stored
 * then. A watch shows the stored status, which the controller of budgets follows within seconds.
 *
 * Cost: a read of all pods of each namespace with a budget in the response, and of their controllers.
 */

import type { KindStorage } from '../../api/kind-storage.ts';
import type { ResourceStorage } from '../../api/resource-storage.ts';
import { defined } from '../../defined.ts';
import { type Controllers, expectedPodsOf } from '../pods/budget-scale.ts';
import { coveredBy, withBudgetStatus } from '../pods/budget-status.ts';
import type { KubeObject } from '../types.ts';
import { poddisruptionbudgets } from './serve.ts';

const PAGE_ITEMS = 500;
/** 10 million objects: a bound that no cluster reaches. */
const PAGES_MAX = 20_000;

export interface Budgets {
  readonly storage: ResourceStorage;
  /** Every budget of the pod, with its current status. */
  covering(pod: KubeObject): Promise<readonly KubeObject[]>;
}

export function budgetsOver(stored: ResourceStorage, pods: ResourceStorage, controllers: Controllers): Budgets {
  async function withCurrentStatus(budgets: readonly KubeObject[]): Promise<readonly KubeObject[]> {
    const podsOf = new Map<string, readonly KubeObject[]>();
    for (const { metadata } of budgets) {
      const namespace = metadata.namespace ?? '';
      if (!podsOf.has(namespace)) podsOf.set(namespace, await listAll(pods, namespace));
    }
    return Promise.all(
      budgets.map(async (budget) => {
        const some = podsOf.get(budget.metadata.namespace ?? '') ?? [];
        return withBudgetStatus(budget, some, await expectedPodsOf(budget, some, controllers));
      }),
    );
  }
  return {
    storage: {
      ...stored,
      async get(namespace, name) {
        const budget = await stored.get(namespace, name);
        return budget === undefined ? undefined : (await withCurrentStatus([budget]))[0];
      },
      async list(query) {
        const page = await stored.list(query);
        return { ...page, items: await withCurrentStatus(page.items) };
      },
    },
    async covering(pod) {
      const budgets = await listAll(stored, pod.metadata.namespace ?? '');
      // Budgets are read before pods. An eviction in between changed its budget, so our write of that budget will fail.
      return withCurrentStatus(budgets.filter((budget) => coveredBy(budget)(pod)));
    },
  };
}

async function listAll(storage: ResourceStorage, namespace: string): Promise<readonly KubeObject[]> {
  const all: KubeObject[] = [];
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const read = await storage.list({ namespace, limit: PAGE_ITEMS, ...defined({ continueAfter: after }) });
    all.push(...read.items);
    if (read.next === undefined) return all;
    after = read.next;
  }
  throw new Error('a list did not end');
}

export const budgetStorages: readonly KindStorage[] = [[poddisruptionbudgets, (_, { budgets }) => budgets]];
