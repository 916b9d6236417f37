import type { Duplex } from 'node:stream';

/** The answer to CONNECT is a status line and a few headers. */
const ANSWER_BYTES_MAX = 16_384;

export interface TunnelOptions {
  readonly proxy: URL;
  /** `host:port` of the server. */
  readonly authority: string;
  /** Time limit for the answer. Milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Opens a tunnel over a connection to a proxy: the same connection, after CONNECT (RFC 9110, 9.3.6). Rejects with an
 * Error.
 */
export function openTunnel(link: Duplex, { proxy, authority, timeoutMs }: TunnelOptions): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    const finish = (error: Error | null): void => {
      clearTimeout(timer);
      link.off('data', onData).off('error', fail).off('close', fail);
      if (error === null) {
        resolve(link);
        return;
      }
      link.on('error', () => {});
      link.destroy();
      reject(error);
    };
    const fail = (cause?: unknown): void =>
      finish(new Error(`the proxy ${proxy.host} did not answer`, cause instanceof Error ? { cause } : {}));
    const onData = (chunk: Buffer): void => {
      received = Buffer.concat([received, chunk]);
      const end = received.indexOf('\r\n\r\n');
      if (end === -1) {
        if (received.length > ANSWER_BYTES_MAX) finish(new Error(`the answer of the proxy ${proxy.host} is too long`));
        return;
      }
      const status = received.toString('latin1', 0, received.indexOf('\r\n'));
      if (!/^HTTP\/1\.\d 2\d\d\b/.test(status)) {
        finish(new Error(`the proxy ${proxy.host} answered ${status}`));
        return;
      }
      // What follows the headers is from the server.
      link.pause();
      const rest = received.subarray(end + 4);
      if (rest.length > 0) link.unshift(rest);
      finish(null);
    };
    const timer = setTimeout(() => fail(), timeoutMs);
    link.on('data', onData).once('error', fail).once('close', fail);
    link.write(connectRequest(proxy, authority));
  });
}

function connectRequest(proxy: URL, authority: string): string {
  const account = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const authorization =
    account === ':' ? '' : `Proxy-Authorization: Basic ${Buffer.from(account).toString('base64')}\r\n`;
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`;
}
