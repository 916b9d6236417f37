/**
 * PodTopologySpread: hard constraints as a filter, soft ones as a score.
 *
 * Source: pkg/scheduler/framework/plugins/podtopologyspread/{common,filtering,scoring,plugin}.go.
 */
import { ZONE_LABEL } from '../../shared/fleet/nodes/node-digest.ts';
import type { Filter, Rejection } from '../../shared/scheduling/filter.rule.ts';
import { matchesNodeAffinity, toleratesTaints } from '../../shared/scheduling/node-match.rule.ts';
import type { CountsByNode, NodeState, Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { compiledSelector } from '../../shared/scheduling/terms.rule.ts';
import type { SchedulableNode, SchedulablePod, SpreadConstraint } from '../../shared/scheduling/world.rule.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const SCORE_MAX = 100;
/** An empty selector counts no pod, as upstream, although it matches the pod itself. */
const EMPTY_TEXT = compiledSelector({}, { labels: {} }).text;
const NO_COUNTS: CountsByNode = new Map();

const SKEWED: Rejection = {
  plugin: 'PodTopologySpread',
  reasons: ["node(s) didn't match pod topology spread constraints"],
  isResolvable: true,
};
const WITHOUT_LABEL: Rejection = {
  plugin: 'PodTopologySpread',
  reasons: ["node(s) didn't match pod topology spread constraints (missing required label)"],
  isResolvable: false,
};

const hasKeys = (node: SchedulableNode, constraints: readonly SpreadConstraint[]): boolean =>
  constraints.every(({ topologyKey }) => node.labels[topologyKey] !== undefined);

const isIncluded = (pod: SchedulablePod, node: SchedulableNode, constraint: SpreadConstraint): boolean =>
  (!constraint.honorsAffinity || matchesNodeAffinity(pod, node)) &&
  (!constraint.honorsTaints || toleratesTaints(pod, node));

function countsOf({ namespace }: SchedulablePod, { selector }: SpreadConstraint, snapshot: Snapshot): CountsByNode {
  if (selector.text === EMPTY_TEXT) return NO_COUNTS;
  return snapshot.counts(
    `spread|${namespace}|${selector.text}`,
    (other) => other.namespace === namespace && !other.isTerminating && selector.matches(other.labels),
  );
}

/** Counts of the pods that a hard constraint of this pod selects. */
export const hardSpreadCounts = (pod: SchedulablePod, snapshot: Snapshot): readonly CountsByNode[] =>
  pod.spread.flatMap((constraint) => (constraint.isHard ? [countsOf(pod, constraint, snapshot)] : []));

export interface SpreadDomains {
  readonly constraint: SpreadConstraint;
  /** Matching pods by value of the topology key, over the nodes that count. */
  readonly counts: ReadonlyMap<string, number>;
  /** The smallest count; 0 with fewer domains than `minDomains`. */
  readonly least: number;
}

/** The domains of each hard constraint. */
export function spreadDomains(pod: SchedulablePod, snapshot: Snapshot): readonly SpreadDomains[] {
  const hard = pod.spread.filter(({ isHard }) => isHard);
  return hard.map((constraint) => {
    const byNode = countsOf(pod, constraint, snapshot);
    const counts = new Map<string, number>();
    for (const { node } of snapshot.nodes.values()) {
      if (!hasKeys(node, hard) || !isIncluded(pod, node, constraint)) continue;
      const value = node.labels[constraint.topologyKey]!;
      counts.set(value, (counts.get(value) ?? 0) + (byNode.get(node.name) ?? 0));
    }
    let least = Number.POSITIVE_INFINITY;
    for (const count of counts.values()) least = Math.min(least, count);
    return { constraint, counts, least: counts.size < Math.max(1, constraint.minDomains) ? 0 : least };
  });
}

/** Undefined: the pod has no hard constraint. */
export function spreadFilter(pod: SchedulablePod, snapshot: Snapshot): Filter | undefined {
  if (!pod.spread.some(({ isHard }) => isHard)) return undefined;
  const domains = spreadDomains(pod, snapshot).map((each) => ({
    ...each,
    self: each.constraint.selector.matches(pod.labels) ? 1 : 0,
  }));
  return ({ node }) => {
    for (const { constraint, counts, least, self } of domains) {
      const value = node.labels[constraint.topologyKey];
      if (value === undefined) return WITHOUT_LABEL;
      if ((counts.get(value) ?? 0) + self - least > constraint.maxSkew) return SKEWED;
    }
    return undefined;
  };
}

interface SoftConstraint {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly counts: CountsByNode;
  readonly isIncluded: (node: SchedulableNode) => boolean;
}

/** Defaults for pods without constraints, over the pods of the same controller. */
const DEFAULTS = [
  { topologyKey: HOSTNAME, maxSkew: 3 },
  { topologyKey: ZONE_LABEL, maxSkew: 5 },
] as const;

function softConstraints(
  pod: SchedulablePod,
  snapshot: Snapshot,
  usesDefaults: boolean,
): { readonly constraints: readonly SoftConstraint[]; readonly needsAllKeys: boolean } {
  if (pod.spread.length > 0) {
    const soft = pod.spread.filter(({ isHard }) => !isHard);
    const constraints = soft.map((constraint) => ({
      topologyKey: constraint.topologyKey,
      maxSkew: constraint.maxSkew,
      counts: countsOf(pod, constraint, snapshot),
      isIncluded: (node: SchedulableNode) => hasKeys(node, soft) && isIncluded(pod, node, constraint),
    }));
    return { constraints, needsAllKeys: true };
  }
  const { namespace, controllerUid } = pod;
  if (!usesDefaults || controllerUid === '') return { constraints: [], needsAllKeys: false };
  const counts = snapshot.counts(
    `controller|${namespace}|${controllerUid}`,
    (other) => other.namespace === namespace && !other.isTerminating && other.controllerUid === controllerUid,
  );
  const included = (node: SchedulableNode): boolean => matchesNodeAffinity(pod, node);
  return { constraints: DEFAULTS.map((each) => ({ ...each, counts, isIncluded: included })), needsAllKeys: false };
}

/** By node name, 0 to 100. Undefined: the pod has no soft constraint, so the plugin adds nothing. */
export function spreadScores(
  pod: SchedulablePod,
  feasible: readonly NodeState[],
  { snapshot, usesDefaults }: { readonly snapshot: Snapshot; readonly usesDefaults: boolean },
): ReadonlyMap<string, number> | undefined {
  const { constraints, needsAllKeys } = softConstraints(pod, snapshot, usesDefaults);
  if (constraints.length === 0) return undefined;
  const scored = feasible.filter(
    ({ node }) => !needsAllKeys || constraints.every(({ topologyKey }) => node.labels[topologyKey] !== undefined),
  );
  const raw = new Map<string, number>(scored.map(({ node }) => [node.name, 0]));
  for (const constraint of constraints) {
    const countAt = countsByValue(constraint, snapshot);
    const values = new Set(scored.map(({ node }) => node.labels[constraint.topologyKey]));
    const size = constraint.topologyKey === HOSTNAME ? scored.length : values.size;
    const weight = Math.log(size + 2);
    for (const { node } of scored) {
      if (node.labels[constraint.topologyKey] === undefined) continue;
      raw.set(node.name, raw.get(node.name)! + countAt(node) * weight + constraint.maxSkew - 1);
    }
  }
  for (const [name, sum] of raw) raw.set(name, Math.round(sum));
  const most = Math.max(...raw.values());
  const least = Math.min(...raw.values());
  const scoreOf = (sum: number): number =>
    most === 0 ? SCORE_MAX : Math.floor((SCORE_MAX * (most + least - sum)) / most);
  return new Map(
    feasible.map(({ node }) => {
      const sum = raw.get(node.name);
      return [node.name, sum === undefined ? 0 : scoreOf(sum)];
    }),
  );
}

/** Pods in the domain of a node. The domain of a host name is the node itself. */
function countsByValue(
  { topologyKey, counts, isIncluded: included }: SoftConstraint,
  snapshot: Snapshot,
): (node: SchedulableNode) => number {
  if (topologyKey === HOSTNAME) return ({ name }) => counts.get(name) ?? 0;
  const byValue = new Map<string, number>();
  for (const [nodeName, count] of counts) {
    const node = snapshot.nodes.get(nodeName)?.node;
    const value = node?.labels[topologyKey];
    if (node === undefined || value === undefined || !included(node)) continue;
    byValue.set(value, (byValue.get(value) ?? 0) + count);
  }
  return ({ labels }) => byValue.get(labels[topologyKey] ?? '') ?? 0;
}
