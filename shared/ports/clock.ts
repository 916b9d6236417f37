/** Where "now" comes from. Asked once a beat or tick; the number is then passed on. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number;
}

/** Where randomness comes from: uids and generated name suffixes. */
export interface RandomSource {
  /** A random UUID, version 4, lower case. */
  uuid(): string;
  /** A number in [0, 1). */
  fraction(): number;
}
