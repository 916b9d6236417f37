import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type HealthzServer, serveHealthz } from './healthz-server.ts';

const servers: HealthzServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

async function served(complaint?: string, more: { readonly requestTimeoutMs?: number } = {}) {
  const server = await serveHealthz({
    port: 0,
    checks: [
      { name: 'ping', complaint: () => undefined },
      { name: 'lease', complaint: () => complaint },
    ],
    metrics: () => 'beats_total 3\n',
    ...more,
  });
  servers.push(server);
  const get = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${server.port}${path}`, { method });
  return { server, get };
}

describe('healthz', () => {
  it('is ok while every check is', async () => {
    const { get } = await served();
    const answer = await get('/healthz?verbose');
    expect([answer.status, await answer.text()]).toEqual([200, 'ok']);
  });

  it('names the check that failed', async () => {
    const { get } = await served('no round for 61 s');
    const answer = await get('/healthz');
    expect(answer.status).toBe(500);
    expect(await answer.text()).toBe('[+]ping ok\n[-]lease failed: no round for 61 s\nhealthz check failed\n');
  });

  it('serves metrics in the text format', async () => {
    const { get } = await served();
    const answer = await get('/metrics');
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(await answer.text()).toBe('beats_total 3\n');
  });

  it('serves nothing else, and to readers alone', async () => {
    const { get } = await served();
    expect((await get('/pods')).status).toBe(404);
    expect((await get('/healthz', 'POST')).status).toBe(405);
    expect((await get('/healthz', 'HEAD')).status).toBe(200);
  });

  /** A connection with half of a request. */
  async function halfRequest({ port }: HealthzServer) {
    const socket = connect(port, '127.0.0.1').resume();
    await once(socket, 'connect');
    socket.on('error', () => undefined);
    socket.write('GET /healthz HTTP/1.1\r\n');
    return socket;
  }

  const closeOf = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()));

  it('closes a connection that sends no whole request in time', async () => {
    const { server } = await served(undefined, { requestTimeoutMs: 20 });
    await closeOf(await halfRequest(server));
  });

  it('closes with requests that are not whole', async () => {
    const { server } = await served();
    const socket = await halfRequest(server);
    const closed = closeOf(socket);
    await server.close();
    await closed;
  });

  it('rejects if its port is in use', async () => {
    const { server } = await served();
    await expect(serveHealthz({ port: server.port, checks: [], metrics: () => '' })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    });
  });
});
