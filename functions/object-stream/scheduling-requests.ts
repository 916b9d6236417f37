/**
 * Requests a pass of the scheduler after changes of pods and Nodes: a work of object-stream.
 *
 * A pod that can be scheduled is a request by itself. Other changes are one only while a pod waits: room that became
 * free, a Node that was added or changed in what the scheduler reads, a pod that was bound (for affinity). Nothing
 * waits: half a read unit. A request: one write unit per batch, and a wake-up unless a pass is running: that pass then
 * continues.
 */
import type { KubeNode, KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { queueStore } from '../../shared/scheduling/queue-store.ts';
import { requestsOf } from '../../shared/scheduling/requests.rule.ts';
import {
  isPending,
  SCHEDULER_NAME,
  type SchedulablePod,
  schedulableNode,
  schedulablePod,
} from '../../shared/scheduling/world.rule.ts';
import type { RecordWork } from '../../shared/ticks/item-change.ts';
import { wake } from '../../shared/ticks/tick.ts';
import type { ObjectStreamDependencies } from './dependencies.ts';

interface Change<T extends KubeObject> {
  readonly position: number;
  readonly before: T | undefined;
  readonly after: T | undefined;
  readonly isRetry?: boolean;
}

type Dependencies = Pick<ObjectStreamDependencies, 'items' | 'clock' | 'policy' | 'waker' | 'log'>;

/** Name of the function. */
const SCHEDULER = 'scheduler';

/** What the scheduler reads of a Node, apart from images, which only change scores. */
function schedulingParts(node: KubeNode | undefined): string {
  if (node === undefined) return '';
  const { uid, labels, isUnschedulable, taints, allocatable, podsMax, declaredFeatures } = schedulableNode(node);
  return JSON.stringify([uid, labels, isUnschedulable, taints, allocatable, podsMax, declaredFeatures]);
}

const isSchedulable = (pod: SchedulablePod | undefined): boolean => pod !== undefined && isPending(pod) && !pod.isGated;

/** What an update of a waiting pod may change in its scheduling. */
const ownParts = ({ uid, labels, tolerations, isGated, requests }: SchedulablePod): string =>
  JSON.stringify([uid, labels, tolerations, isGated, requests]);

const read = (pod: KubePod | undefined): SchedulablePod | undefined =>
  pod === undefined ? undefined : schedulablePod(pod);

function isRequest({ before, after, isRetry }: Change<KubePod>): boolean {
  // Most changes are of pods that are bound already.
  if (after === undefined || (after.spec?.nodeName ?? '') !== '') return false;
  if ((after.spec?.schedulerName ?? SCHEDULER_NAME) !== SCHEDULER_NAME) return false;
  const pod = read(after);
  if (!isSchedulable(pod)) return false;
  const previous = read(before);
  return isRetry === true || previous === undefined || ownParts(previous) !== ownParts(pod!);
}

/** Whether the pod begins or ceases to count on a node, or counts differently for others. */
function mayHelpOthers({ before, after }: Change<KubePod>): boolean {
  const partsOf = (pod: KubePod | undefined): string => {
    const nodeName = pod?.spec?.nodeName || pod?.status?.nominatedNodeName;
    if (pod === undefined || nodeName === undefined || nodeName === '') return '';
    const { phase } = pod.status ?? {};
    if (phase === 'Succeeded' || phase === 'Failed') return '';
    const { uid, labels, deletionTimestamp } = pod.metadata;
    return JSON.stringify([uid, nodeName, labels, deletionTimestamp !== undefined]);
  };
  const parts = partsOf(after);
  if (partsOf(before) !== parts) return true;
  return parts !== '' && JSON.stringify(requestsOf(before!)) !== JSON.stringify(requestsOf(after!));
}

export function schedulingWorks(
  dependencies: Dependencies,
  changes: { readonly nodes: readonly Change<KubeNode>[]; readonly pods: readonly Change<KubePod>[] },
): RecordWork[] {
  if (dependencies.policy.scheduling === 'off') return [];
  const requests = changes.pods.filter(isRequest);
  const others = [
    ...changes.nodes.filter(
      ({ before, after, isRetry }) => isRetry === true || schedulingParts(before) !== schedulingParts(after),
    ),
    ...changes.pods.filter((change) => change.isRetry === true || mayHelpOthers(change)),
  ];
  if (requests.length + others.length === 0) return [];
  const of = [...new Set([...requests, ...others].map(({ position }) => position))];
  return [{ of, run: () => requestPass(dependencies, requests.length > 0) }];
}

async function requestPass(dependencies: Dependencies, isUrgent: boolean): Promise<void> {
  const { items, clock } = dependencies;
  const queue = queueStore(items);
  if (!isUrgent && (await queue.peek()).dueAtMs === undefined) return;
  const nowMs = clock.nowMs();
  const { busyUntilMs } = await queue.request();
  if (busyUntilMs <= nowMs) await wake(dependencies, [SCHEDULER], nowMs);
}
