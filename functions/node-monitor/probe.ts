export type ProbeOutcome =
  | { readonly kind: 'accepted' }
  /** Refused, lost or late; the reason is for the log. */
  | { readonly kind: 'failed'; readonly reason: string };

/** Sends a beat through the public endpoint, exactly as a node does. Never throws. */
export interface Probe {
  beat(): Promise<ProbeOutcome>;
}

/** Credentials of a probe. */
export interface ProbeCredentials {
  /** The token for the next request. Rejects if there is none. */
  bearer(nowMs: number): Promise<string>;
  /** The endpoint answered 401 to this token. */
  refused(bearer: string, nowMs: number): void;
}
