import { createServer, type ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { createUpstream } from './upstream.ts';

it.each<[string, (response: ServerResponse) => void]>([
  ['sends nothing', () => undefined],
  ['sends nothing after the first part of its body', (response) => response.write('{')],
])('an API that %s is reported as a gateway timeout', async (_, answer) => {
  const api = createServer((_request, response) => answer(response));
  const port = await listenOnLoopback(api);
  const access = { url: `http://127.0.0.1:${port}`, token: 'a' };
  const upstream = createUpstream(access, () => access, Date.now, 50);
  const sent = upstream.send({ method: 'GET', target: '/', signal: new AbortController().signal });
  await expect(sent).rejects.toMatchObject({
    status: 504,
    message: 'no response of the API: no data for 0.05 s',
  });
  api.closeAllConnections();
  api.close();
});
