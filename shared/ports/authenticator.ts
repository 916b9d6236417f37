import type { UserInfo } from '../domain/access/user-info.ts';
export type Authentication =
  | { readonly kind: 'authenticated'; readonly user: UserInfo }
  /** No credentials were sent. */
  | { readonly kind: 'anonymous' }
  /** Credentials were sent and do not hold; the reason is for our log, never for the answer. */
  | { readonly kind: 'refused'; readonly reason: string };

/** Says who sent a request, from its headers (lower-case names). */
export interface Authenticator {
  authenticate(headers: Readonly<Record<string, string>>, nowMs: number): Promise<Authentication>;
}
