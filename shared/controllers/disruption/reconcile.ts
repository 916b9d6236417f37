/**
 * Keeps the status of PodDisruptionBudgets for clients that watch it. An eviction does not rely on it: the API counts the
 * pods when it is asked.
 */
import { defined } from '../../domain/defined.ts';
import { expectedPodsOf } from '../../kube/pods/budget-scale.ts';
import { selectorFromSpec } from '../../kube/selectors.ts';
import type { KubePodDisruptionBudget, ObjectRef } from '../../kube/types.ts';
import { jsonEqual } from '../../kube/wire/json-value.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { recordEvents, subjectOf } from '../framework/record-event.ts';
import { KNOWN_FOR_MS } from '../workload-rules/known-selectors.ts';
import { listObjects } from '../workload-rules/list-objects.ts';
import { refOfObject, type SyncReport, syncUnlessOvertaken } from '../workload-rules/owner.ts';
import { nextDisruptionEndMs, storedStatus } from './rule.ts';

const CONTROLLER = 'controllermanager';
const BUDGETS = 'poddisruptionbudgets';

/** One budget; without a name all of the namespace. */
export async function syncBudgets(dependencies: ControllerDependencies, ref: ObjectRef): Promise<SyncReport> {
  if (ref.name !== '') return syncBudget(dependencies, ref);
  for (const budget of await dependencies.budgets.in(ref.namespace)) {
    await syncBudget(dependencies, refOfObject(BUDGETS, budget));
  }
  return {};
}

const syncBudget = (dependencies: ControllerDependencies, ref: ObjectRef): Promise<SyncReport> =>
  syncUnlessOvertaken('PodDisruptionBudget', () => attemptSync(dependencies, ref));

async function attemptSync(dependencies: ControllerDependencies, ref: ObjectRef): Promise<SyncReport | 'overtaken'> {
  const { objects, clock } = dependencies;
  const budget = (await objects.get(ref)) as KubePodDisruptionBudget | undefined;
  if (budget === undefined || budget.metadata.deletionTimestamp !== undefined) return {};
  const isNew = budget.status?.observedGeneration !== budget.metadata.generation;
  if (isNew) dependencies.budgets.forget();
  const pods = await listObjects(dependencies, 'pods', ref.namespace);
  const expected = await expectedPodsOf(budget, pods, (owner) => objects.get(owner));
  const nowMs = clock.nowMs();
  const status = storedStatus({ budget, pods, expected, nowMs });
  if (!jsonEqual(status, budget.status ?? {})) {
    const { kind } = await objects.commit({
      writes: [{ kind: 'update', ref, object: { ...budget, status }, previous: budget }],
    });
    if (kind !== 'committed') return 'overtaken';
  }
  if (expected?.kind === 'failed') await reportFailure(dependencies, budget, expected.message, nowMs);
  const lookAgainAtMs = isNew ? nowMs + KNOWN_FOR_MS : nextDisruptionEndMs(status, nowMs);
  return defined({ lookAgainAtMs });
}

function reportFailure(
  dependencies: ControllerDependencies,
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
  { budgets }: ControllerDependencies,
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
