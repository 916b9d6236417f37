/**
 * Events of the cluster for the world outside, told where a transition is seen to be stored: of nodes and pods by the stream
 * of their objects, which comes at least once; of zones and the gate by node-monitor's tick, before it has finished, so
 * that one that dies is told again by the next. What the bus does not take is counted and logged, and stops nobody.
 */

import { type ClusterEvent, nodeTransitions } from '../../domain/events/cluster-event.ts';
import { ALL_FUNCTIONS } from '../../domain/functions/tick-metrics.ts';
import { zoneKeyOf } from '../../domain/zones/zone.ts';
import type { KubeNode, KubeObject } from '../../kube/types.ts';
import { nodeNameOf } from '../pod-gc/maintain-work-list.ts';
import type { ControllerDependencies } from './dependencies.ts';
import * as metric from './metrics.ts';

const IDS_TOLD_MAX = 10;
const DISRUPTION_TARGET = 'DisruptionTarget';

type Dependencies = Pick<ControllerDependencies, 'eventBus' | 'meter' | 'log'>;

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
    ids: failed.slice(0, IDS_TOLD_MAX).map(({ id }) => id),
  });
}

interface Change {
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** What changes of Node and Pod objects tell. */
export const objectEvents = (nodes: readonly Change[], pods: readonly Change[]): ClusterEvent[] => [
  ...nodes.flatMap(({ before, after }) => nodeTransitions(nodeAsTold(before), nodeAsTold(after))),
  ...pods.flatMap(({ before, after }) => podEviction(before, after)),
];

function nodeAsTold(node: KubeObject | undefined) {
  if (node === undefined) return undefined;
  const { name = '', uid = '', labels, resourceVersion = '' } = node.metadata;
  const ready = (node as KubeNode).status?.conditions?.find(({ type }) => type === 'Ready');
  return { name, uid, zone: zoneKeyOf(labels), resourceVersion, ready: ready?.status, reason: ready?.reason ?? '' };
}

interface PodCondition {
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
}

const disruptionOf = (pod: KubeObject | undefined): string | undefined =>
  ((pod?.status?.['conditions'] as readonly PodCondition[] | undefined) ?? []).find(
    ({ type, status }) => type === DISRUPTION_TARGET && status === 'True',
  )?.reason;

/** A pod is evicted when its condition says for the first time that it is to go, and why. */
function podEviction(before: KubeObject | undefined, after: KubeObject | undefined): ClusterEvent[] {
  const reason = disruptionOf(after);
  if (after === undefined || reason === undefined) return [];
  const { namespace = '', name = '', uid = '' } = after.metadata;
  if (before?.metadata.uid === uid && disruptionOf(before) === reason) return [];
  const nodeName = nodeNameOf(after);
  return [{ type: 'PodEvicted', id: `PodEvicted/${uid}/${reason}`, pod: { namespace, name, uid }, nodeName, reason }];
}
