/**
 * Rules of a Job for failed pods, and for the success of an Indexed Job. Sources:
 * pkg/controller/job/{pod_failure_policy,success_policy}.go.
 */
import type {
  JobSpec,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyRule,
} from '../../../shared/kinds/types.ts';
import { countOf, countShared, type Indexes, parseIndexes } from './indexes.rule.ts';
import type { ContainerEnd, JobPod } from './job-pods.rule.ts';
import type { JobOutcome } from './outcome.rule.ts';

export type FailureVerdict =
  /** Counts towards backoffLimit. */
  | { readonly kind: 'counts' }
  | { readonly kind: 'ignored' }
  /** Counts too, and its index is not tried again. */
  | { readonly kind: 'failsIndex' }
  | { readonly kind: 'failsJob'; readonly message: string };

type FailedPod = Pick<JobPod, 'namespace' | 'name' | 'failedContainers' | 'conditions'>;

/** The first rule that applies decides; without one the failure counts. */
export function verdictOf(policy: JobSpec['podFailurePolicy'], pod: FailedPod): FailureVerdict {
  for (const [position, rule] of (policy?.rules ?? []).entries()) {
    const cause = causeOf(rule, pod);
    if (cause === undefined) continue;
    if (rule.action === 'Ignore') return { kind: 'ignored' };
    if (rule.action === 'FailIndex') return { kind: 'failsIndex' };
    if (rule.action === 'FailJob') {
      return { kind: 'failsJob', message: `${cause} matching FailJob rule at index ${position}` };
    }
    return { kind: 'counts' };
  }
  return { kind: 'counts' };
}

/** How the pod matches the rule; undefined: it does not. */
function causeOf({ onExitCodes, onPodConditions = [] }: PodFailurePolicyRule, pod: FailedPod): string | undefined {
  if (onExitCodes !== undefined) {
    const end = pod.failedContainers.find((container) => matchesExit(onExitCodes, container));
    return end === undefined
      ? undefined
      : `Container ${end.name} for pod ${pod.namespace}/${pod.name} failed with exit code ${end.exitCode}`;
  }
  const condition = pod.conditions.find(({ type, status }) =>
    onPodConditions.some((pattern) => pattern.type === type && (pattern.status || 'True') === status),
  );
  return condition === undefined ? undefined : `Pod ${pod.namespace}/${pod.name} has condition ${condition.type}`;
}

function matchesExit(
  { containerName, operator, values = [] }: PodFailurePolicyOnExitCodesRequirement,
  end: ContainerEnd,
): boolean {
  if (containerName !== undefined && containerName !== end.name) return false;
  return operator === 'In' ? values.includes(end.exitCode) : operator === 'NotIn' && !values.includes(end.exitCode);
}

/** What the first rule that is met says; undefined: the Job continues. */
export function successMessageOf(
  { successPolicy, completions = 0 }: Pick<JobSpec, 'successPolicy' | 'completions'>,
  succeeded: Indexes,
): string | undefined {
  if (successPolicy === undefined || succeeded.length === 0) return undefined;
  const met = (successPolicy.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) return succeededCount !== undefined && countOf(succeeded) >= succeededCount;
    const wanted = parseIndexes(succeededIndexes, completions);
    if (wanted.length === 0) return false;
    const found = countShared(wanted, succeeded);
    return found === countOf(wanted) || (succeededCount !== undefined && found >= succeededCount);
  });
  return met < 0 ? undefined : `Matched rules at index ${met}`;
}

export const bySuccessPolicy = (message: string | undefined): JobOutcome | undefined =>
  message === undefined ? undefined : { kind: 'Complete', reason: 'SuccessPolicy', message };
