import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { startTlsServer } from '../../test/support/tls-server.ts';
import { listenOnLoopback } from '../host/loopback.ts';
import { type PostClient, type PostClientOptions, postClient } from './signed-post.ts';

const answerOf = (body: string): string => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** A server that passes each received chunk to `onData`, with the number of its connection, from 1. */
async function against(
  onData: (socket: Socket, text: string, connection: number) => void,
  options: Partial<PostClientOptions> = {},
): Promise<{ client: PostClient; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const connection = sockets.push(socket);
    socket.setEncoding('utf8').on('error', () => {});
    socket.on('data', (text: string) => onData(socket, text, connection));
  });
  const port = await listenOnLoopback(server);
  const endpoint = new URL(`http://127.0.0.1:${port}`);
  const client = postClient({ endpoint, socketsMax: 2, timeoutMs: 2_000, nowMs: Date.now, ...options });
  undo.push(
    () => new Promise((resolve) => server.close(resolve)),
    () => sockets.map((socket) => socket.destroy()),
    () => client.close(),
  );
  return { client, sockets };
}

describe('a POST over persistent connections', () => {
  it('sends headers, body and content length in bytes', async () => {
    const texts: string[] = [];
    const { client } = await against((socket, text) => {
      texts.push(text);
      socket.write(answerOf('{}'));
    });
    expect(await client.post({ host: 'h', 'x-amz-target': 'T' }, '"ü"')).toMatchObject({ status: 200, body: '{}' });
    const [head, body] = texts.join('').split('\r\n\r\n');
    expect(head?.split('\r\n')).toEqual(
      expect.arrayContaining(['POST / HTTP/1.1', 'host: h', 'x-amz-target: T', 'content-length: 4']),
    );
    expect(body).toBe('"ü"');
  });

  it('uses one connection for sequential requests', async () => {
    const { client, sockets } = await against((socket) => socket.write(answerOf('{}')));
    for (let request = 0; request < 3; request += 1) await client.post({}, '');
    expect(sockets).toHaveLength(1);
  });

  it('assembles a response from several chunks', async () => {
    const { client } = await against((socket) => {
      socket.setNoDelay(true).write(answerOf('{"a":1}').slice(0, 30));
      setImmediate(() => socket.write(answerOf('{"a":1}').slice(30)));
    });
    expect((await client.post({}, '')).body).toBe('{"a":1}');
  });

  it('delays requests beyond the maximum number of connections', async () => {
    const held: Socket[] = [];
    const { client, sockets } = await against((socket) => {
      held.push(socket);
      if (held.length >= 2) for (const each of held.splice(0)) each.write(answerOf('{}'));
    });
    const answers = await Promise.all(Array.from({ length: 6 }, () => client.post({}, '')));
    expect(answers).toHaveLength(6);
    expect(sockets).toHaveLength(2);
  });

  it('opens another connection after one that was closed while idle', async () => {
    const { client, sockets } = await against((socket) => socket.write(answerOf('{}')));
    await client.post({}, '');
    const closed = once(sockets[0]!, 'close');
    sockets[0]!.end();
    await closed;
    await client.post({}, '');
    expect(sockets).toHaveLength(2);
  });

  it.each([
    [20_000, 1],
    [20_001, 2],
  ])('after %i ms without a request it has opened %i connections', async (idleMs, connections) => {
    let nowMs = 0;
    const { client, sockets } = await against((socket) => socket.write(answerOf('{}')), { nowMs: () => nowMs });
    await client.post({}, '');
    nowMs = idleMs;
    await client.post({}, '');
    nowMs += idleMs - 1_000;
    await client.post({}, '');
    expect(sockets).toHaveLength(connections);
  });

  it('ignores a response that arrives before its request', async () => {
    const { client, sockets } = await against((socket, _, connection) => {
      if (connection === 1) socket.write(`${answerOf('1')}${answerOf('unasked')}`);
      else socket.write(answerOf('2'));
    });
    expect((await client.post({}, '')).body).toBe('1');
    expect((await client.post({}, '')).body).toBe('2');
    expect(sockets).toHaveLength(2);
  });

  it('opens another connection after a response that closes the first', async () => {
    const { client, sockets } = await against((socket) => socket.end(`HTTP/1.1 200 OK\r\n\r\n{}`));
    expect((await client.post({}, '')).body).toBe('{}');
    expect((await client.post({}, '')).body).toBe('{}');
    expect(sockets).toHaveLength(2);
  });

  it.each([
    [{ code: 'ECONNRESET' }, (socket: Socket) => socket.end(answerOf('{}').slice(0, -1))],
    [{ code: expect.stringMatching(/^HPE_/) }, (socket: Socket) => socket.write('SSH-2.0\r\n\r\n')],
    [{ name: 'AnswerTooLong' }, (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(1_100_000)}`)],
    [{ name: 'TimeoutError' }, () => {}],
  ])('rejects with %o, and serves the next request', async (fault, fail) => {
    const { client } = await against(
      (socket, _, connection) => (connection === 1 ? fail(socket) : socket.write(answerOf('{}'))),
      // Only the case that expects a timeout has a short one: on a busy machine the others could reach it.
      'name' in fault && fault.name === 'TimeoutError' ? { timeoutMs: 200 } : {},
    );
    await expect(client.post({}, '')).rejects.toMatchObject(fault);
    expect((await client.post({}, '')).body).toBe('{}');
  });

  it('rejects a request that waited too long for a connection', async () => {
    const { client } = await against(() => {}, { socketsMax: 1, timeoutMs: 50 });
    const outcomes = await Promise.allSettled([client.post({}, ''), client.post({}, '')]);
    expect(outcomes).toMatchObject([{ reason: { name: 'TimeoutError' } }, { reason: { name: 'TimeoutError' } }]);
  });

  it('rejects with the error code of Node if the connection is refused', async () => {
    const client = postClient({
      endpoint: new URL('http://127.0.0.1:9'),
      socketsMax: 1,
      timeoutMs: 2_000,
      nowMs: Date.now,
    });
    await expect(client.post({}, '')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('rejects running requests when it is closed', async () => {
    const { client } = await against(() => {}, { socketsMax: 1 });
    const outcomes = Promise.allSettled([client.post({}, ''), client.post({}, '')]);
    client.close();
    expect(await outcomes).toMatchObject([{ reason: { code: 'ECONNRESET' } }, { status: 'rejected' }]);
  });

  it('speaks TLS to a server it trusts, and resumes the session', async () => {
    const seen: { readonly resumed: boolean }[] = [];
    const server = await startTlsServer((request, answer) => {
      const socket = request.socket as TLSSocket;
      seen.push({ resumed: socket.isSessionReused() });
      answer.writeHead(200, { connection: 'close' }).end('{}');
    });
    undo.push(() => server.close());
    const endpoint = new URL(`https://localhost:${server.port}`);
    const client = postClient({ endpoint, socketsMax: 1, timeoutMs: 2_000, nowMs: Date.now });
    await expect(client.post({ host: endpoint.host }, '')).rejects.toMatchObject({
      code: expect.stringMatching(/CERT|ISSUER|VERIFY/),
    });
    setDefaultCACertificates([server.certificateAuthority]);
    expect((await client.post({ host: endpoint.host }, '')).body).toBe('{}');
    expect((await client.post({ host: endpoint.host }, '')).body).toBe('{}');
    expect(seen).toEqual([{ resumed: false }, { resumed: true }]);
  });
});
