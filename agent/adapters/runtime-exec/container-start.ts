/** Starts the process of a container, and reports its exit. */
import type { ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { defined } from '../../../shared/defined.ts';
import { CgroupError } from '../../ports/cgroup-tree.ts';
import type { AgentTime } from '../../ports/time.ts';
import type { CommandLine } from './command-line.ts';
import type { ContainerCommands } from './container-commands.ts';
import type { EngineCallbacks, Terminated } from './container-engine.ts';
import { EXIT_NOT_SET_UP } from './isolation.ts';
import { launch } from './launch.ts';
import { logTail, openLog, removeOlderRuns } from './log-file.ts';
import type { PodProcesses } from './pod-processes.ts';
import type { ContainerRecord } from './pod-record.ts';
import { isShortage, MARK } from './process-table.ts';
import { openSetUpMessage, prepareMessageFiles, setUpMessage, terminationMessage } from './termination-message.ts';

/** Exit codes of shells and container runtimes for programs that could not be started. */
const EXIT_NOT_FOUND = 127;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_STARTED = 128;

export interface ProcessStreams {
  readonly input?: 'ignore' | 'pipe';
  readonly output: number | 'pipe';
  /** Descriptor for the reason if the process cannot be set up. */
  readonly message?: number | undefined;
}

/**
 * Starts a process in its own session and in the group of its container, with `output` as stdout and stderr. Closes the
 * descriptors.
 *
 * @throws Error of spawn, CgroupError
 */
export function startProcess(
  processes: PodProcesses,
  container: ContainerRecord,
  line: CommandLine,
  { input = 'ignore', output, message }: ProcessStreams,
): ChildProcess {
  try {
    return launch({
      file: line.file,
      args: line.args,
      env: { ...line.env, [MARK]: processes.markOf(container) },
      options: { detached: true, ...defined({ cwd: line.directory, uid: line.userId, gid: line.groupId }) },
      input,
      output,
      message,
      ...processes.limitsOf(container),
    });
  } finally {
    for (const descriptor of [output, message]) if (typeof descriptor === 'number') closeSync(descriptor);
  }
}

export interface ContainerStartDependencies extends EngineCallbacks {
  readonly time: AgentTime;
  readonly commands: ContainerCommands;
}

export class ContainerStart {
  readonly #processes: PodProcesses;
  readonly #dependencies: ContainerStartDependencies;

  constructor(processes: PodProcesses, dependencies: ContainerStartDependencies) {
    this.#processes = processes;
    this.#dependencies = dependencies;
  }

  start(container: ContainerRecord): void {
    const processes = this.#processes;
    const messageFile = processes.terminationLogOf(container);
    const start = this.#dependencies.commands.startLine(container, messageFile);
    if (start.kind === 'notReady') {
      this.#dependencies.onConfigFault(container, start);
      return;
    }
    const { line, hasMounts } = start.isolated;
    const revert = this.#countStart(container);
    const startedAtMs = this.#dependencies.time.nowMs();
    const failed = (cause: NodeJS.ErrnoException): void => this.#failed(container, cause, startedAtMs, revert);
    let output: number;
    let message: number | undefined;
    try {
      const name = processes.logOf(container);
      // One run before the current one is kept, as by the kubelet.
      removeOlderRuns({ ...name, run: name.run - 1 });
      prepareMessageFiles(messageFile);
      message = hasMounts ? openSetUpMessage(messageFile) : undefined;
      output = openLog(name);
    } catch (cause) {
      if (message !== undefined) closeSync(message);
      revert();
      this.#dependencies.onShortage(container, cause as Error);
      return;
    }
    container.hasMounts = hasMounts;
    let child: ChildProcess;
    try {
      child = startProcess(processes, container, line, { output, message });
    } catch (cause) {
      // Deferred, because otherwise the caller of `start` would be re-entered.
      queueMicrotask(() => processes.guarded(() => failed(cause as NodeJS.ErrnoException)));
      return;
    }
    child.once('error', (cause) => {
      if (child.pid === undefined) processes.guarded(() => failed(cause));
    });
    if (child.pid !== undefined) this.#follow(container, child, startedAtMs);
  }

  /** Counts a start and sets its containerId. Returns a function that restores the previous values. */
  #countStart(container: ContainerRecord): () => void {
    const { restartCount, containerId } = container;
    if (containerId !== undefined) container.restartCount += 1;
    container.containerId = `exec://${this.#processes.uid}/${container.name}/${container.restartCount}`;
    container.started = this.#processes.momentIn(0);
    return () => {
      container.restartCount = restartCount;
      if (containerId === undefined) delete container.containerId;
      else container.containerId = containerId;
    };
  }

  #failed(container: ContainerRecord, cause: NodeJS.ErrnoException, startedAtMs: number, revert: () => void): void {
    if (this.#processes.isDetached) return;
    if ((isShortage(cause) || cause instanceof CgroupError) && !this.#processes.record.stopped) {
      revert();
      this.#dependencies.onShortage(container, cause);
      return;
    }
    this.#dependencies.onEnd(container, {
      kind: 'terminated',
      exitCode:
        cause.code === 'ENOENT' ? EXIT_NOT_FOUND : cause.code === 'EACCES' ? EXIT_NOT_EXECUTABLE : EXIT_NOT_STARTED,
      reason: 'ContainerCannotRun',
      message: cause.message,
      startedAtMs,
      finishedAtMs: this.#dependencies.time.nowMs(),
    });
  }

  #follow(container: ContainerRecord, child: ChildProcess, startedAtMs: number): void {
    const processes = this.#processes;
    container.state = { kind: 'running', startedAtMs };
    processes.children.set(container, child);
    processes.learnIdentity(container, child);
    child.once('exit', (code, signalName) =>
      processes.guarded(() => {
        if (processes.isDetached || processes.children.get(container) !== child) return;
        const signal = signalName === null ? undefined : constants.signals[signalName];
        const exitCode = code ?? EXIT_NOT_STARTED + (signal ?? 0);
        const times = { startedAtMs, finishedAtMs: this.#dependencies.time.nowMs() };
        this.#dependencies.onEnd(container, this.#endOf(container, exitCode, { ...defined({ signal }), ...times }));
      }),
    );
    child.unref();
    processes.changed();
    this.#dependencies.onStart(container);
  }

  #endOf(
    container: ContainerRecord,
    exitCode: number,
    more: Pick<Terminated, 'signal' | 'startedAtMs' | 'finishedAtMs'>,
  ): Terminated {
    const messageFile = this.#processes.terminationLogOf(container);
    const fault = container.hasMounts === true ? setUpMessage(messageFile) : '';
    if (fault !== '') {
      const code = exitCode === EXIT_NOT_SET_UP ? EXIT_NOT_STARTED : exitCode;
      return { kind: 'terminated', ...more, exitCode: code, reason: 'ContainerCannotRun', message: fault };
    }
    const message = terminationMessage(this.#processes.specOf(container), messageFile, exitCode, (bytesMax) =>
      logTail(this.#processes.logOf(container), bytesMax),
    );
    const reason = exitCode === 0 ? 'Completed' : 'Error';
    return { kind: 'terminated', ...more, exitCode, reason, ...(message === '' ? {} : { message }) };
  }
}
