import { createHash } from 'node:crypto';
import type { SchedulePlan } from '../assembly/plan.ts';
import { MINUTE_MS, parseSchedule, type Schedule } from './schedule-expression.ts';

export interface SchedulerTargets {
  sendToQueue(queueId: string, body: string): void;
  invoke(functionId: string, event: unknown): void;
}

/**
 * aws: a schedule fires at any second of its minute ("60-second precision", EventBridge Scheduler User Guide, "Schedule
 * types"): each has an offset of its own, with jitter, both from the seed. `missing` and `doubled` are the shares of
 * minutes that do not fire, and that fire twice. Deliveries are at least once; a missing minute is a fault of the
 * service. exact: at the beginning of the minute.
 */
export type ScheduleTiming =
  | { readonly kind: 'aws'; readonly seed: number; readonly missing?: number; readonly doubled?: number }
  | { readonly kind: 'exact' };

export interface SchedulerOptions {
  readonly schedules: readonly SchedulePlan[];
  readonly targets: SchedulerTargets;
  readonly timing: ScheduleTiming;
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
/** Last moment of a minute at which a schedule fires. */
const OFFSET_MAX_MS = 59_000;
const JITTER_MAX_MS = 4_000;
const DOUBLED_AFTER_MAX_MS = 5_000;

/** Moments after the beginning of a minute at which a schedule fires. Milliseconds. */
export function firingOffsetsMs(timing: ScheduleTiming, logicalId: string, minuteMs: number): readonly number[] {
  if (timing.kind === 'exact') return [0];
  const { seed, missing = 0, doubled = 0 } = timing;
  const share = (purpose: string): number => fractionOf(`${seed} ${logicalId} ${purpose}`);
  if (share(`missing ${minuteMs}`) < missing) return [];
  const jitterMs = (share(`jitter ${minuteMs}`) - 0.5) * 2 * JITTER_MAX_MS;
  const first = Math.round(Math.min(OFFSET_MAX_MS, Math.max(0, share('offset') * OFFSET_MAX_MS + jitterMs)));
  if (share(`doubled ${minuteMs}`) >= doubled) return [first];
  return [first, first + Math.round(share(`after ${minuteMs}`) * DOUBLED_AFTER_MAX_MS)];
}

/** A number in [0, 1) that depends on the text alone. */
const fractionOf = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;

interface Compiled {
  readonly plan: SchedulePlan;
  readonly schedule: Schedule;
}

/**
 * EventBridge Scheduler. In AWS the first call of a new schedule comes within its first minutes. Here each schedule of
 * the present minute also fires at once: a cluster that has just started ticks without a wait.
 */
export function startScheduler(options: SchedulerOptions): LocalScheduler {
  const { nowMs, targets, timing } = options;
  const counters = { fired: 0 };
  const compiled = options.schedules.map(
    (plan): Compiled => ({ plan, schedule: parseSchedule(plan.expression, plan.logicalId) }),
  );
  const timers = new Set<NodeJS.Timeout>();

  function at(atMs: number, run: () => void): void {
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        run();
      },
      Math.max(0, atMs - nowMs()),
    );
    timers.add(timer);
  }

  function fire(plan: SchedulePlan, minuteMs: number): void {
    if (nowMs() - minuteMs > MINUTE_MS + LATE_MAX_MS) return;
    counters.fired += 1;
    fireSchedule(plan, minuteMs, targets);
  }

  function planMinute(minuteMs: number): void {
    for (const { plan, schedule } of compiled) {
      if (!schedule.firesAt(minuteMs)) continue;
      for (const offsetMs of firingOffsetsMs(timing, plan.logicalId, minuteMs)) {
        at(minuteMs + offsetMs, () => fire(plan, minuteMs));
      }
    }
    at(minuteMs + MINUTE_MS, () => planMinute(startOfMinute(nowMs() + EARLY_MS)));
  }

  if (compiled.length > 0) {
    const startMs = nowMs();
    const present = startOfMinute(startMs);
    for (const { plan, schedule } of compiled) if (schedule.firesAt(present)) fire(plan, present);
    at(present + MINUTE_MS, () => planMinute(startOfMinute(nowMs() + EARLY_MS)));
  }
  return {
    counters,
    stop() {
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
}

const startOfMinute = (ms: number) => Math.floor(ms / MINUTE_MS) * MINUTE_MS;

/** Calls the target of a schedule with its input. */
export function fireSchedule(plan: SchedulePlan, scheduledAtMs: number, targets: SchedulerTargets): void {
  const scheduledTime = new Date(scheduledAtMs).toISOString().replace('.000Z', 'Z');
  const input = plan.input.replaceAll('<aws.scheduler.scheduled-time>', scheduledTime);
  if (plan.target.kind === 'queue') targets.sendToQueue(plan.target.queueId, input);
  else targets.invoke(plan.target.functionId, JSON.parse(input));
}
