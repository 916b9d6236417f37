/**
 * The queue: order, backoff, and which changes of the cluster let a rejected pod be tried again.
 *
 * Source: pkg/scheduler/backend/queue/scheduling_queue.go, backoff_queue.go, and the queueing hints of the plugins.
 */
import { backoffMs } from '../backoff.ts';
import { conflictsWith } from '../kinds/pods/pod-needs.ts';
import type { PluginName } from './filter.rule.ts';
import { matchesNodeAffinity, toleratesCordon, toleratesTaints } from './node-match.rule.ts';
import { comparedAmounts } from './requests.rule.ts';
import { type Labels, type NamespaceLabels, type PodTerm, termMatches } from './terms.rule.ts';
import { countsOnNode, isPending, type SchedulableNode, type SchedulablePod } from './world.rule.ts';

/** A pod that was tried and is not bound. */
export interface WaitingPod {
  readonly uid: string;
  /** Attempts that ended with a rejection. */
  readonly rejections: number;
  /** Attempts that ended with a fault, since the last rejection. */
  readonly errors: number;
  /** End of the last attempt. Epoch milliseconds. */
  readonly triedAtMs: number;
  /** Plugins that rejected it. None: it needs no change of the cluster to be tried again. */
  readonly plugins: readonly PluginName[];
  /** A change since the last attempt may help: it is tried when its backoff ends. */
  readonly isRequeued: boolean;
}

export interface BackoffPolicy {
  readonly podInitialBackoffSeconds: number;
  readonly podMaxBackoffSeconds: number;
  readonly podUnschedulableRetrySeconds: number;
}

/** Time between the last attempt and the next one. Milliseconds. */
export function podBackoffMs(
  { rejections, errors }: Pick<WaitingPod, 'rejections' | 'errors'>,
  policy: BackoffPolicy,
): number {
  const count = errors > 0 ? errors : rejections;
  if (count === 0) return 0;
  const { podInitialBackoffSeconds, podMaxBackoffSeconds } = policy;
  return backoffMs({ firstMs: podInitialBackoffSeconds * 1_000, limitMs: podMaxBackoffSeconds * 1_000 }, count - 1);
}

/** When the pod is tried next, by what is known now. Epoch milliseconds. */
export function dueAtMs(waiting: WaitingPod, policy: BackoffPolicy): number {
  const needsChange = waiting.plugins.length > 0 && waiting.errors === 0;
  const afterBackoff = waiting.triedAtMs + podBackoffMs(waiting, policy);
  if (!needsChange || waiting.isRequeued || waiting.plugins.includes('SafetyGate')) return afterBackoff;
  return waiting.triedAtMs + policy.podUnschedulableRetrySeconds * 1_000 + 1;
}

/** A pod in the queue. `queuedAtMs`: its creation, or the end of its last attempt. */
export interface QueuedPod {
  readonly pod: Pick<SchedulablePod, 'priority' | 'uid'>;
  readonly queuedAtMs: number;
}

/** The higher priority first, then the longer wait, then the uid. */
export const inQueueOrder = (one: QueuedPod, other: QueuedPod): number =>
  other.pod.priority - one.pod.priority || one.queuedAtMs - other.queuedAtMs || (one.pod.uid < other.pod.uid ? -1 : 1);

/** A change of a Node or a pod, an absent side does not exist; or of any claim, volume or class. */
export type WorldChange =
  | { readonly kind: 'volumes' }
  | { readonly kind: 'node'; readonly before: SchedulableNode | undefined; readonly after: SchedulableNode | undefined }
  | { readonly kind: 'pod'; readonly before: SchedulablePod | undefined; readonly after: SchedulablePod | undefined };

type NodeChange = Extract<WorldChange, { kind: 'node' }>;
type PodChange = Extract<WorldChange, { kind: 'pod' }>;

interface Hints {
  readonly node?: (pod: SchedulablePod, change: NodeChange) => boolean;
  readonly pod?: (pod: SchedulablePod, change: PodChange, namespaces: NamespaceLabels) => boolean;
  /** Whether a claim, volume or class may help. */
  readonly volumes?: true;
  /** The waiting pod itself changed. */
  readonly own?: (before: SchedulablePod, after: SchedulablePod) => boolean;
}

const counts = (pod: SchedulablePod | undefined): boolean => pod !== undefined && countsOnNode(pod);

/** The pod no longer counts on its node, or its nomination ended, which frees the same room. */
const left = ({ before, after }: PodChange): boolean =>
  before !== undefined && (countsOnNode(before) ? !counts(after) : isNominationOver(before, after));

const isNominationOver = (before: SchedulablePod, after: SchedulablePod | undefined): boolean =>
  isPending(before) &&
  before.nominatedNodeName !== '' &&
  after?.nominatedNodeName !== before.nominatedNodeName &&
  !counts(after);

const fitsEmpty = ({ requests }: SchedulablePod, node: SchedulableNode): boolean =>
  node.podsMax >= 1 &&
  [...comparedAmounts(requests, node.allocatable, node.allocatable)].every(
    ({ requested, allocatable }) => requested <= allocatable,
  );

function grewForPod({ requests }: SchedulablePod, before: SchedulableNode, after: SchedulableNode): boolean {
  if (after.podsMax > before.podsMax) return true;
  return [...comparedAmounts(requests, after.allocatable, before.allocatable)].some(
    // The amounts of the old node are passed as used.
    ({ allocatable, used }) => allocatable > used,
  );
}

/** The pod, on its node or still waiting, needs less of something that `pod` requests. */
function shrankFor({ requests }: SchedulablePod, before: SchedulablePod, after: SchedulablePod): boolean {
  return [...comparedAmounts(requests, after.requests, before.requests)].some(
    ({ allocatable: now, used: earlier }) => now < earlier,
  );
}

const sameTolerations = (one: SchedulablePod, other: SchedulablePod): boolean =>
  one.tolerations.length === other.tolerations.length;

const sameLabels = (one: { readonly labels: Labels }, other: { readonly labels: Labels }): boolean =>
  JSON.stringify(one.labels) === JSON.stringify(other.labels);

const featuresOf = ({ declaredFeatures }: SchedulableNode): string => declaredFeatures.join();

/** The pod counts for a constraint or term on one side of the change alone. */
const isChanged = ({ before, after }: PodChange, matches: (pod: SchedulablePod) => boolean): boolean => {
  const is = (pod: SchedulablePod | undefined): boolean => pod !== undefined && countsOnNode(pod) && matches(pod);
  return is(before) !== is(after);
};

const keysOf = (terms: readonly { readonly topologyKey: string }[], node: SchedulableNode | undefined): string =>
  JSON.stringify(terms.map(({ topologyKey }) => node?.labels[topologyKey] ?? null));

const spreadHints: Hints = {
  pod: (pod, change) =>
    pod.spread.some(
      ({ isHard, selector }) =>
        isHard &&
        isChanged(
          change,
          ({ namespace, isTerminating, labels }) =>
            namespace === pod.namespace && !isTerminating && selector.matches(labels),
        ),
    ),
  node: (pod, { before, after }) => {
    const hard = pod.spread.filter(({ isHard }) => isHard);
    const hasAll = (node: SchedulableNode | undefined): boolean =>
      node !== undefined && hard.every(({ topologyKey }) => node.labels[topologyKey] !== undefined);
    if (!hasAll(before) && !hasAll(after)) return false;
    return (
      before === undefined ||
      after === undefined ||
      keysOf(hard, before) !== keysOf(hard, after) ||
      toleratesTaints(pod, before) !== toleratesTaints(pod, after)
    );
  },
  own: (before, after) =>
    after.spread.some(({ selector }) => selector.matches(before.labels) !== selector.matches(after.labels)) ||
    (after.spread.some(({ honorsTaints }) => honorsTaints) && !sameTolerations(before, after)),
};

const podAffinityHints: Hints = {
  pod: (pod, change, namespaces) => {
    const matching = (terms: readonly PodTerm[]) => (other: SchedulablePod) =>
      terms.every((term) => termMatches(term, other, namespaces));
    const { before, after } = change;
    const isMatched = (other: SchedulablePod | undefined, test: (pod: SchedulablePod) => boolean): boolean =>
      other !== undefined && countsOnNode(other) && test(other);
    const hasAffinity = matching(pod.affinity);
    if (pod.affinity.length > 0 && isMatched(after, hasAffinity) && !isMatched(before, hasAffinity)) return true;
    const hasAnti = matching(pod.antiAffinity);
    if (pod.antiAffinity.length > 0 && isMatched(before, hasAnti) && !isMatched(after, hasAnti)) return true;
    const isAgainst = (other: SchedulablePod): boolean =>
      other.antiAffinity.some((term) => termMatches(term, pod, namespaces));
    return isMatched(before, isAgainst) && !isMatched(after, isAgainst);
  },
  node: (pod, { before, after }) => {
    if (after === undefined) return false;
    if (before === undefined) return pod.affinity.every(({ topologyKey }) => after.labels[topologyKey] !== undefined);
    return (
      keysOf(pod.affinity, before) !== keysOf(pod.affinity, after) ||
      keysOf(pod.antiAffinity, before) !== keysOf(pod.antiAffinity, after) ||
      // Anti-affinity of existing pods may have any key.
      (pod.affinity.length === 0 && pod.antiAffinity.length === 0 && !sameLabels(before, after))
    );
  },
  own: (before, after) => !sameLabels(before, after),
};

const gainedLabels = (_pod: SchedulablePod, { before, after }: NodeChange): boolean =>
  after !== undefined && (before === undefined || !sameLabels(before, after));

const HINTS: Readonly<Record<PluginName, Hints>> = {
  NodeResourcesFit: {
    pod: (pod, change) => {
      const { before, after } = change;
      if (before === undefined || after === undefined) return left(change);
      return left(change) || (countsOnNode(after) && shrankFor(pod, before, after));
    },
    own: (before, after) => shrankFor(before, before, after),
    node: (pod, { before, after }) =>
      after !== undefined && fitsEmpty(pod, after) && (before === undefined || grewForPod(pod, before, after)),
  },
  NodeAffinity: {
    node: (pod, { before, after }) =>
      after !== undefined &&
      matchesNodeAffinity(pod, after) &&
      (before === undefined || !matchesNodeAffinity(pod, before)),
    own: (before, after) => JSON.stringify(before.nodeTerms) !== JSON.stringify(after.nodeTerms),
  },
  TaintToleration: {
    node: (pod, { before, after }) =>
      after !== undefined && toleratesTaints(pod, after) && (before === undefined || !toleratesTaints(pod, before)),
    own: (before, after) => !sameTolerations(before, after),
  },
  NodeUnschedulable: {
    node: (_pod, { before, after }) =>
      after !== undefined && !after.isUnschedulable && (before === undefined || before.isUnschedulable),
    own: (before, after) => !toleratesCordon(before) && toleratesCordon(after),
  },
  NodeName: { node: (_pod, { before }) => before === undefined },
  NodePorts: {
    pod: (pod, change) => left(change) && conflictsWith(pod.hostPorts)(change.before!.hostPorts),
    node: (_pod, { before }) => before === undefined,
  },
  PodTopologySpread: spreadHints,
  InterPodAffinity: podAffinityHints,
  VolumeRestrictions: {
    pod: ({ namespace, claims }, change) =>
      left(change) &&
      change.before?.namespace === namespace &&
      change.before.claims.some((each) => claims.includes(each)),
  },
  VolumeZone: { volumes: true, node: gainedLabels },
  VolumeBinding: {
    volumes: true,
    node: gainedLabels,
    own: (before, after) => !sameTolerations(before, after) || !sameLabels(before, after),
  },
  DynamicResources: { own: (before, after) => !sameTolerations(before, after) || !sameLabels(before, after) },
  NodeDeclaredFeatures: {
    node: (_pod, { before, after }) =>
      after !== undefined && (before === undefined || featuresOf(before) !== featuresOf(after)),
  },
  SafetyGate: {},
};

/** Whether the change may help other pods than its own: only a pod with a node or a nomination occupies room. */
export const concernsOthers = (change: WorldChange): boolean =>
  change.kind !== 'pod' || counts(change.before) || counts(change.after) || left(change);

/** Whether the change may let the pod be scheduled: permission to try again, never a promise. */
export function mayHelp(
  pod: SchedulablePod,
  plugins: readonly PluginName[],
  { change, namespaces }: { readonly change: WorldChange; readonly namespaces: NamespaceLabels },
): boolean {
  return plugins.some((plugin) => {
    const hints = HINTS[plugin];
    if (change.kind === 'volumes') return hints.volumes === true;
    if (change.kind === 'node') return hints.node?.(pod, change) ?? false;
    const { before, after } = change;
    const isOwn = after?.uid === pod.uid;
    if (!isOwn) return hints.pod?.(pod, change, namespaces) ?? false;
    return before !== undefined && (hints.own?.(before, after) ?? false);
  });
}
