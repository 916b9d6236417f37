/**
 * The status of ResourceQuotas: what the objects of their namespace use. Source: pkg/controller/resourcequota.
 *
 * Admission adds new objects in their own transaction. This controller counts all objects of the namespace when the
 * quota is created or changed, when an object was removed, and when a pod stopped to count or was resized. Its write is
 * refused if the quota changed since it was read, so a creation in the meantime is never lost.
 *
 * Cost of a count: a read of the counted objects, and a write if the use changed.
 */
import { defined } from '../../shared/defined.ts';
import { ABSENT_MS } from '../../shared/kinds/quotas/namespace-policies.ts';
import { type CountedObjects, countedBy, outlivedAtMs, recountedQuota } from '../../shared/kinds/quotas/quota.ts';
import { storedResources } from '../../shared/kinds/resources.ts';
import type { KubeResourceQuota, ObjectRef } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import type { WorkloadDependencies } from './dependencies.ts';
import { listObjects } from './object-lists.ts';
import { isCommitted } from './owner.ts';
import { customNamespacedKinds } from './stored-kinds.ts';

/** Counts that a creation overtakes, one after the other. */
const ATTEMPTS_MAX = 6;
/** Until every process enforces a new quota: some remember for a while that the namespace had none. */
const FIRST_RECOUNT_MS = ABSENT_MS + 1_000;

/** Metrics are not stored. */
const counted = storedResources.filter((each) => each.namespaced && each.verbs.includes('create'));

export interface QuotaReport {
  /** When to count again. Epoch milliseconds; absent: at the next change. */
  readonly lookAgainAtMs?: number;
}

type Dependencies = Pick<WorkloadDependencies, 'objects' | 'clock' | 'definitions'>;

/** @throws StoreFault retryable, when objects were created during every attempt */
export async function syncQuota(dependencies: Dependencies, ref: ObjectRef): Promise<QuotaReport> {
  const { objects, clock } = dependencies;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const quota: KubeResourceQuota | undefined = await objects.get(ref);
    if (quota === undefined) return {};
    const found = await Promise.all([
      ...countedBy(quota, counted).map(async ({ group, resource }): Promise<CountedObjects> => {
        return { group, resource, objects: await listObjects(dependencies, resource, ref.namespace) };
      }),
      ...(await customKindsOf(dependencies, quota)).map(
        async ({ group, resource, plural }): Promise<CountedObjects> => {
          return { group, resource: plural, objects: await listObjects(dependencies, resource, ref.namespace) };
        },
      ),
    ]);
    const nowMs = clock.nowMs();
    const next = recountedQuota(quota, found, nowMs);
    const report = defined({ lookAgainAtMs: nextCountMs(quota, found, nowMs) });
    if (next === undefined) return report;
    const write = { kind: 'update', ref, object: next, previous: quota } as const;
    if (isCommitted(await objects.commit({ writes: [write] }))) return report;
  }
  throw new StoreFault('throttled', 'the quota changed too often to be counted', { retryable: true });
}

/** Kinds of definitions that the quota counts. One that names no group with a dot reads no definition. */
async function customKindsOf(dependencies: Dependencies, quota: KubeResourceQuota) {
  const counts = Object.keys(quota.spec?.hard ?? {}).filter((name) => /^count\/[^.]+\..+\./.test(name));
  if (counts.length === 0) return [];
  const kinds = await customNamespacedKinds(dependencies);
  return kinds.filter(({ resource }) => counts.includes(`count/${resource}`));
}

/** The time from which a pod no longer counts, or the second count of a new quota. */
function nextCountMs(quota: KubeResourceQuota, found: readonly CountedObjects[], nowMs: number): number | undefined {
  const pods = found.filter(({ group, resource }) => group === '' && resource === 'pods').flatMap((of) => of.objects);
  const outlived = pods.flatMap((pod) => outlivedAtMs(pod) ?? []);
  const createdMs = parseTimeMs(quota.metadata.creationTimestamp);
  const settled = createdMs === undefined ? [] : [createdMs + FIRST_RECOUNT_MS];
  const times = [...outlived, ...settled].filter((atMs) => atMs >= nowMs);
  // Counted after that time, and not at it.
  return times.length === 0 ? undefined : Math.min(...times) + 1_000;
}
