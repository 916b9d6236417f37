import { afterEach, describe, expect, it } from 'vitest';
import { type HealthzServer, serveHealthz } from './healthz-server.ts';

const servers: HealthzServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

async function served(complaint?: string) {
  const server = await serveHealthz({
    port: 0,
    checks: [
      { name: 'ping', complaint: () => undefined },
      { name: 'lease', complaint: () => complaint },
    ],
    metrics: () => 'beats_total 3\n',
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
    expect(await answer.text()).toBe('beats_total 3\n');
  });

  it('serves nothing else, and to readers alone', async () => {
    const { get } = await served();
    expect((await get('/pods')).status).toBe(404);
    expect((await get('/healthz', 'POST')).status).toBe(405);
    expect((await get('/healthz', 'HEAD')).status).toBe(200);
  });

  it('rejects if its port is in use', async () => {
    const { server } = await served();
    await expect(serveHealthz({ port: server.port, checks: [], metrics: () => '' })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    });
  });
});
