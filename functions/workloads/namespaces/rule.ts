/**
 * What the status of a terminating namespace says, and when it is evaluated again. Pure. Source:
 * pkg/controller/namespace/deletion/{namespaced_resources_deleter,status_condition_utils}.go.
 */

import type { KubeNamespace, NamespaceCondition } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';

/** Objects of one kind that a pass could not remove. */
export interface RemainingObjects {
  readonly group: string;
  readonly resource: string;
  readonly count: number;
  /** Finalizers of these objects, one entry for each object that has one. */
  readonly finalizers: readonly string[];
}

export interface DeletionPass {
  readonly remaining: readonly RemainingObjects[];
  /** Messages of kinds that could not be read or deleted. */
  readonly failures: readonly string[];
}

/** The finalizer in the spec of every namespace. This controller removes it. */
const KUBERNETES_FINALIZER = 'kubernetes';

const CONDITIONS = [
  {
    type: 'NamespaceDeletionDiscoveryFailure',
    okReason: 'ResourcesDiscovered',
    okMessage: 'All resources successfully discovered',
  },
  {
    type: 'NamespaceDeletionGroupVersionParsingFailure',
    okReason: 'ParsedGroupVersions',
    okMessage: 'All legacy kube types successfully parsed',
  },
  {
    type: 'NamespaceDeletionContentFailure',
    okReason: 'ContentDeleted',
    okMessage: 'All content successfully deleted, may be waiting on finalization',
  },
  { type: 'NamespaceContentRemaining', okReason: 'ContentRemoved', okMessage: 'All content successfully removed' },
  {
    type: 'NamespaceFinalizersRemaining',
    okReason: 'ContentHasNoFinalizers',
    okMessage: 'All content-preserving finalizers finished',
  },
] as const;

type ConditionType = (typeof CONDITIONS)[number]['type'];

interface Problem {
  readonly reason: string;
  readonly message: string;
}

function problemsOf({ remaining, failures }: DeletionPass): Partial<Record<ConditionType, Problem>> {
  const problems: Partial<Record<ConditionType, Problem>> = {};
  if (failures.length > 0) {
    problems.NamespaceDeletionContentFailure = {
      reason: 'ContentDeletionFailed',
      message: `Failed to delete all resource types, ${failures.length} remaining: ${[...failures].sort().join(', ')}`,
    };
  }
  if (remaining.length === 0) return problems;
  const kinds = remaining.map(({ group, resource, count }) => `${resource}.${group} has ${count} resource instances`);
  problems.NamespaceContentRemaining = {
    reason: 'SomeResourcesRemain',
    message: `Some resources are remaining: ${kinds.sort().join(', ')}`,
  };
  const byFinalizer = new Map<string, number>();
  for (const finalizer of remaining.flatMap(({ finalizers }) => finalizers)) {
    byFinalizer.set(finalizer, (byFinalizer.get(finalizer) ?? 0) + 1);
  }
  if (byFinalizer.size > 0) {
    const counts = [...byFinalizer].map(([finalizer, count]) => `${finalizer} in ${count} resource instances`);
    problems.NamespaceFinalizersRemaining = {
      reason: 'SomeFinalizersRemain',
      message: `Some content in the namespace has finalizers remaining: ${counts.sort().join(', ')}`,
    };
  }
  return problems;
}

/** The namespace with the conditions after a pass. undefined: they are unchanged. */
export function withConditions(namespace: KubeNamespace, pass: DeletionPass, nowMs: number): KubeNamespace | undefined {
  const before = namespace.status?.conditions ?? [];
  const problems = problemsOf(pass);
  const conditions = CONDITIONS.map(({ type, okReason, okMessage }): NamespaceCondition => {
    const problem = problems[type];
    const former = before.find((each) => each.type === type);
    const status = problem === undefined ? 'False' : 'True';
    const unmoved = former?.status === status ? former.lastTransitionTime : undefined;
    return {
      type,
      status,
      lastTransitionTime: unmoved ?? formatTime(nowMs),
      reason: problem?.reason ?? okReason,
      message: problem?.message ?? okMessage,
    };
  });
  const isSame = conditions.every((next) => {
    const former = before.find(({ type }) => type === next.type);
    return former?.status === next.status && former.reason === next.reason && former.message === next.message;
  });
  if (isSame) return undefined;
  const others = before.filter((each) => !CONDITIONS.some(({ type }) => type === each.type));
  return { ...namespace, status: { ...namespace.status, conditions: [...others, ...conditions] } };
}

/** Pods are deleted after their grace period, so they are read more often than objects with finalizers. */
const LOOK_AT_PODS_MS = 5_000;
const LOOK_AT_FINALIZERS_MS = 15_000;
/** After a namespace has been terminating for this time, it is evaluated once per minute. */
const LONG_MS = 600_000;
const LOOK_AT_LONG_MS = 60_000;

/** When a namespace with remaining content is evaluated again. Epoch milliseconds. */
export function nextLookMs(pass: DeletionPass, deletedAtMs: number, nowMs: number): number {
  if (nowMs - deletedAtMs >= LONG_MS) return nowMs + LOOK_AT_LONG_MS;
  const hasPods = pass.remaining.some(({ group, resource }) => group === '' && resource === 'pods');
  return nowMs + (hasPods ? LOOK_AT_PODS_MS : LOOK_AT_FINALIZERS_MS);
}

/** The namespace without our finalizer. undefined: nothing holds it any more, and it is removed. */
export function finalizedNamespace(namespace: KubeNamespace): KubeNamespace | undefined {
  const { finalizers: _finalizers, ...spec } = namespace.spec ?? {};
  const kept = (namespace.spec?.finalizers ?? []).filter((each) => each !== KUBERNETES_FINALIZER);
  if (kept.length === 0 && (namespace.metadata.finalizers ?? []).length === 0) return undefined;
  return { ...namespace, spec: kept.length === 0 ? spec : { ...spec, finalizers: kept } };
}

/** True when our finalizer has been removed. */
export const isFinalizedByUs = ({ spec }: KubeNamespace): boolean =>
  !(spec?.finalizers ?? []).includes(KUBERNETES_FINALIZER);
