/**
 * The second way of a heartbeat, through local mode: learned from an answer, used, lost, and found again. And the one
 * of all other requests, which no client learns by itself.
 */
import { get } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttpKubeApi, type HttpKubeApi } from '../../agent/adapters/http/kube-api.ts';
import { staticToken } from '../../agent/adapters/identity/node-identity.ts';
import { withHeartbeatDoor } from '../../agent/app/heartbeat-door.ts';
import type { KubeAnswer, KubeRequest } from '../../agent/ports/kube-api.ts';
import { leasePath } from '../../agent/rules/lease.ts';
import { LEASE_BATCHES_PATH, type LeaseBatchAnswer } from '../../shared/fleet/nodes/lease-batch.ts';
import type { KubeClusterStatus, KubeObject } from '../../shared/kinds/types.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const ANNOTATION = 'nodekeeper.dev/heartbeat-url';

describe('the URL of heartbeats', { timeout: 60_000 }, () => {
  let local: LocalForTest;
  const clients: HttpKubeApi[] = [];
  /** The Lease of the only machine. */
  let path: string;
  let beatRequest: KubeRequest;
  beforeAll(async () => {
    local = await startLocalForTest({ home: 'aws', nodes: 1, policy: { heartbeatUrl: 'on', apiUrl: 'on' } });
    const machines = async () => {
      const { items } = bodyOf(await client().send({ method: 'GET', path: '/api/v1/nodes' })) as {
        items?: KubeObject[];
      };
      return items ?? [];
    };
    await until(async () => (await machines()).length === 1, { withinMs: 30_000, everyMs: 200 });
    path = leasePath((await machines())[0]?.metadata.name ?? '');
    beatRequest = { method: 'PATCH', path, body: { spec: {} }, contentType: 'application/merge-patch+json' };
    await until(async () => statusOf(await client().send(beatRequest)) === 200, { withinMs: 30_000, everyMs: 200 });
  }, 90_000);
  afterAll(async () => {
    for (const each of clients) each.close();
    await local?.stop();
  });

  function client(endpoint = local.access.url, token = local.access.token ?? ''): HttpKubeApi {
    const made = createHttpKubeApi({
      endpoint,
      certificateAuthority: local.access.ca,
      credentials: staticToken(token),
    });
    clients.push(made);
    return made;
  }
  const bodyOf = (answer: KubeAnswer): KubeObject =>
    (answer.kind === 'answered' ? answer.body : undefined) as KubeObject;
  const statusOf = (answer: KubeAnswer) => (answer.kind === 'answered' ? answer.status : String(answer.cause));
  const urlIn = (answer: KubeAnswer) => bodyOf(answer).metadata.annotations?.[ANNOTATION];

  it('is in each answer of the HTTP API, and is never stored', async () => {
    const api = client();
    const first = await api.send(beatRequest);
    expect(urlIn(first)).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    // A kubelet sends the whole Lease back.
    const second = await api.send({ method: 'PUT', path, body: bodyOf(first) });
    expect([statusOf(second), urlIn(second)]).toEqual([200, urlIn(first)]);
    expect(urlIn(await api.send({ method: 'GET', path }))).toBeUndefined();
  });

  it('renews Leases by the same rules, and does nothing else', async () => {
    const url = urlIn(await client().send(beatRequest)) ?? '';
    const before = bodyOf(await client().send({ method: 'GET', path }));
    const beat = await client(url).send(beatRequest);
    expect([statusOf(beat), urlIn(beat)]).toEqual([200, undefined]);
    expect(Number(bodyOf(beat).metadata.resourceVersion)).toBeGreaterThan(Number(before.metadata.resourceVersion));
    expect(statusOf(await client(url, 'wrong').send(beatRequest))).toBe(401);
    expect(statusOf(await client(url).send({ method: 'GET', path: '/api/v1/nodes' }))).toBe(404);
    const stale = { ...bodyOf(beat), metadata: { ...bodyOf(beat).metadata, resourceVersion: '1' } };
    expect(statusOf(await client(url).send({ method: 'PUT', path, body: stale }))).toBe(409);
  });

  it('accepts batches. Their answers through the HTTP API name it', async () => {
    const item = { method: 'PATCH', path, token: local.access.token, body: '{"spec":{}}' };
    const body = {
      apiVersion: 'nodekeeper.dev/v1alpha1',
      kind: 'LeaseBatch',
      items: [item, { ...item, token: 'wrong' }],
    };
    const batch: KubeRequest = { method: 'POST', path: LEASE_BATCHES_PATH, body };
    const statusesIn = (answer: KubeAnswer) =>
      (bodyOf(answer) as unknown as LeaseBatchAnswer).items.map(({ status }) => status);
    const first = await client().send(batch);
    const url = urlIn(first) ?? '';
    expect([statusOf(first), statusesIn(first)]).toEqual([200, [200, 401]]);
    const second = await client(url).send(batch);
    expect([statusOf(second), statusesIn(second), bodyOf(second).metadata]).toEqual([200, [200, 401], undefined]);
    expect(statusOf(await client(url, 'wrong').send(batch))).toBe(401);
  });

  it('is used by an agent from its second heartbeat on, and not while it fails', async () => {
    const opened: string[] = [];
    const api = withHeartbeatDoor({
      api: client(),
      open: (url) => {
        opened.push(url);
        return client(url);
      },
      monotonicMs: () => 0,
    });
    const first = await api.send(beatRequest);
    const second = await api.send(beatRequest);
    expect(opened).toEqual([urlIn(first)]);
    // An answer of the URL does not name it.
    expect([statusOf(second), urlIn(second)]).toEqual([200, undefined]);
  });

  it('has a sister that serves the API, with the same rights, names and redirects', async () => {
    const { url, ca, token = '' } = local.access;
    const [, apiUrl = ''] = /through the URL of its function: (\S+)/.exec(local.output()) ?? [];
    expect(apiUrl).not.toBe(url);
    const through = client(apiUrl);
    const nodes = '/api/v1/nodes';
    const bodies = await Promise.all([client(), through].map((each) => each.send({ method: 'GET', path: nodes })));
    expect(bodies.map((each) => (bodyOf(each) as { items?: unknown[] }).items?.length)).toEqual([1, 1]);
    expect(statusOf(await client(apiUrl, 'wrong').send({ method: 'GET', path: nodes }))).toBe(401);
    const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
    // JavaScript's client encodes the colon.
    expect(statusOf(await through.send({ method: 'GET', path: `${roles}/system%3Anode` }))).toBe(200);
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'by-url' }, data: { key: 'ü' } };
    const maps = '/api/v1/namespaces/default/configmaps';
    expect(statusOf(await through.send({ method: 'POST', path: maps, body }))).toBe(201);
    expect(bodyOf(await client().send({ method: 'GET', path: `${maps}/by-url` }))).toMatchObject({ data: body.data });
    expect(statusOf(await through.send(beatRequest))).toBe(200);
    const watched = await head(`${apiUrl}${nodes}?watch=true`, { ca, token });
    expect(watched).toMatchObject({ status: 307, location: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+\/api/) });
    expect(new URL(watched.location ?? '').port).not.toBe(new URL(apiUrl).port);
  });

  it('is probed by node-monitor: the gate is open only while both ways accept heartbeats', async () => {
    const statusPath = '/apis/nodekeeper.dev/v1alpha1/clusterstatuses/cluster';
    const isOpen = async () => {
      const { status } = bodyOf(await client().send({ method: 'GET', path: statusPath })) as KubeClusterStatus;
      return (status?.ticks ?? 0) > 1 && status?.gate?.state === 'Open';
    };
    await until(isOpen, { withinMs: 45_000, everyMs: 500 });
  });
});

/** Status and location of an answer that is not followed. */
function head(url: string, access: { readonly ca: string | undefined; readonly token: string }) {
  return new Promise<{ status: number | undefined; location: string | undefined }>((resolve, reject) => {
    const headers = { authorization: `Bearer ${access.token}` };
    get(url, { ...(access.ca !== undefined && { ca: access.ca }), headers, agent: false }, (answer) => {
      answer.resume();
      resolve({ status: answer.statusCode, location: answer.headers.location });
    }).on('error', reject);
  });
}
