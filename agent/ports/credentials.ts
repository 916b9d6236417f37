/**
 * What a token is for. `all`: any request of this node. `beat`: renewing its Lease, nothing else. `boundBeat`: one
 * heartbeat with this body, for about a minute; a relay may hold it.
 */
export type TokenUse = { readonly kind: 'all' | 'beat' } | { readonly kind: 'boundBeat'; readonly body: Uint8Array };

/** Authenticates the requests of this machine. */
export interface Credentials {
  /** The bearer token of the next request. Rejects while no token can be obtained. */
  bearer(use: TokenUse): Promise<string>;
  /**
   * Called with every answer. True if the token was refused and another one may be accepted: the request is worth one
   * retry. `serverTimeMs`: Date of the answer, milliseconds since the Unix epoch. `token`: the token of the request.
   */
  answered(answer: { readonly status: number; readonly serverTimeMs?: number; readonly token: string }): boolean;
}
