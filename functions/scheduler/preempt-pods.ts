/**
 * Carries out a preemption: nominates the pod, then deletes the victims.
 *
 * The nomination is committed first. Each deletion has the condition that the pod still has that version: no pod is
 * deleted for one that was bound, deleted or nominated elsewhere. A process that dies half-way leaves a nominated pod.
 * The next attempt of that pod decides again.
 */

import { defined } from '../../shared/defined.ts';
import type { PendingEvent } from '../../shared/events/record-event.ts';
import { deletePod } from '../../shared/fleet/delete-pod.ts';
import { budgetStatusOf } from '../../shared/kinds/pods/budget-status.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import type { KubeObject, KubePod, KubePodDisruptionBudget, ObjectRef } from '../../shared/kinds/types.ts';
import { selectorFromSpec } from '../../shared/kubernetes/selectors.ts';
import { SCHEDULER_NAME, type SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { is } from '../../shared/store/layout.ts';
import { resourceVersionOf } from '../../shared/store/object-record.ts';
import { objectKey } from '../../shared/store/object-store.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import { victimDraft } from './decisions.ts';
import * as metric from './metrics.ts';
import type { Candidate, PreemptionBudget } from './preemption.rule.ts';

const PAGE = 500;
const PAGES_MAX = 200;

const CONDITION = {
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'PreemptionByScheduler',
  message: `${SCHEDULER_NAME}: preempting to accommodate a higher priority pod`,
} as const;

const refOf = ({ namespace, name }: Pick<SchedulablePod, 'namespace' | 'name'>): ObjectRef => ({
  resource: 'pods',
  namespace,
  name,
});

/** The budgets of the cluster, counted from the pods as stored. */
export async function readBudgets({ objects }: Pick<WorkDependencies, 'objects'>): Promise<PreemptionBudget[]> {
  const budgets = await listAll<KubePodDisruptionBudget>(objects, 'poddisruptionbudgets', '');
  const podsOf = new Map<string, KubePod[]>();
  for (const { metadata } of budgets) {
    const namespace = metadata.namespace ?? '';
    if (!podsOf.has(namespace)) podsOf.set(namespace, await listAll<KubePod>(objects, 'pods', namespace));
  }
  return budgets.map((budget) => {
    const { namespace = '' } = budget.metadata;
    const { selector } = budget.spec ?? {};
    const isEmpty = Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions ?? []).length === 0;
    const compiled = selectorFromSpec(selector);
    return {
      namespace,
      matches: (labels) => !isEmpty && compiled.matches(labels),
      allowed: budgetStatusOf(budget, podsOf.get(namespace) ?? []).disruptionsAllowed,
      disruptedPods: new Set(Object.keys(budget.status?.disruptedPods ?? {})),
    };
  });
}

async function listAll<T extends KubeObject>(
  objects: WorkDependencies['objects'],
  resource: string,
  namespace: string,
): Promise<T[]> {
  const all: T[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await objects.list({ resource, namespace, limit: PAGE, ...defined({ continueAfter: after }) });
    all.push(...(page.objects as readonly T[]));
    if (page.next === undefined) return all;
    after = page.next;
  }
  throw new RangeError(`a list of ${resource} did not end`);
}

/** Deletes the victims of a pod that is nominated as `nominated` shows. Returns how many were deleted. */
export async function deleteVictims(
  dependencies: Pick<WorkDependencies, 'objects' | 'random' | 'ledger' | 'meter'>,
  preemptor: SchedulablePod,
  { chosen, nominated, nowMs }: { readonly chosen: Candidate; readonly nominated: KubePod; readonly nowMs: number },
): Promise<number> {
  const { objects, ledger, meter } = dependencies;
  const { nodeName } = chosen;
  const guard = {
    kind: 'check',
    key: objectKey(refOf(preemptor), shardsOf('pods')),
    when: is('rv', resourceVersionOf(nominated)),
  } as const;
  let deleted = 0;
  const victims = chosen.victims.filter(({ isTerminating }) => !isTerminating);
  // One after the other: transactions that check one item at once cancel each other.
  for (const [index, pod] of (await objects.getMany(victims.map(refOf))).entries()) {
    const victim = victims[index]!;
    if (pod === undefined || pod.metadata.uid !== victim.uid) continue;
    const record = ledger.write(victimDraft(victim, { preemptor, nodeName, nowMs }));
    const event = preemptedEvent(victim, preemptor, nodeName);
    const outcome = await deletePod(dependencies, pod, { condition: CONDITION, event, nowMs, guards: [guard], record });
    if (outcome.kind === 'deleted') deleted += 1;
  }
  if (deleted > 0) meter.add(metric.PREEMPTION_VICTIMS, deleted, 'Count');
  return deleted;
}

const preemptedEvent = (victim: SchedulablePod, { uid }: SchedulablePod, nodeName: string): PendingEvent => ({
  type: 'Normal',
  reason: 'Preempted',
  message: `Preempted by pod ${uid} on node ${nodeName}`,
  source: SCHEDULER_NAME,
  action: 'Preempting',
  about: { kind: 'Pod', namespace: victim.namespace, name: victim.name, uid: victim.uid },
  once: uid,
});

/** Pods of lower priority lose their nomination to the node, and are tried again. */
export async function clearNominations(
  { objects }: Pick<WorkDependencies, 'objects'>,
  pods: readonly KubePod[],
): Promise<void> {
  for (const pod of pods) {
    const { nominatedNodeName: _nominated, ...status } = pod.status ?? {};
    const ref = refOf({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name ?? '' });
    // A pod that changed meanwhile is left: its own next attempt decides.
    await objects.commit({ writes: [{ kind: 'update', ref, object: { ...pod, status }, previous: pod }] });
  }
}
