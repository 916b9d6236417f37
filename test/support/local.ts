/**
 * A separate cluster on this machine for a test, `nodekeeper serve` or the emulation of AWS: a child process with a
 * free port and its own data directory. It can be killed like a real one, and no files remain.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import type { ApiClient } from '../../demo/fleet/api-client.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { apiClientOf, type KubeAccess, readKubeconfig } from './kubeconfig.ts';
import { until } from './until.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export interface LocalForTestOptions {
  /** `aws`: the emulation, for what only a deployment has. Absent: `nodekeeper serve`. */
  readonly home?: 'aws' | 'serve';
  /** Simulated machines. */
  readonly nodes: number;
  /** The console is served if true. */
  readonly console?: boolean;
  /** Ticks run, and changes are worked on, unless false. */
  readonly controllers?: boolean;
  readonly policy?: Partial<Policy>;
  /** Data of an earlier run to go on with; a fresh directory is made, and removed by stop(), when absent. */
  readonly dataDir?: string;
  /** Zones of the machines; what `npm start` uses when absent. */
  readonly zones?: number;
  /** How many machines are instances of the local EC2; what `npm start` makes them when absent. */
  readonly ec2Nodes?: number;
  /** Where to write which calls the functions made to AWS, when stopped. Of the emulation only. */
  readonly recordCallsFile?: string;
  /** Port of the API; any free one when absent. For a restart that clients are to find again. */
  readonly port?: number;
}

export interface LocalForTest {
  /** Path of the kubeconfig it wrote. */
  readonly kubeconfig: string;
  readonly access: KubeAccess;
  readonly dataDir: string;
  readonly pid: number;
  /** What it printed so far. */
  output(): string;
  /** A client for requests that kubectl would be too slow for. Closed by stop() and kill(). */
  readonly client: ApiClient;
  /** Body of a GET that must succeed. For looks that are repeated: they would start hundreds of kubectl. */
  read(path: string): Promise<unknown>;
  /** Runs `npx nodekeeper demo fleet …` against it. */
  fleet(...args: readonly string[]): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  /** Requests its exit and waits; removes the data directory unless the caller passed it. */
  stop(): Promise<void>;
  /** kill -9, and waits until it has exited. The data stays. */
  kill(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 15_000;

export async function startLocalForTest(options: LocalForTestOptions): Promise<LocalForTest> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'nk-'));
  const kubeconfig = join(dataDir, 'kubeconfig');
  const args = ['--data', dataDir, '--port', String(options.port ?? 0), '--nodes', String(options.nodes)];
  if (options.console !== true) args.push('--no-console');
  if (options.policy !== undefined) args.push('--policy', writePolicy(options.policy));
  if (options.controllers === false) args.push('--no-controllers');
  if (options.zones !== undefined) args.push('--zones', String(options.zones));
  if (options.ec2Nodes !== undefined) args.push('--ec2-nodes', String(options.ec2Nodes));
  if (options.recordCallsFile !== undefined) args.push('--record-calls', options.recordCallsFile);
  const program =
    options.home === 'aws'
      ? ['aws-local/bin/start.ts']
      : ['cli/bin/nodekeeper.ts', 'serve', '--demo', '--log-level', 'warn'];
  const child = spawn(process.execPath, [...program, ...args], {
    cwd: ROOT,
    env: {
      ...process.env,
      PATH: `${join(ROOT, 'node_modules', '.bin')}:${process.env['PATH'] ?? ''}`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const removeData = (): void => {
    if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
  };

  let access: KubeAccess;
  let client: ApiClient | undefined;
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  try {
    const started = await until(
      async () => {
        if (hasEnded()) return 'ended';
        const read = readKubeconfig(kubeconfig);
        client?.close();
        client = apiClientOf(read, { connectionsMax: 16, timeoutMs: 30_000 });
        const answer = await client.send({ method: 'GET', path: '/api/v1/nodes?limit=1' });
        return answer.kind === 'answered' && answer.status === 200 ? read : undefined;
      },
      { withinMs: START_TIMEOUT_MS, what: 'a cluster that answers' },
    );
    if (started === 'ended') throw new Error(`the cluster ended with ${child.exitCode ?? child.signalCode}`);
    access = started;
  } catch (cause) {
    client?.close();
    await endProcess(child, ended, 'SIGKILL');
    removeData();
    throw new Error(`the cluster did not start:\n${output}`, { cause });
  }

  return {
    kubeconfig,
    access,
    dataDir,
    pid: child.pid!,
    output: () => output,
    client: client!,
    async read(path) {
      const answer = await client!.send({ method: 'GET', path });
      if (answer.kind !== 'answered' || answer.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer)}`);
      return answer.body;
    },
    fleet: (...fleetArgs) =>
      new Promise((resolve) => {
        const program = join(ROOT, 'demo', 'bin', 'fleet.ts');
        execFile(process.execPath, [program, '--data', dataDir, ...fleetArgs], { cwd: ROOT }, (error, stdout, stderr) =>
          resolve({ exitCode: error === null ? 0 : Number(error.code ?? 1), stdout, stderr }),
        );
      }),
    async stop() {
      client?.close();
      await endProcess(child, ended, 'SIGTERM');
      removeData();
    },
    async kill() {
      client?.close();
      await endProcess(child, ended, 'SIGKILL');
    },
  };
}

/**
 * In a file named after its content: the synthesised template is cached by that name, and only the first start waits.
 */
export function writePolicy(policy: Partial<Policy>): string {
  const text = stringify(policy);
  // Not below .nodekeeper: npm start refuses a data directory with files that are not its own.
  const dir = join(ROOT, 'node_modules', '.cache', 'nodekeeper', 'test-policy');
  const file = join(dir, `${createHash('sha256').update(text).digest('hex').slice(0, 12)}.yaml`);
  mkdirSync(dir, { recursive: true });
  writeFileSync(file, text);
  return file;
}

async function endProcess(child: ChildProcess, ended: Promise<void>, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(timer);
}
