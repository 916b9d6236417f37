export interface FailedWakeUp {
  readonly name: string;
  readonly reason: string;
}

/** Starts other functions of the cluster. A wake-up may be lost, late or doubled. */
export interface Waker {
  /**
   * Starts each function for the tick that began at `atMs`, without waiting for its end. Never rejects: a controller
   * that is not woken is swept within a minute. Returns what failed.
   */
  wake(names: readonly string[], atMs: number): Promise<readonly FailedWakeUp[]>;
}
