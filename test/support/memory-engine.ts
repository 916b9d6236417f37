/** A runtime with records on disk. Its containers and processes are in memory. */
import type { PodCgroups } from '../../agent/adapters/cgroup/pod-cgroups.ts';
import type { CommandContext } from '../../agent/adapters/runtime-exec/container-commands.ts';
import type {
  ContainerEngine,
  EngineCallbacks,
  Terminated,
} from '../../agent/adapters/runtime-exec/container-engine.ts';
import type { LogReading } from '../../agent/adapters/runtime-exec/log-reader.ts';
import type { PodProcesses } from '../../agent/adapters/runtime-exec/pod-processes.ts';
import type { ContainerRecord } from '../../agent/adapters/runtime-exec/pod-record.ts';
import type { MarkedProcess, ProcessTable } from '../../agent/adapters/runtime-exec/process-table.ts';
import { type RecordedRuntime, recordedRuntime } from '../../agent/adapters/runtime-exec/recorded-runtime.ts';
import type { AgentTime } from '../../agent/ports/time.ts';

export class MemoryEngine {
  readonly #rootDirectory: string;
  readonly #time: AgentTime;
  /** What the engines and the table of processes were asked for. */
  readonly acts: string[] = [];
  readonly logged: string[] = [];
  marked: readonly MarkedProcess[] = [];
  bootId = 'boot-1';
  /** The calls that throw now, with the code. */
  readonly faults = new Map<string, string>();
  /** By container: what a start of it reports in place of a running container. */
  readonly starts = new Map<string, (container: ContainerRecord, callbacks: EngineCallbacks) => void>();
  /** By container: the signals that do not end it. */
  readonly ignored = new Map<string, readonly string[]>();
  context: CommandContext | undefined;
  /** Of the last command. */
  mayWait: (() => boolean) | undefined;
  /** Of the last log. */
  reading: LogReading | undefined;
  readonly #running = new Map<string, (state: Terminated) => void>();

  constructor(rootDirectory: string, time: AgentTime) {
    this.#rootDirectory = rootDirectory;
    this.#time = time;
  }

  open(more: { readonly cgroups?: PodCgroups } = {}): RecordedRuntime {
    const noted = (level: string) => (message: string) => void this.logged.push(`${level} ${message}`);
    return recordedRuntime({
      rootDirectory: this.#rootDirectory,
      time: this.#time,
      log: { debug() {}, info: noted('info'), warn: noted('warn'), error: noted('error') },
      hostIp: () => '192.0.2.7',
      openEngine: (processes, context, callbacks) => {
        this.context = context;
        return this.#engineOf(processes, callbacks);
      },
      processTable: this.#table(),
      ...more,
    });
  }

  taken(): readonly string[] {
    return this.acts.splice(0);
  }

  /** A container exits. */
  exit(container: string, exitCode = 0): void {
    const nowMs = this.#time.nowMs();
    this.#running.get(container)?.({
      kind: 'terminated',
      exitCode,
      reason: exitCode === 0 ? 'Completed' : 'Error',
      startedAtMs: nowMs,
      finishedAtMs: nowMs,
    });
  }

  #failing(what: string): void {
    const code = this.faults.get(what);
    if (code !== undefined) throw Object.assign(new Error(`${code}: made to fail, read '/proc'`), { code });
  }

  #table(): ProcessTable {
    return {
      bootId: () => this.bootId,
      marked: () => {
        this.#failing('marked');
        return [...this.marked];
      },
      identify: () => undefined,
      isAlive: () => true,
      signal: (pid, name) => {
        this.acts.push(`${name} ${pid}`);
        this.marked = this.marked.filter((each) => each.pid !== pid);
        return undefined;
      },
      residentBytes: () => 0,
    };
  }

  #engineOf(processes: PodProcesses, callbacks: EngineCallbacks): ContainerEngine {
    const act = (what: string): void => void this.acts.push(what);
    return {
      start: (container) => {
        act(`start ${container.name}`);
        const instead = this.starts.get(container.name);
        if (instead !== undefined) {
          instead(container, callbacks);
          return;
        }
        processes.limited(container);
        if (container.containerId !== undefined) container.restartCount += 1;
        container.state = { kind: 'running', startedAtMs: this.#time.nowMs() };
        container.containerId = `test://${container.name}/${container.restartCount}`;
        container.started = processes.momentIn(0);
        container.process = { pid: 12, startTicks: '1', bootId: this.bootId };
        this.#running.set(container.name, (state) => callbacks.onEnd(container, state));
        processes.changed();
        callbacks.onStart(container);
      },
      execute: async (container, words, { mayWait }) => {
        this.mayWait = mayWait;
        act(`execute ${container.name} ${words.join(' ')}`);
        return { kind: 'exited', exitCode: Number(words.at(-1)) || 0, output: '' };
      },
      open: () => Promise.reject(new Error('opened')),
      signal: (container, name) => {
        act(`${name} ${container.name}`);
        if (!(this.ignored.get(container.name) ?? []).includes(name)) this.exit(container.name);
      },
      check: (container) => {
        act(`check ${container.name}`);
        this.#failing(`check ${container.name}`);
      },
      resize: async (containers) => {
        act(`resize ${containers.map(({ name }) => name).join(' ')}`);
        this.#failing('resize');
      },
      endStarts: async () => act('end starts'),
      killAll: async () => act('kill all'),
      place: (container) => act(`place ${container.name}`),
      recordOutputTime: (container) => act(`times ${container.name}`),
      readLog: (container, run, _query, reading) => {
        this.reading = reading;
        return logOf(container, run);
      },
    };
  }
}

async function* logOf({ name }: ContainerRecord, run: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${name} ${run}`);
}
