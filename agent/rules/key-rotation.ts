/**
 * When the machine's key is replaced, and what comes next in it (docs/security.md, "The protocol", 3).
 *
 *   make      a new key on the disk, beside the one that counts
 *   enrol     the cluster takes its public half, on a token signed by the present key: both count now
 *   prove     the new key signs, until a beat of its was accepted
 *   adopt     the new key takes the place of the old one on the disk
 *   drop      the cluster forgets every other key, on a token signed by the new one
 *
 * What is next follows from what the disk and the cluster hold, not from what was done before: an agent that was ended
 * between two steps goes on where it was. Each step may be repeated. The old key goes when the new one lies safely in its
 * place, and never before.
 *
 * Times are the server's: `addedAtMs` is what it stored, and our clock may be wrong.
 */
import { nameFraction } from './lease.ts';

const HOUR_MS = 3_600_000;
/** Longest wait without a look at the clock, which may be set meanwhile. */
const LOOK_EVERY_MS = 24 * HOUR_MS;
/** A key is replaced at this share of the period at the earliest, so that machines enrolled together do not rotate together. */
const EARLIEST_SHARE = 0.8;
/** Between the start of an agent and its first request for this, at most: a fleet that gets its power back has other things to say. */
const FIRST_LOOK_MS = HOUR_MS;
/** … and as a share of the period. */
const FIRST_LOOK_SHARE = 0.1;
/** How long a key that was refused is not worth another try. */
const REFUSED_FOR_MS = 60_000;

export interface EnrolledKey {
  readonly keyId: string;
  readonly addedAtMs: number;
}

export interface RotationGround {
  /** The keys that count, as the cluster last said. */
  readonly enrolled: readonly EnrolledKey[];
  /** The machine's key. */
  readonly currentKeyId: string;
  /** The key that lies beside it, to replace it. */
  readonly nextKeyId?: string | undefined;
  /** The key that signed the newest beat known to be accepted. */
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
  /** The cluster counts none of our keys: not for us to mend. */
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
  return leftMs <= 0 ? { kind: 'make' } : { kind: 'wait', forMs: Math.min(leftMs, LOOK_EVERY_MS) };
}

/** From four fifths of the period to the whole, by the key: the same after a restart, and another share for the next key. */
const lifeMs = (keyId: string, periodMs: number): number =>
  periodMs * (EARLIEST_SHARE + (1 - EARLIEST_SHARE) * nameFraction(keyId));

/**
 * From the start of an agent to its first look at what is enrolled. Keys that were due long ago are replaced at once then,
 * so this is also what spreads a fleet that was updated to rotate. `fraction` in [0, 1). Milliseconds.
 */
export const firstLookMs = (periodMs: number, fraction: number): number =>
  Math.min(FIRST_LOOK_MS, periodMs * FIRST_LOOK_SHARE) * fraction;

/**
 * Whether a key may be tried again in place of one that was just refused. Both times are monotonic; `refusedAtMs` is
 * undefined when it never was.
 */
export const isWorthATry = (refusedAtMs: number | undefined, nowMs: number): boolean =>
  refusedAtMs === undefined || nowMs - refusedAtMs >= REFUSED_FOR_MS;
