/** Time, as the agent's loops see it: the system's in the process, virtual in tests. */
export interface AgentTime {
  /**
   * Wall clock: milliseconds since the Unix epoch. It can be set, forwards and backwards, at any moment. Use it only for
   * times that other people read: in objects, events, logs and metrics.
   */
  nowMs(): number;
  /**
   * Monotonic clock: milliseconds since the machine booted. Nobody can set it. Every duration, deadline and retry time is
   * measured with it.
   */
  monotonicMs(): number;
  /** Resolves after so many milliseconds, or at once when the signal is or gets aborted. Never rejects. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** A number in [0, 1). */
export type Fraction = () => number;
