/** `nodekeeper serve` over a directory of its own: another build is another process over the same database. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apiClientOf, readKubeconfig } from '../../test/support/kubeconfig.ts';
import { until } from '../../test/support/until.ts';
import type { Build, Home } from './home.ts';

const START_MS_MAX = 60_000;
const STOP_MS_MAX = 15_000;

export async function openServeHome(first: Build, policyFile?: string): Promise<Home> {
  const data = mkdtempSync(join(tmpdir(), 'nk-drill-'));
  const kubeconfig = join(data, 'kubeconfig');
  const removeData = (): void => rmSync(data, { recursive: true, force: true });
  let running: ChildProcess | undefined;
  /** With its own child, the cluster. */
  const kill = (): void => {
    if (running?.pid !== undefined && !hasEnded(running)) process.kill(-running.pid, 'SIGKILL');
  };
  const abandon = (): void => {
    kill();
    removeData();
  };
  process.once('exit', abandon);

  async function end(): Promise<void> {
    const child = running;
    if (child === undefined || hasEnded(child)) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const timer = setTimeout(kill, STOP_MS_MAX);
    await ended;
    clearTimeout(timer);
  }

  async function start({ name, command: [program, ...words] }: Build, port: number): Promise<void> {
    const options = ['--data', data, '--port', String(port), '--log-level', 'warn', '--quiet'];
    const policy = policyFile === undefined ? [] : ['--policy', policyFile];
    const child = spawn(program, [...words, 'serve', ...options, ...policy], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    running = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-4_000);
      });
    }
    const answers = async (): Promise<boolean> => {
      const client = apiClientOf(readKubeconfig(kubeconfig), { connectionsMax: 1, timeoutMs: START_MS_MAX });
      const answer = await client.send({ method: 'GET', path: '/readyz' });
      client.close();
      return answer.kind === 'answered' && answer.status === 200;
    };
    const started = await until(async () => (hasEnded(child) ? 'ended' : await answers()), {
      withinMs: START_MS_MAX,
      what: `an answer of ${name}`,
    }).catch((error: Error) => error.message);
    if (started !== true) throw new Error(`${name} does not serve (${started}):\n${output}`);
  }

  async function stop(): Promise<void> {
    await end();
    process.off('exit', abandon);
    removeData();
  }

  try {
    await start(first, 0);
    const access = readKubeconfig(kubeconfig);
    const { fleet } = JSON.parse(readFileSync(join(data, 'tokens.json'), 'utf8')) as { fleet: string };
    return {
      name: 'one machine',
      access,
      fleetAccess: { ...access, token: fleet },
      async change(build) {
        await end();
        await start(build, Number(new URL(access.url).port));
      },
      stop,
    };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null;
