/**
 * Preemption: which pods of lower priority are deleted to make a pod fit. Pure.
 *
 * Source: pkg/scheduler/framework/preemption/preemption.go,
 * pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
 */

import type { NodeState, Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import type { Labels } from '../../shared/scheduling/terms.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { textHash } from '../../shared/text.ts';
import { countedReasons } from './failure-message.rule.ts';
import { podAffinity } from './pod-affinity.rule.ts';
import { type CycleOptions, type NoFit, nominationFilter } from './rule.ts';

/** A PodDisruptionBudget with its current count. */
export interface PreemptionBudget {
  readonly namespace: string;
  /** Never for a selector that is absent or empty. */
  readonly matches: (labels: Labels) => boolean;
  /** Evictions that are allowed now. */
  readonly allowed: number;
  /** Names of pods with an eviction that is counted already. */
  readonly disruptedPods: ReadonlySet<string>;
}

export interface PreemptionOptions extends CycleOptions {
  readonly budgets: readonly PreemptionBudget[];
  /** Why no preemption is allowed at present. */
  readonly refusal?: string;
}

export interface Candidate {
  readonly nodeName: string;
  /** Most important first. */
  readonly victims: readonly SchedulablePod[];
  /** Number of deletions that violate a budget. */
  readonly violations: number;
}

export type PreemptionOutcome =
  /** `text`: for the message. The nomination stays. */
  | { readonly kind: 'notEligible'; readonly text: string }
  /** No deletion helps. A nomination is cleared. */
  | { readonly kind: 'notHelpful'; readonly text: string }
  | { readonly kind: 'candidate'; readonly chosen: Candidate; readonly candidates: readonly Candidate[] };

/** Candidates to evaluate: a tenth of the nodes, and at least this many. */
const CANDIDATES_MIN = 100;
const CANDIDATES_SHARE = 0.1;
/** Makes each victim count in the sum of priorities, which may be negative. */
const PRIORITY_OFFSET = 2 ** 31;
const NO_VICTIMS = 'No preemption victims found for incoming pod';
const NOT_HELPFUL = 'Preemption is not helpful for scheduling';

/** The higher priority, then the earlier start; a pod that has not started counts as just started. */
const byImportance = (one: SchedulablePod, other: SchedulablePod): number =>
  other.priority - one.priority || startOf(one) - startOf(other) || (one.key < other.key ? -1 : 1);

/** Greater than every start, and equal for two pods that have none. Epoch milliseconds. */
const startOf = ({ startedAtMs }: SchedulablePod): number => startedAtMs ?? Number.MAX_SAFE_INTEGER;

function eligibility(
  pod: SchedulablePod,
  snapshot: Snapshot,
  { rejections, refusal }: { readonly rejections: NoFit['rejections']; readonly refusal: string | undefined },
): string | undefined {
  if (refusal !== undefined) return `not eligible due to ${refusal}.`;
  if (!pod.mayPreempt) return 'not eligible due to preemptionPolicy=Never.';
  const nominated = snapshot.nodes.get(pod.nominatedNodeName);
  if (nominated === undefined || rejections.get(pod.nominatedNodeName)?.isResolvable === false) return undefined;
  const isEnding = [...nominated.pods.values()].some(
    ({ priority, isTerminating, isPreempted }) => priority < pod.priority && isTerminating && isPreempted,
  );
  return isEnding ? 'not eligible due to a terminating pod on the nominated node.' : undefined;
}

/** The pods that would violate a budget if all were deleted in order of importance. */
function violatingKeys(pods: readonly SchedulablePod[], budgets: readonly PreemptionBudget[]): ReadonlySet<string> {
  const left = budgets.map(({ allowed }) => allowed);
  const violating = new Set<string>();
  for (const { key, namespace, name, labels } of pods) {
    budgets.forEach((budget, index) => {
      if (budget.namespace !== namespace || !budget.matches(labels) || budget.disruptedPods.has(name)) return;
      left[index] = left[index]! - 1;
      if (left[index]! < 0) violating.add(key);
    });
  }
  return violating;
}

type DryRun =
  | { readonly kind: 'candidate'; readonly candidate: Candidate }
  | { readonly kind: 'none'; readonly reasons: readonly string[] };

/** Removes every pod of lower priority, then puts back each one beside which the pod still fits. */
function dryRun(pod: SchedulablePod, state: NodeState, snapshot: Snapshot, options: PreemptionOptions): DryRun {
  const lower = [...state.pods.values()].filter(({ priority }) => priority < pod.priority).sort(byImportance);
  if (lower.length === 0) return { kind: 'none', reasons: [NO_VICTIMS] };
  return snapshot.withRemovals(({ remove, putBack }): DryRun => {
    const rejection = () => nominationFilter(pod, snapshot, options)(state);
    for (const each of lower) remove(each);
    const rejected = rejection();
    if (rejected !== undefined) return { kind: 'none', reasons: rejected.reasons };
    const violating = violatingKeys(lower, options.budgets);
    const victims = new Set<SchedulablePod>();
    const inOrder = [
      ...lower.filter(({ key }) => violating.has(key)),
      ...lower.filter(({ key }) => !violating.has(key)),
    ];
    for (const each of inOrder) {
      putBack(each);
      if (rejection() === undefined) continue;
      remove(each);
      victims.add(each);
    }
    return {
      kind: 'candidate',
      candidate: {
        nodeName: state.node.name,
        victims: lower.filter((each) => victims.has(each)),
        violations: [...victims].filter(({ key }) => violating.has(key)).length,
      },
    };
  });
}

/** Criteria in order; the smaller value is better. */
const CRITERIA: readonly ((candidate: Candidate) => number)[] = [
  ({ violations }) => violations,
  ({ victims }) => victims[0]?.priority ?? Number.NEGATIVE_INFINITY,
  ({ victims }) => victims.reduce((sum, { priority }) => sum + priority + PRIORITY_OFFSET, 0),
  ({ victims }) => victims.length,
  ({ victims }) => -Math.min(...victims.filter(({ priority }) => priority === victims[0]!.priority).map(startOf)),
];

/** The best candidate; equal ones by a hash of node and pod, where upstream chooses any. */
export function pickCandidate(candidates: readonly Candidate[], podUid: string): Candidate {
  const tie = ({ nodeName }: Candidate): number => textHash(`${nodeName}/${podUid}`);
  const sorted = candidates.toSorted((one, other) => {
    for (const criterion of CRITERIA) {
      const [left, right] = [criterion(one), criterion(other)];
      if (left !== right) return left < right ? -1 : 1;
    }
    return tie(other) - tie(one) || (one.nodeName < other.nodeName ? -1 : 1);
  });
  return sorted[0]!;
}

/** Nodes on which a deletion might help, from a start that depends on the pod. */
function candidateNodes(pod: SchedulablePod, snapshot: Snapshot, { rejections }: NoFit): readonly string[] {
  const names = snapshot.order.filter((name) => rejections.get(name)?.isResolvable === true);
  const start = names.length === 0 ? 0 : textHash(pod.uid) % names.length;
  return [...names.slice(start), ...names.slice(0, start)];
}

/** Whether the pod may evict others, and pods of lower priority are on a node where that may help. */
export const hasPossibleVictims = (
  pod: SchedulablePod,
  snapshot: Snapshot,
  { noFit, options }: { readonly noFit: NoFit; readonly options: Pick<PreemptionOptions, 'refusal'> },
): boolean =>
  eligibility(pod, snapshot, { rejections: noFit.rejections, refusal: options.refusal }) === undefined &&
  candidateNodes(pod, snapshot, noFit).some((name) =>
    [...snapshot.nodes.get(name)!.pods.values()].some(({ priority }) => priority < pod.priority),
  );

export function preempt(
  pod: SchedulablePod,
  snapshot: Snapshot,
  { noFit, options }: { readonly noFit: NoFit; readonly options: PreemptionOptions },
): PreemptionOutcome {
  const text = eligibility(pod, snapshot, { rejections: noFit.rejections, refusal: options.refusal });
  if (text !== undefined) return { kind: 'notEligible', text };
  const names = candidateNodes(pod, snapshot, noFit);
  const wanted = Math.max(CANDIDATES_MIN, Math.trunc(names.length * CANDIDATES_SHARE));
  const candidates: Candidate[] = [];
  const counts = new Map<string, number>();
  const count = (reason: string, more = 1): void => void counts.set(reason, (counts.get(reason) ?? 0) + more);
  // A pod may have thousands of terms: they are compared with each pod once, not again for each removal.
  const affinity = podAffinity(pod, snapshot);
  const withAffinity = { ...options, podAffinity: affinity.filter };
  snapshot.watched(affinity.count, () => {
    for (const name of names) {
      const found = dryRun(pod, snapshot.nodes.get(name)!, snapshot, withAffinity);
      if (found.kind === 'candidate') candidates.push(found.candidate);
      else for (const reason of found.reasons) count(reason);
      if (candidates.length >= wanted && candidates.some(({ violations }) => violations === 0)) break;
    }
  });
  if (candidates.length > 0) {
    return { kind: 'candidate', chosen: pickCandidate(candidates, pod.uid), candidates };
  }
  const nodes = snapshot.nodes.size;
  if (nodes > names.length) count(NOT_HELPFUL, nodes - names.length);
  return { kind: 'notHelpful', text: `0/${nodes} nodes are available:${countedReasons(counts)}` };
}
