import type { ShutdownRules } from '../rules/shutdown-start.ts';

/** The operating system's announcement of a shutdown, and our lock on it: logind, or the preshutdown of Windows. */
export interface ShutdownSignal {
  readonly rules: ShutdownRules;
  /** Longest delay that the system grants. Milliseconds. */
  delayMaxMs(): Promise<number>;
  /** Requests a longer delay, permanently. Does not wait until it is in force. Milliseconds. */
  raiseDelayMax(delayMs: number): Promise<void>;
  /** Delays a shutdown until the lock is released, or until the longest delay is over. */
  hold(): Promise<{ release(): Promise<void> }>;
  /** `true` when a shutdown begins, `false` when it is cancelled. Ends when the connection is closed. */
  watch(signal: AbortSignal): AsyncIterable<boolean>;
}
