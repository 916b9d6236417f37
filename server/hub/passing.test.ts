/** Requests of clients over real TLS connections: what the cluster receives, and what a client receives without it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { makeAuthority, makeServerCertificate } from '../../shared/host/certificate.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import type { HttpRequest } from '../../shared/kubernetes/http.ts';
import { clusterConnection } from './cluster-connection.ts';
import { passing } from './passing.ts';

interface Seen {
  readonly line: string;
  readonly authorization: string | undefined;
  readonly hasCertificate: boolean;
}

/** A cluster that asks for certificates, and a hub that has one. */
async function site(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const directory = mkdtempSync(join(tmpdir(), 'nk-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  const { certificatePem: cert, privateKeyPem: key } = await makeServerCertificate(authority, {
    ...{ names: ['127.0.0.1'], nowMs, validDays: 1 },
  });
  const seen: Seen[] = [];
  const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }, (request, response) => {
    const { method, url, headers } = request;
    const certificate = (request.socket as TLSSocket).getPeerX509Certificate();
    seen.push({
      line: `${method} ${url}`,
      authorization: headers.authorization,
      hasCertificate: certificate !== undefined,
    });
    answer(request, response);
  });
  const port = await listenOnLoopback(server);
  const connection = clusterConnection({
    url: new URL(`https://127.0.0.1:${port}/prefix/`),
    tokenFile: undefined,
    certificate: { certificateFile: file('tls.crt', cert), keyFile: file('tls.key', key) },
    caFile: file('ca.pem', authority.certificatePem),
    socketsMax: 8,
  });
  const close = async (): Promise<void> => {
    connection.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(close);
  const { pass, codes, held } = passing({ connection, isDown: () => false, nowMs: Date.now });
  const gone = new AbortController();
  const send = (method: string, path: string, more: Partial<HttpRequest> = {}) =>
    pass(
      { method, path, query: new URLSearchParams(), headers: {}, body: Buffer.alloc(0), sourceIp: 'a', ...more },
      gone.signal,
    );
  return { connection, seen, send, codes, held, close };
}

it('passes the credentials of the client alone, the path as it was, and the answer as it is', async () => {
  const { connection, seen, send, codes, held } = await site((_, response) => {
    response.writeHead(201, { 'content-type': 'text/plain', 'x-a': '1', 'content-length': 2 }).end('ok');
  });
  await connection.send({ method: 'GET', path: '/own' }, { timeoutMs: 5_000 });
  const headers = { authorization: 'Bearer of-the-client', host: 'hub', 'content-length': '7' };
  const query = new URLSearchParams({ fieldManager: 'a b' });
  const { head } = await send('POST', '/api/v1/namespaces/ä/pods', { headers, query, body: Buffer.from('{}') });
  expect(head).toMatchObject({ status: 201, headers: { 'x-a': '1' }, body: Buffer.from('ok') });
  await send('GET', '/api');
  expect(seen).toEqual([
    { line: 'GET /prefix/own', authorization: undefined, hasCertificate: true },
    {
      line: 'POST /prefix/api/v1/namespaces/%C3%A4/pods?fieldManager=a+b',
      authorization: 'Bearer of-the-client',
      hasCertificate: false,
    },
    { line: 'GET /prefix/api', authorization: undefined, hasCertificate: false },
  ]);
  expect([...codes]).toEqual([[201, 2]]);
  expect(held()).toBe(0);
});

it('passes an answer of unknown length in parts', async () => {
  const { send, held } = await site((_, response) => {
    response.write('a');
    response.end('b');
  });
  const { output } = await send('GET', '/api/v1/pods');
  expect(held()).toBe(1);
  let text = '';
  for await (const part of output!) text += Buffer.from(part).toString();
  expect(text).toBe('ab');
  expect(held()).toBe(0);
});

it('says that a write may have been done when its connection breaks, and lets clients repeat what was not sent', async () => {
  const { send, seen, close } = await site((request) => request.socket.destroy());
  const broken = await send('POST', '/api/v1/pods');
  expect(broken.head).toMatchObject({ status: 504, body: expect.stringContaining('it may have done it') });
  expect(broken.head.headers['retry-after']).toBeUndefined();
  // To read twice does no harm.
  expect((await send('GET', '/api/v1/pods')).head).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
  expect(seen.map(({ line }) => line.slice(0, 4))).toEqual(['POST', 'GET ', 'GET ']);
  await close();
  expect((await send('POST', '/api/v1/pods')).head).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
});
