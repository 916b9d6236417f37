/** What the agent's own tokens say, how long one is used, and what the server's clock makes of ours (docs/security.md). */
import { NODE_USER_PREFIX } from '../../shared/domain/node-restriction.ts';
import { NODE_TOKEN_LIFE_SECONDS_MAX } from '../../shared/domain/node-token.ts';

/** A token is replaced this long before its end: it may be some requests old by then. Milliseconds. */
const REPLACED_BEFORE_END_MS = 60_000;
/** A smaller difference of clocks is not told from the way an answer takes and from whole seconds in Date. Milliseconds. */
const OFFSET_NOTICED_MS = 5_000;
/** Another offset than the one a token was made with, by which a refusal is explained. Milliseconds. */
const OFFSET_EXPLAINS_MS = 15_000;

export interface TokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string;
  readonly iat: number;
  readonly exp: number;
}

/** `serverNowMs`: our clock and the server's offset. */
export function tokenClaims(nodeName: string, clusterId: string, serverNowMs: number): TokenClaims {
  const name = `${NODE_USER_PREFIX}${nodeName}`;
  const iat = Math.floor(serverNowMs / 1_000);
  return { iss: name, sub: name, aud: clusterId, iat, exp: iat + NODE_TOKEN_LIFE_SECONDS_MAX };
}

/** Whether a token is still worth sending. One from the future was made before our clock was set back. */
export const isUsable = ({ iat, exp }: TokenClaims, serverNowMs: number): boolean =>
  serverNowMs < exp * 1_000 - REPLACED_BEFORE_END_MS && serverNowMs >= iat * 1_000 - REPLACED_BEFORE_END_MS;

/** By how much the server's clock is ahead of ours; 0 when there is no difference worth the name. Milliseconds. */
export function clockOffsetMs(serverTimeMs: number, nowMs: number): number {
  const offsetMs = serverTimeMs - nowMs;
  return Math.abs(offsetMs) < OFFSET_NOTICED_MS ? 0 : offsetMs;
}

/** Whether a token made with one offset was refused because the other is true. */
export const explainsRefusal = (madeWithOffsetMs: number, offsetMs: number): boolean =>
  Math.abs(madeWithOffsetMs - offsetMs) >= OFFSET_EXPLAINS_MS;
