import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loopbackClient } from './loopback-client.ts';
import type { Message } from './loopback-message.ts';
import { type LoopbackAnswer, startLoopbackServer } from './loopback-server.ts';

const BODY_BYTES_MAX = 100_000;

async function aServer(serve: (request: Message) => Promise<LoopbackAnswer>) {
  const server = await startLoopbackServer(BODY_BYTES_MAX, serve);
  onTestFinished(() => server.stop());
  return server;
}

function aClient(port: number, timeoutMs?: number) {
  const client = loopbackClient(new URL(`http://127.0.0.1:${port}`), timeoutMs);
  onTestFinished(() => client.close());
  return client;
}

const echo = async ({ startLine, body }: Message): Promise<LoopbackAnswer> => ({
  status: '200 OK',
  headers: [],
  body: `${startLine}: ${body.toString()}`,
});

describe('requests between our own processes', () => {
  it('are answered each, however many run at once and however large they are', async () => {
    const client = aClient((await aServer(echo)).port);
    const bodies = Array.from({ length: 20 }, (_, index) => String(index).repeat(index * 200));
    const answers = await Promise.all(bodies.map((body) => client.post('/a', [], body)));
    expect(answers.map(({ body }) => body.toString())).toEqual(bodies.map((body) => `POST /a HTTP/1.1: ${body}`));
  });

  it('use a connection again', async () => {
    let connections = 0;
    const server = createServer((_, response) => response.end('answer'));
    server.on('connection', () => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.closeAllConnections());
    onTestFinished(() => void server.close());
    const client = aClient((server.address() as AddressInfo).port);
    for (let time = 0; time < 3; time += 1) {
      expect(await client.post('/', [], 'x')).toMatchObject({ status: '200 OK', body: Buffer.from('answer') });
    }
    expect(connections).toBe(1);
  });

  it('fail when the other side closes the connection, and the next one is sent over a new one', async () => {
    const faults = [new Error('this request cannot be served')];
    const server = await aServer((request) => {
      const fault = faults.pop();
      return fault === undefined ? echo(request) : Promise.reject(fault);
    });
    const client = aClient(server.port);
    await expect(client.post('/', [], 'x')).rejects.toThrow('closed before an answer');
    expect((await client.post('/', [], 'x')).body.toString()).toBe('POST / HTTP/1.1: x');
  });

  it('fail after their time limit, and when nothing listens', async () => {
    const silent = await aServer(() => new Promise(() => {}));
    await expect(aClient(silent.port, 10).post('/', [], '')).rejects.toThrow('no answer in 10 ms');
    await silent.stop();
    await expect(aClient(silent.port).post('/', [], '')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('that are no HTTP close their own connection alone', async () => {
    const { port } = await aServer(echo);
    const stranger = connect(port, '127.0.0.1', () => stranger.write('nonsense\r\nnonsense\r\n\r\n'));
    await new Promise((resolve) => stranger.once('close', resolve));
    expect((await aClient(port).post('/', [], 'x')).status).toBe('200 OK');
  });
});
