/** Time, as the agent's loops see it: the system's in the process, virtual in tests. */
export interface AgentTime {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Resolves after so many milliseconds, or at once when the signal is or gets aborted. Never rejects. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** A number in [0, 1). */
export type Fraction = () => number;
