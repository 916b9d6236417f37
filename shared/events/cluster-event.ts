/**
 * Events that a cluster publishes on a bus, in the form of `docs/events/`, version 1. Each is published at least once.
 * A repetition has the same id, so receivers can drop it.
 *
 * Publishes cluster events to the event bus, after the transition is stored. Events of nodes and pods follow from the
 * stream of their objects, which delivers at least once. Events of zones and of the safety gate are published by
 * node-monitor's tick before it completes, so the next tick repeats those of a tick that was killed. Events that the
 * bus rejects are counted and logged; the controller continues.
 */

import type { GateReason } from '../fleet/gate.ts';
import { zoneKeyOf } from '../fleet/nodes/node-digest.ts';
import type { ZoneState } from '../fleet/zone-state.ts';
import * as metric from '../functions/tick-metrics.ts';
import { ALL_FUNCTIONS } from '../functions/tick-metrics.ts';
import { nodeNameOf } from '../kinds/pods/maintain-work-list.ts';
import type { KubeNode, KubeObject, KubePod } from '../kinds/types.ts';
import type { ConditionStatus } from '../kubernetes/kubernetes.ts';
import { rfc3339 } from '../kubernetes/rfc3339.ts';
import type { WorkDependencies } from '../ticks/dependencies.ts';

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

const LOGGED_IDS_MAX = 10;
const DISRUPTION_TARGET = 'DisruptionTarget';

type Dependencies = Pick<WorkDependencies, 'meter' | 'log'> & { readonly eventBus?: EventBus };

/** Never rejects. */
export async function publishEvents(
  { eventBus, meter, log }: Dependencies,
  events: readonly ClusterEvent[],
  nowMs: number,
): Promise<void> {
  if (eventBus === undefined || events.length === 0) return;
  const { failed, reason } = await eventBus.publish(events, nowMs);
  if (failed.length === 0) return;
  meter.add(metric.EVENTS_NOT_SENT, failed.length, 'Count', ALL_FUNCTIONS);
  log.error('events were not sent', {
    failed: failed.length,
    reason,
    ids: failed.slice(0, LOGGED_IDS_MAX).map(({ id }) => id),
  });
}

interface Change<T extends KubeObject> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

/** The events that follow from changes of Node and Pod objects. */
export const objectEvents = (nodes: readonly Change<KubeNode>[], pods: readonly Change<KubePod>[]): ClusterEvent[] => [
  ...nodes.flatMap(({ before, after }) => nodeTransitions(publishedNode(before), publishedNode(after))),
  ...pods.flatMap(({ before, after }) => podEviction(before, after)),
];

function publishedNode(node: KubeNode | undefined) {
  if (node === undefined) return undefined;
  const { name = '', uid = '', labels, resourceVersion = '' } = node.metadata;
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  return { name, uid, zone: zoneKeyOf(labels), resourceVersion, ready: ready?.status, reason: ready?.reason ?? '' };
}

const disruptionOf = (pod: KubePod | undefined): string | undefined =>
  pod?.status?.conditions?.find(({ type, status }) => type === DISRUPTION_TARGET && status === 'True')?.reason;

/** A pod counts as evicted when its DisruptionTarget condition first becomes True, or its reason changes. */
function podEviction(before: KubePod | undefined, after: KubePod | undefined): ClusterEvent[] {
  const reason = disruptionOf(after);
  if (after === undefined || reason === undefined) return [];
  const { namespace = '', name = '', uid = '' } = after.metadata;
  if (before?.metadata.uid === uid && disruptionOf(before) === reason) return [];
  const nodeName = nodeNameOf(after);
  return [{ type: 'PodEvicted', id: `PodEvicted/${uid}/${reason}`, pod: { namespace, name, uid }, nodeName, reason }];
}

export interface PublishOutcome {
  /** Events that the bus did not accept after all attempts. */
  readonly failed: readonly ClusterEvent[];
  /** Reason of the last failure; absent if there was none. */
  readonly reason?: string;
}

/** Publishes events of the cluster. Never rejects: a controller does not depend on its subscribers. */
export interface EventBus {
  publish(events: readonly ClusterEvent[], nowMs: number): Promise<PublishOutcome>;
}
