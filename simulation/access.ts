/** Who asks in a simulation: machines, the operator and node-monitor's probe, each by a token of its own. */
import { PROBE_GROUP, PROBE_USER } from '../shared/domain/access/probe-identity.ts';
import type { UserInfo } from '../shared/domain/access/user-info.ts';
import type { Authentication, Authenticator } from '../shared/ports/authenticator.ts';
import type { ProbeCredentials } from '../shared/ports/probe.ts';

export const OPERATOR = 'operator';
export const PROBE = 'probe';
const BEARER = 'Bearer ';

/** Machines ask as kubelets do: what a node may touch is decided by its name. */
function userOf(who: string): UserInfo {
  if (who === OPERATOR) return { username: who, groups: ['system:masters', 'system:authenticated'] };
  if (who === PROBE) return { username: PROBE_USER, groups: [PROBE_GROUP, 'system:authenticated'] };
  return { username: `system:node:${who}`, groups: ['system:nodes', 'system:authenticated'] };
}

export const headersOf = (who: string): Record<string, string> => ({ authorization: `${BEARER}${who}` });

/** node-monitor's probe, as anybody here. */
export const probeCredentials: ProbeCredentials = { bearer: async () => PROBE, refused: () => {} };

/** The token of somebody is their name: there is no secret to keep in a simulation. */
export const simulationAuthenticator: Authenticator = {
  authenticate: async (headers): Promise<Authentication> => {
    const header = headers['authorization'];
    if (header === undefined) return { kind: 'anonymous' };
    if (!header.startsWith(BEARER)) return { kind: 'refused', reason: 'not a bearer token' };
    return { kind: 'authenticated', user: userOf(header.slice(BEARER.length)) };
  },
};
