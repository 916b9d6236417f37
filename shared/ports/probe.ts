export type ProbeOutcome =
  | { readonly kind: 'accepted' }
  /** Refused, lost or late; the reason is for the log. */
  | { readonly kind: 'failed'; readonly reason: string };

/** A beat of our own, sent through the public endpoint exactly as a node sends its own. Never throws. */
export interface Probe {
  beat(): Promise<ProbeOutcome>;
}
