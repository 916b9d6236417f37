/**
 * A connection to the system message bus, with a time limit per call and a visible end. Node cannot receive file
 * descriptors, so they are not supported.
 */
import type { Message } from '@particle/dbus-next';

export const SYSTEM_BUS = 'unix:path=/run/dbus/system_bus_socket';

/** The bus cannot be reached, or a call failed or was not answered in time. */
export class SystemBusError extends Error {
  override readonly name = 'SystemBusError';
}

export interface BusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  /** Types of the arguments in D-Bus notation; absent without arguments. */
  readonly signature?: string;
  readonly body?: readonly unknown[];
}

export interface BusSignal {
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly body: readonly unknown[];
}

export interface SystemBus {
  /** Values of the answer. Throws SystemBusError. */
  call(call: BusCall): Promise<readonly unknown[]>;
  /** Only broadcasts. A signal sent to us by name bypasses the match rules, and any process may send one. */
  onSignal(listener: (signal: BusSignal) => void): () => void;
  /** Aborted when the connection has closed. */
  readonly ended: AbortSignal;
  close(): void;
}

const SIGNAL = 4;

async function within<T>(timeoutMs: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SystemBusError(`${what}: no answer in ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export interface SystemBusOptions {
  /** Time limit of the connection, and of each call. Milliseconds. */
  readonly timeoutMs: number;
  /**
   * Longest time until a closed connection is noticed. The bus is pinged, because the library does not report an
   * orderly close. Milliseconds. Default: 5,000.
   */
  readonly pingIntervalMs?: number | undefined;
}

const PING_INTERVAL_MS = 5_000;

export async function connectSystemBus(
  address: string,
  { timeoutMs, pingIntervalMs = PING_INTERVAL_MS }: SystemBusOptions,
): Promise<SystemBus> {
  // Loaded on demand: an agent without graceful shutdown does not need the memory.
  const { default: dbus } = await import('@particle/dbus-next');
  const bus = dbus.sessionBus({ busAddress: address, authMethods: ['EXTERNAL'] });
  const over = new AbortController();
  let failure: unknown;
  const end = (cause?: unknown): void => {
    failure ??= cause;
    over.abort();
  };
  bus.on('error', end);
  const ended = new Promise<never>((_, reject) => {
    over.signal.addEventListener('abort', () =>
      reject(new SystemBusError(`the connection to ${address} ended`, { cause: failure })),
    );
  });
  // The promise is only awaited together with others.
  ended.catch(() => undefined);
  const close = (): void => {
    if (over.signal.aborted) return;
    over.abort();
    bus.disconnect();
  };
  try {
    const connected = new Promise<void>((resolve) => bus.on('connect', resolve));
    await within(timeoutMs, `connecting to ${address}`, Promise.race([connected, ended]));
  } catch (error) {
    close();
    throw error;
  }

  const ping = async (): Promise<void> => {
    const message = new dbus.Message({
      destination: 'org.freedesktop.DBus',
      path: '/org/freedesktop/DBus',
      interface: 'org.freedesktop.DBus.Peer',
      member: 'Ping',
    });
    try {
      await within(timeoutMs, 'Ping', bus.call(message));
    } catch (error) {
      end(error);
    }
  };
  const pinging = setInterval(() => void ping(), pingIntervalMs);
  pinging.unref();
  over.signal.addEventListener('abort', () => clearInterval(pinging));

  return {
    ended: over.signal,
    close,
    async call({ body, signature, ...target }) {
      const what = `${target.interface}.${target.member}`;
      if (over.signal.aborted)
        throw new SystemBusError(`${what}: the connection to ${address} ended`, { cause: failure });
      const message = new dbus.Message({ ...target, signature: signature ?? '', body: [...(body ?? [])] });
      try {
        const answer = await within(timeoutMs, what, Promise.race([bus.call(message), ended]));
        return answer?.body ?? [];
      } catch (error) {
        if (error instanceof SystemBusError) throw error;
        throw new SystemBusError(`${what}: ${error instanceof Error ? error.message : String(error)}`, {
          cause: error,
        });
      }
    },
    onSignal(listener) {
      const hear = (message: Message): void => {
        if (message.type === SIGNAL && !message.destination) listener(message);
      };
      bus.on('message', hear);
      return () => bus.off('message', hear);
    },
  };
}
