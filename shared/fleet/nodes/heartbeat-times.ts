/**
 * `lastHeartbeatTime` of a Node's conditions, stored outside the Node. A healthy machine posts a status every five
 * minutes in which only these times change. Rewriting the object for them would cost twenty times as much. So the Node
 * keeps the times of its last full write, and the row of the node stores which time replaces which.
 *
 * Times only increase. A condition is shown with another time only if its stored time is `fromSeconds`: a condition
 * posted by another client keeps its own.
 */

import type { KubeNode } from '../../kinds/types.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import type { NodeCondition } from '../../kubernetes/kubernetes.ts';
import { formatTime, parseTimeMs } from '../../kubernetes/time.ts';

/** Conditions stored with the first time are shown with the second. Seconds since the epoch. */
export interface HeartbeatTimes {
  readonly fromSeconds: number;
  readonly toSeconds: number;
}

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
