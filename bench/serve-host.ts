/** `nodekeeper serve` in a process of its own, with a fresh data directory, for a benchmark. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readManifest } from '../scripts/release/manifest.ts';
import { buildProgram } from '../scripts/release/program.ts';
import { RELEASED_HUB_NODE_FLAGS } from '../shared/config/serve-flags.mjs';
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

export interface HubHost {
  readonly pid: number;
  readonly url: string;
  readonly ca: string;
  readonly readyMs: number;
  stop(): Promise<void>;
}

/** Starts it as `npm start` does, without its demonstration. */
export async function startServeHost(): Promise<ServeHost> {
  const { dataDirectory, greeting: _, ...started } = await startProgram([]);
  try {
    const kubeconfig = join(dataDirectory, 'kubeconfig');
    const access = readKubeconfig(kubeconfig);
    const { fleet } = JSON.parse(readFileSync(join(dataDirectory, 'tokens.json'), 'utf8')) as { fleet: string };
    return { ...started, access, fleet: { ...access, token: fleet }, kubeconfig };
  } catch (cause) {
    await started.stop();
    throw cause;
  }
}

/** A hub of that cluster, with this token: the program of a release, with its flags. It is ready when the copy is. */
export async function startHubHost({ url, ca = '' }: KubeAccess, token: string): Promise<HubHost> {
  const folder = mkdtempSync(join(tmpdir(), 'nk-bench-'));
  const fileOf = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const upstream = ['--upstream', url, '--upstream-token', fileOf('token', token)];
  const authority = ['--upstream-ca', fileOf('ca.pem', ca)];
  await buildProgram(join(folder, 'program'), readManifest());
  const program = [...RELEASED_HUB_NODE_FLAGS, join(folder, 'program/bin/start.mjs')];
  const { dataDirectory, greeting, ...started } = await startProgram([...upstream, ...authority], program);
  const stop = async (): Promise<void> => {
    await started.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const [hubUrl = ''] = /https:[^,\s]+/.exec(greeting) ?? [];
  return { ...started, url: hubUrl, ca: readFileSync(join(dataDirectory, 'ca.pem'), 'utf8'), stop };
}

interface StartedProgram extends Pick<ServeHost, 'pid' | 'readyMs' | 'stop'> {
  readonly dataDirectory: string;
  /** The first that it printed, when it served. */
  readonly greeting: string;
}

/** `program`: what Node.js runs, flags first. Absent: what `npm start` does. */
async function startProgram(options: readonly string[], program?: readonly string[]): Promise<StartedProgram> {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'nk-bench-'));
  const { variables, flags } = startScript('start');
  const words = program ?? [...flags, fileURLToPath(new URL('../server/bin/start.mjs', import.meta.url))];
  const startedMs = performance.now();
  const child = spawn(
    process.execPath,
    [...words, '--data', dataDirectory, '--port', '0', '--log-level', 'warn', ...options],
    { env: { ...process.env, ...variables }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
    rmSync(dataDirectory, { recursive: true, force: true });
  };
  const greeting = await new Promise<string | undefined>((resolve) => {
    const timer = setTimeout(() => resolve(undefined), START_MS_MAX);
    child.stdout.setEncoding('utf8').once('data', resolve);
    child.once('exit', () => resolve(undefined));
    void ended.then(() => clearTimeout(timer));
  });
  child.stdout.resume();
  if (greeting === undefined) {
    await stop();
    throw new Error('nodekeeper serve did not start');
  }
  return { pid: child.pid!, dataDirectory, greeting, readyMs: performance.now() - startedMs, stop };
}
