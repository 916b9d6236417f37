/**
 * Calls at once to one webhook. A slow webhook delays only the writes that it is asked about, and one user never has
 * all of its slots: the writes of others wait for one slot of theirs, not for those that the first user has queued.
 */

export interface SlotLimits {
  readonly all: number;
  readonly ofUser: number;
  /** Calls that wait for a slot. */
  readonly waiting: number;
}

export const CALLS_MAX: SlotLimits = { all: 32, ofUser: 16, waiting: 1_000 };

/** Frees the slot. */
export type Release = () => void;

export interface CallSlots {
  /** undefined: too many wait. Rejects with the reason of the signal when it aborts first. */
  acquire(user: string, signal: AbortSignal): Promise<Release> | undefined;
  isIdle(): boolean;
}

interface Waiter {
  readonly user: string;
  start(): void;
}

export function callSlots({ all, ofUser, waiting }: SlotLimits = CALLS_MAX): CallSlots {
  const users = new Map<string, number>();
  const waiters = new Set<Waiter>();
  let held = 0;
  const isFree = (user: string): boolean => held < all && (users.get(user) ?? 0) < ofUser;

  function take(user: string): Release {
    held += 1;
    users.set(user, (users.get(user) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      held -= 1;
      const left = (users.get(user) ?? 0) - 1;
      if (left > 0) users.set(user, left);
      else users.delete(user);
      for (const waiter of waiters) {
        if (!isFree(waiter.user)) continue;
        waiters.delete(waiter);
        waiter.start();
        break;
      }
    };
  }

  return {
    isIdle: () => held === 0 && waiters.size === 0,
    acquire(user, signal) {
      if (isFree(user)) return Promise.resolve(take(user));
      if (waiters.size >= waiting) return undefined;
      return new Promise<Release>((resolve, reject) => {
        const leave = (): void => {
          waiters.delete(waiter);
          reject(signal.reason);
        };
        const waiter: Waiter = {
          user,
          start() {
            signal.removeEventListener('abort', leave);
            resolve(take(user));
          },
        };
        waiters.add(waiter);
        if (signal.aborted) leave();
        else signal.addEventListener('abort', leave, { once: true });
      });
    },
  };
}
