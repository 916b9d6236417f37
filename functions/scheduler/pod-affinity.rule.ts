/**
 * InterPodAffinity: required terms as a filter, preferred ones as a score.
 *
 * Source: pkg/scheduler/framework/plugins/interpodaffinity/{filtering,scoring}.go.
 */
import type { Filter, Rejection } from '../../shared/scheduling/filter.rule.ts';
import type { CountsByNode, NodeState, Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { type PodTerm, termMatches } from '../../shared/scheduling/terms.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';

const SCORE_MAX = 100;
const rejection = (reason: string, isResolvable: boolean): Rejection => ({
  plugin: 'InterPodAffinity',
  reasons: [reason],
  isResolvable,
});
const NO_AFFINITY = rejection("node(s) didn't match pod affinity rules", false);
const ANTI_AFFINITY = rejection("node(s) didn't match pod anti-affinity rules", true);
const EXISTING_ANTI_AFFINITY = rejection("node(s) didn't satisfy existing pods anti-affinity rules", true);

/** How many pods by topology key and its value. A term counts a pod once. */
type Domains = Map<string, Map<string, number>>;

function addPods(domains: Domains, topologyKey: string, node: NodeState['node'] | undefined, change: number): void {
  const value = node?.labels[topologyKey];
  if (value === undefined) return;
  const byValue = domains.get(topologyKey) ?? new Map<string, number>();
  domains.set(topologyKey, byValue);
  const count = (byValue.get(value) ?? 0) + change;
  if (count === 0) byValue.delete(value);
  else byValue.set(value, count);
}

function addDomains(
  domains: Domains,
  topologyKey: string,
  of: { readonly byNode: CountsByNode; readonly snapshot: Snapshot },
): void {
  for (const [nodeName, count] of of.byNode) {
    addPods(domains, topologyKey, of.snapshot.nodes.get(nodeName)?.node, count);
  }
}

const contains = (domains: Domains, node: NodeState['node']): boolean => {
  for (const [topologyKey, values] of domains) {
    const value = node.labels[topologyKey];
    if (value !== undefined && values.has(value)) return true;
  }
  return false;
};

const matchesAllTerms = ({ affinity }: SchedulablePod, other: SchedulablePod, { namespaces }: Snapshot): boolean =>
  affinity.every((term) => termMatches(term, other, namespaces));

/** Pods that match all terms. A pod that matches only some of them does not count. */
const affinityCounts = (pod: SchedulablePod, snapshot: Snapshot): CountsByNode =>
  snapshot.counts(`all|${pod.affinity.map(({ text }) => text).join('&')}`, (other) =>
    matchesAllTerms(pod, other, snapshot),
  );

/** Counts of the pods that restrict by a required term, of either side, where this pod may run. */
export function requiredCounts(pod: SchedulablePod, snapshot: Snapshot): readonly CountsByNode[] {
  const counts = pod.antiAffinity.map((term) => snapshot.countsOfTerm(term));
  if (pod.affinity.length > 0) counts.push(affinityCounts(pod, snapshot));
  for (const { term, byNode } of snapshot.antiTerms) {
    if (termMatches(term, pod, snapshot.namespaces)) counts.push(byNode);
  }
  return counts;
}

/** Required terms of either side, for one pod. */
export interface PodAffinity {
  readonly filter: Filter;
  /** No term of either side concerned the pod at the beginning. */
  readonly isIdle: boolean;
  /** Another pod counts from now on, or no longer. */
  count(other: SchedulablePod, change: 1 | -1): void;
}

export function podAffinity(pod: SchedulablePod, snapshot: Snapshot): PodAffinity {
  const { affinity, antiAffinity } = pod;
  /** Of pods that match all terms; of those that match a term against others; of existing pods with one against it. */
  const [near, anti, existing]: [Domains, Domains, Domains] = [new Map(), new Map(), new Map()];
  if (affinity.length > 0) {
    const byNode = affinityCounts(pod, snapshot);
    for (const { topologyKey } of affinity) addDomains(near, topologyKey, { byNode, snapshot });
  }
  for (const term of antiAffinity) {
    addDomains(anti, term.topologyKey, { byNode: snapshot.countsOfTerm(term), snapshot });
  }
  for (const { term, byNode } of snapshot.antiTerms) {
    if (termMatches(term, pod, snapshot.namespaces)) addDomains(existing, term.topologyKey, { byNode, snapshot });
  }
  const matchesItself = affinity.length > 0 && matchesAllTerms(pod, pod, snapshot);
  const isNear = ({ labels }: NodeState['node']): boolean => {
    // The first pod of its kind may start anywhere.
    const isFirst = matchesItself && [...near.values()].every(({ size }) => size === 0);
    return affinity.every(({ topologyKey }) => {
      const value = labels[topologyKey];
      return value !== undefined && (isFirst || near.get(topologyKey)?.has(value) === true);
    });
  };
  return {
    isIdle: affinity.length === 0 && antiAffinity.length === 0 && existing.size === 0,
    filter: ({ node }) => {
      if (affinity.length > 0 && !isNear(node)) return NO_AFFINITY;
      if (contains(anti, node)) return ANTI_AFFINITY;
      return contains(existing, node) ? EXISTING_ANTI_AFFINITY : undefined;
    },
    count(other, change) {
      const node = snapshot.nodes.get(other.nodeName)?.node;
      if (affinity.length > 0 && matchesAllTerms(pod, other, snapshot)) {
        for (const { topologyKey } of affinity) addPods(near, topologyKey, node, change);
      }
      for (const term of antiAffinity) {
        if (termMatches(term, other, snapshot.namespaces)) addPods(anti, term.topologyKey, node, change);
      }
      for (const term of other.antiAffinity) {
        if (termMatches(term, pod, snapshot.namespaces)) addPods(existing, term.topologyKey, node, change);
      }
    },
  };
}

/** Undefined: no term of either side concerns the pod. */
export function podAffinityFilter(pod: SchedulablePod, snapshot: Snapshot): Filter | undefined {
  const { isIdle, filter } = podAffinity(pod, snapshot);
  return isIdle ? undefined : filter;
}

type Weights = Map<string, Map<string, number>>;

function addWeights(
  weights: Weights,
  { topologyKey }: PodTerm,
  of: { readonly weight: number; readonly byNode: CountsByNode; readonly snapshot: Snapshot },
): void {
  const byValue = weights.get(topologyKey) ?? new Map<string, number>();
  for (const [nodeName, count] of of.byNode) {
    const value = of.snapshot.nodes.get(nodeName)?.node.labels[topologyKey];
    if (value === undefined) continue;
    weights.set(topologyKey, byValue);
    byValue.set(value, (byValue.get(value) ?? 0) + of.weight * count);
  }
}

/** By node name, 0 to 100. Undefined: no term of either side matches, so the plugin adds nothing. */
export function podAffinityScores(
  pod: SchedulablePod,
  feasible: readonly NodeState[],
  snapshot: Snapshot,
): ReadonlyMap<string, number> | undefined {
  const weights: Weights = new Map();
  for (const { term, weight } of pod.preferredAffinity) {
    addWeights(weights, term, { weight, byNode: snapshot.countsOfTerm(term), snapshot });
  }
  for (const { term, weight } of pod.preferredAntiAffinity) {
    addWeights(weights, term, { weight: -weight, byNode: snapshot.countsOfTerm(term), snapshot });
  }
  for (const { term, weight, byNode } of snapshot.scoredTerms) {
    if (termMatches(term, pod, snapshot.namespaces)) addWeights(weights, term, { weight, byNode, snapshot });
  }
  if (weights.size === 0) return undefined;
  const raw = feasible.map(({ node }) => {
    let sum = 0;
    for (const [topologyKey, byValue] of weights) {
      const value = node.labels[topologyKey];
      if (value !== undefined) sum += byValue.get(value) ?? 0;
    }
    return sum;
  });
  const most = Math.max(...raw);
  const least = Math.min(...raw);
  return new Map(
    feasible.map(({ node }, index) => [
      node.name,
      // In this order, as upstream: the product of the rounded quotient may be below the whole number.
      most === least ? 0 : Math.trunc(SCORE_MAX * ((raw[index]! - least) / (most - least))),
    ]),
  );
}
