/**
 * One scheduling cycle: which node a pod is bound to, or why it cannot be scheduled. Pure: the same snapshot yields the
 * same result, in whatever order its nodes and pods were added.
 *
 * Source: pkg/scheduler/schedule_one.go; the plugins with the default weights of
 * pkg/scheduler/apis/config/v1/default_plugins.go.
 */

import { missingFeatures } from '../../shared/kinds/pods/declared-features.ts';
import type { Filter, PluginName, Rejection } from '../../shared/scheduling/filter.rule.ts';
import {
  namedNodes,
  nodeAffinityFilter,
  nodeAffinityScore,
  preferNoScheduleTaints,
  taintFilter,
  unschedulableFilter,
} from '../../shared/scheduling/node-match.rule.ts';
import type { NodeState, Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { textHash } from '../../shared/text.ts';
import { availability, NO_NODES } from './failure-message.rule.ts';
import { podAffinityFilter, podAffinityScores } from './pod-affinity.rule.ts';
import {
  balancedAllocationScore,
  hostPortFilter,
  imageLocalityScore,
  leastAllocatedScore,
  resourcesFilter,
} from './resources.rule.ts';
import { spreadFilter, spreadScores } from './topology-spread.rule.ts';
import type { PodVolumes } from './volumes.rule.ts';

export interface CycleOptions {
  /** Share of the nodes to score, in per cent; 0: as upstream by the number of nodes. */
  readonly percentageOfNodesToScore: number;
  readonly defaultTopologySpread: 'system' | 'none';
  /**
   * While the safety gate is closed: whether the node had a heartbeat within one grace period. Absent: the gate is
   * open.
   */
  readonly hasRecentHeartbeat?: (nodeName: string) => boolean;
  /** The claims of the pod. Absent: it has none. */
  readonly volumes?: PodVolumes;
  /** Of the pod, for the pods that count now. Absent: it is computed. */
  readonly podAffinity?: Filter;
}

const WEIGHTS = {
  TaintToleration: 3,
  NodeAffinity: 2,
  PodTopologySpread: 2,
  InterPodAffinity: 2,
  NodeResourcesFit: 1,
  NodeResourcesBalancedAllocation: 1,
  ImageLocality: 1,
} as const;
export type ScorePlugin = keyof typeof WEIGHTS;

export interface ScoredNode {
  readonly nodeName: string;
  readonly total: number;
  /** 0 to 100 each, before the weight. Plugins that add nothing are absent. */
  readonly scores: Readonly<Partial<Record<ScorePlugin, number>>>;
}

export interface Fit {
  readonly kind: 'fits';
  readonly nodeName: string;
  /** Nodes that passed every filter. */
  readonly feasible: number;
  /** Nodes that were filtered. */
  readonly examined: number;
  /** The best ones, best first; empty when a single node was feasible or the pod was nominated. */
  readonly best: readonly ScoredNode[];
  readonly rejections: ReadonlyMap<string, Rejection>;
}

export interface NoFit {
  readonly kind: 'rejected';
  /** The whole text, without preemption. */
  readonly message: string;
  /** By node name; empty when the pod itself was rejected. */
  readonly rejections: ReadonlyMap<string, Rejection>;
  /** Plugins that rejected the pod or a node. None: there is no node, and the pod is retried by its backoff alone. */
  readonly plugins: readonly PluginName[];
}

export type CycleOutcome = Fit | NoFit;

/** Upstream's minFeasibleNodesToFind and minFeasibleNodesPercentageToFind. */
const NODES_MIN = 100;
const PERCENTAGE_MIN = 5;
/** Candidates that a decision records. */
const BEST_MAX = 3;
const SCORE_MAX = 100;

const NOT_NAMED: Rejection = {
  plugin: 'NodeAffinity',
  reasons: ["node(s) didn't satisfy plugin(s) [NodeAffinity]"],
  isResolvable: false,
};
const WITHOUT_HEARTBEAT: Rejection = {
  plugin: 'SafetyGate',
  reasons: ['node(s) had no recent heartbeat while the safety gate was closed'],
  isResolvable: false,
};

const NOT_DECLARED: Rejection = {
  plugin: 'NodeDeclaredFeatures',
  reasons: ["node(s) didn't match Pod's required features"],
  isResolvable: false,
};

const declaringFilter =
  ({ neededFeatures }: SchedulablePod): Filter =>
  ({ node }) =>
    missingFeatures(neededFeatures, node.declaredFeatures).length === 0 ? undefined : NOT_DECLARED;

/** How many feasible nodes are enough. */
export function feasibleNodesWanted(nodes: number, percentage: number): number {
  if (nodes < NODES_MIN) return nodes;
  const share = percentage > 0 ? percentage : Math.max(PERCENTAGE_MIN, 50 - Math.trunc(nodes / 125));
  return share >= 100 ? nodes : Math.max(NODES_MIN, Math.trunc((nodes * share) / 100));
}

/** A property of the pod alone that no node can satisfy. */
function podRejection(
  pod: SchedulablePod,
  { volumes }: CycleOptions,
): { readonly plugin: PluginName; readonly text: string } | undefined {
  if (pod.usesResourceClaims) {
    return { plugin: 'DynamicResources', text: 'dynamic resource claims are not supported' };
  }
  if (volumes?.rejection !== undefined) return volumes.rejection;
  return namedNodes(pod)?.size === 0 ? { plugin: 'NodeAffinity', text: 'pod affinity terms conflict' } : undefined;
}

/** The filters of a pod, in upstream's order. Those over other pods hold for the pods that count now. */
export function filtersOf(pod: SchedulablePod, snapshot: Snapshot, options: CycleOptions): Filter {
  const { hasRecentHeartbeat } = options;
  const gate: Filter | undefined =
    hasRecentHeartbeat && (({ node }) => (hasRecentHeartbeat(node.name) ? undefined : WITHOUT_HEARTBEAT));
  const filters = [
    unschedulableFilter(pod),
    taintFilter(pod),
    nodeAffinityFilter(pod),
    pod.hostPorts.length === 0 ? undefined : hostPortFilter(pod),
    resourcesFilter(pod),
    options.volumes?.filter,
    spreadFilter(pod, snapshot),
    options.podAffinity ?? podAffinityFilter(pod, snapshot),
    pod.neededFeatures.length === 0 ? undefined : declaringFilter(pod),
    gate,
  ].filter((filter) => filter !== undefined);
  return (state) => {
    for (const filter of filters) {
      const rejected = filter(state);
      if (rejected !== undefined) return rejected;
    }
    return undefined;
  };
}

/**
 * Filters a node also with the pods of the same or a higher priority that are nominated to it: their room is reserved.
 * The pod must fit with them and without them.
 */
function withNominated(pod: SchedulablePod, snapshot: Snapshot, options: CycleOptions, plain: Filter): Filter {
  if (!snapshot.hasNominations) return plain;
  return (state) => {
    const { name } = state.node;
    const nominated = [...snapshot.nominatedTo(name)]
      .filter(({ uid, priority }) => uid !== pod.uid && priority >= pod.priority)
      .map((each) => ({ ...each, nodeName: name }));
    if (nominated.length === 0) return plain(state);
    const rejected = snapshot.withAdded(nominated, () => filtersOf(pod, snapshot, options)(state));
    return rejected ?? plain(state);
  };
}

export const nominationFilter = (pod: SchedulablePod, snapshot: Snapshot, options: CycleOptions): Filter =>
  withNominated(pod, snapshot, options, filtersOf(pod, snapshot, options));

export function schedulePod(pod: SchedulablePod, snapshot: Snapshot, options: CycleOptions): CycleOutcome {
  const nodes = snapshot.nodes.size;
  if (nodes === 0) return { kind: 'rejected', message: NO_NODES, rejections: new Map(), plugins: [] };
  const ownRejection = podRejection(pod, options);
  if (ownRejection !== undefined) {
    const message = `0/${nodes} nodes are available: ${ownRejection.text}.`;
    return { kind: 'rejected', message, rejections: new Map(), plugins: [ownRejection.plugin] };
  }
  const filter = nominationFilter(pod, snapshot, options);
  const nominated = snapshot.nodes.get(pod.nominatedNodeName);
  if (nominated !== undefined && filter(nominated) === undefined) {
    const { name: nodeName } = nominated.node;
    return { kind: 'fits', nodeName, feasible: 1, examined: 1, best: [], rejections: new Map() };
  }
  const { feasible, rejections, examined } = filtered(pod, snapshot, { filter, options });
  if (feasible.length === 0) return noFit(nodes, rejections);
  const fit = { kind: 'fits', feasible: feasible.length, examined, rejections } as const;
  const [first] = feasible;
  if (feasible.length === 1) return { ...fit, nodeName: first!.node.name, best: [] };
  const best = scoredNodes(pod, feasible, snapshot, options);
  return { ...fit, nodeName: best[0]!.nodeName, best: best.slice(0, BEST_MAX) };
}

/** Filters nodes until enough are feasible, from a start that depends on the pod. */
function filtered(
  pod: SchedulablePod,
  snapshot: Snapshot,
  { filter, options }: { readonly filter: Filter; readonly options: CycleOptions },
): { readonly feasible: NodeState[]; readonly rejections: Map<string, Rejection>; readonly examined: number } {
  const feasible: NodeState[] = [];
  const rejections = new Map<string, Rejection>();
  const named = namedNodes(pod);
  const { order } = snapshot;
  const wanted = feasibleNodesWanted(order.length, options.percentageOfNodesToScore);
  const start = textHash(pod.uid) % order.length;
  let examined = 0;
  for (let step = 0; step < order.length && feasible.length < wanted; step += 1) {
    const name = order[(start + step) % order.length]!;
    if (named !== undefined && !named.has(name)) {
      rejections.set(name, NOT_NAMED);
      continue;
    }
    const state = snapshot.nodes.get(name)!;
    examined += 1;
    const rejected = filter(state);
    if (rejected === undefined) feasible.push(state);
    else rejections.set(name, rejected);
  }
  return { feasible, rejections, examined };
}

function noFit(nodes: number, rejections: ReadonlyMap<string, Rejection>): NoFit {
  const counts = new Map<string, number>();
  const plugins = new Set<PluginName>();
  for (const { plugin, reasons } of rejections.values()) {
    plugins.add(plugin);
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return { kind: 'rejected', message: availability(nodes, counts), rejections, plugins: [...plugins].sort() };
}

/** Scaled: the highest is 100, with `reverse` 0. */
function normalised(raw: readonly number[], reverse = false): readonly number[] {
  const most = Math.max(...raw);
  if (most === 0) return raw.map(() => (reverse ? SCORE_MAX : 0));
  return raw.map((score) => {
    const scaled = Math.trunc((SCORE_MAX * score) / most);
    return reverse ? SCORE_MAX - scaled : scaled;
  });
}

/** All feasible nodes with their scores, best first. */
export function scoredNodes(
  pod: SchedulablePod,
  feasible: readonly NodeState[],
  snapshot: Snapshot,
  options: CycleOptions,
): readonly ScoredNode[] {
  const taints = normalised(
    feasible.map(({ node }) => preferNoScheduleTaints(pod, node)),
    true,
  );
  const affinity =
    pod.preferredNodeTerms.length === 0
      ? undefined
      : normalised(feasible.map(({ node }) => nodeAffinityScore(pod, node)));
  const usesDefaults = options.defaultTopologySpread === 'system';
  const spread = spreadScores(pod, feasible, { snapshot, usesDefaults });
  const byPods = podAffinityScores(pod, feasible, snapshot);
  const isBalanced = pod.requests.cpu > 0 || pod.requests.memory > 0;
  const scored = feasible.map((state, index): ScoredNode => {
    const { name: nodeName } = state.node;
    const scores: Partial<Record<ScorePlugin, number>> = {
      TaintToleration: taints[index]!,
      NodeResourcesFit: leastAllocatedScore(pod, state),
      ImageLocality: imageLocalityScore(pod, state, snapshot),
    };
    if (affinity !== undefined) scores.NodeAffinity = affinity[index]!;
    if (spread !== undefined) scores.PodTopologySpread = spread.get(nodeName)!;
    if (byPods !== undefined) scores.InterPodAffinity = byPods.get(nodeName)!;
    if (isBalanced) scores.NodeResourcesBalancedAllocation = balancedAllocationScore(pod, state);
    return { nodeName, scores, total: totalOf(scores) };
  });
  return inOrder(scored, pod.uid);
}

/** Weighted scores by plugin; their sum is the total. */
export function weightedScores(
  scores: ScoredNode['scores'],
): readonly { readonly plugin: ScorePlugin; readonly score: number; readonly weight: number }[] {
  return (Object.keys(WEIGHTS) as ScorePlugin[]).flatMap((plugin) => {
    const score = scores[plugin];
    return score === undefined ? [] : [{ plugin, score, weight: WEIGHTS[plugin] }];
  });
}

export function totalOf(scores: ScoredNode['scores']): number {
  let total = 0;
  for (const plugin in scores) total += WEIGHTS[plugin as ScorePlugin] * scores[plugin as ScorePlugin]!;
  return total;
}

/** The highest total first; equal ones by a hash of node and pod, where upstream draws a random number. */
export function inOrder(nodes: readonly ScoredNode[], podUid: string): readonly ScoredNode[] {
  const hashes = new Map<string, number>();
  const tie = ({ nodeName }: ScoredNode): number => {
    const known = hashes.get(nodeName);
    if (known !== undefined) return known;
    const hash = textHash(`${nodeName}/${podUid}`);
    hashes.set(nodeName, hash);
    return hash;
  };
  return nodes.toSorted(
    (one, other) => other.total - one.total || tie(other) - tie(one) || (one.nodeName < other.nodeName ? -1 : 1),
  );
}
