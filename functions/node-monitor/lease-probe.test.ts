import { describe, expect, it } from 'vitest';
import { leaseProbe } from './probes.ts';

const clock = { nowMs: () => Date.UTC(2026, 0, 1, 0, 0, 5, 250) };

function answering(...statuses: (number | Error)[]) {
  const sent: { method: string; url: string; body: unknown; authorization: string; headers: object }[] = [];
  const fetch = (async (url: string, init: RequestInit) => {
    const { authorization = '', ...headers } = init.headers as Record<string, string>;
    sent.push({
      method: init.method ?? '',
      url,
      body: JSON.parse(String(init.body)),
      authorization,
      headers,
    });
    const status = statuses.shift();
    if (status === undefined || status instanceof Error) throw status ?? new Error('no answer planned');
    return new Response('{}', { status });
  }) as typeof globalThis.fetch;
  const refused: string[] = [];
  const credentials = { bearer: async () => 'signed', refused: (bearer: string) => void refused.push(bearer) };
  return { sent, refused, probe: leaseProbe({ url: 'https://cluster', credentials, clock, fetch }) };
}

describe('a probe beat', () => {
  it('renews its lease as an agent does', async () => {
    const { sent, probe } = answering(200);
    expect(await probe.beat()).toEqual({ kind: 'accepted' });
    expect(sent).toEqual([
      {
        method: 'PATCH',
        url: 'https://cluster/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/nodekeeper-probe',
        body: { spec: { renewTime: '2026-01-01T00:00:05.250000Z' } },
        authorization: 'Bearer signed',
        headers: { 'content-type': 'application/merge-patch+json', accept: 'application/json' },
      },
    ]);
  });

  it.each([201, 409])('creates a missing Lease, and counts status %i as success', async (status) => {
    const { sent, probe } = answering(404, status);
    expect(await probe.beat()).toEqual({ kind: 'accepted' });
    expect(sent.map(({ method }) => method)).toEqual(['PATCH', 'POST']);
    expect(sent[1]).toMatchObject({
      url: 'https://cluster/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
      body: {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'nodekeeper-probe', namespace: 'kube-node-lease' },
        spec: { holderIdentity: 'nodekeeper-probe', renewTime: '2026-01-01T00:00:05.250000Z' },
      },
      headers: { 'content-type': 'application/json' },
    });
  });

  it('fails when its missing Lease cannot be created', async () => {
    const outcome = await answering(404, 403).probe.beat();
    expect(outcome).toEqual({ kind: 'failed', reason: "creating the probe's lease answered 403" });
  });

  it.each([401, 403, 429, 503])('fails after status %i', async (status) => {
    expect(await answering(status).probe.beat()).toEqual({ kind: 'failed', reason: `answered ${status}` });
  });

  it('reports a refused token, and no other failure, to its credentials', async () => {
    const { probe, refused } = answering(401, 403, 503, 200);
    for (let beat = 0; beat < 4; beat += 1) await probe.beat();
    expect(refused).toEqual(['signed']);
  });

  it('fails without a request if it has no token', async () => {
    const fetch = () => Promise.reject(new Error('sent'));
    const credentials = { bearer: () => Promise.reject(new Error('the key was not stored')), refused: () => {} };
    const probe = leaseProbe({ url: 'https://cluster', credentials, clock, fetch });
    expect(await probe.beat()).toEqual({ kind: 'failed', reason: 'Error the key was not stored' });
  });

  it('fails if the token is not there in time', async () => {
    const fetch = () => Promise.reject(new Error('sent'));
    const credentials = { bearer: () => new Promise<string>(() => {}), refused: () => {} };
    const probe = leaseProbe({ url: 'https://cluster', credentials, clock, timeoutMs: 1, fetch });
    expect(await probe.beat()).toMatchObject({ kind: 'failed', reason: expect.stringContaining('TimeoutError') });
  });

  it('fails without a response, with the reason', async () => {
    const cause = new Error('self-signed certificate');
    const outcome = await answering(new TypeError('fetch failed', { cause })).probe.beat();
    expect(outcome).toEqual({ kind: 'failed', reason: 'TypeError fetch failed: self-signed certificate' });
  });
});
