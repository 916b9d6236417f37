/**
 * A process that holds one local mode for a benchmark: forked, so that its CPU is its own, and asked for its counters
 * over the channel to its parent. Options come as JSON in the first argument.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type LocalCounters, type LocalOptions, startLocal } from '../local/runtime.ts';

export interface LocalHost {
  readonly pid: number;
  readonly url: string;
  readonly ca: string;
  readonly token: string;
  /** That of simulated machines. */
  readonly fleetToken: string;
  counters(): Promise<LocalCounters>;
  stop(): Promise<void>;
}

type Message =
  | {
      readonly kind: 'started';
      readonly url: string;
      readonly ca: string;
      readonly token: string;
      readonly fleetToken: string;
    }
  | { readonly kind: 'failed'; readonly why: string }
  | { readonly kind: 'counters'; readonly counters: LocalCounters };

/** What may be asked for across a process boundary. */
export type HostedOptions = Pick<LocalOptions, 'controllers' | 'dataDirectory' | 'dynamodbEndpoint' | 'policyFile'>;

export async function startLocalHost(options: HostedOptions): Promise<LocalHost> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(options)]);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const next = (): Promise<Message> =>
    new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error('local mode ended'));
      child.once('exit', onExit);
      child.once('message', (message) => {
        child.removeListener('exit', onExit);
        resolve(message as Message);
      });
    });
  const stop = async (): Promise<void> => {
    if (child.connected) child.disconnect();
    await exited;
  };
  const started = await next();
  if (started.kind !== 'started') {
    await stop();
    throw new Error(`local mode did not start: ${started.kind === 'failed' ? started.why : started.kind}`);
  }
  return {
    pid: child.pid!,
    url: started.url,
    ca: started.ca,
    token: started.token,
    fleetToken: started.fleetToken,
    async counters() {
      const answer = next();
      child.send('counters');
      const message = await answer;
      if (message.kind !== 'counters') throw new Error(`${message.kind} where counters were asked for`);
      return message.counters;
    },
    stop,
  };
}

async function host(options: HostedOptions): Promise<void> {
  const send = (message: Message): unknown => process.send?.(message);
  let system: Awaited<ReturnType<typeof startLocal>>;
  try {
    system = await startLocal(options);
  } catch (cause) {
    send({ kind: 'failed', why: String((cause as Error).stack) });
    process.disconnect?.();
    return;
  }
  process.on('message', async () => send({ kind: 'counters', counters: await system.counters() }));
  process.on('disconnect', async () => {
    await system.stop();
    process.exit(0);
  });
  send({ kind: 'started', url: system.url, ca: system.caPem, token: system.adminToken, fleetToken: system.fleetToken });
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  await host(JSON.parse(process.argv[2] ?? '{}') as HostedOptions);
}
