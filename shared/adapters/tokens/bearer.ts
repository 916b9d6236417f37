/** Several kinds of bearer token behind one Authenticator: each is known by its form, before anything is looked up. */
import type { Authentication, Authenticator } from '../../ports/authenticator.ts';

export interface BearerScheme {
  /** Whether the token has this scheme's form. Cheap: asked for every request. */
  recognises(token: string): boolean;
  /** Answers `refused` or `authenticated`. */
  authenticate(token: string, nowMs: number): Promise<Authentication>;
}

const BEARER = 'bearer ';

/** The token of a bearer header; undefined when there is no such header, or it carries something else. */
export function bearerTokenOf(headers: Readonly<Record<string, string>>): string | undefined {
  const header = headers['authorization'];
  if (header === undefined || header.slice(0, BEARER.length).toLowerCase() !== BEARER) return undefined;
  return header.slice(BEARER.length).trim();
}

/** The first scheme that recognises a token decides; `otherwise` decides about all the rest, no header included. */
export function bearerSchemes(schemes: readonly BearerScheme[], otherwise: Authenticator): Authenticator {
  return {
    async authenticate(headers, nowMs) {
      const token = bearerTokenOf(headers);
      const scheme = token === undefined ? undefined : schemes.find((each) => each.recognises(token));
      if (token === undefined || scheme === undefined) return otherwise.authenticate(headers, nowMs);
      return scheme.authenticate(token, nowMs);
    },
  };
}
