/**
 * The claims of a node's token, a JWT signed with the node's own key. The probe of node-monitor uses the same form. The
 * claims are checked before the signature, because that check is cheap. Valid claims without a valid signature prove
 * nothing.
 *
 * Times are compared with the server's clock (nowMs). A machine with a clock beyond the tolerance is refused, and
 * corrects its clock by the Date header of the response.
 */

import { NODE_USER_PREFIX } from './authorize.ts';
import { isNodeName, type NodeKeyAlgorithm } from './node-identity.ts';
import { PROBE_USER } from './probe-identity.ts';

/** Maximum validity of a token. A stolen token can be used at most this long. Seconds. */
export const NODE_TOKEN_LIFE_SECONDS_MAX = 300;
/** Maximum difference between a machine's clock and ours, in either direction. Seconds. */
export const NODE_CLOCK_TOLERANCE_SECONDS = 60;
/** Longest token that is parsed. A genuine one has about 400 characters. */
export const NODE_TOKEN_CHARACTERS_MAX = 2_048;

/** Lifetime of a token that is bound to one heartbeat. A relay can delay the heartbeat this long. Seconds. */
export const BOUND_TOKEN_LIFE_SECONDS = 30;

/** Audience of a token that is good for heartbeats alone: for the Lease of its own node and nothing else. */
export const beatAudienceOf = (clusterId: string): string => `${clusterId}#beat`;

export interface NodeTokenClaims {
  /** `system:node:<name>`, or PROBE_USER. */
  readonly username: string;
  /** undefined for the token of the probe. */
  readonly nodeName: string | undefined;
  readonly keyId: string;
  readonly algorithm: NodeKeyAlgorithm;
  /** First and last moment at which the token is valid, clock tolerance included. Epoch milliseconds. */
  readonly fromMs: number;
  readonly throughMs: number;
  /** True: good for renewing the Lease of its own node and nothing else. */
  readonly isBeatOnly: boolean;
  /** SHA-256 of the only request body that it is good for, base64url. */
  readonly bodySha256: string | undefined;
}

export type NodeTokenVerdict =
  | { readonly kind: 'claims'; readonly claims: NodeTokenClaims }
  | { readonly kind: 'refused'; readonly reason: NodeTokenRefusal; readonly isByClock?: boolean };

export type NodeTokenRefusal =
  | 'algorithm not allowed'
  | 'header asks for what is not understood'
  | 'key id is no thumbprint'
  | 'issuer and subject are not one node'
  | 'for another audience'
  | 'body hash is no SHA-256 of a heartbeat'
  | 'times are not whole seconds in order'
  | 'lives too long'
  | 'not valid yet'
  | 'expired';

/**
 * A signer replaces its token this long before the token expires, because a request may last some seconds.
 * Milliseconds.
 */
const REPLACE_BEFORE_EXPIRY_MS = 60_000;

/** The claims that a machine signs. `iat` and `exp`: seconds since the epoch. */
export interface TokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string;
  readonly iat: number;
  readonly exp: number;
  /** SHA-256 of the only request body that the token is good for, base64url. */
  readonly body_sha256?: string;
}

/** Claims that are valid from now on. @param serverNowMs server time as the signer estimates it */
export function tokenClaims(username: string, audience: string, serverNowMs: number): TokenClaims {
  const iat = Math.floor(serverNowMs / 1_000);
  return { iss: username, sub: username, aud: audience, iat, exp: iat + NODE_TOKEN_LIFE_SECONDS_MAX };
}

/**
 * Claims of a token for one heartbeat. A relay that holds it cannot send another heartbeat with it, nor this one later
 * than the lifetime and the clock tolerance.
 */
export function boundTokenClaims(
  username: string,
  { clusterId, bodySha256 }: { readonly clusterId: string; readonly bodySha256: string },
  serverNowMs: number,
): TokenClaims {
  const claims = tokenClaims(username, beatAudienceOf(clusterId), serverNowMs);
  return { ...claims, exp: claims.iat + BOUND_TOKEN_LIFE_SECONDS, body_sha256: bodySha256 };
}

/** Whether the signer may still send a token. A token from the future was signed before the clock was set back. */
export const isUsable = ({ iat, exp }: TokenClaims, serverNowMs: number): boolean =>
  serverNowMs < exp * 1_000 - REPLACE_BEFORE_EXPIRY_MS && serverNowMs >= iat * 1_000 - REPLACE_BEFORE_EXPIRY_MS;

/** base64url of 32 bytes: a SHA-256. */
const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/;

const refused = (reason: NodeTokenRefusal): NodeTokenVerdict => ({ kind: 'refused', reason });
const byClock = (reason: NodeTokenRefusal): NodeTokenVerdict => ({ kind: 'refused', reason, isByClock: true });
const isSecond = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Checks all claims except the signature. `header` and `claims`: the two JSON objects of the token, not validated. */
export function nodeTokenVerdict(
  header: Readonly<Record<string, unknown>>,
  claims: Readonly<Record<string, unknown>>,
  at: {
    readonly nowMs: number;
    readonly clusterId: string;
    /** Whether tokens for heartbeats alone are accepted: by the function of heartbeats, and by no other. */
    readonly acceptsBeatTokens?: boolean;
  },
): NodeTokenVerdict {
  const { alg, kid, typ } = header;
  if (alg !== 'ES256' && alg !== 'EdDSA') return refused('algorithm not allowed');
  // RFC 7515 §4.1.11: a token with an unsupported critical extension must be refused. None is supported here.
  if ('crit' in header || 'b64' in header || (typ !== undefined && typ !== 'JWT')) {
    return refused('header asks for what is not understood');
  }
  if (typeof kid !== 'string' || !THUMBPRINT.test(kid)) return refused('key id is no thumbprint');
  const { iss, sub, aud, iat, exp, nbf } = claims;
  if (typeof sub !== 'string' || iss !== sub) return refused('issuer and subject are not one node');
  const nodeName = nodeNameIn(sub);
  if (nodeName === undefined && sub !== PROBE_USER) return refused('issuer and subject are not one node');
  // A token with several audiences would be valid for several clusters.
  const audience: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  const isBeatOnly =
    at.acceptsBeatTokens === true && nodeName !== undefined && audience === beatAudienceOf(at.clusterId);
  if (audience !== at.clusterId && !isBeatOnly) return refused('for another audience');
  const { body_sha256: bodySha256 } = claims;
  if (bodySha256 !== undefined && !(isBeatOnly && typeof bodySha256 === 'string' && THUMBPRINT.test(bodySha256))) {
    return refused('body hash is no SHA-256 of a heartbeat');
  }
  if (!isSecond(iat) || !isSecond(exp) || exp <= iat || (nbf !== undefined && !isSecond(nbf))) {
    return refused('times are not whole seconds in order');
  }
  if (exp - iat > NODE_TOKEN_LIFE_SECONDS_MAX) return refused('lives too long');
  const fromMs = (Math.max(iat, nbf ?? iat) - NODE_CLOCK_TOLERANCE_SECONDS) * 1_000;
  const throughMs = (exp + NODE_CLOCK_TOLERANCE_SECONDS) * 1_000 - 1;
  if (at.nowMs < fromMs) return byClock('not valid yet');
  if (at.nowMs > throughMs) return byClock('expired');
  const times = { fromMs, throughMs };
  return {
    kind: 'claims',
    claims: { username: sub, nodeName, keyId: kid, algorithm: alg, ...times, isBeatOnly, bodySha256 },
  };
}

function nodeNameIn(username: string): string | undefined {
  if (!username.startsWith(NODE_USER_PREFIX)) return undefined;
  const name = username.slice(NODE_USER_PREFIX.length);
  return isNodeName(name) ? name : undefined;
}
