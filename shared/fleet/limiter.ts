/**
 * The limiter of a zone: a token bucket that holds one token, kept as one number.
 *
 * Algorithm: GCRA. `tatMs`, the theoretical arrival time, is the time at which the bucket is full again. The bucket is
 * full when tat <= now. A grant sets tat to now + interval by one conditional update, without a read or a refill. So
 * only one of several concurrent callers acquires a token. If a caller terminates after its grant, its token is lost,
 * but no token is ever granted twice (L3).
 *
 *   now ──────┤ tat            denied, until tat
 *   tat ┤────── now            granted, tat := now + interval
 *
 * Why L3 holds:
 *   - A grant requires now >= tat, and the previous grant set tat to its own now + interval. So two grants are at least
 *     one interval apart.
 *   - A window of T seconds therefore has at most 1 + floor(T / interval) <= 1 + rate·T grants.
 *   - A change of rate either keeps tat or sets it to now + the new interval. A grant with the previous rate is refused
 *     by its condition.
 *
 * Clocks of two callers may differ by d (about a second between Lambdas). A caller with a clock d ahead acquires its
 * token d early and sets tat d late for all others, so the errors do not accumulate. In true time a window of T has at
 * most 1 + rate·(T + 2d) grants.
 *
 * Rate 0 (never) and 1 per second are different limiters (D3). A token is requested only for an item that is due (D4).
 * Source: client-go/util/flowcontrol/throttle.go and SwapLimiter in nodelifecycle/scheduler/rate_limited_queue.go for
 * what a change of rate means.
 */
export interface Limiter {
  /** When the bucket is full again. Epoch milliseconds; undefined before the first grant. */
  readonly tatMs: number | undefined;
  /** 0 means never. */
  readonly ratePerSecond: number;
}

/**
 * Milliseconds that refill one token; Infinity for never. Rounded up to a whole millisecond, which never grants more
 * than the rate.
 */
export const tokenIntervalMs = (ratePerSecond: number): number =>
  ratePerSecond > 0 ? Math.ceil(1_000 / ratePerSecond - 1e-9) : Infinity;

/**
 * A conditional update as data, in the form of the item store: `when` and `set` can be passed to it unchanged.
 * Attributes: tatMs and ratePerSecond, both numbers.
 */
export type LimiterCondition =
  | { readonly kind: 'lacks'; readonly attribute: 'tatMs' }
  | {
      readonly kind: 'compare';
      readonly attribute: 'tatMs' | 'ratePerSecond';
      readonly op: '=' | '<=' | '>';
      readonly value: number;
    }
  | { readonly kind: 'all' | 'any'; readonly of: readonly LimiterCondition[] };

export interface LimiterUpdate {
  readonly when: LimiterCondition;
  readonly set: { readonly tatMs?: number; readonly ratePerSecond?: number };
}

const tat = (op: '<=' | '>', value: number): LimiterCondition => ({ kind: 'compare', attribute: 'tatMs', op, value });
const rateIs = (value: number): LimiterCondition => ({
  kind: 'compare',
  attribute: 'ratePerSecond',
  op: '=',
  value,
});
const all = (...of: LimiterCondition[]): LimiterCondition => ({ kind: 'all', of });
const fullAt = (nowMs: number): LimiterCondition => ({
  kind: 'any',
  of: [{ kind: 'lacks', attribute: 'tatMs' }, tat('<=', nowMs)],
});

/**
 * The update that acquires the token of a full bucket: tat := now + interval. The token is granted when the update is
 * written and denied when it is refused. Undefined at rate 0, which grants nothing. The condition includes the rate
 * that the caller read: after a change of rate the caller is denied and must read again.
 */
export function takeTokenUpdate(at: {
  readonly nowMs: number;
  readonly ratePerSecond: number;
}): LimiterUpdate | undefined {
  const intervalMs = tokenIntervalMs(at.ratePerSecond);
  if (intervalMs === Infinity) return undefined;
  return { when: all(rateIs(at.ratePerSecond), fullAt(at.nowMs)), set: { tatMs: at.nowMs + intervalMs } };
}

/**
 * The updates that change the rate. Exactly one of them is written while the rate is still `fromPerSecond`. The change
 * applies at once: a full bucket stays full, any other starts drained at the new rate, and after rate 0 the bucket
 * always starts drained. The same rate is no change.
 */
export function changeRateUpdates(at: {
  readonly nowMs: number;
  readonly fromPerSecond: number;
  readonly toPerSecond: number;
}): LimiterUpdate[] {
  if (at.fromPerSecond === at.toPerSecond) return [];
  const from = rateIs(at.fromPerSecond);
  const intervalMs = tokenIntervalMs(at.toPerSecond);
  // To rate 0: tat stays, because a later rate starts drained anyway.
  if (intervalMs === Infinity) return [{ when: from, set: { ratePerSecond: at.toPerSecond } }];
  const drained = { ratePerSecond: at.toPerSecond, tatMs: at.nowMs + intervalMs };
  if (tokenIntervalMs(at.fromPerSecond) === Infinity) return [{ when: from, set: drained }];
  return [
    { when: all(from, tat('>', at.nowMs)), set: drained },
    { when: all(from, fullAt(at.nowMs)), set: { ratePerSecond: at.toPerSecond } },
  ];
}
