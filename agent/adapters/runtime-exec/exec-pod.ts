/**
 * One pod as processes of this machine.
 *
 * Init containers run one after the other, then all other containers together. The pod's policy restarts each of them
 * with a growing wait. A stop terminates them all, and nothing starts after it. A change (an exit, the end of a wait)
 * calls `advance`, which starts the containers that are due. After some exits a rule kills all containers, and then the
 * pod starts anew.
 *
 * A container is a process in its own session. When its first process exits, every process with its mark in the
 * environment is killed, because a container terminates with its first process. Processes outlive the agent. The next
 * agent finds them by their record. It is not their parent, so it does not see their exit codes.
 *
 * Durations and deadlines are monotonic. The pod's status has times of the wall clock.
 */
import { type Backoff, backoffMs } from '../../../shared/backoff.ts';
import { defined } from '../../../shared/defined.ts';
import { restartsAfter, restartsAllAfter } from '../../../shared/kinds/pods/container-restarts.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { formatGoDuration } from '../../../shared/kubernetes/go-duration.ts';
import type { Log } from '../../../shared/observability/log.ts';
import {
  type CommandResult,
  type LogQuery,
  LogUnavailableError,
  type PodUsage,
  type ResizeOutcome,
  type RunningCommand,
  type RunningContainer,
  type RunningPod,
  type StreamedCommand,
} from '../../ports/pod-runtime.ts';
import type { ProbeClient } from '../../ports/probe-client.ts';
import type { AgentTime } from '../../ports/time.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import { offlineRunMs } from '../../rules/offline-stop.ts';
import { changedImages, withImages } from '../../rules/pod-images.ts';
import { containerResize, lowersMemory, memoryInUse, resourcesOf, withResources } from '../../rules/pod-resize.ts';
import { nextBackOff } from '../../rules/restart-back-off.ts';
import type { PodCgroups } from '../cgroup/pod-cgroups.ts';
import type { CommandContext } from './container-commands.ts';
import type { ConfigFault, ContainerEngine, OpenEngine, Terminated } from './container-engine.ts';
import { ContainerHooks } from './container-hooks.ts';
import { boundLog, type LogLimits, removeOlderRuns } from './log-file.ts';
import { PodProcesses } from './pod-processes.ts';
import { type ContainerRecord, firstState, type PodRecord } from './pod-record.ts';
import { PodStop } from './pod-stop.ts';
import { podUsage } from './pod-usage.ts';
import type { MarkedProcess, ProcessTable } from './process-table.ts';

/** Wait before a container is started again after the machine lacked resources. Milliseconds. */
const START_AGAIN_MS = 10_000;
/** Before the objects that a container refers to are read again, or all containers are killed again. */
const CONFIG_WAITS: Backoff = { firstMs: START_AGAIN_MS, limitMs: 60_000 };
/** Before an image is pulled again, as a kubelet: a registry that limits pulls would refuse those of all pods. */
const PULL_WAITS: Backoff = { firstMs: START_AGAIN_MS, limitMs: 300_000 };
const CONFIG_ERROR = 'CreateContainerConfigError';
const PULL_ERROR = 'ErrImagePull';
const CREATING = 'ContainerCreating';
const DEFAULT_GRACE_SECONDS = 30;

export interface ExecPodDependencies {
  readonly time: AgentTime;
  readonly log: Log;
  readonly bootId: string;
  readonly directory: string;
  readonly logLimits: LogLimits;
  readonly hostIp: () => string | undefined;
  readonly commands: CommandContext;
  readonly openEngine: OpenEngine;
  readonly probeClient: ProbeClient;
  /** Whether the startup probe of a container has succeeded. The containers after a sidecar wait for that. */
  readonly isStarted: (container: string) => boolean;
  readonly onChange: () => void;
  readonly cgroups?: PodCgroups | undefined;
  readonly processTable?: ProcessTable | undefined;
  readonly onEvent: (event: NodeEvent) => void;
}

const APPLIED: ResizeOutcome = Object.freeze({ kind: 'applied' });

export class ExecPod {
  readonly #dependencies: ExecPodDependencies;
  readonly #processes: PodProcesses;
  readonly #engine: ContainerEngine;
  readonly #hooks: ContainerHooks;
  readonly #stop: PodStop;
  /** Runs, by containerId, with a postStart hook or a startup probe that has not succeeded yet. */
  readonly #hooksUnderWay = new Set<string>();
  /** Runs, by containerId, that terminate because their container has changed. */
  readonly #restarting = new Set<string>();
  /** By container: failed attempts in a row to find out what it starts with. */
  readonly #configFaults = new Map<string, number>();
  #isReadingInputs = false;
  #isRestartingAll = false;
  /** Failed kills of all containers in a row, and when the next one is due on the monotonic clock. */
  #failedKills = 0;
  #killAgainAtMs = 0;
  /** This agent has asked for it. Before that, a container may have been tried without its inputs. */
  #isWanted = false;

  constructor(record: PodRecord, dependencies: ExecPodDependencies) {
    this.#dependencies = dependencies;
    this.#processes = new PodProcesses(record, dependencies);
    this.#engine = dependencies.openEngine(this.#processes, dependencies.commands, {
      onConfigFault: (container, fault) => this.#waitForConfig(container, fault),
      onStart: (container, image) => {
        this.#runPostStart(container);
        if (image !== undefined && image !== this.#processes.specOf(container).image) this.#useChangedImage(container);
      },
      onEnd: (container, state) => this.#end(container, state),
      onShortage: (container, cause) => this.#startLater(container, cause),
    });
    const engine = this.#engine;
    this.#hooks = new ContainerHooks(this.#processes, { ...dependencies, engine });
    this.#stop = new PodStop(this.#processes, {
      ...dependencies,
      engine,
      hooks: this.#hooks,
      check: () => this.check(),
    });
  }

  view(): RunningPod {
    const { record, pod, uid } = this.#processes;
    return {
      uid,
      pod,
      ...defined({ ip: record.podIp }),
      namespace: pod.metadata.namespace ?? '',
      name: pod.metadata.name ?? '',
      initContainers: record.containers.filter(({ kind }) => kind !== 'main').map(viewOf),
      containers: record.containers.filter(({ kind }) => kind === 'main').map(viewOf),
      restartsAll: record.restartsAllFor !== undefined,
    };
  }

  /** Runs the pod, also a stopped one. Its inputs were read just before: a container that waits for them starts. */
  start(): void {
    const { record } = this.#processes;
    if (!this.#isWanted) {
      for (const container of record.containers) {
        if (container.state.kind !== 'waiting' || container.state.reason !== CONFIG_ERROR) continue;
        container.state = { kind: 'waiting', reason: CREATING };
        delete container.restart;
      }
    }
    this.#isWanted = true;
    if (this.isStopped()) {
      record.stopped = false;
      this.#processes.changed();
    }
    this.advance();
  }

  /** Starts the containers that are due. */
  advance(): void {
    const { record, pod, isDetached } = this.#processes;
    if (isDetached || record.stopped || record.restartsAllFor !== undefined) return;
    // After a reboot it must not start again before the agent says so (decision 0061).
    if (!this.#isWanted && offlineRunMs(pod) !== undefined) return;
    for (const container of record.containers) {
      if (container.kind === 'main') {
        record.initialised = true;
        this.#keepRunning(container);
      } else if (container.kind === 'sidecar') {
        this.#keepRunning(container);
        if (!record.initialised && !this.#hasStarted(container)) return;
      } else if (!record.initialised && !hasSucceeded(container)) {
        this.#keepRunning(container);
        return;
      }
    }
  }

  #hasStarted(container: ContainerRecord): boolean {
    const { name, state, containerId = '' } = container;
    if (state.kind !== 'running' || this.#hooksUnderWay.has(containerId)) return false;
    return this.#processes.specOf(container).startupProbe === undefined || this.#dependencies.isStarted(name);
  }

  /** Allocates the resources of this pod to the containers, and applies them to those that run. Never rejects. */
  async resize(pod: KubePod): Promise<ResizeOutcome> {
    const processes = this.#processes;
    const { record } = processes;
    const resizable = (container: ContainerRecord): boolean => container.kind !== 'init';
    for (const container of record.containers.filter(resizable))
      container.resources ??= resourcesOf(record.pod, container.name) ?? {};
    record.pod = withResources(record.pod, (name) => resourcesOf(pod, name));
    processes.save();
    const updated: ContainerRecord[] = [];
    for (const container of processes.running().filter(resizable)) {
      const change = containerResize(processes.specOf(container), container.resources ?? {});
      if (change === 'nothing') delete container.resources;
      if (change === 'update') updated.push(container);
      if (change === 'restart') this.#restartChanged(container, 'resize requires restart');
    }
    const outcome = updated.length === 0 ? APPLIED : await this.#update(updated);
    processes.save();
    return outcome;
  }

  async #update(updated: readonly ContainerRecord[]): Promise<ResizeOutcome> {
    const { pod, record } = this.#processes;
    const lowers = (container: ContainerRecord): boolean =>
      lowersMemory(this.#processes.specOf(container), container.resources ?? {});
    const resourcesNow = (name: string) => record.containers.find((each) => each.name === name)?.resources;
    try {
      const names = updated.map(({ name }) => name);
      const inUse = memoryInUse(pod, withResources(pod, resourcesNow), names, await this.usage(false, ''));
      if (inUse !== undefined) return { kind: 'failed', message: inUse };
      await this.#engine.resize(updated.toSorted((one, other) => Number(lowers(other)) - Number(lowers(one))));
    } catch (cause) {
      return { kind: 'failed', message: (cause as Error).message };
    }
    for (const container of updated) delete container.resources;
    return APPLIED;
  }

  /** A container with another image does not wait for what failed with the one before. */
  useImages(pod: KubePod): void {
    const processes = this.#processes;
    const { record } = processes;
    const changed = changedImages(pod, record.pod);
    if (changed.size === 0) return;
    record.pod = withImages(record.pod, pod);
    for (const container of record.containers.filter(({ name }) => changed.has(name))) {
      const { state } = container;
      if (state.kind === 'running') this.#useChangedImage(container);
      const isHeld = state.kind === 'waiting' && state.reason === CONFIG_ERROR;
      if (state.kind !== 'waiting' || (container.restart === undefined && !isHeld)) continue;
      this.#configFaults.delete(container.name);
      delete container.backOffMs;
      container.restart = processes.momentIn(0);
    }
    processes.save();
    this.advance();
  }

  #useChangedImage(container: ContainerRecord): void {
    if (container.kind !== 'init') this.#restartChanged(container, 'definition changed, will be restarted');
  }

  /** Its limits and its image are those of the next run. */
  #restartChanged(container: ContainerRecord, why: string): void {
    const { containerId = '', name } = container;
    if (this.#restarting.has(containerId)) return;
    this.#restarting.add(containerId);
    container.restartsForChange = true;
    const { log } = this.#dependencies;
    const { pod, uid: podUid } = this.#processes;
    const graceSeconds = pod.spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
    void this.restart(name, graceSeconds, `Container ${name} ${why}`)
      .catch((cause: unknown) => {
        log.error('a container is killed: its termination failed', { podUid, cause: String(cause) });
        if (container.containerId === containerId) this.#engine.signal(container, 'SIGKILL');
      })
      .finally(() => this.#restarting.delete(containerId));
  }

  /** Terminates one container gracefully. Its restart policy then applies. */
  async restart(name: string, graceSeconds: number, message: string): Promise<void> {
    const container = this.#processes.running().find((each) => each.name === name);
    if (container === undefined || this.#processes.record.stopped) return;
    this.#dependencies.onEvent({ type: 'Normal', reason: 'Killing', message });
    await this.#stop.terminateOne(container, graceSeconds);
  }

  /** Runs a command in a running container. */
  async execute(name: string, command: readonly string[], timeoutMs: number): Promise<CommandResult> {
    const container = this.#processes.running().find((each) => each.name === name);
    if (container === undefined) return { kind: 'failed', message: `container ${name} is not running` };
    const untilMs = this.#dependencies.time.monotonicMs() + timeoutMs;
    const mayWait = (): boolean => this.#dependencies.time.monotonicMs() < untilMs;
    return this.#engine.execute(container, command, { mayWait, output: 'returned' });
  }

  /** Runs a command that somebody follows in a running container. @throws Error */
  async open(command: StreamedCommand): Promise<RunningCommand> {
    const container = this.#processes.running().find((each) => each.name === command.container);
    if (container === undefined) throw new Error(`container ${command.container} is not running`);
    return this.#engine.open(container, command);
  }

  /** Adopts the processes of the previous agent. @param marked all processes with a mark */
  adopt(marked: readonly MarkedProcess[]): void {
    const processes = this.#processes;
    for (const container of processes.record.containers) this.#adoptRestart(container);
    // If a record could not be written, it does not have the last start. Processes of that start are killed.
    const live = processes.running().filter((each) => processes.mayBeAlive(each));
    for (const { pid, mark } of marked) {
      if (!mark.startsWith(`${processes.uid}/`)) continue;
      if (!live.some((container) => processes.isMarkOf(container, mark))) processes.table.signal(pid, 'SIGKILL');
    }
    processes.discardRunsExcept(processes.running());
    this.check();
  }

  /** Checks processes that are not our children, and a record that could not be written. */
  check(): void {
    const processes = this.#processes;
    processes.saveAgainIfDue();
    for (const container of processes.running()) this.#engine.check(container);
    this.#restartAll();
  }

  /** Why the record on disk is older than the pod; undefined while it is current. */
  complaint(): string | undefined {
    return this.#processes.complaint();
  }

  boundLogs(): void {
    const { record } = this.#processes;
    for (const container of record.containers) {
      boundLog(this.#processes.logOf(container), this.#dependencies.logLimits);
    }
  }

  recordOutputTimes(): void {
    for (const container of this.#processes.record.containers) this.#engine.recordOutputTime(container);
  }

  /** @throws LogUnavailableError */
  readLog(query: LogQuery, stop: AbortSignal): AsyncIterable<Uint8Array> {
    const { record, pod } = this.#processes;
    const container = record.containers.find(({ name }) => name === query.container);
    const podName = JSON.stringify(pod.metadata.name ?? '');
    const name = JSON.stringify(query.container);
    if (container?.containerId === undefined) {
      throw new LogUnavailableError(`container ${name} in pod ${podName} is not available`);
    }
    const { restartCount } = container;
    // While a restart waits, the run that has terminated is both the last and the previous one.
    const run = query.previous && container.state.kind !== 'waiting' ? restartCount - 1 : restartCount;
    if (run < 0) throw new LogUnavailableError(`previous terminated container ${name} in pod ${podName} not found`);
    this.recordOutputTimes();
    return this.#engine.readLog(container, run, query, {
      time: this.#dependencies.time,
      isRunning: () =>
        container.restartCount === run && container.state.kind === 'running' && !this.#processes.isDetached,
      stop,
    });
  }

  /** Writes the processors of the running containers again. */
  place(): void {
    for (const container of this.#processes.running()) this.#engine.place(container);
  }

  /** @throws Error when it cannot be measured */
  usage(withStorage: boolean, volumesDirectory: string): Promise<PodUsage> {
    const { record, pod, table } = this.#processes;
    const { directory, cgroups } = this.#dependencies;
    return podUsage({ pod, containers: record.containers, directory, volumesDirectory, cgroups, table }, withStorage);
  }

  /** Removes the output of a pod that has terminated. */
  removeOutput(): void {
    const { record } = this.#processes;
    if (record.containers.some(({ state }) => state.kind !== 'terminated')) return;
    for (const container of record.containers) {
      removeOlderRuns({ ...this.#processes.logOf(container), run: container.restartCount + 1 });
    }
  }

  get pod(): KubePod {
    return this.#processes.pod;
  }

  isStopped(): boolean {
    return this.#processes.record.stopped && !this.#stop.isUnderWay() && this.#processes.running().length === 0;
  }

  /** @throws Error when processes still exist after SIGKILL */
  stop(graceSeconds: number): Promise<void> {
    return this.#stop.stop(graceSeconds);
  }

  /** Leaves the processes running. No other method has an effect afterwards. */
  detach(): void {
    this.#processes.detach();
  }

  /** Not for an init container that has succeeded: it starts again only after a failure, also with policy Always. */
  #keepRunning(container: ContainerRecord): void {
    const { state } = container;
    if (state.kind === 'running') return;
    if (state.kind === 'waiting' && container.restart === undefined) {
      const isFirst = container.containerId === undefined && state.reason !== CONFIG_ERROR;
      // The previous agent ended while the engine created the container.
      const isInterrupted = state.reason === CREATING;
      if (isFirst || isInterrupted) this.#engine.start(container);
      return;
    }
    if (state.kind === 'terminated') {
      const policy = this.#processes.pod.spec?.restartPolicy;
      const hasChanged = container.restartsForChange === true;
      delete container.restartsForChange;
      if (hasChanged) this.#restartNow(container, state);
      else if (restartsAfter(state.exitCode, this.#processes.specOf(container), policy))
        this.#backOff(container, state);
      else return;
    }
    const leftMs = (container.restart?.monotonicMs ?? 0) - this.#dependencies.time.monotonicMs();
    if (leftMs > 0) {
      this.#processes.after(leftMs, () => this.advance());
      return;
    }
    if (state.kind === 'waiting' && state.reason === CONFIG_ERROR) {
      this.#readInputs(container);
      return;
    }
    delete container.restart;
    this.#engine.start(container);
  }

  /** Reads what the container refers to, then tries to start it. */
  #readInputs(container: ContainerRecord): void {
    if (this.#isReadingInputs) return;
    this.#isReadingInputs = true;
    const processes = this.#processes;
    void this.#dependencies.commands
      .inputs()
      .readMissing(processes.pod)
      .then(() => {
        this.#isReadingInputs = false;
        const { isDetached, record } = processes;
        if (isDetached || record.stopped || record.restartsAllFor !== undefined) return;
        if (container.state.kind !== 'waiting') return;
        delete container.restart;
        processes.guarded(() => this.#engine.start(container));
      });
  }

  /** The container cannot be created. That is not a failure of it, so its restart policy does not apply. */
  #waitForConfig(container: ContainerRecord, { reason, message, isFinal }: ConfigFault): void {
    container.state = { kind: 'waiting', reason, message };
    if (!isFinal) {
      const faults = this.#configFaults.get(container.name) ?? 0;
      const waitMs = backoffMs(reason === PULL_ERROR ? PULL_WAITS : CONFIG_WAITS, faults);
      this.#configFaults.set(container.name, faults + 1);
      container.restart = this.#processes.momentIn(waitMs);
      this.#processes.after(waitMs, () => this.advance());
    }
    this.#processes.changed();
  }

  /** A container with a failed hook is terminated, and its restart policy applies. */
  #runPostStart(container: ContainerRecord): void {
    this.#configFaults.delete(container.name);
    const processes = this.#processes;
    const { postStart } = processes.specOf(container).lifecycle ?? {};
    const run = container.containerId ?? '';
    if (postStart === undefined) return;
    this.#hooksUnderWay.add(run);
    const isCurrent = (): boolean =>
      container.containerId === run && container.state.kind === 'running' && !processes.isDetached;
    void this.#hooks
      .run(container, postStart, isCurrent)
      .then((why) => (why === undefined || !isCurrent() ? undefined : this.#failPostStart(container, why)))
      .catch((cause: unknown) => {
        const { log } = this.#dependencies;
        log.error('a container is killed: its termination failed', { podUid: processes.uid, cause: String(cause) });
        if (isCurrent()) processes.guarded(() => this.#engine.signal(container, 'SIGKILL'));
      })
      .then(() => {
        this.#hooksUnderWay.delete(run);
        processes.guarded(() => this.advance());
      });
  }

  async #failPostStart(container: ContainerRecord, why: string): Promise<void> {
    const { log, onEvent } = this.#dependencies;
    const { pod, uid: podUid } = this.#processes;
    log.warn('a postStart hook failed', { podUid, container: container.name, why });
    onEvent({ type: 'Warning', reason: 'FailedPostStartHook', message: 'PostStartHook failed' });
    const graceSeconds = pod.spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
    await this.restart(container.name, graceSeconds, 'FailedPostStartHook');
  }

  #restartNow(container: ContainerRecord, ended: Terminated): void {
    container.restart = this.#processes.momentIn(0);
    container.lastState = ended;
    if (container.containerId !== undefined) container.lastContainerId = container.containerId;
  }

  #backOff(container: ContainerRecord, ended: Terminated): void {
    const { pod, uid } = this.#processes;
    const waitMs = nextBackOff(container.backOffMs, container.ranMs ?? 0);
    this.#restartNow(container, ended);
    container.backOffMs = waitMs;
    if (waitMs === 0) return;
    container.restart = this.#processes.momentIn(waitMs);
    const where = `${container.name} pod=${pod.metadata.name}_${pod.metadata.namespace}(${uid})`;
    container.state = {
      kind: 'waiting',
      reason: 'CrashLoopBackOff',
      message: `back-off ${formatGoDuration(waitMs)} restarting failed container=${where}`,
    };
    this.#processes.changed();
  }

  /** The machine lacks a resource. This is not a failure of the container, so its restart policy does not apply. */
  #startLater(container: ContainerRecord, cause: Error): void {
    container.state = { kind: 'waiting', reason: 'CreateContainerError', message: cause.message };
    container.restart = this.#processes.momentIn(START_AGAIN_MS);
    this.#processes.changed();
    this.#processes.after(START_AGAIN_MS, () => this.advance());
  }

  #end(container: ContainerRecord, state: Terminated): void {
    const processes = this.#processes;
    const ranMs = processes.elapsedMs(container.started);
    if (ranMs === undefined) {
      // The machine has booted since. A kubelet loses its back-off then, too.
      delete container.ranMs;
      delete container.backOffMs;
    } else container.ranMs = ranMs;
    delete container.process;
    processes.children.delete(container);
    container.state = processes.ranOutOfMemory(container) ? { ...state, reason: 'OOMKilled' } : state;
    processes.killRun(container).catch((cause: unknown) =>
      this.#dependencies.log.warn('processes of a terminated container are left', {
        podUid: processes.uid,
        container: container.name,
        cause: String(cause),
      }),
    );
    const { record } = processes;
    if (!record.stopped && restartsAllAfter(state.exitCode, processes.specOf(container))) {
      record.restartsAllFor ??= container.name;
    }
    processes.changed();
    this.#restartAll();
    this.advance();
  }

  /** Kills the containers that still run, then starts the pod anew. A later check tries again what failed. */
  #restartAll(): void {
    const processes = this.#processes;
    const { time, log } = this.#dependencies;
    if (processes.record.restartsAllFor === undefined || this.#isRestartingAll) return;
    if (time.monotonicMs() < this.#killAgainAtMs && processes.running().length > 0) return;
    this.#isRestartingAll = true;
    void this.#stop
      .kill()
      .then(() => {
        this.#failedKills = 0;
        this.#killAgainAtMs = 0;
        processes.guarded(() => this.#startAnew());
      })
      .catch((cause: unknown) => {
        this.#killAgainAtMs = time.monotonicMs() + backoffMs(CONFIG_WAITS, this.#failedKills);
        this.#failedKills += 1;
        log.warn('a pod is not restarted yet', { podUid: processes.uid, cause: String(cause) });
      })
      .then(() => {
        this.#isRestartingAll = false;
      });
  }

  /** From its first init container on. Only the container that was the cause waits, as for any restart of it. */
  #startAnew(): void {
    const processes = this.#processes;
    const { record, isDetached } = processes;
    const cause = record.restartsAllFor;
    if (cause === undefined || isDetached || processes.running().length > 0) return;
    const hasInit = record.containers.some(({ kind }) => kind !== 'main');
    for (const container of record.containers) {
      const { state, name } = container;
      container.restart = processes.momentIn(0);
      container.state = firstState(hasInit);
      delete container.restartsForChange;
      if (state.kind !== 'terminated') continue;
      if (name === cause) this.#backOff(container, state);
      else this.#restartNow(container, state);
    }
    record.initialised = !hasInit;
    delete record.restartsAllFor;
    processes.changed();
    this.advance();
  }

  /** Continues the restart wait of the previous agent. After a boot there is no wait left. */
  #adoptRestart(container: ContainerRecord): void {
    if (container.state.kind !== 'waiting') return;
    const { reason } = container.state;
    if (container.restart === undefined && (reason === CREATING || reason === 'PodInitializing')) return;
    const longestMs = reason === 'CrashLoopBackOff' ? (container.backOffMs ?? 0) : START_AGAIN_MS;
    const leftMs = this.#processes.leftMs(container.restart);
    container.restart = this.#processes.momentIn(Math.min(leftMs, longestMs));
  }
}

const hasSucceeded = ({ state }: ContainerRecord): boolean => state.kind === 'terminated' && state.exitCode === 0;

const viewOf = (container: ContainerRecord): RunningContainer => {
  const { name, state, restartCount, lastState, lastContainerId, containerId, resources } = container;
  return { name, state, restartCount, ...defined({ lastState, lastContainerId, containerId, resources }) };
};
