/**
 * How node-monitor's probes prove themselves: as nodes do, by short tokens signed with a key of their own
 * (docs/decisions/0009-keys-of-our-own-processes.md). A token is used while it lasts, so a probe costs no signature, and no read
 * or write of the store but once in the life of a key.
 */
import { NODE_TOKEN_LIFE_SECONDS_MAX } from '../../domain/node-token.ts';
import { PROBE_USER } from '../../domain/probe-identity.ts';
import type { ProbeCredentials } from '../../ports/probe.ts';
import type { ProcessKeys, SigningKey } from './process-keys.ts';

/** A token is replaced this long before its end: it is on its way for a while. Milliseconds. */
const REPLACED_BEFORE_END_MS = 60_000;
/**
 * A key that is refused is given up, since it may have been removed, but not before it was in use for so long: an
 * environment that has just looked does not know it for some seconds, and each new key is a write. Milliseconds.
 */
const GIVEN_UP_AFTER_MS = 60_000;

interface Made {
  readonly token: string;
  readonly key: SigningKey;
  /** When the key was first used. */
  readonly keySinceMs: number;
  readonly atMs: number;
  readonly untilMs: number;
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
      // One from the future was made before the clock was set back.
      if (made !== undefined && nowMs < made.untilMs && nowMs >= made.atMs - REPLACED_BEFORE_END_MS) return made.token;
      const key = await keys.current(nowMs);
      const keySinceMs = made?.key === key ? made.keySinceMs : nowMs;
      made = { ...tokenOf(key, clusterId, nowMs), key, keySinceMs, atMs: nowMs };
      return made.token;
    },
    refused(bearer, nowMs) {
      if (made?.token !== bearer || Math.abs(nowMs - made.keySinceMs) < GIVEN_UP_AFTER_MS) return;
      keys.forget(made.key);
      made = undefined;
    },
  };
}

function tokenOf(key: SigningKey, clusterId: string, nowMs: number): Pick<Made, 'token' | 'untilMs'> {
  const iat = Math.floor(nowMs / 1_000);
  const exp = iat + NODE_TOKEN_LIFE_SECONDS_MAX;
  const header = { alg: 'EdDSA', typ: 'JWT', kid: key.keyId };
  const text = `${part(header)}.${part({ iss: PROBE_USER, sub: PROBE_USER, aud: clusterId, iat, exp })}`;
  return { token: `${text}.${key.sign(text)}`, untilMs: exp * 1_000 - REPLACED_BEFORE_END_MS };
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
