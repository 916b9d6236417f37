/** Requests of the agent to the Kubernetes API; every failure is an outcome the loops plan for. */
export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query, beginning with a slash. */
  readonly path: string;
  readonly body?: unknown;
  /** Of the body; application/json unless said. */
  readonly contentType?: string;
  /** An answer later than this counts as none. Milliseconds. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type KubeAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** Parsed JSON; undefined when there was none. */
      readonly body: unknown;
      /** What the server asks us to wait before the next request. Milliseconds. */
      readonly retryAfterMs?: number;
    }
  /** No answer: refused connection, time-out, broken TLS. */
  | { readonly kind: 'failed'; readonly cause: unknown };

export interface KubeApi {
  send(request: KubeRequest): Promise<KubeAnswer>;
  /** Closes the connections, so that the next request dials again. */
  reconnect(): void;
}
