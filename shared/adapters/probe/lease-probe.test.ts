import { describe, expect, it } from 'vitest';
import { leaseProbe } from './lease-probe.ts';

const clock = { nowMs: () => Date.UTC(2026, 0, 1, 0, 0, 5, 250) };

function answering(...statuses: (number | Error)[]) {
  const sent: { method: string; url: string; body: unknown; authorization: string }[] = [];
  const fetch = (async (url: string, init: RequestInit) => {
    const headers = init.headers as Record<string, string>;
    sent.push({
      method: init.method ?? '',
      url,
      body: JSON.parse(String(init.body)),
      authorization: headers['authorization'] ?? '',
    });
    const status = statuses.shift();
    if (status === undefined || status instanceof Error) throw status ?? new Error('no answer planned');
    return new Response('{}', { status });
  }) as typeof globalThis.fetch;
  return { sent, probe: leaseProbe({ url: 'https://cluster', token: 'secret', clock, fetch }) };
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
        authorization: 'Bearer secret',
      },
    ]);
  });

  it.each([201, 409])('makes the lease where there is none, and takes %i for success', async (status) => {
    const { sent, probe } = answering(404, status);
    expect(await probe.beat()).toEqual({ kind: 'accepted' });
    expect(sent.map(({ method }) => method)).toEqual(['PATCH', 'POST']);
  });

  it.each([401, 403, 429, 503])('has failed when answered %i', async (status) => {
    expect(await answering(status).probe.beat()).toEqual({ kind: 'failed', reason: `answered ${status}` });
  });

  it('has failed when there is no answer, and says why', async () => {
    const cause = new Error('self-signed certificate');
    const outcome = await answering(new TypeError('fetch failed', { cause })).probe.beat();
    expect(outcome).toEqual({ kind: 'failed', reason: 'TypeError fetch failed: self-signed certificate' });
  });
});
