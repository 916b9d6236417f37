/**
 * Talking to the fleet of a running local mode from another shell: a Unix socket in the data directory, one line of
 * JSON there, one line back. The socket's file permissions are the protection.
 */
import { chmodSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Fleet } from './fleet.ts';
import type { MachineStatus } from './machine.ts';

/** File name of the socket inside the data directory. */
export const FLEET_SOCKET = 'fleet.sock';

export type FleetCommand =
  | { readonly verb: 'silence' | 'beat'; readonly names: readonly string[] }
  | { readonly verb: 'list'; readonly names: readonly string[] };

export type FleetReply =
  | { readonly kind: 'done'; readonly names: readonly string[] }
  | { readonly kind: 'unknown'; readonly names: readonly string[] }
  | { readonly kind: 'listed'; readonly machines: readonly MachineStatus[] }
  | { readonly kind: 'malformed'; readonly why: string };

export type FleetControlOutcome =
  | { readonly kind: 'replied'; readonly reply: FleetReply }
  /** Nobody listens: no local mode runs on this data directory. */
  | { readonly kind: 'notRunning' };

export interface FleetControl {
  close(): Promise<void>;
}

export class FleetControlError extends Error {
  override readonly name = 'FleetControlError';
}

/** A command longer than this is refused: 10,000 names fit. Characters. */
const LINE_CHARACTERS_MAX = 1_000_000;
const REPLY_TIMEOUT_MS = 10_000;
/** The kernel's limit for a socket path, its closing zero counted. Bytes. */
const SOCKET_PATH_BYTES_MAX = 108;

/** Listens at `path`, taking the place of a socket file nobody answers on. Throws FleetControlError when one answers. */
export async function serveFleetControl(path: string, fleet: Fleet): Promise<FleetControl> {
  if (Buffer.byteLength(path) >= SOCKET_PATH_BYTES_MAX) {
    throw new FleetControlError(
      `the path of the fleet's socket is longer than ${SOCKET_PATH_BYTES_MAX - 1} bytes: ${path}`,
    );
  }
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    answer(socket, fleet);
  });
  if ((await listen(server, path)) === 'inUse') {
    if (await somebodyAnswers(path)) throw new FleetControlError(`another process controls a fleet at ${path}`);
    unlinkSync(path);
    if ((await listen(server, path)) === 'inUse') throw new FleetControlError(`${path} was taken meanwhile`);
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
      else reject(new FleetControlError(`cannot listen at ${path}`, { cause }));
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

function answer(socket: Socket, fleet: Fleet): void {
  let text = '';
  socket.setEncoding('utf8');
  // The other side went away before its reply; there is nobody left to tell.
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: string) => {
    text += chunk;
    const end = text.indexOf('\n');
    if (end >= 0) socket.end(`${JSON.stringify(obey(text.slice(0, end), fleet))}\n`);
    else if (text.length > LINE_CHARACTERS_MAX) socket.destroy();
  });
}

function obey(line: string, fleet: Fleet): FleetReply {
  const command = parseCommand(line);
  if (command === undefined)
    return { kind: 'malformed', why: 'a command is {"verb": "silence|beat|list", "names": […]}' };
  if (command.verb === 'list') return { kind: 'listed', machines: fleet.list() };
  return fleet[command.verb](command.names);
}

function parseCommand(line: string): FleetCommand | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  const { verb, names } = (value ?? {}) as { verb?: unknown; names?: unknown };
  if (verb !== 'silence' && verb !== 'beat' && verb !== 'list') return undefined;
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string')) return undefined;
  return { verb, names };
}

/** Sends one command to the fleet of a running local mode. Throws FleetControlError when the answer makes no sense. */
export function sendFleetCommand(path: string, command: FleetCommand): Promise<FleetControlOutcome> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(REPLY_TIMEOUT_MS, () =>
      socket.destroy(new FleetControlError(`no answer from ${path} in ${REPLY_TIMEOUT_MS} ms`)),
    );
    socket.on('connect', () => socket.write(`${JSON.stringify(command)}\n`));
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT' || cause.code === 'ECONNREFUSED') resolve({ kind: 'notRunning' });
      else reject(new FleetControlError(`cannot talk to the fleet at ${path}: ${cause.message}`, { cause }));
    });
    socket.on('end', () => {
      try {
        resolve({ kind: 'replied', reply: JSON.parse(text) as FleetReply });
      } catch (cause) {
        reject(new FleetControlError(`the fleet at ${path} gave no whole answer`, { cause }));
      }
    });
  });
}
