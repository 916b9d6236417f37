/**
 * Connections to one server: TLS, straight or through a proxy by CONNECT, with the bytes counted where they leave and
 * enter the machine, handshakes included.
 */

import { connect, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { defined } from '../../../shared/domain/defined.ts';
import { bareHost } from './proxy-choice.ts';

export interface Traffic {
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** Dialled, whether or not the other side took the call. */
  readonly connections: number;
}

export interface DialOptions {
  readonly server: URL;
  readonly proxy?: URL | undefined;
  /** PEM text. */
  readonly certificateAuthority?: string | undefined;
  /** For the answer of a proxy. Milliseconds. */
  readonly timeoutMs: number;
}

export interface Dialler {
  /** A connection that may still be under way, or undefined when the callback is to have it. */
  dial(callback: (error: Error | null, connection?: Duplex) => void): Duplex | undefined;
  /** Since the start. */
  traffic(): Traffic;
}

/** A proxy's answer to CONNECT is a status line and a few headers. */
const PROXY_ANSWER_BYTES_MAX = 16_384;

export function createDialler({ server, proxy, certificateAuthority, timeoutMs }: DialOptions): Dialler {
  const live = new Set<Socket>();
  const closed = { bytesUp: 0, bytesDown: 0 };
  let connections = 0;
  /** Resumes TLS where the server allows it: a third of the bytes of a full handshake. */
  let session: Buffer | undefined;
  const host = bareHost(server.hostname);
  const port = server.port === '' ? 443 : Number(server.port);

  function open(toHost: string, toPort: number): Socket {
    const socket = connect({ host: toHost, port: toPort, noDelay: true });
    connections += 1;
    live.add(socket);
    socket.once('close', () => {
      live.delete(socket);
      closed.bytesUp += socket.bytesWritten;
      closed.bytesDown += socket.bytesRead;
    });
    return socket;
  }

  const peer = (name: string) => ({
    host: name,
    // No name of a server may be an address (RFC 6066, 3).
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ...defined({ ca: certificateAuthority }),
  });

  function toServer(socket: Duplex): TLSSocket {
    const tls = connectTls({
      socket,
      ...peer(host),
      ...defined({ session }),
      ALPNProtocols: ['http/1.1'],
    });
    tls.on('session', (given) => {
      session = given;
    });
    // A server that renewed its keys refuses the old session, and would refuse it for ever.
    tls.once('error', () => {
      session = undefined;
    });
    tls.once('close', () => socket.destroy());
    return tls;
  }

  function throughProxy(via: URL, callback: (error: Error | null, connection?: Duplex) => void): void {
    const proxyHost = bareHost(via.hostname);
    const raw = open(proxyHost, via.port === '' ? (via.protocol === 'https:' ? 443 : 80) : Number(via.port));
    const link: Duplex = via.protocol === 'https:' ? connectTls({ socket: raw, ...peer(proxyHost) }) : raw;
    let heard = Buffer.alloc(0);
    const finish = (error: Error | null): void => {
      clearTimeout(timer);
      link.off('data', hear).off('error', fail).off('close', fail);
      if (error === null) {
        callback(null, toServer(link));
        return;
      }
      link.on('error', () => {});
      link.destroy();
      raw.destroy();
      callback(error);
    };
    const fail = (cause?: unknown): void =>
      finish(new Error(`the proxy ${via.host} did not answer`, cause instanceof Error ? { cause } : {}));
    const hear = (chunk: Buffer): void => {
      heard = Buffer.concat([heard, chunk]);
      const end = heard.indexOf('\r\n\r\n');
      if (end === -1) {
        if (heard.length > PROXY_ANSWER_BYTES_MAX) finish(new Error(`the answer of the proxy ${via.host} has no end`));
        return;
      }
      const [status = ''] = heard.toString('latin1').split('\r\n', 1);
      if (!/^HTTP\/1\.\d 2\d\d\b/.test(status)) {
        finish(new Error(`the proxy ${via.host} answered ${status}`));
        return;
      }
      link.pause();
      const rest = heard.subarray(end + 4);
      if (rest.length > 0) link.unshift(rest);
      finish(null);
    };
    const timer = setTimeout(() => fail(), timeoutMs);
    link.on('data', hear).once('error', fail).once('close', fail);
    link.write(connectRequest(via, `${isIP(host) === 6 ? `[${host}]` : host}:${port}`));
  }

  return {
    dial(callback) {
      if (proxy === undefined) return toServer(open(host, port));
      throughProxy(proxy, callback);
      return undefined;
    },
    traffic() {
      let { bytesUp, bytesDown } = closed;
      for (const socket of live) {
        bytesUp += socket.bytesWritten;
        bytesDown += socket.bytesRead;
      }
      return { bytesUp, bytesDown, connections };
    },
  };
}

function connectRequest(proxy: URL, authority: string): string {
  const account = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const authorization =
    account === ':' ? '' : `Proxy-Authorization: Basic ${Buffer.from(account).toString('base64')}\r\n`;
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`;
}
