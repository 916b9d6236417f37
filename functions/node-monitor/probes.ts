/** Heartbeats of node-monitor's own, which show that the way of a heartbeat works. */
import { isUsable, type TokenClaims, tokenClaims } from '../../shared/access/node-token.ts';
import { PROBE_LEASE, PROBE_USER } from '../../shared/access/probe-identity.ts';
import type { ProcessKeys, SigningKey } from '../../shared/access/process-keys.ts';
import type { Clock } from '../../shared/clock.ts';

export type ProbeOutcome =
  | { readonly kind: 'accepted' }
  /** Refused, lost or late; the reason is for the log. */
  | { readonly kind: 'failed'; readonly reason: string };

/** Sends a beat through the public endpoint, exactly as a node does. Never throws. */
export interface Probe {
  beat(): Promise<ProbeOutcome>;
}

/** Credentials of a probe. */
export interface ProbeCredentials {
  /** The token for the next request. Rejects if there is none. */
  bearer(nowMs: number): Promise<string>;
  /** The endpoint answered 401 to this token. */
  refused(bearer: string, nowMs: number): void;
}

const COLLECTION = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
/** Timeout of a beat, and of obtaining its token. A slower beat is useless to a node. Milliseconds, each. */
const TIMEOUT_MS = 2_000;

export interface LeaseProbeOptions {
  /** Without a trailing slash. */
  readonly url: string;
  readonly credentials: ProbeCredentials;
  readonly clock: Clock;
  readonly timeoutMs?: number;
  readonly fetch?: typeof globalThis.fetch;
}

/**
 * The probe: renews one Lease through the public endpoint, over TLS, with a token, as an agent does. The request
 * depends on all that a node's heartbeat depends on: DNS name, certificate, gateway, throttling, authorization, table.
 *
 * No Node has the name of this Lease, so node-monitor never evaluates it. The probe sends a patch and not a PUT,
 * because a PUT contains the version that was read, and two concurrent monitors would conflict.
 */
export function leaseProbe(options: LeaseProbeOptions): Probe {
  const { url, credentials, clock, timeoutMs = TIMEOUT_MS, fetch = globalThis.fetch } = options;

  async function send(method: 'PATCH' | 'POST', path: string, contentType: string, body: object): Promise<number> {
    const bearer = await within(timeoutMs, credentials.bearer(clock.nowMs()));
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': contentType, accept: 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
      // A redirect would send the token to another host.
      redirect: 'error',
    });
    // Read completely: this frees the connection for the next beat.
    await response.arrayBuffer();
    if (response.status === 401) credentials.refused(bearer, clock.nowMs());
    return response.status;
  }

  async function beat(): Promise<ProbeOutcome> {
    const renewTime = new Date(clock.nowMs()).toISOString().replace('Z', '000Z');
    const status = await send('PATCH', `${COLLECTION}/${PROBE_LEASE}`, 'application/merge-patch+json', {
      spec: { renewTime },
    });
    if (status === 200) return { kind: 'accepted' };
    if (status !== 404) return { kind: 'failed', reason: `answered ${status}` };
    const created = await send('POST', COLLECTION, 'application/json', {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: PROBE_LEASE, namespace: 'kube-node-lease' },
      spec: { holderIdentity: PROBE_LEASE, leaseDurationSeconds: 40, renewTime },
    });
    // 409: another monitor created it at the same time.
    return created === 201 || created === 409
      ? { kind: 'accepted' }
      : { kind: 'failed', reason: `creating the probe's lease answered ${created}` };
  }

  return {
    beat: () => beat().catch((error: unknown): ProbeOutcome => ({ kind: 'failed', reason: reasonOf(error) })),
  };
}

/** An unresponsive store must not delay the tick; a key that is stored late is used by the next beat. */
function within<T>(timeoutMs: number, pending: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new DOMException(`no token within ${timeoutMs} ms`, 'TimeoutError')),
    timeoutMs,
  );
  return Promise.race([pending, late.promise]).finally(() => clearTimeout(timer));
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.name} ${error.message}${cause}`;
}

/**
 * A probe through every way of a heartbeat. It is accepted if each of them accepts it, so the safety gate
 * closes when one way fails: some nodes use only that one.
 */
export const everyProbe = (probes: readonly Probe[]): Probe => ({
  async beat(): Promise<ProbeOutcome> {
    const outcomes = await Promise.all(probes.map((probe) => probe.beat()));
    return outcomes.find(({ kind }) => kind === 'failed') ?? { kind: 'accepted' };
  },
});

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

/**
 * Credentials of node-monitor's probes: short-lived tokens, signed with the key of the process, as nodes do
 * (docs/decisions/0009-keys-of-our-own-processes.md). A token is reused until it expires, so most probes need no
 * signature. The store is accessed once per key.
 */
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
  const text = `${encoded({ alg: 'EdDSA', typ: 'JWT', kid: key.keyId })}.${encoded(claims)}`;
  return `${text}.${key.sign(text)}`;
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
