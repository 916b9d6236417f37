/**
 * POST / to one endpoint over kept connections, without Node's HTTP client: that serves every use of HTTP, and costs a
 * quarter of the CPU of a beat in its function. Needed here is one request at a time, whole in one write, and its answer.
 *
 * A connection is opened for a request that finds none idle, carries one request at a time and is kept while each answer
 * is understood to its last byte. Anything else ends the connection, so nothing is ever taken for the next answer.
 */
import { isIP, type Socket, connect as tcpConnect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { readHttpAnswer } from './http-answer.ts';

export interface PostAnswer {
  readonly status: number;
  readonly body: string;
}

export interface PostClient {
  /**
   * @param headers all of them, content-length excepted
   * @throws RequestError `TimeoutError`, `ConnectionAborted`, `AnswerTooLong` or `MalformedAnswer`, and Node's errors of
   * connections, with their codes
   */
  post(headers: Readonly<Record<string, string>>, body: string): Promise<PostAnswer>;
  close(): void;
}

export interface PostClientOptions {
  readonly endpoint: URL;
  /** Connections at most; more requests wait for one. */
  readonly socketsMax: number;
  /** From asking to the whole answer, waiting for a connection included. Milliseconds. */
  readonly timeoutMs: number;
}

/** An error by the name that DynamoDB, or its SDK, gives it. */
export class RequestError extends Error {
  override readonly name: string;
  readonly Item?: unknown;
  constructor(name: string, item?: unknown) {
    super(name);
    this.name = name;
    if (item !== undefined) this.Item = item;
  }
}

interface Exchange {
  readonly text: string;
  settle(error: Error | undefined, answer?: PostAnswer): void;
}

interface Connection {
  readonly socket: Socket;
  exchange: Exchange | undefined;
  received: Buffer;
}

/** Answers are one item: far below this, or not from DynamoDB. */
const ANSWER_BYTES_MAX = 1_000_000;
const KEEP_ALIVE_DELAY_MS = 1_000;
const NOTHING = Buffer.alloc(0);

export function postClient({ endpoint, socketsMax, timeoutMs }: PostClientOptions): PostClient {
  const dial = dialler(endpoint);
  const connections = new Set<Connection>();
  const idle: Connection[] = [];
  const waiting: Exchange[] = [];

  function start(exchange: Exchange): void {
    const connection = idle.pop() ?? (connections.size < socketsMax ? open() : undefined);
    if (connection === undefined) {
      waiting.push(exchange);
      return;
    }
    connection.exchange = exchange;
    connection.socket.ref();
    connection.socket.write(exchange.text);
  }

  function open(): Connection {
    const connection: Connection = { socket: dial(), exchange: undefined, received: NOTHING };
    const { socket } = connection;
    connections.add(connection);
    socket.on('data', (bytes: Buffer) => {
      connection.received = connection.received.length === 0 ? bytes : Buffer.concat([connection.received, bytes]);
      take(connection, false);
    });
    socket.on('end', () => take(connection, true));
    socket.on('error', (error) => end(connection, error));
    socket.on('close', () => end(connection, new RequestError('ConnectionAborted')));
    return connection;
  }

  /** Looks at what has come: nothing yet, the answer, or what ends the connection. */
  function take(connection: Connection, isEnded: boolean): void {
    const { exchange, received } = connection;
    if (exchange === undefined) {
      // Idle: closed by the other side, or told what nobody asked for.
      end(connection);
      return;
    }
    const answer = readHttpAnswer(received, isEnded);
    if (answer.kind !== 'whole') {
      const why = faultIn(answer.kind, received.length, isEnded);
      if (why !== undefined) end(connection, new RequestError(why));
      return;
    }
    connection.exchange = undefined;
    connection.received = NOTHING;
    exchange.settle(undefined, answer);
    if (!answer.isKept) {
      end(connection);
      return;
    }
    connection.socket.unref();
    idle.push(connection);
    startWaiting();
  }

  function end(connection: Connection, error?: Error): void {
    if (!connections.delete(connection)) return;
    const place = idle.indexOf(connection);
    if (place >= 0) idle.splice(place, 1);
    connection.socket.destroy();
    connection.exchange?.settle(error);
    startWaiting();
  }

  function startWaiting(): void {
    const next = waiting.shift();
    if (next !== undefined) start(next);
  }

  function giveUp(exchange: Exchange): void {
    const place = waiting.indexOf(exchange);
    if (place >= 0) {
      waiting.splice(place, 1);
      exchange.settle(new RequestError('TimeoutError'));
    }
    for (const connection of connections) {
      if (connection.exchange === exchange) end(connection, new RequestError('TimeoutError'));
    }
  }

  return {
    post: (headers, body) =>
      new Promise((resolve, reject) => {
        const exchange: Exchange = {
          text: requestText(headers, body),
          settle(error, answer) {
            clearTimeout(timer);
            if (answer === undefined) reject(error);
            else resolve(answer);
          },
        };
        const timer = setTimeout(giveUp, timeoutMs, exchange);
        start(exchange);
      }),
    close() {
      for (const exchange of waiting.splice(0)) exchange.settle(new RequestError('ConnectionAborted'));
      for (const connection of connections) end(connection, new RequestError('ConnectionAborted'));
    },
  };
}

function faultIn(kind: 'partial' | 'malformed', bytes: number, isEnded: boolean): string | undefined {
  if (kind === 'malformed') return 'MalformedAnswer';
  if (isEnded) return 'ConnectionAborted';
  return bytes > ANSWER_BYTES_MAX ? 'AnswerTooLong' : undefined;
}

function requestText(headers: Readonly<Record<string, string>>, body: string): string {
  let head = 'POST / HTTP/1.1\r\n';
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
  return `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Opens connections; those by TLS resume the session of the one before, which saves half of a handshake. */
function dialler({ protocol, hostname: host, port }: URL): () => Socket {
  const common = { host, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS };
  if (protocol === 'http:') return () => tcpConnect({ ...common, port: port === '' ? 80 : Number(port) });
  let session: Buffer | undefined;
  return () => {
    const socket = tlsConnect({
      ...common,
      port: port === '' ? 443 : Number(port),
      ALPNProtocols: ['http/1.1'],
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(session === undefined ? {} : { session }),
    });
    socket.on('session', (fresh) => {
      session = fresh;
    });
    // A session that the other side no longer takes must not be offered again.
    socket.on('error', () => {
      session = undefined;
    });
    return socket;
  };
}
