/**
 * Events that a cluster publishes on a bus, in the form of `docs/events/`, version 1. Each is published at least once.
 * A repetition has the same id, so receivers can drop it.
 */

import type { GateReason } from '../fleet/gate.ts';
import type { ZoneState } from '../fleet/zone-state.ts';
import type { ConditionStatus } from '../kubernetes/kubernetes.ts';
import { rfc3339 } from '../kubernetes/rfc3339.ts';

export const EVENT_SOURCE = 'nodekeeper';
/** The version of the detail's form. What is added keeps it; what changes meaning raises it. */
export const EVENT_VERSION = 1;

interface NodeOfEvent {
  readonly name: string;
  readonly uid: string;
  /** The zone as in metrics; '' for a node without zone and region. */
  readonly zone: string;
}

export type ClusterEvent = { readonly id: string } & (
  | {
      readonly type: 'NodeNotReady';
      readonly node: NodeOfEvent;
      /** Unknown: silent. False: it says so itself. */
      readonly ready: 'False' | 'Unknown';
      /** The reason of the Ready condition; '' without one. */
      readonly reason: string;
    }
  | { readonly type: 'NodeReady'; readonly node: NodeOfEvent }
  | { readonly type: 'NodeDeleted'; readonly node: NodeOfEvent }
  | {
      readonly type: 'PodEvicted';
      readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
      readonly nodeName: string;
      /** The reason of the DisruptionTarget condition: DeletionByTaintManager, EvictionByEvictionAPI … */
      readonly reason: string;
    }
  | {
      readonly type: 'ZoneDisrupted' | 'ZoneRecovered';
      readonly zone: string;
      readonly state: ZoneState;
      /** Nodes that count. */
      readonly nodes: number;
      readonly notReady: number;
    }
  | { readonly type: 'GateClosed'; readonly reasons: readonly GateReason[] }
  /** Every node has a full grace from `freshSince` on. RFC 3339. */
  | { readonly type: 'GateOpened'; readonly freshSince: string }
);

/** The event's detail, published at `nowMs`. A repetition has the same id and may have a later time. */
export function detailOf(event: ClusterEvent, at: { readonly nowMs: number; readonly cluster: string }) {
  const { type: _, id, ...rest } = event;
  return { version: EVENT_VERSION, id, cluster: at.cluster, time: rfc3339(at.nowMs), ...rest };
}

interface NodeAsTold extends NodeOfEvent {
  readonly ready: ConditionStatus | undefined;
  readonly reason: string;
  readonly resourceVersion: string;
}

/** From one state of a Node's item to the next. A Node deleted and made anew may come as one change. */
export function nodeTransitions(before: NodeAsTold | undefined, after: NodeAsTold | undefined): ClusterEvent[] {
  const events: ClusterEvent[] = [];
  const nodeOf = ({ name, uid, zone }: NodeAsTold): NodeOfEvent => ({ name, uid, zone });
  const gone = before !== undefined && before.uid !== after?.uid;
  if (gone) events.push({ type: 'NodeDeleted', id: `NodeDeleted/${before.uid}`, node: nodeOf(before) });
  if (after === undefined) return events;
  const was = before === undefined || gone ? undefined : before.ready;
  const { ready, reason, uid, resourceVersion } = after;
  const id = (type: string): string => `${type}/${uid}/${resourceVersion}`;
  if (ready === 'True' && was !== 'True') events.push({ type: 'NodeReady', id: id('NodeReady'), node: nodeOf(after) });
  if (was === 'True' && ready !== 'True') {
    const told = ready === 'False' ? 'False' : 'Unknown';
    events.push({ type: 'NodeNotReady', id: id('NodeNotReady'), node: nodeOf(after), ready: told, reason });
  }
  return events;
}
