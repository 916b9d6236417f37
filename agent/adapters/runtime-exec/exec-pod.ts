/**
 * One pod as processes of this machine.
 *
 * Init containers run one after the other, then all other containers together. The pod's policy restarts each of them
 * with a growing wait. A stop terminates them all, and nothing starts after it. A change (an exit, the end of a wait)
 * calls `advance`, which starts the containers that are due.
 *
 * A container is a process in its own session. When its first process exits, every process with its mark in the
 * environment is killed, because a container terminates with its first process. Processes outlive the agent. The next
 * agent finds them by their record. It is not their parent, so it does not see their exit codes.
 *
 * Durations and deadlines are monotonic. The pod's status has times of the wall clock.
 */
import { defined } from '../../../shared/domain/defined.ts';
import type { KubePod } from '../../../shared/kube/types.ts';
import type { Log } from '../../../shared/ports/log.ts';
import {
  type LogQuery,
  LogUnavailableError,
  type PodUsage,
  type RunningContainer,
  type RunningPod,
} from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { formatGoDuration } from '../../rules/go-duration.ts';
import { restartPolicyOf } from '../../rules/pod-status.ts';
import { nextBackOff, type RestartPolicy, restarts } from '../../rules/restart-back-off.ts';
import type { PodCgroups } from '../cgroup/pod-cgroups.ts';
import { ContainerStart, type Terminated } from './container-start.ts';
import { boundLog, type LogLimits, recordOutputTime, removeOlderRuns } from './log-file.ts';
import { readLog } from './log-reader.ts';
import { PodProcesses } from './pod-processes.ts';
import type { ContainerRecord, PodRecord } from './pod-record.ts';
import { PodStop } from './pod-stop.ts';
import { podUsage } from './pod-usage.ts';
import { type MarkedProcess, signal } from './process-table.ts';

/** Wait before a container is started again after the machine lacked resources. Milliseconds. */
const START_AGAIN_MS = 10_000;
/** The kubelet's exit code for an exit that was not observed. */
const EXIT_UNKNOWN = 137;

export interface ExecPodDependencies {
  readonly time: AgentTime;
  readonly log: Log;
  readonly bootId: string;
  readonly directory: string;
  readonly logLimits: LogLimits;
  readonly hostIp: () => string | undefined;
  readonly onChange: () => void;
  readonly cgroups?: PodCgroups | undefined;
}

export class ExecPod {
  readonly #dependencies: ExecPodDependencies;
  readonly #processes: PodProcesses;
  readonly #start: ContainerStart;
  readonly #stop: PodStop;
  readonly #policy: RestartPolicy;
  /** By container: what its file was like at the last look. */
  readonly #seenOutput = new Map<string, string | undefined>();

  constructor(record: PodRecord, dependencies: ExecPodDependencies) {
    this.#dependencies = dependencies;
    this.#policy = restartPolicyOf(record.pod);
    this.#processes = new PodProcesses(record, dependencies);
    this.#start = new ContainerStart(this.#processes, {
      ...dependencies,
      onEnd: (container, state) => this.#end(container, state),
      onShortage: (container, cause) => this.#startLater(container, cause),
    });
    this.#stop = new PodStop(this.#processes, { ...dependencies, check: () => this.check() });
  }

  view(): RunningPod {
    const { record, pod, uid } = this.#processes;
    return {
      uid,
      namespace: pod.metadata.namespace ?? '',
      name: pod.metadata.name ?? '',
      initContainers: record.containers.filter(({ kind }) => kind !== 'main').map(viewOf),
      containers: record.containers.filter(({ kind }) => kind === 'main').map(viewOf),
    };
  }

  /** Starts the containers that are due. */
  advance(): void {
    const { record, isDetached } = this.#processes;
    if (isDetached || record.stopped) return;
    for (const container of record.containers) {
      if (container.kind === 'main') {
        record.initialised = true;
        this.#keepRunning(container, this.#policy);
      } else if (container.kind === 'sidecar') {
        this.#keepRunning(container, 'Always');
        if (!record.initialised && container.state.kind !== 'running') return;
      } else if (!record.initialised && !hasSucceeded(container)) {
        this.#keepRunning(container, this.#policy === 'Always' ? 'OnFailure' : this.#policy);
        return;
      }
    }
  }

  /** Adopts the processes of the previous agent. @param marked all processes with a mark */
  adopt(marked: readonly MarkedProcess[]): void {
    const processes = this.#processes;
    for (const container of processes.record.containers) this.#adoptRestart(container);
    // If a record could not be written, it does not have the last start. Processes of that start are killed.
    const live = processes.running().filter((each) => processes.mayBeAlive(each));
    for (const { pid, mark } of marked) {
      if (!mark.startsWith(`${processes.uid}/`)) continue;
      if (!live.some((container) => processes.isMarkOf(container, mark))) signal(pid, 'SIGKILL');
    }
    processes.discardRunsExcept(processes.running());
    this.check();
  }

  /** Checks processes that are not our children, and a record that could not be written. */
  check(): void {
    const processes = this.#processes;
    processes.saveAgainIfDue();
    for (const container of processes.record.containers) {
      const { state } = container;
      if (state.kind !== 'running') continue;
      const child = processes.children.get(container);
      if (child !== undefined) {
        if (container.process === undefined && processes.learnIdentity(container, child)) processes.save();
        continue;
      }
      if (processes.mayBeAlive(container)) continue;
      this.#end(container, {
        kind: 'terminated',
        exitCode: EXIT_UNKNOWN,
        reason: 'ContainerStatusUnknown',
        message: 'The container terminated while no agent was its parent. Its exit code is unknown',
        startedAtMs: state.startedAtMs,
        finishedAtMs: this.#dependencies.time.nowMs(),
      });
    }
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
    for (const container of this.#processes.record.containers) {
      if (container.containerId === undefined) continue;
      const { name } = container;
      this.#seenOutput.set(name, recordOutputTime(this.#processes.logOf(container), this.#seenOutput.get(name)));
    }
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
    return readLog({ ...this.#processes.logOf(container), run }, query, {
      time: this.#dependencies.time,
      isRunning: () =>
        container.restartCount === run && container.state.kind === 'running' && !this.#processes.isDetached,
      stop,
    });
  }

  /** Writes the processors of the running containers again. */
  place(): void {
    const { pod } = this.#processes;
    for (const { name, restartCount } of this.#processes.running()) {
      this.#dependencies.cgroups?.place(pod, name, restartCount);
    }
  }

  /** @throws Error when it cannot be measured */
  usage(withStorage: boolean, volumesDirectory: string): Promise<PodUsage> {
    const { record, pod } = this.#processes;
    const { directory, cgroups } = this.#dependencies;
    return podUsage({ pod, containers: record.containers, directory, volumesDirectory, cgroups }, withStorage);
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

  /** Starts a stopped pod again. */
  revive(): void {
    this.#processes.record.stopped = false;
    this.#processes.changed();
    this.advance();
  }

  /** @throws Error when processes still exist after SIGKILL */
  stop(graceSeconds: number): Promise<void> {
    return this.#stop.stop(graceSeconds);
  }

  /** Leaves the processes running. No other method has an effect afterwards. */
  detach(): void {
    this.#processes.detach();
  }

  #keepRunning(container: ContainerRecord, policy: RestartPolicy): void {
    const { state } = container;
    if (state.kind === 'running') return;
    if (state.kind === 'waiting' && container.restart === undefined) {
      const isFirst = container.containerId === undefined && state.reason !== 'CreateContainerConfigError';
      if (isFirst) this.#start.start(container);
      return;
    }
    if (state.kind === 'terminated') {
      if (!restarts(policy, state.exitCode)) return;
      this.#backOff(container, state);
    }
    const leftMs = (container.restart?.monotonicMs ?? 0) - this.#dependencies.time.monotonicMs();
    if (leftMs > 0) {
      this.#processes.after(leftMs, () => this.advance());
      return;
    }
    delete container.restart;
    this.#start.start(container);
  }

  #backOff(container: ContainerRecord, ended: Terminated): void {
    const { pod, uid } = this.#processes;
    const waitMs = nextBackOff(container.backOffMs, container.ranMs ?? 0);
    container.backOffMs = waitMs;
    container.restart = this.#processes.momentIn(waitMs);
    container.lastState = ended;
    if (container.containerId !== undefined) container.lastContainerId = container.containerId;
    if (waitMs === 0) return;
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
    processes.changed();
    this.advance();
  }

  /** Continues the restart wait of the previous agent. After a boot there is no wait left. */
  #adoptRestart(container: ContainerRecord): void {
    if (container.state.kind !== 'waiting') return;
    const { reason } = container.state;
    if (reason !== 'CrashLoopBackOff' && reason !== 'CreateContainerError') return;
    const longestMs = reason === 'CrashLoopBackOff' ? (container.backOffMs ?? 0) : START_AGAIN_MS;
    const leftMs = this.#processes.leftMs(container.restart);
    container.restart = this.#processes.momentIn(Math.min(leftMs, longestMs));
  }
}

const hasSucceeded = ({ state }: ContainerRecord): boolean => state.kind === 'terminated' && state.exitCode === 0;

const viewOf = (container: ContainerRecord): RunningContainer => {
  const { name, state, restartCount, lastState, lastContainerId, containerId } = container;
  return { name, state, restartCount, ...defined({ lastState, lastContainerId, containerId }) };
};
