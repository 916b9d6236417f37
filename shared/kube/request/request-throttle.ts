/**
 * Limits the request rate of each identity. The counts are in memory, so the limit holds per instance of a function.
 * The throttle of the HTTP API limits the total.
 *
 * Exempt, like in upstream's flow schema of that name: system:masters (the emergency token, and simulated fleets that
 * use it) and our own probes. A refused probe would look like a failing heartbeat path.
 */
import { NODES_GROUP } from '../../domain/access/node-restriction.ts';
import { PROBE_GROUP } from '../../domain/access/probe-identity.ts';
import { admitRequest, type RequestLimit } from '../../domain/access/request-limit.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import * as status from '../status.ts';

export interface RequestLimits {
  readonly node: RequestLimit;
  readonly person: RequestLimit;
}

/**
 * A kubelet sends about fifty requests at start and then a few per minute. kubectl reads all discovery and OpenAPI
 * documents at once.
 */
export const API_LIMITS: RequestLimits = {
  node: { ratePerSecond: 10, burst: 100 },
  person: { ratePerSecond: 50, burst: 300 },
};
/** A node renews its Lease every ten seconds. When a renewal fails, it may retry ten times in a row. */
export const HEARTBEAT_LIMITS: RequestLimits = {
  node: { ratePerSecond: 1, burst: 20 },
  person: { ratePerSecond: 10, burst: 50 },
};

/** Identities in memory. The least recent one is dropped first; its count then restarts. */
const IDENTITIES_MAX = 20_000;
const EXEMPT_GROUPS = new Set(['system:masters', PROBE_GROUP]);

export interface RequestThrottle {
  /** @throws the Status 429 with Retry-After */
  admit(user: UserInfo, nowMs: number): void;
}

/** Limits by username. `fullAt`: when the token bucket of each user is full again, least recent user first. */
export function requestThrottle(limits: RequestLimits): RequestThrottle {
  const fullAt = new Map<string, number>();
  return {
    admit({ username, groups }, nowMs) {
      if (groups.some((group) => EXEMPT_GROUPS.has(group))) return;
      const limit = groups.includes(NODES_GROUP) ? limits.node : limits.person;
      const admission = admitRequest(fullAt.get(username), nowMs, limit);
      if (admission.kind === 'refused') {
        const { retryAfterSeconds } = admission;
        throw status.tooManyRequests('this identity sends too many requests, please try again later', {
          retryAfterSeconds,
        });
      }
      fullAt.delete(username);
      fullAt.set(username, admission.fullAtMs);
      if (fullAt.size > IDENTITIES_MAX) fullAt.delete(fullAt.keys().next().value as string);
    },
  };
}
