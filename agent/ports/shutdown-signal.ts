/** The operating system's announcement of a shutdown, and our hold on it: logind. */
export interface ShutdownSignal {
  /** Longest delay that the system grants us. Milliseconds. */
  delayMaxMs(): Promise<number>;
  /** Asks for a longer delay, for good. Does not wait until it holds. Milliseconds. */
  raiseDelayMax(delayMs: number): Promise<void>;
  /** Holds the shutdown back until released, or until the longest delay is over. */
  hold(): Promise<{ release(): Promise<void> }>;
  /** `true` when a shutdown begins, `false` when it is called off. Ends when the connection ends. */
  watch(signal: AbortSignal): AsyncIterable<boolean>;
}
