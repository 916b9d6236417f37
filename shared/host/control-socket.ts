/**
 * Talking to a running cluster from another shell: a Unix socket in the data directory, one line of JSON there, one
 * line back. The socket's file permissions are the protection.
 */
import { chmodSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface Control {
  close(): Promise<void>;
}

export type ControlOutcome<Reply> =
  | { readonly kind: 'replied'; readonly reply: Reply }
  /** No process listens: no cluster runs on this data directory. */
  | { readonly kind: 'notRunning' };

export class ControlError extends Error {
  override readonly name = 'ControlError';
}

/** A command longer than this is refused: 10,000 names fit. Characters. */
const LINE_CHARACTERS_MAX = 1_000_000;
const REPLY_TIMEOUT_MS = 10_000;
/** The kernel's limit for a socket path, its closing zero counted. Bytes. */
const SOCKET_PATH_BYTES_MAX = 108;

/**
 * Listens at `path`, replacing a socket file without a listener. A line that is not JSON reaches `obey` as
 * undefined. Throws ControlError when somebody answers there already.
 */
export async function serveControl(path: string, obey: (command: unknown) => unknown): Promise<Control> {
  if (Buffer.byteLength(path) >= SOCKET_PATH_BYTES_MAX) {
    throw new ControlError(`the path of the socket is longer than ${SOCKET_PATH_BYTES_MAX - 1} bytes: ${path}`);
  }
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    answer(socket, obey);
  });
  if ((await listen(server, path)) === 'inUse') {
    if (await somebodyAnswers(path)) throw new ControlError(`another process answers at ${path}`);
    unlinkSync(path);
    if ((await listen(server, path)) === 'inUse') throw new ControlError(`${path} is used by another process`);
  }
  chmodSync(path, 0o600);
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

function listen(server: Server, path: string): Promise<'listening' | 'inUse'> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      if (cause.code === 'EADDRINUSE') resolve('inUse');
      else reject(new ControlError(`cannot listen at ${path}`, { cause }));
    };
    server.once('error', onError);
    server.listen(path, () => {
      server.removeListener('error', onError);
      resolve('listening');
    });
  });
}

function somebodyAnswers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

/** A command that fails closes the connection: the client reports it. */
async function reply(socket: Socket, obey: (command: unknown) => unknown, command: unknown): Promise<void> {
  try {
    socket.end(`${JSON.stringify(await obey(command))}\n`);
  } catch {
    socket.destroy();
  }
}

function answer(socket: Socket, obey: (command: unknown) => unknown): void {
  let text = '';
  socket.setEncoding('utf8');
  // The client disconnected before its reply.
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: string) => {
    text += chunk;
    const end = text.indexOf('\n');
    if (end >= 0) void reply(socket, obey, parsed(text.slice(0, end)));
    else if (text.length > LINE_CHARACTERS_MAX) socket.destroy();
  });
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Sends one command to a running cluster. Throws ControlError when the answer makes no sense. */
export function sendControl<Reply>(
  path: string,
  command: unknown,
  timeoutMs = REPLY_TIMEOUT_MS,
): Promise<ControlOutcome<Reply>> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(timeoutMs, () => socket.destroy(new ControlError(`no answer from ${path} in ${timeoutMs} ms`)));
    socket.on('connect', () => socket.write(`${JSON.stringify(command)}\n`));
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT' || cause.code === 'ECONNREFUSED') resolve({ kind: 'notRunning' });
      else reject(new ControlError(`cannot talk to what answers at ${path}: ${cause.message}`, { cause }));
    });
    socket.on('end', () => {
      try {
        resolve({ kind: 'replied', reply: JSON.parse(text) as Reply });
      } catch (cause) {
        reject(new ControlError(`no whole answer from ${path}`, { cause }));
      }
    });
  });
}
