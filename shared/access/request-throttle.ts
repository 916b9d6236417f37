/**
 * Limits what each identity uses of this execution environment: the rate of its requests, and its share of the time.
 * The accounts are in memory, so the limits hold per environment. A share of each environment is the same share of all
 * of them: one identity gets a small part of a function, however many requests it sends at a time. The throttle of the
 * HTTP API limits the total.
 *
 * The time is that in which the thread did not wait, and a bounded part of the wait for the tables: slow tables are no
 * fault of the sender. An identity is admitted while its account is not overdrawn, and pays when its answer is ready.
 * So the overdraft is one request. CPU time alone would not do: with 256 MB of memory the environment is occupied seven
 * times as long. Accounts in a table would cost a read and a write per heartbeat, and machines of a site share one
 * source address.
 *
 * system:masters is exempt, as in upstream's flow schema of that name: the emergency token, and simulated fleets that
 * use it. Our own probes have limits of their own, far above what they send: a refused probe looks like a failing
 * heartbeat path.
 */
import * as status from '../kubernetes/status.ts';
import { NODES_GROUP } from './authorize.ts';
import { PROBE_GROUP } from './probe-identity.ts';
import type { UserInfo } from './user-info.ts';

export interface IdentityLimit {
  readonly rate: RequestLimit;
  readonly time: TimeShare;
}

/** Kinds of identities: each has limits of its own, and is a value of a metric's dimension. */
export type IdentityKind = 'node' | 'probe' | 'person';
export type RequestLimits = Readonly<Record<IdentityKind, IdentityLimit>>;

/**
 * A kubelet sends about fifty requests at start and then a few per minute. kubectl reads all discovery and OpenAPI
 * documents at once. Helm and kube-state-metrics list every kind at their start: seconds of computing. `person`
 * includes service accounts.
 */
export const API_LIMITS: RequestLimits = {
  node: { rate: { ratePerSecond: 10, burst: 100 }, time: { share: 0.2, burstMs: 2_000, waitMsMax: 25 } },
  probe: { rate: { ratePerSecond: 10, burst: 100 }, time: { share: 0.2, burstMs: 5_000, waitMsMax: 25 } },
  person: { rate: { ratePerSecond: 50, burst: 300 }, time: { share: 0.5, burstMs: 20_000, waitMsMax: 50 } },
};

/** The same for a process that serves many requests at a time: one that waits for the tables occupies nothing. */
export const CONCURRENT_API_LIMITS: RequestLimits = {
  node: withoutWaits(API_LIMITS.node),
  probe: withoutWaits(API_LIMITS.probe),
  person: withoutWaits(API_LIMITS.person),
};

/**
 * A node renews its Lease every ten seconds. When a renewal fails, it may retry ten times in a row. A heartbeat
 * computes for a millisecond or two, and waits some milliseconds for its write. One of each second remains within the
 * share of a node while the tables are slow.
 */
export const HEARTBEAT_LIMITS: RequestLimits = {
  node: { rate: { ratePerSecond: 1, burst: 20 }, time: { share: 0.05, burstMs: 500, waitMsMax: 25 } },
  probe: { rate: { ratePerSecond: 10, burst: 50 }, time: { share: 0.2, burstMs: 5_000, waitMsMax: 25 } },
  person: { rate: { ratePerSecond: 10, burst: 50 }, time: { share: 0.1, burstMs: 2_000, waitMsMax: 25 } },
};

/** Identities in memory. The least recent one is dropped first; its account then restarts. */
const IDENTITIES_MAX = 20_000;
const EXEMPT_GROUP = 'system:masters';

/**
 * Requests of one environment overlap by less than this. A time that is further back is that of a clock that was set
 * back. Milliseconds.
 */
const OVERLAP_MS = 5_000;

interface Account {
  readonly kind: IdentityKind;
  /** Latest time of a request. Epoch milliseconds. */
  seenAtMs: number;
  /** When the bucket of requests is full again. Epoch milliseconds. */
  requestsFullAtMs?: number;
  /** When the bucket of time is full again. Epoch milliseconds. */
  timeFullAtMs?: number;
}

/** A request that was refused because its identity is over its limit. */
export interface RefusedRequest {
  readonly kind: IdentityKind;
  readonly username: string;
  /** Which limit: of the rate of requests, or of the time that they use. */
  readonly over: 'rate' | 'time';
}

/** The account of one request. */
export interface Visit {
  /** @throws the Status 429 with Retry-After */
  admit(user: UserInfo): void;
  /** A batch carries heartbeats of so many nodes: each of them pays its part. */
  carries(nodes: number): void;
  /** The answer is ready. The identity pays for the time. Resolves when a refusal is reported; usually at once. */
  end(nowMs: number): Promise<void> | undefined;
}

export interface RequestThrottle {
  /** A request arrives. `isTimed`: false for an item of a batch. The batch pays for its time. */
  begin(nowMs: number, isTimed?: boolean): Visit;
}

/** Time in which this thread did not wait for an event, since it started. Milliseconds. */
export const systemBusyMs = (): number => performance.eventLoopUtilization().active;

export interface ThrottleOptions {
  /** Time that this thread has computed, from any origin. Milliseconds. Absent: only the rate is limited. */
  readonly busyMs?: (() => number) | undefined;
  /** Reports a refusal. */
  readonly onRefused?: ((refused: RefusedRequest, nowMs: number) => Promise<void> | undefined) | undefined;
}

export function requestThrottle(
  limits: RequestLimits,
  { busyMs = () => 0, onRefused }: ThrottleOptions = {},
): RequestThrottle {
  /** By username, least recent first. */
  const accounts = new Map<string, Account>();
  const time = sharedTime(busyMs);

  function accountOf({ username, groups }: UserInfo, nowMs: number): Account {
    const account = accounts.get(username) ?? { kind: kindOf(groups), seenAtMs: nowMs };
    followClock(account, nowMs);
    accounts.delete(username);
    accounts.set(username, account);
    if (accounts.size > IDENTITIES_MAX) accounts.delete(accounts.keys().next().value as string);
    return account;
  }

  return {
    begin(beganAtMs, isTimed = true) {
      const timed = isTimed ? time.begin() : undefined;
      let account: Account | undefined;
      let nodes = 1;
      let reported: Promise<void> | undefined;

      const refuse = ({ username }: UserInfo, over: RefusedRequest['over'], retryAfterSeconds: number): never => {
        const { kind } = account!;
        reported = onRefused?.({ kind, username, over }, beganAtMs);
        throw status.tooManyRequests(`${refusalText(username, limits[kind], over)}, please try again later`, {
          retryAfterSeconds,
        });
      };

      return {
        admit(user) {
          if (user.groups.includes(EXEMPT_GROUP)) return;
          account = accountOf(user, beganAtMs);
          const { rate, time } = limits[account.kind];
          const ofTime = admitTime(account.timeFullAtMs, beganAtMs, time);
          if (ofTime.kind === 'refused') refuse(user, 'time', ofTime.retryAfterSeconds);
          const ofRate = admitRequest(account.requestsFullAtMs, beganAtMs, rate);
          if (ofRate.kind === 'refused') return refuse(user, 'rate', ofRate.retryAfterSeconds);
          account.requestsFullAtMs = ofRate.fullAtMs;
        },
        carries(count) {
          nodes = Math.max(1, count);
        },
        end(nowMs) {
          const usedMs = timed?.end();
          if (account !== undefined && usedMs !== undefined) {
            followClock(account, nowMs);
            const used = { busyMs: usedMs / nodes, elapsedMs: (nowMs - beganAtMs) / nodes };
            const limit = limits[account.kind].time;
            account.timeFullAtMs = chargeTime(account.timeFullAtMs, used, { nowMs, limit });
          }
          return reported;
        },
      };
    },
  };
}

function withoutWaits({ rate, time }: IdentityLimit): IdentityLimit {
  return { rate, time: { ...time, waitMsMax: 0 } };
}

/**
 * When the clock was set back, the buckets move with it. Otherwise a live node would be refused until it has caught up.
 */
function followClock(account: Account, nowMs: number): void {
  const backMs = account.seenAtMs - nowMs;
  account.seenAtMs = backMs > OVERLAP_MS ? nowMs : Math.max(account.seenAtMs, nowMs);
  if (backMs <= OVERLAP_MS) return;
  if (account.requestsFullAtMs !== undefined) account.requestsFullAtMs -= backMs;
  if (account.timeFullAtMs !== undefined) account.timeFullAtMs -= backMs;
}

const kindOf = (groups: readonly string[]): IdentityKind =>
  groups.includes(NODES_GROUP) ? 'node' : groups.includes(PROBE_GROUP) ? 'probe' : 'person';

function refusalText(username: string, { rate, time }: IdentityLimit, over: RefusedRequest['over']): string {
  const limit =
    over === 'rate'
      ? `limit is ${rate.ratePerSecond} requests per second after a burst of ${rate.burst}`
      : `limit is ${100 * time.share} % of the time of a process after a burst of ${time.burstMs} ms`;
  return `${status.quote(username)} sends too many requests: ${limit}`;
}

/**
 * Limits the requests of one identity: a token bucket, stored as one number, the time at which it is full again (GCRA,
 * as in limiter.ts, with a burst). A machine that sends too many requests slows down only itself.
 */
export interface RequestLimit {
  readonly ratePerSecond: number;
  /** Requests accepted at once after an idle time; at least 1. */
  readonly burst: number;
}

export type RequestAdmission =
  | { readonly kind: 'admitted'; readonly fullAtMs: number }
  /** In seconds, whole, at least 1: for Retry-After. */
  | { readonly kind: 'refused'; readonly retryAfterSeconds: number };

/** @param fullAtMs result of the previous request; undefined for an identity without a recent request */
export function admitRequest(fullAtMs: number | undefined, nowMs: number, limit: RequestLimit): RequestAdmission {
  const intervalMs = 1_000 / limit.ratePerSecond;
  const nextMs = Math.max(fullAtMs ?? nowMs, nowMs) + intervalMs;
  const waitMs = nextMs - nowMs - limit.burst * intervalMs;
  return waitMs > 1e-6
    ? { kind: 'refused', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) }
    : { kind: 'admitted', fullAtMs: nextMs };
}

/**
 * Limits the time that one identity uses of an execution environment, whatever it sends. An environment serves one
 * request at a time, so a share of its time is a share of both its CPU and the concurrency of the function.
 *
 * A token bucket in milliseconds, stored as one number: the time at which it is full again (GCRA). What a request uses
 * is known at its end. So a request is admitted while the bucket is not overdrawn, and then pays. The overdraft is
 * bounded by one request.
 */
export interface TimeShare {
  /** The share of the time of one environment: 0.05 is a twentieth. */
  readonly share: number;
  /** Time that may be used at once after an idle time. Milliseconds. */
  readonly burstMs: number;
  /**
   * Most of a request's wait for the tables that counts, in milliseconds. All of a usual wait, because the environment
   * is occupied meanwhile. Not the wait for tables that are slow: that is no fault of the sender.
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
 * Longest refusal after one request. Below the shortest grace period: a node that is refused by mistake can still send
 * its heartbeat. Milliseconds.
 */
const REFUSED_MS_MAX = 30_000;

const windowMs = ({ share, burstMs }: TimeShare): number => burstMs / share;

/**
 * @param fullAtMs result of the previous charge; undefined for an identity without a recent request. Epoch milliseconds
 */
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
  const waitMs = Math.min(limit.waitMsMax, Math.max(0, used.elapsedMs - used.busyMs));
  const chargedMs = (used.busyMs + waitMs) / limit.share;
  return Math.min(Math.max(fullAtMs ?? nowMs, nowMs) + chargedMs, nowMs + windowMs(limit) + REFUSED_MS_MAX);
}

/**
 * Computing time of a process, divided among the requests that it serves at the same time. Which of them a process
 * computes for is not known. Each pays an equal part while it is served. Together they pay what was computed, once. An
 * execution environment of Lambda serves one request at a time, which pays all of it.
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
