/** Connections of probes and hooks to a container. */
export interface HttpTarget {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export type HttpResult =
  | { readonly kind: 'answered'; readonly status: number; readonly body: string }
  /** A redirect to another host, which is not followed. */
  | { readonly kind: 'redirected'; readonly body: string }
  | { readonly kind: 'failed'; readonly message: string };

export interface ProbeClient {
  /** Follows redirects of the same host. Certificates are not verified. */
  httpGet(target: HttpTarget, timeoutMs: number): Promise<HttpResult>;
  /** Why there is no connection; undefined when there was one. */
  tcpConnect(host: string, port: number, timeoutMs: number): Promise<string | undefined>;
}
