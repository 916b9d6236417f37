/** Time that passes only on request, with any number of sleepers: for concurrent loops. */
import type { AgentTime } from '../../agent/ports/time.ts';

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

/** What was resolved so far runs to its next wait. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class SteppedTime implements AgentTime {
  #nowMs: number;
  readonly #startMs: number;
  #clockAheadMs = 0;
  #suspendedMs = 0;
  #sleepers: Sleeper[] = [];
  readonly waits: number[] = [];

  constructor(startMs: number) {
    this.#nowMs = startMs;
    this.#startMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs + this.#suspendedMs + this.#clockAheadMs;
  }

  /** Has another origin than the wall clock: a rule that mixes the two fails. */
  monotonicMs(): number {
    return this.#nowMs - this.#startMs;
  }

  /** With another origin again, and with suspends. */
  uptimeMs(): number {
    return 500_000 + this.#nowMs - this.#startMs + this.#suspendedMs;
  }

  /** The machine is suspended: the monotonic clock and timers stop. */
  suspend(milliseconds: number): void {
    this.#suspendedMs += milliseconds;
  }

  /** Sets the wall clock; no time passes. */
  setClock(byMs: number): void {
    this.#clockAheadMs += byMs;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    this.waits.push(milliseconds);
    return new Promise((resolve) => {
      const sleeper: Sleeper = {
        dueMs: this.#nowMs + milliseconds,
        wake: () => {
          this.#sleepers = this.#sleepers.filter((each) => each !== sleeper);
          signal?.removeEventListener('abort', sleeper.wake);
          resolve();
        },
      };
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', sleeper.wake, { once: true });
    });
  }

  /** Wakes whoever is due meanwhile, in order. */
  async pass(milliseconds: number): Promise<void> {
    const untilMs = this.#nowMs + milliseconds;
    await settle();
    for (;;) {
      const due = this.#sleepers.filter(({ dueMs }) => dueMs <= untilMs);
      const next = due.reduce<Sleeper | undefined>(
        (first, each) => (first === undefined || each.dueMs < first.dueMs ? each : first),
        undefined,
      );
      if (next === undefined) break;
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.wake();
      await settle();
    }
    this.#nowMs = untilMs;
  }
}
