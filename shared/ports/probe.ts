export type ProbeOutcome =
  | { readonly kind: 'accepted' }
  /** Refused, lost or late; the reason is for the log. */
  | { readonly kind: 'failed'; readonly reason: string };

/** A beat of our own, sent through the public endpoint exactly as a node sends its own. Never throws. */
export interface Probe {
  beat(): Promise<ProbeOutcome>;
}

/** What a probe proves itself with. */
export interface ProbeCredentials {
  /** For the next request. Rejects when there is nothing to prove it with. */
  bearer(nowMs: number): Promise<string>;
  /** The endpoint answered 401 to this one. */
  refused(bearer: string, nowMs: number): void;
}
