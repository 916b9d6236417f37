import { randomUUID } from 'node:crypto';
import type { Clock, RandomSource } from '../shared/ports/clock.ts';

/** The clock of the host. */
export const systemClock: Clock = { nowMs: () => Date.now() };

/** Random numbers of the host. */
export const systemRandom: RandomSource = { uuid: () => randomUUID(), fraction: () => Math.random() };
