/** The current time. Read once per beat or tick, then passed as an argument. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number;
}

/** Randomness, for uids and generated name suffixes. */
export interface RandomSource {
  /** A random UUID, version 4, lower case. */
  uuid(): string;
  /** A number in [0, 1). */
  fraction(): number;
}

/** A time limit that can be cancelled. */
export interface TimeLimit {
  /** Resolves when the time has passed, never after `cancel`. */
  readonly reached: Promise<void>;
  cancel(): void;
}

export type StartTimeLimit = (milliseconds: number) => TimeLimit;
