import { randomUUID } from 'node:crypto';
import type { Clock, RandomSource, StartTimeLimit } from '../shared/ports/clock.ts';

/** The clock of the host. */
export const systemClock: Clock = { nowMs: () => Date.now() };

/** Random numbers of the host. */
export const systemRandom: RandomSource = { uuid: () => randomUUID(), fraction: () => Math.random() };

/** A time limit of the host. */
export const systemTimeLimit: StartTimeLimit = (milliseconds) => {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  return { reached, cancel: () => clearTimeout(timer) };
};
