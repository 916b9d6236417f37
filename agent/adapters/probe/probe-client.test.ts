import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { listenOnLoopback } from '../../../shared/host/loopback.ts';
import { startTlsServer } from '../../../test/support/tls-server.ts';
import { probeClient } from './probe-client.ts';

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://h');
  if (pathname === '/hops') {
    const left = Number(searchParams.get('left'));
    return void response.writeHead(left > 0 ? 301 : 200, left > 0 ? { location: `/hops?left=${left - 1}` } : {}).end();
  }
  if (pathname === '/long') return void response.writeHead(503).end('x'.repeat(30_000));
  if (pathname === '/elsewhere')
    return void response.writeHead(307, { location: 'http://other.invalid/' }).end('moved');
  if (pathname === '/same') return void response.writeHead(304, { location: '/' }).end();
  if (pathname === '/nowhere') return void response.writeHead(302, { location: 'http://[' }).end();
  if (pathname === '/headers') return void response.end(JSON.stringify(request.headers));
  if (pathname === '/silent') return;
  response.writeHead(302, { location: 'ftp://127.0.0.1/x' }).end();
}

let server: Server;
beforeEach(() => {
  server = createServer(answer);
});
afterEach(() => {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
});

it('answers with a failure what no HTTP request can be made of', async () => {
  const port = await listenOnLoopback(server);
  const target = { scheme: 'http', host: '127.0.0.1', port, path: '/', headers: [] } as const;
  const client = probeClient();
  const message = (more: object) => client.httpGet({ ...target, ...more }, 2_000);
  expect(await message({})).toEqual({
    kind: 'failed',
    message: 'Get "ftp://127.0.0.1/x": unsupported protocol scheme "ftp"',
  });
  expect(await message({ host: 'a b' })).toMatchObject({ kind: 'failed' });
  expect(await message({ headers: [['a', 'b\nc']] })).toMatchObject({ kind: 'failed' });
});

const get = async (path: string, headers: readonly (readonly [string, string])[] = [], timeoutMs = 10_000) => {
  const port = await listenOnLoopback(server);
  const target = { scheme: 'http', host: '127.0.0.1', port, path, headers } as const;
  return { port, result: await probeClient().httpGet(target, timeoutMs) };
};

it('follows nine redirects on the same host, not ten', async () => {
  expect((await get('/hops?left=9')).result).toEqual({ kind: 'answered', status: 200, body: '' });
});

it('stops after ten redirects', async () => {
  const { port, result } = await get('/hops?left=10');
  const message = `Get "http://127.0.0.1:${port}/hops?left=0": stopped after 10 redirects`;
  expect(result).toEqual({ kind: 'failed', message });
});

it.each([
  ['another host', '/elsewhere', { kind: 'redirected', body: 'moved' }],
  ['no URL', '/nowhere', { kind: 'answered', status: 302, body: '' }],
  ['a copy that is current', '/same', { kind: 'answered', status: 304, body: '' }],
])('does not follow a redirect to %s', async (_what, path, result) => {
  expect((await get(path)).result).toEqual(result);
});

it('reads the first 10 KiB of an answer', async () => {
  expect((await get('long')).result).toEqual({ kind: 'answered', status: 503, body: 'x'.repeat(10_240) });
});

it.each<[readonly (readonly [string, string])[], object, string[]]>([
  [[], { accept: '*/*', 'user-agent': expect.stringMatching(/^kube-probe\/1\.\d+$/), connection: 'close' }, []],
  [
    [
      ['User-Agent', 'own'],
      ['Accept', 'text/plain'],
    ],
    { 'user-agent': 'own', accept: 'text/plain' },
    [],
  ],
  [
    [
      ['Accept', ''],
      ['x-a', '1'],
      ['X-A', '2'],
    ],
    { 'x-a': '1, 2' },
    ['accept'],
  ],
])('sends the headers of upstream and %j', async (headers, sent, absent) => {
  const { result } = await get('/headers', headers);
  const received = JSON.parse((result as { body: string }).body);
  expect(received).toMatchObject(sent);
  for (const name of absent) expect(received).not.toHaveProperty(name);
});

it('has the time of the probe', async () => {
  const { result } = await get('/silent', [], 50);
  expect(result).toMatchObject({ kind: 'failed', message: expect.stringContaining('context deadline exceeded') });
});

it('connects by TCP, or says why not as upstream does', async () => {
  const port = await listenOnLoopback(server);
  const client = probeClient();
  expect(await client.tcpConnect('127.0.0.1', port, 10_000)).toBeUndefined();
  await new Promise((resolve) => server.close(resolve));
  const refusal = `dial tcp 127.0.0.1:${port}: connect: connection refused`;
  expect(await client.tcpConnect('127.0.0.1', port, 10_000)).toBe(refusal);
  const target = { scheme: 'http', host: '127.0.0.1', port, path: '/x', headers: [] } as const;
  const message = `Get "http://127.0.0.1:${port}/x": ${refusal}`;
  expect(await client.httpGet(target, 10_000)).toEqual({ kind: 'failed', message });
});

it('asks by TLS where the probe says so, whoever signed the certificate, and follows a redirect there', async () => {
  const tls = await startTlsServer((request, response) => response.end(`secure ${request.url}`));
  onTestFinished(() => tls.close());
  const target = { host: '127.0.0.1', headers: [] } as const;
  const client = probeClient();
  expect(await client.httpGet({ ...target, scheme: 'https', port: tls.port, path: '/x' }, 10_000)).toEqual({
    ...{ kind: 'answered', status: 200, body: 'secure /x' },
  });
  server.removeAllListeners('request');
  server.on('request', (_, response) => response.writeHead(302, { location: `${tls.url}/y` }).end());
  const port = await listenOnLoopback(server);
  expect(await client.httpGet({ ...target, scheme: 'http', port, path: '/' }, 10_000)).toMatchObject({
    body: 'secure /y',
  });
});

it('reports in its own words what has no text of Go', async () => {
  server.removeAllListeners('request');
  server.on('request', (request) => request.socket.destroy());
  const { port, result } = await get('/x');
  expect(result).toEqual({ kind: 'failed', message: `Get "http://127.0.0.1:${port}/x": socket hang up` });
  expect(await probeClient().tcpConnect('no.such.host.invalid', 80, 10_000)).toMatch(
    /^dial tcp no\.such\.host\.invalid:80: (getaddrinfo|i\/o timeout)/,
  );
});

it('names an address of IPv6 in brackets', async () => {
  const target = { scheme: 'http', host: '::1', port: 1, path: '/', headers: [] } as const;
  const failed = await probeClient().httpGet(target, 10_000);
  expect(failed).toMatchObject({ message: expect.stringMatching(/^Get "http:\/\/\[::1\]:1\/": dial tcp \[::1\]:1: /) });
  expect(await probeClient().tcpConnect('::1', 1, 10_000)).toMatch(/^dial tcp \[::1\]:1: /);
});
