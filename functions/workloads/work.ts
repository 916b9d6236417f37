/**
 * Runs the controllers of workloads: after changes of objects, at due times, and in a sweep over all workloads.
 *
 * Records are delivered at least once. Each work reads what is stored when it runs, so a repetition decides nothing.
 * A record that was lost is repaired by the sweep.
 */

import { defined } from '../../shared/defined.ts';
import { gateVerdictFor } from '../../shared/fleet/gate.ts';
import { ALL_ZONES } from '../../shared/fleet/nodes/service-readers.ts';
import { isFullyBound } from '../../shared/kinds/persistentvolumes/binding.rule.ts';
import type { KubeDaemonSet, KubeJob, KubeNode, KubeObject, ObjectRef, PodSpec } from '../../shared/kinds/types.ts';
import { jsonEqual } from '../../shared/kubernetes/json.ts';
import { controllerOf } from '../../shared/kubernetes/normal-form.ts';
import { type LabelSelectorSpec, selectorFromSpec } from '../../shared/kubernetes/selectors.ts';
import { objectOf, refOf } from '../../shared/store/object-record.ts';
import {
  groupedBy,
  inParts,
  UNBOUNDED,
  type WorkBudget,
  workThrough,
  workUntil,
} from '../../shared/ticks/bounded-work.ts';
import {
  addDue,
  addSweep,
  type DueKey,
  type DueRow,
  earliestRows,
  nextSweep,
  removeDue,
  textOf,
} from '../../shared/ticks/due-rows.ts';
import {
  type ChangesOutcome,
  handleRecords,
  type ItemChangeRecord,
  type RecordWork,
  runRecordWorks,
} from '../../shared/ticks/item-change.ts';
import { bareClaim, type RunningTick, runTick, type SkippedTick, type Tick } from '../../shared/ticks/tick.ts';
import { syncCronJob } from './cronjobs/reconcile.ts';
import { isOverdue } from './cronjobs/rule.ts';
import {
  type DaemonNode,
  daemonNodeOf,
  type Placement,
  placementOf,
  type Verdict,
  verdictFor,
} from './daemonsets/placement.rule.ts';
import { syncDaemonSet } from './daemonsets/reconcile.ts';
import { isDaemonSetSettled } from './daemonsets/rule.ts';
import { syncDefinition } from './definitions.ts';
import type { WorkloadDependencies } from './dependencies.ts';
import { syncDeployment } from './deployments/reconcile.ts';
import { budgetsSelecting, syncBudget, unsettledBudgets } from './disruption-budgets.ts';
import { announce, announceNow } from './endpoints/announcements.ts';
import { servicesSelecting, syncEndpoints, syncMirror, unfilledServices } from './endpoints/reconcile.ts';
import { checkOwner, collectDependents, finishDeletion, ownerRef } from './garbage-collector/reconcile.ts';
import { finishedCondition } from './jobs/outcome.rule.ts';
import { stopTracking, syncJob } from './jobs/reconcile.ts';
import * as metric from './metrics.ts';
import { syncNamespace } from './namespaces/reconcile.ts';
import { KNOWN_FOR_MS, listObjects } from './object-lists.ts';
import { isTracked } from './owned-pods.rule.ts';
import { refOfObject, type SyncReport } from './owner.ts';
import { syncQuota } from './quotas.ts';
import { syncReplicaSet } from './replicasets/reconcile.ts';
import { longestSeconds, shortagesOf } from './shortage.rule.ts';
import { readShortages, writeShortages } from './shortage-store.ts';
import { syncStatefulSet } from './statefulsets/reconcile.ts';
import { isStatefulSetSettled } from './statefulsets/status.rule.ts';
import { syncEphemeralClaims } from './volumes/ephemeral-claims.ts';
import { removeDirectory, syncClaim, syncVolume } from './volumes/reconcile.ts';
import type { KubeDeployment, KubeReplicaSet } from './workload-types.ts';
import {
  adoptersOf,
  COUNTED,
  formerJob,
  isWorkload,
  type NodeChange,
  type ObjectRecord,
  ownedResources,
  requiredWorks,
  type Work,
  type WorkloadResource,
  workloadResources,
} from './works.rule.ts';

const WORKLOADS = 'workloads';
const CONCURRENCY_MAX = 8;
/** The repetition of failed works begins within this time after the start of the batch. Milliseconds. */
const REPETITION_BUDGET_MS = 10_000;
const SWEEP_MS = 900_000;
/** A sweep syncs workloads for so many periods. The next one begins with those that are left, after CUT_SWEEP_MS. */
const SWEEP_PERIODS = 6;
const CUT_SWEEP_MS = 60_000;
/** Lists in memory at a time, of at most all pods of a namespace each. */
const LISTS_KEPT = 4;
/** Objects that are synced between two writes of the place where a killed sweep continues. */
const SWEEP_PART = 200;
/** Until a failed work is repeated: by the first tick after this time, and then at this interval. */
const REPEAT_MS = 10_000;
const REPEAT_DUE_MS = 60_000;
/** Clocks of two processes differ by less. Milliseconds. */
const CLOCK_SKEW_MS = 2_000;

export const onWorkloadChange = (
  dependencies: WorkloadDependencies,
  records: readonly ItemChangeRecord[],
): Promise<ChangesOutcome> => handleRecords(dependencies, records, (some) => handleChanges(dependencies, some));

async function handleChanges(
  dependencies: WorkloadDependencies,
  records: readonly ItemChangeRecord[],
): Promise<ChangesOutcome> {
  const [known, again] = [remembering(dependencies), remembering(dependencies)];
  const works = requiredWorks(records.flatMap(objectRecord)).map(({ of, work }): BatchWork => {
    let read = known;
    return {
      of,
      work,
      async run() {
        const first = read;
        // A repetition may be one because of what was known. It begins after all first runs.
        read = again;
        await perform(dependencies, work, first);
      },
    };
  });
  const retryBudget = workUntil(dependencies.clock, dependencies.clock.nowMs() + REPETITION_BUDGET_MS);
  const failed = await runRecordWorks(works, { concurrencyMax: CONCURRENCY_MAX, retryBudget });
  // To deliver the batch again would delay the workloads behind it.
  await Promise.all([...failed.keys()].map(({ work }) => repeatLater(dependencies, work)));
  return { faults: [], postponed: [...failed.values()] };
}

interface BatchWork extends RecordWork {
  readonly work: Work;
}

/** All objects of a resource in a namespace. */
type ReadNamespace = (resource: string, namespace: string) => Promise<readonly KubeObject[]>;

const readingNamespaces =
  (dependencies: WorkloadDependencies): ReadNamespace =>
  (resource, namespace) =>
    listObjects(dependencies, resource, namespace);

/**
 * For the adoptions of one batch: a thousand new pods without an owner read the ReplicaSets of their namespace once.
 * What is read in a batch was read after all its records were written, so it has all that they are about. Each write
 * of an adoption is conditional on what was read: an orphan that changed since is adopted by the repetition.
 */
function remembering(dependencies: WorkloadDependencies): ReadNamespace {
  const read = readingNamespaces(dependencies);
  const known = new Map<string, Promise<readonly KubeObject[]>>();
  return (resource, namespace) => {
    const key = `${resource}/${namespace}`;
    const found = known.get(key) ?? read(resource, namespace);
    known.delete(key);
    known.set(key, found);
    if (known.size > LISTS_KEPT) known.delete(known.keys().next().value as string);
    return found;
  };
}

/** Stores a due time for a failed work. If this write fails too, the batch is delivered again. */
async function repeatLater(dependencies: WorkloadDependencies, work: Work): Promise<void> {
  const { items, clock } = dependencies;
  const key = work.kind === 'finishOwner' ? await dueKeyOfOwner(dependencies, work) : dueKeyOf(work);
  await addDue(items, { atMs: clock.nowMs() + REPEAT_MS, key });
}

type FinishOwner = Extract<Work, { kind: 'finishOwner' }>;

async function dueKeyOfOwner(
  dependencies: WorkloadDependencies,
  { namespace: ofDependent, owner }: FinishOwner,
): Promise<DueKey> {
  const { resource = '', namespace = '', name = '' } = (await ownerRef(dependencies, ofDependent, owner)) ?? {};
  return { kind: 'finish', ref: { resource, namespace, name } };
}

function dueKeyOf(work: Exclude<Work, FinishOwner>): DueKey {
  if (work.kind === 'nodesChanged') return { kind: 'daemonSets' };
  if (work.kind === 'announcePeers' || work.kind === 'policiesChanged') return { kind: 'announce', zone: ALL_ZONES };
  if (work.kind === 'announce') return { kind: 'announce', zone: work.zones.length === 1 ? work.zones[0]! : ALL_ZONES };
  // The content of the volume is not stored any more: if this fails twice, the directory stays.
  if (work.kind === 'removeDirectory') return { kind: 'workload', ref: work.ref };
  if (work.kind === 'collect') return { kind: 'collect', ownerUid: work.ownerUid };
  if (work.kind === 'checkOwner') return { kind: 'dependents', ownerUid: work.owner.uid };
  const { kind, ref } = work;
  return { kind: kind === 'finish' || kind === 'adopt' || kind === 'podEnded' ? kind : 'workload', ref };
}

/** `o#<resource>#<shard>`. */
function objectRecord({ key, oldImage, newImage }: ItemChangeRecord, position: number): readonly ObjectRecord[] {
  const [table, resource] = key.pk.split('#');
  if (table !== 'o' || resource === undefined) return [];
  return [
    {
      position,
      ref: refOf(resource, key.sk),
      ...(oldImage === undefined ? {} : { before: objectOf(oldImage) }),
      ...(newImage === undefined ? {} : { after: objectOf(newImage) }),
    },
  ];
}

async function perform(dependencies: WorkloadDependencies, work: Work, read: ReadNamespace): Promise<void> {
  switch (work.kind) {
    case 'sync':
      return syncSpaced(dependencies, work.ref, read);
    case 'adoptAll':
      return sync(dependencies, work.ref, { orphans: await orphansFor(dependencies, work.ref, read) });
    case 'adopt':
      return adopt(dependencies, work, read);
    case 'podEnded':
      return syncIfRecreated(dependencies, work.ref);
    case 'nodesChanged':
      return syncDaemonSets(dependencies, (_set, placement) => isConcernedBy(placement, work.changes));
    case 'budgets':
      return countSpaced(dependencies, dueKeyOf(work), async (counted) =>
        syncAll(counted, await budgetsSelecting(counted, work.ref.namespace, work.labels)),
      );
    case 'services':
      return countSpaced(dependencies, dueKeyOf(work), async (counted) =>
        syncAll(counted, await servicesSelecting(counted, work.ref.namespace, work.labels)),
      );
    case 'reselect':
      dependencies.services.forget();
      // Another process may know the former selector until then.
      return addDue(dependencies.items, { atMs: dependencies.clock.nowMs() + KNOWN_FOR_MS, key: dueKeyOf(work) });
    case 'announce':
      return announce(dependencies, work.zones);
    case 'announcePeers':
      return (await dependencies.networkPolicies.exist()) ? announce(dependencies, [ALL_ZONES]) : undefined;
    case 'policiesChanged':
      dependencies.networkPolicies.forget();
      // Another process may know until then that there are none.
      return addDue(dependencies.items, { atMs: dependencies.clock.nowMs() + KNOWN_FOR_MS, key: dueKeyOf(work) });
    case 'mirror':
      await syncMirror(dependencies, work.ref);
      return;
    case 'removeDirectory':
      return removeDirectory(dependencies, work.removed);
    case 'collect':
      return collectDependents(dependencies, work.ownerUid, work.hasClaim);
    case 'finish':
      return finishDeletion(dependencies, work.ref);
    case 'checkOwner':
      return checkOwner(dependencies, work.namespace, work.owner);
    case 'finishOwner': {
      const owner = await ownerRef(dependencies, work.namespace, work.owner);
      return owner === undefined ? undefined : finishDeletion(dependencies, owner);
    }
  }
}

/** All of a namespace. */
const isCount = (ref: ObjectRef): boolean => ref.namespace !== '' && ref.name === '';

/** During a pause the next count finds what one of them needs, unless it was removed: that needs no count. */
async function syncSpaced(dependencies: WorkloadDependencies, ref: ObjectRef, read?: ReadNamespace): Promise<void> {
  if (!COUNTED.has(ref.resource)) return sync(dependencies, ref, defined({ read }));
  const key: DueKey = { kind: 'workload', ref: { ...ref, name: '' } };
  const isPaused = dependencies.counts.pausedUntilMs(textOf(key)) !== undefined;
  if (isPaused && !isCount(ref) && (await dependencies.objects.get(ref)) === undefined) return sync(dependencies, ref);
  return countSpaced(dependencies, key, (counted) => sync(counted, ref));
}

/**
 * Counts now, or stores a due time: the same one for all changes until then. The tick that removes the row reads the
 * pods CLOCK_SKEW_MS after the last change that stored it, so it counts that change, also by the clock of another
 * process.
 */
async function countSpaced(
  { counts, items, objects, ...others }: WorkloadDependencies,
  key: DueKey,
  count: (counted: WorkloadDependencies) => Promise<void>,
): Promise<void> {
  const name = textOf(key);
  const atMs = counts.pausedUntilMs(name);
  if (atMs !== undefined) return addDue(items, { atMs: atMs + CLOCK_SKEW_MS, key });
  await counts.run(name, objects, (counted) => count({ counts, items, ...others, objects: counted }));
}

async function syncAll(dependencies: WorkloadDependencies, refs: readonly ObjectRef[]): Promise<void> {
  // What keeps one from being synced keeps none of the others.
  const one = { concurrencyMax: 1, budget: UNBOUNDED };
  const { faults } = await workThrough(refs, one, (ref) => sync(dependencies, ref));
  if (faults.length > 0) throw new AggregateError(faults, `${faults.length} of ${refs.length} could not be synced`);
}

type Sync = (
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  orphans?: readonly KubeObject[],
  nodes?: readonly DaemonNode[],
) => Promise<SyncReport>;

type SyncedResource = WorkloadResource | 'namespaces' | 'pods' | 'resourcequotas' | 'customresourcedefinitions';

const SYNCS: Readonly<Record<SyncedResource, Sync>> = {
  deployments: (dependencies, ref, orphans) =>
    syncDeployment(dependencies, ref, orphans as readonly KubeReplicaSet[] | undefined),
  replicasets: syncReplicaSet,
  replicationcontrollers: syncReplicaSet,
  daemonsets: syncDaemonSet,
  jobs: syncJob,
  cronjobs: syncCronJob,
  namespaces: (dependencies, ref) => syncNamespace(dependencies, ref.name),
  resourcequotas: syncQuota,
  customresourcedefinitions: (dependencies, ref) => syncDefinition(dependencies, ref.name),
  statefulsets: syncStatefulSet,
  poddisruptionbudgets: syncBudget,
  services: syncEndpoints,
  persistentvolumeclaims: syncClaim,
  persistentvolumes: syncVolume,
  pods: syncEphemeralClaims,
};

interface KnownToSync {
  readonly orphans?: readonly KubeObject[];
  readonly nodes?: readonly DaemonNode[];
  readonly read?: ReadNamespace;
}

async function sync(dependencies: WorkloadDependencies, ref: ObjectRef, known: KnownToSync = {}): Promise<void> {
  if (isCount(ref)) return syncAll(dependencies, await unsettledIn(dependencies, ref));
  const { orphans, nodes, read } = known;
  const report = await syncOf(ref.resource)(dependencies, ref, orphans, nodes);
  if (report?.needsOrphans === true) {
    return sync(dependencies, ref, { ...known, orphans: await orphansFor(dependencies, ref, read) });
  }
  if (report?.lookAgainAtMs === undefined) return;
  await addDue(dependencies.items, { atMs: report.lookAgainAtMs, key: { kind: 'workload', ref } });
}

/** @throws TypeError for another resource: a work or a due row names none. */
function syncOf(resource: string): Sync {
  if (!Object.hasOwn(SYNCS, resource)) throw new TypeError(`no sync of ${resource}`);
  return SYNCS[resource as keyof typeof SYNCS];
}

/** What a count of the namespace must write. Its pods are read once for all budgets, and once for all Services. */
async function unsettledIn(
  dependencies: WorkloadDependencies,
  { resource, namespace }: ObjectRef,
): Promise<readonly ObjectRef[]> {
  const refs = (objects: Iterable<KubeObject>) => [...objects].map((each) => refOfObject(resource, each));
  switch (resource) {
    case 'resourcequotas':
      // That there are none is remembered for a moment.
      return refs(await dependencies.namespacePolicies.quotas(namespace));
    case 'poddisruptionbudgets':
      return refs(await unsettledBudgets(dependencies, namespace));
    default:
      return refs(await unfilledServices(dependencies, await listObjects(dependencies, 'services', namespace)));
  }
}

/** A ReplicaSet lost a pod: only with the strategy Recreate does its Deployment wait for that. */
async function syncIfRecreated(dependencies: WorkloadDependencies, ref: ObjectRef): Promise<void> {
  const replicaSet = await dependencies.objects.get(ref);
  const controller = replicaSet === undefined ? undefined : controllerOf(replicaSet);
  if (controller?.kind !== 'Deployment') return;
  const owner = { resource: 'deployments', namespace: ref.namespace, name: controller.name };
  const deployment = (await dependencies.objects.get(owner)) as KubeDeployment | undefined;
  if (deployment?.spec?.strategy?.type === 'Recreate') await sync(dependencies, owner);
}

/** Objects of its namespace that have no controller and that it selects. */
async function orphansFor(
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  read: ReadNamespace = readingNamespaces(dependencies),
): Promise<readonly KubeObject[]> {
  const owner = await dependencies.objects.get(ref);
  if (owner === undefined) return [];
  const found: KubeObject[] = [];
  const owned = isManual(owner) ? ['pods'] : ownedResources(ref.resource);
  for (const resource of owned) found.push(...(await read(resource, ref.namespace)));
  return found.filter((object) => controllerOf(object) === undefined && selects(ref.resource, owner, object));
}

/** A Job that selects by its own uid finds no pods from before its creation. */
const isManual = (owner: KubeJob): boolean => owner.spec?.manualSelector === true;

/** An owner without a selector adopts nothing. */
function selects(resource: string, { spec }: KubeObject, { metadata }: KubeObject): boolean {
  const given = spec?.['selector'] as LabelSelectorSpec | undefined;
  // That of a ReplicationController is a map of labels.
  const selector = resource === 'replicationcontrollers' ? ({ matchLabels: given } as LabelSelectorSpec) : given;
  const isEmpty = Object.keys(given ?? {}).length === 0;
  return !isEmpty && selectorFromSpec(selector).matches(metadata.labels ?? {});
}

async function adopt(
  dependencies: WorkloadDependencies,
  { orphan, ref }: Extract<Work, { kind: 'adopt' }>,
  read: ReadNamespace = readingNamespaces(dependencies),
): Promise<void> {
  const former = formerJob(orphan);
  const job = former === undefined ? undefined : { resource: 'jobs', namespace: ref.namespace, name: former };
  const found = job === undefined ? undefined : await dependencies.objects.get(job);
  if (job !== undefined && found !== undefined && selects('jobs', found, orphan)) {
    const current = await dependencies.objects.get(ref);
    return sync(dependencies, job, { orphans: current === undefined ? [] : [current] });
  }
  if (isTracked(orphan)) await stopTracking(dependencies, ref);
  for (const resource of adoptersOf(ref.resource)) {
    const owners = await read(resource, ref.namespace);
    const adopter = owners.find((owner) => selects(resource, owner, orphan));
    if (adopter === undefined) continue;
    // The adoption of another one may have adopted this one too.
    const current = await dependencies.objects.get(ref);
    if (current === undefined || controllerOf(current) !== undefined) return;
    // With all that it may adopt: one that counts a part of its pods would create the others anew.
    const adopterRef = refOfObject(resource, adopter);
    return sync(dependencies, adopterRef, { orphans: await orphansFor(dependencies, adopterRef, read) });
  }
}

/**
 * The DaemonSets that want, or keep, pods on other nodes after these changes. One read of the nodes for all of them.
 */
async function syncDaemonSets(
  dependencies: WorkloadDependencies,
  isConcerned: (set: KubeDaemonSet, placement: Placement) => boolean,
  read?: readonly DaemonNode[],
): Promise<void> {
  const sets = (await listObjects(dependencies, 'daemonsets', '')) as readonly KubeDaemonSet[];
  const concerned = sets.filter((set) => isConcerned(set, placementOf(set.spec?.template?.spec)));
  if (concerned.length === 0) return;
  const nodes = read ?? (await dependencies.daemonNodes.read());
  await workThrough(concerned, { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED }, async (set) => {
    const ref = refOfObject('daemonsets', set);
    try {
      await sync(dependencies, ref, { nodes });
    } catch (fault) {
      dependencies.log.warn('a DaemonSet is synced later', { name: ref.name, namespace: ref.namespace, error: fault });
      await repeatLater(dependencies, { kind: 'sync', ref });
    }
  });
}

function isConcernedBy(placement: Placement, changes: readonly NodeChange[]): boolean {
  const verdictOf = (node: KubeNode | undefined): Verdict =>
    node === undefined ? { runs: false, stays: false } : verdictFor(placement, daemonNodeOf(node));
  return changes.some(({ before, after }) => {
    const [was, is] = [verdictOf(before), verdictOf(after)];
    return was.runs !== is.runs || was.stays !== is.stays;
  });
}

export type WorkloadsReport =
  | SkippedTick
  | {
      readonly kind: 'ran';
      /** Workloads that were due. */
      readonly due: number;
      /** Workloads that only the sweep found. */
      readonly swept: number;
    };

/** @throws TickFault when something could not be done; the next tick does it */
export function runWorkloads(dependencies: WorkloadDependencies, tick: Tick): Promise<WorkloadsReport> {
  const { nodeMonitorPeriodSeconds: periodSeconds } = dependencies.policy;
  return runTick(dependencies, tick, {
    controller: WORKLOADS,
    periodSeconds,
    async read(nowMs) {
      const { items } = dependencies;
      const { rows, isCut } = await earliestRows(items);
      const due = rows.filter(({ atMs }) => atMs <= nowMs);
      // Behind other rows it may be late, by one interval at most.
      const hasSweep =
        rows.some(({ key }) => key.kind === 'sweep') || (isCut && (await nextSweep(items)).atMs > nowMs - SWEEP_MS);
      return due.length > 0 || !hasSweep
        ? { kind: 'work', world: { due, hasSweep } }
        : { kind: 'done', report: { kind: 'ran', due: 0, swept: 0 } };
    },
    claim: bareClaim(dependencies, WORKLOADS, { slot: tick.slot, periodSeconds }),
    work: (world: { readonly due: readonly DueRow[]; readonly hasSweep: boolean }, running) =>
      workThroughDue(dependencies, world, running),
  });
}

async function workThroughDue(
  dependencies: WorkloadDependencies,
  { due, hasSweep }: { readonly due: readonly DueRow[]; readonly hasSweep: boolean },
  { nowMs, budget, faults }: RunningTick,
): Promise<Extract<WorkloadsReport, { kind: 'ran' }>> {
  const { items } = dependencies;
  // One work may have several rows. At the same time they would only overtake each other.
  const works = groupedBy(
    due.filter(({ key }) => key.kind !== 'sweep'),
    ({ key }) => JSON.stringify(key),
  );
  const rowsOf = [...works.values()];
  const outcome = await workThrough(rowsOf, { concurrencyMax: CONCURRENCY_MAX, budget: budget() }, async (rows) => {
    const { key } = rows[0]!;
    try {
      await runDue(dependencies, key);
    } catch (fault) {
      // A work that fails at each tick would use the time of the others.
      await addDue(items, { atMs: nowMs + REPEAT_DUE_MS, key });
      for (const row of rows) await removeDue(items, row);
      throw fault;
    }
    for (const row of rows) await removeDue(items, row);
  });
  faults.push(...outcome.faults);
  const sweeps = due.filter(({ key }) => key.kind === 'sweep');
  let swept = 0;
  if (sweeps.length > 0 || !hasSweep) {
    const { from } = await nextSweep(items);
    // The next sweep is stored first: a sweep that is killed is repeated after its interval.
    await addSweep(items, { atMs: nowMs + SWEEP_MS, ...defined({ from }) });
    for (const row of sweeps) await removeDue(items, row);
    const outcome = await sweep(dependencies, {
      budget: budget(SWEEP_PERIODS),
      faults,
      ...defined({ from }),
      reached: (place) => addSweep(items, { atMs: nowMs + SWEEP_MS, from: place }),
    });
    swept = outcome.swept;
    await planSweep(items, nowMs, outcome);
  }
  return { kind: 'ran', due: works.size, swept };
}

async function runDue(dependencies: WorkloadDependencies, key: DueKey): Promise<void> {
  switch (key.kind) {
    case 'workload':
      return syncSpaced(dependencies, key.ref);
    case 'finish':
      return finishDeletion(dependencies, key.ref);
    case 'collect':
      // The kind of the owner is not stored.
      return collectDependents(dependencies, key.ownerUid, true);
    case 'dependents':
      return collectDependents(dependencies, key.ownerUid, false);
    case 'adopt': {
      const orphan = await dependencies.objects.get(key.ref);
      return orphan === undefined || controllerOf(orphan) !== undefined
        ? undefined
        : adopt(dependencies, { kind: 'adopt', orphan, ref: key.ref });
    }
    case 'podEnded':
      return syncIfRecreated(dependencies, key.ref);
    case 'announce':
      return announceNow(dependencies, [key.zone]);
    case 'daemonSets':
      return syncUnsettledDaemonSets(dependencies);
    case 'sweep':
      return undefined;
  }
}

/** A failed work on changed nodes, again. */
async function syncUnsettledDaemonSets(dependencies: WorkloadDependencies): Promise<void> {
  const nodes = await dependencies.daemonNodes.read();
  await syncDaemonSets(dependencies, (set, placement) => !isDaemonSetSettled(set, placement, nodes), nodes);
}

/** After a sweep. */
async function planSweep(
  items: WorkloadDependencies['items'],
  nowMs: number,
  { left, isStored }: SweepOutcome,
): Promise<void> {
  if (left === undefined && !isStored) return;
  if (left !== undefined) await removeDue(items, { atMs: nowMs + SWEEP_MS, key: { kind: 'sweep' } });
  await addSweep(items, { atMs: nowMs + (left === undefined ? SWEEP_MS : CUT_SWEEP_MS), ...defined({ from: left }) });
}

interface Sweep {
  readonly budget: WorkBudget;
  readonly faults: unknown[];
  /** Where it begins; absent: anywhere. */
  readonly from?: string;
  /** Stores where the next sweep continues if this one is killed. */
  reached(place: string): Promise<void>;
}

interface SweepOutcome {
  /** Workloads that did not look settled, and were synced. */
  readonly swept: number;
  /** The first object that was not reached; absent: all were. */
  readonly left?: string;
  /** A place is stored. */
  readonly isStored: boolean;
}

/** Syncs every workload that does not look settled, and all namespaces and quotas. */
async function sweep(
  dependencies: WorkloadDependencies,
  { budget, faults, from, reached }: Sweep,
): Promise<SweepOutcome> {
  const { meter } = dependencies;
  const all = await listAll(dependencies, workloadResources);
  const hasDaemonSets = all.some(({ resource }) => resource === 'daemonsets');
  const nodes = hasDaemonSets ? await dependencies.daemonNodes.list() : [];
  const unfilled = await unfilledServices(
    dependencies,
    all.flatMap(({ resource, object }) => (resource === 'services' ? [object] : [])),
  );
  const nowMs = dependencies.clock.nowMs();
  await measureShortages(dependencies, all, nowMs);
  const isSettledOf: Readonly<Record<WorkloadResource, (object: KubeObject) => boolean>> = {
    deployments: hasItsPods,
    replicasets: hasItsPods,
    replicationcontrollers: hasItsPods,
    cronjobs: (cronJob) => !isOverdue(cronJob, nowMs),
    daemonsets: (set) => isDaemonSetSettled(set, placementOf(templateSpecOf(set)), nodes),
    poddisruptionbudgets: ({ metadata, status }) => status?.['observedGeneration'] === metadata.generation,
    services: (service) => !unfilled.has(service),
    statefulsets: isStatefulSetSettled,
    persistentvolumeclaims: isFullyBound,
    persistentvolumes: ({ status }) => status?.['phase'] === 'Bound' || status?.['phase'] === 'Available',
    // The status of a Job does not show that a pod of it has ended.
    jobs: (job) => !mayChange(job),
  };
  const isDeleting = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;
  const unsettled = all.filter(({ resource, object }) => isDeleting(object) || !isSettledOf[resource](object));
  const contents = await listAll(dependencies, ['namespaces', 'resourcequotas']);
  const ordered = fromHere(inOrder([...unsettled, ...contents]), ({ text }) => text >= (from ?? ''));
  let done = 0;
  for (const part of inParts(ordered, SWEEP_PART)) {
    if (done > 0) await reached(part[0]!.text);
    const outcome = await workThrough(part, { concurrencyMax: CONCURRENCY_MAX, budget }, async ({ ref, object }) => {
      await sync(dependencies, ref);
      // It may wait for dependents that no longer exist.
      if (isDeleting(object)) await finishDeletion(dependencies, ref);
    });
    faults.push(...outcome.faults);
    done += part.length - outcome.left;
    if (outcome.left > 0) break;
  }
  const swept = ordered.slice(0, done).filter(({ ref }) => isWorkload(ref.resource)).length;
  if (swept > 0) meter.add(metric.SWEPT_WORKLOADS, swept, 'Count');
  return { swept, isStored: from !== undefined || done > SWEEP_PART, ...defined({ left: ordered[done]?.text }) };
}

interface Listed<Resource extends string = string> {
  readonly resource: Resource;
  readonly object: KubeObject;
}

async function listAll<Resource extends string>(
  dependencies: WorkloadDependencies,
  names: readonly Resource[],
): Promise<readonly Listed<Resource>[]> {
  const all: Listed<Resource>[] = [];
  for (const resource of names) {
    all.push(...(await listObjects(dependencies, resource, '')).map((object) => ({ resource, object })));
  }
  return all;
}

function inOrder(listed: readonly Listed[]) {
  const named = listed.map(({ resource, object }) => {
    const ref = refOfObject(resource, object);
    return { ref, object, text: textOf({ kind: 'workload', ref }) };
  });
  return named.toSorted((left, right) => (left.text < right.text ? -1 : 1));
}

/** The list from the first item that is at or behind the place, then those before it. */
function fromHere<T>(items: readonly T[], isBehind: (item: T) => boolean): readonly T[] {
  const first = items.findIndex(isBehind);
  return first <= 0 ? items : [...items.slice(first), ...items.slice(0, first)];
}

/** While the safety gate is closed, low availability may only mean that we see too little. */
async function measureShortages(
  { items, fleet, meter, policy }: WorkloadDependencies,
  workloads: readonly { readonly resource: string; readonly object: KubeObject }[],
  nowMs: number,
): Promise<void> {
  const { gate } = await fleet.readState();
  if (gateVerdictFor(gate, { nowMs, policy }).kind === 'holding') return;
  const before = await readShortages(items);
  const shortages = shortagesOf(before, workloads, nowMs);
  if (!jsonEqual(before, shortages)) await writeShortages(items, shortages);
  const seconds = longestSeconds(shortages, nowMs);
  if (seconds !== undefined) meter.add(metric.LONGEST_SHORTAGE, seconds, 'Seconds');
}

const templateSpecOf = ({ spec }: KubeDaemonSet): PodSpec | undefined => spec?.template?.spec;
/** It has not finished, or is deleted some time after its end. */
const mayChange = ({ spec, status }: KubeJob): boolean =>
  spec?.ttlSecondsAfterFinished !== undefined || finishedCondition(status?.conditions) === undefined;
/** It was observed in its present form, and has as many pods as it wants. */
function hasItsPods({ metadata, spec, status }: KubeObject): boolean {
  return (
    status?.['observedGeneration'] === metadata.generation && (status?.['replicas'] ?? 0) === (spec?.['replicas'] ?? 1)
  );
}
