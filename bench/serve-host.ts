/** `nodekeeper serve` in a process of its own, with a fresh data directory, for a benchmark. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type KubeAccess, readKubeconfig } from '../test/support/kubeconfig.ts';
import { startScript } from './start-script.ts';

const START_MS_MAX = 60_000;

export interface ServeHost {
  readonly pid: number;
  /** Access of the administrator, and of simulated machines. */
  readonly access: KubeAccess;
  readonly fleet: KubeAccess;
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** From the start of the process until it was ready. Milliseconds. */
  readonly readyMs: number;
  stop(): Promise<void>;
}

/** Starts it as `npm start` does, without its demonstration. */
export async function startServeHost(): Promise<ServeHost> {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'nk-bench-'));
  const { variables, flags } = startScript('start');
  const program = fileURLToPath(new URL('../server/bin/start.mjs', import.meta.url));
  const startedMs = performance.now();
  const child = spawn(
    process.execPath,
    [...flags, program, '--data', dataDirectory, '--port', '0', '--log-level', 'warn'],
    { env: { ...process.env, ...variables }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
    rmSync(dataDirectory, { recursive: true, force: true });
  };
  const isReady = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), START_MS_MAX);
    // The greeting is the first that it prints, when it serves.
    child.stdout.once('data', () => resolve(true));
    child.once('exit', () => resolve(false));
    void ended.then(() => clearTimeout(timer));
  });
  const readyMs = performance.now() - startedMs;
  child.stdout.resume();
  try {
    if (!isReady) throw new Error('nodekeeper serve did not start');
    const kubeconfig = join(dataDirectory, 'kubeconfig');
    const access = readKubeconfig(kubeconfig);
    const { fleet } = JSON.parse(readFileSync(join(dataDirectory, 'tokens.json'), 'utf8')) as { fleet: string };
    return { pid: child.pid!, access, fleet: { ...access, token: fleet }, kubeconfig, readyMs, stop };
  } catch (cause) {
    await stop();
    throw cause;
  }
}
