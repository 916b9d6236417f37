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

/** Values of a topology key. */
type Domains = ReadonlyMap<string, ReadonlySet<string>>;

function addDomains(
  domains: Map<string, Set<string>>,
  topologyKey: string,
  of: { readonly byNode: CountsByNode; readonly snapshot: Snapshot },
): void {
  const values = domains.get(topologyKey) ?? new Set<string>();
  domains.set(topologyKey, values);
  for (const nodeName of of.byNode.keys()) {
    const value = of.snapshot.nodes.get(nodeName)?.node.labels[topologyKey];
    if (value !== undefined) values.add(value);
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

/** Domains with a pod that matches all terms. */
function affinityFilter(pod: SchedulablePod, snapshot: Snapshot): (node: NodeState['node']) => boolean {
  const terms = pod.affinity;
  const byNode = affinityCounts(pod, snapshot);
  const domains = new Map<string, Set<string>>();
  for (const { topologyKey } of terms) addDomains(domains, topologyKey, { byNode, snapshot });
  // The first pod of its kind may start anywhere.
  const isFirst = [...domains.values()].every(({ size }) => size === 0) && matchesAllTerms(pod, pod, snapshot);
  return (node) =>
    terms.every(({ topologyKey }) => {
      const value = node.labels[topologyKey];
      return value !== undefined && (isFirst || domains.get(topologyKey)!.has(value));
    });
}

/** Domains of the existing pods with a required anti-affinity that matches this pod. */
function existingAntiAffinity(pod: SchedulablePod, snapshot: Snapshot): Domains {
  const domains = new Map<string, Set<string>>();
  for (const { term, byNode } of snapshot.antiTerms) {
    if (termMatches(term, pod, snapshot.namespaces)) addDomains(domains, term.topologyKey, { byNode, snapshot });
  }
  return domains;
}

/** Undefined: no term of either side concerns the pod. */
export function podAffinityFilter(pod: SchedulablePod, snapshot: Snapshot): Filter | undefined {
  const existing = existingAntiAffinity(pod, snapshot);
  if (pod.affinity.length === 0 && pod.antiAffinity.length === 0 && existing.size === 0) return undefined;
  const hasAffinity = pod.affinity.length === 0 ? undefined : affinityFilter(pod, snapshot);
  const anti = new Map<string, Set<string>>();
  for (const term of pod.antiAffinity) {
    addDomains(anti, term.topologyKey, { byNode: snapshot.countsOfTerm(term), snapshot });
  }
  return ({ node }) => {
    if (hasAffinity?.(node) === false) return NO_AFFINITY;
    if (contains(anti, node)) return ANTI_AFFINITY;
    return contains(existing, node) ? EXISTING_ANTI_AFFINITY : undefined;
  };
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
