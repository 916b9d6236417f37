/**
 * The disruptions that a PodDisruptionBudget allows, computed from the budget and the existing pods.
 *
 * Source: Kubernetes, "Disruptions", pod disruption budgets; upstream pkg/controller/disruption/disruption.go. One
 * difference: a pod without a controller counts as one expected pod. Upstream leaves it out, and allows no eviction
 * then.
 */

import { selectorFromSpec } from '../../kubernetes/selectors.ts';
import type { IntOrString, KubePod, KubePodDisruptionBudget } from '../types.ts';
import { isTerminated } from './resource.ts';

export interface BudgetStatus {
  readonly observedGeneration: number;
  /** Evictions that are allowed now. */
  readonly disruptionsAllowed: number;
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly expectedPods: number;
}

/** How many pods a percentage, or maxUnavailable, relates to. */
export type ExpectedPods =
  | { readonly kind: 'counted'; readonly pods: number }
  /** A controller of the pods does not say how many it wants: no eviction is allowed. */
  | { readonly kind: 'failed'; readonly message: string };

/** Whether a budget covers a pod. Made once for many pods: a selector may have thousands of expressions. */
export function coveredBy({ metadata, spec }: KubePodDisruptionBudget): (pod: KubePod) => boolean {
  const selector = selectorFromSpec(spec?.selector);
  return (pod) => metadata.namespace === pod.metadata.namespace && selector.matches(pod.metadata.labels);
}

const isReady = (pod: KubePod): boolean =>
  (pod.status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True');

const isHealthy = (pod: KubePod): boolean => pod.metadata.deletionTimestamp === undefined && isReady(pod);

/** A number of pods. A percentage is scaled to `podsTotal` and rounded up, as upstream does for both fields. */
function scaledToPods(value: IntOrString | undefined, podsTotal: number): number {
  if (typeof value === 'number') return value;
  const percent = /^(\d+)%$/.exec(value ?? '')?.[1];
  return percent === undefined ? 0 : Math.ceil((Number(percent) * podsTotal) / 100);
}

function desiredOf(budget: KubePodDisruptionBudget, expected: number): number {
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  if (maxUnavailable !== undefined) return Math.max(0, expected - scaledToPods(maxUnavailable, expected));
  return scaledToPods(minAvailable, expected);
}

/** The pods that count. */
export function coveredPods(budget: KubePodDisruptionBudget, pods: readonly KubePod[]): readonly KubePod[] {
  const isCovered = coveredBy(budget);
  return pods.filter((pod) => isCovered(pod) && !isTerminated(pod));
}

/**
 * `pods` may contain pods that the budget does not cover.
 *
 * @param expected absent: the existing pods
 */
export function budgetStatusOf(
  budget: KubePodDisruptionBudget,
  pods: readonly KubePod[],
  expected?: ExpectedPods,
): BudgetStatus {
  const covered = coveredPods(budget, pods);
  const currentHealthy = covered.filter(isHealthy).length;
  const expectedPods = expected?.kind === 'counted' ? expected.pods : covered.length;
  const desiredHealthy = desiredOf(budget, expectedPods);
  const isUnknown = expected?.kind === 'failed' || expectedPods === 0;
  return {
    observedGeneration: budget.metadata.generation ?? 0,
    disruptionsAllowed: isUnknown ? 0 : Math.max(0, currentHealthy - desiredHealthy),
    currentHealthy,
    desiredHealthy,
    expectedPods,
  };
}

/**
 * Pods that still exist after another controller granted their eviction. They do not change the counts: an eviction
 * here deletes its pod in one transaction.
 */
export function remainingDisruptions(
  budget: KubePodDisruptionBudget,
  pods: readonly KubePod[],
): Readonly<Record<string, string | null>> {
  const isCovered = coveredBy(budget);
  const present = new Set(
    pods
      .filter((pod) => isCovered(pod) && pod.metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name ?? ''),
  );
  return Object.fromEntries(Object.entries(budget.status?.disruptedPods ?? {}).filter(([name]) => present.has(name)));
}

/** A part of a status: absent if it is empty. */
export const disruptedPart = (disruptedPods: Readonly<Record<string, string | null>>) =>
  Object.keys(disruptedPods).length === 0 ? {} : { disruptedPods };

/** The budget with its current status. Stored conditions stay. */
export function withBudgetStatus(
  budget: KubePodDisruptionBudget,
  pods: readonly KubePod[],
  expected?: ExpectedPods,
): KubePodDisruptionBudget {
  const { disruptedPods: _disruptedPods, ...status } = budget.status ?? {};
  const disrupted = disruptedPart(remainingDisruptions(budget, pods));
  return { ...budget, status: { ...status, ...disrupted, ...budgetStatusOf(budget, pods, expected) } };
}

export type EvictionAnswer =
  /** `budget`: the state to store with the eviction. */
  | { readonly kind: 'allowed'; readonly budget: KubePodDisruptionBudget }
  /** `why`: the message for the client, with the counts of the budget. */
  | { readonly kind: 'refused'; readonly why: string };

/**
 * Whether a budget with a current status allows the eviction of a pod (pkg/registry/core/pod/storage/eviction.go). A
 * pod that is not ready does not count as healthy. It may be evicted while enough healthy pods remain, or always with
 * unhealthyPodEvictionPolicy AlwaysAllow.
 */
export function mayEvict(budget: KubePodDisruptionBudget, pod: KubePod): EvictionAnswer {
  const { disruptionsAllowed, currentHealthy, desiredHealthy } = budget.status as unknown as BudgetStatus;
  if (!isReady(pod)) {
    const always = budget.spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow';
    if (always || (currentHealthy >= desiredHealthy && desiredHealthy > 0)) return { kind: 'allowed', budget };
  }
  if (disruptionsAllowed > 0) {
    const healthyLeft = isReady(pod) ? currentHealthy - 1 : currentHealthy;
    const status = { ...budget.status, disruptionsAllowed: disruptionsAllowed - 1, currentHealthy: healthyLeft };
    return { kind: 'allowed', budget: { ...budget, status } };
  }
  return {
    kind: 'refused',
    why: `The disruption budget ${budget.metadata.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
  };
}
