/**
 * One sync of a CronJob: read, decide, apply in one transaction.
 *
 * The transaction holds the new Job, the deletions and the status with the time of the start. It is refused if the CronJob
 * has another resourceVersion than the one that was read. The name of a Job follows from its time. So there is one Job
 * for each due time, however many workers run.
 */
import { jobs as jobsResource } from '../../api/kinds/jobs.ts';
import type { KubeCronJob, KubeJob } from '../../kube/application-types.ts';
import { formatTime } from '../../kube/time.ts';
import type { ObjectRef, ObjectReference } from '../../kube/types.ts';
import { jsonEqual } from '../../kube/wire/json-value.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { ownedRefs } from '../../store/owner-index.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { type PendingEvent, recordEvents, subjectOf } from '../framework/record-event.ts';
import { deletionWrite } from '../workload-rules/deletion-write.ts';
import { controllerOf } from '../workload-rules/owned-pod.rule.ts';
import { controllerReference, refOfObject, type SyncReport, syncUnlessOvertaken } from '../workload-rules/owner.ts';
import { cronJobStartedDraft } from './decisions.ts';
import * as metric from './metrics.ts';
import { type CronJobDecision, decideCronJob, dueInputs, type JobStart } from './rule.ts';

const CONTROLLER = 'cronjob-controller';
const SCHEDULED_AT = 'batch.kubernetes.io/cronjob-scheduled-timestamp';

export const syncCronJob = (dependencies: ControllerDependencies, ref: ObjectRef): Promise<SyncReport> =>
  syncUnlessOvertaken('CronJob', () => attemptSync(dependencies, ref));

async function attemptSync(dependencies: ControllerDependencies, ref: ObjectRef): Promise<SyncReport | 'overtaken'> {
  const { objects, items, clock } = dependencies;
  const cronJob = (await objects.get(ref)) as KubeCronJob | undefined;
  if (cronJob === undefined) return {};
  const uid = cronJob.metadata.uid ?? '';
  const found = await objects.getMany(await ownedRefs(items, uid, 'jobs'));
  const jobs = found.flatMap((job) => (job !== undefined && controllerOf(job)?.uid === uid ? [job as KubeJob] : []));
  const nowMs = clock.nowMs();
  const decided = decideCronJob({ cronJob, jobs, nowMs });
  const decision = (await canStart(dependencies, ref.namespace, decided)) ? decided : { ...decided, start: undefined };
  const started = await apply(dependencies, { ref, cronJob, nowMs }, decision);
  if (started === 'overtaken') return 'overtaken';
  await recordEvents(dependencies, eventsOf(cronJob, decision), nowMs);
  const { lookAgainAtMs } = decision;
  return lookAgainAtMs === undefined ? {} : { lookAgainAtMs };
}

async function canStart(
  { objects }: ControllerDependencies,
  name: string,
  { start }: CronJobDecision,
): Promise<boolean> {
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
  dependencies: ControllerDependencies,
  { ref, cronJob, nowMs }: Target,
  { start, remove, status }: CronJobDecision,
): Promise<'applied' | 'overtaken'> {
  const { objects, ledger, meter, random } = dependencies;
  const job = start === undefined ? undefined : jobOf(cronJob, start, { nowMs, uid: random.uuid() });
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
    ],
    extra: start === undefined ? [] : [ledger.write(cronJobStartedDraft(cronJob, start, dueInputs(cronJob, nowMs)))],
  });
  if (outcome.kind === 'conflict' && job !== undefined && outcome.index === 1) {
    return resolveCollision(dependencies, { ref, cronJob, nowMs }, start!, outcome.current);
  }
  if (outcome.kind !== 'committed') return 'overtaken';
  if (start !== undefined) {
    meter.add(metric.START_DELAY, nowMs - start.dueMs, 'Milliseconds');
  }
  return 'applied';
}

/** A Job with this name exists, of a CronJob that was deleted or of a person. The time counts as used, as upstream. */
async function resolveCollision(
  { objects }: ControllerDependencies,
  { ref, cronJob }: Target,
  { dueMs }: JobStart,
  existing: KubeJob | undefined,
): Promise<'applied' | 'overtaken'> {
  if (existing === undefined) return 'overtaken';
  const status = { ...cronJob.status, lastScheduleTime: formatTime(dueMs) };
  const { kind } = await objects.commit({
    writes: [{ kind: 'update', ref, object: { ...cronJob, status }, previous: cronJob }],
  });
  return kind === 'committed' ? 'applied' : 'overtaken';
}

/** As a POST stores it. */
function jobOf(
  cronJob: KubeCronJob,
  { name, scheduledAt }: JobStart,
  { nowMs, uid }: { readonly nowMs: number; readonly uid: string },
): KubeJob {
  const { metadata = {}, spec = {} } = cronJob.spec?.jobTemplate ?? {};
  const given: KubeJob = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name,
      namespace: cronJob.metadata.namespace ?? '',
      uid,
      creationTimestamp: formatTime(nowMs),
      annotations: { ...metadata.annotations, [SCHEDULED_AT]: scheduledAt },
      ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
      ownerReferences: [controllerReference('CronJob', cronJob)],
    },
    spec,
  };
  return jobsResource.prepareForCreate(given, { nowMs });
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

function eventsOf(cronJob: KubeCronJob, { start, events }: CronJobDecision): readonly PendingEvent[] {
  const about = subjectOf('CronJob', cronJob);
  const created =
    start === undefined
      ? []
      : [{ type: 'Normal' as const, reason: 'SuccessfulCreate', message: `Created job ${start.name}` }];
  return [...events, ...created].map((event) => ({ ...event, source: CONTROLLER, about, once: event.message }));
}
