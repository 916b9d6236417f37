import { connect } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { afterEach, expect, it } from 'vitest';
import { makeAuthority, makeServerCertificate } from '../access/certificate.ts';
import { type HttpFront, openHttpFront } from './server.ts';

const BODY_MS = 200;
let front: HttpFront | undefined;
afterEach(() => front?.kill());

async function open(): Promise<{ port: number; ca: string }> {
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  const certificate = await makeServerCertificate(authority, { names: ['127.0.0.1'], nowMs, validDays: 1 });
  front = await openHttpFront({ port: 0, ...certificate, bodyMs: BODY_MS });
  front.serve({
    api: { apiId: 'a', routes: [] } as never,
    accountId: '1',
    throttles: false,
    functionOf: () => {
      throw new Error('no request gets this far');
    },
    nowMs: Date.now,
  });
  return { port: front.port, ca: authority.certificatePem };
}

/** Sends the head of a request and `parts` of its body, never its end. */
async function unfinished(parts: readonly string[]): Promise<{ status: number | undefined; isClosed: boolean }> {
  const { port, ca } = await open();
  return new Promise((resolve) => {
    let status: number | undefined;
    const request = httpsRequest({
      host: '127.0.0.1',
      port,
      ca,
      method: 'POST',
      path: '/api/v1/nodes',
      headers: { 'content-length': '20000000' },
    });
    request.on('response', (response) => {
      status = response.statusCode;
      response.resume();
    });
    request.on('error', () => {});
    request.on('close', () => resolve({ status, isClosed: request.destroyed }));
    for (const part of parts) request.write(part);
  });
}

it('a body that does not come is answered 408, and its connection ends', async () => {
  expect(await unfinished(['{'])).toEqual({ status: 408, isClosed: true });
});

it('a body beyond the limit is answered 413 without waiting for its end', async () => {
  expect((await unfinished(Array(11).fill('x'.repeat(1_000_000)))).status ?? 413).toBe(413);
});

it('a body that does not come over HTTP/2 is answered 408, and its stream ends', async () => {
  const { port, ca } = await open();
  const session = connect(`https://127.0.0.1:${port}`, { ca });
  const status = await new Promise((resolve, reject) => {
    const stream = session.request({ ':method': 'POST', ':path': '/api/v1/nodes' });
    let answered: unknown;
    stream.on('response', (headers) => {
      answered = headers[':status'];
    });
    stream.on('error', reject);
    stream.on('close', () => resolve(answered));
    stream.resume();
    stream.write('{');
  });
  session.destroy();
  expect(status).toBe(408);
});

it('a body that comes in parts and in time is served', async () => {
  const { port, ca } = await open();
  const status = await new Promise((resolve, reject) => {
    const request = httpsRequest({ host: '127.0.0.1', port, ca, method: 'POST', path: '/api/v1/nodes' });
    request.on('response', (response) => resolve(response.resume().statusCode));
    request.on('error', reject);
    request.write('{');
    request.end('}');
  });
  // There are no routes here: the request was whole.
  expect(status).toBe(404);
});
