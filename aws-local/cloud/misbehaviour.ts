/** How the local EC2 misbehaves on demand: by throttling, errors, silence, cut answers. */

export interface TokenBucket {
  readonly burst: number;
  readonly refillPerSecond: number;
}

/** Requests per action, as EC2 throttles them. */
export class RequestBuckets {
  #bucket: TokenBucket | undefined;
  readonly #levels = new Map<string, { tokens: number; atMs: number }>();

  constructor(bucket: TokenBucket | undefined) {
    this.#bucket = bucket;
  }

  set(bucket: TokenBucket | undefined): void {
    this.#bucket = bucket;
    this.#levels.clear();
  }

  /** False: the request is throttled. */
  acquire(action: string, nowMs: number): boolean {
    if (this.#bucket === undefined) return true;
    const { burst, refillPerSecond } = this.#bucket;
    const level = this.#levels.get(action) ?? { tokens: burst, atMs: nowMs };
    const refilled = level.tokens + (Math.max(0, nowMs - level.atMs) / 1_000) * refillPerSecond;
    const tokens = Math.min(burst, refilled);
    this.#levels.set(action, { tokens: tokens >= 1 ? tokens - 1 : tokens, atMs: nowMs });
    return tokens >= 1;
  }
}

/** Failures ordered for the next calls. */
export class OrderedFailures {
  #trouble: string | null = null;
  #failingCalls = Number.POSITIVE_INFINITY;
  #successfulCalls = 0;

  order(trouble: string | null, calls = Number.POSITIVE_INFINITY, after = 0): void {
    this.#trouble = trouble;
    this.#failingCalls = calls;
    this.#successfulCalls = after;
  }

  get trouble(): string | null {
    return this.#failingCalls > 0 ? this.#trouble : null;
  }

  /** Counts one call; null: it succeeds. */
  ofNextCall(): string | null {
    if (this.#successfulCalls > 0) {
      this.#successfulCalls -= 1;
      return null;
    }
    const { trouble } = this;
    if (trouble !== null) this.#failingCalls -= 1;
    return trouble;
  }
}
