/**
 * When the machine's key is replaced, and which step is next (docs/security.md, "The protocol", 3).
 *
 *   make      create a new key on disk, beside the current one
 *   enrol     the cluster accepts its public key, on a token signed by the current key: both are valid now
 *   prove     the new key signs, until a heartbeat signed with it was accepted
 *   adopt     the new key replaces the old one on disk
 *   drop      the cluster deletes every other key, on a token signed by the new one
 *
 * The next step follows from what the disk and the cluster hold, not from earlier steps. An agent that was stopped
 * between two steps continues with the next one, and each step may be repeated. The old key is removed only after the
 * new one has safely replaced it.
 *
 * Times are the server's: it stored `addedAtMs`, and our clock may be wrong.
 */
import { nameFraction } from './lease.ts';

const HOUR_MS = 3_600_000;
/** Longest wait before the clock is read again, because it may be set meanwhile. */
const CLOCK_READ_INTERVAL_MS = 24 * HOUR_MS;
/** Earliest replacement, as a share of the period. Machines that were enrolled together do not rotate together. */
const EARLIEST_SHARE = 0.8;
/**
 * Longest wait from the start of an agent to its first request. A fleet that starts together after a power cut is
 * spread.
 */
const FIRST_LOOK_MS = HOUR_MS;
/** The same limit as a share of the period. */
const FIRST_LOOK_SHARE = 0.1;
/** How long a refused key is not tried again. */
const REFUSED_FOR_MS = 60_000;

export interface EnrolledKey {
  readonly keyId: string;
  readonly addedAtMs: number;
}

export interface RotationGround {
  /** The valid keys, from the newest answer of the cluster. */
  readonly enrolled: readonly EnrolledKey[];
  /** The machine's key. */
  readonly currentKeyId: string;
  /** The key beside it on disk, which is to replace it. */
  readonly nextKeyId?: string | undefined;
  /** The key that signed the newest heartbeat known to be accepted. */
  readonly provenKeyId?: string | undefined;
  /** Age at which a key is replaced at the latest; above 0. Milliseconds. */
  readonly periodMs: number;
  /** By the server's clock. */
  readonly nowMs: number;
}

export type RotationStep =
  /** Nothing is due. Milliseconds. */
  | { readonly kind: 'wait'; readonly forMs: number }
  | { readonly kind: 'make' | 'enrol' | 'prove' | 'adopt' | 'drop' }
  /** None of our keys is valid in the cluster. The agent cannot repair this. */
  | { readonly kind: 'lost' };

export function nextRotationStep(ground: RotationGround): RotationStep {
  const { enrolled, currentKeyId, nextKeyId } = ground;
  const current = enrolled.find(({ keyId }) => keyId === currentKeyId);
  if (nextKeyId !== undefined) {
    if (enrolled.some(({ keyId }) => keyId === nextKeyId)) {
      return { kind: ground.provenKeyId === nextKeyId ? 'adopt' : 'prove' };
    }
    return { kind: current === undefined ? 'lost' : 'enrol' };
  }
  if (current === undefined) return { kind: 'lost' };
  if (enrolled.length > 1) return { kind: 'drop' };
  const leftMs = current.addedAtMs + lifeMs(current.keyId, ground.periodMs) - ground.nowMs;
  return leftMs <= 0 ? { kind: 'make' } : { kind: 'wait', forMs: Math.min(leftMs, CLOCK_READ_INTERVAL_MS) };
}

/**
 * Between four fifths of the period and all of it, derived from the key: stable over restarts, different for each key.
 */
const lifeMs = (keyId: string, periodMs: number): number =>
  periodMs * (EARLIEST_SHARE + (1 - EARLIEST_SHARE) * nameFraction(keyId));

/**
 * The wait from the start of an agent to its first read of the enrolled keys. Overdue keys are replaced right after
 * that read, so this wait also spreads a fleet on which rotation was just enabled. `fraction` in [0, 1). Milliseconds.
 */
export const firstLookMs = (periodMs: number, fraction: number): number =>
  Math.min(FIRST_LOOK_MS, periodMs * FIRST_LOOK_SHARE) * fraction;

/**
 * Whether a refused key may be tried again. Both times are monotonic; `refusedAtMs` is undefined if it never was
 * refused.
 */
export const isWorthATry = (refusedAtMs: number | undefined, nowMs: number): boolean =>
  refusedAtMs === undefined || nowMs - refusedAtMs >= REFUSED_FOR_MS;

export interface RefusalGround {
  readonly refusedKeyId: string;
  /** Undefined before the keys were read. */
  readonly currentKeyId: string | undefined;
  readonly nextKeyId: string | undefined;
  /** The key of the last accepted request. */
  readonly acceptedKeyId: string | undefined;
  /** By id of a key: when it was last refused. Monotonic milliseconds. */
  readonly refusedAtMs: ReadonlyMap<string, number>;
  readonly nowMs: number;
}

export type KeyAfterRefusal =
  /** This key signs now, and the request is worth repeating. */
  | { readonly kind: 'otherKey'; readonly keyId: string }
  /** Both keys were refused within a minute. The one that was accepted last is the likelier to be accepted again. */
  | { readonly kind: 'bothRefused'; readonly keyId: string | undefined }
  | { readonly kind: 'onlyKey' };

/** Which key signs after one was refused, when the clock does not explain the refusal. */
export function keyAfterRefusal(ground: RefusalGround): KeyAfterRefusal {
  const { refusedKeyId, currentKeyId, nextKeyId, acceptedKeyId, refusedAtMs, nowMs } = ground;
  const otherKeyId = [currentKeyId, nextKeyId].find((keyId) => keyId !== undefined && keyId !== refusedKeyId);
  if (otherKeyId === undefined) return { kind: 'onlyKey' };
  if (isWorthATry(refusedAtMs.get(otherKeyId), nowMs)) return { kind: 'otherKey', keyId: otherKeyId };
  return { kind: 'bothRefused', keyId: acceptedKeyId ?? currentKeyId };
}
