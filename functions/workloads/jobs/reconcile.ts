/**
 * One sync of a Job: read, decide, apply.
 *
 * Each pod is counted once. A pod is created with a finalizer that only its Job removes. The commit that removes it
 * also adds the pod to the counts in the Job's status, and is refused if the pod or the Job has another resourceVersion
 * than the one that was read. So `status.uncountedTerminatedPods` is always empty.
 *
 * With backoffLimitPerIndex the last failed pod of an index keeps its finalizer until a sync reads its replacement. A
 * worker that read less has an older claim, so it commits nothing.
 *
 * Never more pods than wanted: creations raise the claim of the Job, and removals too, as for a ReplicaSet
 * (replicasets/reconcile.ts).
 */

import type { DecisionDraft } from '../../../shared/decisions/decision-record.ts';
import { type PendingEvent, recordEvents, subjectOf } from '../../../shared/events/record-event.ts';
import type { JobStatus, KubeJob, KubePod, ObjectRef } from '../../../shared/kinds/types.ts';
import { markDeleted } from '../../../shared/kubernetes/deletion.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import { controllerOf } from '../../../shared/kubernetes/normal-form.ts';
import { selectorFromSpec } from '../../../shared/kubernetes/selectors.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import type { Item } from '../../../shared/store/item-store.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import { claimWrite, ownedRefs, readClaim } from '../../../shared/store/owners.ts';
import { utf8Bytes } from '../../../shared/text.ts';
import { inPartsOfBytes } from '../../../shared/ticks/bounded-work.ts';
import { deletionWrite } from '../deletion-write.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { PODS_DELETED } from '../metrics.ts';
import { podMaker } from '../new-objects.ts';
import {
  candidatesOf,
  decideClaims,
  isActive,
  isReleased,
  isTracked,
  TRACKING,
  withoutTracking,
} from '../owned-pods.rule.ts';
import {
  controllerReference,
  isCommitted,
  refOfObject,
  type SyncReport,
  syncUnlessOvertaken,
  unchanged,
} from '../owner.ts';
import { type Applied, commitFirst, createPods, PODS_PER_COMMIT, type PodOwner } from '../pod-commits.ts';
import { type EventsAbout, recordPodEvents } from '../pod-events.ts';
import { jobExpiredDraft, jobFinishedDraft, jobPodsDraft } from './decisions.ts';
import { afterEnds, type FailureCount, NO_FAILURES } from './failures.rule.ts';
import { jobPodName, jobPodOf, podTemplateOf } from './job-pods.rule.ts';
import * as metric from './metrics.ts';
import { finishedCondition, storedOutcome } from './outcome.rule.ts';
import { decideJob, finalStatus, type JobDecision, type PodChange, partStatus } from './rule.ts';

/** The size of the pods of one transaction. Each is written twice, as object and log entry: below 4 MB with the Job. */
const PART_BYTES_MAX = 1_400_000;
const CONTROLLER = 'job-controller';
/** Value of spec.managedBy that names this controller. */
const OURSELVES = 'kubernetes.io/job-controller';
const FOREGROUND = 'foregroundDeletion';

/** @param orphans pods without a controller that may belong to it */
export const syncJob = (
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  orphans: readonly KubePod[] = [],
): Promise<SyncReport> => syncUnlessOvertaken('Job', () => attemptSync(dependencies, ref, orphans));

interface World {
  readonly ref: ObjectRef;
  /** Before this sync. */
  readonly failureCount: FailureCount;
  readonly pods: readonly KubePod[];
  readonly nowMs: number;
  /** The stored Job: a commit of this sync replaces it. */
  job: KubeJob;
  /** The stored fence. */
  fence: number;
}

async function readWorld(
  { objects, items, clock }: WorkloadDependencies,
  ref: ObjectRef,
  job: KubeJob,
): Promise<World> {
  const uid = job.metadata.uid ?? '';
  const { fence, row } = await readClaim(items, uid);
  const found = await objects.getMany(await ownedRefs(items, uid, 'pods'));
  const pods = found.flatMap((pod) => (pod !== undefined && controllerOf(pod)?.uid === uid ? [pod as KubePod] : []));
  return { ref, failureCount: failureCountOf(row), pods, nowMs: clock.nowMs(), job, fence };
}

/** Kept with the claim, because counted pods may be deleted. */
const failureCountOf = ({ n, t }: Item): FailureCount =>
  typeof n === 'number' && typeof t === 'number' ? { failures: n, lastEndedAtMs: t } : NO_FAILURES;

const storedCount = ({ failures, lastEndedAtMs }: FailureCount): Item => ({ n: failures, t: lastEndedAtMs });

async function attemptSync(
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  orphans: readonly KubePod[],
): Promise<SyncReport | 'overtaken'> {
  const job = (await dependencies.objects.get(ref)) as KubeJob | undefined;
  if (job === undefined || (job.spec?.managedBy ?? OURSELVES) !== OURSELVES) return {};
  if (finishedCondition(job.status?.conditions) !== undefined) return expire(dependencies, ref, job);
  const world = await readWorld(dependencies, ref, job);
  const claims = decideClaims(job, selectorFromSpec(job.spec?.selector), candidatesOf(world.pods, orphans));
  if (claims.adopt.length > 0 || claims.release.length > 0) {
    const outcome = await changeOwners(dependencies, world, claims);
    // Adopted pods count: decide on what is stored now.
    return outcome === 'committed' ? attemptSync(dependencies, ref, orphans) : outcome;
  }
  const pods = claims.owned.map(jobPodOf);
  const { nowMs } = world;
  const decision = decideJob({ job, pods, failureCount: world.failureCount, nowMs });
  const created = await createWanted(dependencies, world, decision, pods.filter(isActive).length);
  if (created === 'overtaken') return 'overtaken';
  world.fence = created.fence;
  const applied = await changePods(dependencies, world, {
    decision,
    pods: claims.owned,
    createdPods: created.count ?? 0,
  });
  if (applied === 'overtaken') return 'overtaken';
  await recordEvents(dependencies, eventsOf(world.job, decision), nowMs);
  if (decision.isFinal && decision.outcome !== undefined) {
    dependencies.meter.add(metric.JOBS_FINISHED, 1, 'Count', { reason: decision.outcome.reason });
  }
  const lookAgainAtMs = Math.min(
    decision.lookAgainAtMs ?? Number.POSITIVE_INFINITY,
    created.retryAtMs ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(lookAgainAtMs) ? { lookAgainAtMs } : {};
}

/** Deletes a finished Job when its time is over; its pods first. */
async function expire(
  { objects, clock, ledger }: WorkloadDependencies,
  ref: ObjectRef,
  job: KubeJob,
): Promise<SyncReport | 'overtaken'> {
  const { ttlSecondsAfterFinished: ttlSeconds } = job.spec ?? {};
  const finishedAtMs = parseTimeMs(finishedCondition(job.status?.conditions)?.lastTransitionTime);
  const { finalizers = [], deletionTimestamp } = job.metadata;
  if (ttlSeconds === undefined || finishedAtMs === undefined || deletionTimestamp !== undefined) return {};
  const nowMs = clock.nowMs();
  const endsAtMs = finishedAtMs + ttlSeconds * 1_000;
  if (nowMs < endsAtMs) return { lookAgainAtMs: endsAtMs };
  const waiting = { ...job, metadata: { ...job.metadata, finalizers: [...finalizers, FOREGROUND] } };
  const outcome = await objects.commit({
    writes: [{ kind: 'update', ref, object: markDeleted(waiting, 0, nowMs), previous: job }],
    extra: [ledger.write(jobExpiredDraft(job, { finishedAtMs, ttlSeconds }, nowMs))],
  });
  return isCommitted(outcome) ? {} : 'overtaken';
}

const eventsAbout = (job: KubeJob): EventsAbout => ({ about: subjectOf('Job', job), source: CONTROLLER });

/** An adopted pod is counted too; a released one no longer. */
async function changeOwners(
  dependencies: WorkloadDependencies,
  { ref, job, fence }: World,
  { adopt, release }: { readonly adopt: readonly KubePod[]; readonly release: readonly KubePod[] },
): Promise<'committed' | 'overtaken'> {
  const uid = job.metadata.uid ?? '';
  const adopted = (pod: KubePod): KubePod => {
    const { finalizers = [], ownerReferences = [], ...metadata } = withoutTracking(pod).metadata;
    const owners = [...ownerReferences, controllerReference('Job', job)];
    return { ...pod, metadata: { ...metadata, ownerReferences: owners, finalizers: [...finalizers, TRACKING] } };
  };
  const released = (pod: KubePod): KubePod => {
    const { ownerReferences = [], ...metadata } = withoutTracking(pod).metadata;
    const owners = ownerReferences.filter((owner) => owner.uid !== uid);
    return { ...pod, metadata: owners.length === 0 ? metadata : { ...metadata, ownerReferences: owners } };
  };
  const writes = [
    ...adopt.map((pod) => changeWrite(pod, adopted(pod))),
    ...release.map((pod) => changeWrite(pod, released(pod))),
  ];
  return commitFirst(dependencies, writes, [unchanged(ref, job), claimWrite(uid, fence)]);
}

/** A pod without a Job that would count it. A write that loses leaves a record, which leads here again. */
export async function stopTracking({ objects }: WorkloadDependencies, ref: ObjectRef): Promise<void> {
  const pod = (await objects.get(ref)) as KubePod | undefined;
  if (pod === undefined || !isTracked(pod) || controllerOf(pod) !== undefined) return;
  await objects.commit({ writes: [changeWrite(pod, withoutTracking(pod))] });
}

/** A pod that is being deleted may have waited for this change alone. */
function changeWrite(previous: KubePod, object: KubePod): ObjectWrite {
  const ref = refOfObject('pods', previous);
  return isReleased(object) ? { kind: 'delete', ref, previous } : { kind: 'update', ref, object, previous };
}

/** `refused`: the API would refuse the pods. */
async function createWanted(
  dependencies: WorkloadDependencies,
  world: World,
  { create, createIndexes, failuresOf, succeeded }: JobDecision,
  active: number,
): Promise<Applied | 'overtaken'> {
  if (create === 0) return { kind: 'applied', fence: world.fence };
  const { job, ref, nowMs } = world;
  const reference = controllerReference('Job', job);
  const owner = { namespace: ref.namespace, reference, template: podTemplateOf(job, undefined) };
  const make = await podMaker(dependencies, owner, nowMs);
  return createPods(dependencies, ownerOf(world), {
    count: create,
    nameOf: (place, seed) => jobPodName(job, createIndexes[place], seed),
    make(place, name) {
      const index = createIndexes[place];
      return make(name, dependencies.random.uuid(), podTemplateOf(job, index, failuresOf.get(index ?? -1)?.failures));
    },
    draft: (names, before) =>
      jobPodsDraft('PodsCreated', job, { numbers: { succeeded, active: active + before }, names }, nowMs),
  });
}

const ownerOf = ({ ref, job, fence, nowMs }: World): PodOwner => ({
  kind: 'Job',
  ref,
  object: job,
  fence,
  nowMs,
  component: CONTROLLER,
});

/**
 * Counts and removes pods, and writes the status: with the last of them, or alone. Why the Job ends is stored with the
 * first of them, because a later sync may no longer find the pod that it follows from.
 */
async function changePods(
  dependencies: WorkloadDependencies,
  world: World,
  of: { readonly decision: JobDecision; readonly pods: readonly KubePod[]; readonly createdPods: number },
): Promise<'applied' | 'overtaken'> {
  const { decision } = of;
  const { nowMs } = world;
  const stored = new Map(of.pods.map((pod) => [pod.metadata.name ?? '', pod]));
  const pods = of.pods.map(jobPodOf);
  // In the order of their ends, because the count of failures is carried from part to part.
  const parts = inPartsOfBytes(
    decision.changes.toSorted((left, right) => left.pod.endedAtMs - right.pod.endedAtMs),
    PODS_PER_COMMIT,
    PART_BYTES_MAX,
    ({ pod }) => utf8Bytes(JSON.stringify(stored.get(pod.name))),
  );
  let { failureCount } = world;
  let active = pods.filter(isActive).length;
  for (const [position, part] of (parts.length === 0 ? [[]] : parts).entries()) {
    const counted = { ...world.job, status: partStatus(world.job, part, decision, nowMs) };
    const isLast = position >= parts.length - 1;
    const status = isLast ? finalStatus({ job: counted, pods, nowMs }, decision, of.createdPods) : counted.status;
    failureCount = afterEnds(failureCount, endsOf(part));
    const drafts = draftsOf(world.job, { decision, part, active }, nowMs);
    const outcome = await commitPart(dependencies, world, {
      status,
      pods: part.map((change) => podWrite(change, stored.get(change.pod.name)!, nowMs)),
      failureCount,
      drafts,
    });
    if (outcome === 'overtaken') return outcome;
    const removed = part.filter(({ remove }) => remove).map(({ pod }) => pod.name);
    active -= removed.length;
    if (removed.length === 0) continue;
    dependencies.meter.add(PODS_DELETED, removed.length, 'Count', { kind: 'Job' });
    await recordPodEvents(dependencies, eventsAbout(world.job), { act: 'deleted', names: removed }, nowMs);
  }
  return 'applied';
}

async function commitPart(
  { objects, ledger }: WorkloadDependencies,
  world: World,
  of: {
    readonly status: JobStatus;
    readonly pods: readonly ObjectWrite[];
    readonly failureCount: FailureCount;
    readonly drafts: readonly DecisionDraft[];
  },
): Promise<'committed' | 'overtaken'> {
  const { ref, job } = world;
  const isChanged = !jsonEqual(of.status, job.status ?? {});
  if (of.pods.length === 0 && !isChanged) return 'committed';
  const own: ObjectWrite = { kind: 'update', ref, object: { ...job, status: of.status }, previous: job };
  const claim = claimWrite(job.metadata.uid ?? '', world.fence, storedCount(of.failureCount));
  const outcome = await objects.commit({
    writes: [...(isChanged ? [own] : []), ...of.pods],
    extra: [
      ...(isChanged ? [] : [unchanged(ref, job)]),
      ...(of.pods.length === 0 ? [] : [claim]),
      ...of.drafts.map((draft) => ledger.write(draft)),
    ],
  });
  if (!isCommitted(outcome)) return 'overtaken';
  if (isChanged) world.job = outcome.objects[0] as KubeJob;
  if (of.pods.length > 0) world.fence += 1;
  return 'committed';
}

function endsOf(part: readonly PodChange[]) {
  const ends = (wanted: PodChange['count']) =>
    part.filter(({ count }) => count === wanted).map(({ pod }) => pod.endedAtMs);
  return { succeededAtMs: ends('succeeded'), failedAtMs: ends('failed') };
}

function podWrite({ remove }: PodChange, pod: KubePod, nowMs: number): ObjectWrite {
  const object = withoutTracking(pod);
  return remove ? deletionWrite(refOfObject('pods', pod), object, nowMs, pod) : changeWrite(pod, object);
}

function draftsOf(
  job: KubeJob,
  of: {
    readonly decision: JobDecision;
    readonly part: readonly PodChange[];
    /** Before this part. */
    readonly active: number;
  },
  nowMs: number,
): readonly DecisionDraft[] {
  const { outcome } = of.decision;
  if (outcome !== undefined) {
    const isNew = storedOutcome(job.status?.conditions) === undefined;
    return isNew ? [jobFinishedDraft(job, { ...of.decision, outcome }, nowMs)] : [];
  }
  const names = of.part.filter(({ remove }) => remove).map(({ pod }) => pod.name);
  const numbers = { succeeded: of.decision.succeeded, active: of.active };
  return names.length === 0 ? [] : [jobPodsDraft('PodsDeleted', job, { numbers, names }, nowMs)];
}

function eventsOf(job: KubeJob, decision: JobDecision): readonly PendingEvent[] {
  const { outcome, isFinal, suspension, hasTooManySuccesses } = decision;
  const of = eventsAbout(job);
  const once = job.metadata.generation ?? 0;
  const event = (type: 'Normal' | 'Warning', reason: string, message: string): PendingEvent => ({
    type,
    reason,
    message,
    ...of,
    once,
  });
  return [
    ...(suspension === 'suspended' ? [event('Normal', 'Suspended', 'Job suspended')] : []),
    ...(suspension === 'resumed' ? [event('Normal', 'Resumed', 'Job resumed')] : []),
    ...(hasTooManySuccesses
      ? [event('Warning', 'TooManySucceededPods', 'Too many succeeded pods running after completion count reached')]
      : []),
    ...(isFinal && outcome?.kind === 'Complete' ? [event('Normal', 'Completed', 'Job completed')] : []),
    ...(isFinal && outcome?.kind === 'Failed' ? [event('Warning', outcome.reason, outcome.message)] : []),
  ];
}
