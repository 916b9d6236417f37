/**
 * Machines whose clocks lie: each time and count that such a machine writes has an error of its own, from a second to thirty
 * years either way. Some errors stand still, some grow with time, some change at once. They follow from the seed, the machine,
 * the field and the moment alone and ask for no random number, so the same world can be run again with honest clocks.
 */
import { hashOf, seededFraction } from '../seeded-random.ts';

const TIME_FIELDS = [
  'renewTime',
  'acquireTime',
  'lastHeartbeatTime',
  'lastTransitionTime',
  'creationTimestamp',
  'timeAdded',
  'startTime',
  'podScheduledTime',
  'podTransitionTime',
  'lastProbeTime',
  'startedAt',
  'finishedAt',
  'firstTimestamp',
  'lastTimestamp',
] as const;
const COUNT_FIELDS = ['leaseDurationSeconds', 'leaseTransitions', 'restartCount', 'eventCount'] as const;
export type TimeField = (typeof TIME_FIELDS)[number];
export type CountField = (typeof COUNT_FIELDS)[number];

export interface MachineClock {
  /** What the machine writes into this field at a moment. Epoch milliseconds. */
  timeMs(field: TimeField, nowMs: number): number;
  count(field: CountField, honest: number, nowMs: number): number;
}

/** Of all machines. */
const LIARS_SHARE = 0.4;
/** Decades of an error in seconds: 1 s to thirty years. */
const ERROR_DECADES = 9;
const DRIFT_MAX = 0.5;
const JUMP_EVERY_MIN_MS = 60_000;
const JUMP_EVERY_MAX_MS = 900_000;
const COUNT_MAX = 2 ** 31 - 1;

export const isLiar = (seed: number, name: string): boolean =>
  seededFraction(hashOf(`${seed} liar ${name}`))() < LIARS_SHARE;

/** `mode`: the same machines write the same fields, and no lies (honest), or lies that stand still (steady). */
export function lyingClock(options: {
  readonly seed: number;
  readonly name: string;
  readonly startMs: number;
  readonly mode: 'honest' | 'steady' | 'any';
  readonly onLie: () => void;
}): MachineClock {
  const { seed, name, startMs, mode, onLie } = options;
  const fractionsOf = (text: string): (() => number) => seededFraction(hashOf(`${seed} ${name} ${text}`));

  /**
   * Whole seconds, and the same for a minute at least: two honest times that are written alike are lies alike, so a write that
   * changes nothing changes nothing in both worlds.
   */
  function errorSeconds(field: string, nowMs: number): number {
    const shape = fractionsOf(field);
    const [what, jumpEvery, drift] = [shape(), shape(), shape()];
    const jumpEveryMs = JUMP_EVERY_MIN_MS + jumpEvery * (JUMP_EVERY_MAX_MS - JUMP_EVERY_MIN_MS);
    const epoch = Math.floor((nowMs - startMs) / jumpEveryMs);
    const isJumping = mode === 'any' && what < 0.33;
    const isDrifting = mode === 'any' && what >= 0.67;
    const size = fractionsOf(`${field} ${isJumping ? epoch : 0}`);
    const seconds = (size() < 0.5 ? -1 : 1) * 10 ** (size() * (ERROR_DECADES + Math.log10(0.95)));
    const driftSeconds = isDrifting ? ((2 * drift - 1) * DRIFT_MAX * epoch * jumpEveryMs) / 1_000 : 0;
    return Math.round(seconds + driftSeconds);
  }

  return {
    timeMs(field, nowMs) {
      if (mode === 'honest') return nowMs;
      onLie();
      return nowMs + 1_000 * errorSeconds(field, nowMs);
    },
    count(field, honest, nowMs) {
      if (mode === 'honest') return honest;
      onLie();
      return Math.max(1, Math.min(COUNT_MAX, Math.abs(errorSeconds(field, nowMs))));
    },
  };
}
