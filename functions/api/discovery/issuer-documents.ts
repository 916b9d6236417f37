/**
 * How other programs verify tokens of service accounts: the discovery document and the keys. Kubernetes: "Configure
 * Service Accounts", issuer discovery; upstream pkg/serviceaccount/openidmetadata.go.
 *
 * Cost: a query of the keys, at most every CACHE_MS per process.
 */

import { ACCOUNT_ISSUER } from '../../../shared/access/account-token.ts';
import type { AccountKeys } from '../../../shared/access/account-tokens.ts';
import { hasEnded } from '../../../shared/access/process-key.ts';
import { type HttpRequest, type HttpResponse, json } from '../../../shared/kubernetes/http.ts';

const CACHE_MS = 30_000;
const DISCOVERY_PATH = '/.well-known/openid-configuration';
const KEYS_PATH = '/openid/v1/jwks';

/** Returns undefined for another path. */
export type AnswerIssuer = (path: string, request: HttpRequest, nowMs: number) => Promise<HttpResponse | undefined>;

export function issuerDocuments(keys: Pick<AccountKeys, 'all'>): AnswerIssuer {
  let known: { readonly atMs: number; readonly keys: Awaited<ReturnType<AccountKeys['all']>> } | undefined;

  async function keySet(nowMs: number): Promise<HttpResponse> {
    if (known === undefined || Math.abs(nowMs - known.atMs) >= CACHE_MS)
      known = { atMs: nowMs, keys: await keys.all() };
    const valid = known.keys.filter((key) => !hasEnded(key, nowMs));
    const jwks = valid.map(({ keyId, publicKey }) => ({ use: 'sig', kid: keyId, alg: 'ES256', ...publicKey }));
    return json(
      200,
      { keys: jwks },
      { 'content-type': 'application/jwk-set+json', 'cache-control': 'public, max-age=30' },
    );
  }

  return async (path, { headers }, nowMs) => {
    if (path === KEYS_PATH) return keySet(nowMs);
    if (path !== DISCOVERY_PATH) return undefined;
    return json(200, {
      issuer: ACCOUNT_ISSUER,
      jwks_uri: `https://${headers['host'] ?? ''}${KEYS_PATH}`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    });
  };
}
