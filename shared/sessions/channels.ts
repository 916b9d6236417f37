/**
 * Messages of a session: the first byte is a channel, the rest its data. Clients, `nodekeeper serve` and agents use the
 * same ones, so a message passes unchanged.
 *
 * Source: k8s.io/apimachinery pkg/util/remotecommand/constants.go, k8s.io/kubelet
 * pkg/cri/streaming/remotecommand/websocket.go
 */
export const CHANNELS = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** Bytes of one message. kubectl and agents send 32 KB. */
export const MESSAGE_BYTES_MAX = 1024 * 1024;

export interface SessionMessage {
  readonly channel: number;
  readonly data: Uint8Array;
}

/** undefined: an empty message, which has no channel. */
export function messageOf(bytes: Uint8Array): SessionMessage | undefined {
  const [channel] = bytes;
  return channel === undefined ? undefined : { channel, data: bytes.subarray(1) };
}

export function bytesOfMessage({ channel, data }: SessionMessage): Uint8Array {
  const bytes = new Uint8Array(1 + data.length);
  bytes[0] = channel;
  bytes.set(data, 1);
  return bytes;
}

/** No input follows. Clients know it from `v5.channel.k8s.io` on. */
export const END_OF_INPUT: SessionMessage = { channel: CHANNELS.close, data: Uint8Array.of(CHANNELS.stdin) };

export const isEndOfInput = ({ channel, data }: SessionMessage): boolean =>
  channel === CHANNELS.close && data.length === 1 && data[0] === CHANNELS.stdin;

/** The last message of a session. @param end JSON of a Status */
const lastMessage = (end: object): SessionMessage => ({
  channel: CHANNELS.error,
  data: new TextEncoder().encode(JSON.stringify({ metadata: {}, ...end })),
});

/** A command has exited. Source: k8s.io/kubelet pkg/cri/streaming/remotecommand/exec.go (ServeExec). */
export function exitMessage(exitCode: number): SessionMessage {
  if (exitCode === 0) return lastMessage({ status: 'Success' });
  return lastMessage({
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${exitCode}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] },
  });
}

/** The session cannot start, or ended early. */
export const faultMessage = (message: string): SessionMessage =>
  lastMessage({ status: 'Failure', reason: 'InternalError', message, code: 500 });

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** Cells of one line or column that a terminal may have. */
const SIZE_MAX = 65_535;

/** undefined: malformed. Source: k8s.io/client-go tools/remotecommand (TerminalSize). */
export function terminalSizeOf(data: Uint8Array): TerminalSize | undefined {
  let size: unknown;
  try {
    size = JSON.parse(new TextDecoder().decode(data));
  } catch {
    return undefined;
  }
  const { Width: columns, Height: rows } = (size ?? {}) as { readonly Width?: unknown; readonly Height?: unknown };
  return isCells(columns) && isCells(rows) ? { columns, rows } : undefined;
}

const isCells = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= SIZE_MAX;

/** The text of a fault in the last message of a session; undefined: it ended well. */
export function faultOf(data: Uint8Array): string | undefined {
  try {
    const { status, message } = JSON.parse(new TextDecoder().decode(data)) as { status?: unknown; message?: unknown };
    return status === 'Success' ? undefined : String(message);
  } catch {
    return 'the node reported its end in an unknown form';
  }
}
