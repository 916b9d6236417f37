import { randomUUID } from 'node:crypto';
import type { Clock, RandomSource, StartTimeLimit } from '../../clock.ts';

/** The clock of the host. */
export const systemClock: Clock = { nowMs: () => Date.now() };

/** Time in which this thread did not wait for an event, since it started. Milliseconds. */
export const systemBusyMs = (): number => performance.eventLoopUtilization().active;

/** Random numbers of the host. */
export const systemRandom: RandomSource = { uuid: () => randomUUID(), fraction: () => Math.random() };

/** A time limit of the host. */
export const systemTimeLimit: StartTimeLimit = (milliseconds) => {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  return { reached, cancel: () => clearTimeout(timer) };
};
