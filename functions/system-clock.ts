import { randomUUID } from 'node:crypto';
import type { Clock, RandomSource } from '../shared/ports/clock.ts';

/** The machine's clock. */
export const systemClock: Clock = { nowMs: () => Date.now() };

/** The machine's randomness. */
export const systemRandom: RandomSource = { uuid: () => randomUUID(), fraction: () => Math.random() };
