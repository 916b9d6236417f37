/**
 * The rolling update of a DaemonSet: which old pods are deleted, and which nodes get a second pod. Pure.
 * Source: pkg/controller/daemon/update.go (rollingUpdate, updatedDesiredNodeCounts).
 */
import type { DaemonSetSpec } from '../../../shared/kinds/types.ts';
import { scaledValue } from '../int-or-percent.rule.ts';
import { isAvailable } from '../owned-pods.rule.ts';
import { type DaemonNode, verdictFor } from './placement.rule.ts';
import { BURST_PODS, type DaemonPod, type DaemonRules, type DaemonWorld, podsByNode } from './rule.ts';

export interface RolloutLimits {
  readonly maxSurge: number;
  readonly maxUnavailable: number;
}

/** Shares of `desired` nodes, both rounded up. A share that cannot be read counts as 0. */
export function rolloutLimits(spec: DaemonSetSpec, desired: number): RolloutLimits {
  const { maxSurge = 0, maxUnavailable = 1 } = spec.updateStrategy?.rollingUpdate ?? {};
  const surge = scaledValue(maxSurge, desired, 'up') ?? 0;
  const unavailable = scaledValue(maxUnavailable, desired, 'up') ?? 0;
  return { maxSurge: surge, maxUnavailable: surge === 0 && unavailable === 0 && desired > 0 ? 1 : unavailable };
}

export const allowsSurge = ({ updateStrategy: strategy }: DaemonSetSpec): boolean =>
  strategy?.type !== 'OnDelete' && (scaledValue(strategy?.rollingUpdate?.maxSurge ?? 0, 100, 'up') ?? 0) > 0;

/** What the rule chooses from; recorded with a decision. Names of pods, or of nodes if pods are created. */
export interface RolloutChoice {
  /** Pods that may be unavailable, or nodes that may have two. */
  readonly limit: number;
  /** The number that already is unavailable. */
  readonly taken: number;
  /** Beyond the limit: their pods are not available. */
  readonly free: readonly string[];
  readonly candidates: readonly string[];
}

export const chosenBy = ({ limit, taken, free, candidates }: RolloutChoice): readonly string[] => [
  ...free,
  ...candidates.slice(0, Math.max(0, limit - taken)),
];

export interface Rollout {
  /** Old pods to delete. */
  readonly remove: RolloutChoice;
  /** Nodes that get a pod of the present template beside the old one. */
  readonly create: RolloutChoice;
}

const NOTHING: RolloutChoice = { limit: 0, taken: 0, free: [], candidates: [] };

export function decideRollout(spec: DaemonSetSpec, world: DaemonWorld): Rollout {
  const { rules, nodes, pods } = world;
  const wanted = nodes.filter((node) => verdictFor(rules.placement, node).runs);
  const limits = rolloutLimits(spec, wanted.length);
  const states = nodeStates(rules, wanted, pods, world.nowMs);
  return limits.maxSurge > 0 ? withSurge(limits.maxSurge, states) : withoutSurge(limits.maxUnavailable, states);
}

interface NodeState {
  readonly node: string;
  /** Several pods of one kind: the rest of the sync cleans up. */
  readonly isAmbiguous: boolean;
  readonly updated: { readonly name: string; readonly isAvailable: boolean } | undefined;
  readonly old: { readonly name: string; readonly isAvailable: boolean } | undefined;
}

function nodeStates(
  { minReadySeconds }: DaemonRules,
  wanted: readonly DaemonNode[],
  pods: readonly DaemonPod[],
  nowMs: number,
): readonly NodeState[] {
  const byNode = podsByNode(pods);
  const names = new Set([...wanted.map(({ name }) => name), ...byNode.keys()]);
  return [...names].map((node) => {
    const present = (byNode.get(node) ?? []).filter(({ isDeleting }) => !isDeleting);
    const [updated, moreUpdated] = present.filter(({ isUpdated }) => isUpdated);
    const [old, moreOld] = present.filter(({ isUpdated }) => !isUpdated);
    const stateOf = (pod: DaemonPod | undefined) =>
      pod === undefined ? undefined : { name: pod.name, isAvailable: isAvailable(pod, minReadySeconds, nowMs) };
    const isAmbiguous = moreUpdated !== undefined || moreOld !== undefined;
    return { node, isAmbiguous, updated: stateOf(updated), old: stateOf(old) };
  });
}

function withoutSurge(limit: number, states: readonly NodeState[]): Rollout {
  let taken = 0;
  const free: string[] = [];
  const candidates: string[] = [];
  for (const { isAmbiguous, updated, old } of states) {
    // A node without a pod, or with several, is unavailable until the rest of the sync has acted.
    if (isAmbiguous || (updated === undefined) === (old === undefined)) taken += 1;
    else if (updated !== undefined) taken += Number(!updated.isAvailable);
    else if (old !== undefined) (old.isAvailable ? candidates : free).push(old.name);
  }
  return { remove: bounded({ limit, taken, free, candidates }), create: NOTHING };
}

function withSurge(limit: number, states: readonly NodeState[]): Rollout {
  let taken = 0;
  const free: string[] = [];
  const candidates: string[] = [];
  for (const { node, isAmbiguous, updated, old } of states) {
    if (isAmbiguous) taken += 1;
    else if (old === undefined) continue;
    else if (updated === undefined) (old.isAvailable ? candidates : free).push(node);
    // When the new pod is available, decideNode deletes the old one.
    else if (!updated.isAvailable) taken += 1;
  }
  return { remove: NOTHING, create: bounded({ limit, taken, free, candidates }) };
}

/** The choice, cut to the names that one sync uses. */
const bounded = (choice: RolloutChoice): RolloutChoice => ({
  ...choice,
  free: choice.free.slice(0, BURST_PODS),
  candidates: choice.candidates.slice(0, Math.min(BURST_PODS, Math.max(0, choice.limit - choice.taken) + 1)),
});
