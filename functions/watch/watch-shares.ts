/**
 * Which slots of held watches a user may use. A held watch occupies a concurrent execution, so slots are scarce, and
 * one client must not hold all of them. Reserved concurrency alone is no answer: an account keeps 100 executions
 * unreserved, so a new one can reserve none. Lambda does not report that the client of a stream has disconnected.
 *
 * Follows API Priority and Fairness of kube-apiserver (kubernetes.io, "API Priority and Fairness"). Its suggested
 * configuration has a priority level for the group `system:nodes`. A level lends a part of its seats to other levels,
 * and inside a level each user is a flow of its own. Here:
 *
 *   slots               used by
 *   first quarter       machines: nodes, and machines that enrol
 *   second quarter      whoever comes first
 *   other half          users who are not machines
 *
 * A user holds at most a quarter of all slots. One who is not a machine may hold slots of the second quarter beyond it.
 * So machines find a quarter free of people, and people a half free of machines. Upstream ends a seat when the first
 * events of a watch are sent; a watch here occupies its slot until it ends, and nothing is queued.
 */

import { NODES_GROUP } from '../../shared/access/authorize.ts';
import { BOOTSTRAP_GROUP } from '../../shared/access/bootstrap-token.ts';

export type WatchLevel = 'machine' | 'person';

export function watchLevel(groups: readonly string[]): WatchLevel {
  const isMachine = (group: string): boolean =>
    group === NODES_GROUP || group === BOOTSTRAP_GROUP || group.startsWith(`${BOOTSTRAP_GROUP}:`);
  return groups.some(isMachine) ? 'machine' : 'person';
}

/** A slot that is in use. */
export interface HeldSlot {
  readonly slot: number;
  readonly user: string;
}

export interface SlotClaim {
  readonly user: string;
  readonly level: WatchLevel;
  /** Number of all slots. */
  readonly slotsMax: number;
}

export type SlotChoice =
  /** Any of these is right. At least one. */
  | { readonly kind: 'free'; readonly slots: readonly number[] }
  /** The user holds `held` slots, as many as one user may. */
  | { readonly kind: 'userAtLimit'; readonly held: number }
  /** All slots of the level are in use. */
  | { readonly kind: 'levelAtLimit'; readonly slots: number };

/** First slot of the second quarter, first slot of the other half, and how many slots one user may hold. */
const sharesOf = (slotsMax: number) => ({
  sharedFrom: Math.floor(slotsMax / 4),
  peopleFrom: Math.floor(slotsMax / 2),
  perUser: Math.max(1, Math.floor(slotsMax / 4)),
});

/** The slots that the user may acquire now. */
export function chooseSlot({ user, level, slotsMax }: SlotClaim, held: readonly HeldSlot[]): SlotChoice {
  const { sharedFrom, peopleFrom, perUser } = sharesOf(slotsMax);
  const used = new Set(held.map(({ slot }) => slot));
  const free = (from: number, to: number): readonly number[] =>
    Array.from({ length: to - from }, (_, index) => from + index).filter((slot) => !used.has(slot));
  const firstOf = (...ranges: readonly (readonly number[])[]) => ranges.find((slots) => slots.length > 0);
  const own = held.filter((each) => each.user === user);
  if (level === 'machine') {
    if (own.length >= perUser) return { kind: 'userAtLimit', held: own.length };
    const slots = firstOf(free(0, sharedFrom), free(sharedFrom, peopleFrom));
    return slots === undefined ? { kind: 'levelAtLimit', slots: peopleFrom } : { kind: 'free', slots };
  }
  const hasShare = ownShare(own, slotsMax) < perUser;
  const slots = firstOf(hasShare ? free(peopleFrom, slotsMax) : [], free(sharedFrom, peopleFrom));
  if (slots !== undefined) return { kind: 'free', slots };
  return hasShare ? { kind: 'levelAtLimit', slots: slotsMax - sharedFrom } : { kind: 'userAtLimit', held: own.length };
}

const ownShare = (own: readonly HeldSlot[], slotsMax: number): number =>
  own.filter(({ slot }) => slot >= sharesOf(slotsMax).peopleFrom).length;

/**
 * Whether the user is within its quarter, its new slot included. Watches that start at once read the same free slots,
 * so each checks again after it has acquired its slot. Of those that stay, the last one to acquire has read all others.
 */
export function isWithinShare({ user, level, slotsMax }: SlotClaim, held: readonly HeldSlot[]): boolean {
  const own = held.filter((each) => each.user === user);
  return (level === 'machine' ? own.length : ownShare(own, slotsMax)) <= sharesOf(slotsMax).perUser;
}
