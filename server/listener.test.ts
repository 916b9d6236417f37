import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { makeAuthority, makeServerCertificate } from '../shared/host/certificate.ts';
import type { HttpRequest } from '../shared/kubernetes/http.ts';
import { makeClientCertificate } from '../test/support/client-certificate.ts';
import { until } from '../test/support/until.ts';
import { type Answer, openListener } from './listener.ts';

let ca = '';
let certificate: { certificatePem: string; privateKeyPem: string };
const makeCertificate = async () => {
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  const own = await makeServerCertificate(authority, { names: ['127.0.0.1', 'localhost'], nowMs, validDays: 1 });
  return { ca: authority.certificatePem, own };
};
beforeAll(async () => {
  const made = await makeCertificate();
  ca = made.ca;
  certificate = made.own;
});

const TEXT = { status: 200, headers: { 'content-type': 'text/plain' }, body: 'ok' };

async function listening(
  serve: (request: HttpRequest, gone: AbortSignal) => Promise<Answer> = async () => ({ head: TEXT }),
  clientAuthorities?: readonly X509Certificate[],
) {
  const errors: unknown[] = [];
  const listener = await openListener({
    host: '127.0.0.1',
    port: 0,
    ...certificate,
    ...(clientAuthorities !== undefined && {
      clientAuthorities: clientAuthorities.map((each) => ({ certificate: each, isOwn: false })),
    }),
    log: { debug() {}, info() {}, warn() {}, error: (_, fields) => void errors.push(fields?.['error']) },
    serve,
  });
  onTestFinished(() => listener.stop());
  return { listener, errors, url: `https://127.0.0.1:${listener.port}` };
}

/** One request over HTTP/1.1. */
function send(
  url: string,
  {
    method = 'GET',
    body: sent,
    headers = {},
    ...tls
  }: { method?: string; body?: string | Buffer; headers?: Record<string, string>; cert?: string; key?: string } = {},
) {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const request = httpsRequest(url, { ca, method, headers, agent: false, ...tls }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body }));
      answer.once('error', reject);
    });
    request.once('error', reject);
    request.end(sent);
  });
}

describe('the listener', () => {
  it('passes a request on, decoded as an HTTP API decodes it, over HTTP/1.1 and HTTP/2', async () => {
    const seen: HttpRequest[] = [];
    const { url } = await listening(async (request) => {
      seen.push(request);
      return { head: TEXT };
    });
    expect(
      await send(`${url}/api/v1/a%20b?x=1&x=2`, { method: 'POST', body: 'hello', headers: { 'X-One': 'a' } }),
    ).toEqual({
      status: 200,
      body: 'ok',
    });
    const session = connectHttp2(url, { ca });
    onTestFinished(() => session.close());
    const stream = session.request({ ':path': '/api/v1/c%2Fd', ':method': 'GET' });
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    stream.resume();
    expect(headers[':status']).toBe(200);
    expect(seen).toMatchObject([
      { method: 'POST', path: '/api/v1/a b', headers: { 'x-one': 'a' }, sourceIp: '127.0.0.1' },
      { method: 'GET', path: '/api/v1/c/d' },
    ]);
    expect(Buffer.from(seen[0]!.body).toString()).toBe('hello');
    expect(seen[0]!.query.getAll('x')).toEqual(['1', '2']);
    expect(seen[1]!.headers['host']).toBe(new URL(url).host);
  });

  it('refuses a body above the limit of upstream with a Status, and one with a declared length at once', async () => {
    let served = 0;
    const { url } = await listening(async () => {
      served += 1;
      return { head: TEXT };
    });
    const answer = await send(url, { method: 'POST', body: Buffer.alloc(3 * 1024 * 1024 + 1) }).catch(
      (error: unknown) => error,
    );
    if (!(answer instanceof Error))
      expect(JSON.parse((answer as { body: string }).body)).toMatchObject({
        code: 413,
        reason: 'RequestEntityTooLarge',
      });
    expect(served).toBe(0);
  });

  it('counts bodies that have arrived, not those that are declared', async () => {
    const { url, listener } = await listening();
    const open = (headers: Record<string, string>, bytes: number) => {
      const request = httpsRequest(url, { ca, agent: false, method: 'POST', headers });
      onTestFinished(() => void request.destroy());
      request.on('error', () => {});
      request.flushHeaders();
      if (bytes > 0) request.write(Buffer.alloc(bytes));
    };
    const declared = String(3 * 1024 * 1024);
    for (let count = 0; count < 45; count += 1) open({ 'content-length': declared }, 0);
    await until(() => listener.counters.requests >= 45, { withinMs: 30_000, what: 'the requests' });
    expect((await send(url, { method: 'POST', body: 'hello' })).status).toBe(200);
    expect(listener.counters.refusedBodies).toBe(0);
    for (let count = 0; count < 45; count += 1) open({ 'transfer-encoding': 'chunked' }, 3 * 1024 * 1024);
    await until(() => listener.counters.refusedBodies > 0, { withinMs: 30_000, what: 'a refusal' });
  });

  it('refuses headers above its limit', async () => {
    const { url } = await listening();
    expect((await send(url, { headers: { long: 'x'.repeat(20_000) } })).status).toBe(431);
  });

  it('streams parts as they come, and ends them when the client leaves', async () => {
    let isReturned = false;
    async function* lines() {
      try {
        for (let index = 0; ; index += 1) {
          yield `${index}\n`;
          await new Promise((done) => setTimeout(done, 5));
        }
      } finally {
        isReturned = true;
      }
    }
    const { url } = await listening(async () => ({ head: TEXT, lines: lines() }));
    const request = httpsRequest(url, { ca, agent: false });
    request.on('error', () => {});
    request.end();
    const [answer] = (await once(request, 'response')) as [NodeJS.ReadableStream];
    const [first] = (await once(answer, 'data')) as [Buffer];
    expect(String(first)).toMatch(/^0\n/);
    request.destroy();
    await until(async () => (isReturned ? true : undefined), { withinMs: 30_000, what: 'the end of the parts' });
  });

  it('ends parts that wait for something when the client leaves', async () => {
    let isReturned = false;
    const never = new Promise<void>(() => {});
    const lines: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => {
        let isFirst = true;
        return {
          async next() {
            if (!isFirst) await never;
            isFirst = false;
            return { done: false, value: 'a\n' };
          },
          async return() {
            isReturned = true;
            return { done: true, value: undefined };
          },
        };
      },
    };
    const { url } = await listening(async () => ({ head: TEXT, lines }));
    const session = connectHttp2(url, { ca });
    session.on('error', () => {});
    const stream = session.request({ ':path': '/' });
    stream.on('error', () => {});
    await once(stream, 'data');
    session.destroy();
    await until(async () => (isReturned ? true : undefined), { withinMs: 30_000, what: 'the end of the parts' });
  });

  it('reads no more parts than a client accepts that reads nothing', async () => {
    let parts = 0;
    async function* endless() {
      for (; parts < 2_000; parts += 1) yield 'x'.repeat(65_536);
    }
    const { url } = await listening(async ({ path }) =>
      path === '/endless' ? { head: TEXT, lines: endless() } : { head: TEXT },
    );
    const request = httpsRequest(`${url}/endless`, { ca, agent: false });
    onTestFinished(() => void request.destroy());
    request.on('error', () => {});
    request.end();
    await once(request, 'response');
    // The listener still answers while the stream is full.
    for (let requests = 0; requests < 5; requests += 1) expect((await send(url)).status).toBe(200);
    // The buffers of the kernel have some megabytes.
    expect(parts).toBeLessThan(1_000);
  });

  it.each([
    ['refuses a read', 'GET', 503],
    ['breaks off the answer of a write', 'POST', undefined],
  ])('%s when clients of its address leave too much unread, and counts it', async (_what, method, code) => {
    const { url, listener } = await listening(async ({ path }) => ({
      head: { ...TEXT, body: Buffer.alloc(path === '/long' ? 64 * 1024 * 1024 : 8_192) },
    }));
    const request = httpsRequest(`${url}/long`, { ca, agent: false });
    onTestFinished(() => void request.destroy());
    request.on('error', () => {});
    request.end();
    await once(request, 'response');
    expect((await send(url, { method }).catch(() => undefined))?.status).toBe(code);
    expect(listener.counters.cutAnswers).toBe(1);
    request.destroy();
    const isServed = async () => (await send(url).catch(() => undefined))?.status === 200 || undefined;
    await until(isServed, { withinMs: 30_000, what: 'an answer' });
  });

  it('begins parts after the client has left, too: they release what they hold', async () => {
    let isReturned = false;
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    async function* lines() {
      try {
        yield 'a';
      } finally {
        isReturned = true;
      }
    }
    const { url } = await listening(async (_, gone) => {
      request.destroy();
      await once(gone, 'abort');
      answer();
      return { head: TEXT, lines: lines() };
    });
    const request = httpsRequest(url, { ca, agent: false });
    request.on('error', () => {});
    request.end();
    await answered;
    await until(() => isReturned, { withinMs: 30_000, what: 'the end of the parts' });
  });

  it('ends a stream that breaks with an error over HTTP/2, not as a whole answer', async () => {
    async function* lines() {
      yield 'a part\n';
      throw new Error('ours');
    }
    const { url, errors } = await listening(async () => ({ head: TEXT, lines: lines() }));
    const session = connectHttp2(url, { ca });
    onTestFinished(() => session.close());
    const stream = session.request({ ':path': '/' });
    stream.resume();
    await expect(once(stream, 'close')).rejects.toThrow('NGHTTP2_INTERNAL_ERROR');
    expect(errors).toMatchObject([{ message: 'ours' }]);
  });

  it('a fault of ours breaks the connection of its client alone, and is logged', async () => {
    const { url, errors } = await listening(async ({ path }) => {
      if (path === '/fault') throw new Error('ours');
      return { head: TEXT };
    });
    await expect(send(`${url}/fault`)).rejects.toThrow();
    expect(errors).toMatchObject([{ message: 'ours' }]);
    expect((await send(`${url}/`)).status).toBe(200);
  });

  it('uses another certificate for new connections when it receives one', async () => {
    const { listener, url } = await listening();
    const other = await makeCertificate();
    listener.setCertificate(other.own);
    const socket = connectTls({ host: '127.0.0.1', port: Number(new URL(url).port), ca: other.ca });
    await once(socket, 'secureConnect');
    socket.destroy();
    await expect(send(url)).rejects.toThrow();
  });

  it('names the user of a certificate that its authority signed, and of no other, over both protocols', async () => {
    const nowMs = Date.now();
    const authority = await makeAuthority({ commonName: 'people', nowMs, validDays: 1 });
    const stranger = await makeAuthority({ commonName: 'people', nowMs, validDays: 1 });
    const subject = { commonName: 'ada', organizations: ['dev', 'ops'], nowMs, validDays: 1 };
    const ada = await makeClientCertificate(authority, subject);
    const forged = await makeClientCertificate(stranger, subject);
    const server = await makeServerCertificate(authority, { names: ['ada'], nowMs, validDays: 1 });
    const seen: (string | undefined)[] = [];
    const { url } = await listening(
      async ({ headers }) => {
        const client = headers[':client-certificate'];
        seen.push(client === undefined ? undefined : (JSON.parse(client) as { username: string }).username);
        return { head: TEXT };
      },
      [new X509Certificate(authority.certificatePem)],
    );
    for (const { certificatePem: cert, privateKeyPem: key } of [ada, forged, server]) {
      const session = connectHttp2(url, { ca, cert, key });
      // Two of one connection: what a forged signature leaves behind must not end it, nor another one.
      for (let requests = 0; requests < 2; requests += 1) {
        const stream = session.request({ ':path': '/', 'client-certificate': '{"username":"root"}' });
        await once(stream, 'response');
        stream.resume();
      }
      session.close();
      await send(url, { cert, key });
    }
    await send(url);
    const none = undefined;
    expect(seen).toEqual(['ada', 'ada', 'ada', none, none, none, none, none, none, none]);
  });

  it('says in one line why it cannot listen', async () => {
    const { listener } = await listening();
    const options = {
      host: '127.0.0.1',
      ...certificate,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      serve: async () => ({ head: TEXT }),
    };
    await expect(openListener({ ...options, port: listener.port })).rejects.toThrow(
      `port ${listener.port} is in use: choose another with --port`,
    );
    await expect(openListener({ ...options, host: '192.0.2.1', port: 0 })).rejects.toThrow(
      '192.0.2.1 is not an address of this machine',
    );
  });

  it('ends what is open when it stops', async () => {
    async function* endless() {
      yield 'a\n';
      await new Promise(() => {});
    }
    const { listener, url } = await listening(async () => ({ head: TEXT, lines: endless() }));
    const request = httpsRequest(url, { ca, agent: false });
    request.on('error', () => {});
    request.end();
    const [answer] = (await once(request, 'response')) as [NodeJS.ReadableStream];
    answer.on('error', () => {});
    answer.resume();
    await listener.stop();
    const isClosed = async () => (listener.connections() === 0 ? true : undefined);
    await until(isClosed, { withinMs: 30_000, what: 'the end of the connections' });
  });
});
