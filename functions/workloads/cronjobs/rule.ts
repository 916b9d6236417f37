/**
 * One sync of a CronJob: which Job is started, which ones are deleted, and the status. Pure.
 * Source: pkg/controller/cronjob/{cronjob_controllerv2,utils}.go.
 *
 * The most recent time of the schedule is computed, where upstream estimates it from the distance of two times. Without
 * timeZone a schedule is in UTC.
 */
import { defined } from '../../../shared/defined.ts';
import {
  CronError,
  type CronSchedule,
  isTimeZone,
  latestTimeMs,
  nextTimeMs,
  parseCron,
  zoneOffsetMs,
} from '../../../shared/kinds/jobs/cron-schedule.ts';
import type { KubeCronJob, KubeJob, ObjectReference } from '../../../shared/kinds/types.ts';
import { formatTime, parseTimeMs } from '../../../shared/kubernetes/time.ts';
import { finishedCondition } from '../jobs/outcome.rule.ts';

const MINUTE_MS = 60_000;
/** More missed times than this are reported. */
const MISSED_MAX = 100;
/** Jobs that one sync deletes. */
const DELETIONS_MAX = 20;
const UTC = 'UTC';

export interface CronJobSync {
  readonly cronJob: KubeCronJob;
  /** Jobs that it controls. */
  readonly jobs: readonly KubeJob[];
  readonly nowMs: number;
}

export interface CronEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface JobStart {
  readonly name: string;
  readonly dueMs: number;
  /** The time with the offset of its zone, RFC 3339. */
  readonly scheduledAt: string;
}

export type SkipCause =
  /** startingDeadlineSeconds are over. */
  | 'startingDeadline'
  /** An earlier Job runs, and the policy is Forbid. */
  | 'concurrencyPolicy';

export interface JobSkip {
  readonly dueMs: number;
  readonly cause: SkipCause;
  /** The time with the offset of its zone, RFC 3339. */
  readonly scheduledAt: string;
  readonly inputs: SkipInputs;
}

export interface CronJobDecision {
  readonly start: JobStart | undefined;
  readonly remove: readonly KubeJob[];
  /** Without the started Job. */
  readonly status: KubeCronJob['status'];
  readonly events: readonly CronEvent[];
  /** The next time of the schedule. Epoch milliseconds. */
  readonly lookAgainAtMs?: number;
  /** A time of the schedule that has come, and for which no Job is started now. */
  readonly skip?: JobSkip;
}

type Active = readonly ObjectReference[];

export function decideCronJob({ cronJob, jobs, nowMs }: CronJobSync): CronJobDecision {
  const { spec = {}, status = {}, metadata } = cronJob;
  const observed = observeJobs(status.active ?? [], jobs);
  const expired = expiredJobs(spec, jobs);
  const lastSuccessfulTime = latestCompletion(status.lastSuccessfulTime, jobs);
  const { events: seen } = observed;
  const settle = (
    active: Active,
    { remove = expired, events = seen, ...more }: Partial<CronJobDecision> = {},
  ): CronJobDecision => ({
    start: undefined,
    remove,
    ...more,
    events: [...events, ...remove.map(deletionEvent)],
    status: withActive({ ...status, ...defined({ lastSuccessfulTime }) }, active),
  });
  if (metadata.deletionTimestamp !== undefined) return settle(observed.active);
  const timetable = timetableOf(cronJob);
  if (timetable.kind === 'unusable') return settle(observed.active, { events: [...seen, timetable.event] });
  if (spec.suspend === true) return settle(observed.active);
  const again = defined({ lookAgainAtMs: nextTimeMs(timetable.schedule, nowMs, timetable.zone) });
  const due = dueTime(cronJob, timetable, nowMs);
  const skipOf = (active: Active): Pick<CronJobDecision, 'skip'> => {
    const inputs = skipInputs(cronJob, active.length, nowMs);
    const skipped = skippedTime(inputs);
    return skipped === undefined
      ? {}
      : { skip: { ...skipped, inputs, scheduledAt: zonedTime(skipped.dueMs, timetable.zone) } };
  };
  if (due === undefined) return settle(observed.active, { ...again, ...skipOf([]) });
  const warned = due.isTooMany ? [...seen, TOO_MANY] : seen;
  const start = startOf(cronJob, due.atMs, timetable);
  const isStarted = observed.active.some(({ name }) => name === start.name);
  if (isStarted || parseTimeMs(status.lastScheduleTime) === due.atMs) return settle(observed.active, again);
  if (spec.concurrencyPolicy === 'Forbid' && observed.active.length > 0) {
    return settle(observed.active, { ...again, ...skipOf(observed.active), events: [...warned, ALREADY_ACTIVE] });
  }
  const replaced = spec.concurrencyPolicy === 'Replace' ? activeJobs(observed.active, jobs) : [];
  const remove = [...replaced, ...expired].slice(0, DELETIONS_MAX);
  const removed = new Set(remove.map(({ metadata }) => metadata.uid));
  const kept = observed.active.filter(({ uid }) => !removed.has(uid));
  // One that is neither deleted nor listed would run on, and never be replaced. Their deletions lead here again.
  const isReplaced = replaced.length <= DELETIONS_MAX;
  return settle(kept, { ...again, start: isReplaced ? start : undefined, remove, events: warned });
}

const TOO_MANY: CronEvent = {
  type: 'Warning',
  reason: 'TooManyMissedTimes',
  message: 'too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew',
};

const ALREADY_ACTIVE: CronEvent = {
  type: 'Normal',
  reason: 'JobAlreadyActive',
  message: 'Not starting job because prior execution is running and concurrency policy is Forbid',
};

const nameOf = ({ metadata }: KubeJob): string => metadata.name ?? '';

const deletionEvent = (job: KubeJob): CronEvent => ({
  type: 'Normal',
  reason: 'SuccessfulDelete',
  message: `Deleted job ${nameOf(job)}`,
});

const isFinished = ({ status }: KubeJob): boolean => finishedCondition(status?.conditions) !== undefined;

/** The Jobs that still run, of those in the status. */
function observeJobs(listed: Active, jobs: readonly KubeJob[]): { active: Active; events: readonly CronEvent[] } {
  const byUid = new Map(jobs.map((job) => [job.metadata.uid ?? '', job]));
  const isListed = (job: KubeJob): boolean => listed.some(({ uid }) => uid === job.metadata.uid);
  const events: CronEvent[] = jobs
    .filter((job) => !isFinished(job) && !isListed(job))
    .map((job) => ({
      type: 'Warning',
      reason: 'UnexpectedJob',
      message: `Saw a job that the controller did not create or forgot: ${nameOf(job)}`,
    }));
  const active = listed.filter(({ uid, name = '' }) => {
    const job = byUid.get(uid ?? '');
    const finished = finishedCondition(job?.status?.conditions);
    if (job !== undefined && finished === undefined) return true;
    events.push(
      finished === undefined
        ? { type: 'Normal', reason: 'MissingJob', message: `Active job went missing: ${name}` }
        : {
            type: 'Normal',
            reason: 'SawCompletedJob',
            message: `Saw completed job: ${name}, condition: ${finished.type}`,
          },
    );
    return false;
  });
  return { active, events };
}

const activeJobs = (active: Active, jobs: readonly KubeJob[]): readonly KubeJob[] =>
  jobs.filter(({ metadata }) => active.some(({ uid }) => uid === metadata.uid));

function latestCompletion(stored: string | undefined, jobs: readonly KubeJob[]): string | undefined {
  const times = [stored, ...jobs.map(({ status }) => status?.completionTime)].flatMap(
    (each) => parseTimeMs(each) ?? [],
  );
  return times.length === 0 ? undefined : formatTime(Math.max(...times));
}

function withActive(status: NonNullable<KubeCronJob['status']>, active: Active): KubeCronJob['status'] {
  const { active: _active, ...others } = status;
  return active.length === 0 ? others : { ...others, active: [...active] };
}

/** Finished Jobs beyond the limits of the history: the oldest ones. */
function expiredJobs(spec: NonNullable<KubeCronJob['spec']>, jobs: readonly KubeJob[]): readonly KubeJob[] {
  const beyond = (type: string, limit: number | undefined): readonly KubeJob[] => {
    const finished = jobs.filter(({ status }) => finishedCondition(status?.conditions)?.type === type);
    return limit === undefined ? [] : finished.toSorted(byStart).slice(0, Math.max(0, finished.length - limit));
  };
  return [
    ...beyond('Complete', spec.successfulJobsHistoryLimit),
    ...beyond('Failed', spec.failedJobsHistoryLimit),
  ].slice(0, DELETIONS_MAX);
}

/** A Job that never started is the latest. */
function byStart(left: KubeJob, right: KubeJob): number {
  const startMs = ({ status }: KubeJob): number => parseTimeMs(status?.startTime) ?? Number.MAX_SAFE_INTEGER;
  return startMs(left) - startMs(right) || (nameOf(left) < nameOf(right) ? -1 : 1);
}

type Timetable =
  | { readonly kind: 'usable'; readonly schedule: CronSchedule; readonly zone: string }
  | { readonly kind: 'unusable'; readonly event: CronEvent };

function timetableOf({ spec = {}, metadata }: KubeCronJob): Timetable {
  const { schedule: text = '', timeZone } = spec;
  const unusable = (reason: string, message: string): Timetable => ({
    kind: 'unusable',
    event: { type: 'Warning', reason, message },
  });
  if (timeZone !== undefined && !isTimeZone(timeZone)) {
    return unusable('UnknownTimeZone', `invalid timeZone: "${timeZone}": unknown time zone ${timeZone}`);
  }
  try {
    const schedule = parseCron(text);
    const zone = timeZone ?? schedule.zone ?? UTC;
    const createdMs = parseTimeMs(metadata.creationTimestamp) ?? 0;
    return nextTimeMs(schedule, createdMs, zone) === undefined
      ? unusable('InvalidSchedule', `invalid schedule: ${text} : no time within five years`)
      : { kind: 'usable', schedule, zone };
  } catch (fault) {
    if (!(fault instanceof CronError)) throw fault;
    return unusable('UnparseableSchedule', `unparseable schedule: "${text}" : ${fault.message}`);
  }
}

/** The inputs of a start, as a decision record has them. */
export interface DueInputs {
  readonly schedule: string;
  readonly zone: string;
  /** The last start, or the creation. Epoch milliseconds. */
  readonly earliestMs: number;
  readonly startingDeadlineSeconds?: number;
  readonly nowMs: number;
}

export const dueInputs = ({ spec = {}, status = {}, metadata }: KubeCronJob, nowMs: number): DueInputs => ({
  schedule: spec.schedule ?? '',
  zone: spec.timeZone ?? UTC,
  earliestMs: parseTimeMs(status.lastScheduleTime) ?? parseTimeMs(metadata.creationTimestamp) ?? nowMs,
  nowMs,
  ...defined({ startingDeadlineSeconds: spec.startingDeadlineSeconds }),
});

/** The most recent time of the schedule, if the deadline of its start is not over. */
export function dueTimeMs({ schedule, zone, earliestMs, startingDeadlineSeconds, nowMs }: DueInputs) {
  const parsed = parseCron(schedule);
  const dueMs = latestTimeMs(parsed, { afterMs: earliestMs, untilMs: nowMs }, parsed.zone ?? zone);
  if (dueMs === undefined || startingDeadlineSeconds === undefined) return dueMs;
  return dueMs + startingDeadlineSeconds * 1_000 < nowMs ? undefined : dueMs;
}

/** The inputs of a skipped time, as a decision record has them. */
export interface SkipInputs extends DueInputs {
  readonly concurrencyPolicy?: string;
  /** Jobs that run. */
  readonly active: number;
}

const skipInputs = (cronJob: KubeCronJob, active: number, nowMs: number): SkipInputs => ({
  ...dueInputs(cronJob, nowMs),
  active,
  ...defined({ concurrencyPolicy: cronJob.spec?.concurrencyPolicy }),
});

/** The most recent time of the schedule, if no Job may be started for it; undefined: there is none, or one may. */
export function skippedTime(inputs: SkipInputs): Pick<JobSkip, 'dueMs' | 'cause'> | undefined {
  const { startingDeadlineSeconds: _deadline, ...unlimited } = inputs;
  const dueMs = dueTimeMs(unlimited);
  if (dueMs === undefined) return undefined;
  if (dueTimeMs(inputs) === undefined) return { dueMs, cause: 'startingDeadline' };
  const isForbidden = inputs.concurrencyPolicy === 'Forbid' && inputs.active > 0;
  return isForbidden ? { dueMs, cause: 'concurrencyPolicy' } : undefined;
}

function dueTime(
  cronJob: KubeCronJob,
  { schedule, zone }: Extract<Timetable, { kind: 'usable' }>,
  nowMs: number,
): { readonly atMs: number; readonly isTooMany: boolean } | undefined {
  const inputs = dueInputs(cronJob, nowMs);
  const atMs = dueTimeMs(inputs);
  if (atMs === undefined) return undefined;
  const { earliestMs, startingDeadlineSeconds } = inputs;
  const fromMs =
    startingDeadlineSeconds === undefined ? earliestMs : Math.max(earliestMs, nowMs - startingDeadlineSeconds * 1_000);
  const firstMs = nextTimeMs(schedule, fromMs, zone) ?? nowMs;
  const secondMs = nextTimeMs(schedule, firstMs, zone) ?? Number.POSITIVE_INFINITY;
  const missed = Math.floor((nowMs - firstMs) / (secondMs - firstMs)) + 1;
  return { atMs, isTooMany: missed > MISSED_MAX };
}

/** Two times in one minute make one Job. */
function startOf({ metadata }: KubeCronJob, dueMs: number, { zone }: Extract<Timetable, { kind: 'usable' }>): JobStart {
  const name = `${metadata.name ?? ''}-${Math.floor(dueMs / MINUTE_MS)}`;
  return { name, dueMs, scheduledAt: zonedTime(dueMs, zone) };
}

function zonedTime(atMs: number, zone: string): string {
  const offsetMinutes = Math.round(zoneOffsetMs(atMs, zone) / MINUTE_MS);
  if (offsetMinutes === 0) return formatTime(atMs);
  const two = (value: number): string => String(value).padStart(2, '0');
  const size = Math.abs(offsetMinutes);
  const offset = `${offsetMinutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
  return formatTime(atMs + offsetMinutes * MINUTE_MS).replace('Z', offset);
}

/** A time passed longer ago than a tick needs, and no Job was started for it. */
export function isOverdue(cronJob: KubeCronJob, nowMs: number): boolean {
  if (cronJob.spec?.suspend === true || timetableOf(cronJob).kind === 'unusable') return false;
  return dueTimeMs(dueInputs(cronJob, nowMs - MINUTE_MS)) !== undefined;
}
