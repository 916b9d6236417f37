/** Requests of the agent to the Kubernetes API. Failures are values, because the loops handle all of them. */
export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query, beginning with a slash. */
  readonly path: string;
  readonly body?: unknown;
  /** Type of the body. Default: application/json. */
  readonly contentType?: string;
  /** Asks for an answer without what was sent (`Prefer: return=minimal`, RFC 7240). A server may ignore it. */
  readonly prefersMinimal?: boolean;
  /** For how long a relay may collect the heartbeat. Milliseconds. Default: the relay decides. */
  readonly collectMs?: number;
  /** A renewal of this node's Lease. Its token is good for nothing else. */
  readonly heartbeat?: Heartbeat;
  /** A request without an answer in this time has failed. Milliseconds. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface Heartbeat {
  /** The interval that the machine follows, before jitter. Milliseconds. */
  readonly intervalMs: number;
  /**
   * The earliest time at which the last accepted heartbeat was stored; absent: none was accepted. Monotonic
   * milliseconds.
   */
  readonly storedAtMs?: number | undefined;
  /** It reports something about the site, or answers such reports: it does not wait for a relay. */
  readonly isUrgent?: boolean;
  /** Aborted when it becomes urgent: then it waits for a relay no longer. */
  readonly becomesUrgent?: AbortSignal | undefined;
}

export type KubeAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** Parsed JSON; undefined when there was none. */
      readonly body: unknown;
      /** The Retry-After of the answer. Milliseconds. */
      readonly retryAfterMs?: number;
      /** A relay passed it on. The relay may have made it up. */
      readonly isRelayed?: boolean;
      /** The same request was sent before and had no usable answer. It may have been stored. */
      readonly isRepeated?: boolean;
    }
  /** No answer: refused connection, time-out, broken TLS. */
  | { readonly kind: 'failed'; readonly cause: unknown };

export interface KubeApi {
  send(request: KubeRequest): Promise<KubeAnswer>;
  /** Closes the connections. The next request connects again. */
  reconnect(): void;
}
