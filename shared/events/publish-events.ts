/**
 * Publishes cluster events to the event bus, after the transition is stored. Events of nodes and pods follow from the
 * stream of their objects, which delivers at least once. Events of zones and of the safety gate are published by
 * node-monitor's tick before it completes, so the next tick repeats those of a tick that was killed. Events that the
 * bus rejects are counted and logged; the controller continues.
 */

import { zoneKeyOf } from '../fleet/nodes/zone.ts';
import { ALL_FUNCTIONS } from '../functions/tick-metrics.ts';
import { nodeNameOf } from '../kinds/pods/collection/maintain-work-list.ts';
import type { KubeNode, KubeObject, KubePod } from '../kinds/types.ts';
import type { WorkDependencies } from '../ticks/dependencies.ts';
import * as metric from '../ticks/metrics.ts';
import { type ClusterEvent, nodeTransitions } from './cluster-event.ts';
import type { EventBus } from './event-bus.ts';

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
