/**
 * The digest of a Node for the `health` table. It is derived from the object: all writers of a Node compute the same.
 *
 * `lastHeartbeatTime` of a Node's conditions, stored outside the Node. A healthy machine posts a status every five
 * minutes in which only these times change. Rewriting the object for them would cost twenty times as much. So the Node
 * keeps the times of its last full write, and the row of the node stores which time replaces which.
 *
 * Times only increase. A condition is shown with another time only if its stored time is `fromSeconds`: a condition
 * posted by another client keeps its own.
 */
import { defined } from '../../defined.ts';
import type { KubeNode, KubeObject } from '../../kinds/types.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import type { NodeCondition } from '../../kubernetes/kubernetes.ts';
import { formatTime, parseTimeMs } from '../../kubernetes/time.ts';
import type { Policy } from '../policy.ts';
import { readyStatusOf } from './conditions.ts';
import type { HeartbeatTimes } from './health.ts';
import { isSuspect, type NodeHealth } from './health.ts';
import { PROFILE_ANNOTATION, profileNameOf } from './node-profile.ts';
import { noExecuteOf } from './node-taints.ts';
import { plannedUntilMs, silenceMarks, withoutPromise } from './planned-silence.ts';

export type DigestOfNode = Pick<
  NodeHealth,
  'uid' | 'zone' | 'ready' | 'excluded' | 'noExecute' | 'suspect' | 'createdAtMs'
> & {
  /** Name of the profile; absent: `default`. */
  readonly profile?: string;
  /** Promised end of its planned silence. */
  readonly plannedUntilMs?: number;
};

/** Creation in server time, in epoch milliseconds; a whole second, because the object stores seconds. */
export const createdAtMsOf = (object: KubeObject): number => parseTimeMs(object.metadata.creationTimestamp) ?? 0;

export function digestOf(node: KubeNode): DigestOfNode {
  const ready = readyStatusOf(node.status?.conditions);
  const noExecute = noExecuteOf(node.spec?.taints ?? []);
  const untilMs = plannedUntilMs(node.metadata.annotations);
  return {
    uid: node.metadata.uid ?? '',
    zone: zoneKeyOf(node.metadata.labels),
    ready,
    excluded: isExcluded(node.metadata.labels),
    noExecute,
    // A heartbeat after a planned silence ends it.
    suspect: isSuspect({ ready, noExecute }) || untilMs !== undefined,
    createdAtMs: createdAtMsOf(node),
    ...defined({ profile: node.metadata.annotations?.[PROFILE_ANNOTATION], plannedUntilMs: untilMs }),
  };
}

/** The Node with the profile that its labels select; the same object if it has it. */
export function withProfile<N extends KubeObject>(node: N, profiles: Policy['profiles']): N {
  const { [PROFILE_ANNOTATION]: stored, ...others } = node.metadata.annotations ?? {};
  const profile = profileNameOf(node.metadata.labels, profiles);
  if (stored === profile) return node;
  const annotations = { ...others, ...defined({ [PROFILE_ANNOTATION]: profile }) };
  const { annotations: _, ...metadata } = node.metadata;
  return { ...node, metadata: Object.keys(annotations).length === 0 ? metadata : { ...metadata, annotations } };
}

/** The Node with taint and condition of its planned silence, or without; the same object if nothing changes. */
export function withSilenceMarks<N extends KubeNode>(node: N, nowMs: number): N {
  const { taints: stored = [], ...spec } = node.spec ?? {};
  const { annotations } = node.metadata;
  const marks = silenceMarks({ annotations, taints: stored, conditions: node.status?.conditions ?? [] }, nowMs);
  if (marks === undefined) return node;
  const { taints, conditions } = marks;
  return {
    ...node,
    spec: taints.length === 0 ? spec : { ...spec, taints: [...taints] },
    status: { ...node.status, conditions: [...conditions] },
  };
}

/** The Node without its promise, and without what follows from it. */
export function withoutPlannedSilence<N extends KubeNode>(node: N, nowMs: number): N {
  const { annotations: stored, ...metadata } = node.metadata;
  const annotations = withoutPromise(stored);
  const kept = Object.keys(annotations).length === 0 ? metadata : { ...metadata, annotations };
  return withSilenceMarks({ ...node, metadata: kept }, nowMs);
}

export const sameDigest = (one: DigestOfNode, other: DigestOfNode): boolean =>
  one.uid === other.uid &&
  one.zone === other.zone &&
  one.ready === other.ready &&
  one.excluded === other.excluded &&
  one.profile === other.profile &&
  one.plannedUntilMs === other.plannedUntilMs &&
  one.noExecute.notReady === other.noExecute.notReady &&
  one.noExecute.unreachable === other.noExecute.unreachable &&
  one.createdAtMs === other.createdAtMs;

/**
 * The zone of a node, and whether the node counts in it.
 * Source: k8s.io/component-helpers node/topology/helpers.go for the precedence of the labels. The key format is ours.
 */
type Labels = Readonly<Record<string, string>> | undefined;

export const ZONE_LABEL = 'topology.kubernetes.io/zone';
export const REGION_LABEL = 'topology.kubernetes.io/region';
export const BETA_ZONE_LABEL = 'failure-domain.beta.kubernetes.io/zone';
export const BETA_REGION_LABEL = 'failure-domain.beta.kubernetes.io/region';
/** A node with this label is not counted in its zone. The value is ignored. */
export const EXCLUDE_DISRUPTION_LABEL = 'node.kubernetes.io/exclude-disruption';

/**
 * Zone key: `region/zone`, or `zone` without a region label, or '' without both. The beta labels have precedence, as
 * upstream. The key is stored, displayed and used as a metric dimension. It is unambiguous, because a label value has
 * no slash. Upstream joins region and zone with `:`, NUL, `:`, which metrics and consoles cannot display.
 */
export function zoneKeyOf(labels: Labels): string {
  const zone = labels?.[BETA_ZONE_LABEL] ?? labels?.[ZONE_LABEL] ?? '';
  const region = labels?.[BETA_REGION_LABEL] ?? labels?.[REGION_LABEL] ?? '';
  return region === '' ? zone : `${region}/${zone}`;
}

/** Dimension of a metric by zone. CloudWatch accepts no empty value. */
export const zoneDimension = (zone: string): { zone: string } => ({ zone: zone === '' ? '(none)' : zone });

/** True when a node is not counted in its zone. It is still evaluated, marked and tainted like any other node. */
export const isExcluded = (labels: Labels): boolean =>
  labels !== undefined && Object.hasOwn(labels, EXCLUDE_DISRUPTION_LABEL);

/** The stored Node, as clients see it. */
export function shownNode(stored: KubeNode, times: HeartbeatTimes | undefined): KubeNode {
  const conditions = stored.status?.conditions;
  if (times === undefined || conditions === undefined) return stored;
  if (!conditions.some((condition) => secondsOf(condition) === times.fromSeconds)) return stored;
  const lastHeartbeatTime = formatTime(times.toSeconds * 1_000);
  return withConditions(
    stored,
    conditions.map((condition) =>
      secondsOf(condition) === times.fromSeconds ? { ...condition, lastHeartbeatTime } : condition,
    ),
  );
}

/**
 * The inverse, for a write that changes something else: times that the client copied from the shown Node keep their
 * stored values. A status post between the client's read and its write is then not undone.
 */
export function storedNode(next: KubeNode, read: { readonly shown: KubeNode; readonly stored: KubeNode }): KubeNode {
  const conditions = next.status?.conditions;
  if (conditions === undefined || read.shown === read.stored) return next;
  return withConditions(
    next,
    conditions.map((condition) => {
      const sameType = ({ type }: NodeCondition) => type === condition.type;
      const shown = read.shown.status?.conditions?.find(sameType);
      const stored = read.stored.status?.conditions?.find(sameType);
      if (shown === undefined || stored === undefined) return condition;
      if (shown.lastHeartbeatTime !== condition.lastHeartbeatTime) return condition;
      return { ...condition, lastHeartbeatTime: stored.lastHeartbeatTime ?? null };
    }),
  );
}

/**
 * What `next` moved, when it moved nothing but heartbeat times: of conditions that share one stored time, to one later
 * time. undefined: it must be written whole.
 */
export function movedTimes(
  next: KubeNode,
  read: { readonly shown: KubeNode; readonly stored: KubeNode },
): HeartbeatTimes | undefined {
  const conditions = next.status?.conditions ?? [];
  const before = read.stored.status?.conditions ?? [];
  if (!jsonEqual(withoutTimes(next), withoutTimes(read.shown))) return undefined;
  let fromSeconds: number | undefined;
  let toSeconds: number | undefined;
  for (const [index, condition] of conditions.entries()) {
    const stored = before[index]!;
    if (condition.lastHeartbeatTime === stored.lastHeartbeatTime) continue;
    const [from, to] = [secondsOf(stored), secondsOf(condition)];
    if (from === undefined || to === undefined || to <= from) return undefined;
    if ((fromSeconds ?? from) !== from || (toSeconds ?? to) !== to) return undefined;
    fromSeconds = from;
    toSeconds = to;
  }
  if (fromSeconds === undefined || toSeconds === undefined) return undefined;
  const isTakenAlong = conditions.some(
    (condition, index) =>
      condition.lastHeartbeatTime === before[index]!.lastHeartbeatTime && secondsOf(condition) === fromSeconds,
  );
  return isTakenAlong ? undefined : { fromSeconds, toSeconds };
}

function secondsOf({ lastHeartbeatTime }: NodeCondition): number | undefined {
  const atMs = parseTimeMs(lastHeartbeatTime);
  return atMs === undefined ? undefined : Math.floor(atMs / 1_000);
}

const withConditions = (node: KubeNode, conditions: NodeCondition[]): KubeNode => ({
  ...node,
  status: { ...node.status, conditions },
});

function withoutTimes(node: KubeNode): KubeNode {
  const { resourceVersion: _version, ...metadata } = node.metadata;
  const conditions = (node.status?.conditions ?? []).map((condition) => ({ ...condition, lastHeartbeatTime: null }));
  return withConditions({ ...node, metadata }, conditions);
}
