import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { afterEach, describe, expect, it } from 'vitest';
import { makeAuthority, makeServerCertificate } from '../../shared/host/certificate.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { type ApiClient, createApiClient } from './api-client.ts';

type Answer = (incoming: IncomingMessage, outgoing: ServerResponse, body: string) => void;

describe('the client of a fleet', () => {
  const servers: Server[] = [];
  const clients: ApiClient[] = [];

  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  const listen = async (server: Server): Promise<number> => {
    servers.push(server);
    return listenOnLoopback(server);
  };

  const reading =
    (answer: Answer) =>
    (incoming: IncomingMessage, outgoing: ServerResponse): void => {
      let body = '';
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      incoming.on('end', () => answer(incoming, outgoing, body));
    };

  async function clientOf(
    answer: Answer,
    options: { connectionsMax?: number; timeoutMs?: number; prefix?: string } = {},
  ) {
    const port = await listen(createServer(reading(answer)));
    const client = createApiClient({
      url: `http://127.0.0.1:${port}${options.prefix ?? ''}`,
      token: 'secret',
      connectionsMax: options.connectionsMax ?? 4,
      timeoutMs: options.timeoutMs ?? 5_000,
    });
    clients.push(client);
    return client;
  }

  it('sends token, content type and body under the prefix of the URL, and reads JSON', async () => {
    const client = await clientOf(
      ({ method, url, headers }, outgoing, body) => {
        const { authorization, 'content-type': type } = headers;
        outgoing.writeHead(201).end(JSON.stringify({ method, url, authorization, type, body }));
      },
      { prefix: '/prod/' },
    );
    const contentType = 'application/merge-patch+json';
    expect(await client.send({ method: 'PATCH', path: '/api/v1/x', body: { a: 1 }, contentType })).toEqual({
      kind: 'answered',
      status: 201,
      body: {
        method: 'PATCH',
        url: '/prod/api/v1/x',
        authorization: 'Bearer secret',
        type: contentType,
        body: '{"a":1}',
      },
    });
  });

  it('yields the text of an answer that is not JSON', async () => {
    const client = await clientOf((_, outgoing) => outgoing.writeHead(502).end('bad gateway'));
    expect(await client.send({ method: 'GET', path: '/' })).toEqual({
      kind: 'answered',
      status: 502,
      body: 'bad gateway',
    });
  });

  it('says that no answer came instead of rejecting', async () => {
    const refused = createApiClient({ url: 'http://127.0.0.1:9', token: 't', connectionsMax: 1, timeoutMs: 5_000 });
    clients.push(refused);
    expect(await refused.send({ method: 'GET', path: '/' })).toMatchObject({ kind: 'failed' });
    const mute = await clientOf(() => undefined, { timeoutMs: 50 });
    const late = await mute.send({ method: 'GET', path: '/' });
    expect(late).toMatchObject({ kind: 'failed', cause: { message: 'no answer in 50 ms' } });
  });

  it('keeps to its bound on connections and lets urgent requests overtake', async () => {
    const seen: string[] = [];
    const held: ServerResponse[] = [];
    let firstArrived: () => void = () => undefined;
    const arrival = new Promise<void>((resolve) => {
      firstArrived = resolve;
    });
    const server = createServer(
      reading(({ url }, outgoing) => {
        seen.push(url ?? '');
        if (seen.length > 1) return outgoing.end('{}');
        held.push(outgoing);
        return firstArrived();
      }),
    );
    let connections = 0;
    server.on('connection', () => {
      connections += 1;
    });
    const port = await listen(server);
    const client = createApiClient({
      url: `http://127.0.0.1:${port}`,
      token: 't',
      connectionsMax: 1,
      timeoutMs: 5_000,
    });
    clients.push(client);
    const first = client.send({ method: 'GET', path: '/first' });
    const ordinary = client.send({ method: 'GET', path: '/ordinary' });
    const urgent = client.send({ method: 'GET', path: '/urgent', urgent: true });
    await arrival;
    expect(client.pending()).toBe(3);
    held[0]!.end('{}');
    await Promise.all([first, ordinary, urgent]);
    expect(seen).toEqual(['/first', '/urgent', '/ordinary']);
    expect(connections).toBe(1);
    expect(client.pending()).toBe(0);
  });

  it('refuses what waits and cuts what runs when closed', async () => {
    const client = await clientOf(() => undefined, { connectionsMax: 1 });
    const running = client.send({ method: 'GET', path: '/running' });
    const waiting = client.send({ method: 'GET', path: '/waiting' });
    client.close();
    const answers = await Promise.all([running, waiting, client.send({ method: 'GET', path: '/after' })]);
    expect(answers.map(({ kind }) => kind)).toEqual(['failed', 'failed', 'failed']);
    expect(client.pending()).toBe(0);
  });

  it('trusts the configured authority only', async () => {
    const nowMs = Date.now();
    const authority = await makeAuthority({ commonName: 'ours', nowMs, validDays: 1 });
    const other = await makeAuthority({ commonName: 'other', nowMs, validDays: 1 });
    const { certificatePem, privateKeyPem } = await makeServerCertificate(authority, {
      names: ['127.0.0.1'],
      nowMs,
      validDays: 1,
    });
    const port = await listen(
      createTlsServer({ cert: certificatePem, key: privateKeyPem }, (_, outgoing) => outgoing.end('{}')),
    );
    const url = `https://127.0.0.1:${port}`;
    const [trusting, doubting] = [authority, other].map((ca) =>
      createApiClient({ url, ca: ca.certificatePem, token: 't', connectionsMax: 1, timeoutMs: 5_000 }),
    );
    clients.push(trusting!, doubting!);
    expect(await trusting!.send({ method: 'GET', path: '/' })).toMatchObject({ status: 200 });
    expect(await doubting!.send({ method: 'GET', path: '/' })).toMatchObject({ kind: 'failed' });
  });
});
