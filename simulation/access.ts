/**
 * Who asks in a simulation: machines, the operator and node-monitor's probe, each by a token of its own. The token of a
 * heartbeat that a relay sends has the claims of a real one, without a signature.
 */
import { createHash } from 'node:crypto';
import type { ProbeCredentials } from '../functions/node-monitor/probes.ts';
import type { Authentication, Authenticator } from '../shared/access/authenticator.ts';
import { NODE_USER_PREFIX } from '../shared/access/authorize.ts';
import { BEAT_ONLY_EXTRA, BODY_SHA256_EXTRA } from '../shared/access/node-identity.ts';
import { boundTokenClaims, nodeTokenVerdict } from '../shared/access/node-token.ts';
import { PROBE_GROUP, PROBE_USER } from '../shared/access/probe-identity.ts';
import type { UserInfo } from '../shared/access/user-info.ts';

export const OPERATOR = 'operator';
export const PROBE = 'probe';
/** Of every hub: its rights are those of its bindings. */
export const HUB = 'hub';
const BEARER = 'Bearer ';
const CLUSTER_ID = 'sim';
const BOUND = 'bound.';
/** Algorithm and key of a signature that no simulated token has. */
const HEADER = { alg: 'EdDSA', kid: 'k'.repeat(43) };

/** SHA-256 in base64url. */
export const sha256Of = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('base64url');

const NODE_GROUPS = ['system:nodes', 'system:authenticated'];

/** Machines ask as kubelets do: what a node may touch is decided by its name. */
function userOf(who: string): UserInfo {
  if (who === OPERATOR) return { username: who, groups: ['system:masters', 'system:authenticated'] };
  if (who === PROBE) return { username: PROBE_USER, groups: [PROBE_GROUP, 'system:authenticated'] };
  if (who === HUB) return { username: HUB, groups: ['system:authenticated'] };
  return { username: `${NODE_USER_PREFIX}${who}`, groups: NODE_GROUPS };
}

/** The token of a machine for one heartbeat with this body (docs/decisions/0040). */
export function boundToken(name: string, body: string, nowMs: number): string {
  const claims = boundTokenClaims(
    `${NODE_USER_PREFIX}${name}`,
    { clusterId: CLUSTER_ID, bodySha256: sha256Of(body) },
    nowMs,
  );
  return BOUND + Buffer.from(JSON.stringify(claims)).toString('base64url');
}

function boundAuthentication(token: string, nowMs: number): Authentication {
  const claims = JSON.parse(Buffer.from(token.slice(BOUND.length), 'base64url').toString('utf8'));
  const verdict = nodeTokenVerdict(HEADER, claims, { nowMs, clusterId: CLUSTER_ID, acceptsBeatTokens: true });
  if (verdict.kind === 'refused') return verdict;
  const { username, bodySha256 = '' } = verdict.claims;
  const extra = { [BEAT_ONLY_EXTRA]: ['true'], [BODY_SHA256_EXTRA]: [bodySha256] };
  return { kind: 'authenticated', user: { username, groups: NODE_GROUPS, extra } };
}

export const headersOf = (who: string): Record<string, string> => ({ authorization: `${BEARER}${who}` });

/** node-monitor's probe, as anybody here. */
export const probeCredentials: ProbeCredentials = { bearer: async () => PROBE, refused: () => {} };

/** The token of somebody is their name: there is no secret to keep in a simulation. */
export const simulationAuthenticator: Authenticator = {
  authenticate: async (headers, nowMs): Promise<Authentication> => {
    const header = headers['authorization'];
    if (header === undefined) return { kind: 'anonymous' };
    if (!header.startsWith(BEARER)) return { kind: 'refused', reason: 'not a bearer token' };
    const token = header.slice(BEARER.length);
    if (token.startsWith(BOUND)) return boundAuthentication(token, nowMs);
    return { kind: 'authenticated', user: userOf(token) };
  },
};
