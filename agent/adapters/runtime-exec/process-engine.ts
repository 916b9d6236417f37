/** Containers as processes of this machine. */
import type { ChildProcess } from 'node:child_process';
import type { CommandResult, LogQuery, RunningCommand, StreamedCommand } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { resourcesOf, sameMemoryLimit } from '../../rules/pod-resize.ts';
import type { PodCgroups } from '../cgroup/pod-cgroups.ts';
import { commandResult } from './command-result.ts';
import { type CommandContext, ContainerCommands } from './container-commands.ts';
import type { ContainerEngine, EngineCallbacks, ExecuteOptions } from './container-engine.ts';
import { ContainerStart, startProcess } from './container-start.ts';
import { hasOwnMounts } from './isolation.ts';
import { openLog, recordOutputTime } from './log-file.ts';
import { type LogReading, readLog } from './log-reader.ts';
import type { PodProcesses } from './pod-processes.ts';
import type { ContainerRecord } from './pod-record.ts';
import { type SignalName, signal } from './process-table.ts';
import { marked, runningCommand, terminalWords } from './running-command.ts';
import { isSetUp } from './termination-message.ts';

/** The kubelet's exit code for an exit that was not observed. */
export const EXIT_UNKNOWN = 137;

/** Longest set-up of a process. Milliseconds. */
const SET_UP_MS = 10_000;
const SET_UP_POLL_MS = 20;
const NO_MEMORY_GROUP =
  'the memory limit of a running container cannot change without the controller memory of cgroup v2';
const NO_MOUNTS = 'the mounts of the container are not set up yet';

export interface ProcessEngineDependencies {
  readonly time: AgentTime;
  readonly cgroups?: PodCgroups | undefined;
}

export class ProcessEngine implements ContainerEngine {
  readonly #processes: PodProcesses;
  readonly #dependencies: ProcessEngineDependencies;
  readonly #callbacks: EngineCallbacks;
  readonly #commands: ContainerCommands;
  readonly #start: ContainerStart;
  /** By container: what its file was like at the last look. */
  readonly #seenOutput = new Map<string, string | undefined>();

  constructor(
    processes: PodProcesses,
    context: CommandContext,
    callbacks: EngineCallbacks,
    dependencies: ProcessEngineDependencies,
  ) {
    this.#processes = processes;
    this.#dependencies = dependencies;
    this.#callbacks = callbacks;
    this.#commands = new ContainerCommands(processes, context);
    this.#start = new ContainerStart(processes, { ...callbacks, time: dependencies.time, commands: this.#commands });
  }

  start(container: ContainerRecord): void {
    this.#start.start(container);
  }

  async execute(
    container: ContainerRecord,
    words: readonly string[],
    { mayWait, output }: ExecuteOptions,
  ): Promise<CommandResult> {
    const processes = this.#processes;
    if (container.hasMounts === true && !(await this.#seesItsMounts(container, mayWait))) {
      return { kind: 'failed', message: NO_MOUNTS };
    }
    let child: ChildProcess;
    try {
      const line = this.#commands.furtherLine(container, words);
      const target = output === 'log' ? openLog(processes.logOf(container)) : 'pipe';
      child = startProcess(processes, container, line, { output: target });
    } catch (cause) {
      return { kind: 'failed', message: (cause as Error).message };
    }
    const result = await commandResult(child, processes, mayWait);
    if (result.kind === 'timedOut' && child.pid !== undefined) signal(-child.pid, 'SIGKILL');
    return result;
  }

  async open(container: ContainerRecord, { command, stdin, tty }: StreamedCommand): Promise<RunningCommand> {
    const processes = this.#processes;
    if (container.hasMounts === true && !(await this.#seesItsMounts(container, () => true))) {
      throw new Error(NO_MOUNTS);
    }
    const { words, mark } = marked(tty ? terminalWords(command) : command);
    const line = this.#commands.furtherLine(container, words);
    const child = startProcess(processes, container, line, { input: stdin ? 'pipe' : 'ignore', output: 'pipe' });
    return runningCommand(child, { mark, tty });
  }

  /** Until its first process has its mounts, a further one would be outside of them: it would run in the machine's. */
  async #seesItsMounts(container: ContainerRecord, mayWait: () => boolean): Promise<boolean> {
    const processes = this.#processes;
    const messageFile = processes.terminationLogOf(container);
    const isRecent = (): boolean => (processes.elapsedMs(container.started) ?? SET_UP_MS) < SET_UP_MS;
    // Without this bound, containers of an agent that recorded no end of the set-up would never be entered.
    while (!isSetUp(messageFile) && isRecent() && mayWait() && container.state.kind === 'running') {
      await processes.pause(SET_UP_POLL_MS);
    }
    return container.process !== undefined && hasOwnMounts(container.process.pid);
  }

  signal(container: ContainerRecord, name: SignalName): void {
    this.#processes.signalGroup(container, name);
  }

  /** Processes of the previous agent are not our children. */
  check(container: ContainerRecord): void {
    const processes = this.#processes;
    const { state } = container;
    if (state.kind !== 'running') return;
    const child = processes.children.get(container);
    if (child !== undefined) {
      if (container.process === undefined && processes.learnIdentity(container, child)) processes.save();
      return;
    }
    if (processes.mayBeAlive(container)) return;
    this.#callbacks.onEnd(container, {
      kind: 'terminated',
      exitCode: EXIT_UNKNOWN,
      reason: 'ContainerStatusUnknown',
      message: 'The container terminated while no agent was its parent. Its exit code is unknown',
      startedAtMs: state.startedAtMs,
      finishedAtMs: this.#dependencies.time.nowMs(),
    });
  }

  /** A start is over when it returns. */
  async endStarts(): Promise<void> {}

  killAll(): Promise<void> {
    return this.#processes.killAll();
  }

  place({ name, restartCount }: ContainerRecord): void {
    this.#dependencies.cgroups?.place(this.#processes.pod, name, restartCount);
  }

  async resize(containers: readonly ContainerRecord[]): Promise<void> {
    const { cgroups } = this.#dependencies;
    const { pod } = this.#processes;
    const hasOtherLimit = ({ name, resources }: ContainerRecord): boolean =>
      !sameMemoryLimit(resources, resourcesOf(pod, name));
    // RLIMIT_DATA of a process is set before it starts.
    if (cgroups?.has('memory') !== true && containers.some(hasOtherLimit)) throw new Error(NO_MEMORY_GROUP);
    cgroups?.resize(
      pod,
      containers.map(({ name, restartCount }) => ({ name, run: restartCount })),
    );
  }

  recordOutputTime(container: ContainerRecord): void {
    const { name } = container;
    this.#seenOutput.set(name, recordOutputTime(this.#processes.logOf(container), this.#seenOutput.get(name)));
  }

  readLog(container: ContainerRecord, run: number, query: LogQuery, reading: LogReading): AsyncIterable<Uint8Array> {
    return readLog({ ...this.#processes.logOf(container), run }, query, reading);
  }
}
