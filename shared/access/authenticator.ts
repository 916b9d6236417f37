import type { UserInfo } from './user-info.ts';
export type Authentication =
  | {
      readonly kind: 'authenticated';
      readonly user: UserInfo;
      /** The requested audiences that the token names. Absent: tokens of its kind have none. */
      readonly audiences?: readonly string[];
    }
  /** No credentials were sent. */
  | { readonly kind: 'anonymous' }
  /** Credentials were sent and are invalid; the reason is for our log, never for the response. */
  | {
      readonly kind: 'refused';
      readonly reason: string;
      /** It is not valid at this time: by another clock it could be. */
      readonly isByClock?: boolean;
    };

/** Identifies the sender of a request by its headers (lower-case names). */
export interface Authenticator {
  /** @param audiences a token must name one of them. Absent: that of the API */
  authenticate(
    headers: Readonly<Record<string, string>>,
    nowMs: number,
    audiences?: readonly string[],
  ): Promise<Authentication>;
}
