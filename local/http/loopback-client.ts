/** Sends requests to our own processes, without Node's HTTP client (loopback-message.ts). */
import { connect, type Socket } from 'node:net';
import { type Message, MessageError, MessageReader, messageBytes } from './loopback-message.ts';

export interface LoopbackResponse {
  /** `200 OK`. */
  readonly status: string;
  readonly headers: Message['headers'];
  readonly body: Buffer;
}

export interface LoopbackClient {
  /**
   * Sends a POST over a persistent connection. Concurrent requests have a connection each.
   *
   * @throws Node's errors of connections; MessageError; a plain error after `timeoutMs`
   */
  post(path: string, headers: Message['headers'], body: Buffer | string): Promise<LoopbackResponse>;
  close(): void;
}

const ANSWER_BYTES_MAX = 100_000_000;

export function loopbackClient(endpoint: URL, timeoutMs?: number): LoopbackClient {
  const host = endpoint.hostname.replace(/^\[(.*)\]$/, '$1');
  const port = endpoint.port === '' ? 80 : Number(endpoint.port);
  const connections = new Set<Connection>();
  const idle: Connection[] = [];
  let isClosed = false;
  const open = (): Connection => {
    const connection = new Connection(connect({ host, port, noDelay: true }), () => {
      connections.delete(connection);
      const at = idle.indexOf(connection);
      if (at !== -1) idle.splice(at, 1);
    });
    connections.add(connection);
    return connection;
  };
  return {
    async post(path, headers, body) {
      if (isClosed) throw new Error('the client was closed');
      const connection = idle.pop() ?? open();
      const host: Message['headers'][number] = ['host', endpoint.host];
      const bytes = messageBytes(`POST ${path} HTTP/1.1`, [host, ...headers], body);
      const { startLine, ...response } = await connection.exchange(bytes, timeoutMs);
      if (!connection.isClosed) idle.push(connection);
      return { ...response, status: statusOf(startLine) };
    },
    close() {
      isClosed = true;
      for (const connection of connections) connection.destroy(new Error('the client was closed'));
    },
  };
}

function statusOf(startLine: string): string {
  if (!/^HTTP\/1\.1 \d{3}\b/.test(startLine)) throw new MessageError(`no status line: ${startLine.slice(0, 100)}`);
  return startLine.slice('HTTP/1.1 '.length);
}

/** One exchange at a time. */
class Connection {
  isClosed = false;
  readonly #socket: Socket;
  readonly #reader = new MessageReader(ANSWER_BYTES_MAX);
  #settle: ((outcome: Message | Error) => void) | undefined;

  constructor(socket: Socket, onClose: () => void) {
    this.#socket = socket;
    let fault: Error | undefined;
    socket.on('error', (error) => {
      fault = error;
    });
    socket.on('close', () => {
      this.isClosed = true;
      onClose();
      this.#end(fault ?? new Error('the connection was closed before an answer'));
    });
    socket.on('data', (bytes: Buffer) => {
      try {
        for (const message of this.#reader.read(bytes)) this.#end(message);
      } catch (error) {
        this.destroy(error as Error);
      }
    });
  }

  exchange(request: Buffer, timeoutMs: number | undefined): Promise<Message> {
    return new Promise((resolve, reject) => {
      const isLate = () => this.destroy(new Error(`no answer in ${timeoutMs} ms`));
      const timer = timeoutMs === undefined ? undefined : setTimeout(isLate, timeoutMs);
      this.#settle = (outcome) => {
        clearTimeout(timer);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      this.#socket.write(request);
    });
  }

  destroy(cause: Error): void {
    this.isClosed = true;
    this.#socket.destroy(cause);
  }

  #end(outcome: Message | Error): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(outcome);
  }
}
