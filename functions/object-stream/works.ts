/** The units of work that changes of Nodes and Pods require. Each decides by the stored state at the time it runs. */

import { registeredNode, removingNode } from '../../shared/events/event-text.ts';
import { recordEvents, subjectOf } from '../../shared/events/record-event.ts';
import { isSilentNode } from '../../shared/fleet/eviction-time.rule.ts';
import { evictPods } from '../../shared/fleet/evictions.ts';
import type { FleetState } from '../../shared/fleet/fleet-store.ts';
import { cloudWatchWorks } from '../../shared/fleet/instances/watch-list-store.ts';
import { markPods } from '../../shared/fleet/mark-pods.ts';
import { changeNode, nodeRef } from '../../shared/fleet/nodes/change-node.ts';
import { marksPodsBoundNow, readyStatusOf } from '../../shared/fleet/nodes/conditions.ts';
import { podsChanged, readHealth } from '../../shared/fleet/nodes/health-store.ts';
import { zoneKeyOf } from '../../shared/fleet/nodes/node-digest.ts';
import { reportUnwritable } from '../../shared/fleet/nodes/report-unwritable.ts';
import { readerPartOf, settleServiceReader } from '../../shared/fleet/nodes/service-readers.ts';
import { noExecuteTaints } from '../../shared/fleet/nodes/taint.ts';
import { profileDraft, silenceDraft, taintsDraft } from '../../shared/fleet/nodes/taint-decisions.ts';
import { nodeNameOf, podGcWorks } from '../../shared/kinds/pods/maintain-work-list.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { jsonEqual } from '../../shared/kubernetes/json.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../shared/store/layout.ts';
import { groupedBy } from '../../shared/ticks/bounded-work.ts';
import type { RecordWork } from '../../shared/ticks/item-change.ts';
import type { ObjectStreamDependencies } from './dependencies.ts';
import { reconciledNode } from './node-taints.ts';
import { schedulingWorks } from './scheduling-requests.ts';

/** Kinds of work. Parked rows contain these names, so a name never changes. */
export const WORK_KINDS = [
  'registered',
  'removed',
  'node',
  'boundPods',
  'podsVersion',
  'cidrs',
  'podGc',
  'cloudWatch',
  'evictions',
  'scheduling',
  'serviceReaders',
] as const;
export type WorkKind = (typeof WORK_KINDS)[number];

interface Change<T extends KubeObject> {
  readonly position: number;
  readonly before: T | undefined;
  readonly after: T | undefined;
  /**
   * A retry of a parked work: `after` is the current object, and `before` has only what parking.rule.ts keeps. The work
   * is wanted, so the two are not compared.
   */
  readonly isRetry?: boolean;
}
export type NodeChange = Change<KubeNode>;
export type PodChange = Change<KubeObject>;

export interface ObjectChanges {
  readonly nodes: readonly NodeChange[];
  readonly pods: readonly PodChange[];
}

/** Work with `nodeName` is for the node of that name, and several changes may require it. */
interface NodeNameWork extends RecordWork {
  readonly nodeName?: string;
}

export interface ObjectWork extends NodeNameWork {
  readonly kind: WorkKind;
}

export interface WorksDependencies extends ObjectStreamDependencies {
  /** The state of the fleet, read once per batch. */
  readonly fleetState: () => Promise<FleetState>;
}

type WorksOf = (dependencies: WorksDependencies, changes: ObjectChanges, nowMs: number) => readonly NodeNameWork[];

const WORKS: Readonly<Record<WorkKind, WorksOf>> = {
  registered: (dependencies, { nodes }, nowMs) => registeredEvents(dependencies, nodes, nowMs),
  removed: (dependencies, { nodes }, nowMs) => removedEvents(dependencies, nodes, nowMs),
  node: (dependencies, { nodes }, nowMs) => nodeWorks(dependencies, nodes, nowMs),
  boundPods: (dependencies, { pods }, nowMs) => boundPodWorks(dependencies, pods, nowMs),
  podsVersion: podsVersionWorks,
  cidrs: (dependencies, { nodes }, nowMs) => podCidrWorks(dependencies, nodes, nowMs),
  podGc: podGcWorks,
  cloudWatch: (dependencies, { nodes }) => cloudWatchWorks(dependencies, nodes),
  evictions: evictionWorks,
  scheduling: (dependencies, changes) => schedulingWorks(dependencies, changes),
  serviceReaders: (dependencies, { nodes }) => serviceReaderWorks(dependencies, nodes),
};

export const worksOf = (
  kind: WorkKind,
  dependencies: WorksDependencies,
  changes: ObjectChanges,
  nowMs: number,
): readonly ObjectWork[] => WORKS[kind](dependencies, changes, nowMs).map((work) => ({ ...work, kind }));

const nameOf = ({ before, after }: NodeChange): string => (after ?? before)?.metadata.name ?? '';
const taintsOf = (node: KubeNode | undefined) => node?.spec?.taints ?? [];
const readyOf = (node: KubeNode | undefined) => readyStatusOf(node?.status?.conditions);
const positionsOf = (changes: readonly { readonly position: number }[]): number[] =>
  changes.map(({ position }) => position);

/** The object of `before` no longer exists. A Node that is deleted and created again may arrive as one change. */
const isRemoved = ({ before, after }: Change<KubeObject>): boolean =>
  before !== undefined && before.metadata.uid !== after?.metadata.uid;
const isCreated = ({ before, after }: Change<KubeObject>): boolean =>
  after !== undefined && before?.metadata.uid !== after.metadata.uid;

function registeredEvents(
  dependencies: ObjectStreamDependencies,
  nodes: readonly NodeChange[],
  nowMs: number,
): RecordWork[] {
  const created = nodes.filter(isCreated);
  if (created.length === 0) return [];
  const events = created.map((change) => ({
    ...registeredNode(nameOf(change)),
    about: subjectOf('Node', change.after!),
    once: 'registered',
  }));
  return [{ of: positionsOf(created), run: () => recordEvents(dependencies, events, nowMs) }];
}

function removedEvents(
  dependencies: ObjectStreamDependencies,
  nodes: readonly NodeChange[],
  nowMs: number,
): RecordWork[] {
  const removed = nodes.filter(isRemoved);
  if (removed.length === 0) return [];
  const events = removed.map((change) => ({
    ...removingNode(nameOf(change)),
    about: subjectOf('Node', change.before!),
    once: 'removed',
  }));
  return [{ of: positionsOf(removed), run: () => recordEvents(dependencies, events, nowMs) }];
}

/** One work per node: taints and labels follow its last state. */
function nodeWorks(dependencies: ObjectStreamDependencies, nodes: readonly NodeChange[], nowMs: number): RecordWork[] {
  return [...groupedBy(nodes, nameOf)].map(([nodeName, changes]) => ({
    of: positionsOf(changes),
    run: async () => {
      for (const change of changes) {
        await leaveQueue(dependencies, change);
        await recordAnnotations(dependencies, change, nowMs);
      }
      const last = changes.at(-1)?.after;
      if (last !== undefined) await reconcileNode(dependencies, nodeName, last, nowMs);
    },
  }));
}

async function reconcileNode(
  dependencies: ObjectStreamDependencies,
  nodeName: string,
  first: KubeNode,
  nowMs: number,
): Promise<void> {
  const { objects, ledger, policy } = dependencies;
  const at = { nowMs, profiles: policy.profiles };
  if (reconciledNode(first, at) === undefined) return;
  const { uid = '' } = first.metadata;
  const outcome = await changeNode(objects, { nodeName, uid, nowMs, first }, (node) => {
    const next = reconciledNode(node, at);
    if (next === undefined) return undefined;
    const draft = taintsDraft(
      { nodeName, uid, nowMs, unschedulable: node.spec?.unschedulable === true },
      node.status?.conditions ?? [],
      taintsOf(node),
      taintsOf(next),
    );
    return { next, extra: draft === undefined ? [] : [ledger.write(draft)] };
  });
  if (outcome.kind === 'tooLarge') {
    await reportUnwritable(dependencies, { kind: 'Node', object: outcome.node, what: 'change its taints', nowMs });
  }
}

/** Records a change of the profile or of a promise of silence, whoever wrote it: the API or a controller. */
async function recordAnnotations(
  { ledger, policy }: ObjectStreamDependencies,
  { before, after }: NodeChange,
  nowMs: number,
): Promise<void> {
  if (before === undefined || after === undefined || before.metadata.uid !== after.metadata.uid) return;
  const version = Number(after.metadata.resourceVersion ?? 0);
  // The time of the write, which is the same for each delivery of the record.
  const atMs = Math.floor(version / RESOURCE_VERSIONS_PER_MS);
  for (const draft of [
    profileDraft(before, after, { nowMs, policy }),
    silenceDraft(before, after, { nowMs, changedAtMs: atMs }),
  ]) {
    if (draft !== undefined) await ledger.recordOnce(draft, { atMs, key: String(version) });
  }
}

/**
 * Removes a node that became Ready, or was deleted, from its zone's eviction queue. A node without a Ready status,
 * such as one that registers, is not queued: it is marked first.
 */
async function leaveQueue({ fleet }: ObjectStreamDependencies, change: NodeChange): Promise<void> {
  const { before, after } = change;
  if (before === undefined) return;
  const readyBefore = readyOf(before);
  const becameReady = readyOf(after) === 'True' && readyBefore !== undefined && readyBefore !== 'True';
  if (!isRemoved(change) && !becameReady) return;
  const { name = '', uid = '', labels } = before.metadata;
  await fleet.dequeue({ zone: zoneKeyOf(labels), nodeName: name, uid });
}

/** Allocates blocks to a node without pod CIDRs, records those that a node has, and releases those of a deleted one. */
function podCidrWorks({ cidrs }: WorksDependencies, nodes: readonly NodeChange[], nowMs: number): RecordWork[] {
  const works: RecordWork[] = [];
  const last = new Map(nodes.map((change) => [nameOf(change), change.after?.metadata.uid]));
  for (const change of nodes) {
    const { before, after, position, isRetry } = change;
    const of = [position];
    if (before !== undefined && isRemoved(change)) works.push({ of, run: () => cidrs.release(before) });
    if (after === undefined || last.get(after.metadata.name ?? '') !== after.metadata.uid) continue;
    const current = after.spec?.podCIDRs ?? [];
    const previous = isCreated(change) ? [] : (before?.spec?.podCIDRs ?? []);
    if (isRetry === true || current.length === 0 || !jsonEqual(previous, current)) {
      works.push({ of, run: () => cidrs.settle(after, nowMs) });
    }
  }
  return works;
}

/** A pod that is bound to a node that is not Ready is marked at once. A node name without a Node is quarantined. */
function boundPodWorks(
  dependencies: ObjectStreamDependencies,
  pods: readonly PodChange[],
  nowMs: number,
): RecordWork[] {
  const bound = pods.filter(
    (change) =>
      nodeNameOf(change.after) !== '' &&
      (change.isRetry === true || nodeNameOf(change.before) === '' || isCreated(change)),
  );
  if (bound.length === 0) return [];
  return [
    {
      of: positionsOf(bound),
      run: async () => {
        const nodeNames = [...new Set(bound.map(({ after }) => nodeNameOf(after)))];
        const digests = await readHealth(dependencies.items, nodeNames);
        for (const name of nodeNames) if (!digests.has(name)) await dependencies.podGc.putMissing(name, nowMs);
        const onNotReady = bound.flatMap(({ after }) =>
          after !== undefined && marksPodsBoundNow(digests.get(nodeNameOf(after))?.ready) ? [after] : [],
        );
        const { left, faults } = await markPods(dependencies, onNotReady, nowMs);
        if (left === 0) return;
        const message = `${left} pods bound to nodes that are not ready could not be marked`;
        // Without a fault, other commits kept changing the pods: a retry may succeed.
        if (left > faults.length) throw new StoreFault('throttled', message, { retryable: true });
        throw new AggregateError(faults, message);
      },
    },
  ];
}

/** One work per node that routes Services, or did, if its place on their list may change. */
function serviceReaderWorks({ items, objects }: WorksDependencies, nodes: readonly NodeChange[]): RecordWork[] {
  const concerned = nodes.filter(
    ({ before, after, isRetry }) => isRetry === true || !jsonEqual(readerPartOf(before), readerPartOf(after)),
  );
  return [...groupedBy(concerned, nameOf)].map(([nodeName, changes]) => ({
    of: positionsOf(changes),
    run: async () => {
      const last = changes.at(-1)!;
      const { uid = '' } = (last.after ?? last.before)?.metadata ?? {};
      await settleServiceReader(items, { nodeName, uid }, await objects.get(nodeRef(nodeName)));
    },
  }));
}

/** A node that a change concerns. */
interface Concern {
  readonly nodeName: string;
  /** `NAMESPACE/NAME`, when a pod of the node changed. */
  readonly pod?: string;
  readonly position: number;
}

/** The nodes of all Node and Pod changes that `isWanted` selects. A rebound pod concerns two nodes. */
const concernsOf = (
  { nodes, pods }: ObjectChanges,
  isWanted: { readonly node: (change: NodeChange) => boolean; readonly pod: (change: PodChange) => boolean },
): readonly Concern[] => [
  ...nodes.filter(isWanted.node).map((change) => ({ nodeName: nameOf(change), position: change.position })),
  ...pods.filter(isWanted.pod).flatMap(({ before, after, position }) => {
    const nodeNames = new Set([nodeNameOf(before), nodeNameOf(after)]);
    const { namespace = '', name = '' } = (after ?? before)?.metadata ?? {};
    const pod = `${namespace}/${name}`;
    return [...nodeNames].flatMap((nodeName) => (nodeName === '' ? [] : [{ nodeName, pod, position }]));
  }),
];

/** One work per node. */
const worksByNode = (
  concerns: readonly Concern[],
  run: (nodeName: string, some: readonly Concern[]) => Promise<unknown>,
): NodeNameWork[] =>
  [...groupedBy(concerns, ({ nodeName }) => nodeName)].map(([nodeName, some]) => ({
    nodeName,
    of: positionsOf(some),
    run: () => run(nodeName, some),
  }));

/** The parts of a pod that its node does not write itself: everything but the status. */
function partsForNode(pod: KubeObject | undefined) {
  if (pod === undefined) return null;
  const { resourceVersion: _, generation: __, managedFields: ___, ...metadata } = pod.metadata;
  return { metadata, spec: pod.spec ?? {} };
}

/** One write per node: the response to its next heartbeat says that its pods changed. */
function podsVersionWorks({ items }: ObjectStreamDependencies, changes: ObjectChanges): NodeNameWork[] {
  const concerns = concernsOf(changes, {
    node: ({ isRetry }) => isRetry === true,
    pod: ({ before, after }) => !jsonEqual(partsForNode(before), partsForNode(after)),
  });
  return worksByNode(concerns, (nodeName) => items.write(podsChanged(nodeName)));
}

/** The parts of a pod that decide about its eviction. */
const evictionParts = (pod: KubeObject | undefined) =>
  nodeNameOf(pod) === ''
    ? null
    : {
        uid: pod?.metadata.uid ?? '',
        nodeName: nodeNameOf(pod),
        tolerations: pod?.spec?.['tolerations'] ?? [],
        terminating: pod?.metadata.deletionTimestamp !== undefined,
      };

/** One work per node with changed NoExecute taints, for all of its pods, or with changed pods, for these. */
function evictionWorks(dependencies: WorksDependencies, changes: ObjectChanges, nowMs: number): NodeNameWork[] {
  const noExecuteOf = (node: KubeNode | undefined) => noExecuteTaints(taintsOf(node));
  const isSilent = (node: KubeNode | undefined) => isSilentNode(noExecuteOf(node), readyOf(node));
  const concerns = concernsOf(changes, {
    node: ({ before, after, isRetry }) =>
      isRetry === true ||
      !jsonEqual(noExecuteOf(before), noExecuteOf(after)) ||
      // With the taint of an earlier silence: terminating pods may have lost the timers of their removal.
      (isSilent(after) && !isSilent(before)),
    pod: ({ before, after }) => !jsonEqual(evictionParts(before), evictionParts(after)),
  });
  return worksByNode(concerns, async (nodeName, some) => {
    const pods = some.map(({ pod }) => pod);
    const changed = pods.includes(undefined) ? {} : { changed: new Set(pods.filter((pod) => pod !== undefined)) };
    await evictPods(dependencies, nodeName, { nowMs, state: await dependencies.fleetState(), ...changed });
  });
}
