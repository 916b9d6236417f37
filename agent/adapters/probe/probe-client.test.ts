import { createServer } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { listenOnLoopback } from '../../../shared/host/loopback.ts';
import { probeClient } from './probe-client.ts';

const server = createServer((_, response) => {
  response.writeHead(302, { location: 'ftp://127.0.0.1/x' }).end();
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

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
