/** The operating system's announcement of a shutdown, and our inhibitor lock on it: logind. */
export interface ShutdownSignal {
  /** Longest delay that the system grants. Milliseconds. */
  delayMaxMs(): Promise<number>;
  /** Requests a longer delay, permanently. Does not wait until it is in force. Milliseconds. */
  raiseDelayMax(delayMs: number): Promise<void>;
  /** Delays a shutdown until the lock is released, or until the longest delay is over. */
  hold(): Promise<{ release(): Promise<void> }>;
  /** `true` when a shutdown begins, `false` when it is cancelled. Ends when the connection is closed. */
  watch(signal: AbortSignal): AsyncIterable<boolean>;
}
