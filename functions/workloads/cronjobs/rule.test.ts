import { describe, expect, it } from 'vitest';
import type { KubeCronJob, KubeJob } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { decideCronJob, dueInputs, dueTimeMs, isOverdue, skippedTime } from './rule.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** The schedule is every full hour. */
const CREATED_MS = Date.UTC(2026, 0, 1, 9, 30);
const DUE_MS = Date.UTC(2026, 0, 1, 12);

const cronJob = (spec: object = {}, status: object = {}, metadata: object = {}): KubeCronJob =>
  ({
    metadata: { name: 'report', uid: 'u', creationTimestamp: formatTime(CREATED_MS), ...metadata },
    spec: { schedule: '0 * * * *', ...spec },
    status: { lastScheduleTime: formatTime(DUE_MS - HOUR_MS), ...status },
  }) as KubeCronJob;
const job = (
  name: string,
  { finished, ...status }: { finished?: 'Complete' | 'Failed'; startTime?: string; completionTime?: string } = {},
) =>
  ({
    metadata: { name, uid: `uid-${name}` },
    status: { ...status, ...(finished === undefined ? {} : { conditions: [{ type: finished, status: 'True' }] }) },
  }) as KubeJob;
const active = (...names: readonly string[]) => ({ active: names.map((name) => ({ name, uid: `uid-${name}` })) });

function decide(
  of: KubeCronJob,
  { jobs = [], nowMs = DUE_MS + 5_000 }: { jobs?: readonly KubeJob[]; nowMs?: number } = {},
) {
  const decision = decideCronJob({ cronJob: of, jobs, nowMs });
  const { start, remove, status, events, skip } = decision;
  return {
    ...decision,
    start: start?.name,
    startedAt: start?.scheduledAt,
    remove: remove.map(({ metadata }) => metadata.name),
    active: status?.active?.map(({ name }) => name),
    reasons: events.map(({ reason }) => reason),
    skip: skip === undefined ? undefined : [skip.dueMs, skip.cause],
  };
}

describe('a time of the schedule', () => {
  const NAME = `report-${DUE_MS / MINUTE_MS}`;

  it('starts one Job with its name, and knows the next time', () => {
    expect(decide(cronJob())).toMatchObject({
      start: NAME,
      startedAt: '2026-01-01T12:00:00Z',
      remove: [],
      reasons: [],
      lookAgainAtMs: DUE_MS + HOUR_MS,
    });
    expect(decide(cronJob(), { nowMs: DUE_MS })).toMatchObject({ start: NAME });
  });

  it('that has not come starts none', () => {
    expect(decide(cronJob(), { nowMs: DUE_MS - 1 })).toMatchObject({
      start: undefined,
      lookAgainAtMs: DUE_MS,
      skip: undefined,
    });
  });

  it('that was started is not started again', () => {
    expect(decide(cronJob({}, { lastScheduleTime: formatTime(DUE_MS) })).start).toBeUndefined();
    const started = { ...active(NAME) };
    expect(decide(cronJob({}, started), { jobs: [job(NAME)] })).toMatchObject({
      start: undefined,
      lookAgainAtMs: DUE_MS + HOUR_MS,
    });
  });

  it('counts from the creation before the first start', () => {
    const first = cronJob({}, { lastScheduleTime: undefined });
    expect(decide(first, { nowMs: CREATED_MS + 29 * MINUTE_MS }).start).toBeUndefined();
    expect(decide(first, { nowMs: CREATED_MS + 31 * MINUTE_MS }).startedAt).toBe('2026-01-01T10:00:00Z');
  });

  it('is the last one after several have passed', () => {
    const late = cronJob({}, { lastScheduleTime: formatTime(DUE_MS - 5 * HOUR_MS) });
    expect(decide(late)).toMatchObject({ start: NAME, reasons: [] });
  });

  it('is reported after more than a hundred have passed', () => {
    const missed = (hours: number, spec: object = {}) =>
      decide(cronJob(spec, { lastScheduleTime: formatTime(DUE_MS - hours * HOUR_MS) })).reasons;
    expect(missed(100)).toEqual([]);
    expect(missed(101)).toEqual(['TooManyMissedTimes']);
    expect(missed(101, { startingDeadlineSeconds: 100 * 3_600 })).toEqual([]);
    expect(missed(500, { startingDeadlineSeconds: 102 * 3_600 })).toEqual(['TooManyMissedTimes']);
  });

  it('has the offset of its zone', () => {
    const at = (timeZone: string) => decide(cronJob({ timeZone })).startedAt;
    expect(at('Europe/Berlin')).toBe('2026-01-01T13:00:00+01:00');
    expect(at('America/New_York')).toBe('2026-01-01T07:00:00-05:00');
    expect(decide(cronJob({ timeZone: 'Asia/Kolkata', schedule: '30 * * * *' })).startedAt).toBe(
      '2026-01-01T17:30:00+05:30',
    );
    expect(decide(cronJob({ schedule: 'TZ=Europe/Berlin 0 13 * * *' })).startedAt).toBe('2026-01-01T13:00:00+01:00');
  });

  it('starts none while the CronJob is suspended or deleted', () => {
    expect(decide(cronJob({ suspend: true }))).toMatchObject({ start: undefined, reasons: [] });
    expect(decide(cronJob({ suspend: true })).lookAgainAtMs).toBeUndefined();
    expect(decide(cronJob({}, {}, { deletionTimestamp: 't' })).start).toBeUndefined();
  });

  it.each([
    [{ schedule: 'never' }, 'UnparseableSchedule'],
    [{ schedule: '0 0 30 2 *' }, 'InvalidSchedule'],
    [{ timeZone: 'Nowhere/City' }, 'UnknownTimeZone'],
    [{ schedule: undefined }, 'UnparseableSchedule'],
  ])('of %j cannot be computed: %s', (spec, reason) => {
    const decision = decide(cronJob(spec));
    expect(decision).toMatchObject({ start: undefined, reasons: [reason], skip: undefined });
    expect(decision.events[0]?.type).toBe('Warning');
  });

  it('that is past its deadline is skipped', () => {
    const withDeadline = cronJob({ startingDeadlineSeconds: 60 });
    expect(decide(withDeadline, { nowMs: DUE_MS + 60_000 })).toMatchObject({ start: NAME, skip: undefined });
    expect(decide(withDeadline, { nowMs: DUE_MS + 60_001 })).toMatchObject({
      start: undefined,
      skip: [DUE_MS, 'startingDeadline'],
      lookAgainAtMs: DUE_MS + HOUR_MS,
    });
  });
});

describe('Jobs that still run', () => {
  const jobs = [job('old')];

  it('do not keep another one from its start', () => {
    expect(decide(cronJob({}, active('old')), { jobs })).toMatchObject({ remove: [], active: ['old'], reasons: [] });
    expect(decide(cronJob({ concurrencyPolicy: 'Allow' }, active('old')), { jobs }).start).toBeDefined();
  });

  it('do with the policy Forbid', () => {
    const forbidden = decide(cronJob({ concurrencyPolicy: 'Forbid' }, active('old')), { jobs });
    expect(forbidden).toMatchObject({
      start: undefined,
      active: ['old'],
      reasons: ['JobAlreadyActive'],
      skip: [DUE_MS, 'concurrencyPolicy'],
      lookAgainAtMs: DUE_MS + HOUR_MS,
    });
    expect(decide(cronJob({ concurrencyPolicy: 'Forbid' }))).toMatchObject({ skip: undefined, reasons: [] });
    expect(decide(cronJob({ concurrencyPolicy: 'Forbid' })).start).toBeDefined();
  });

  it('are deleted with the policy Replace', () => {
    const replaced = decide(cronJob({ concurrencyPolicy: 'Replace' }, active('old')), {
      jobs: [...jobs, job('other')],
    });
    expect(replaced).toMatchObject({
      remove: ['old'],
      active: undefined,
      reasons: ['UnexpectedJob', 'SuccessfulDelete'],
    });
    expect(replaced.start).toBeDefined();
    expect(decide(cronJob({ concurrencyPolicy: 'Replace' })).remove).toEqual([]);
  });

  it('are all deleted before the next one starts, twenty at once', () => {
    const names = Array.from({ length: 25 }, (_, index) => `old${index}`);
    const replaced = cronJob({ concurrencyPolicy: 'Replace' }, active(...names));
    const first = decide(replaced, { jobs: names.map((name) => job(name)) });
    expect([first.start, first.remove.length, first.active]).toEqual([undefined, 20, names.slice(20)]);
    const second = decide(cronJob({ concurrencyPolicy: 'Replace' }, active(...names.slice(20))), {
      jobs: names.slice(20).map((name) => job(name)),
    });
    expect([second.remove, second.active]).toEqual([names.slice(20), undefined]);
    expect(second.start).toBeDefined();
  });

  it('leave the status when they are finished or missing', () => {
    const listed = cronJob({ suspend: true }, active('runs', 'done', 'lost'));
    const decision = decide(listed, {
      jobs: [job('runs'), job('done', { finished: 'Failed' }), job('foreign'), job('ended', { finished: 'Complete' })],
    });
    expect(decision.active).toEqual(['runs']);
    expect(decision.events.map(({ type, reason, message }) => [type, reason, message])).toEqual([
      ['Warning', 'UnexpectedJob', 'Saw a job that the controller did not create or forgot: foreign'],
      ['Normal', 'SawCompletedJob', 'Saw completed job: done, condition: Failed'],
      ['Normal', 'MissingJob', 'Active job went missing: lost'],
    ]);
  });

  it('that are complete show when the last of them was', () => {
    const at = (hour: number) => formatTime(Date.UTC(2026, 0, 1, hour));
    const lastOf = (stored: string | undefined, ...times: readonly string[]) =>
      decide(cronJob({ suspend: true }, { lastSuccessfulTime: stored }), {
        jobs: times.map((completionTime, index) => job(`j${index}`, { finished: 'Complete', completionTime })),
      }).status?.lastSuccessfulTime;
    expect(lastOf(undefined, at(3), at(5), at(4))).toBe(at(5));
    expect(lastOf(at(9), at(5))).toBe(at(9));
    expect(lastOf(at(9))).toBe(at(9));
    expect(lastOf(undefined)).toBeUndefined();
  });
});

describe('the history', () => {
  const at = (hour: number) => formatTime(Date.UTC(2026, 0, 1, hour));
  const done = (name: string, hour: number | undefined, finished: 'Complete' | 'Failed' = 'Complete') =>
    job(name, { finished, ...(hour === undefined ? {} : { startTime: at(hour) }) });
  const removed = (spec: object, jobs: readonly KubeJob[]) => {
    const { remove, reasons } = decide(cronJob({ suspend: true, ...spec }), { jobs });
    expect(reasons).toEqual(remove.map(() => 'SuccessfulDelete'));
    return remove;
  };

  it('has so many Jobs of each result, the last ones', () => {
    const jobs = [done('c', 3), done('a', 1), done('b', 2), done('y', 5, 'Failed'), done('x', 4, 'Failed')];
    expect(removed({ successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 1 }, jobs)).toEqual(['a', 'b', 'x']);
    expect(removed({ successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 2 }, jobs)).toEqual([]);
    expect(removed({ successfulJobsHistoryLimit: 0 }, jobs)).toEqual(['a', 'b', 'c']);
    expect(removed({ failedJobsHistoryLimit: 0 }, jobs)).toEqual(['x', 'y']);
    expect(removed({}, jobs)).toEqual([]);
  });

  it('keeps what runs, and a Job that never started before older ones', () => {
    const limit = { successfulJobsHistoryLimit: 1 };
    expect(decide(cronJob({ suspend: true, ...limit }), { jobs: [job('runs'), done('a', 1)] }).remove).toEqual([]);
    expect(removed(limit, [done('late', undefined), done('a', 1)])).toEqual(['a']);
    expect(removed(limit, [done('b', 1), done('a', 1)])).toEqual(['a']);
  });

  it('loses at most twenty Jobs at once, after those that are replaced', () => {
    const jobs = Array.from({ length: 30 }, (_, index) => done(`j${String(index).padStart(2, '0')}`, 1));
    const limit = { successfulJobsHistoryLimit: 0 };
    expect(removed(limit, jobs)).toHaveLength(20);
    const replaced = decide(cronJob({ ...limit, concurrencyPolicy: 'Replace' }, active('old')), {
      jobs: [job('old'), ...jobs],
    });
    expect([replaced.remove.length, replaced.remove[0]]).toEqual([20, 'old']);
    expect(replaced.reasons).toEqual(replaced.remove.map(() => 'SuccessfulDelete'));
  });
});

describe('the inputs of a record', () => {
  it('have the schedule and the times that were compared', () => {
    expect(dueInputs(cronJob({ startingDeadlineSeconds: 9, timeZone: 'Europe/Berlin' }), DUE_MS)).toEqual({
      schedule: '0 * * * *',
      zone: 'Europe/Berlin',
      earliestMs: DUE_MS - HOUR_MS,
      startingDeadlineSeconds: 9,
      nowMs: DUE_MS,
    });
    expect(dueInputs(cronJob({}, { lastScheduleTime: undefined }), DUE_MS)).toMatchObject({
      zone: 'UTC',
      earliestMs: CREATED_MS,
    });
    expect(
      dueInputs(cronJob({}, { lastScheduleTime: undefined }, { creationTimestamp: undefined }), DUE_MS).earliestMs,
    ).toBe(DUE_MS);
  });

  it('are enough to find the time, or why it was skipped', () => {
    const inputs = { ...dueInputs(cronJob(), DUE_MS), active: 0 };
    expect(dueTimeMs(inputs)).toBe(DUE_MS);
    expect(skippedTime(inputs)).toBeUndefined();
    expect(skippedTime({ ...inputs, active: 1 })).toBeUndefined();
    expect(skippedTime({ ...inputs, concurrencyPolicy: 'Forbid' })).toBeUndefined();
    expect(skippedTime({ ...inputs, concurrencyPolicy: 'Forbid', active: 1 })).toEqual({
      dueMs: DUE_MS,
      cause: 'concurrencyPolicy',
    });
    expect(skippedTime({ ...inputs, nowMs: DUE_MS - 1 })).toBeUndefined();
  });
});

it('a CronJob is overdue a minute after its time', () => {
  expect(isOverdue(cronJob(), DUE_MS + 59_999)).toBe(false);
  expect(isOverdue(cronJob(), DUE_MS + 60_000)).toBe(true);
  expect(isOverdue(cronJob({}, { lastScheduleTime: formatTime(DUE_MS) }), DUE_MS + 60_000)).toBe(false);
  expect(isOverdue(cronJob({ suspend: true }), DUE_MS + 60_000)).toBe(false);
  expect(isOverdue(cronJob({ schedule: 'never' }), DUE_MS + 60_000)).toBe(false);
});
