/** A relay and machines of its site with the agent's own parts, over sockets of this machine. */
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLog, silentMeter } from '../../../test/support/agent-api.ts';
import { until } from '../../../test/support/until.ts';
import { SilenceReport } from '../../app/silence-report.ts';
import { SiteHub } from '../../app/site-hub.ts';
import { SiteMember } from '../../app/site-member.ts';
import { SITE_PATH, SITE_PROTOCOL } from '../../rules/site-message.ts';
import { PROBE_TIMEOUT_MS } from '../../rules/site-watch.ts';
import { makeRelayCertificate, makeSiteAuthority } from '../relay/certificates.ts';
import { type RelayServer, serveRelay } from '../relay/relay-server.ts';
import { systemTime } from '../system/time.ts';
import { joinSite } from './join-site.ts';
import { probeWitness, serveWitness, type WitnessListener } from './witness.ts';

const today = { nowMs: Date.now(), validDays: 1 };
const authority = makeSiteAuthority({ commonName: 'site', ...today });
const certificate = makeRelayCertificate(authority, { names: ['127.0.0.1'], ...today });
const common = { time: systemTime, log: silentLog, meter: silentMeter, probe: probeWitness };
const address = '127.0.0.1';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A way to this port that can be cut in one direction, or broken. */
async function link(port: number) {
  const sockets = new Set<Socket>();
  const state = { isCut: false };
  const server = createServer((near) => {
    const far = connect({ host: address, port });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
      from.on('data', (bytes) => (from === near && state.isCut ? undefined : to.write(bytes)));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const breakAll = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  closers.push(breakAll);
  return { state, breakAll, port: portOf(server) };
}

function portOf(server: Server): number {
  const bound = server.address();
  return typeof bound === 'object' ? (bound?.port ?? 0) : 0;
}

describe('a site over sockets', () => {
  let server: RelayServer;
  let reports: Map<string, SilenceReport>;
  let witnesses: Map<string, WitnessListener>;
  let links: Map<string, Awaited<ReturnType<typeof link>>>;
  let probeable: Set<string>;
  const texts = () => [...reports.values()].flatMap((each) => each.text() ?? []).sort();

  beforeEach(async () => {
    reports = new Map([['hub', new SilenceReport({ role: 'hub', time: systemTime })]]);
    witnesses = new Map();
    links = new Map();
    probeable = new Set();
    const hub = new SiteHub({
      ...common,
      report: reports.get('hub')!,
      withhold: () => false,
      probe: async (target) => {
        const isAnswered = await probeWitness(target);
        if (isAnswered) probeable.add(target.node);
        return isAnswered;
      },
    });
    server = await serveRelay({
      address,
      port: 0,
      certificate,
      relay: async () => ({ status: 503, body: {} }),
      site: (line) => hub.accept(line),
    });
    const stop = new AbortController();
    const running = hub.run(stop.signal);
    closers.push(
      () => server.close(),
      () => {
        stop.abort();
        return running;
      },
    );
    for (const name of ['a', 'b', 'c']) await start(name);
    await until(() => probeable.size === 3, { withinMs: 20_000, everyMs: 20 });
  });

  async function start(nodeName: string): Promise<void> {
    const report = new SilenceReport({ role: 'machine', time: systemTime });
    const way = await link(server.port);
    const witness = await serveWitness({ address, port: 0, nodeName });
    reports.set(nodeName, report);
    links.set(nodeName, way);
    witnesses.set(nodeName, witness);
    const endpoint = `https://${address}:${way.port}`;
    const member = new SiteMember({
      ...common,
      nodeName,
      report,
      join: joinSite({ endpoint, certificateAuthority: authority.certificatePem }),
      witnessPort: () => witness.port,
      isShuttingDown: () => false,
      fraction: () => 0,
    });
    const stop = new AbortController();
    const running = member.run(stop.signal);
    closers.push(async () => {
      stop.abort();
      await running;
      await witness.close();
    });
  }

  async function kill(name: string): Promise<void> {
    links.get(name)!.breakAll();
    await witnesses.get(name)!.close();
  }

  it('reports a machine that is killed by the relay and one other machine within 3 s', async () => {
    const fromMs = systemTime.monotonicMs();
    await kill('b');
    await until(() => texts().length === 2, { withinMs: 30_000, everyMs: 20 });
    const tookMs = systemTime.monotonicMs() - fromMs;
    expect(texts()).toEqual(['hub b', 'machine b']);
    // The clock of the loops: a second for the connection, a step, and probes that are refused at once.
    expect(tookMs).toBeGreaterThanOrEqual(1_000);
  }, 60_000);

  it('reports no machine that answers probes while its beats are lost', async () => {
    links.get('b')!.state.isCut = true;
    probeable.clear();
    await until(() => probeable.has('b'), { withinMs: 30_000, everyMs: 20 });
    expect(texts()).toEqual([]);
  }, 60_000);
});

describe('the connection', () => {
  const serve = async (received: (text: string) => void, closed: () => void) => {
    const relay = await serveRelay({
      address,
      port: 0,
      certificate,
      relay: async () => ({ status: 503, body: {} }),
      site: () => ({ received, closed }),
    });
    closers.push(() => relay.close());
    return relay.port;
  };

  /** What a client of TLS receives that sends this text, until the relay closes. */
  const exchange = (port: number, text: string): Promise<string> =>
    new Promise((resolve) => {
      let answer = '';
      const socket = connectTls({ host: address, port, ca: authority.certificatePem }, () => socket.write(text));
      socket.on('data', (bytes) => {
        answer += bytes.toString();
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(answer));
    });

  const upgrade = `GET ${SITE_PATH} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: ${SITE_PROTOCOL}\r\n\r\n`;

  it.each([
    ['a line of more than 1 KB', `${'x'.repeat(1_025)}\n`, 0],
    ['more than 100 lines in a second', 'x\n'.repeat(300), 100],
  ])('ends after %s', async (_, text, lines) => {
    const received: string[] = [];
    let isClosed = false;
    const port = await serve(
      (line) => received.push(line),
      () => {
        isClosed = true;
      },
    );
    expect(await exchange(port, upgrade + text)).toMatch(/^HTTP\/1\.1 101 /);
    await until(() => isClosed, { withinMs: 10_000, everyMs: 10 });
    // A second may begin between two lines.
    expect(received.length).toBeGreaterThanOrEqual(lines);
    expect(received.length).toBeLessThan(300);
  });

  it('is no other upgrade', async () => {
    const port = await serve(
      () => {},
      () => {},
    );
    expect(await exchange(port, upgrade.replace(SITE_PROTOCOL, 'websocket'))).toMatch(/^HTTP\/1\.1 404 /);
    expect(await exchange(port, upgrade.replace(SITE_PATH, '/other'))).toMatch(/^HTTP\/1\.1 404 /);
  });

  const join = (
    port: number,
    signal = new AbortController().signal,
    ca: string | undefined = authority.certificatePem,
  ) =>
    joinSite({ endpoint: `https://${address}:${port}`, certificateAuthority: ca })(
      { received() {}, closed() {} },
      signal,
    );

  it('is opened to a relay that is trusted, until the attempt is given up', async () => {
    const received: string[] = [];
    const port = await serve(
      (line) => received.push(line),
      () => {},
    );
    const joined = await join(port);
    expect(joined.kind).toBe('joined');
    if (joined.kind === 'joined') await joined.line.close();
    // A goodbye is sent after the loops were asked to stop.
    const attempt = new AbortController();
    const leaving = await join(port, attempt.signal);
    attempt.abort();
    if (leaving.kind === 'joined') {
      leaving.line.send('goodbye');
      await leaving.line.close();
    }
    await until(() => received.includes('goodbye'), { withinMs: 10_000, everyMs: 10 });
    const other = makeSiteAuthority({ commonName: 'other', ...today });
    expect((await join(port, undefined, other.certificatePem)).kind).toBe('failed');
    expect((await join(port, AbortSignal.abort())).kind).toBe('failed');
  });

  it.each([
    [404, 'unsupported'],
    [503, 'failed'],
  ])('is not there if the relay answers %i: %s', async (status, kind) => {
    const { certificatePem: cert, privateKeyPem: key } = certificate;
    const server = createHttpsServer({ cert, key }, (_request, response) => response.writeHead(status).end());
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    closers.push(() => server.close());
    expect((await join(portOf(server))).kind).toBe(kind);
  });
});

it('a relay that does not answer within five seconds is not joined', async () => {
  const { certificatePem: cert, privateKeyPem: key } = certificate;
  const asked = Promise.withResolvers<void>();
  const server = createHttpsServer({ cert, key }).on('upgrade', () => asked.resolve());
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  closers.push(() => server.close());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  closers.push(() => vi.useRealTimers());
  const endpoint = `https://${address}:${portOf(server)}`;
  const joining = joinSite({ endpoint, certificateAuthority: authority.certificatePem })(
    { received: () => undefined, closed: () => undefined },
    new AbortController().signal,
  );
  await asked.promise;
  vi.advanceTimersByTime(5_000);
  expect(await joining).toMatchObject({ kind: 'failed', cause: { message: 'no answer in 5000 ms' } });
});

describe('the answer to a probe', () => {
  it('is that of the machine with this name, at this port', async () => {
    const witness = await serveWitness({ address, port: 0, nodeName: 'a' });
    closers.push(() => witness.close());
    const { port } = witness;
    expect(await probeWitness({ node: 'a', address, port })).toBe(true);
    expect(await probeWitness({ node: 'b', address, port })).toBe(false);
    expect(await probeWitness({ node: 'aa', address, port })).toBe(false);
    await witness.close();
    expect(await probeWitness({ node: 'a', address, port })).toBe(false);
  });

  it('is silence from a server that accepts and says nothing', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    closers.push(() => server.close());
    expect(await probeWitness({ node: 'a', address, port: portOf(server) })).toBe(false);
  });

  it('is silence from a server that says less, and then ends', async () => {
    const server = createServer((socket) => socket.end('less'));
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    closers.push(() => server.close());
    expect(await probeWitness({ node: 'a', address, port: portOf(server) })).toBe(false);
  });

  it('does not keep the witness from closing, where the other side stays', async () => {
    const witness = await serveWitness({ address, port: 0, nodeName: 'a' });
    const socket = connect({ host: address, port: witness.port, allowHalfOpen: true });
    await new Promise((resolve) => socket.once('end', resolve).resume());
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const startedAtMs = performance.now();
    await witness.close();
    // Before the time limit of the connection.
    expect(performance.now() - startedAtMs).toBeLessThan(PROBE_TIMEOUT_MS - 200);
    socket.end();
    await closed;
  });

  it('returns when the connections that stay are over their time', async () => {
    const witness = await serveWitness({ address, port: 0, nodeName: 'a' });
    closers.push(() => witness.close());
    const { port } = witness;
    const staying = Array.from({ length: 32 }, () => connect({ host: address, port, allowHalfOpen: true }));
    closers.push(() => staying.forEach((socket) => void socket.destroy()));
    await Promise.all(staying.map((socket) => new Promise((resolve) => socket.once('end', resolve).resume())));
    expect(await probeWitness({ node: 'a', address, port })).toBe(false);
    await until(() => probeWitness({ node: 'a', address, port }), { withinMs: 10_000, everyMs: 200 });
  });

  it('is limited per second', async () => {
    const witness = await serveWitness({ address, port: 0, nodeName: 'a' });
    closers.push(() => witness.close());
    const asked = Array.from({ length: 200 }, () => probeWitness({ node: 'a', address, port: witness.port }));
    expect(await Promise.all(asked)).toContain(false);
    await until(() => probeWitness({ node: 'a', address, port: witness.port }), { withinMs: 10_000, everyMs: 200 });
  });
});
