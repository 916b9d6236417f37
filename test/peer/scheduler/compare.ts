/** Compares what our rules decide about a cluster with what upstream's plugins decide. */

import { type Candidate, type PreemptionBudget, preempt } from '../../../functions/scheduler/preemption.rule.ts';
import { type CycleOutcome, type ScorePlugin, schedulePod, scoredNodes } from '../../../functions/scheduler/rule.ts';
import type { KubePodDisruptionBudget } from '../../../shared/kinds/types.ts';
import { selectorFromSpec } from '../../../shared/kubernetes/selectors.ts';
import type { PluginName } from '../../../shared/scheduling/filter.rule.ts';
import { Snapshot } from '../../../shared/scheduling/snapshot.rule.ts';
import { type SchedulablePod, schedulableNode, schedulablePod } from '../../../shared/scheduling/world.rule.ts';
import type { PeerCluster } from './clusters.ts';
import type { PeerAnswer, PeerCandidate } from './plugins.ts';

const OPTIONS = { percentageOfNodesToScore: 100, defaultTopologySpread: 'system' } as const;

export interface Difference {
  readonly pod: string;
  readonly subject: 'feasible nodes' | 'reasons' | 'resolvable' | `score ${string}` | 'candidates' | 'choice';
  readonly nodeName: string;
  readonly ours: unknown;
  readonly upstream: unknown;
}

export interface Comparison {
  readonly differences: readonly Difference[];
  readonly counted: Readonly<Record<'pods' | 'nodes' | 'rejections' | 'scores' | 'candidates', number>>;
}

/** Names of our scores and of upstream's. BalancedAllocation has another formula since 1.36. */
const SCORES: readonly (readonly [ScorePlugin, string])[] = [
  ['TaintToleration', 'TaintToleration'],
  ['NodeAffinity', 'NodeAffinity'],
  ['PodTopologySpread', 'PodTopologySpread'],
  ['InterPodAffinity', 'InterPodAffinity'],
  ['NodeResourcesFit', 'NodeResourcesLeastAllocated'],
  ['ImageLocality', 'ImageLocality'],
];

const POD_AFFINITY = "node(s) didn't match pod affinity/anti-affinity";

/** Texts of 1.20 in the words of 1.36. */
function inNewWords(reasons: readonly string[]): readonly string[] {
  return reasons
    .filter((reason) => reason !== POD_AFFINITY)
    .map((reason) =>
      reason.replace(/^node\(s\) had taint \{.*\}, that the pod didn't tolerate$/, 'node(s) had untolerated taint(s)'),
    )
    .map((reason) => (reason === "node(s) didn't match Pod's node affinity" ? `${reason}/selector` : reason))
    .toSorted();
}

export function snapshotOf(cluster: PeerCluster): Snapshot {
  const snapshot = new Snapshot();
  for (const node of cluster.nodes) snapshot.setNode(schedulableNode(node));
  for (const pod of [...cluster.bound, ...cluster.nominated]) snapshot.setPod(schedulablePod(pod));
  return snapshot;
}

function preemptionBudget(budget: KubePodDisruptionBudget): PreemptionBudget {
  return {
    namespace: budget.metadata.namespace ?? '',
    matches: selectorFromSpec(budget.spec?.selector).matches,
    allowed: budget.status?.disruptionsAllowed ?? 0,
    disruptedPods: new Set(Object.keys(budget.status?.disruptedPods ?? {})),
  };
}

export function compareCluster(cluster: PeerCluster, answers: readonly PeerAnswer[]): Comparison {
  const snapshot = snapshotOf(cluster);
  const budgets = cluster.budgets.map(preemptionBudget);
  const comparison = new PodComparison(cluster, snapshot, budgets);
  cluster.pending.forEach((each, index) => {
    comparison.compare(schedulablePod(each), answers[index]!);
  });
  return comparison;
}

class PodComparison implements Comparison {
  readonly differences: Difference[] = [];
  readonly counted = { pods: 0, nodes: 0, rejections: 0, scores: 0, candidates: 0 };
  readonly #hasAllZones: boolean;
  readonly #snapshot: Snapshot;
  readonly #budgets: readonly PreemptionBudget[];

  constructor(cluster: PeerCluster, snapshot: Snapshot, budgets: readonly PreemptionBudget[]) {
    this.#snapshot = snapshot;
    this.#budgets = budgets;
    this.#hasAllZones = cluster.nodes.every(
      ({ metadata }) => metadata.labels?.['topology.kubernetes.io/zone'] !== undefined,
    );
  }

  compare(pod: SchedulablePod, answer: PeerAnswer): void {
    this.counted.pods += 1;
    const outcome = schedulePod(pod, this.#snapshot, OPTIONS);
    // Every term of the affinity requires a name that no node can have: the pod is rejected as a whole.
    const isRejectedAlone = outcome.kind === 'rejected' && outcome.rejections.size === 0;
    const plugins = new Map<string, PluginName>();
    for (const nodeName of this.#snapshot.nodes.keys()) {
      this.counted.nodes += 1;
      const ours = outcome.rejections.get(nodeName);
      const upstream = answer.rejections[nodeName];
      if (isRejectedAlone) {
        if (upstream === undefined) this.#differ(pod, 'feasible nodes', nodeName, 'rejected', 'fits');
        continue;
      }
      if ((ours === undefined) !== (upstream === undefined)) {
        this.#differ(pod, 'feasible nodes', nodeName, ours ?? 'fits', upstream ?? 'fits');
      }
      if (ours === undefined || upstream === undefined) continue;
      plugins.set(nodeName, ours.plugin);
      this.#compareRejection(pod, nodeName, ours, upstream);
    }
    if (outcome.kind === 'fits') this.#compareScores(pod, outcome, answer);
    else if (!isRejectedAlone) this.#comparePreemption(pod, outcome, answer);
  }

  #compareRejection(
    pod: SchedulablePod,
    nodeName: string,
    ours: PeerAnswer['rejections'][string],
    upstream: PeerAnswer['rejections'][string],
  ): void {
    this.counted.rejections += 1;
    const expected = inNewWords(upstream.reasons);
    // Newer releases do not filter nodes that the pod's affinity does not name.
    if (ours.reasons[0]?.includes('[NodeAffinity]')) return;
    const reasons = ours.reasons.toSorted();
    if (reasons.join('|') !== expected.join('|')) this.#differ(pod, 'reasons', nodeName, reasons, expected);
    if (ours.isResolvable !== upstream.isResolvable) {
      this.#differ(pod, 'resolvable', nodeName, ours.isResolvable, upstream.isResolvable);
    }
  }

  #compareScores(pod: SchedulablePod, outcome: CycleOutcome, answer: PeerAnswer): void {
    const states = [...this.#snapshot.nodes.values()].filter(({ node }) => !outcome.rejections.has(node.name));
    const nodes = scoredNodes(pod, states, this.#snapshot, OPTIONS);
    // By default, 1.20 ignores nodes without a zone; newer releases count them as one zone.
    const usesDefaultSpread = pod.spread.length === 0 && pod.controllerUid !== '';
    for (const [ours, upstream] of SCORES) {
      if (ours === 'PodTopologySpread' && usesDefaultSpread && !this.#hasAllZones) continue;
      const expected = answer.scores[upstream] ?? {};
      // A plugin that adds nothing has the same score for every node.
      const isAbsent = nodes.every(({ scores }) => scores[ours] === undefined);
      const [same = 0] = Object.values(expected);
      for (const { nodeName, scores } of nodes) {
        this.counted.scores += 1;
        const score = isAbsent ? same : scores[ours];
        if (score !== expected[nodeName]) {
          this.#differ(pod, `score ${ours}`, nodeName, isAbsent ? 'absent' : score, expected[nodeName]);
        }
      }
    }
  }

  #comparePreemption(
    pod: SchedulablePod,
    noFit: Extract<CycleOutcome, { readonly kind: 'rejected' }>,
    answer: PeerAnswer,
  ): void {
    const outcome = preempt(pod, this.#snapshot, { noFit, options: { ...OPTIONS, budgets: this.#budgets } });
    const ours = outcome.kind === 'candidate' ? outcome.candidates : [];
    const byNode = new Map(ours.map((each) => [each.nodeName, textOf(each)]));
    const expected = new Map(answer.candidates.map((each) => [each.nodeName, textOfPeer(each)]));
    this.counted.candidates += expected.size;
    for (const nodeName of new Set([...byNode.keys(), ...expected.keys()])) {
      if (byNode.get(nodeName) !== expected.get(nodeName)) {
        this.#differ(pod, 'candidates', nodeName, byNode.get(nodeName) ?? 'none', expected.get(nodeName) ?? 'none');
      }
    }
    if (outcome.kind !== 'candidate' || outcome.chosen.nodeName === answer.pick) return;
    // 1.20 assumes that the first victim is the most important one. Victims that violate a budget come before it.
    if (ours.some(({ victims, violations }) => violations > 0 && violations < victims.length)) return;
    const picked = ours.find(({ nodeName }) => nodeName === answer.pick);
    if (picked === undefined || rankOf(picked) !== rankOf(outcome.chosen)) {
      this.#differ(pod, 'choice', outcome.chosen.nodeName, rankOf(outcome.chosen), picked && rankOf(picked));
    }
  }

  #differ(pod: SchedulablePod, subject: Difference['subject'], nodeName: string, ours: unknown, upstream: unknown) {
    this.differences.push({ pod: pod.key, subject, nodeName, ours, upstream });
  }
}

const textOf = ({ victims, violations }: Candidate): string =>
  `${victims
    .map(({ key }) => key)
    .sort()
    .join(' ')}, ${violations} violations`;

const textOfPeer = ({ victims, violations }: PeerCandidate): string =>
  `${victims.toSorted().join(' ')}, ${violations} violations`;

/** Equal for candidates between which upstream chooses any. */
function rankOf({ victims, violations }: Candidate): string {
  const highest = Math.max(...victims.map(({ priority }) => priority));
  const starts = victims.filter(({ priority }) => priority === highest).map(({ startedAtMs = 0 }) => startedAtMs);
  const sum = victims.reduce((total, { priority }) => total + priority, 0);
  return [violations, highest, sum, victims.length, Math.min(...starts)].join(' ');
}
