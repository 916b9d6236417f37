import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bytesOfMessage, CHANNELS, exitMessage, MESSAGE_BYTES_MAX } from '../../shared/sessions/channels.ts';
import { linePath, SESSION_PROTOCOL } from '../../shared/sessions/session-request.ts';
import { type Connected, type SessionCluster, sessionCluster } from '../../test/support/session-cluster.ts';
import { frame, spdyHeaders } from '../../test/support/spdy-client.ts';
import { until } from '../../test/support/until.ts';

const PODS = '/api/v1/namespaces/default/pods';
const EXEC = `${PODS}/web/exec?command=sh&command=-c&command=x&stdin=true&stdout=true&stderr=true`;
const V5 = ['v5.channel.k8s.io'];

let cluster: SessionCluster;
beforeAll(async () => {
  cluster = await sessionCluster();
  for (const name of ['n1', 'n2']) await cluster.send('POST', '/api/v1/nodes', { metadata: { name } });
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  await cluster.send('POST', `${rbac}/clusterroles`, {
    metadata: { name: 'reads-exec' },
    rules: [{ apiGroups: [''], resources: ['pods/exec'], verbs: ['get'] }],
  });
  await cluster.send('POST', `${rbac}/clusterrolebindings`, {
    metadata: { name: 'reads-exec' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reads-exec' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'reader' }],
  });
  await cluster.send('POST', PODS, {
    metadata: { name: 'web' },
    spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'none' }] },
  });
});
afterAll(() => cluster.stop());

const opened = (connected: Connected) => {
  if (connected.kind !== 'opened') throw new Error(`${connected.status} ${connected.body}`);
  return connected;
};

/** A session of a client with the agent of n1. */
async function session() {
  const { requests, line } = await cluster.agent('n1');
  const connecting = cluster.connect('admin', EXEC, V5);
  const request = (await requests.next()).value;
  const node = opened(await cluster.answer('n1', request.id));
  const client = opened(await connecting);
  const received = client.socket[Symbol.asyncIterator]();
  return { request, node, client, received, line };
}

describe('exec', () => {
  it('passes what both sides send, and ends with the exit code', async () => {
    const { request, node, client, received } = await session();
    expect(request.purpose).toEqual({
      kind: 'exec',
      container: 'main',
      command: ['sh', '-c', 'x'],
      stdin: true,
      tty: false,
    });
    const sent = node.socket[Symbol.asyncIterator]();
    await client.socket.send(Buffer.from('\0input'));
    // Neither output nor what is unknown comes from a client.
    await client.socket.send(Buffer.from('\x01no'));
    await client.socket.send(Buffer.of(255, 0));
    expect([(await sent.next()).value, (await sent.next()).value]).toEqual([Buffer.from('\0input'), Buffer.of(255, 0)]);
    await node.socket.send(Buffer.from('\x02error'));
    // A node sends no input.
    await node.socket.send(Buffer.from('\0no'));
    await node.socket.send(bytesOfMessage(exitMessage(0)));
    expect((await received.next()).value).toEqual(Buffer.from('\x02error'));
    expect(String((await received.next()).value)).toContain('"status":"Success"');
    await client.socket.closed;
    await node.socket.closed;
  });

  it('ends for the node when the client leaves, and for the client when the node dies', async () => {
    const first = await session();
    first.client.raw.terminate();
    await first.node.socket.closed;
    const second = await session();
    second.node.raw.terminate();
    expect(String((await second.received.next()).value)).toContain('node n1 closed the session');
    await second.client.socket.closed;
  });

  it('holds the node while the client reads nothing, and continues when it reads', async () => {
    const { node, client, received } = await session();
    client.raw.pause();
    const piece = Buffer.concat([Buffer.of(CHANNELS.stdout), Buffer.alloc(256 * 1024)]);
    const pieces = 800;
    let sent = 0;
    const sending = (async () => {
      for (; sent < pieces; sent += 1) if (!(await node.socket.send(piece))) return;
      await node.socket.send(bytesOfMessage(exitMessage(0)));
    })();
    let before = -1;
    const isHeld = () => {
      const held = sent === before;
      before = sent;
      return held;
    };
    await until(isHeld, { withinMs: 30_000, everyMs: 300, what: 'a node that waits' });
    // What the buffers of four sockets and of this process have.
    expect(sent * piece.length).toBeLessThan(40_000_000);
    client.raw.resume();
    let bytes = 0;
    for (let next = await received.next(); next.done !== true; next = await received.next()) {
      if (next.value[0] === CHANNELS.stdout) bytes += next.value.length - 1;
    }
    await sending;
    expect(bytes).toBe(pieces * (piece.length - 1));
  });

  it('ends for a client that sends a frame that is too long', async () => {
    const { node, client } = await session();
    client.raw.send(Buffer.alloc(MESSAGE_BYTES_MAX + 1));
    await client.socket.closed;
    await node.socket.closed;
  });

  it.each([
    ['without an upgrade that is known', 'admin', EXEC, ['channel.k8s.io'], 400],
    ['without credentials', '', EXEC, V5, 401],
    ['of a user who may read everything', 'viewer', EXEC, V5, 403],
    ['of a user with get alone', 'reader', EXEC, V5, 403],
    ['of a node', 'system:node:n1', EXEC, V5, 403],
    ['of no pod', 'admin', EXEC.replace('web', 'absent'), V5, 404],
    ['of no container', 'admin', `${EXEC}&container=other`, V5, 400],
    ['without a command', 'admin', `${PODS}/web/exec?stdout=true`, V5, 400],
  ])('%s is refused', async (_what, user, path, protocols, code) => {
    expect(await cluster.connect(user, path, protocols)).toMatchObject({ kind: 'refused', status: code });
  });

  it('is refused to a request without an upgrade', async () => {
    const answer = cluster.send('GET', `${PODS}/web/exec`, undefined);
    await expect(answer).rejects.toThrow('you must specify at least 1 of stdin, stdout, stderr');
  });
});

describe('port-forward', () => {
  it('asks the node for a bounded number of connections, whatever a client resets', async () => {
    const { requests, line } = await cluster.agent('n1');
    let asked = 0;
    void (async () => {
      while ((await requests.next()).done !== true) asked += 1;
    })();
    const socket = connectTls({ port: Number(new URL(cluster.url).port), ca: cluster.ca, host: '127.0.0.1' });
    const head = [
      `POST ${PODS}/web/portforward HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${cluster.token('admin')}`,
      ...['Connection: Upgrade', 'Upgrade: SPDY/3.1', 'X-Stream-Protocol-Version: portforward.k8s.io'],
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    let received = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    await until(() => received.includes('101 Switching Protocols'), { withinMs: 30_000, everyMs: 5 });
    const headers = spdyHeaders();
    const pair = async (id: number): Promise<Buffer> => {
      const of = { port: '80', requestid: String(id) };
      const error = await headers.synStream(4 * id + 1, { ...of, streamtype: 'error' });
      return Buffer.concat([error, await headers.synStream(4 * id + 3, { ...of, streamtype: 'data' })]);
    };
    const reset = (streamId: number): Buffer => {
      const body = Buffer.alloc(8);
      body.writeUInt32BE(streamId, 0);
      body.writeUInt32BE(5, 4);
      return frame(0x80_03_00_03, body);
    };
    for (let id = 0; id < 110; id += 1) {
      socket.write(Buffer.concat([await pair(id), reset(4 * id + 1), reset(4 * id + 3)]));
    }
    socket.write(await pair(110));
    const isRefused = () => received.includes('100 connections are open, the most at once');
    await until(() => isRefused() && asked >= 100, { withinMs: 8_000, everyMs: 5 });
    expect(asked).toBe(100);
    socket.destroy();
    line.destroy();
  });
});

describe('the connections of nodes', () => {
  it.each([
    ['admin', 403],
    ['viewer', 403],
    ['system:node:n2', 403],
    ['', 401],
  ])('are refused to %j', async (user, code) => {
    expect(await cluster.connect(user, linePath('n1'), [SESSION_PROTOCOL])).toMatchObject({ status: code });
  });

  it('are for the node of the session, and for one connection', async () => {
    const { requests } = await cluster.agent('n1');
    const connecting = cluster.connect('admin', EXEC, V5);
    const { id } = (await requests.next()).value;
    // Another node knows the id.
    expect(await cluster.answer('n2', id)).toMatchObject({ kind: 'refused', status: 404 });
    expect(await cluster.connect('system:node:n2', `${linePath('n1')}/${id}`, [SESSION_PROTOCOL])).toMatchObject({
      status: 403,
    });
    const node = opened(await cluster.answer('n1', id));
    expect(await cluster.answer('n1', id)).toMatchObject({ kind: 'refused', status: 404 });
    const client = opened(await connecting);
    client.raw.terminate();
    await node.socket.closed;
  });

  it('are replaced by the newest line', async () => {
    const first = await cluster.agent('n1');
    const second = await cluster.agent('n1');
    await first.line.closed;
    expect(second.line.isClosed).toBe(false);
  });

  it('end when an agent sends something on its line', async () => {
    const { line } = await cluster.agent('n1');
    await line.send('more');
    await line.closed;
  });
});

describe('a watch', () => {
  const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

  it('has a message per event, for a client that sends its token as a protocol', async () => {
    const token = `base64url.bearer.authorization.k8s.io.${Buffer.from(cluster.token('admin')).toString('base64url')}`;
    const path = `${CONFIG_MAPS}?watch=1&labelSelector=of%3Dtest`;
    const { socket, raw } = opened(await cluster.connect('', path, [token, 'base64.binary.k8s.io']));
    expect(raw.protocol).toBe('base64.binary.k8s.io');
    const events = socket[Symbol.asyncIterator]();
    for (const name of ['one', 'two']) {
      await cluster.send('POST', CONFIG_MAPS, { metadata: { name, labels: { of: 'test' } } });
      const { type, object } = JSON.parse(String((await events.next()).value));
      expect([type, object.metadata.name]).toEqual(['ADDED', name]);
    }
    raw.terminate();
  });

  it.each([
    ['a token alone', (token: string) => [token]],
    ['two tokens', (token: string) => [token, `${token}x`, 'base64.binary.k8s.io']],
    ['a wrong token', (token: string) => [token.slice(0, -4), 'base64.binary.k8s.io']],
  ])('is refused with %s', async (_what, protocols) => {
    const token = `base64url.bearer.authorization.k8s.io.${Buffer.from(cluster.token('admin')).toString('base64url')}`;
    expect(await cluster.connect('', `${CONFIG_MAPS}?watch=1`, protocols(token))).toMatchObject({ status: 401 });
  });
});

describe('an attacker', () => {
  /** The answer to a request for an upgrade, by bytes of our own. */
  const raw = (path: string, lines: readonly string[]): Promise<string> =>
    new Promise((resolve) => {
      const socket = connectTls({ port: Number(new URL(cluster.url).port), ca: cluster.ca, host: '127.0.0.1' });
      const token = `Authorization: Bearer ${cluster.token('admin')}`;
      const head = [`GET ${path} HTTP/1.1`, 'Host: x', 'Connection: Upgrade', token, ...lines];
      socket.write(`${head.join('\r\n')}\r\n\r\n`);
      let answer = '';
      socket.setEncoding('utf8').on('data', (text: string) => {
        answer += text;
      });
      socket.once('close', () => resolve(answer));
    });

  it.each([
    ['another protocol', ['Upgrade: SPDY/3.1'], 400],
    ['no known protocol', ['Upgrade: h2c'], 400],
    ['no key', ['Upgrade: websocket', 'Sec-WebSocket-Version: 13'], 400],
    ['an old version', ['Upgrade: websocket', 'Sec-WebSocket-Version: 7', 'Sec-WebSocket-Key: eA=='], 400],
  ])('holds no watch by a handshake with %s', async (_what, lines, code) => {
    // A watch of another test may be left: it ends with the next commit of its kind.
    const before = cluster.heldWatches();
    expect(await raw('/api/v1/namespaces/default/pods?watch=1', lines)).toMatch(new RegExp(`^HTTP/1.1 ${code} `));
    await until(() => cluster.heldWatches() <= before, {
      withinMs: 30_000,
      everyMs: 20,
      what: 'no watch that is left',
    });
  });

  it('holds no connection by upgrades without credentials', { timeout: 60_000 }, async () => {
    const before = cluster.connections();
    const request =
      `GET ${EXEC} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n';
    const sockets = Array.from({ length: 200 }, () => {
      const socket = connectTls({ port: Number(new URL(cluster.url).port), ca: cluster.ca, host: '127.0.0.1' });
      socket.write(request);
      socket.on('error', () => undefined);
      socket.resume();
      return socket;
    });
    await until(() => cluster.connections() <= before && sockets.every((each) => each.bytesRead > 0), {
      withinMs: 30_000,
      everyMs: 50,
      what: 'no connection that is left',
    });
    for (const socket of sockets) socket.destroy();
  });
});
