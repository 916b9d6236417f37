/**
 * Machines with wrong clocks. Each time and count that such a machine writes has its own error, from one second to
 * thirty years in both directions. An error is constant, grows with time, or changes in steps. It depends only on the
 * seed, the machine, the field and the time, and uses no random number. So the same run can be repeated with correct
 * clocks.
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
  /** The value that the machine writes into this field. Epoch milliseconds. */
  timeMs(field: TimeField, nowMs: number): number;
  count(field: CountField, honest: number, nowMs: number): number;
}

/** Share of the machines that have a wrong clock. */
const WRONG_CLOCK_SHARE = 0.4;
/** Decades of an error in seconds: 1 s to thirty years. */
const ERROR_DECADES = 9;
const DRIFT_MAX = 0.5;
const JUMP_EVERY_MIN_MS = 60_000;
const JUMP_EVERY_MAX_MS = 900_000;
const COUNT_MAX = 2 ** 31 - 1;

/** How an error develops: it changes at once, is constant, or grows with time. */
export type LieKind = 'jump' | 'steady' | 'drift';

export const hasWrongClock = (seed: number, name: string): boolean =>
  seededFraction(hashOf(`${seed} liar ${name}`))() < WRONG_CLOCK_SHARE;

/**
 * honest: correct clocks. moving: as `any`, but `lastHeartbeatTime` only moves forward, by less than a day. Then both
 * runs of a twin run send and store the same requests (laws/twin.ts). any: errors of every kind.
 */
export type ClockMode = 'honest' | 'moving' | 'any';

/** Forward steps of `lastHeartbeatTime` in mode `moving`. Seconds. */
const FORWARD_STEP_MAX_SECONDS = 300;
const FORWARD_MAX_SECONDS = 40_000;

/** The same machines write the same fields in every mode. */
export function lyingClock(options: {
  readonly seed: number;
  readonly name: string;
  readonly startMs: number;
  readonly mode: ClockMode;
  readonly onLie: (kind: LieKind) => void;
}): MachineClock {
  const { seed, name, startMs, mode, onLie } = options;
  const fractionsOf = (text: string): (() => number) => seededFraction(hashOf(`${seed} ${name} ${text}`));

  /**
   * The error is in whole seconds and constant for at least a minute. Two equal correct times then have equal wrong
   * times, so a write without a change is one in both runs.
   */
  function errorOf(field: string, nowMs: number): { readonly kind: LieKind; readonly seconds: number } {
    const shape = fractionsOf(field);
    const [what, jumpEvery, drift] = [shape(), shape(), shape()];
    const kind: LieKind = what < 0.33 ? 'jump' : what < 0.67 ? 'steady' : 'drift';
    const jumpEveryMs = JUMP_EVERY_MIN_MS + jumpEvery * (JUMP_EVERY_MAX_MS - JUMP_EVERY_MIN_MS);
    const epoch = Math.floor((nowMs - startMs) / jumpEveryMs);
    const isForwardOnly = mode === 'moving' && field === 'lastHeartbeatTime';
    const size = fractionsOf(`${field} ${kind === 'jump' && !isForwardOnly ? epoch : 0}`);
    const constant = (size() < 0.5 ? -1 : 1) * 10 ** (size() * (ERROR_DECADES + Math.log10(0.95)));
    if (kind === 'steady') return { kind, seconds: Math.round(constant) };
    if (isForwardOnly) {
      const forward = Math.min(FORWARD_MAX_SECONDS, epoch * Math.ceil(drift * FORWARD_STEP_MAX_SECONDS));
      return { kind, seconds: Math.round(constant) + forward };
    }
    if (kind === 'jump') return { kind, seconds: Math.round(constant) };
    const driftSeconds = ((2 * drift - 1) * DRIFT_MAX * epoch * jumpEveryMs) / 1_000;
    return { kind, seconds: Math.round(constant + driftSeconds) };
  }

  function lie(field: string, nowMs: number): number {
    const { kind, seconds } = errorOf(field, nowMs);
    onLie(kind);
    return seconds;
  }

  return {
    timeMs(field, nowMs) {
      return mode === 'honest' ? nowMs : nowMs + 1_000 * lie(field, nowMs);
    },
    count(field, honest, nowMs) {
      return mode === 'honest' ? honest : Math.max(1, Math.min(COUNT_MAX, Math.abs(lie(field, nowMs))));
    },
  };
}
