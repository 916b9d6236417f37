import type { UserInfo } from '../domain/access/user-info.ts';
export type Authentication =
  | { readonly kind: 'authenticated'; readonly user: UserInfo }
  /** No credentials were sent. */
  | { readonly kind: 'anonymous' }
  /** Credentials were sent and are invalid; the reason is for our log, never for the response. */
  | { readonly kind: 'refused'; readonly reason: string };

/** Identifies the sender of a request by its headers (lower-case names). */
export interface Authenticator {
  authenticate(headers: Readonly<Record<string, string>>, nowMs: number): Promise<Authentication>;
}
