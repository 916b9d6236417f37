/** The listener that shows that this machine lives, and the probe of another one (docs/witnesses.md). */
import { setMaxListeners } from 'node:events';
import { connect, createServer } from 'node:net';
import { addAbortSignal } from 'node:stream';
import type { ProbeWitness } from '../../ports/site.ts';
import { witnessLine } from '../../rules/site-message.ts';
import { PROBE_TIMEOUT_MS } from '../../rules/site-watch.ts';
import { listenOn } from '../relay/relay-server.ts';

const CONNECTIONS_MAX = 32;
/** Others are closed unanswered. A machine of a site is probed once in 2 s by two machines. */
const ANSWERS_PER_SECOND_MAX = 50;
const SECOND_MS = 1_000;

export interface WitnessListenerOptions {
  /** '': all addresses of the machine. */
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly nodeName: string;
}

export interface WitnessListener {
  readonly port: number;
  close(): Promise<void>;
}

/** Rejects if it cannot listen. */
export async function serveWitness({ nodeName, ...where }: WitnessListenerOptions): Promise<WitnessListener> {
  const closing = new AbortController();
  // One per connection, of at most CONNECTIONS_MAX.
  setMaxListeners(0, closing.signal);
  let second = 0;
  let answers = 0;
  const server = createServer((socket) => {
    addAbortSignal(closing.signal, socket);
    // An error has destroyed the socket.
    socket.on('error', () => undefined);
    socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy());
    const nowSecond = Math.floor(performance.now() / SECOND_MS);
    answers = nowSecond === second ? answers + 1 : 1;
    second = nowSecond;
    if (answers > ANSWERS_PER_SECOND_MAX) socket.destroy();
    // Nothing is read. The connection ends when the other side has closed it, or by its time limit.
    else socket.resume().end(`${witnessLine(nodeName)}\n`);
  });
  server.maxConnections = CONNECTIONS_MAX;
  await listenOn(server, where);
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : where.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        closing.abort();
      }),
  };
}

export const probeWitness: ProbeWitness = ({ node, address, port }) =>
  new Promise((resolve) => {
    const expected = `${witnessLine(node)}\n`;
    let received = '';
    const socket = connect({ host: address, port });
    const end = (isAnswered: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(isAnswered);
    };
    const timer = setTimeout(() => end(false), PROBE_TIMEOUT_MS);
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      received += text;
      if (received.length >= expected.length) end(received === expected);
    });
    socket.once('error', () => end(false));
    socket.once('end', () => end(false));
  });
