/**
 * Tokens of users with AWS credentials: a pre-signed GetCallerIdentity request to STS, as in EKS. The token contains no
 * secret of the user. The authenticator sends the request to STS, and the response contains the ARN of the signer.
 *
 * The URL is checked completely before the request is sent, because a client chose it: its host must be STS and its
 * action GetCallerIdentity. The signed header x-k8s-aws-id binds the token to this cluster.
 *
 * Source: kubernetes-sigs/aws-iam-authenticator pkg/token; IAM User Guide, "Signature Version 4: query string".
 */
import { awsHost, REGION_PATTERN } from '../aws/connection.ts';
import { parseRfc3339 } from '../kubernetes/rfc3339.ts';

export const CALLER_IDENTITY_PREFIX = 'k8s-aws-v1.';
/** The signed header that names the cluster. */
export const CLUSTER_HEADER = 'x-k8s-aws-id';
/** Validity of a token after its signature, the same as in STS. Seconds. */
export const CALLER_IDENTITY_SECONDS = 900;
/** How far ahead of ours a signer's clock may be. Seconds. */
export const SIGNER_CLOCK_SKEW_SECONDS = 300;
/** Longer tokens are refused without parsing. A session token of a role chain has about 1,500 characters. */
export const CALLER_IDENTITY_CHARACTERS_MAX = 8_192;

/** The query parameters of a pre-signed GetCallerIdentity request, in lower case. */
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
const GLOBAL_STS_HOST = 'sts.amazonaws.com';
const REGIONAL_STS_HOST = new RegExp(`^(sts(?:-fips)?)\\.(${REGION_PATTERN})\\.`);

/** Whether a host is the global endpoint of STS, or a regional or FIPS endpoint in the domain of its region. */
function isStsHost(host: string): boolean {
  const [, service, region] = REGIONAL_STS_HOST.exec(host) ?? [];
  if (service === undefined || region === undefined) return host === GLOBAL_STS_HOST;
  return host === awsHost(service, region);
}

export type CallerIdentityToken =
  | {
      readonly kind: 'askable';
      /** Request it with GET and the header CLUSTER_HEADER. */
      readonly url: string;
      readonly host: string;
      /** When the token expires. Epoch milliseconds. */
      readonly goodUntilMs: number;
    }
  /** Another kind of token, for another authenticator. */
  | { readonly kind: 'other' }
  | { readonly kind: 'refused'; readonly reason: string };

const refused = (reason: string): CallerIdentityToken => ({ kind: 'refused', reason });

/** Epoch milliseconds of a time such as `20260101T000000Z`. Undefined for another format. */
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
  // The text is checked before it is parsed: a URL parser would accept tabs, backslashes, credentials and ports.
  const match = /^https:\/\/([a-z0-9.-]+)\/\?([!-~]+)$/.exec(text);
  const [, host = '', query = ''] = match ?? [];
  if (match === null) return refused('not an https URL of a host, the root path and a query');
  if (!isStsHost(host)) return refused('host is not STS');

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
