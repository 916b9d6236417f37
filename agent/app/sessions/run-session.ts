/** One session: joins its connection with a command, with the output of a container, or with a port of a pod. */
import {
  bytesOfMessage,
  CHANNELS,
  exitMessage,
  faultMessage,
  isEndOfInput,
  messageOf,
  terminalSizeOf,
} from '../../../shared/sessions/channels.ts';
import type { SessionPurpose, SessionRequest } from '../../../shared/sessions/session-request.ts';
import type { ConnectPort, PodPort } from '../../ports/pod-port.ts';
import type { PodRuntime, RunningCommand } from '../../ports/pod-runtime.ts';
import type { SessionConnection } from '../../ports/session-api.ts';
import type { AgentTime } from '../../ports/time.ts';
import { describeError } from '../describe-error.ts';

/** Bytes of one message. */
const PIECE_BYTES_MAX = 32 * 1024;
/**
 * A child of a command may keep its output open: then the session ends when it was silent for this long. Milliseconds.
 */
const OUTPUT_WAIT_MS = 2_000;

export interface SessionParts {
  readonly runtime: Pick<PodRuntime, 'open' | 'readLog' | 'pods'>;
  readonly time: Pick<AgentTime, 'sleep'>;
  readonly connectPort: ConnectPort;
}

/** Until one side has ended it. A fault is reported to the client. */
export async function runSession(
  connection: SessionConnection,
  { podUid, purpose }: SessionRequest,
  parts: SessionParts,
): Promise<void> {
  try {
    switch (purpose.kind) {
      case 'exec':
        return await runCommand(connection, podUid, purpose, parts);
      case 'attach':
        return await followOutput(connection, podUid, purpose, parts);
      case 'forward':
        return await forwardPort(connection, podUid, purpose.port, parts);
    }
  } catch (cause) {
    await connection.send(bytesOfMessage(faultMessage(describeError(cause))));
  }
}

async function runCommand(
  connection: SessionConnection,
  podUid: string,
  purpose: Extract<SessionPurpose, { kind: 'exec' }>,
  { runtime, time }: SessionParts,
): Promise<void> {
  if (runtime.open === undefined) throw new Error('this node runs no pods');
  const command = await runtime.open(podUid, purpose);
  try {
    const output = new CommandOutput(connection, command);
    void readInput(connection, command, purpose.stdin);
    const left = connection.closed.then(() => 'left' as const);
    const outcome = await Promise.race([command.exitCode, left]);
    if (outcome === 'left') return;
    await Promise.race([output.ended(time), left]);
    await connection.send(bytesOfMessage(exitMessage(outcome)));
  } finally {
    command.kill();
  }
}

async function readInput(connection: SessionConnection, command: RunningCommand, stdin: boolean): Promise<void> {
  for await (const bytes of connection) {
    const message = messageOf(bytes);
    if (message === undefined) continue;
    if (isEndOfInput(message)) command.endInput();
    else if (message.channel === CHANNELS.stdin && stdin) await command.write(message.data);
    else if (message.channel === CHANNELS.resize) {
      const size = terminalSizeOf(message.data);
      if (size !== undefined) command.resize(size);
    }
  }
}

/** Attaches to the output from now on. A container has no input. */
async function followOutput(
  connection: SessionConnection,
  podUid: string,
  { container, stdin }: Extract<SessionPurpose, { kind: 'attach' }>,
  { runtime }: SessionParts,
): Promise<void> {
  if (stdin) throw new Error(`container ${container} has no input on this node: attach shows its output only`);
  const stop = new AbortController();
  void connection.closed.then(() => stop.abort());
  const query = { podUid, container, previous: false, follow: true, timestamps: false, tailLines: 0 };
  for await (const bytes of runtime.readLog?.(query, stop.signal) ?? []) {
    if (!(await sendOutput(connection, CHANNELS.stdout, bytes))) return;
  }
  await connection.send(bytesOfMessage(exitMessage(0)));
}

async function forwardPort(
  connection: SessionConnection,
  podUid: string,
  port: number,
  { runtime, connectPort }: SessionParts,
): Promise<void> {
  const pod = (await runtime.pods()).find(({ uid }) => uid === podUid);
  if (pod === undefined) throw new Error(`pod ${podUid} is not known to this node`);
  const opened = await connectPort(port, pod.ip);
  try {
    void writePort(connection, opened);
    await Promise.race([sendPort(connection, opened), connection.closed]);
  } finally {
    opened.close();
  }
}

async function writePort(connection: SessionConnection, opened: PodPort): Promise<void> {
  for await (const bytes of connection) {
    const message = messageOf(bytes);
    if (message?.channel === CHANNELS.stdin) await opened.write(message.data);
    else if (message !== undefined && isEndOfInput(message)) opened.endInput();
  }
}

async function sendPort(connection: SessionConnection, { received }: PodPort): Promise<void> {
  for await (const bytes of received) {
    if (!(await sendOutput(connection, CHANNELS.stdout, bytes))) return;
  }
  await connection.send(bytesOfMessage(exitMessage(0)));
}

/** Sends what a command writes. */
class CommandOutput {
  readonly #complete: Promise<unknown>;
  #pieces = 0;
  #sending = 0;

  constructor(connection: SessionConnection, { stdout, stderr }: RunningCommand) {
    const forward = async (channel: number, output: AsyncIterable<Uint8Array>): Promise<void> => {
      for await (const bytes of output) {
        this.#sending += 1;
        const isOpen = await sendOutput(connection, channel, bytes);
        this.#sending -= 1;
        this.#pieces += 1;
        if (!isOpen) return;
      }
    };
    // A stream that is destroyed has ended.
    this.#complete = Promise.allSettled([forward(CHANNELS.stdout, stdout), forward(CHANNELS.stderr, stderr)]);
  }

  /** Resolves when all was sent, or nothing more comes. The command has exited. */
  async ended(time: SessionParts['time']): Promise<void> {
    for (;;) {
      const before = this.#pieces;
      const isOver = new AbortController();
      const wait = time.sleep(OUTPUT_WAIT_MS, isOver.signal).then(() => 'waited' as const);
      const outcome = await Promise.race([this.#complete, wait]);
      isOver.abort();
      if (outcome !== 'waited' || (this.#pieces === before && this.#sending === 0)) return;
    }
  }
}

async function sendOutput(connection: SessionConnection, channel: number, bytes: Uint8Array): Promise<boolean> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES_MAX) {
    const data = bytes.subarray(at, at + PIECE_BYTES_MAX);
    if (!(await connection.send(bytesOfMessage({ channel, data })))) return false;
  }
  return true;
}
