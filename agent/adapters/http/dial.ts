/**
 * Connections to one server: TLS, directly or through a proxy (CONNECT). Bytes are counted on the sockets, so they
 * include handshakes.
 */

import { connect, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { defined } from '../../../shared/defined.ts';
import { bareHost } from './proxy-choice.ts';
import { openTunnel } from './proxy-tunnel.ts';

export interface Traffic {
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** Attempts to connect, failed ones included. */
  readonly connections: number;
}

export interface DialOptions {
  readonly server: URL;
  readonly proxy?: URL | undefined;
  /** PEM text. */
  readonly certificateAuthority?: string | undefined;
  /** Time limit for the answer of a proxy. Milliseconds. */
  readonly timeoutMs: number;
}

export interface Dialler {
  /** Returns a connection that may not be established yet; undefined if the callback will receive it. */
  dial(callback: (error: Error | null, connection?: Duplex) => void): Duplex | undefined;
  /** Since the start. */
  traffic(): Traffic;
}

export function createDialler(options: DialOptions): Dialler {
  const { server, proxy } = options;
  const sockets = new CountedSockets();
  const tls = new TlsToServer(options);
  return {
    dial(callback) {
      if (proxy === undefined) return tls.over(sockets.open(bareHost(server.hostname), portOf(server)));
      dialThroughProxy(proxy, sockets, options).then(
        (tunnel) => callback(null, tls.over(tunnel)),
        (cause: Error) => callback(cause),
      );
      return undefined;
    },
    traffic: () => sockets.traffic(),
  };
}

const portOf = ({ port, protocol }: URL): number => (port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port));

/** Options of a TLS connection to this host. */
const tlsPeer = (host: string, certificateAuthority: string | undefined) => ({
  host,
  // An address must not be sent as the server name (RFC 6066, 3).
  ...defined({ servername: isIP(host) === 0 ? host : undefined, ca: certificateAuthority }),
});

function dialThroughProxy(
  proxy: URL,
  sockets: CountedSockets,
  { server, certificateAuthority, timeoutMs }: DialOptions,
): Promise<Duplex> {
  const proxyHost = bareHost(proxy.hostname);
  const socket = sockets.open(proxyHost, portOf(proxy));
  const link =
    proxy.protocol === 'https:' ? connectTls({ socket, ...tlsPeer(proxyHost, certificateAuthority) }) : socket;
  const host = bareHost(server.hostname);
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${portOf(server)}`;
  return openTunnel(link, { proxy, authority, timeoutMs }).catch((cause: unknown) => {
    socket.destroy();
    throw cause;
  });
}

/** TCP connections and their bytes. */
class CountedSockets {
  readonly #live = new Set<Socket>();
  #closedBytesUp = 0;
  #closedBytesDown = 0;
  #connections = 0;

  open(host: string, port: number): Socket {
    // Stryker disable next-line BooleanLiteral: bytes arrive sooner
    const socket = connect({ host, port, noDelay: true });
    this.#connections += 1;
    this.#live.add(socket);
    socket.once('close', () => {
      this.#live.delete(socket);
      this.#closedBytesUp += socket.bytesWritten;
      this.#closedBytesDown += socket.bytesRead;
    });
    return socket;
  }

  traffic(): Traffic {
    let bytesUp = this.#closedBytesUp;
    let bytesDown = this.#closedBytesDown;
    for (const socket of this.#live) {
      bytesUp += socket.bytesWritten;
      bytesDown += socket.bytesRead;
    }
    return { bytesUp, bytesDown, connections: this.#connections };
  }
}

/** TLS to the server. A session is resumed where the server allows it: a third of the bytes of a full handshake. */
class TlsToServer {
  readonly #options: DialOptions;
  #session: Buffer | undefined;

  constructor(options: DialOptions) {
    this.#options = options;
  }

  over(socket: Duplex): TLSSocket {
    const { server, certificateAuthority } = this.#options;
    const tls = connectTls({
      socket,
      ...tlsPeer(bareHost(server.hostname), certificateAuthority),
      ...defined({ session: this.#session }),
      ALPNProtocols: ['http/1.1'],
    });
    tls.on('session', (session) => {
      this.#session = session;
    });
    // A server that renewed its keys would refuse the old session every time.
    tls.once('error', () => {
      this.#session = undefined;
    });
    tls.once('close', () => socket.destroy());
    return tls;
  }
}
