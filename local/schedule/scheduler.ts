import type { SchedulePlan } from '../assembly/plan.ts';
import { isObject } from '../assembly/template.ts';
import { StartError } from '../start-error.ts';
import { MINUTE_MS, parseSchedule, type Schedule } from './schedule-expression.ts';

export interface SchedulerTargets {
  sendToUrl(queueUrl: string, body: string, delaySeconds: number): void;
  sendToQueue(queueId: string, body: string): void;
  invoke(functionId: string, event: unknown): void;
}

export interface SchedulerOptions {
  readonly schedules: readonly SchedulePlan[];
  readonly targets: SchedulerTargets;
  nowMs(): number;
}

export interface LocalScheduler {
  readonly counters: { fired: number };
  stop(): void;
}

/** Late by more than this, a minute is left out: the machine slept. */
const LATE_MAX_MS = MINUTE_MS;
/** Timers may fire a little early. */
const EARLY_MS = 5;

interface Compiled {
  readonly plan: SchedulePlan;
  readonly schedule: Schedule;
}

/**
 * EventBridge Scheduler: fires at the beginning of each minute a schedule names. The minute that runs when it starts is
 * made up for, less the delayed messages whose time has passed, so that ticks begin at once.
 */
export function startScheduler(options: SchedulerOptions): LocalScheduler {
  const counters = { fired: 0 };
  const compiled = options.schedules.map(
    (plan): Compiled => ({ plan, schedule: parseSchedule(plan.expression, plan.logicalId) }),
  );
  let timer: NodeJS.Timeout | undefined;
  let nextMinuteMs = startOfMinute(options.nowMs());

  function beat(): void {
    const nowMs = options.nowMs();
    const current = startOfMinute(nowMs + EARLY_MS);
    if (current >= nextMinuteMs) {
      if (current - nextMinuteMs > LATE_MAX_MS) nextMinuteMs = current;
      for (const { plan, schedule } of compiled) {
        if (schedule.firesAt(current)) {
          counters.fired += 1;
          fireSchedule(plan, current, nowMs, options.targets);
        }
      }
      nextMinuteMs = current + MINUTE_MS;
    }
    timer = setTimeout(beat, Math.max(EARLY_MS, nextMinuteMs - options.nowMs()));
  }

  if (compiled.length > 0) beat();
  return { counters, stop: () => clearTimeout(timer) };
}

const startOfMinute = (ms: number) => Math.floor(ms / MINUTE_MS) * MINUTE_MS;

/** Delayed messages are due at `scheduledAtMs` plus their delay; those of the past are left out. */
export function fireSchedule(
  plan: SchedulePlan,
  scheduledAtMs: number,
  nowMs: number,
  targets: SchedulerTargets,
): void {
  const scheduledTime = new Date(scheduledAtMs).toISOString().replace('.000Z', 'Z');
  const input = plan.input.replaceAll('<aws.scheduler.scheduled-time>', scheduledTime);
  switch (plan.target.kind) {
    case 'queue':
      targets.sendToQueue(plan.target.queueId, input);
      return;
    case 'function':
      targets.invoke(plan.target.functionId, JSON.parse(input));
      return;
    case 'sendMessageBatch': {
      const batch: unknown = JSON.parse(input);
      const entries = isObject(batch) ? batch['Entries'] : undefined;
      if (!isObject(batch) || !Array.isArray(entries))
        throw new StartError(`${plan.logicalId}: its input is no SendMessageBatch`);
      for (const entry of entries.filter(isObject)) {
        const dueMs = scheduledAtMs + Number(entry['DelaySeconds'] ?? 0) * 1_000;
        const delaySeconds = (dueMs - nowMs) / 1_000;
        if (delaySeconds > -1)
          targets.sendToUrl(String(batch['QueueUrl']), String(entry['MessageBody']), Math.max(0, delaySeconds));
      }
    }
  }
}
