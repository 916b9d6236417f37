/**
 * Beats of our own: renews one Lease through the public endpoint, over TLS, with a token, as an agent renews its own. What
 * stands between a node and its row (name, certificate, gateway, throttling, authorisation, table) stands between this
 * and its row.
 *
 * The Lease is nobody's: without a Node of its name node-monitor never looks at it. It is a patch and no PUT, because a PUT
 * names the version it read and two monitors at once would refuse each other.
 */
import { PROBE_LEASE } from '../../domain/access/probe-identity.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Probe, ProbeCredentials, ProbeOutcome } from '../../ports/probe.ts';

const COLLECTION = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
/** A beat that takes longer is as good as lost to a node, and so is what it proves itself with. Milliseconds, each. */
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
      // A redirect would send the token elsewhere.
      redirect: 'error',
    });
    // Read to its end, so that the connection is free for the next beat.
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
    // 409: another monitor has made it in the same moment.
    return created === 201 || created === 409
      ? { kind: 'accepted' }
      : { kind: 'failed', reason: `creating the probe's lease answered ${created}` };
  }

  return {
    beat: () => beat().catch((error: unknown): ProbeOutcome => ({ kind: 'failed', reason: reasonOf(error) })),
  };
}

/** A store that does not answer must not hold up the tick; the key it takes late serves the next beat. */
function within<T>(timeoutMs: number, wanted: Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(timeoutMs);
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([wanted, late]);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.name} ${error.message}${cause}`;
}
