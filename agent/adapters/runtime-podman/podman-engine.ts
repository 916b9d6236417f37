/**
 * Containers of podman. The agent starts each run with `podman create` and `podman start`, and then follows the first
 * process of the container in /proc: a container at rest costs no call of podman.
 *
 * The processes of a container have its mark in their environment, as those of the runtime `exec`. So all of them are
 * found and killed although podman may no longer know them.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { lstatSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { defined } from '../../../shared/defined.ts';
import { pullPolicyOf } from '../../../shared/kinds/pods/spec-defaults.ts';
import type { Container } from '../../../shared/kinds/types.ts';
import { numberOf, recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { ContainerMount } from '../../ports/container-inputs.ts';
import type {
  CommandResult,
  CpuPlacement,
  LogQuery,
  RunningCommand,
  StreamedCommand,
} from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import type { CgroupNode } from '../../rules/cgroup-values.ts';
import { imageNameFault } from '../../rules/image-name.ts';
import { containersOf } from '../../rules/pod-containers.ts';
import { podmanLimits, podmanPlacement, podmanResources } from '../../rules/podman-limits.ts';
import { podmanContainerName, podmanContainerPlan } from '../../rules/podman-pod.ts';
import { TERMINATION_PATH } from '../runtime-exec/command-line.ts';
import { commandResult } from '../runtime-exec/command-result.ts';
import type { CommandContext } from '../runtime-exec/container-commands.ts';
import type {
  ConfigFault,
  ContainerEngine,
  EngineCallbacks,
  ExecuteOptions,
  Terminated,
} from '../runtime-exec/container-engine.ts';
import { logPath, logTail, removeOlderRuns } from '../runtime-exec/log-file.ts';
import { type LogReading, readLog } from '../runtime-exec/log-reader.ts';
import type { PodProcesses } from '../runtime-exec/pod-processes.ts';
import type { ContainerRecord } from '../runtime-exec/pod-record.ts';
import { identify, MARK, processesWith, type SignalName, signal } from '../runtime-exec/process-table.ts';
import { COMMAND_MARK, runningCommand, terminalWords } from '../runtime-exec/running-command.ts';
import { prepareMessageFiles, terminationMessage } from '../runtime-exec/termination-message.ts';
import { linesOf, textOfLines } from './log-lines.ts';
import { type PodmanCli, PodmanError } from './podman-cli.ts';
import { CALL_TIMEOUT_MS, PodmanPod, podmanImage } from './podman-pod.ts';

/** Longest pull of an image. Milliseconds. */
export const PULL_TIMEOUT_MS = 600_000;
/** Time for podman to notice the end of a container. Milliseconds. */
const END_WAIT_MS = 5_000;
const END_POLL_MS = 100;
/** Exit code of podman if podman itself failed, not the command. Source: podman-exec(1). */
const PODMAN_FAILED = 125;
/** Exit codes of a container that could not be started. Source: podman-run(1). */
const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;
const NOT_STARTED = 128;
const EXIT_UNKNOWN = 137;
/** Variables may be secrets. */
const OWNER_ONLY = 0o600;
/** The kernel has the same limit. */
const LINKS_MAX = 40;
const TERMINATION_LOG_VARIABLE = 'NODEKEEPER_TERMINATION_LOG';

export interface PodmanEngineDependencies {
  readonly podman: PodmanCli;
  readonly time: AgentTime;
  readonly log: Log;
  readonly bootId: () => string;
  readonly rootDirectory: string;
  readonly limits: CgroupNode;
  readonly placementOf: (podUid: string, container: string) => CpuPlacement;
  /** A limit could not be changed; undefined: it was. */
  readonly onLimits: (warning: string | undefined) => void;
}

/** Why a container cannot be created now, as reason and message of its waiting state. */
class CreationFault extends Error {
  override readonly name = 'CreationFault';
  readonly fault: ConfigFault;

  constructor(reason: string, message: string, isFinal = false) {
    super(message);
    this.fault = { kind: 'notReady', reason, message, isFinal };
  }
}

const CONFIG_ERROR = 'CreateContainerConfigError';

export class PodmanEngine implements ContainerEngine {
  readonly #processes: PodProcesses;
  readonly #context: CommandContext;
  readonly #callbacks: EngineCallbacks;
  readonly #dependencies: PodmanEngineDependencies;
  readonly #podman: PodmanCli;
  readonly #pod: PodmanPod;
  readonly #starting = new Map<string, { readonly stop: AbortController; readonly over: Promise<void> }>();
  /** The containerId of each run with an end that is being read. */
  readonly #ending = new Set<string>();
  /** By container: the signal that its image wants in place of SIGTERM. */
  readonly #stopSignals = new Map<string, string>();

  constructor(
    processes: PodProcesses,
    context: CommandContext,
    callbacks: EngineCallbacks,
    dependencies: PodmanEngineDependencies,
  ) {
    this.#processes = processes;
    this.#context = context;
    this.#callbacks = callbacks;
    this.#dependencies = dependencies;
    this.#podman = dependencies.podman;
    this.#pod = new PodmanPod(dependencies.podman, processes, dependencies.rootDirectory);
  }

  start(container: ContainerRecord): void {
    if (this.#starting.has(container.name)) return;
    // It restarts without a wait.
    if (container.state.kind === 'terminated') container.state = { kind: 'waiting', reason: 'ContainerCreating' };
    const stop = new AbortController();
    const over = this.#startNow(container, stop.signal)
      .catch((cause: unknown) => () => this.#reportFault(container, cause as Error))
      .then((report) => {
        this.#starting.delete(container.name);
        if (!this.#isUnwanted()) this.#processes.guarded(report);
      });
    this.#starting.set(container.name, { stop, over });
  }

  async execute(
    container: ContainerRecord,
    words: readonly string[],
    { mayWait }: ExecuteOptions,
  ): Promise<CommandResult> {
    const id = randomUUID();
    const name = this.#nameOf(container, container.restartCount);
    const args = ['exec', '--env', `${COMMAND_MARK}=${id}`, name, ...words];
    const child = spawn(this.#podman.program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const result = await commandResult(child, this.#processes, mayWait);
    if (result.kind === 'timedOut') {
      child.kill('SIGKILL');
      // The command in the container does not end with the call of podman.
      for (const { pid, mark } of processesWith(COMMAND_MARK)) if (mark === id) signal(pid, 'SIGKILL');
    }
    if (result.kind !== 'exited' || result.exitCode !== PODMAN_FAILED) return result;
    return { kind: 'failed', message: result.output.trim() };
  }

  async open(container: ContainerRecord, { command, stdin, tty }: StreamedCommand): Promise<RunningCommand> {
    const mark = randomUUID();
    const name = this.#nameOf(container, container.restartCount);
    const flags = [...(stdin ? ['--interactive'] : []), ...(tty ? ['--tty'] : [])];
    const call = [this.#podman.program, 'exec', ...flags, '--env', `${COMMAND_MARK}=${mark}`, name, ...command];
    const [program = '', ...args] = tty ? terminalWords(call) : call;
    const child = spawn(program, args, { stdio: [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'], detached: true });
    return runningCommand(child, { mark, tty });
  }

  signal(container: ContainerRecord, name: SignalName): void {
    const own = this.#stopSignals.get(container.name);
    const isOwn = name === 'SIGTERM' && own !== undefined && Object.hasOwn(constants.signals, own);
    this.#processes.signalFirst(container, isOwn ? (own as NodeJS.Signals) : name);
  }

  check(container: ContainerRecord): void {
    const run = container.containerId ?? '';
    if (this.#ending.has(run) || this.#processes.mayBeAlive(container)) return;
    this.#ending.add(run);
    void this.#endOf(container)
      .then((state) => {
        const isCurrent = container.containerId === run && container.state.kind === 'running';
        if (isCurrent && !this.#processes.isDetached)
          this.#processes.guarded(() => this.#callbacks.onEnd(container, state));
      })
      .finally(() => this.#ending.delete(run));
  }

  async endStarts(): Promise<void> {
    for (const { stop } of this.#starting.values()) stop.abort();
    await Promise.all([...this.#starting.values()].map(({ over }) => over));
  }

  async killAll(): Promise<void> {
    await this.endStarts();
    await this.#processes.killAll();
    await this.#pod.stop();
  }

  place(container: ContainerRecord): void {
    const { placementOf, onLimits, log } = this.#dependencies;
    const podUid = this.#processes.uid;
    const options = podmanPlacement(placementOf(podUid, container.name));
    if (options.length === 0) return;
    const name = this.#nameOf(container, container.restartCount);
    this.#podman.run(['update', ...options, name], { timeoutMs: CALL_TIMEOUT_MS }).then(
      () => onLimits(undefined),
      (cause: Error) => {
        onLimits(`podman cannot set limits of pods: ${cause.message}`);
        log.warn('the limits of a container cannot be set', { podUid, container: container.name, why: cause.message });
      },
    );
  }

  async resize(containers: readonly ContainerRecord[]): Promise<void> {
    const { pod, uid } = this.#processes;
    const { limits, placementOf } = this.#dependencies;
    for (const { name, restartCount } of containers) {
      const container = containersOf(pod).find((each) => each.name === name);
      if (container === undefined) continue;
      const options = podmanResources(limits, pod, container, placementOf(uid, name));
      const call = ['update', ...options, podmanContainerName(uid, name, restartCount)];
      await this.#podman.run(call, { timeoutMs: CALL_TIMEOUT_MS });
    }
  }

  /** Conmon writes the time of each line. */
  recordOutputTime(): void {}

  readLog(container: ContainerRecord, run: number, query: LogQuery, reading: LogReading): AsyncIterable<Uint8Array> {
    const { sinceMs: _since, limitBytes: _limit, ...lines } = query;
    const raw = { ...lines, timestamps: false };
    return linesOf(readLog({ ...this.#processes.logOf(container), run }, raw, reading), query);
  }

  #nameOf({ name }: ContainerRecord, run: number): string {
    return podmanContainerName(this.#processes.uid, name, run);
  }

  /** Whether the pod must not start anything. */
  #isUnwanted(): boolean {
    return this.#processes.isDetached || this.#processes.record.stopped;
  }

  /** Returns what is left to do when the start is no longer under way. @throws CreationFault, PodmanError */
  async #startNow(container: ContainerRecord, stop: AbortSignal): Promise<() => void> {
    const processes = this.#processes;
    const { pod } = processes;
    const spec = processes.specOf(container);
    await this.#pod.ensure();
    const inputs = this.#context.inputs().inputsOf(pod, spec, processes.record.podIp);
    if (inputs.kind === 'notReady') throw new CreationFault(inputs.reason, inputs.message);
    const image = await this.#image(spec, stop);
    const run = container.containerId === undefined ? 0 : container.restartCount + 1;
    const next = { ...container, restartCount: run };
    const name = this.#nameOf(container, run);
    const messageFile = processes.terminationLogOf(container);
    removeOlderRuns({ ...processes.logOf(next), run: run - 1 });
    prepareMessageFiles(messageFile);
    const target = spec.terminationMessagePath || TERMINATION_PATH;
    const envFilePath = join(processes.directory, `${container.name}.env`);
    const plan = podmanContainerPlan({
      pod,
      container: spec,
      variables: { ...inputs.variables, [TERMINATION_LOG_VARIABLE]: target, [MARK]: processes.markOf(next) },
      mounts: [...inputs.mounts, { source: messageFile, target, isFile: true, readOnly: false }],
      imageUser: image.user,
      limits: this.#limitsOf(container),
      run,
      logPath: logPath(processes.logOf(next)),
      envFilePath,
    });
    if (plan.kind === 'refused') throw new CreationFault(CONFIG_ERROR, plan.message, true);
    if (image.stopSignal !== '') this.#stopSignals.set(container.name, image.stopSignal);
    const pidFile = join(processes.directory, `${container.name}.pid`);
    const call = { timeoutMs: CALL_TIMEOUT_MS, stop };
    const create = ['create', '--pidfile', pidFile, ...plan.args];
    if (plan.envFile !== '') writeFileSync(envFilePath, plan.envFile, { mode: OWNER_ONLY });
    const id = await this.#created(name, () => this.#podman.run(create, { ...call, env: plan.env })).finally(() =>
      // An agent that is killed here leaves the file to the next start of the container, or to the end of the pod.
      rmSync(envFilePath, { force: true }),
    );
    if (run > 0) void this.#remove(this.#nameOf(container, run - 1));
    try {
      await this.#initialise(name, inputs.mounts, pidFile);
      if (this.#isUnwanted() || stop.aborted) throw new Error('the pod is stopped');
      await this.#podman.run(['start', name], call);
    } catch (cause) {
      if (cause instanceof CreationFault || this.#isUnwanted() || stop.aborted) {
        await this.#remove(name);
        throw cause;
      }
      return () => this.#failed(container, id, run, cause as Error);
    }
    const startedAtMs = this.#dependencies.time.nowMs();
    return () => {
      this.#started(container, id, run, pidFile, startedAtMs);
      this.#callbacks.onStart(container, spec.image);
    };
  }

  #limitsOf(container: ContainerRecord): readonly string[] {
    const { pod, uid } = this.#processes;
    const { limits, placementOf } = this.#dependencies;
    const { name } = container;
    const spec = this.#processes.limited(container);
    return spec === undefined ? [] : podmanLimits(limits, pod, spec, placementOf(uid, name));
  }

  /** Source: upstream pkg/kubelet/images/image_manager.go (EnsureImageExists). @throws CreationFault */
  async #image(container: Container, stop: AbortSignal) {
    const { image = '' } = container;
    const fault = imageNameFault(image);
    if (fault !== undefined) throw new CreationFault('InvalidImageName', fault);
    const policy = pullPolicyOf(container);
    const present = policy === 'Always' ? undefined : await podmanImage(this.#podman, image);
    if (present !== undefined) return present;
    if (policy === 'Never') {
      const message = `Container image ${JSON.stringify(image)} is not present with pull policy of Never`;
      throw new CreationFault('ErrImageNeverPull', message);
    }
    try {
      await this.#podman.run(['pull', '--quiet', image], { timeoutMs: PULL_TIMEOUT_MS, stop });
    } catch (cause) {
      throw new CreationFault('ErrImagePull', (cause as Error).message);
    }
    return (await podmanImage(this.#podman, image)) ?? { user: '', stopSignal: '' };
  }

  /** Replaces what a start that was interrupted left behind. */
  async #created(name: string, create: () => Promise<string>): Promise<string> {
    try {
      return (await create()).trim();
    } catch (cause) {
      if (!/already in use/.test((cause as Error).message)) throw cause;
      await this.#remove(name);
      return (await create()).trim();
    }
  }

  /**
   * Sets up the mounts of a container, and checks those that a process of the pod may have replaced by a link
   * meanwhile. No instruction of the container has run then.
   */
  async #initialise(name: string, mounts: readonly ContainerMount[], pidFile: string): Promise<void> {
    const parts = mounts.filter(({ isPart, identity }) => isPart === true && identity !== undefined);
    if (parts.length === 0) return;
    await this.#podman.run(['init', name], { timeoutMs: CALL_TIMEOUT_MS });
    const root = `/proc/${pidIn(pidFile)}/root`;
    for (const { target, identity } of parts) {
      if (identityOf(root, target) === identity) continue;
      throw new CreationFault(CONFIG_ERROR, `volumeMount ${target}: the volume changed while it was mounted`);
    }
  }

  #remove(name: string): Promise<unknown> {
    const { log } = this.#dependencies;
    return this.#podman
      .run(['rm', '--force', '--ignore', '--time', '0', name], { timeoutMs: CALL_TIMEOUT_MS })
      .catch((cause: Error) => log.warn('a container cannot be removed', { container: name, why: cause.message }));
  }

  #countRun(container: ContainerRecord, id: string, run: number): void {
    container.restartCount = run;
    container.containerId = `podman://${id}`;
    container.started = this.#processes.momentIn(0);
  }

  #started(container: ContainerRecord, id: string, run: number, pidFile: string, startedAtMs: number): void {
    this.#countRun(container, id, run);
    container.state = { kind: 'running', startedAtMs };
    const process = identify(pidIn(pidFile), this.#dependencies.bootId());
    // It may have terminated already: the next check then reads its end.
    if (process === undefined) delete container.process;
    else container.process = process;
    this.#processes.changed();
  }

  #failed(container: ContainerRecord, id: string, run: number, cause: Error): void {
    this.#countRun(container, id, run);
    const nowMs = this.#dependencies.time.nowMs();
    const code = cause instanceof PodmanError ? cause.exitCode : undefined;
    this.#callbacks.onEnd(container, {
      kind: 'terminated',
      exitCode: code === NOT_EXECUTABLE || code === NOT_FOUND ? code : NOT_STARTED,
      reason: 'ContainerCannotRun',
      message: cause.message,
      startedAtMs: nowMs,
      finishedAtMs: nowMs,
    });
  }

  #reportFault(container: ContainerRecord, cause: Error): void {
    if (cause instanceof CreationFault) this.#callbacks.onConfigFault(container, cause.fault);
    else this.#callbacks.onShortage(container, cause);
  }

  /** Reads the exit code. Podman has it an instant after the process has exited. */
  async #endOf(container: ContainerRecord): Promise<Terminated> {
    const { time } = this.#dependencies;
    const untilMs = time.monotonicMs() + END_WAIT_MS;
    const name = this.#nameOf(container, container.restartCount);
    for (;;) {
      const state = await this.#inspectedState(name);
      if (ENDED.has(textOf(state['Status']))) return this.#terminated(container, state);
      if (time.monotonicMs() >= untilMs || this.#processes.isDetached) return this.#unknownEnd(container);
      await time.sleep(END_POLL_MS);
    }
  }

  async #inspectedState(name: string): Promise<Record<string, unknown>> {
    try {
      const inspect = ['container', 'inspect', name];
      const [found = {}] = await this.#podman.json(inspect, { timeoutMs: CALL_TIMEOUT_MS });
      return recordOf(found['State']);
    } catch (cause) {
      this.#dependencies.log.warn('a container cannot be inspected', {
        container: name,
        why: (cause as Error).message,
      });
      return {};
    }
  }

  #terminated(container: ContainerRecord, state: Record<string, unknown>): Terminated {
    const processes = this.#processes;
    const exitCode = numberOf(state['ExitCode']) ?? EXIT_UNKNOWN;
    const startedAtMs = container.state.kind === 'running' ? container.state.startedAtMs : 0;
    const number = exitCode > NOT_STARTED ? exitCode - NOT_STARTED : undefined;
    const message = terminationMessage(
      processes.specOf(container),
      processes.terminationLogOf(container),
      exitCode,
      (bytesMax) => this.#tailOf(container, bytesMax),
    );
    return {
      kind: 'terminated',
      exitCode,
      ...defined({ signal: number }),
      reason: state['OOMKilled'] === true ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error',
      ...(message === '' ? {} : { message }),
      startedAtMs,
      finishedAtMs: Math.max(startedAtMs, parseTimeMs(textOf(state['FinishedAt'])) ?? startedAtMs),
    };
  }

  #tailOf(container: ContainerRecord, bytesMax: number): Buffer {
    // A line has about as much text as time and stream.
    const tail = logTail(this.#processes.logOf(container), 2 * bytesMax);
    return Buffer.from(textOfLines(tail)).subarray(-bytesMax);
  }

  #unknownEnd(container: ContainerRecord): Terminated {
    const nowMs = this.#dependencies.time.nowMs();
    return {
      kind: 'terminated',
      exitCode: EXIT_UNKNOWN,
      reason: 'ContainerStatusUnknown',
      message: 'The container could not be located when the pod was terminated',
      startedAtMs: container.state.kind === 'running' ? container.state.startedAtMs : nowMs,
      finishedAtMs: nowMs,
    };
  }
}

const ENDED: ReadonlySet<string> = new Set(['exited', 'stopped', 'removing']);

/** NaN if the file has none. */
function pidIn(pidFile: string): number {
  try {
    return Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
  } catch {
    return Number.NaN;
  }
}

/** Device and inode of what a container sees at a path; '' if it sees nothing there. */
function identityOf(root: string, target: string): string {
  try {
    const { dev, ino } = lstatSync(resolvedIn(root, target), { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return '';
  }
}

/** Follows links as the container does: an absolute one starts at its root. @throws Error of the file system */
function resolvedIn(root: string, target: string): string {
  const pending = target.split('/').reverse();
  const names: string[] = [];
  let links = 0;
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      names.pop();
      continue;
    }
    const path = join(root, ...names, name);
    if (!lstatSync(path).isSymbolicLink()) {
      names.push(name);
      continue;
    }
    links += 1;
    if (links > LINKS_MAX) throw new Error(`${target}: too many links`);
    const link = readlinkSync(path);
    if (link.startsWith('/')) names.length = 0;
    pending.push(...link.split('/').reverse());
  }
  return join(root, ...names);
}
