/**
 * Containers as processes of Windows, each run in a Job object of its own. They end with the agent: the next one finds
 * none of them, and their restart policy applies.
 */
import { closeSync, openSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { defined } from '../../../shared/defined.ts';
import { makeDirectory } from '../../../shared/host/directory.ts';
import { written } from '../../../shared/host/written.ts';
import { linuxFields } from '../../../shared/kinds/pods/linux-fields.ts';
import type { ContainerMount } from '../../ports/container-inputs.ts';
import type { CommandResult, LogQuery, RunningCommand, StreamedCommand } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { cpuQuotaOf, memoryLimitBytes, QUOTA_PERIOD_MICROSECONDS } from '../../rules/cgroup-values.ts';
import { mountPathBelow } from '../../rules/windows-pod.ts';
import { type CommandLine, commandLine } from '../runtime-exec/command-line.ts';
import { commandResult } from '../runtime-exec/command-result.ts';
import type { CommandContext } from '../runtime-exec/container-commands.ts';
import type { ContainerEngine, EngineCallbacks, ExecuteOptions } from '../runtime-exec/container-engine.ts';
import { logPath, logTail, recordOutputTime, removeOlderRuns } from '../runtime-exec/log-file.ts';
import { type LogReading, readLog } from '../runtime-exec/log-reader.ts';
import type { PodProcesses } from '../runtime-exec/pod-processes.ts';
import type { ContainerRecord } from '../runtime-exec/pod-record.ts';
import { EXIT_UNKNOWN } from '../runtime-exec/process-engine.ts';
import type { SignalName } from '../runtime-exec/process-table.ts';
import { prepareMessageFiles, terminationMessage } from '../runtime-exec/termination-message.ts';
import { rm, symlink } from '../system/files.ts';
import { ACCESS_DENIED, FILE_NOT_FOUND, WindowsError } from './foreign.ts';
import { Job, type JobProcess } from './jobs.ts';
import type { JobTable } from './windows-processes.ts';

/** The nearest to the exit codes of shells. */
const EXIT_NOT_FOUND = 127;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_STARTED = 128;
/** Directory of the volumes of a container, as HostProcess containers have it. */
const SANDBOX_VARIABLE = 'CONTAINER_SANDBOX_MOUNT_POINT';
const TERMINATION_LOG_VARIABLE = 'NODEKEEPER_TERMINATION_LOG';
/** What programs of Windows expect of their environment. */
const SYSTEM_VARIABLES = ['SYSTEMROOT', 'SYSTEMDRIVE', 'WINDIR', 'COMSPEC', 'PATHEXT', 'TEMP', 'TMP', 'PATH'];
const CONFIG_ERROR = 'CreateContainerConfigError';

/** A run of a container. */
interface Run {
  readonly job: Job;
  readonly process: JobProcess;
  readonly startedAtMs: number;
}

export interface WindowsEngineDependencies {
  readonly time: AgentTime;
  readonly podPidsMax: number | undefined;
  readonly jobs: JobTable;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly warn: (message: string, fields: Record<string, unknown>) => void;
}

export class WindowsEngine implements ContainerEngine {
  readonly #processes: PodProcesses;
  readonly #context: CommandContext;
  readonly #callbacks: EngineCallbacks;
  readonly #dependencies: WindowsEngineDependencies;
  readonly #runs = new Map<string, Run>();
  /** Containers with volumes that are being made. */
  readonly #starting = new Map<string, { readonly stop: AbortController; readonly over: Promise<void> }>();
  readonly #seenOutput = new Map<string, string | undefined>();

  constructor(
    processes: PodProcesses,
    context: CommandContext,
    callbacks: EngineCallbacks,
    dependencies: WindowsEngineDependencies,
  ) {
    this.#processes = processes;
    this.#context = context;
    this.#callbacks = callbacks;
    this.#dependencies = dependencies;
  }

  start(container: ContainerRecord): void {
    if (this.#starting.has(container.name)) return;
    const processes = this.#processes;
    const fault = (message: string, isFinal: boolean): void =>
      this.#callbacks.onConfigFault(container, { kind: 'notReady', reason: CONFIG_ERROR, message, isFinal });
    const [linuxOnly] = linuxFields(processes.pod.spec ?? {});
    if (linuxOnly !== undefined) {
      fault(`${linuxOnly} has no meaning on Windows`, true);
      return;
    }
    const inputs = this.#context.inputs().inputsOf(processes.pod, processes.specOf(container));
    if (inputs.kind === 'notReady') {
      this.#callbacks.onConfigFault(container, { ...inputs, isFinal: false });
      return;
    }
    const line = commandLine(processes.pod, processes.specOf(container), inputs, 0);
    if (line.kind === 'unsupported') {
      fault(line.message, true);
      return;
    }
    // It restarts without a wait.
    if (container.state.kind === 'terminated') container.state = { kind: 'waiting', reason: 'ContainerCreating' };
    const stop = new AbortController();
    const over = this.#prepare(container, inputs.mounts, stop.signal)
      .then(
        () => () => this.#run(container, line, this.#environmentOf(container, inputs.variables)),
        (cause: Error) => () => fault(cause.message, false),
      )
      .then((report) => {
        this.#starting.delete(container.name);
        if (!processes.isDetached && !processes.record.stopped) processes.guarded(report);
      });
    this.#starting.set(container.name, { stop, over });
  }

  /** @throws Error */
  async #prepare(container: ContainerRecord, mounts: readonly ContainerMount[], stop: AbortSignal): Promise<void> {
    await this.#mountAll(container, mounts, stop);
    // One run before the next one is kept, as by the kubelet.
    removeOlderRuns(this.#processes.logOf(container));
    prepareMessageFiles(this.#processes.terminationLogOf(container));
  }

  #run(container: ContainerRecord, { file, args, directory }: CommandLine, env: Record<string, string>): void {
    const processes = this.#processes;
    if (container.containerId !== undefined) container.restartCount += 1;
    container.containerId = `exec://${processes.uid}/${container.name}/${container.restartCount}`;
    container.started = processes.momentIn(0);
    const startedAtMs = this.#dependencies.time.nowMs();
    let job: Job | undefined;
    try {
      job = new Job(this.#limitsOf(container));
      const outputFile = logPath(processes.logOf(container));
      const process = job.start({ file, args, directory, outputFile, env });
      this.#runs.set(container.name, { job, process, startedAtMs });
      this.#dependencies.jobs.set(processes.markOf(container), job);
    } catch (cause) {
      job?.close();
      this.#notStarted(container, cause as Error, startedAtMs);
      return;
    }
    container.state = { kind: 'running', startedAtMs };
    processes.changed();
    this.#callbacks.onStart(container);
  }

  #notStarted(container: ContainerRecord, cause: Error, startedAtMs: number): void {
    const code = cause instanceof WindowsError ? cause.code : undefined;
    const exitCode =
      code === FILE_NOT_FOUND ? EXIT_NOT_FOUND : code === ACCESS_DENIED ? EXIT_NOT_EXECUTABLE : EXIT_NOT_STARTED;
    const finishedAtMs = this.#dependencies.time.nowMs();
    const { message } = cause;
    const end = { exitCode, reason: 'ContainerCannotRun', message, startedAtMs, finishedAtMs };
    this.#callbacks.onEnd(container, { kind: 'terminated', ...end });
  }

  #limitsOf(container: ContainerRecord) {
    const spec = this.#processes.limited(container);
    const memoryBytes = spec === undefined ? 0 : memoryLimitBytes(spec);
    const quota = spec === undefined ? 0 : cpuQuotaOf(spec);
    return {
      memoryBytes: memoryBytes > 0 ? memoryBytes : undefined,
      cpus: quota > 0 ? quota / QUOTA_PERIOD_MICROSECONDS : undefined,
      processesMax: this.#dependencies.podPidsMax,
    };
  }

  #sandboxOf({ name }: ContainerRecord): string {
    return join(this.#processes.directory, `${name}.volumes`);
  }

  #environmentOf(container: ContainerRecord, variables: Readonly<Record<string, string>>): Record<string, string> {
    const own = new Set(Object.keys(variables).map((name) => name.toUpperCase()));
    // Names are the same in any case.
    const system = Object.entries(this.#dependencies.environment).filter(
      ([name]) => SYSTEM_VARIABLES.includes(name.toUpperCase()) && !own.has(name.toUpperCase()),
    );
    return {
      ...defined(Object.fromEntries(system)),
      HOSTNAME: this.#processes.pod.metadata.name ?? '',
      ...variables,
      [SANDBOX_VARIABLE]: this.#sandboxOf(container),
      [TERMINATION_LOG_VARIABLE]: this.#processes.terminationLogOf(container),
    };
  }

  /** Volumes are junctions below the directory of the container, or copies. A copy blocks nothing. @throws Error */
  async #mountAll(container: ContainerRecord, mounts: readonly ContainerMount[], stop: AbortSignal): Promise<void> {
    const sandbox = this.#sandboxOf(container);
    // Removes junctions, not what they lead to.
    await rm(sandbox, { recursive: true, force: true });
    makeDirectory(sandbox, 0o700);
    for (const { source, target, isFile } of mounts) {
      const path = join(sandbox, mountPathBelow(target));
      makeDirectory(dirname(path), 0o700);
      if (isFile) await cp(source, path);
      else await this.#mount(source, path, stop);
    }
  }

  async #mount(source: string, path: string, stop: AbortSignal): Promise<void> {
    try {
      await symlink(source, path, 'junction');
    } catch (cause) {
      await cp(source, path, { recursive: true, filter: () => !stop.aborted });
      const { uid } = this.#processes;
      this.#dependencies.warn('a volume is a copy', { podUid: uid, path, cause: (cause as Error).message });
    }
  }

  signal({ name }: ContainerRecord, signal: SignalName): void {
    const run = this.#runs.get(name);
    if (run === undefined) return;
    if (signal === 'SIGKILL') {
      run.job.end();
      return;
    }
    const refusal = run.process.interrupt();
    if (refusal === undefined) return;
    const { uid } = this.#processes;
    this.#dependencies.warn('a container cannot be asked to end', { podUid: uid, container: name, refusal });
  }

  check(container: ContainerRecord): void {
    const { state } = container;
    if (state.kind !== 'running') return;
    const run = this.#runs.get(container.name);
    const finishedAtMs = this.#dependencies.time.nowMs();
    if (run === undefined) {
      const message = 'The container terminated with the agent. Its exit code is unknown';
      const times = { startedAtMs: state.startedAtMs, finishedAtMs };
      const reason = 'ContainerStatusUnknown';
      this.#callbacks.onEnd(container, { kind: 'terminated', exitCode: EXIT_UNKNOWN, reason, message, ...times });
      return;
    }
    const exitCode = run.process.exitCode();
    if (exitCode === undefined) return;
    this.#forget(container, run);
    const messageFile = this.#processes.terminationLogOf(container);
    const message = terminationMessage(this.#processes.specOf(container), messageFile, exitCode, (bytesMax) =>
      logTail(this.#processes.logOf(container), bytesMax),
    );
    this.#callbacks.onEnd(container, {
      kind: 'terminated',
      exitCode,
      reason: exitCode === 0 ? 'Completed' : 'Error',
      ...(message === '' ? {} : { message }),
      startedAtMs: run.startedAtMs,
      finishedAtMs,
    });
  }

  /** A container terminates with its first process, and so do all others of its job. */
  #forget(container: ContainerRecord, { job }: Run): void {
    this.#runs.delete(container.name);
    this.#dependencies.jobs.delete(this.#processes.markOf(container));
    job.close();
  }

  async endStarts(): Promise<void> {
    for (const { stop } of this.#starting.values()) stop.abort();
    await Promise.all([...this.#starting.values()].map(({ over }) => over));
  }

  async killAll(): Promise<void> {
    await this.endStarts();
    for (const { job } of this.#runs.values()) job.end();
    await this.#processes.killAll();
  }

  async execute(
    container: ContainerRecord,
    words: readonly string[],
    { mayWait, output }: ExecuteOptions,
  ): Promise<CommandResult> {
    const file = output === 'log' ? openSync(logPath(this.#processes.logOf(container)), 'a') : undefined;
    try {
      const child = this.#further(container, words, ['ignore', file ?? 'pipe', file ?? 'pipe']);
      const result = await commandResult(child, this.#processes, mayWait);
      if (result.kind === 'timedOut') child.kill('SIGKILL');
      return result;
    } catch (cause) {
      return { kind: 'failed', message: (cause as Error).message };
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  async open(container: ContainerRecord, { command, stdin, tty }: StreamedCommand): Promise<RunningCommand> {
    if (tty) throw new Error('a node with Windows has no terminals: leave out -t');
    const child = this.#further(container, command, [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe']);
    const exit = Promise.withResolvers<number>();
    child.once('error', (cause) => exit.reject(cause));
    child.once('exit', (code) => exit.resolve(code ?? EXIT_UNKNOWN));
    // Whoever follows the command may have left.
    exit.promise.catch(() => undefined);
    child.stdin?.on('error', () => undefined);
    return {
      stdout: child.stdout ?? Readable.from([]),
      stderr: child.stderr ?? Readable.from([]),
      exitCode: exit.promise,
      async write(bytes) {
        if (child.stdin !== null) await written(child.stdin, bytes);
      },
      endInput: () => void child.stdin?.end(),
      resize() {},
      kill: () => void child.kill('SIGKILL'),
    };
  }

  /** A further process of a running container. @throws Error */
  #further(container: ContainerRecord, words: readonly string[], stdio: ('ignore' | 'pipe' | number)[]) {
    const processes = this.#processes;
    const inputs = this.#context.inputs().inputsOf(processes.pod, processes.specOf(container));
    if (inputs.kind === 'notReady') throw new Error(inputs.message);
    const line = commandLine(processes.pod, processes.specOf(container), inputs, 0);
    if (line.kind === 'unsupported') throw new Error(line.message);
    const run = this.#runs.get(container.name);
    if (run === undefined) throw new Error(`container ${container.name} is not running`);
    const [file = '', ...args] = words;
    const env = this.#environmentOf(container, inputs.variables);
    return run.job.spawn(file, args, { env, stdio, ...defined({ cwd: line.directory }) });
  }

  place(): void {}

  /** No resize of a pod is allocated on Windows. */
  async resize(): Promise<void> {}

  recordOutputTime(container: ContainerRecord): void {
    const { name } = container;
    this.#seenOutput.set(name, recordOutputTime(this.#processes.logOf(container), this.#seenOutput.get(name)));
  }

  readLog(container: ContainerRecord, run: number, query: LogQuery, reading: LogReading): AsyncIterable<Uint8Array> {
    return readLog({ ...this.#processes.logOf(container), run }, query, reading);
  }
}
