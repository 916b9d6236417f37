import { createServer, type Server, type Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { listenOnLoopback } from '../../../shared/host/loopback.ts';
import { connectPort } from './pod-port.ts';

async function serving(serve: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer({ allowHalfOpen: true }, serve);
  onTestFinished(() => void server.close());
  return listenOnLoopback(server);
}
async function textOf(received: AsyncIterable<Uint8Array>): Promise<string> {
  let text = '';
  for await (const bytes of received) text += Buffer.from(bytes).toString();
  return text;
}

it('a pod without an address of its own is found on loopback, and answers after the end of its input', async () => {
  const port = await serving((socket) => {
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes;
    });
    socket.on('end', () => socket.end(`got ${text}`));
  });
  for (const address of [undefined, '127.0.0.1']) {
    const opened = await connectPort(port, address);
    await opened.write(Buffer.from('some '));
    await opened.write(Buffer.from('bytes'));
    opened.endInput();
    expect(await textOf(opened.received)).toBe('got some bytes');
    opened.close();
  }
});

it('a pod that has sent everything is still written to', async () => {
  const received = Promise.withResolvers<string>();
  const port = await serving((socket) => {
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes;
    });
    socket.on('end', () => received.resolve(text));
    socket.end('all');
  });
  const opened = await connectPort(port, '127.0.0.1');
  expect(await textOf(opened.received)).toBe('all');
  await opened.write(Buffer.from('some bytes'));
  opened.endInput();
  expect(await received.promise).toBe('some bytes');
});

it('a pod that breaks the connection sends nothing more', async () => {
  const port = await serving((socket) => void socket.once('data', () => socket.resetAndDestroy()));
  const opened = await connectPort(port, '127.0.0.1');
  await opened.write(Buffer.from('x'));
  expect(await textOf(opened.received)).toBe('');
});

it('a pod that breaks a connection that is not read breaks nothing here', async () => {
  const closed = Promise.withResolvers<void>();
  const port = await serving((socket) => {
    socket.once('close', () => closed.resolve());
    socket.once('data', () => socket.resetAndDestroy());
  });
  const opened = await connectPort(port, '127.0.0.1');
  await opened.write(Buffer.from('x'));
  await closed.promise;
  // The reset has arrived when nothing more can be written.
  for (let attempt = 0; attempt < 100; attempt += 1) await opened.write(Buffer.alloc(65_536));
  expect(await textOf(opened.received)).toBe('');
});

it('a connection that is closed here ends for the pod', async () => {
  const closed = Promise.withResolvers<void>();
  const port = await serving((socket) => {
    socket.on('error', () => {});
    socket.once('close', () => closed.resolve());
    socket.resume();
    socket.on('end', () => socket.end());
  });
  (await connectPort(port, '127.0.0.1')).close();
  await closed.promise;
});

it('a port on which nothing listens is reported with each address that was tried', async () => {
  const server = createServer();
  const port = await listenOnLoopback(server);
  await new Promise((resolve) => server.close(resolve));
  await expect(connectPort(port, undefined)).rejects.toThrow(/127\.0\.0\.1.*; .*::1/);
  await expect(connectPort(port, '127.0.0.1')).rejects.toThrow(/^[^;]*127\.0\.0\.1[^;]*$/);
});

it('a pod has ten seconds to accept a connection, and then any time to send', async () => {
  const port = await serving((socket) => void socket.once('data', () => socket.end('late')));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const late = connectPort(port, '127.0.0.1');
  vi.advanceTimersByTime(10_000);
  await expect(late).rejects.toThrow(`127.0.0.1:${port} did not answer`);
  const opening = connectPort(port, '127.0.0.1');
  vi.advanceTimersByTime(9_999);
  const opened = await opening;
  expect(vi.getTimerCount()).toBe(0);
  await opened.write(Buffer.from('x'));
  expect(await textOf(opened.received)).toBe('late');
});
