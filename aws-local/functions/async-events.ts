/**
 * Asynchronous invocations of a function: Lambda queues the event, invokes the function, and repeats the event after an
 * error of the function. Source: AWS Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous
 * invocation".
 */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import type { AsyncPolicy } from '../assembly/plan.ts';
import type { LocalFunction } from './local-function.ts';

/** Wait before the first and before the second repetition. Milliseconds. */
const RETRY_WAITS_MS = [60_000, 120_000] as const;
/** After a throttled attempt: from one second, doubled each time, to five minutes. */
const THROTTLE_WAITS: Backoff = { firstMs: 1_000, limitMs: 300_000 };

export interface AsyncEvents {
  readonly counters: { accepted: number; retried: number; dropped: number };
  /** Accepts an event. Its function is invoked later. */
  put(event: unknown, traceHeader?: string): void;
  /** No more repetitions. */
  stop(): void;
}

export interface AsyncEventsOptions {
  readonly fn: Pick<LocalFunction, 'invoke'>;
  readonly policy: AsyncPolicy;
  nowMs(): number;
}

interface Queued {
  readonly event: unknown;
  readonly traceHeader: string | undefined;
  readonly acceptedAtMs: number;
  /** Repetitions after errors of the function. */
  readonly retries: number;
  /** Attempts that were throttled. They are no retries: only the age of the event bounds them. */
  readonly throttles: number;
}

export function asyncEvents({ fn, policy, nowMs }: AsyncEventsOptions): AsyncEvents {
  const counters = { accepted: 0, retried: 0, dropped: 0 };
  const timers = new Set<NodeJS.Timeout>();
  let isStopped = false;

  async function run(queued: Queued): Promise<void> {
    const { event, traceHeader, retries, throttles } = queued;
    const outcome = await fn.invoke(event, undefined, traceHeader);
    if (outcome.kind === 'returned') return;
    if (outcome.kind === 'recursive') counters.dropped += 1;
    else if (outcome.kind === 'throttled') {
      const waitMs = backoffMs(THROTTLE_WAITS, throttles);
      repeat({ ...queued, throttles: throttles + 1 }, waitMs);
    } else if (retries >= policy.maximumRetryAttempts) counters.dropped += 1;
    else repeat({ ...queued, retries: retries + 1 }, RETRY_WAITS_MS[retries]);
  }

  function repeat(queued: Queued, waitMs: number | undefined): void {
    if (isStopped) return;
    if (waitMs === undefined || nowMs() + waitMs - queued.acceptedAtMs > policy.maximumEventAgeSeconds * 1_000) {
      counters.dropped += 1;
      return;
    }
    const timer = setTimeout(() => {
      timers.delete(timer);
      counters.retried += 1;
      void run(queued);
    }, waitMs);
    timers.add(timer);
  }

  return {
    counters,
    put(event, traceHeader) {
      counters.accepted += 1;
      void run({ event, traceHeader, acceptedAtMs: nowMs(), retries: 0, throttles: 0 });
    },
    stop() {
      isStopped = true;
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
}
