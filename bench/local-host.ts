/**
 * A process that runs one local mode for a benchmark. It is forked to separate its CPU time, and reports its counters
 * over the channel to its parent. Options are JSON in the first argument.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type LocalCounters, type LocalOptions, startLocal } from '../aws-local/runtime.ts';
import { readKubeconfig } from '../test/support/kubeconfig.ts';
import { UsageError } from './benchmark.ts';
import { startScript } from './start-script.ts';

export interface LocalHost {
  readonly pid: number;
  readonly url: string;
  readonly ca: string;
  readonly token: string;
  /** That of simulated machines. */
  readonly fleetToken: string;
  counters(): Promise<LocalCounters>;
  /** Stops every execution environment at once. */
  endEnvironments(): Promise<void>;
  /** Deploys another assembly (aws-local/runtime.ts). */
  deploy(assemblyDirectory: string, pauseMs: number): Promise<void>;
  stop(): Promise<void>;
  /** kill -9, and waits until the process has exited. */
  kill(): Promise<void>;
}

/** Access to a running cluster; `stop` ends one that the benchmark has started. */
export type RunningCluster = Pick<LocalHost, 'url' | 'ca' | 'token' | 'stop'>;

/** The cluster of a kubeconfig, or a local mode of its own. @throws UsageError without a certificate authority */
export async function clusterOf(kubeconfig: string | undefined, options: HostedOptions): Promise<RunningCluster> {
  if (kubeconfig === undefined) return startLocalHost(options);
  const { url, ca, token } = readKubeconfig(kubeconfig);
  if (ca === undefined) throw new UsageError(`${kubeconfig} names no certificate authority`);
  return { url, ca, token, stop: () => Promise.resolve() };
}

type Word =
  | { readonly kind: 'counters' }
  | { readonly kind: 'endEnvironments' }
  | { readonly kind: 'deploy'; readonly assemblyDirectory: string; readonly pauseMs: number };

type Message =
  | {
      readonly kind: 'started';
      readonly url: string;
      readonly ca: string;
      readonly token: string;
      readonly fleetToken: string;
    }
  | { readonly kind: 'failed'; readonly why: string }
  | { readonly kind: 'counters'; readonly counters: LocalCounters }
  | { readonly kind: 'ended' }
  | { readonly kind: 'deployed' };

/** What may be asked for across a process boundary. */
export type HostedOptions = Pick<
  LocalOptions,
  'assemblyDirectory' | 'awsLimits' | 'controllers' | 'dataDirectory' | 'dynamodbEndpoint' | 'policyFile' | 'port'
>;

export async function startLocalHost(options: HostedOptions): Promise<LocalHost> {
  const start = startScript('start:aws');
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(options)], {
    execArgv: [...process.execArgv, ...start.flags],
    env: { ...process.env, ...start.variables },
  });
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
  const ask = async <Kind extends Message['kind']>(
    word: Word,
    kind: Kind,
  ): Promise<Extract<Message, { kind: Kind }>> => {
    const answer = next();
    child.send(word);
    const message = await answer;
    if (message.kind === 'failed') throw new Error(message.why);
    if (message.kind !== kind) throw new Error(`${message.kind} where ${kind} was asked for`);
    return message as Extract<Message, { kind: Kind }>;
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
    counters: async () => (await ask({ kind: 'counters' }, 'counters')).counters,
    endEnvironments: async () => {
      await ask({ kind: 'endEnvironments' }, 'ended');
    },
    deploy: async (assemblyDirectory, pauseMs) => {
      await ask({ kind: 'deploy', assemblyDirectory, pauseMs }, 'deployed');
    },
    stop,
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function host(options: HostedOptions): Promise<void> {
  const send = (message: Message): unknown => process.send?.(message);
  let system: Awaited<ReturnType<typeof startLocal>>;
  try {
    // Benchmarks measure our own CPU time and units. The emulated limits of AWS would add theirs.
    system = await startLocal({ awsLimits: false, ...options });
  } catch (cause) {
    send({ kind: 'failed', why: String((cause as Error).stack) });
    process.disconnect?.();
    return;
  }
  const answerTo = async (word: Word): Promise<Message> => {
    switch (word.kind) {
      case 'counters':
        return { kind: 'counters', counters: await system.counters() };
      case 'endEnvironments':
        await system.endEnvironments();
        return { kind: 'ended' };
      case 'deploy':
        try {
          await system.deploy(word.assemblyDirectory, word.pauseMs);
        } catch (cause) {
          return { kind: 'failed', why: String((cause as Error).stack) };
        }
        return { kind: 'deployed' };
    }
  };
  process.on('message', async (word) => send(await answerTo(word as Word)));
  process.on('disconnect', async () => {
    await system.stop();
    process.exit(0);
  });
  send({ kind: 'started', url: system.url, ca: system.caPem, token: system.adminToken, fleetToken: system.fleetToken });
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  await host(JSON.parse(process.argv[2] ?? '{}') as HostedOptions);
}
