/**
 * Credentials of node-monitor's probes: short-lived tokens, signed with the key of the process, as nodes do
 * (docs/decisions/0009-keys-of-our-own-processes.md). A token is reused until it expires, so most probes need no
 * signature. The store is accessed once per key.
 */
import { isUsable, type TokenClaims, tokenClaims } from '../../shared/access/node-token.ts';
import { PROBE_USER } from '../../shared/access/probe-identity.ts';
import type { ProcessKeys, SigningKey } from '../../shared/access/tokens/process-keys.ts';
import type { ProbeCredentials } from './probe.ts';

/**
 * A refused key is replaced, because it may have been removed. It is replaced only from this age on: the API may have
 * cached the keys some seconds before, without the new one, and each new key is a write. Milliseconds.
 */
const REPLACED_AFTER_MS = 60_000;

interface SignedToken {
  readonly token: string;
  readonly claims: TokenClaims;
  readonly key: SigningKey;
  /** When the key was first used. */
  readonly keySinceMs: number;
}

export function probeTokens({
  keys,
  clusterId,
}: {
  readonly keys: ProcessKeys;
  readonly clusterId: string;
}): ProbeCredentials {
  let current: SignedToken | undefined;
  return {
    async bearer(nowMs) {
      if (current !== undefined && isUsable(current.claims, nowMs)) return current.token;
      const key = await keys.current(nowMs);
      const keySinceMs = current?.key === key ? current.keySinceMs : nowMs;
      const claims = tokenClaims(PROBE_USER, clusterId, nowMs);
      current = { token: tokenOf(key, claims), claims, key, keySinceMs };
      return current.token;
    },
    refused(bearer, nowMs) {
      if (current?.token !== bearer || Math.abs(nowMs - current.keySinceMs) < REPLACED_AFTER_MS) return;
      keys.forget(current.key);
      current = undefined;
    },
  };
}

function tokenOf(key: SigningKey, claims: TokenClaims): string {
  const text = `${part({ alg: 'EdDSA', typ: 'JWT', kid: key.keyId })}.${part(claims)}`;
  return `${text}.${key.sign(text)}`;
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
