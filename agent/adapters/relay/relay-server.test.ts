import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import type { LeaseBatchAnswerItem, LeaseBatchItem } from '../../../shared/fleet/nodes/lease-batch.ts';
import type { KubeRequest } from '../../ports/kube-api.ts';
import { leasePath } from '../../rules/lease.ts';
import { createHttpKubeApi, type HttpKubeApiOptions } from '../http/kube-api.ts';
import { joinSite } from '../site/join-site.ts';
import { makeRelayCertificate, makeSiteAuthority } from './certificates.ts';
import { serveRelay } from './relay-server.ts';

const today = { nowMs: Date.now(), validDays: 1 };
const authority = makeSiteAuthority({ commonName: 'site', ...today });
const certificate = makeRelayCertificate(authority, { names: ['127.0.0.1'], ...today });

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function world(
  answer: (item: LeaseBatchItem) => LeaseBatchAnswerItem | Promise<LeaseBatchAnswerItem> = () => ({
    status: 200,
    body: { kind: 'Lease' },
  }),
  waitingMax = 1_000,
) {
  const items: LeaseBatchItem[] = [];
  const collecting: number[] = [];
  const server = await serveRelay({
    address: '127.0.0.1',
    port: 0,
    certificate,
    waitingMax,
    site: () => ({ received() {}, closed() {} }),
    relay: async (item, collectMs) => {
      items.push(item);
      collecting.push(collectMs);
      return answer(item);
    },
  });
  closers.push(() => server.close());
  const client = (options: Partial<HttpKubeApiOptions> = {}) => {
    const api = createHttpKubeApi({
      endpoint: `https://127.0.0.1:${server.port}`,
      certificateAuthority: authority.certificatePem,
      credentials: {
        bearer: async (use) => (use.kind === 'boundBeat' ? `bound.to.${String(use.body).slice(0, 20)}` : use.kind),
        answered: () => false,
      },
      isRelay: true,
      ...options,
    });
    closers.push(() => api.close());
    return api;
  };
  return { server, items, collecting, client };
}

const beat: KubeRequest = { method: 'PUT', path: leasePath('n1'), body: { é: 1 }, heartbeat: { intervalMs: 10_000 } };

describe('the server of a relay', () => {
  it('knows a machine by its address of IPv4, also on a socket of IPv6', async () => {
    const addresses: string[] = [];
    const server = await serveRelay({
      address: '::',
      port: 0,
      certificate,
      relay: async () => ({ status: 503, body: {} }),
      site(line) {
        addresses.push(line.address);
        return { received() {}, closed() {} };
      },
    });
    closers.push(() => server.close());
    const join = joinSite({
      endpoint: `https://127.0.0.1:${server.port}`,
      certificateAuthority: authority.certificatePem,
    });
    const joined = await join({ received() {}, closed() {} }, new AbortController().signal);
    if (joined.kind === 'joined') await joined.line.close();
    expect(addresses).toEqual(['127.0.0.1']);
  });

  it.each([
    ['127.0.0.1', 'ECONNREFUSED'],
    ['', 'connected'],
  ])('with the address %j is for others %s', async (address, outcome) => {
    const options = { port: 0, certificate, relay: async () => ({ status: 503, body: {} }) };
    const server = await serveRelay({ address, ...options, site: () => ({ received() {}, closed() {} }) });
    closers.push(() => server.close());
    const socket = connectTcp(server.port, '127.0.0.2');
    const tried = once(socket, 'connect').then(
      () => 'connected',
      (fault: NodeJS.ErrnoException) => fault.code,
    );
    expect(await tried).toBe(outcome);
    socket.on('error', () => undefined).destroy();
  });

  it('closes with a connection that a machine keeps, and with half of a heartbeat', async () => {
    const { server, client } = await world();
    await client().send(beat);
    const half = connect({ host: '127.0.0.1', port: server.port, ca: authority.certificatePem });
    half.on('error', () => undefined).resume();
    await once(half, 'secureConnect');
    half.write('PUT / HTTP/1.1\r\ncontent-length: 100\r\n\r\nhalf');
    const closed = new Promise((resolve) => half.once('close', resolve));
    await server.close();
    await closed;
  });

  it('cannot use a port that is in use', async () => {
    const { server } = await world();
    const options = { certificate, relay: async () => ({ status: 503, body: {} }) };
    const second = serveRelay({
      ...options,
      ...{ address: '127.0.0.1', port: server.port, site: () => ({ received() {}, closed() {} }) },
    });
    await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  it('refuses a heartbeat that is too large', async () => {
    const { client, items } = await world();
    const answer = await client().send({ ...beat, body: { large: 'x'.repeat(1_000_000) } });
    expect(answer).toMatchObject({ status: 413, body: { kind: 'Status', reason: 'RequestEntityTooLarge', code: 413 } });
    expect(items).toEqual([]);
  });

  it('uses a new certificate for new connections, and none that does not fit its key', async () => {
    const { client, server } = await world();
    const other = makeSiteAuthority({ commonName: 'other site', ...today });
    const renewed = makeRelayCertificate(other, { names: ['127.0.0.1'], ...today });
    expect(() => server.useCertificate({ ...renewed, privateKeyPem: certificate.privateKeyPem })).toThrow(/key/);
    expect(await client().send(beat)).toMatchObject({ kind: 'answered', status: 200 });
    server.useCertificate(renewed);
    expect(await client().send(beat)).toMatchObject({ kind: 'failed' });
    const trusting = client({ certificateAuthority: other.certificatePem });
    expect(await trusting.send(beat)).toMatchObject({ kind: 'answered', status: 200 });
  });

  it('passes on path, body and token of a heartbeat unchanged, and returns the answer', async () => {
    const { client, items } = await world(() => ({ status: 429, retryAfterSeconds: 3, body: { kind: 'Status' } }));
    expect(await client().send(beat)).toEqual({
      kind: 'answered',
      status: 429,
      retryAfterMs: 3_000,
      body: { kind: 'Status' },
    });
    expect(items).toEqual([{ method: 'PUT', path: leasePath('n1'), token: 'bound.to.{"é":1}', body: '{"é":1}' }]);
  });

  it('collects a heartbeat for as long as its machine says', async () => {
    const { client, collecting } = await world();
    await client().send({ ...beat, collectMs: 700 });
    await client().send(beat);
    expect(collecting).toEqual([700, 2_000]);
  });

  it.each<[string, KubeRequest, number]>([
    ['a read of a Lease', { method: 'GET', path: leasePath('n1') }, 405],
    ['a creation of a Lease', { method: 'POST', path: leasePath('n1').replace('/n1', ''), body: {} }, 404],
    ['another resource', { method: 'PATCH', path: '/api/v1/nodes/n1/status', body: {} }, 404],
    ['a query', { ...beat, path: `${leasePath('n1')}?dryRun=All` }, 404],
    ['a batch', { method: 'POST', path: '/apis/nodekeeper.dev/v1alpha1/leasebatches', body: {} }, 404],
    ['a long body', { ...beat, body: { text: 'x'.repeat(8_200) } }, 413],
  ])('refuses %s', async (_, request, status) => {
    const { client, items } = await world();
    expect(await client().send(request)).toMatchObject({ status, body: { kind: 'Status', code: status } });
    expect(items).toEqual([]);
  });

  it('refuses a request without a token', async () => {
    const { client, items } = await world();
    const credentials = { bearer: async () => '', answered: () => false };
    expect(await client({ credentials }).send(beat)).toMatchObject({ status: 401 });
    expect(items).toEqual([]);
  });

  it('keeps the connection of a machine', async () => {
    const { client } = await world();
    const api = client();
    for (let beats = 0; beats < 3; beats += 1) await api.send(beat);
    expect(api.traffic().connections).toBe(1);
  });

  it('is not trusted with a certificate of another site', async () => {
    const { client } = await world();
    const other = makeSiteAuthority({ commonName: 'other', ...today });
    const api = client({ certificateAuthority: other.certificatePem });
    expect(await api.send(beat)).toMatchObject({ kind: 'failed' });
  });

  it('survives clients that send no HTTP and clients that disconnect half-way', async () => {
    const { server, client } = await world();
    for (const text of ['\u0000\u0001garbage\r\n\r\n', 'PUT / HTTP/1.1\r\ncontent-length: 100\r\n\r\nhalf']) {
      await new Promise<void>((resolve) => {
        const socket = connect({ host: '127.0.0.1', port: server.port, ca: authority.certificatePem }, () => {
          socket.write(text);
          socket.end();
        });
        socket.on('error', () => {});
        socket.on('close', () => resolve());
        socket.resume();
      });
    }
    expect(await client().send(beat)).toMatchObject({ status: 200 });
  });

  it('refuses at once the heartbeats beyond those that may wait', async () => {
    const release: (() => void)[] = [];
    const { client } = await world(
      () => new Promise((resolve) => release.push(() => resolve({ status: 200, body: {} }))),
      3,
    );
    const waiting = Array.from({ length: 3 }, () => client().send({ ...beat, timeoutMs: 60_000 }));
    await expect.poll(() => release.length, { timeout: 30_000 }).toBe(3);
    expect(await client().send(beat)).toMatchObject({ status: 503, body: { kind: 'Status' } });
    for (const each of release) each();
    for (const answer of await Promise.all(waiting)) expect(answer).toMatchObject({ status: 200 });
    const next = client().send(beat);
    await expect.poll(() => release.length, { timeout: 30_000 }).toBe(4);
    release[3]?.();
    expect(await next).toMatchObject({ status: 200 });
  }, 60_000);
});
