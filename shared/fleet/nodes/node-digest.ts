/**
 * The digest of a Node for the `health` table. It is derived from the object: all writers of a Node compute the same.
 */
import { defined } from '../../defined.ts';
import type { KubeNode, KubeObject } from '../../kinds/types.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import type { Policy } from '../policy.ts';
import { noExecuteOf } from '../taints/node-taints.ts';
import { readyStatusOf } from './conditions.ts';
import { isSuspect, type NodeHealth } from './health.ts';
import { PROFILE_ANNOTATION, profileNameOf } from './node-profile.ts';
import { plannedUntilMs, silenceMarks, withoutPromise } from './planned-silence.ts';
import { isExcluded, zoneKeyOf } from './zone.ts';

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
