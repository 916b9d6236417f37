import { getEventListeners } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeAuthority, makeServerCertificate } from '../../../shared/host/certificate.ts';
import { listenOnLoopback } from '../../../shared/host/loopback.ts';
import { startTlsServer, startTunnelProxy } from '../../../test/support/tls-server.ts';
import { until } from '../../../test/support/until.ts';
import type { Credentials } from '../../ports/credentials.ts';
import type { KubeRequest } from '../../ports/kube-api.ts';
import { COLLECT_HEADER } from '../../rules/relay.ts';
import { createDialler } from './dial.ts';
import { createHttpKubeApi, type HttpKubeApiOptions } from './kube-api.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const credentials: Credentials = { bearer: async () => 't0ken', answered: () => false };

async function world(listener: RequestListener, options: Partial<HttpKubeApiOptions> = {}) {
  const server = await startTlsServer(listener);
  closers.push(() => server.close());
  const api = createHttpKubeApi({
    endpoint: server.url,
    certificateAuthority: server.certificateAuthority,
    credentials,
    timeoutMs: 5_000,
    ...options,
  });
  closers.push(() => api.close());
  return { server, api };
}

const get = { method: 'GET', path: '/api/v1/nodes/n' } as const;

describe('requests to the API', () => {
  it('carry token, type and body, and return the parsed answer', async () => {
    const { api } = await world((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { accept, authorization, 'content-type': type } = request.headers;
        const body = JSON.parse(Buffer.concat(chunks).toString());
        response.end(JSON.stringify({ accept, authorization, type, body, method: request.method, url: request.url }));
      });
    });
    const answer = await api.send({
      method: 'PATCH',
      path: '/x?y=1',
      body: { é: 1 },
      contentType: 'application/a+json',
    });
    expect(answer).toEqual({
      kind: 'answered',
      status: 200,
      body: {
        accept: 'application/json',
        authorization: 'Bearer t0ken',
        type: 'application/a+json',
        body: { é: 1 },
        method: 'PATCH',
        url: '/x?y=1',
      },
    });
  });

  it.each<[string, boolean, KubeRequest, string]>([
    [
      'a heartbeat to the cluster',
      false,
      { method: 'PUT', path: '/lease', body: {}, heartbeat: { intervalMs: 10_000 } },
      'beat',
    ],
    ['another request to the cluster', false, get, 'all'],
    [
      'a heartbeat to a relay',
      true,
      { method: 'PUT', path: '/lease', body: {}, heartbeat: { intervalMs: 10_000 } },
      'boundBeat {}',
    ],
    ['another request to a relay', true, { method: 'PUT', path: '/lease', body: {} }, 'boundBeat {}'],
    ['a request without a body to a relay', true, { ...get, heartbeat: { intervalMs: 10_000 } }, 'boundBeat '],
  ])('carry for %s a token that is good for no more', async (_, isRelay, request, token) => {
    const { api } = await world(
      ({ headers }, response) => response.end(JSON.stringify({ authorization: headers.authorization })),
      {
        ...(isRelay ? { isRelay } : {}),
        credentials: {
          bearer: async (use) => (use.kind === 'boundBeat' ? `${use.kind} ${String(use.body)}` : use.kind),
          answered: () => false,
        },
      },
    );
    expect(await api.send(request)).toMatchObject({ body: { authorization: `Bearer ${token}`.trim() } });
  });

  it('are JSON unless they say otherwise', async () => {
    const { api } = await world((request, response) => {
      response.end(JSON.stringify(request.headers['content-type'] ?? 'none'));
    });
    expect(await api.send({ method: 'PUT', path: '/x', body: {} })).toMatchObject({ body: 'application/json' });
    expect(await api.send(get)).toMatchObject({ body: 'none' });
  });

  it('keep the path of the endpoint as prefix', async () => {
    const { server } = await world((request, response) => response.end(JSON.stringify(request.url)));
    const api = createHttpKubeApi({
      endpoint: `${server.url}/stage/`,
      certificateAuthority: server.certificateAuthority,
      credentials,
    });
    closers.push(() => api.close());
    expect(await api.send(get)).toMatchObject({ body: '/stage/api/v1/nodes/n' });
  });

  it('share one connection, count every byte, and connect again after reconnect()', async () => {
    const { api, server } = await world((_, response) => response.end('{}'));
    for (let number = 0; number < 3; number += 1) await api.send(get);
    expect(api.traffic().connections).toBe(1);
    const before = api.traffic();
    await api.send(get);
    const { bytesUp, bytesDown } = api.traffic();
    expect(bytesUp - before.bytesUp).toBeGreaterThan(100);
    expect(bytesUp - before.bytesUp).toBeLessThan(400);
    expect(bytesDown - before.bytesDown).toBeGreaterThan(50);
    api.reconnect();
    await api.send(get);
    expect(api.traffic().connections).toBe(2);
    api.close();
    await expect.poll(() => server.traffic().bytesIn).toBe(api.traffic().bytesUp);
    // A server says goodbye to each connection; we may have left by then.
    const unheard = server.traffic().bytesOut - api.traffic().bytesDown;
    expect(unheard).toBeGreaterThanOrEqual(0);
    expect(unheard).toBeLessThan(100);
  });

  it('resume TLS, which makes a second connection cheaper', async () => {
    const { api } = await world((_, response) => response.end('{}'));
    await api.send(get);
    await api.send(get);
    const first = api.traffic();
    api.reconnect();
    await api.send(get);
    expect(api.traffic().bytesDown - first.bytesDown).toBeLessThan(first.bytesDown);
  });

  it('return the Retry-After of the answer', async () => {
    const { api } = await world((_, response) => response.writeHead(503, { 'retry-after': '3' }).end('busy'));
    expect(await api.send(get)).toEqual({ kind: 'answered', status: 503, body: 'busy', retryAfterMs: 3_000 });
  });

  it('are sent once more when the refused token can be replaced', async () => {
    const tokens = ['old', 'new'];
    const heard: (number | undefined)[] = [];
    const { api } = await world(
      ({ headers }, response) => response.writeHead(headers.authorization === 'Bearer new' ? 200 : 401).end(),
      {
        credentials: {
          bearer: async () => tokens.shift() ?? 'none',
          answered: ({ status, serverTimeMs }) => {
            heard.push(serverTimeMs);
            return status === 401;
          },
        },
      },
    );
    expect(await api.send(get)).toMatchObject({ kind: 'answered', status: 200 });
    expect(Math.abs((heard[0] ?? 0) - Date.now())).toBeLessThan(5_000);
  });
});

describe('one client', () => {
  it('says who it is, and asks for less only where that is enough', async () => {
    const { api, server } = await world((request, response) => response.end(JSON.stringify(request.headers)));
    const headersOf = async (request: KubeRequest) =>
      ((await api.send(request)) as { body: Record<string, string> }).body;
    expect(await headersOf(get)).toMatchObject({ 'user-agent': 'nodekeeper-agent', accept: 'application/json' });
    expect(await headersOf(get)).toMatchObject({ host: new URL(server.url).host });
    expect(await headersOf(get)).not.toHaveProperty('prefer');
    expect(await headersOf(get)).not.toHaveProperty(COLLECT_HEADER);
    expect(await headersOf({ ...get, collectMs: 700 })).toMatchObject({ [COLLECT_HEADER]: '700' });
    expect(await headersOf({ ...get, method: 'PUT', body: { é: 1 }, prefersMinimal: true })).toMatchObject({
      ...{ prefer: 'return=minimal', 'content-length': '8' },
    });
  });

  it('sends one request at a time, or as many as it may', async () => {
    for (const connectionsMax of [undefined, 2]) {
      const waiting: (() => void)[] = [];
      let most = 0;
      const { api } = await world(
        (_, response) => {
          waiting.push(() => response.end('{}'));
          most = Math.max(most, waiting.length);
        },
        connectionsMax === undefined ? {} : { connectionsMax },
      );
      const answers = Array.from({ length: 4 }, () => api.send(get));
      for (let left = 4; left > 0; ) {
        await until(() => waiting.length >= Math.min(left, connectionsMax ?? 1), { withinMs: 5_000, everyMs: 1 });
        left -= waiting.length;
        for (const answer of waiting.splice(0)) answer();
      }
      await Promise.all(answers);
      expect(most).toBe(connectionsMax ?? 1);
    }
  });

  it('has the time of the server only from a server that says it', async () => {
    const times: (number | undefined)[] = [];
    const answered = ({ serverTimeMs }: { readonly serverTimeMs?: number }) => {
      times.push(serverTimeMs);
      return false;
    };
    const { api } = await world(
      (_, response) => {
        response.sendDate = false;
        if (times.length === 1) response.setHeader('date', 'Thu, 01 Jan 2026 00:00:00 GMT');
        response.end();
      },
      { credentials: { bearer: async () => 't', answered } },
    );
    for (let request = 0; request < 2; request += 1) expect(await api.send(get)).toMatchObject({ body: undefined });
    expect(times).toEqual([undefined, Date.UTC(2026, 0, 1)]);
  });

  it('leaves nothing behind that a later stop would meet', async () => {
    const { api } = await world((_, response) => response.end('{}'));
    const stopper = new AbortController();
    const listeners = () => getEventListeners(stopper.signal, 'abort').length;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await api.send({ ...get, signal: stopper.signal, timeoutMs: 3_600_000 });
    expect([listeners(), vi.getTimerCount()]).toEqual([0, 0]);
  });

  it('that is stopped before it begins sends nothing', async () => {
    let requests = 0;
    const { api } = await world((_, response) => {
      requests += 1;
      response.end('{}');
    });
    expect(await api.send({ ...get, signal: AbortSignal.abort() })).toMatchObject({
      kind: 'failed',
      cause: { message: 'stopped' },
    });
    expect(await api.send(get)).toMatchObject({ kind: 'answered' });
    expect(requests).toBe(1);
  });

  it('closes a connection that sends too much', async () => {
    const closed = Promise.withResolvers<void>();
    const { api } = await world(
      (request, response) => {
        request.socket.once('close', () => closed.resolve());
        response.write('x'.repeat(2_000));
      },
      { answerBytesMax: 1_000 },
    );
    expect(await api.send(get)).toMatchObject({ kind: 'failed', cause: { message: /longer than 1000 bytes/ } });
    await closed.promise;
  });

  it('is for https only', () => {
    expect(() => createHttpKubeApi({ endpoint: 'http://127.0.0.1', credentials })).toThrow(TypeError);
  });
});

describe('no answer', () => {
  it.each<[string, RequestListener]>([
    ['comes at all', () => {}],
    ['comes to an end', (_, response) => response.writeHead(200).write('{')],
  ])('%s within the time-out', async (_, listener) => {
    const { api } = await world(listener);
    expect(await api.send({ ...get, timeoutMs: 80 })).toMatchObject({ kind: 'failed' });
  });

  it('is larger than the bound', async () => {
    const { api } = await world((_, response) => response.end('x'.repeat(2_000)), { answerBytesMax: 1_000 });
    expect(await api.send(get)).toMatchObject({ kind: 'failed' });
  });

  it('is a server of another authority', async () => {
    const other = await world(() => {});
    const { server } = await world((_, response) => response.end('{}'));
    const api = createHttpKubeApi({
      endpoint: server.url,
      certificateAuthority: other.server.certificateAuthority,
      credentials,
    });
    expect(await api.send(get)).toMatchObject({ kind: 'failed' });
  });

  it('is a closed port, and the next request is not blocked', async () => {
    const { api, server } = await world((_, response) => response.end('{}'));
    await server.close();
    expect(await api.send(get)).toMatchObject({ kind: 'failed' });
    expect(await api.send(get)).toMatchObject({ kind: 'failed' });
  });

  it('is waited for once the caller stops', async () => {
    const { api } = await world(() => {});
    const stopper = new AbortController();
    const answer = api.send({ ...get, signal: stopper.signal });
    stopper.abort();
    expect(await answer).toMatchObject({ kind: 'failed', cause: { message: 'stopped' } });
    expect(await api.send({ ...get, signal: stopper.signal })).toMatchObject({ kind: 'failed' });
  });

  it('comes without a token, and none is asked for twice', async () => {
    let asked = 0;
    const bearer = () => {
      asked += 1;
      return Promise.reject(new Error('not yet'));
    };
    const { api } = await world((_, response) => response.end('{}'), {
      credentials: { bearer, answered: () => false },
    });
    expect(await api.send(get)).toMatchObject({ kind: 'failed', cause: new Error('not yet') });
    expect(asked).toBe(1);
  });

  it('comes over a connection that breaks, and the request is sent once', async () => {
    let requests = 0;
    const { api } = await world(({ socket }) => {
      requests += 1;
      socket.destroy();
    });
    expect(await api.send(get)).toMatchObject({ kind: 'failed' });
    expect(requests).toBe(1);
  });
});

describe('through a proxy', () => {
  it('an address of IPv6 is in brackets, and a refused tunnel leaves no connection', async () => {
    const ended = Promise.withResolvers<string>();
    let asked = '';
    const proxy = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        asked += bytes;
        socket.write('HTTP/1.1 502 no route\r\n\r\n');
      });
      socket.once('close', () => ended.resolve(asked));
    });
    const port = await listenOnLoopback(proxy);
    closers.push(() => proxy.close());
    const options = { server: new URL('https://[::1]:7443'), proxy: new URL(`http://127.0.0.1:${port}`) };
    const dialler = createDialler({ ...options, timeoutMs: 5_000 });
    const error = await new Promise((resolve) => dialler.dial(resolve));
    expect(error).toMatchObject({ message: expect.stringContaining('502') });
    expect(await ended.promise).toMatch(/^CONNECT \[::1\]:7443 /);
    expect(dialler.traffic()).toMatchObject({ connections: 1 });
    expect(dialler.traffic().bytesUp).toBe(asked.length);
  });

  it('requests reach the server by CONNECT, and the server is the one that is trusted', async () => {
    const proxy = await startTunnelProxy();
    closers.push(() => proxy.close());
    const { server } = await world((_, response) => response.end('{}'));
    // Loopback is never proxied by choice.
    const dialler = createDialler({
      server: new URL(server.url),
      proxy: new URL(`http://me:pa%20ss@127.0.0.1:${proxy.port}`),
      certificateAuthority: server.certificateAuthority,
      timeoutMs: 5_000,
    });
    const connection = await new Promise<
      NodeJS.WritableStream & { once(event: string, listener: () => void): unknown }
    >((resolve, reject) => {
      dialler.dial((error, dialled) => (error === null && dialled ? resolve(dialled) : reject(error)));
    });
    await new Promise<void>((resolve) => connection.once('secureConnect', resolve));
    expect(proxy.asked).toEqual([`127.0.0.1:${server.port} Basic ${Buffer.from('me:pa ss').toString('base64')}`]);
    connection.end();
  });

  it('a refusal is the proxy’s, by name', async () => {
    const proxy = await startTunnelProxy(407);
    closers.push(() => proxy.close());
    const api = createHttpKubeApi({
      endpoint: 'https://api.example.test',
      credentials,
      environment: { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` },
    });
    const answer = await api.send(get);
    expect(answer).toMatchObject({ kind: 'failed', cause: { message: expect.stringContaining('407') } });
  });

  it('that never answers, a request ends in time', async () => {
    const silent = createServer(() => {});
    const port = await listenOnLoopback(silent);
    closers.push(() => silent.close());
    const api = createHttpKubeApi({
      endpoint: 'https://api.example.test',
      credentials,
      environment: { HTTPS_PROXY: `127.0.0.1:${port}` },
      timeoutMs: 100,
    });
    expect(await api.send(get)).toMatchObject({ kind: 'failed' });
    expect(await api.send(get)).toMatchObject({ kind: 'failed' });
  });
});

describe('a proxy over TLS', () => {
  it('needs a certificate that is trusted, and its bytes are counted', async () => {
    const certificate = await startTlsServer(() => {});
    closers.push(() => certificate.close());
    const authority = await makeAuthority({ commonName: 'proxy', nowMs: Date.now(), validDays: 1 });
    const made = await makeServerCertificate(authority, { names: ['127.0.0.1'], nowMs: Date.now(), validDays: 1 });
    const asked: (string | undefined)[] = [];
    const proxy = createHttpsServer({ cert: made.certificatePem, key: made.privateKeyPem });
    const ends: Socket[] = [];
    proxy.on('connect', (request, socket: Socket) => {
      asked.push(request.url);
      ends.push(socket);
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
    });
    const port = await listenOnLoopback(proxy);
    closers.push(() => {
      for (const end of ends) end.destroy();
      proxy.close();
    });
    const dial = (certificateAuthority: string) => {
      const options = { server: new URL('https://api.example'), proxy: new URL(`https://127.0.0.1:${port}`) };
      const dialler = createDialler({ ...options, certificateAuthority, timeoutMs: 5_000 });
      return new Promise<string>((resolve) => {
        dialler.dial((error, connection) => {
          connection?.on('error', () => undefined).destroy();
          resolve(error === null ? `connected ${dialler.traffic().bytesUp > 0}` : error.message);
        });
      });
    };
    expect(await dial(authority.certificatePem)).toBe('connected true');
    expect(asked).toEqual(['api.example:443']);
    expect(await dial(certificate.certificateAuthority)).toMatch(/did not answer$/);
  });
});
