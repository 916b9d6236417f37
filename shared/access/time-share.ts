/**
 * Limits the time that one identity uses of an execution environment, whatever it sends. An environment serves one request
 * at a time, so a share of its time is a share of both its CPU and the concurrency of the function.
 *
 * A token bucket in milliseconds, stored as one number: the time at which it is full again (GCRA, as in request-limit.ts).
 * What a request uses is known at its end. So a request is admitted while the bucket is not overdrawn, and then pays. The
 * overdraft is bounded by one request.
 */

export interface TimeShare {
  /** The share of the time of one environment: 0.05 is a twentieth. */
  readonly share: number;
  /** Time that may be used at once after an idle time. Milliseconds. */
  readonly burstMs: number;
  /**
   * Most of a request's wait for the tables that counts, in milliseconds. All of a usual wait, because the environment is
   * occupied meanwhile. Not the wait for tables that are slow: that is no fault of the sender.
   */
  readonly waitMsMax: number;
}

/** What one request used of its environment. Milliseconds. */
export interface UsedTime {
  /** Computing. */
  readonly busyMs: number;
  /** From the beginning to the end of the request. */
  readonly elapsedMs: number;
}

export type TimeAdmission =
  | { readonly kind: 'admitted' }
  /** In seconds, whole, at least 1: for Retry-After. */
  | { readonly kind: 'refused'; readonly retryAfterSeconds: number };

/**
 * Longest refusal after one request. Below the shortest grace period: a node that is refused by mistake can still send its
 * heartbeat. Milliseconds.
 */
const REFUSED_MS_MAX = 30_000;

const windowMs = ({ share, burstMs }: TimeShare): number => burstMs / share;

/** @param fullAtMs result of the previous charge; undefined for an identity without a recent request. Epoch milliseconds */
export function admitTime(fullAtMs: number | undefined, nowMs: number, limit: TimeShare): TimeAdmission {
  const waitMs = (fullAtMs ?? nowMs) - nowMs - windowMs(limit);
  if (waitMs <= 0) return { kind: 'admitted' };
  // A clock that was set back must not lengthen the refusal.
  return { kind: 'refused', retryAfterSeconds: Math.max(1, Math.ceil(Math.min(waitMs, REFUSED_MS_MAX) / 1_000)) };
}

/** @returns when the bucket is full again. Epoch milliseconds */
export function chargeTime(
  fullAtMs: number | undefined,
  used: UsedTime,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: TimeShare },
): number {
  const busyMs = Math.max(0, used.busyMs);
  const waitMs = Math.min(limit.waitMsMax, Math.max(0, used.elapsedMs - busyMs));
  const chargedMs = (busyMs + waitMs) / limit.share;
  return Math.min(Math.max(fullAtMs ?? nowMs, nowMs) + chargedMs, nowMs + windowMs(limit) + REFUSED_MS_MAX);
}

/**
 * Computing time of a process, divided among the requests that it serves at the same time. Which of them a process computes
 * for is not known. Each pays an equal part while it is served. Together they pay what was computed, once. An execution
 * environment of Lambda serves one request at a time, which pays all of it.
 */
export interface SharedTime {
  /** A request begins. */
  begin(): Sharer;
}

export interface Sharer {
  /** The request has ended. @returns its part of the computing time. Milliseconds */
  end(): number;
}

/** @param busyMs time that this thread has computed, from any origin. Milliseconds */
export function sharedTime(busyMs: () => number): SharedTime {
  let sharers = 0;
  let readMs = 0;
  /** What a request would have paid that was served all the time. */
  let partMs = 0;
  const read = (): number => {
    const nowMs = busyMs();
    if (sharers > 0) partMs += (nowMs - readMs) / sharers;
    readMs = nowMs;
    return partMs;
  };
  return {
    begin() {
      const beganMs = read();
      sharers += 1;
      let usedMs: number | undefined;
      return {
        end() {
          if (usedMs !== undefined) return usedMs;
          usedMs = read() - beganMs;
          sharers -= 1;
          return usedMs;
        },
      };
    },
  };
}
