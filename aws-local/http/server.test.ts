import { connect } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { afterEach, describe, expect, it } from 'vitest';
import { makeAuthority, makeServerCertificate } from '../../shared/host/certificate.ts';
import type { StreamReceiver } from '../functions/environment.ts';
import type { InvocationOutcome, LocalFunction } from '../functions/local-function.ts';
import { type HttpFront, openHttpFront } from './server.ts';

const BODY_MS = 200;
let front: HttpFront | undefined;
afterEach(() => front?.kill());

/** @param payload what the function behind `GET /text` returns; without one there is no route */
async function open(payload?: string, bodyMs = BODY_MS): Promise<{ port: number; ca: string }> {
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  const certificate = await makeServerCertificate(authority, { names: ['127.0.0.1'], nowMs, validDays: 1 });
  front = await openHttpFront({ port: 0, ...certificate, bodyMs });
  front.serve({
    api: {
      apiId: 'a',
      routes:
        payload === undefined ? [] : [{ routeKey: 'GET /text', functionId: 'f', timeoutMs: 5_000, setHeaders: {} }],
    } as never,
    accountId: '1',
    throttles: false,
    functionOf: () => ({ invoke: async () => ({ kind: 'returned', payload }) }) as never,
    nowMs: Date.now,
  });
  return { port: front.port, ca: authority.certificatePem };
}

/** Sends the head of a request and `parts` of its body, never its end. */
async function unfinished(
  parts: readonly string[],
  bodyMs = BODY_MS,
): Promise<{ status: number | undefined; isClosed: boolean }> {
  const { port, ca } = await open(undefined, bodyMs);
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
  const { status = 413 } = await unfinished(Array(11).fill('x'.repeat(1_000_000)), 30_000);
  expect(status).toBe(413);
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

it.each([
  ['3,000,000 characters of one byte', 'x', 3_000_000, 200],
  ['3,000,000 characters of three bytes: Lambda counts bytes', '\u20ac', 3_000_000, 500],
])('an answer with %s', async (_, character, count, expected) => {
  const { port, ca } = await open(JSON.stringify({ statusCode: 200, body: character.repeat(count) }));
  const status = await new Promise((resolve, reject) => {
    const request = httpsRequest({ host: '127.0.0.1', port, ca, path: '/text', agent: false });
    request.on('response', (response) => resolve(response.resume().statusCode));
    request.on('error', reject);
    request.end();
  });
  expect(status).toBe(expected);
});

describe('a function that streams', () => {
  /** Streams until the receiver has taken `parts` after its client has left. */
  function streaming(parts: number): { readonly fn: LocalFunction; readonly taken: Promise<number> } {
    let settle: (taken: number) => void;
    const taken = new Promise<number>((resolve) => {
      settle = resolve;
    });
    const invoke = async (_event: unknown, receiver: StreamReceiver): Promise<InvocationOutcome> => {
      receiver.head({ statusCode: 200, headers: {} });
      await receiver.chunk(Buffer.from('first'));
      await new Promise((resolve) => receiver.gone.addEventListener('abort', resolve));
      for (let part = 0; part < parts; part += 1) await receiver.chunk(Buffer.from('more'));
      settle(parts);
      return { kind: 'returned', payload: 'null' };
    };
    return { fn: { plan: { functionName: 'f' }, invoke } as never, taken };
  }

  async function openFunction(fn: LocalFunction): Promise<{ port: number; ca: string }> {
    const nowMs = Date.now();
    const authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
    const certificate = await makeServerCertificate(authority, { names: ['127.0.0.1'], nowMs, validDays: 1 });
    front = await openHttpFront({ port: 0, ...certificate });
    front.serveFunction({ accountId: '1', fn, chunkHold: 'none', nowMs: Date.now });
    return { port: front.port, ca: authority.certificatePem };
  }

  it('can write on after its client has left over HTTP/2', async () => {
    const { fn, taken } = streaming(3);
    const { port, ca } = await openFunction(fn);
    const session = connect(`https://127.0.0.1:${port}`, { ca });
    session.on('error', () => {});
    session.request({ ':path': '/' }).once('data', () => session.destroy());
    expect(await taken).toBe(3);
  });

  it('can write on after its client has left over HTTP/1.1', async () => {
    const { fn, taken } = streaming(3);
    const { port, ca } = await openFunction(fn);
    const request = httpsRequest({ host: '127.0.0.1', port, ca, agent: false }, (response) => {
      response.once('data', () => request.destroy());
    });
    request.on('error', () => {});
    request.end();
    expect(await taken).toBe(3);
  });
});

describe('a text that is written in parts', () => {
  // A character of two UTF-16 units begins at an odd position, so the end of each part is between its units.
  const text = `-${'\u{1f600}'.repeat(200_000)}\u00e9`;
  const payloadOf = (body: string) =>
    JSON.stringify({ statusCode: 200, headers: { 'content-type': 'text/plain' }, body });
  const payload = payloadOf(text);
  // The first part ends with half of a pair, and a whole pair follows.
  const halved = `${'-'.repeat(65_535)}\ud83d${'\u{1f600}'.repeat(100_000)}`;

  it.each([
    ['', text],
    [', with half of a pair at the end of a part', halved],
  ])('arrives whole over HTTP/1.1, and its length is that of its bytes%s', async (_case, body) => {
    const { port, ca } = await open(payloadOf(body));
    const [length, received] = await new Promise<[string | undefined, string]>((resolve, reject) => {
      const request = httpsRequest({ host: '127.0.0.1', port, ca, path: '/text' }, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('end', () => resolve([response.headers['content-length'], Buffer.concat(parts).toString()]));
      });
      request.on('error', reject);
      request.end();
    });
    expect(Number(length)).toBe(Buffer.byteLength(body));
    expect(received === Buffer.from(body).toString()).toBe(true);
  });

  it('arrives whole over HTTP/2', async () => {
    const { port, ca } = await open(payload);
    const session = connect(`https://127.0.0.1:${port}`, { ca });
    const received = await new Promise<string>((resolve, reject) => {
      const stream = session.request({ ':path': '/text' });
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => resolve(Buffer.concat(parts).toString()));
      stream.on('error', reject);
    });
    session.destroy();
    expect(received === text).toBe(true);
  });

  it('does not disturb the next request when its client leaves', async () => {
    const { port, ca } = await open(payload);
    await new Promise<void>((resolve) => {
      const request = httpsRequest({ host: '127.0.0.1', port, ca, path: '/text', agent: false });
      request.on('response', () => request.destroy());
      request.on('error', () => {});
      request.on('close', resolve);
      request.end();
    });
    const status = await new Promise((resolve, reject) => {
      const request = httpsRequest({ host: '127.0.0.1', port, ca, path: '/none' });
      request.on('response', (response) => resolve(response.resume().statusCode));
      request.on('error', reject);
      request.end();
    });
    expect(status).toBe(404);
  });
});
