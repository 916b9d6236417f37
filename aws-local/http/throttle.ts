/**
 * How many requests per second an HTTP API accepts, as API Gateway limits them: a token bucket per route with settings
 * of its own, one for all other routes of the stage, and one of the account. A request without a token is answered 429.
 *
 * The service does not document whether the default settings of a stage apply to each route or to all of them together.
 * Here they share one bucket, which refuses earlier.
 *
 * Sources: API Gateway Developer Guide, "Throttle requests to your HTTP APIs for better throughput", "Amazon API
 * Gateway quotas" (10,000 requests per second and a bucket of 5,000 per account and Region).
 */

export interface RequestRate {
  readonly requestsPerSecond: number;
  readonly burstRequests: number;
}

export interface ThrottlingPlan {
  /** For routes without settings of their own. Undefined: only the limit of the account applies. */
  readonly defaultRoute: RequestRate | undefined;
  /** By route key. */
  readonly routes: Readonly<Record<string, RequestRate>>;
}

const ACCOUNT: RequestRate = { requestsPerSecond: 10_000, burstRequests: 5_000 };

class TokenBucket {
  readonly #rate: RequestRate;
  #tokens: number;
  #atMs: number;

  constructor(rate: RequestRate, nowMs: number) {
    this.#rate = rate;
    this.#tokens = rate.burstRequests;
    this.#atMs = nowMs;
  }

  hasToken(nowMs: number): boolean {
    const { requestsPerSecond, burstRequests } = this.#rate;
    const elapsedMs = Math.max(0, nowMs - this.#atMs);
    this.#tokens = Math.min(burstRequests, this.#tokens + (elapsedMs / 1_000) * requestsPerSecond);
    this.#atMs += elapsedMs;
    return this.#tokens >= 1;
  }

  consume(): void {
    this.#tokens -= 1;
  }
}

/** @returns whether a request on a route is accepted now */
export function requestThrottle(plan: ThrottlingPlan, nowMs: number): (routeKey: string, atMs: number) => boolean {
  const account = new TokenBucket(ACCOUNT, nowMs);
  const others = plan.defaultRoute === undefined ? undefined : new TokenBucket(plan.defaultRoute, nowMs);
  const own = new Map(Object.entries(plan.routes).map(([key, rate]) => [key, new TokenBucket(rate, nowMs)]));
  return (routeKey, atMs) => {
    const route = own.get(routeKey) ?? others;
    if (route?.hasToken(atMs) === false || !account.hasToken(atMs)) return false;
    route?.consume();
    account.consume();
    return true;
  };
}
