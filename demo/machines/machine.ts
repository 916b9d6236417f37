/** A machine of the demonstration that is real: an agent on this machine, behind a link that can be cut. */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RECORD_FILE } from '../../agent/adapters/runtime-exec/pod-record.ts';
import { linuxProcesses } from '../../agent/adapters/runtime-exec/process-table.ts';
import { systemTime } from '../../agent/adapters/system/time.ts';
import { waitAtMost } from '../../agent/app/bounded-wait.ts';
import { type Link, startLink } from './link.ts';

/** A file system in memory. */
const MEMORY = '/dev/shm';
const AGENT = fileURLToPath(new URL('../../agent/bin/nodekeeper-agent.ts', import.meta.url));
/** After SIGTERM, before SIGKILL. Milliseconds. */
const STOP_MS = 5_000;

export interface MachineOptions {
  readonly name: string;
  /** Of its state and its log. */
  readonly directory: string;
  readonly cluster: { readonly url: string; readonly authorityHash: string | undefined };
  /** Absent: it has joined before. */
  readonly bootstrapToken?: string;
}

export interface ListedMachine {
  readonly name: string;
  readonly link: 'up' | 'cut';
  /** Its agent runs, or why not. */
  readonly agent: string;
  readonly directory: string;
}

export class Machine {
  readonly #options: MachineOptions;
  readonly #link: Link;
  /** What the machine has in memory. A power cut empties it. */
  readonly #memory = mkdtempSync(join(MEMORY, 'nodekeeper-machine-'));
  #agent: ChildProcess | undefined;

  private constructor(options: MachineOptions, link: Link) {
    this.#options = options;
    this.#link = link;
  }

  /** @throws Error when the directory cannot be written, or no port can be opened */
  static async start(options: MachineOptions): Promise<Machine> {
    const { hostname, port } = new URL(options.cluster.url);
    const machine = new Machine(options, await startLink({ host: hostname, port: Number(port) }));
    try {
      machine.#powerOn();
    } catch (cause) {
      await machine.stop();
      throw cause;
    }
    return machine;
  }

  cutLink(): void {
    this.#link.cut();
  }

  restoreLink(): void {
    this.#link.restore();
  }

  /** Ends the agent and its pods at once, and starts the agent again, as after another boot. */
  async powerCycle(): Promise<void> {
    await this.#powerOff();
    for (const name of readdirSync(this.#memory)) rmSync(join(this.#memory, name), { recursive: true });
    // A container that stopped with its machine has not crashed: its next start waits for no back-off.
    const bootId = linuxProcesses.bootId();
    for (const uid of this.#podUids()) {
      const record = join(this.#podsDirectory, uid, RECORD_FILE);
      // The agent may have been interrupted while it created the pod.
      if (!existsSync(record)) continue;
      writeFileSync(record, readFileSync(record, 'utf8').replaceAll(bootId, 'earlier'));
    }
    this.#powerOn();
  }

  listed(): ListedMachine {
    const { name, directory } = this.#options;
    const { exitCode = null, signalCode = null } = this.#agent ?? {};
    const isRunning = exitCode === null && signalCode === null;
    const agent = isRunning ? 'running' : `stopped (${signalCode ?? exitCode})`;
    return { name, link: this.#link.isCut ? 'cut' : 'up', agent, directory };
  }

  /** Nothing of it runs any more. */
  async stop(): Promise<void> {
    const agent = this.#agent;
    if (agent !== undefined && isAlive(agent)) {
      agent.kill('SIGTERM');
      await waitAtMost(systemTime, STOP_MS, exitOf(agent));
    }
    await this.#powerOff();
    await this.#link.close();
    rmSync(this.#memory, { recursive: true });
  }

  get #podsDirectory(): string {
    return join(this.#options.directory, 'state', 'pods');
  }

  #powerOn(): void {
    const { name, directory, cluster, bootstrapToken } = this.#options;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const log = openSync(join(directory, 'agent.log'), 'a', 0o600);
    try {
      this.#agent = spawn(
        process.execPath,
        [
          AGENT,
          ...['--endpoint', `https://127.0.0.1:${this.#link.port}`, '--hostname-override', name],
          ...['--runtime', 'exec', '--root-dir', join(directory, 'state'), '--fail-swap-on=false'],
          ...['--healthz-port', '0'],
          ...(cluster.authorityHash === undefined ? [] : ['--ca-hash', cluster.authorityHash]),
          ...(bootstrapToken === undefined ? [] : ['--bootstrap-token', bootstrapToken]),
        ],
        { stdio: ['ignore', log, log], env: { ...process.env, RUNTIME_DIRECTORY: this.#memory } },
      );
    } finally {
      closeSync(log);
    }
  }

  async #powerOff(): Promise<void> {
    const agent = this.#agent;
    if (agent !== undefined && isAlive(agent)) {
      const exit = exitOf(agent);
      agent.kill('SIGKILL');
      await exit;
    }
    const pods = new Set(this.#podUids());
    for (const { pid, mark } of linuxProcesses.marked()) {
      if (pods.has(mark.split('/', 1)[0] ?? '')) linuxProcesses.signal(pid, 'SIGKILL');
    }
  }

  #podUids(): readonly string[] {
    try {
      return readdirSync(this.#podsDirectory);
    } catch (cause) {
      if (['ENOENT', 'ENOTDIR'].includes((cause as NodeJS.ErrnoException).code ?? '')) return [];
      throw cause;
    }
  }
}

const isAlive = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null;

const exitOf = (child: ChildProcess): Promise<unknown> => new Promise((resolve) => child.once('exit', resolve));
