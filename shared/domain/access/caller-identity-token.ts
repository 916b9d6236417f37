/**
 * Tokens of people with AWS credentials: a pre-signed GetCallerIdentity request of STS, as EKS uses them. The token
 * holds no secret of theirs; sending it on proves to us, by STS's own answer, who signed it.
 *
 * Everything about the URL is checked before it is asked: we send a request to where it points, so it may point to STS
 * and ask who one is, and nothing else. The signed header x-k8s-aws-id binds it to this cluster.
 *
 * Source: kubernetes-sigs/aws-iam-authenticator pkg/token; IAM User Guide, "Signature Version 4: query string".
 */
import { parseRfc3339 } from '../rfc3339.ts';

export const CALLER_IDENTITY_PREFIX = 'k8s-aws-v1.';
/** The signed header that names the cluster. */
export const CLUSTER_HEADER = 'x-k8s-aws-id';
/** Validity of a token after its signature, the same as in STS. Seconds. */
export const CALLER_IDENTITY_SECONDS = 900;
/** How far ahead of ours a signer's clock may be. Seconds. */
export const SIGNER_CLOCK_SKEW_SECONDS = 300;
/** Longer tokens are refused unread. A session token of a role chain takes about 1,500 characters. */
export const CALLER_IDENTITY_CHARACTERS_MAX = 8_192;

/** What a pre-signed request of this kind consists of. */
const PARAMETERS = new Set([
  'action',
  'version',
  'x-amz-algorithm',
  'x-amz-credential',
  'x-amz-date',
  'x-amz-expires',
  'x-amz-security-token',
  'x-amz-signature',
  'x-amz-signedheaders',
]);
/** The global endpoint, regional ones, FIPS and China; never another service, never another name. */
const STS_HOST = /^sts(?:-fips)?(?:\.[a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com(?:\.cn)?$/;

export type CallerIdentityToken =
  | {
      readonly kind: 'askable';
      /** To be sent as GET, with CLUSTER_HEADER. */
      readonly url: string;
      readonly host: string;
      /** When the token stops being good. */
      readonly goodUntilMs: number;
    }
  /** Not of this kind at all: another authenticator's. */
  | { readonly kind: 'other' }
  | { readonly kind: 'refused'; readonly reason: string };

const refused = (reason: string): CallerIdentityToken => ({ kind: 'refused', reason });

/** Reads `20260101T000000Z`; undefined when it is none. */
function signedAtMs(text: string): number | undefined {
  const [whole, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text) ?? [];
  return whole === undefined ? undefined : parseRfc3339(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

function decoded(payload: string): string | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(payload)) return undefined;
  try {
    return atob(payload.replaceAll('-', '+').replaceAll('_', '/'));
  } catch {
    return undefined;
  }
}

export function readCallerIdentityToken(token: string, nowMs: number): CallerIdentityToken {
  if (!token.startsWith(CALLER_IDENTITY_PREFIX)) return { kind: 'other' };
  if (token.length > CALLER_IDENTITY_CHARACTERS_MAX) return refused('token too long');
  const text = decoded(token.slice(CALLER_IDENTITY_PREFIX.length));
  if (text === undefined) return refused('not base64url');
  // As text first: what a URL parser would repair (tabs, backslashes, credentials, ports) is refused.
  const match = /^https:\/\/([a-z0-9.-]+)\/\?([!-~]+)$/.exec(text);
  const [, host = '', query = ''] = match ?? [];
  if (match === null) return refused('not an https URL of a host, the root path and a query');
  if (!STS_HOST.test(host)) return refused('host is not STS');

  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    const key = name.toLowerCase();
    if (!PARAMETERS.has(key)) return refused('unexpected query parameter');
    if (parameters.has(key)) return refused('repeated query parameter');
    parameters.set(key, value);
  }
  if (parameters.get('action') !== 'GetCallerIdentity') return refused('action is not GetCallerIdentity');
  if (parameters.get('version') !== '2011-06-15') return refused('version is not 2011-06-15');
  if (parameters.get('x-amz-algorithm') !== 'AWS4-HMAC-SHA256') return refused('unknown signature algorithm');
  const signedHeaders = (parameters.get('x-amz-signedheaders') ?? '').toLowerCase().split(';');
  if (!signedHeaders.includes(CLUSTER_HEADER)) return refused('the cluster is not signed');
  if (!signedHeaders.includes('host')) return refused('the host is not signed');
  const expires = parameters.get('x-amz-expires') ?? '';
  if (!/^\d{1,3}$/.test(expires) || Number(expires) > CALLER_IDENTITY_SECONDS) return refused('expiry out of range');
  const atMs = signedAtMs(parameters.get('x-amz-date') ?? '');
  if (atMs === undefined) return refused('no date of signing');
  const goodUntilMs = atMs + CALLER_IDENTITY_SECONDS * 1_000;
  if (nowMs >= goodUntilMs) return refused('token has expired');
  if (atMs - nowMs > SIGNER_CLOCK_SKEW_SECONDS * 1_000) return refused('token was signed in the future');
  return { kind: 'askable', url: text, host, goodUntilMs };
}
