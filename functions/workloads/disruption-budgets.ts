/**
 * Keeps the status of PodDisruptionBudgets for clients that watch it. An eviction does not rely on it: the API counts
 * the pods when it is asked.
 */
import { defined } from '../../shared/defined.ts';
import { recordEvents, subjectOf } from '../../shared/events/record-event.ts';
import { expectedPodsOf } from '../../shared/kinds/pods/budget-scale.ts';
import type { KubePodDisruptionBudget, ObjectRef } from '../../shared/kinds/types.ts';
import { jsonEqual } from '../../shared/kubernetes/json.ts';
import { selectorFromSpec } from '../../shared/kubernetes/selectors.ts';
import type { WorkloadDependencies } from './dependencies.ts';
import { nextDisruptionEndMs, storedStatus } from './disruption-budgets.rule.ts';
import { KNOWN_FOR_MS, listObjects } from './object-lists.ts';
import { isCommitted, refOfObject, type SyncReport, syncUnlessOvertaken } from './owner.ts';

const CONTROLLER = 'controllermanager';
const BUDGETS = 'poddisruptionbudgets';

export const syncBudget = (dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport> =>
  syncUnlessOvertaken('PodDisruptionBudget', () => attemptSync(dependencies, ref));

/** The budgets of a namespace with another status than they must have. Its pods are read once. */
export async function unsettledBudgets(
  dependencies: WorkloadDependencies,
  namespace: string,
): Promise<readonly KubePodDisruptionBudget[]> {
  const { clock } = dependencies;
  const budgets: readonly KubePodDisruptionBudget[] = await listObjects(dependencies, BUDGETS, namespace);
  if (budgets.length === 0) return [];
  const pods = await listObjects(dependencies, 'pods', namespace);
  const unsettled: KubePodDisruptionBudget[] = [];
  for (const budget of budgets) {
    const expected = await expectedPodsOf(budget, pods, dependencies);
    const status = storedStatus({ budget, pods, expected, nowMs: clock.nowMs() });
    if (!jsonEqual(status, budget.status ?? {})) unsettled.push(budget);
  }
  return unsettled;
}

async function attemptSync(dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport | 'overtaken'> {
  const { objects, clock } = dependencies;
  const budget = (await objects.get(ref)) as KubePodDisruptionBudget | undefined;
  if (budget === undefined || budget.metadata.deletionTimestamp !== undefined) return {};
  const isNew = budget.status?.observedGeneration !== budget.metadata.generation;
  if (isNew) dependencies.budgets.forget();
  const pods = await listObjects(dependencies, 'pods', ref.namespace);
  const expected = await expectedPodsOf(budget, pods, dependencies);
  const nowMs = clock.nowMs();
  const status = storedStatus({ budget, pods, expected, nowMs });
  if (!jsonEqual(status, budget.status ?? {})) {
    const outcome = await objects.commit({
      writes: [{ kind: 'update', ref, object: { ...budget, status }, previous: budget }],
    });
    if (!isCommitted(outcome)) return 'overtaken';
  }
  if (expected?.kind === 'failed') await reportFailure(dependencies, budget, expected.message, nowMs);
  const lookAgainAtMs = isNew ? nowMs + KNOWN_FOR_MS : nextDisruptionEndMs(status, nowMs);
  return defined({ lookAgainAtMs });
}

function reportFailure(
  dependencies: WorkloadDependencies,
  budget: KubePodDisruptionBudget,
  message: string,
  nowMs: number,
): Promise<void> {
  const about = subjectOf('PodDisruptionBudget', budget);
  const event = {
    type: 'Warning' as const,
    reason: 'CalculateExpectedPodCountFailed',
    message: `Failed to calculate the number of expected pods: ${message}`,
    source: CONTROLLER,
    about,
    once: `${budget.metadata.generation ?? 0}/${message}`,
  };
  return recordEvents(dependencies, [event], nowMs);
}

/** The budgets that select pods with some of these labels. */
export async function budgetsSelecting(
  { budgets }: WorkloadDependencies,
  namespace: string,
  labels: readonly Readonly<Record<string, string>>[],
): Promise<readonly ObjectRef[]> {
  const known: readonly KubePodDisruptionBudget[] = await budgets.in(namespace);
  return known
    .filter(({ spec }) => {
      const selector = selectorFromSpec(spec?.selector);
      return labels.some((each) => selector.matches(each));
    })
    .map((budget) => refOfObject(BUDGETS, budget));
}
