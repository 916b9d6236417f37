/**
 * What follows at once from a change of a Node or Pod object. Records come at least once, of one object in order, of
 * different objects in any order; everything here is decided from what is stored now, so a repetition finds nothing to do.
 *
 * Node  events RegisteredNode and RemovingNode, once for each uid; taints and labels as reconcile-node.ts says; out of the
 *       eviction queue when Ready; its pods' evictions when its NoExecute taints changed; pod CIDRs as allocate-cidrs.ts says;
 *       on or off the list of nodes EC2 is asked about (watch-cloud-nodes.ts); its name into or out of the quarantine of
 *       missing ones (keep-pod-gc-list.ts)
 * Pod   evictions of its node when it is bound, deleted, or changes its tolerations; not ready at once when it is bound to a
 *       node that is not; on or off the list of pods to be collected; its node is told with its next beat when anything but the pod's status changed
 *
 * What one record fails for is its own. If it may pass, that record and those after it come again; if it never will, it is
 * given up and reported (item-change.ts).
 *
 * What this misses (a record given up, or dropped after its retries) node-monitor and evictor mend at their next tick, but for events and
 * for what a node is told of its pods: agents list them now and then in any case.
 */

import { registeredNode, removingNode } from '../../domain/events/event-text.ts';
import { marksPodsBoundNow, readyStatusOf } from '../../domain/nodes/conditions.ts';
import { noExecuteTaints } from '../../domain/nodes/taint-times.ts';
import { zoneKeyOf } from '../../domain/zones/zone.ts';
import type { KubeNode, KubeObject } from '../../kube/types.ts';
import { jsonEqual } from '../../kube/wire/json-value.ts';
import type { FleetState } from '../../store/fleet-store.ts';
import { podsChanged, readHealth } from '../../store/health-store.ts';
import { objectOf } from '../../store/object-record.ts';
import type { CidrAllocator } from '../cidr-allocator/reconcile.ts';
import { cloudWatchWorks } from '../cloud-node/maintain-watch-list.ts';
import { changeNode } from '../framework/change-node.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import {
  allOf,
  type ChangesOutcome,
  handleInHalves,
  type ItemChangeRecord,
  measureFaults,
  type RecordWork,
  runRecordWork,
} from '../framework/item-change.ts';
import { objectEvents, publishEvents } from '../framework/publish-events.ts';
import { type PendingEvent, recordEvents, subjectOf } from '../framework/record-event.ts';
import { markPods } from '../node-monitor/mark-pods.ts';
import { taintsDraft } from '../node-reconciler/decisions.ts';
import { reconciledNode } from '../node-reconciler/reconcile.ts';
import { evictPods } from '../pod-evictor/reconcile.ts';
import { nodeNameOf, podGcWorks } from '../pod-gc/maintain-work-list.ts';

/** Nodes worked on at once. */
const CONCURRENCY_MAX = 8;
const NODES_PREFIX = 'o#nodes#';
const PODS_PREFIX = 'o#pods#';

type NodeChangeRecord = Change & { readonly before: KubeNode | undefined; readonly after: KubeNode | undefined };

interface Change {
  readonly position: number;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

export interface ObjectStreamDependencies extends ControllerDependencies {
  readonly cidrs: CidrAllocator;
}

export const onObjectChange = async (
  dependencies: ObjectStreamDependencies,
  records: readonly ItemChangeRecord[],
): Promise<ChangesOutcome> =>
  measureFaults(dependencies, await handleInHalves(records, (some) => handleChanges(dependencies, some)));

async function handleChanges(
  dependencies: ObjectStreamDependencies,
  records: readonly ItemChangeRecord[],
): Promise<ChangesOutcome> {
  const nowMs = dependencies.clock.nowMs();
  const nodes = changesOf(records, NODES_PREFIX);
  const pods = changesOf(records, PODS_PREFIX);
  if (nodes.length + pods.length === 0) return { faults: [] };

  // Pods of a node whose evictions are to be decided: by node, the records that ask for it.
  const evictions = new Map<string, number[]>();
  const askEvictions = (nodeName: string, position: number): void => {
    const positions = evictions.get(nodeName);
    if (positions === undefined) evictions.set(nodeName, [position]);
    else positions.push(position);
  };
  for (const change of nodes) {
    const { before, after, position } = change;
    if (!jsonEqual(noExecuteOfNode(before), noExecuteOfNode(after))) askEvictions(nameOf(change), position);
  }
  for (const { before, after, position } of pods) {
    if (jsonEqual(evictionParts(before), evictionParts(after))) continue;
    for (const nodeName of new Set([nodeNameOf(before), nodeNameOf(after)])) {
      if (nodeName !== '') askEvictions(nodeName, position);
    }
  }

  const first = await runRecordWork(
    [
      ...nodeEvents(dependencies, nodes, nowMs),
      ...nodeWorks(dependencies, nodes, nowMs),
      ...boundPods(dependencies, pods, nowMs),
      ...toldNodes(dependencies, pods),
      ...podCidrs(dependencies, nodes, nowMs),
      ...podGcWorks(dependencies, { nodes, pods }, nowMs),
      ...cloudWatchWorks(dependencies, nodes as readonly NodeChangeRecord[]),
      // Never fails: the records are not to come again because nobody outside could be told.
      { of: [], run: () => publishEvents(dependencies, objectEvents(nodes, pods), nowMs) },
    ],
    CONCURRENCY_MAX,
  );
  if (evictions.size === 0) return first;
  const state = await dependencies.fleet.readState();
  return allOf(first, await runRecordWork(evictionWorks(dependencies, evictions, state, nowMs), CONCURRENCY_MAX));
}

function changesOf(records: readonly ItemChangeRecord[], prefix: string): Change[] {
  return records.flatMap(({ key, oldImage, newImage }, position) =>
    key.pk.startsWith(prefix)
      ? [
          {
            position,
            before: oldImage === undefined ? undefined : objectOf(oldImage),
            after: newImage === undefined ? undefined : objectOf(newImage),
          },
        ]
      : [],
  );
}

const nameOf = ({ before, after }: Change): string => (after ?? before)?.metadata.name ?? '';
const taintsOf = (node: KubeObject | undefined) => (node as KubeNode | undefined)?.spec?.taints ?? [];
const noExecuteOfNode = (node: KubeObject | undefined) => noExecuteTaints(taintsOf(node));
const readyOf = (node: KubeObject | undefined) => readyStatusOf((node as KubeNode | undefined)?.status?.conditions);

/** What decides about a pod's eviction; the same before and after, nothing is to be decided. */
const evictionParts = (pod: KubeObject | undefined) =>
  nodeNameOf(pod) === ''
    ? null
    : {
        uid: pod?.metadata.uid ?? '',
        nodeName: nodeNameOf(pod),
        tolerations: pod?.spec?.['tolerations'] ?? [],
        terminating: pod?.metadata.deletionTimestamp !== undefined,
      };

function nodeEvents(dependencies: ControllerDependencies, nodes: readonly Change[], nowMs: number): RecordWork[] {
  const told: PendingEvent[] = [];
  const of: number[] = [];
  for (const change of nodes) {
    const { before, after, position } = change;
    const name = nameOf(change);
    // A Node deleted and made anew may come as one change of its item.
    const removed = before !== undefined && before.metadata.uid !== after?.metadata.uid;
    const created = after !== undefined && before?.metadata.uid !== after.metadata.uid;
    if (removed) told.push({ ...removingNode(name), about: subjectOf('Node', before), once: 'removed' });
    if (created) told.push({ ...registeredNode(name), about: subjectOf('Node', after), once: 'registered' });
    if (removed || created) of.push(position);
  }
  return told.length === 0 ? [] : [{ of, run: () => recordEvents(dependencies, told, nowMs) }];
}

/** One work a node: its last state counts. */
function nodeWorks(dependencies: ObjectStreamDependencies, nodes: readonly Change[], nowMs: number): RecordWork[] {
  const byName = new Map<string, Change[]>();
  for (const change of nodes) byName.set(nameOf(change), [...(byName.get(nameOf(change)) ?? []), change]);
  return [...byName.values()].map((changes) => ({
    of: changes.map(({ position }) => position),
    run: async () => {
      for (const change of changes) await leaveQueue(dependencies, change);
      const last = changes.at(-1)?.after as KubeNode | undefined;
      if (last === undefined || reconciledNode(last, nowMs) === undefined) return;
      const { name = '', uid = '' } = last.metadata;
      const outcome = await changeNode(dependencies.objects, { nodeName: name, uid, nowMs, first: last }, (node) => {
        const next = reconciledNode(node, nowMs);
        if (next === undefined) return undefined;
        const note = taintsDraft(
          { nodeName: name, uid, nowMs, unschedulable: node.spec?.unschedulable === true },
          node.status?.conditions ?? [],
          taintsOf(node),
          taintsOf(next),
        );
        return { next, extra: note === undefined ? [] : [dependencies.ledger.write(note)] };
      });
      if (outcome.kind === 'tooLarge') dependencies.log.error('a Node is too large to be tainted', { nodeName: name });
    },
  }));
}

/** Of a node as it was last: blocks for one that has none, a note of those that one brings, back from one that went. */
function podCidrs({ cidrs }: ObjectStreamDependencies, nodes: readonly Change[], nowMs: number): RecordWork[] {
  const works: RecordWork[] = [];
  const last = new Map(nodes.map((change) => [nameOf(change), change.after?.metadata.uid]));
  for (const { before, after, position } of nodes as readonly NodeChangeRecord[]) {
    const of = [position];
    if (before !== undefined && before.metadata.uid !== after?.metadata.uid) {
      works.push({ of, run: () => cidrs.release(before) });
    }
    if (after === undefined || last.get(after.metadata.name ?? '') !== after.metadata.uid) continue;
    const has = after.spec?.podCIDRs ?? [];
    const had = before?.metadata.uid === after.metadata.uid ? (before?.spec?.podCIDRs ?? []) : [];
    if (has.length === 0 || !jsonEqual(had, has)) works.push({ of, run: () => cidrs.settle(after, nowMs) });
  }
  return works;
}

/** A node that turned Ready, or went, no longer waits for its zone's limiter. */
async function leaveQueue({ fleet }: ControllerDependencies, { before, after }: Change): Promise<void> {
  if (before === undefined) return;
  const gone = before.metadata.uid !== after?.metadata.uid;
  const turnedReady = readyOf(after) === 'True' && readyOf(before) !== 'True';
  if (!gone && !turnedReady) return;
  const { name = '', uid = '', labels } = before.metadata;
  await fleet.dequeue({ zone: zoneKeyOf(labels), nodeName: name, uid });
}

function boundPods(dependencies: ControllerDependencies, pods: readonly Change[], nowMs: number): RecordWork[] {
  const bound = pods.filter(
    ({ before, after }) =>
      nodeNameOf(after) !== '' && (nodeNameOf(before) === '' || before?.metadata.uid !== after?.metadata.uid),
  );
  if (bound.length === 0) return [];
  return [
    {
      of: bound.map(({ position }) => position),
      run: async () => {
        const nodeNames = [...new Set(bound.map(({ after }) => nodeNameOf(after)))];
        const digests = await readHealth(dependencies.items, nodeNames);
        for (const name of nodeNames) if (!digests.has(name)) await dependencies.podGc.putMissing(name, nowMs);
        const onNotReady = bound.flatMap(({ after }) =>
          after !== undefined && marksPodsBoundNow(digests.get(nodeNameOf(after))?.ready) ? [after] : [],
        );
        const { left, faults } = await markPods(dependencies, onNotReady, nowMs);
        if (left > 0) {
          throw new AggregateError(faults, `${left} pods bound to nodes that are not ready could not be marked`);
        }
      },
    },
  ];
}

/** What a node has to know of a pod: everything but its status, which the node writes itself. */
function toldParts(pod: KubeObject | undefined) {
  if (pod === undefined) return null;
  const { resourceVersion: _, generation: __, managedFields: ___, ...metadata } = pod.metadata;
  return { metadata, spec: pod.spec ?? {} };
}

function toldNodes({ items }: ControllerDependencies, pods: readonly Change[]): RecordWork[] {
  const byNode = new Map<string, number[]>();
  for (const { before, after, position } of pods) {
    if (jsonEqual(toldParts(before), toldParts(after))) continue;
    for (const nodeName of new Set([nodeNameOf(before), nodeNameOf(after)])) {
      if (nodeName !== '') byNode.set(nodeName, [...(byNode.get(nodeName) ?? []), position]);
    }
  }
  return [...byNode].map(([nodeName, of]) => ({ of, run: () => items.write(podsChanged(nodeName)) }));
}

const evictionWorks = (
  dependencies: ControllerDependencies,
  evictions: ReadonlyMap<string, number[]>,
  state: FleetState,
  nowMs: number,
): RecordWork[] =>
  [...evictions].map(([nodeName, of]) => ({ of, run: () => evictPods(dependencies, nodeName, { nowMs, state }) }));
