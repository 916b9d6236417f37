import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../shared/host/loopback.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { createEngineClient, type EngineClient, EngineError } from './client.ts';

/**
 * The DynamoDB engine of the local mode: a binary that comes as a package for this platform, or one that runs already
 * (DYNAMODB_ENDPOINT).
 *
 * The binary must not outlive us, whatever ends us: it is started through a shell that holds one end of a pipe to this
 * process and stops the engine when the pipe closes. The shell then becomes the engine, so its process id is the
 * engine's. It runs in a session of its own: Ctrl-C reaches us alone, and the engine stops last.
 */
export interface Engine {
  readonly client: EngineClient;
  readonly endpoint: string;
  /** Undefined for an engine that somebody else started. */
  readonly pid: number | undefined;
  /** Settles with a reason when the engine ends unexpectedly. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
  /** At once, without letting it finish. */
  kill(): void;
}

const START_ATTEMPTS_MAX = 3;
const ANSWER_TIMEOUT_MS = 10_000;
const ANSWER_POLL_MS = 25;
const STOP_TIMEOUT_MS = 3_000;
const OUTPUT_KEPT_CHARACTERS = 2_000;

const EXEC_WITH_PARENT = '(read -r _ <&3; kill -TERM $$ 2>/dev/null) & exec "$@" 3<&-';

/** Where the engine's binary is installed. @throws StartError naming what to do when it is not. */
export function engineBinary(projectDirectory: string): string {
  const packageName = `@dynoxide/${process.platform}-${process.arch}`;
  const require = createRequire(join(projectDirectory, 'package.json'));
  let folder: string;
  try {
    folder = dirname(require.resolve(`${packageName}/package.json`));
  } catch (cause) {
    throw new StartError(
      `the DynamoDB engine ${packageName} is not installed: run npm install, or where there is none for this platform, ` +
        'start DynamoDB Local and set DYNAMODB_ENDPOINT to it (docs/local-mode.md)',
      { cause },
    );
  }
  const binary = join(folder, 'dynoxide');
  if (!existsSync(binary))
    throw new StartError(`${binary} is missing: delete node_modules/${packageName} and run npm install`);
  return binary;
}

/** Uses an engine that runs already. @throws StartError when it does not answer. */
export async function connectEngine(endpoint: string): Promise<Engine> {
  const client = createEngineClient(endpoint);
  try {
    await answered(client, undefined);
  } catch (cause) {
    client.close();
    throw new StartError(`no DynamoDB answers at ${endpoint}: start it, or unset DYNAMODB_ENDPOINT`, { cause });
  }
  const ended = new Promise<string>(() => {});
  return { client, endpoint, pid: undefined, ended, stop: async () => client.close(), kill: () => client.close() };
}

/** @param databaseFile SQLite file; undefined keeps everything in memory. */
export async function startEngine(binary: string, databaseFile: string | undefined): Promise<Engine> {
  try {
    chmodSync(binary, 0o755);
  } catch {
    // Installed by another user; whether it can be run shows next.
  }
  let reason = '';
  for (let attempt = 0; attempt < START_ATTEMPTS_MAX; attempt += 1) {
    const outcome = await tryStart(binary, databaseFile);
    if (typeof outcome !== 'string') return outcome;
    reason = outcome;
  }
  throw new StartError(`the DynamoDB engine ${binary} does not start: ${reason}`);
}

async function tryStart(binary: string, databaseFile: string | undefined): Promise<Engine | string> {
  const port = await freePort();
  const args = ['serve', '--host', '127.0.0.1', '--port', String(port)];
  if (databaseFile !== undefined) args.push('--db-path', databaseFile);
  const child = spawn('/bin/sh', ['-c', EXEC_WITH_PARENT, 'sh', binary, ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-OUTPUT_KEPT_CHARACTERS);
    });
  }
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(`ended with ${signal ?? `code ${code}`}: ${lastLine(output)}`));
  });
  const endpoint = `http://127.0.0.1:${port}`;
  const client = createEngineClient(endpoint);
  try {
    await answered(client, exited);
  } catch (error) {
    client.close();
    await end(child, exited);
    return error instanceof Error ? error.message : String(error);
  }

  let wanted = true;
  const ended = new Promise<string>((resolve) => {
    void exited.then((reason) => {
      if (wanted) resolve(`the DynamoDB engine ${reason}`);
    });
  });
  return {
    client,
    endpoint,
    pid: child.pid,
    ended,
    async stop() {
      wanted = false;
      client.close();
      await end(child, exited);
    },
    kill() {
      wanted = false;
      client.close();
      child.kill('SIGKILL');
    },
  };
}

/** TERM, then KILL after a bound. */
async function end(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(timer);
  child.stdio[3]?.destroy();
}

/** Waits until the engine answers, for a bounded time. */
async function answered(client: EngineClient, exited: Promise<string> | undefined): Promise<void> {
  let gone: string | undefined;
  void exited?.then((reason) => {
    gone = reason;
  });
  const untilMs = performance.now() + ANSWER_TIMEOUT_MS;
  for (;;) {
    try {
      await client.call('DynamoDB_20120810.ListTables', { Limit: 1 });
      return;
    } catch (error) {
      if (gone !== undefined) throw new Error(gone, { cause: error });
      const refused = error instanceof EngineError && error.code === 'Unreachable';
      if (!refused || performance.now() > untilMs || exited === undefined) throw error;
    }
    await delay(ANSWER_POLL_MS);
  }
}

function lastLine(output: string): string {
  return output.trim().split('\n').at(-1) ?? '';
}
