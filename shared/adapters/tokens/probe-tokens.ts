/**
 * Credentials of node-monitor's probes: short-lived tokens, signed with the key of the process, as nodes do
 * (docs/decisions/0009-keys-of-our-own-processes.md). A token is reused until it expires, so most probes need no
 * signature. The store is accessed once per key.
 */
import { isUsable, type TokenClaims, tokenClaims } from '../../domain/access/node-token.ts';
import { PROBE_USER } from '../../domain/access/probe-identity.ts';
import type { ProbeCredentials } from '../../ports/probe.ts';
import type { ProcessKeys, SigningKey } from './process-keys.ts';

/**
 * A refused key is replaced, because it may have been removed, but not before this age: an environment that has just
 * read the keys does not know a new one for some seconds, and each new key is a write. Milliseconds.
 */
const REPLACED_AFTER_MS = 60_000;

interface Made {
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
  let made: Made | undefined;
  return {
    async bearer(nowMs) {
      if (made !== undefined && isUsable(made.claims, nowMs)) return made.token;
      const key = await keys.current(nowMs);
      const keySinceMs = made?.key === key ? made.keySinceMs : nowMs;
      const claims = tokenClaims(PROBE_USER, clusterId, nowMs);
      made = { token: tokenOf(key, claims), claims, key, keySinceMs };
      return made.token;
    },
    refused(bearer, nowMs) {
      if (made?.token !== bearer || Math.abs(nowMs - made.keySinceMs) < REPLACED_AFTER_MS) return;
      keys.forget(made.key);
      made = undefined;
    },
  };
}

function tokenOf(key: SigningKey, claims: TokenClaims): string {
  const text = `${part({ alg: 'EdDSA', typ: 'JWT', kid: key.keyId })}.${part(claims)}`;
  return `${text}.${key.sign(text)}`;
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
