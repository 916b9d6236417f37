/**
 * One sync of a DaemonSet: nodes that need a pod, pods to delete, and the status. Pure.
 * Sources: pkg/controller/daemon/{daemon_controller,update}.go.
 */
import type { KubeDaemonSet } from '../../../shared/kinds/types.ts';
import { availableAfterMs, isAvailable, type OwnedPod } from '../owned-pods.rule.ts';
import { type Backoffs, backoffOf, isWaiting, withFailure } from './backoff.rule.ts';
import { type DaemonNode, type Placement, verdictFor } from './placement.rule.ts';

/** Creations, and deletions, of one sync. */
export const BURST_PODS = 250;

export interface DaemonPod extends OwnedPod {
  /** The node that it is bound to, or made for. */
  readonly target: string;
  readonly isUpdated: boolean;
}

export interface DaemonRules {
  readonly placement: Placement;
  readonly minReadySeconds: number;
  /** Nodes may have a pod of the present and one of an older template. */
  readonly allowsSurge: boolean;
}

/** Why a pod is deleted. */
export type RemovalCause =
  /** It is Failed, or Succeeded. */
  | 'failed'
  | 'succeeded'
  /** Another pod of the node stays. */
  | 'surplus'
  /** The node must not have one. */
  | 'unwanted'
  /** It is not bound, and its node does not exist. */
  | 'nodeAbsent'
  /** Its template is old. */
  | 'outdated';

export interface Removal {
  readonly pod: DaemonPod;
  readonly cause: RemovalCause;
}

export interface NodeDecision {
  readonly creates: boolean;
  readonly remove: readonly Removal[];
}

/** Succeeded and Failed pods that are being deleted block nothing. */
export const countsForNode = ({ phase, isDeleting }: Pick<OwnedPod, 'phase' | 'isDeleting'>): boolean =>
  !(isDeleting && (phase === 'Failed' || phase === 'Succeeded'));

/** Bound before unbound, then the older, then by name. */
export const oldestFirst = <Pod extends DaemonPod>(pods: readonly Pod[]): readonly Pod[] =>
  pods.toSorted(
    (left, right) =>
      Number(left.nodeName === '') - Number(right.nodeName === '') ||
      (left.createdAtMs ?? 0) - (right.createdAtMs ?? 0) ||
      (left.name < right.name ? -1 : 1),
  );

/** `node`: undefined if it does not exist. `pods`: those that count for this node. */
export function decideNode(
  rules: DaemonRules,
  node: DaemonNode | undefined,
  pods: readonly DaemonPod[],
  nowMs: number,
): NodeDecision {
  const remaining = pods.filter(({ isDeleting }) => !isDeleting);
  const removeAll = (some: readonly DaemonPod[], cause: RemovalCause): readonly Removal[] =>
    some.map((pod) => ({ pod, cause }));
  if (node === undefined) {
    // Bound pods of an absent node are collected by the pod garbage collector.
    return {
      creates: false,
      remove: removeAll(
        remaining.filter(({ nodeName }) => nodeName === ''),
        'nodeAbsent',
      ),
    };
  }
  const { runs, stays } = verdictFor(rules.placement, node);
  if (runs && pods.length === 0) return { creates: true, remove: [] };
  if (!stays) return { creates: false, remove: removeAll(remaining, 'unwanted') };
  const running = oldestFirst(remaining.filter(({ phase }) => phase !== 'Failed' && phase !== 'Succeeded'));
  const ended = [
    ...removeAll(
      remaining.filter(({ phase }) => phase === 'Failed'),
      'failed',
    ),
    ...removeAll(
      remaining.filter(({ phase }) => phase === 'Succeeded'),
      'succeeded',
    ),
  ];
  if (!rules.allowsSurge) return { creates: false, remove: [...ended, ...removeAll(running.slice(1), 'surplus')] };
  const creates = runs && running.length === 0 && ended.length === 0;
  return { creates, remove: [...ended, ...surplusWithSurge(rules, running, nowMs)] };
}

/** One pod of the present template and one older stay. The older leaves when it is not Ready, or is replaced. */
function surplusWithSurge(
  { minReadySeconds }: DaemonRules,
  running: readonly DaemonPod[],
  nowMs: number,
): readonly Removal[] {
  if (running.length <= 1) return [];
  const updated = running.find(({ isUpdated }) => isUpdated);
  const old = running.find(({ isUpdated }) => !isUpdated);
  const surplus = running.filter((pod) => pod !== updated && pod !== old);
  const isReplaced =
    updated !== undefined && old !== undefined && (!old.ready || isAvailable(updated, minReadySeconds, nowMs));
  return [
    ...surplus.map((pod): Removal => ({ pod, cause: 'surplus' })),
    ...(isReplaced ? [{ pod: old, cause: 'outdated' } as const] : []),
  ];
}

export interface DaemonWorld {
  readonly rules: DaemonRules;
  readonly nodes: readonly DaemonNode[];
  readonly pods: readonly DaemonPod[];
  readonly backoffs: Backoffs;
  /** A rollout gives up no pod now. */
  readonly isHeld: boolean;
  readonly nowMs: number;
}

export interface DaemonDecision {
  /** Names of nodes. */
  readonly create: readonly string[];
  readonly remove: readonly Removal[];
  readonly backoffs: Backoffs;
  /** Deletions that wait for the end of the hold. */
  readonly held: readonly Removal[];
  /** Epoch milliseconds; absent: at the next change. */
  readonly lookAgainAtMs?: number;
}

/** The pods by the node they count for. */
export function podsByNode(pods: readonly DaemonPod[]): ReadonlyMap<string, readonly DaemonPod[]> {
  const groups = new Map<string, DaemonPod[]>();
  for (const pod of pods) {
    if (!countsForNode(pod)) continue;
    const group = groups.get(pod.target) ?? [];
    group.push(pod);
    groups.set(pod.target, group);
  }
  return groups;
}

/** Everything but the rolling update. */
export function decideDaemons(world: DaemonWorld): DaemonDecision {
  const { rules, nodes, nowMs } = world;
  const byNode = podsByNode(world.pods);
  const known = new Map(nodes.map((node) => [node.name, node]));
  const create: string[] = [];
  const remove: Removal[] = [];
  let { backoffs } = world;
  const held: Removal[] = [];
  const waits: number[] = [];
  for (const name of new Set([...known.keys(), ...byNode.keys()])) {
    const node = known.get(name);
    const decision = decideNode(rules, node, byNode.get(name) ?? [], nowMs);
    if (decision.creates && create.length < BURST_PODS) create.push(name);
    for (const removal of decision.remove) {
      if (remove.length >= BURST_PODS) break;
      if (removal.cause === 'failed') {
        const backoff = backoffOf(backoffs, name);
        if (isWaiting(backoff, nowMs)) {
          waits.push(backoff.atMs + backoff.delayMs);
          continue;
        }
        backoffs = withFailure(backoffs, name, nowMs);
      }
      (world.isHeld && isDueToUs(rules, node, removal) ? held : remove).push(removal);
    }
  }
  return { create, remove, backoffs, held, ...earliest(waits) };
}

const OUR_TAINTS = 'node.kubernetes.io/';

/** The pod may only seem to be superfluous: its node has a taint of ours, or it is silent and so not Ready. */
const isDueToUs = (rules: DaemonRules, node: DaemonNode | undefined, { cause }: Removal): boolean =>
  cause === 'outdated' || (cause === 'unwanted' && isOurTaintAlone(rules, node));

/** Without the taints that our controllers add, the node would keep its pod. */
function isOurTaintAlone({ placement }: DaemonRules, node: DaemonNode | undefined): boolean {
  if (node === undefined) return false;
  const others = node.taints.filter(({ key }) => !key.startsWith(OUR_TAINTS));
  return verdictFor(placement, { ...node, taints: others }).stays;
}

const earliest = (times: readonly number[]): { readonly lookAgainAtMs?: number } =>
  times.length === 0 ? {} : { lookAgainAtMs: Math.min(...times) };

/** How the status differs from the stored one; undefined: not at all. */
export function daemonSetStatus(
  set: KubeDaemonSet,
  world: Pick<DaemonWorld, 'rules' | 'nodes' | 'pods' | 'nowMs'>,
): { readonly status?: KubeDaemonSet['status']; readonly lookAgainAtMs?: number } {
  const { rules, nodes, pods, nowMs } = world;
  const byNode = podsByNode(pods);
  const counts = { desired: 0, current: 0, misscheduled: 0, ready: 0, available: 0, updated: 0 };
  const waits: number[] = [];
  for (const node of nodes) {
    const [oldest] = oldestFirst(byNode.get(node.name) ?? []);
    if (!verdictFor(rules.placement, node).runs) {
      counts.misscheduled += oldest === undefined ? 0 : 1;
      continue;
    }
    counts.desired += 1;
    if (oldest === undefined) continue;
    counts.current += 1;
    counts.ready += Number(oldest.ready);
    counts.available += Number(isAvailable(oldest, rules.minReadySeconds, nowMs));
    counts.updated += Number(oldest.isUpdated);
  }
  for (const pod of pods) {
    const afterMs = availableAfterMs(pod, rules.minReadySeconds);
    // It is available one millisecond after the end of the time.
    if (afterMs !== undefined && afterMs >= nowMs) waits.push(afterMs + 1);
  }
  const { metadata, status: stored = {} } = set;
  const next: NonNullable<KubeDaemonSet['status']> = {
    currentNumberScheduled: counts.current,
    numberMisscheduled: counts.misscheduled,
    desiredNumberScheduled: counts.desired,
    numberReady: counts.ready,
    ...nonZero('updatedNumberScheduled', counts.updated),
    ...nonZero('numberAvailable', counts.available),
    ...nonZero('numberUnavailable', counts.desired - counts.available),
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
    ...(stored.collisionCount === undefined ? {} : { collisionCount: stored.collisionCount }),
  };
  const isSame = STATUS_FIELDS.every((field) => (stored[field] ?? 0) === (next[field] ?? 0));
  return { ...(isSame ? {} : { status: next }), ...earliest(waits) };
}

const STATUS_FIELDS = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  'observedGeneration',
] as const;

/** Zero is left out, as Go's encoding of these fields does. */
const nonZero = (field: (typeof STATUS_FIELDS)[number], count: number) => (count === 0 ? {} : { [field]: count });

/** For the sweep: its status fits the nodes that exist, and no rolling update is under way. */
export function isDaemonSetSettled(set: KubeDaemonSet, placement: Placement, nodes: readonly DaemonNode[]): boolean {
  const { metadata, spec, status = {} } = set;
  const desired = nodes.filter((node) => verdictFor(placement, node).runs).length;
  const isRolling = spec?.updateStrategy?.type !== 'OnDelete' && (status.updatedNumberScheduled ?? 0) !== desired;
  return (
    status.observedGeneration === metadata.generation &&
    (status.desiredNumberScheduled ?? 0) === desired &&
    (status.currentNumberScheduled ?? 0) === desired &&
    (status.numberMisscheduled ?? 0) === 0 &&
    !isRolling
  );
}
