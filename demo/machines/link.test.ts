import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../test/support/until.ts';
import { type Link, startLink } from './link.ts';

const SOON = { withinMs: 10_000, everyMs: 5 };

describe('the link of a machine', () => {
  let cluster: Server;
  let link: Link;
  let received: string[];
  const clients: Socket[] = [];

  beforeEach(async () => {
    received = [];
    cluster = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (data) => {
        received.push(String(data));
        socket.write(`answer to ${data}`);
      });
    });
    await new Promise<void>((resolve) => cluster.listen(0, '127.0.0.1', resolve));
    link = await startLink({ host: '127.0.0.1', port: (cluster.address() as { readonly port: number }).port });
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await link.close();
    await new Promise((resolve) => cluster.close(resolve));
  });

  async function client() {
    const socket = connect({ host: '127.0.0.1', port: link.port });
    clients.push(socket);
    const seen = { text: '', isClosed: false };
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      seen.text += String(data);
    });
    socket.on('close', () => {
      seen.isClosed = true;
    });
    await new Promise((resolve) => socket.once('connect', resolve));
    return { socket, seen };
  }

  it('passes everything while it is up', async () => {
    const { socket, seen } = await client();
    socket.write('one');
    await until(() => seen.text === 'answer to one', SOON);
    socket.end();
    await until(() => seen.isClosed, SOON);
  });

  it('passes nothing while it is cut, and closes no connection, old or new', async () => {
    const old = await client();
    old.socket.write('one');
    await until(() => old.seen.text === 'answer to one', SOON);
    link.cut();
    const young = await client();
    old.socket.write('two');
    young.socket.write('three');
    link.restore();
    // Connections of before do not continue: their packets are lost.
    await until(() => old.seen.isClosed && young.seen.isClosed, SOON);
    expect([old.seen.text, young.seen.text, received]).toEqual(['answer to one', '', ['one']]);
  });

  it('passes new connections after it is restored', async () => {
    link.cut();
    link.restore();
    const { socket, seen } = await client();
    socket.write('four');
    await until(() => seen.text === 'answer to four', SOON);
  });

  it('closes a connection that the cluster does not accept', async () => {
    await new Promise((resolve) => cluster.close(resolve));
    const { seen } = await client();
    await until(() => seen.isClosed, SOON);
  });
});
