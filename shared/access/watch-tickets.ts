import type { UserInfo } from './user-info.ts';

/** The one watch that a ticket permits, as the API parsed and authorized it. */
export interface WatchAdmission {
  readonly user: UserInfo;
  /** Who impersonates the user; absent: the user itself was authenticated. */
  readonly caller?: UserInfo;
  /** Path and query, exactly as the client will request them. */
  readonly target: string;
}

export type TicketVerdict =
  | { readonly kind: 'valid'; readonly user: UserInfo; readonly caller?: UserInfo }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * Short-lived, signed permission to open one watch at another endpoint. The API redirects a watch there. Clients drop
 * their credentials on a redirect to another host, so the ticket replaces them.
 */
export interface WatchTicketIssuer {
  /** Rejects if there is no key to sign with. */
  issue(admission: WatchAdmission, nowMs: number): Promise<string>;
}

/** Verifies tickets. It has no private key, so it cannot issue one. */
export interface WatchTicketVerifier {
  verify(ticket: string, target: string, nowMs: number): Promise<TicketVerdict>;
}
