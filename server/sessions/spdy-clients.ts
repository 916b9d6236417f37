/** Clients of sessions that speak SPDY: kubectl up to 1.30, and for port-forward each kubectl. */
import { CHANNELS, END_OF_INPUT, faultOf, type SessionMessage } from '../../shared/sessions/channels.ts';
import { isPort } from '../../shared/sessions/session-request.ts';
import type { ByteTransport } from './byte-transport.ts';
import { merged } from './merged.ts';
import type { SessionClient } from './session-client.ts';
import { SpdyConnection, type SpdyStream } from './spdy-connection.ts';

/**
 * Upstream's streamCreationTimeout. Source: pkg/kubelet/apis/config/v1beta1/defaults.go (kubelet server). Milliseconds.
 */
const STREAMS_WITHIN_MS = 30_000;
/** Connections to ports of a pod at once, of one client. Each has two streams. */
export const FORWARDS_MAX = 100;
/** Source: k8s.io/api core/v1 (StreamType, PortHeader, PortForwardRequestIDHeader). */
const STREAM_TYPE = 'streamtype';
const PORT = 'port';
const REQUEST_ID = 'requestid';

export type ExecStream = 'error' | 'stdin' | 'stdout' | 'stderr' | 'resize';

/** Waits for the streams of exec or attach. undefined: the client has left, or does not open them. */
export async function spdyExecClient(
  transport: ByteTransport,
  expected: ReadonlySet<ExecStream>,
): Promise<SessionClient | undefined> {
  const connection = new SpdyConnection(transport, expected.size);
  const streams = await openedStreams(connection, expected);
  if (streams === undefined) {
    connection.end();
    return undefined;
  }
  const { error, stdin, stdout, stderr, resize } = streams;
  const outputs = new Map([
    [CHANNELS.stdout, stdout],
    [CHANNELS.stderr, stderr],
    [CHANNELS.error, error],
  ]);
  return {
    messages: merged([
      ...(stdin === undefined ? [] : [inputOf(stdin)]),
      ...(resize === undefined ? [] : [sizesOf(resize)]),
    ]),
    left: connection.closed,
    async write({ channel, data }) {
      const stream = outputs.get(channel as typeof CHANNELS.stdout);
      // It was not asked for.
      return stream === undefined ? true : stream.write(data);
    },
    end() {
      for (const stream of outputs.values()) stream?.end();
      connection.end();
    },
  };
}

type ExecStreams = Partial<Record<ExecStream, SpdyStream>>;

async function openedStreams(
  connection: SpdyConnection,
  expected: ReadonlySet<ExecStream>,
): Promise<ExecStreams | undefined> {
  const found: ExecStreams = {};
  const timer = setTimeout(() => connection.end(), STREAMS_WITHIN_MS);
  try {
    for await (const stream of connection.streams()) {
      const type = stream.headers.get(STREAM_TYPE) as ExecStream | undefined;
      if (type === undefined || !expected.has(type) || found[type] !== undefined) return undefined;
      found[type] = stream;
      if (Object.keys(found).length === expected.size) return found;
    }
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

async function* inputOf(stream: SpdyStream): AsyncGenerator<SessionMessage> {
  for await (const data of stream.data()) yield { channel: CHANNELS.stdin, data };
  yield END_OF_INPUT;
}

/** Each size is a line of JSON. kubectl sends one per frame. */
async function* sizesOf(stream: SpdyStream): AsyncGenerator<SessionMessage> {
  for await (const data of stream.data()) yield { channel: CHANNELS.resize, data };
}

/** One connection to a port of the pod. */
export interface Forward {
  readonly port: number;
  readonly client: SessionClient;
}

/** The connections that a client of port-forward opens, until it has left. */
export async function* spdyForwards(transport: ByteTransport, ended: AbortSignal): AsyncGenerator<Forward> {
  const connection = new SpdyConnection(transport, 2 * FORWARDS_MAX);
  const onEnded = (): void => connection.end();
  ended.addEventListener('abort', onEnded, { once: true });
  const waiting = new Map<string, { readonly stream: SpdyStream; readonly timer: NodeJS.Timeout }>();
  try {
    for await (const stream of connection.streams()) {
      const id = stream.headers.get(REQUEST_ID) ?? '';
      const first = waiting.get(id);
      if (first === undefined) {
        const timer = setTimeout(() => {
          waiting.delete(id);
          stream.reset('cancel');
        }, STREAMS_WITHIN_MS);
        waiting.set(id, { stream, timer });
        void stream.gone.then(() => {
          clearTimeout(timer);
          if (waiting.get(id)?.stream === stream) waiting.delete(id);
        });
        continue;
      }
      waiting.delete(id);
      clearTimeout(first.timer);
      const forward = forwardOf([first.stream, stream]);
      if (forward === undefined) {
        for (const each of [first.stream, stream]) each.reset('protocolError');
      } else yield forward;
    }
  } finally {
    for (const { timer } of waiting.values()) clearTimeout(timer);
    ended.removeEventListener('abort', onEnded);
    connection.end();
  }
}

function forwardOf(pair: readonly SpdyStream[]): Forward | undefined {
  const error = pair.find(({ headers }) => headers.get(STREAM_TYPE) === 'error');
  const data = pair.find(({ headers }) => headers.get(STREAM_TYPE) === 'data');
  const port = Number(data?.headers.get(PORT));
  if (error === undefined || data === undefined || !isPort(port)) return undefined;
  return {
    port,
    client: {
      messages: inputOf(data),
      left: data.gone,
      async write(message) {
        if (message.channel !== CHANNELS.error) return data.write(message.data);
        const fault = faultOf(message.data);
        return fault === undefined
          ? true
          : error.write(Buffer.from(`an error occurred forwarding port ${port}: ${fault}`));
      },
      end() {
        data.end();
        error.end();
        // What the client still sends has no reader.
        data.stopReading();
        error.stopReading();
      },
    },
  };
}
