/**
 * The probe: renews one Lease through the public endpoint, over TLS, with a token, as an agent does. The request depends
 * on all that a node's heartbeat depends on: DNS name, certificate, gateway, throttling, authorization, table.
 *
 * No Node has the name of this Lease, so node-monitor never evaluates it. The probe sends a patch and not a PUT,
 * because a PUT contains the version that was read, and two concurrent monitors would conflict.
 */
import { PROBE_LEASE } from '../../shared/access/probe-identity.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Probe, ProbeCredentials, ProbeOutcome } from './probe.ts';

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
  const signal = AbortSignal.timeout(timeoutMs);
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([pending, late]);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.name} ${error.message}${cause}`;
}
