import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort, listenOnLoopback } from '../../../shared/host/loopback.ts';
import { startTlsServer, startTunnelProxy, type TlsServer } from '../../../test/support/tls-server.ts';
import { createDialler, type Dialler, type DialOptions } from './dial.ts';

const seen: (string | false | undefined)[] = [];

async function server(): Promise<TlsServer> {
  seen.length = 0;
  const started = await startTlsServer(({ socket }, response) => {
    seen.push((socket as TLSSocket & { servername?: string | false }).servername);
    response.end('ok');
  });
  onTestFinished(() => started.close());
  return started;
}

const diallerTo = ({ url, certificateAuthority }: TlsServer, more: Partial<DialOptions> = {}): Dialler =>
  createDialler({ server: new URL(url), certificateAuthority, timeoutMs: 5_000, ...more });

/** A connection that is established. */
function dialled(dialler: Dialler): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const ready = (error: Error | null, connection?: unknown) => {
      if (error !== null) return reject(error);
      const tls = connection as TLSSocket;
      tls.once('secureConnect', () => resolve(tls)).once('error', reject);
    };
    const connection = dialler.dial(ready as Parameters<Dialler['dial']>[0]);
    if (connection !== undefined) ready(null, connection);
  });
}

/** One request; the connection is closed afterwards. */
async function ask(tls: TLSSocket): Promise<void> {
  tls.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  tls.resume();
  await once(tls, 'close');
}

describe('a connection to the server', () => {
  it('names the server unless that is an address, and speaks HTTP/1.1', async () => {
    const to = await server();
    const byAddress = await dialled(diallerTo(to));
    expect(byAddress.alpnProtocol).toBe('http/1.1');
    await ask(byAddress);
    await ask(await dialled(diallerTo(to, { server: new URL(`https://localhost:${to.port}`) })));
    expect(seen).toEqual([false, 'localhost']);
  });

  it('trusts the authority that is configured, and no other', async () => {
    const to = await server();
    await expect(dialled(diallerTo(to, { certificateAuthority: undefined }))).rejects.toThrow(/certificate/);
  });

  it('resumes the session of the one before, and none after a fault', async () => {
    const to = await server();
    const dialler = diallerTo(to);
    const first = await dialled(dialler);
    expect(first.isSessionReused()).toBe(false);
    await ask(first);
    const second = await dialled(dialler);
    expect(second.isSessionReused()).toBe(true);
    await ask(second);
    const broken = await dialled(dialler);
    broken.removeAllListeners('session');
    broken.destroy(new Error('broken'));
    await new Promise((resolve) => broken.once('close', resolve));
    expect((await dialled(dialler)).isSessionReused()).toBe(false);
  });

  it('is counted with its bytes, while it is open and afterwards', async () => {
    const to = await server();
    const dialler = diallerTo(to);
    expect(dialler.traffic()).toEqual({ bytesUp: 0, bytesDown: 0, connections: 0 });
    const tls = await dialled(dialler);
    const open = dialler.traffic();
    expect([open.bytesUp > 200, open.bytesDown > 200, open.connections]).toEqual([true, true, 1]);
    await ask(tls);
    const closed = dialler.traffic();
    expect([closed.bytesUp > open.bytesUp, closed.bytesDown > open.bytesDown]).toEqual([true, true]);
    await ask(await dialled(dialler));
    const both = dialler.traffic();
    expect(both.connections).toBe(2);
    expect([both.bytesUp > closed.bytesUp, both.bytesUp < 2 * closed.bytesUp + 1_000]).toEqual([true, true]);
    expect(both.bytesDown > closed.bytesDown).toBe(true);
  });

  it.each([
    ['https://127.98.76.54', undefined, '127.98.76.54:443'],
    ['https://127.98.76.54:7', undefined, '127.98.76.54:7'],
    ['https://127.0.0.1', 'http://127.98.76.54', '127.98.76.54:80'],
    ['https://127.0.0.1', 'https://127.98.76.54', '127.98.76.54:443'],
  ])('to %s through %s is opened to %s', async (url, proxy, target) => {
    const dialler = createDialler({
      server: new URL(url),
      proxy: proxy === undefined ? undefined : new URL(proxy),
      timeoutMs: 5_000,
    });
    const error = (await dialled(dialler).catch((cause: unknown) => cause)) as Error;
    expect((error.cause as Error | undefined)?.message ?? error.message).toContain(`ECONNREFUSED ${target}`);
  });
});

describe('a connection through a proxy', () => {
  it('is a tunnel to the server', async () => {
    const to = await server();
    const proxy = await startTunnelProxy();
    onTestFinished(() => proxy.close());
    const dialler = diallerTo(to, { proxy: new URL(`http://127.0.0.1:${proxy.port}`) });
    await ask(await dialled(dialler));
    expect([proxy.asked, dialler.traffic().connections]).toEqual([[`127.0.0.1:${to.port}`], 1]);
  });

  it('is closed when the proxy refuses, even if the proxy keeps it open', async () => {
    const proxy = createServer((socket: Socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n'));
    });
    const connected = once(proxy, 'connection');
    const port = await listenOnLoopback(proxy);
    onTestFinished(() => void proxy.close());
    const url = `https://127.0.0.1:${await freePort()}`;
    const dialler = createDialler({
      server: new URL(url),
      proxy: new URL(`http://127.0.0.1:${port}`),
      timeoutMs: 5_000,
    });
    await expect(dialled(dialler)).rejects.toThrow(/403/);
    const [socket] = (await connected) as [Socket];
    socket.resume();
    if (!socket.closed) await once(socket, 'close');
  });

  it('names a server with an IPv6 address in brackets', async () => {
    const proxy = await startTunnelProxy(403);
    onTestFinished(() => proxy.close());
    const dialler = createDialler({
      server: new URL('https://[::1]:6443'),
      proxy: new URL(`http://127.0.0.1:${proxy.port}`),
      timeoutMs: 5_000,
    });
    await expect(dialled(dialler)).rejects.toThrow(/403/);
    expect(proxy.asked).toEqual(['[::1]:6443']);
  });
});
