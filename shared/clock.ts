/** Time and randomness: what code receives as an argument, and those of the host. */

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

/** The clock of the host. */
export const systemClock: Clock = { nowMs: () => Date.now() };

/** Random numbers of the host. */
export const systemRandom: RandomSource = { uuid: () => crypto.randomUUID(), fraction: () => Math.random() };

/** A time limit of the host. */
export const systemTimeLimit: StartTimeLimit = (milliseconds) => {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  return { reached, cancel: () => clearTimeout(timer) };
};
