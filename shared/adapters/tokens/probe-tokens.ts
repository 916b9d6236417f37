/**
 * How node-monitor's probes prove themselves: as nodes do, by short tokens signed with a key of their own
 * (docs/decisions/0009-keys-of-our-own-processes.md). A token is used while it lasts, so a probe costs no signature, and no read
 * or write of the store but once in the life of a key.
 */
import { isUsable, type TokenClaims, tokenClaims } from '../../domain/access/node-token.ts';
import { PROBE_USER } from '../../domain/access/probe-identity.ts';
import type { ProbeCredentials } from '../../ports/probe.ts';
import type { ProcessKeys, SigningKey } from './process-keys.ts';

/**
 * A key that is refused is given up, since it may have been removed, but not before it was in use for so long: an
 * environment that has just looked does not know it for some seconds, and each new key is a write. Milliseconds.
 */
const GIVEN_UP_AFTER_MS = 60_000;

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
      if (made?.token !== bearer || Math.abs(nowMs - made.keySinceMs) < GIVEN_UP_AFTER_MS) return;
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
