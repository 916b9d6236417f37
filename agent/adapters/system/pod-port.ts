/** TCP connections to pods of this machine. Source: upstream's runtimes connect to localhost of the pod. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { written } from '../../../shared/host/written.ts';
import type { ConnectPort, PodPort } from '../../ports/pod-port.ts';

const CONNECT_MS = 10_000;
/** A pod without an address of its own listens on one of these. */
const OWN_ADDRESSES = ['127.0.0.1', '::1'];

export const connectPort: ConnectPort = async (port, address) => {
  const addresses = address === undefined ? OWN_ADDRESSES : [address];
  const faults: string[] = [];
  for (const host of addresses) {
    try {
      return podPort(await connected(port, host));
    } catch (cause) {
      faults.push((cause as Error).message);
    }
  }
  throw new Error(faults.join('; '));
};

async function connected(port: number, host: string): Promise<Socket> {
  const socket = connect({
    port,
    host,
    allowHalfOpen: true,
    // Stryker disable next-line BooleanLiteral: bytes arrive sooner
    noDelay: true,
  });
  const timer = setTimeout(() => socket.destroy(new Error(`${host}:${port} did not answer`)), CONNECT_MS);
  await once(socket, 'connect').finally(() => clearTimeout(timer));
  return socket;
}

function podPort(socket: Socket): PodPort {
  // 'close' follows.
  socket.on('error', () => undefined);
  return {
    received: receivedFrom(socket),
    write: (bytes) => written(socket, bytes),
    endInput: () => socket.end(),
    close: () => socket.destroy(),
  };
}

async function* receivedFrom(socket: Socket): AsyncGenerator<Uint8Array> {
  try {
    for await (const bytes of socket) yield bytes as Buffer;
  } catch {
    // The pod has closed it.
  }
}
