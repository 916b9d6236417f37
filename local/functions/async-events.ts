/**
 * Asynchronous invocations of a function: Lambda queues the event, invokes the function, and repeats the event after an
 * error of the function. Source: AWS Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous
 * invocation".
 */
import type { AsyncPolicy } from '../assembly/plan.ts';
import type { LocalFunction } from './local-function.ts';

/** Wait before the first and before the second repetition. Milliseconds. */
const RETRY_WAITS_MS = [60_000, 120_000] as const;

export interface AsyncEvents {
  readonly counters: { accepted: number; retried: number; dropped: number };
  /** Accepts an event. Its function is invoked later. */
  put(event: unknown): void;
  /** No more repetitions. */
  stop(): void;
}

export interface AsyncEventsOptions {
  readonly fn: Pick<LocalFunction, 'invoke'>;
  readonly policy: AsyncPolicy;
  nowMs(): number;
}

export function asyncEvents({ fn, policy, nowMs }: AsyncEventsOptions): AsyncEvents {
  const counters = { accepted: 0, retried: 0, dropped: 0 };
  const timers = new Set<NodeJS.Timeout>();

  async function run(event: unknown, acceptedAtMs: number, retries: number): Promise<void> {
    const outcome = await fn.invoke(event);
    if (outcome.kind === 'returned') return;
    const waitMs = RETRY_WAITS_MS[retries];
    const isExpired = waitMs === undefined || nowMs() + waitMs - acceptedAtMs > policy.maximumEventAgeSeconds * 1_000;
    if (retries >= policy.maximumRetryAttempts || isExpired) {
      counters.dropped += 1;
      return;
    }
    const timer = setTimeout(() => {
      timers.delete(timer);
      counters.retried += 1;
      void run(event, acceptedAtMs, retries + 1);
    }, waitMs);
    timers.add(timer);
  }

  return {
    counters,
    put(event) {
      counters.accepted += 1;
      void run(event, nowMs(), 0);
    },
    stop() {
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
}
