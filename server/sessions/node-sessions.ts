/**
 * The connections of agents. Each holds one line, on which it learns of sessions, and opens a connection for each of
 * them. A session is for one node, for one connection, and for a few seconds.
 */
import type { UserInfo } from '../../shared/access/user-info.ts';
import type { MessageSocket } from '../../shared/host/message-socket.ts';
import * as status from '../../shared/kubernetes/status.ts';
import type { LineMessage, SessionPurpose, SessionRequest } from '../../shared/sessions/session-request.ts';
import { UNBOUNDED, workThrough } from '../../shared/ticks/bounded-work.ts';

/** Lines at once. 1,000 took 60 KB each, with their TLS connections (2026-11-28, resident memory). */
const LINES_MAX = 5_000;
/** A node that has just started, or lost its line, gets one within this time. Milliseconds. */
const LINE_WITHIN_MS = 5_000;
/** From the request on the line to the connection of the agent. Milliseconds. */
const SESSION_WITHIN_MS = 10_000;
/** Between two pings of a line. One without an answer is dead. Milliseconds. */
const PING_EVERY_MS = 30_000;
/** Keys that are looked up at once. */
const KEY_READS_MAX = 8;
/** Then the agent opens another one, with the key that it has then. Milliseconds. */
const LINE_MS_MAX = 30 * 60_000;

export interface NodeSessionsOptions {
  readonly uuid: () => string;
  readonly monotonicMs: () => number;
  /** Whether a machine still has the key that it signed in with. */
  readonly hasItsKey: (user: UserInfo) => Promise<boolean>;
}

type LineSocket = Pick<MessageSocket, 'send' | 'close' | 'destroy' | 'ping' | 'onPong' | 'closed'> &
  AsyncIterable<Buffer>;

interface Line {
  readonly socket: LineSocket;
  readonly user: UserInfo;
  /** Monotonic milliseconds. */
  readonly endsAtMs: number;
  isAnswered: boolean;
}

interface AwaitedSession {
  readonly nodeName: string;
  readonly resolve: (socket: MessageSocket) => void;
}

export class NodeSessions {
  readonly #options: NodeSessionsOptions;
  readonly #lines = new Map<string, Line>();
  readonly #lineWaiters = new Map<string, Set<() => void>>();
  readonly #awaited = new Map<string, AwaitedSession>();
  readonly #sockets = new Map<string, Set<MessageSocket>>();
  readonly #timer: NodeJS.Timeout;
  #isEndingUnknown = false;

  constructor(options: NodeSessionsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#checkLines(), PING_EVERY_MS);
    this.#timer.unref();
  }

  get lines(): number {
    return this.#lines.size;
  }

  /** @throws StatusError 503 */
  admitLine(nodeName: string): void {
    if (this.#lines.size < LINES_MAX || this.#lines.has(nodeName)) return;
    throw status.serviceUnavailable(`${LINES_MAX} nodes are connected, the most at once`, { retryAfterSeconds: 60 });
  }

  /** The newest line of a node replaces the one before. */
  addLine(nodeName: string, user: UserInfo, socket: LineSocket): void {
    this.#lines.get(nodeName)?.socket.close();
    const line: Line = { socket, user, endsAtMs: this.#options.monotonicMs() + LINE_MS_MAX, isAnswered: true };
    this.#lines.set(nodeName, line);
    socket.onPong(() => {
      line.isAnswered = true;
    });
    void this.#readLine(nodeName, line);
    for (const wake of this.#lineWaiters.get(nodeName) ?? []) wake();
  }

  /** Assigns the session that this connection of a node is for: once. @throws StatusError 404 */
  takeSession(nodeName: string, id: string): (socket: MessageSocket | undefined) => void {
    const awaited = this.#awaited.get(id);
    if (awaited?.nodeName !== nodeName) throw status.unknownPath();
    this.#awaited.delete(id);
    return (socket) => {
      if (socket === undefined) return;
      this.#keep(nodeName, id, socket);
      awaited.resolve(socket);
    };
  }

  /** @throws StatusError 504 */
  async requireLine(nodeName: string): Promise<void> {
    await this.#lineOf(nodeName);
  }

  /** Asks the agent of a node for a session, and waits for its connection. @throws StatusError 504 */
  async open(nodeName: string, podUid: string, purpose: SessionPurpose): Promise<MessageSocket> {
    const line = await this.#lineOf(nodeName);
    const request: SessionRequest = { id: this.#options.uuid(), podUid, purpose };
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#awaited.delete(request.id);
        reject(silent(nodeName, SESSION_WITHIN_MS));
      }, SESSION_WITHIN_MS);
      this.#awaited.set(request.id, {
        nodeName,
        resolve(socket) {
          clearTimeout(timer);
          resolve(socket);
        },
      });
      void send(line, { session: request });
    });
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const { socket } of this.#lines.values()) socket.close(1_001, 'the API stops');
    for (const nodeName of this.#sockets.keys()) this.#endSessions(nodeName);
  }

  async #lineOf(nodeName: string): Promise<Line> {
    const found = this.#lines.get(nodeName);
    if (found !== undefined) return found;
    const waiters = this.#lineWaiters.get(nodeName) ?? new Set();
    this.#lineWaiters.set(nodeName, waiters);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, LINE_WITHIN_MS);
      function done(): void {
        clearTimeout(timer);
        waiters.delete(done);
        resolve();
      }
      waiters.add(done);
    });
    if (waiters.size === 0) this.#lineWaiters.delete(nodeName);
    const line = this.#lines.get(nodeName);
    if (line === undefined) throw silent(nodeName, LINE_WITHIN_MS);
    return line;
  }

  /** An agent sends nothing on its line. */
  async #readLine(nodeName: string, line: Line): Promise<void> {
    for await (const _message of line.socket) {
      line.socket.destroy();
      break;
    }
    await line.socket.closed;
    if (this.#lines.get(nodeName) === line) this.#lines.delete(nodeName);
  }

  #keep(nodeName: string, id: string, socket: MessageSocket): void {
    socket.keepAlive();
    const sockets = this.#sockets.get(nodeName) ?? new Set();
    this.#sockets.set(nodeName, sockets.add(socket));
    void socket.closed.then(() => {
      sockets.delete(socket);
      if (sockets.size === 0) this.#sockets.delete(nodeName);
      const line = this.#lines.get(nodeName);
      if (line !== undefined) void send(line, { ended: id });
    });
  }

  #endSessions(nodeName: string): void {
    for (const socket of this.#sockets.get(nodeName) ?? []) socket.destroy();
  }

  /** After a rotation the agent opens another line, with its new key. A store that does not answer ends none. */
  async #endUnknown({ socket, user }: Line): Promise<void> {
    if (!(await this.#options.hasItsKey(user).catch(() => true))) socket.destroy();
  }

  #checkLines(): void {
    const atMs = this.#options.monotonicMs();
    for (const [nodeName, line] of this.#lines) {
      if (!line.isAnswered) {
        // The machine has left without a word: so have its sessions.
        line.socket.destroy();
        this.#endSessions(nodeName);
        continue;
      }
      if (atMs >= line.endsAtMs) line.socket.close(1_000, 'open another line');
      line.isAnswered = false;
      line.socket.ping();
    }
    void this.#endAllUnknown();
  }

  /** A few at a time: thousands of reads at once would stand before the heartbeats. */
  async #endAllUnknown(): Promise<void> {
    if (this.#isEndingUnknown) return;
    this.#isEndingUnknown = true;
    const options = { concurrencyMax: KEY_READS_MAX, budget: UNBOUNDED };
    await workThrough([...this.#lines.values()], options, (line) => this.#endUnknown(line));
    this.#isEndingUnknown = false;
  }
}

const send = ({ socket }: Line, message: LineMessage): Promise<boolean> => socket.send(JSON.stringify(message));

const silent = (nodeName: string, waitedMs: number): status.StatusError =>
  status.gatewayTimeout(`node ${nodeName} did not connect within ${waitedMs / 1_000}s`);
