import { createServer } from 'node:https';
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { makeAuthority, makeServerCertificate } from '../../../shared/host/certificate.ts';
import { freePort, listenOnLoopback } from '../../../shared/host/loopback.ts';
import { MESSAGE_BYTES_MAX } from '../../../shared/sessions/channels.ts';
import { SESSION_PROTOCOL } from '../../../shared/sessions/session-request.ts';
import type { Credentials } from '../../ports/credentials.ts';
import { createSessionClient } from './session-client.ts';

let authority: Awaited<ReturnType<typeof makeAuthority>>;
let certificate: Awaited<ReturnType<typeof makeServerCertificate>>;
let answers: unknown[];
let uses: unknown[];
beforeAll(async () => {
  const nowMs = Date.now();
  authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  certificate = await makeServerCertificate(authority, { names: ['127.0.0.1'], nowMs, validDays: 1 });
});
beforeEach(() => {
  [answers, uses] = [[], []];
});

const credentials: Credentials = {
  async bearer(use) {
    uses.push(use);
    return 'token';
  },
  answered(answer) {
    answers.push(answer);
    return false;
  },
};

/** Upgrades connections, or refuses them with this status. */
async function server(refusal?: number) {
  const asked: unknown[] = [];
  const listener = createServer({ cert: certificate.certificatePem, key: certificate.privateKeyPem });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] ?? false });
  listener.on('upgrade', (request, socket, head) => {
    const { authorization } = request.headers;
    asked.push([request.url, authorization, request.headers['sec-websocket-protocol']]);
    if (refusal !== undefined) socket.end(`HTTP/1.1 ${refusal} No\r\ncontent-length: 0\r\n\r\n`);
    else sockets.handleUpgrade(request, socket, head, (open) => open.on('message', (data) => open.send(data)));
  });
  const port = await listenOnLoopback(listener);
  onTestFinished(() => {
    for (const client of sockets.clients) client.terminate();
    listener.close();
  });
  return { asked, endpoint: `https://127.0.0.1:${port}` };
}
const clientOf = (endpoint: string, certificateAuthority: string | undefined = authority.certificatePem) =>
  createSessionClient({ endpoint, certificateAuthority, credentials, environment: {} });

describe('a connection for sessions', () => {
  it.each(['', '/', '/prefix/'])('is opened with a token for all requests, below %j', async (prefix) => {
    const { asked, endpoint } = await server();
    const opening = await clientOf(`${endpoint}${prefix}`).open('/line');
    if (opening.kind !== 'opened') throw new Error(JSON.stringify(opening));
    expect(asked).toEqual([[`${prefix.replace(/\/$/, '')}/line`, 'Bearer token', SESSION_PROTOCOL]]);
    expect([uses, answers]).toEqual([[{ kind: 'all' }], []]);
    await opening.connection.send(Buffer.from('hello'));
    for await (const message of opening.connection) {
      expect(Buffer.from(message).toString()).toBe('hello');
      break;
    }
    opening.connection.close();
    await opening.connection.closed;
  });

  it('is closed by a message that is longer than one may be', async () => {
    const { endpoint } = await server();
    const opening = await clientOf(endpoint).open('/line');
    if (opening.kind !== 'opened') throw new Error(JSON.stringify(opening));
    await opening.connection.send(Buffer.alloc(MESSAGE_BYTES_MAX + 1));
    const received: Uint8Array[] = [];
    for await (const message of opening.connection) received.push(message);
    expect(received).toEqual([]);
  });

  it('that is refused reports it to its credentials', async () => {
    const { endpoint } = await server(401);
    expect(await clientOf(endpoint).open('/line')).toEqual({ kind: 'refused', status: 401 });
    expect(answers).toEqual([{ status: 401, token: 'token' }]);
  });

  it('fails without a server, with another authority, and without a token', async () => {
    const closed = `https://127.0.0.1:${await freePort()}`;
    expect(await clientOf(closed).open('/line')).toMatchObject({ kind: 'failed', cause: { code: 'ECONNREFUSED' } });
    const other = await makeAuthority({ commonName: 'other', nowMs: Date.now(), validDays: 1 });
    const { asked, endpoint } = await server();
    const untrusted = await clientOf(endpoint, other.certificatePem).open('/line');
    expect([untrusted.kind, asked, answers]).toEqual(['failed', [], []]);
    const cause = new Error('not enrolled');
    const without = createSessionClient({
      endpoint,
      credentials: { ...credentials, bearer: () => Promise.reject(cause) },
      environment: {},
    });
    expect(await without.open('/line')).toEqual({ kind: 'failed', cause });
  });
});
