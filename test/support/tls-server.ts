/** An HTTPS server on loopback with an authority of its own, and a proxy that tunnels to it. */

import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { connect, type Server, type Socket } from 'node:net';
import { makeAuthority, makeServerCertificate } from '../../shared/host/certificate.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';

export interface TlsServer {
  /** https://127.0.0.1:PORT */
  readonly url: string;
  readonly port: number;
  /** PEM text. */
  readonly certificateAuthority: string;
  /** TCP connections so far, and the bytes that went over those that ended. */
  traffic(): { readonly connections: number; readonly bytesIn: number; readonly bytesOut: number };
  close(): Promise<void>;
}

export async function startTlsServer(listener: RequestListener, validDays = 1): Promise<TlsServer> {
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  const { certificatePem, privateKeyPem } = await makeServerCertificate(authority, {
    names: ['localhost', '127.0.0.1'],
    nowMs,
    validDays,
  });
  const server = createServer({ cert: certificatePem, key: privateKeyPem }, listener);
  const sockets = new Set<Socket>();
  const sum = { connections: 0, bytesIn: 0, bytesOut: 0 };
  server.on('connection', (socket: Socket) => {
    sum.connections += 1;
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      sum.bytesIn += socket.bytesRead;
      sum.bytesOut += socket.bytesWritten;
    });
  });
  const port = await listenOnLoopback(server);
  return {
    url: `https://127.0.0.1:${port}`,
    port,
    certificateAuthority: authority.certificatePem,
    traffic: () => ({ ...sum }),
    close: () => closed(server, sockets),
  };
}

export interface TunnelProxy {
  readonly port: number;
  /** Head lines of the CONNECT requests. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** `status`: what it answers instead of tunnelling. */
export async function startTunnelProxy(status?: number): Promise<TunnelProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = createHttpServer();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  server.on('connect', (request, socket: Socket, head: Buffer) => {
    asked.push(`${request.url} ${request.headers['proxy-authorization'] ?? ''}`.trim());
    if (status !== undefined) {
      socket.end(`HTTP/1.1 ${status} No\r\n\r\n`);
      return;
    }
    const [host = '', port = ''] = (request.url ?? '').split(':');
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    sockets.add(onward);
    onward.on('error', () => socket.destroy());
    socket.on('error', () => onward.destroy());
  });
  const port = await listenOnLoopback(server);
  return { port, asked, close: () => closed(server, sockets) };
}

function closed(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const socket of sockets) socket.destroy();
  });
}
