/** The limiter of a zone without a store: its updates, checked by the conditions of the tables in memory. */

import { changeRateUpdates, type Limiter, type LimiterUpdate, takeTokenUpdate } from '../../shared/fleet/limiter.ts';
import type { Condition, Item } from '../../shared/store/item-store.ts';
import { conditionHolds } from '../../shared/store/writes/condition-holds.ts';

export const fullLimiter = (ratePerSecond: number): Limiter => ({ tatMs: undefined, ratePerSecond });

const itemOf = ({ tatMs, ratePerSecond }: Limiter): Item => ({
  ratePerSecond,
  ...(tatMs === undefined ? {} : { tatMs }),
});

/** The limiter after an update; undefined when the store would refuse it. */
export const updatedLimiter = (limiter: Limiter, { when, set }: LimiterUpdate): Limiter | undefined =>
  conditionHolds(when as Condition, itemOf(limiter)) ? { ...limiter, ...set } : undefined;

/** The limiter after a token was acquired; undefined if there is none. */
export function takeToken(limiter: Limiter, nowMs: number): Limiter | undefined {
  const update = takeTokenUpdate({ nowMs, ratePerSecond: limiter.ratePerSecond });
  return update === undefined ? undefined : updatedLimiter(limiter, update);
}

export function changeRate(limiter: Limiter, toPerSecond: number, nowMs: number): Limiter {
  for (const update of changeRateUpdates({ nowMs, fromPerSecond: limiter.ratePerSecond, toPerSecond })) {
    const changed = updatedLimiter(limiter, update);
    if (changed !== undefined) return changed;
  }
  return limiter;
}
