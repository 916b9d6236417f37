/** The time of the agent's loops: the system's in production, virtual in tests. */
export interface AgentTime {
  /**
   * Wall clock: milliseconds since the Unix epoch. It can be set, forwards and backwards, at any time. Use it only for
   * times that are shown outside the process: in objects, events, logs and metrics.
   */
  nowMs(): number;
  /**
   * Monotonic clock: milliseconds since the machine booted. It cannot be set. Every duration, deadline and retry time
   * is measured with it.
   */
  monotonicMs(): number;
  /**
   * Uptime clock: milliseconds since the machine booted, with the time of suspends, which the monotonic clock of Linux
   * does not count. It cannot be set.
   */
  uptimeMs(): number;
  /** Resolves after this time, or as soon as the signal is aborted. Never rejects. Milliseconds. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** A number in [0, 1). */
export type Fraction = () => number;
