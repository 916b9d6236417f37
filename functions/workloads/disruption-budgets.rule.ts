/** The stored status of a PodDisruptionBudget. Pure. Source: pkg/controller/disruption/disruption.go. */
import {
  type BudgetStatus,
  budgetStatusOf,
  disruptedPart,
  type ExpectedPods,
  remainingDisruptions,
} from '../../shared/kinds/pods/budget-status.ts';
import type { Condition, KubeObject, KubePod, KubePodDisruptionBudget } from '../../shared/kinds/types.ts';
import { formatTime, parseTimeMs } from '../../shared/kubernetes/time.ts';

const DISRUPTION_ALLOWED = 'DisruptionAllowed';
/** After this time a pod with a granted eviction is expected to stay. Milliseconds; upstream's DeletionTimeout. */
const DISRUPTION_MS = 120_000;

/** With the condition; unchanged conditions keep their time. */
export function storedStatus({
  budget,
  pods,
  expected,
  nowMs,
}: {
  readonly budget: KubePodDisruptionBudget;
  readonly pods: readonly KubePod[];
  readonly expected: ExpectedPods | undefined;
  readonly nowMs: number;
}): NonNullable<KubePodDisruptionBudget['status']> {
  const { status = {} } = budget;
  const { disruptedPods: _disrupted, ...stored } = status;
  const disrupted = Object.entries(remainingDisruptions(budget, pods)).filter(
    ([, time]) => nowMs < disruptionEndMs(time, nowMs),
  );
  const counts = budgetStatusOf(budget, pods, expected);
  const others = (status.conditions ?? []).filter(({ type }) => type !== DISRUPTION_ALLOWED);
  const before = (status.conditions ?? []).find(({ type }) => type === DISRUPTION_ALLOWED);
  return {
    ...stored,
    ...disruptedPart(Object.fromEntries(disrupted)),
    ...counts,
    conditions: [...others, conditionAfter(before, counts, expected, nowMs)],
  };
}

/** When the next granted eviction is forgotten. Epoch milliseconds; undefined: there is none. */
export function nextDisruptionEndMs(
  { disruptedPods = {} }: NonNullable<KubePodDisruptionBudget['status']>,
  nowMs: number,
): number | undefined {
  const ends = Object.values(disruptedPods).map((time) => disruptionEndMs(time, nowMs));
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** A time in the future counts from now. */
const disruptionEndMs = (time: string | null, nowMs: number): number =>
  Math.min(nowMs, parseTimeMs(time ?? '') ?? 0) + DISRUPTION_MS;

function conditionAfter(
  before: Condition | undefined,
  { observedGeneration, disruptionsAllowed }: BudgetStatus,
  expected: ExpectedPods | undefined,
  nowMs: number,
): Condition {
  const isAllowed = disruptionsAllowed > 0;
  const status = isAllowed ? ('True' as const) : ('False' as const);
  const isFailed = expected?.kind === 'failed';
  return {
    type: DISRUPTION_ALLOWED,
    status,
    observedGeneration,
    lastTransitionTime:
      before?.status === status && before.lastTransitionTime !== undefined
        ? before.lastTransitionTime
        : formatTime(nowMs),
    reason: isFailed ? 'SyncFailed' : isAllowed ? 'SufficientPods' : 'InsufficientPods',
    message: isFailed ? expected.message : '',
  };
}

/** What a budget reads of a pod. */
function partOf(pod: KubePod | undefined): string {
  if (pod === undefined) return '';
  const { metadata, status } = pod;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
  const isTerminated = status?.phase === 'Succeeded' || status?.phase === 'Failed';
  const owners = (metadata.ownerReferences ?? []).map(({ uid, controller }) => [uid, controller]);
  return JSON.stringify([metadata.labels, metadata.deletionTimestamp !== undefined, ready, isTerminated, owners]);
}

type Labels = Readonly<Record<string, string>>;

const SCALED = ['deployments', 'replicasets', 'replicationcontrollers', 'statefulsets'];

/**
 * The budgets of pods with these labels are concerned by a change: a pod became Ready, for example, or an owner wants
 * another number of pods.
 */
export function labelsOfConcern(
  resource: string,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
): readonly Labels[] {
  if (resource === 'pods') {
    if (partOf(before) === partOf(after)) return [];
    return [before, after].flatMap((pod) => (pod === undefined ? [] : [pod.metadata.labels ?? {}]));
  }
  if (!SCALED.includes(resource) || after === undefined) return [];
  return before?.spec?.['replicas'] === after.spec?.['replicas'] ? [] : [templateLabels(after)];
}

const templateLabels = ({ spec }: KubeObject): Labels =>
  (spec?.['template'] as { readonly metadata?: { readonly labels?: Labels } } | undefined)?.metadata?.labels ?? {};
