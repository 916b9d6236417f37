/** Decision records of the DaemonSet controller: on which nodes it created and deleted pods, and why. */
import {
  aboutWorkload,
  type DraftOf,
  type RecordedWorkload,
  type ReplayRules,
} from '../../../shared/decisions/decision-record.ts';
import type { DaemonNode, Placement } from './placement.rule.ts';
import { chosenBy, type RolloutChoice } from './rollout.rule.ts';
import { type DaemonPod, type DaemonRules, decideNode } from './rule.ts';

/** What the rule reads of a pod. */
type RecordedPod = Pick<
  DaemonPod,
  'name' | 'nodeName' | 'phase' | 'ready' | 'readyChangedAtMs' | 'createdAtMs' | 'isDeleting' | 'isUpdated'
>;

/** A node of the decision, with its pods. `node` is absent: it does not exist. */
interface RecordedNode {
  readonly name: string;
  readonly node?: DaemonNode;
  readonly pods: readonly RecordedPod[];
}

interface DaemonInputs {
  readonly daemonNodes: {
    readonly rules: DaemonRules;
    readonly nodes: readonly RecordedNode[];
    /** What the transaction changes: nodes with a new pod, or deleted pods. */
    readonly of: readonly string[];
  };
  readonly daemonRollout: { readonly choice: RolloutChoice; readonly of: readonly string[] };
}

export type DaemonSetDraft = DraftOf<DaemonInputs>;

export interface NodesOfDecision {
  readonly rules: DaemonRules;
  readonly nodes: ReadonlyMap<string, DaemonNode>;
  readonly podsOf: ReadonlyMap<string, readonly DaemonPod[]>;
}

/** One transaction of creations on nodes that have no pod. */
export const daemonPodsCreatedDraft = (
  set: RecordedWorkload,
  of: NodesOfDecision,
  { names, nodes }: { readonly names: readonly string[]; readonly nodes: readonly string[] },
  nowMs: number,
): DaemonSetDraft => ({
  act: 'PodsCreated',
  about: aboutWorkload('DaemonSet', set),
  atMs: nowMs,
  reason: `nodes without a pod: created ${names.map((name, index) => `${name} for ${nodes[index]}`).join(', ')}`,
  rule: 'daemonNodes',
  inputs: { ...recordedNodes(of, nodes), of: nodes },
  outcome: { create: [...nodes], remove: [] },
});

/** One transaction of deletions. `causes`: of each pod. */
export const daemonPodsDeletedDraft = (
  set: RecordedWorkload,
  of: NodesOfDecision,
  removed: readonly { readonly name: string; readonly target: string; readonly cause: string }[],
  nowMs: number,
): DaemonSetDraft => {
  const names = removed.map(({ name }) => name);
  return {
    act: 'PodsDeleted',
    about: aboutWorkload('DaemonSet', set),
    atMs: nowMs,
    reason: `deleted ${removed.map(({ name, target, cause }) => `${name} of ${target} (${cause})`).join(', ')}`,
    rule: 'daemonNodes',
    inputs: { ...recordedNodes(of, [...new Set(removed.map(({ target }) => target))]), of: names },
    outcome: { create: [], remove: names.toSorted() },
  };
};

/** One transaction of a rolling update. */
export const daemonRolloutDraft = (
  set: RecordedWorkload,
  act: 'PodsCreated' | 'PodsDeleted',
  choice: RolloutChoice,
  of: readonly string[],
  nowMs: number,
): DaemonSetDraft => ({
  act,
  about: aboutWorkload('DaemonSet', set),
  atMs: nowMs,
  reason:
    act === 'PodsCreated'
      ? `the template changed: ${choice.taken} of ${choice.limit} nodes have two pods; created one for ${of.join(', ')}`
      : `the template changed: ${choice.taken} of ${choice.limit} pods are unavailable; deleted ${of.join(', ')}`,
  rule: 'daemonRollout',
  inputs: { choice, of },
  outcome: { names: [...of] },
});

const recordedNodes = ({ rules, nodes, podsOf }: NodesOfDecision, names: readonly string[]) => ({
  rules,
  nodes: names.map((name): RecordedNode => {
    const node = nodes.get(name);
    const pods = (podsOf.get(name) ?? []).map(recordedPod);
    return { name, ...(node === undefined ? {} : { node: readPart(node, rules.placement) }), pods };
  }),
});

/** Labels that the placement does not name are left out. */
function readPart({ name, labels, taints }: DaemonNode, { nodeSelector, nodeTerms = [] }: Placement): DaemonNode {
  const keys = new Set([
    ...Object.keys(nodeSelector),
    ...nodeTerms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key)),
  ]);
  return { name, labels: Object.fromEntries(Object.entries(labels).filter(([key]) => keys.has(key))), taints };
}

const recordedPod = (pod: DaemonPod): RecordedPod => ({
  name: pod.name,
  nodeName: pod.nodeName,
  phase: pod.phase,
  ready: pod.ready,
  readyChangedAtMs: pod.readyChangedAtMs,
  createdAtMs: pod.createdAtMs,
  isDeleting: pod.isDeleting,
  isUpdated: pod.isUpdated,
});

const asPod = (pod: RecordedPod, target: string): DaemonPod => ({
  ...pod,
  readyChangedAtMs: pod.readyChangedAtMs,
  createdAtMs: pod.createdAtMs,
  target,
  namespace: '',
  uid: '',
  resourceVersion: '',
  labels: {},
  isSingle: false,
  deletionCost: 0,
  restartsMax: 0,
});

export const daemonSetReplay: ReplayRules<DaemonInputs> = {
  daemonNodes({ rules, nodes, of }, { atMs }) {
    const decided = nodes.map(({ name, node, pods }) => ({
      name,
      ...decideNode(
        rules,
        node,
        pods.map((pod) => asPod(pod, name)),
        atMs,
      ),
    }));
    const isOf = (name: string): boolean => of.includes(name);
    return {
      create: decided.flatMap(({ name, creates }) => (creates && isOf(name) ? [name] : [])),
      remove: decided.flatMap(({ remove }) => remove.map(({ pod }) => pod.name).filter(isOf)).toSorted(),
    };
  },
  daemonRollout: ({ choice, of }) => ({ names: chosenBy(choice).filter((name) => of.includes(name)) }),
};
