import type { UserInfo } from '../domain/access/user-info.ts';

/** What a ticket admits to: one watch, as the API understood and authorized it. */
export interface WatchAdmission {
  readonly user: UserInfo;
  /** Path and query, exactly as they will be asked for. */
  readonly target: string;
}

export type TicketVerdict =
  | { readonly kind: 'valid'; readonly user: UserInfo }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * Short-lived, signed permission to open one watch elsewhere. The API answers a watch with a redirect; clients that drop
 * their credentials on the way to another host have the ticket.
 */
export interface WatchTicketIssuer {
  /** Rejects when there is no key to sign it with. */
  issue(admission: WatchAdmission, nowMs: number): Promise<string>;
}

/** The other side: it knows no key by which it could make a ticket. */
export interface WatchTicketVerifier {
  verify(ticket: string, target: string, nowMs: number): Promise<TicketVerdict>;
}
