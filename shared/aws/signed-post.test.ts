import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { listenOnLoopback } from '../host/loopback.ts';
import { signedPost } from './signed-post.ts';

it.each([
  { idleMs: 4_000, connections: 1 },
  { idleMs: 4_001, connections: 2 },
])('after $idleMs ms without a request it has opened $connections connections', async ({ idleMs, connections }) => {
  const sockets = new Set<Socket>();
  const server = createServer((incoming, outgoing) => {
    sockets.add(incoming.socket);
    incoming.resume().on('end', () => outgoing.end('{}'));
  });
  const port = await listenOnLoopback(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const connection = {
    region: 'us-east-1',
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
  };
  let clockMs = 0;
  const call = { service: 'events', target: 'AWSEvents.PutEvents', timeoutMs: 2_000 };
  const post = signedPost(connection, call, () => clockMs);
  expect(await post('{}', 0)).toEqual({ status: 200, body: '{}' });
  clockMs += idleMs;
  // The time of the call is that of its tick.
  expect(await post('{}', 0)).toEqual({ status: 200, body: '{}' });
  expect(sockets.size).toBe(connections);
});
