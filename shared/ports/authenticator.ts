import type { UserInfo } from '../domain/access/user-info.ts';
export type Authentication =
  | {
      readonly kind: 'authenticated';
      readonly user: UserInfo;
      /** The audiences that were asked for and that the token is for. Absent: its kind of token has none. */
      readonly audiences?: readonly string[];
    }
  /** No credentials were sent. */
  | { readonly kind: 'anonymous' }
  /** Credentials were sent and are invalid; the reason is for our log, never for the response. */
  | { readonly kind: 'refused'; readonly reason: string };

/** Identifies the sender of a request by its headers (lower-case names). */
export interface Authenticator {
  /** @param audiences of which a token must name one. Absent: that of the API */
  authenticate(
    headers: Readonly<Record<string, string>>,
    nowMs: number,
    audiences?: readonly string[],
  ): Promise<Authentication>;
}
