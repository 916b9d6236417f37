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
