/**
 * One sync of a CronJob: read, decide, apply in one transaction.
 *
 * The transaction holds the new Job, the deletions and the status with the time of the start. It is refused if the
 * CronJob has another resourceVersion than the one that was read. The name of a Job follows from its time. So there is
 * one Job for each due time, however many workers run.
 */

import { type PendingEvent, recordEvents, subjectOf } from '../../../shared/events/record-event.ts';
import { prepareJob } from '../../../shared/kinds/jobs/defaults.ts';
import type { KubeCronJob, KubeJob, KubeObject, ObjectRef, ObjectReference } from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import { controllerOf } from '../../../shared/kubernetes/normal-form.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import { ownedRefs } from '../../../shared/store/owners.ts';
import { deletionWrite } from '../deletion-write.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { type Permission, permitted } from '../new-objects.ts';
import { controllerReference, isCommitted, refOfObject, type SyncReport, syncUnlessOvertaken } from '../owner.ts';
import { cronJobSkippedDraft, cronJobStartedDraft } from './decisions.ts';
import * as metric from './metrics.ts';
import { type CronJobDecision, decideCronJob, dueInputs, type JobStart } from './rule.ts';

const CONTROLLER = 'cronjob-controller';
const SCHEDULED_AT = 'batch.kubernetes.io/cronjob-scheduled-timestamp';

export const syncCronJob = (dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport> =>
  syncUnlessOvertaken('CronJob', () => attemptSync(dependencies, ref));

async function attemptSync(dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport | 'overtaken'> {
  const { objects, items, clock } = dependencies;
  const cronJob = (await objects.get(ref)) as KubeCronJob | undefined;
  if (cronJob === undefined) return {};
  const uid = cronJob.metadata.uid ?? '';
  const found = await objects.getMany(await ownedRefs(items, uid, 'jobs'));
  const jobs = found.flatMap((job) => (job !== undefined && controllerOf(job)?.uid === uid ? [job as KubeJob] : []));
  const nowMs = clock.nowMs();
  const decided = decideCronJob({ cronJob, jobs, nowMs });
  const decision = (await canStart(dependencies, ref.namespace, decided)) ? decided : { ...decided, start: undefined };
  const applied = await apply(dependencies, { ref, cronJob, nowMs }, decision);
  if (applied === 'overtaken') return 'overtaken';
  const { skip } = decision;
  if (skip !== undefined) {
    await dependencies.ledger.recordOnce(cronJobSkippedDraft(cronJob, skip), { atMs: skip.dueMs, key: skip.cause });
  }
  const postponed = applied === 'applied' ? undefined : applied;
  const done = postponed === undefined ? decision : { ...decision, start: undefined };
  const refusal = postponed?.kind === 'refused' ? postponed.message : undefined;
  await recordEvents(dependencies, eventsOf(cronJob, done, refusal), nowMs);
  const retryAtMs = postponed === undefined ? undefined : nowMs + postponed.retryMs;
  const times = [decision.lookAgainAtMs, retryAtMs].flatMap((atMs) => atMs ?? []);
  return times.length === 0 ? {} : { lookAgainAtMs: Math.min(...times) };
}

async function canStart({ objects }: WorkloadDependencies, name: string, { start }: CronJobDecision): Promise<boolean> {
  if (start === undefined) return false;
  const namespace = await objects.get({ resource: 'namespaces', namespace: '', name });
  return namespace?.metadata.deletionTimestamp === undefined;
}

interface Target {
  readonly ref: ObjectRef;
  readonly cronJob: KubeCronJob;
  readonly nowMs: number;
}

async function apply(
  dependencies: WorkloadDependencies,
  { ref, cronJob, nowMs }: Target,
  decision: CronJobDecision,
): Promise<'applied' | 'overtaken' | Postponed> {
  const { objects, ledger, meter } = dependencies;
  const { start, remove, status } = decision;
  const permission = start === undefined ? undefined : await permissionOf(dependencies, { cronJob, nowMs }, start);
  if (permission !== undefined && permission.kind !== 'permitted') {
    // The rest of the decision does not wait for it.
    const rest = await apply(dependencies, { ref, cronJob, nowMs }, { ...decision, start: undefined });
    return rest === 'overtaken' ? rest : permission;
  }
  const { object: job, quotas = [] } = permission ?? {};
  const next = job === undefined ? status : startedStatus(status, start!, job);
  const removals = remove.map((each) => deletionWrite(refOfObject('jobs', each), each, nowMs));
  const isChanged = !jsonEqual(next ?? {}, cronJob.status ?? {});
  if (!isChanged && removals.length === 0) return 'applied';
  const own: ObjectWrite = { kind: 'update', ref, object: { ...cronJob, status: next ?? {} }, previous: cronJob };
  const outcome = await objects.commit({
    writes: [
      ...(isChanged ? [own] : []),
      ...(job === undefined ? [] : [{ kind: 'create' as const, ref: refOfObject('jobs', job), object: job }]),
      ...removals,
      ...quotas,
    ],
    extra: start === undefined ? [] : [ledger.write(cronJobStartedDraft(cronJob, start, dueInputs(cronJob, nowMs)))],
  });
  if (outcome.kind === 'conflict' && job !== undefined && outcome.index === 1) {
    return resolveCollision(dependencies, { ref, cronJob, nowMs }, start!, outcome.current);
  }
  if (!isCommitted(outcome)) return 'overtaken';
  if (start !== undefined) {
    meter.add(metric.START_DELAY, nowMs - start.dueMs, 'Milliseconds');
  }
  return 'applied';
}

type Postponed = Exclude<Permission, { readonly kind: 'permitted' }>;

/** A Job with this name exists, of a CronJob that was deleted or of a person. The time counts as used, as upstream. */
async function resolveCollision(
  { objects }: WorkloadDependencies,
  { ref, cronJob }: Target,
  { dueMs }: JobStart,
  existing: KubeJob | undefined,
): Promise<'applied' | 'overtaken'> {
  if (existing === undefined) return 'overtaken';
  const status = { ...cronJob.status, lastScheduleTime: formatTime(dueMs) };
  const outcome = await objects.commit({
    writes: [{ kind: 'update', ref, object: { ...cronJob, status }, previous: cronJob }],
  });
  return isCommitted(outcome) ? 'applied' : 'overtaken';
}

/** Whether the new Job may be created. */
function permissionOf(
  dependencies: WorkloadDependencies,
  { cronJob, nowMs }: Pick<Target, 'cronJob' | 'nowMs'>,
  { name, scheduledAt }: JobStart,
): Promise<Permission> {
  const { metadata = {}, spec = {} } = cronJob.spec?.jobTemplate ?? {};
  const given: KubeJob = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name,
      namespace: cronJob.metadata.namespace ?? '',
      uid: dependencies.random.uuid(),
      creationTimestamp: formatTime(nowMs),
      annotations: { ...metadata.annotations, [SCHEDULED_AT]: scheduledAt },
      ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
      ownerReferences: [controllerReference('CronJob', cronJob)],
    },
    spec,
  };
  const prepare = (job: KubeObject) => prepareJob.prepareForCreate(job, { nowMs });
  const creator = { kind: 'CronJob', object: cronJob } as const;
  return permitted(dependencies, { creator, group: 'batch', resource: 'jobs', given, prepare });
}

function startedStatus(status: KubeCronJob['status'], { dueMs }: JobStart, { metadata }: KubeJob) {
  const reference: ObjectReference = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? '',
    uid: metadata.uid ?? '',
  };
  return { ...status, active: [...(status?.active ?? []), reference], lastScheduleTime: formatTime(dueMs) };
}

function eventsOf(
  cronJob: KubeCronJob,
  { start, events }: CronJobDecision,
  refusal: string | undefined,
): readonly PendingEvent[] {
  const about = subjectOf('CronJob', cronJob);
  const created =
    start === undefined
      ? []
      : [{ type: 'Normal' as const, reason: 'SuccessfulCreate', message: `Created job ${start.name}` }];
  const failed =
    refusal === undefined
      ? []
      : [{ type: 'Warning' as const, reason: 'FailedCreate', message: `Error creating job: ${refusal}` }];
  return [...events, ...created, ...failed].map((event) => ({
    ...event,
    source: CONTROLLER,
    about,
    once: event.message,
  }));
}
