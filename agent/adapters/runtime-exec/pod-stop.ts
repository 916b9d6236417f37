/**
 * Stops a pod: hooks and SIGTERM, then SIGKILL at the deadline, then every process with a mark of the pod. A running
 * stop can only be shortened.
 */
import type { Log } from '../../../shared/observability/log.ts';
import type { AgentTime } from '../../ports/time.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import type { ContainerEngine } from './container-engine.ts';
import type { ContainerHooks } from './container-hooks.ts';
import { KILLED_WAIT_MS, POLL_MS, type PodProcesses } from './pod-processes.ts';
import type { ContainerRecord } from './pod-record.ts';

export interface PodStopDependencies {
  readonly time: AgentTime;
  readonly log: Log;
  readonly hooks: ContainerHooks;
  readonly engine: Pick<ContainerEngine, 'signal' | 'endStarts' | 'killAll'>;
  readonly onEvent: (event: NodeEvent) => void;
  /** Marks containers as terminated if their process no longer exists. */
  readonly check: () => void;
}

export class PodStop {
  readonly #processes: PodProcesses;
  readonly #dependencies: PodStopDependencies;
  /** Deadline of the current stop. Monotonic milliseconds. */
  #underWay: { deadlineMs: number; readonly over: Promise<void> } | undefined;
  /** The runs, by containerId, that the last `kill` was for. */
  #killed: ReadonlySet<string> = new Set();

  constructor(processes: PodProcesses, dependencies: PodStopDependencies) {
    this.#processes = processes;
    this.#dependencies = dependencies;
  }

  isUnderWay(): boolean {
    return this.#underWay !== undefined;
  }

  stop(graceSeconds: number): Promise<void> {
    const processes = this.#processes;
    const deadlineMs = this.#dependencies.time.monotonicMs() + graceSeconds * 1_000;
    if (this.#underWay !== undefined) {
      if (deadlineMs < this.#underWay.deadlineMs) {
        this.#underWay.deadlineMs = deadlineMs;
        processes.wake();
      }
      return this.#underWay.over;
    }
    if (processes.record.stopped && processes.running().length === 0) return this.#dependencies.engine.killAll();
    this.#cancelRestarts();
    const { promise: over, resolve, reject } = Promise.withResolvers<void>();
    this.#underWay = { deadlineMs, over };
    processes.changed();
    this.#stopAll(this.#underWay).then(resolve, reject);
    const forget = (): void => {
      this.#underWay = undefined;
    };
    over.then(forget, forget);
    return over;
  }

  #cancelRestarts(): void {
    const { record } = this.#processes;
    record.stopped = true;
    delete record.restartsAllFor;
    for (const container of record.containers) {
      // A container that waits for its restart has terminated.
      if (container.state.kind === 'waiting' && container.restart !== undefined && container.lastState !== undefined) {
        container.state = container.lastState;
        delete container.lastState;
      }
      delete container.restart;
      delete container.restartsForChange;
    }
  }

  async #stopAll(until: { readonly deadlineMs: number }): Promise<void> {
    const processes = this.#processes;
    const { time, check } = this.#dependencies;
    const leftMs = (): number => until.deadlineMs - time.monotonicMs();
    const running = processes.running();
    await this.#terminateAll(
      running.filter(({ kind }) => kind !== 'sidecar'),
      leftMs,
    );
    // Sidecars terminate after the containers that use them, the last one first.
    for (const sidecar of running.filter(({ kind }) => kind === 'sidecar').reverse()) {
      await this.#terminateAll([sidecar], leftMs);
    }
    check();
    await this.#killRunning();
    if (processes.running().length > 0) throw new Error(`pod ${processes.uid} was released before it terminated`);
    await this.#dependencies.engine.killAll();
  }

  /** Resolves when these have terminated, or the grace period is over. */
  async #terminateAll(containers: readonly ContainerRecord[], leftMs: () => number): Promise<void> {
    const processes = this.#processes;
    if (leftMs() > 0) await Promise.all(containers.map((each) => this.#terminate(each, leftMs)));
    while (containers.some(({ state }) => state.kind === 'running') && this.#mayWait(leftMs)) {
      await processes.pause(Math.min(leftMs(), POLL_MS));
      this.#dependencies.check();
    }
  }

  /** Kills all containers of a pod that keeps running, without hooks and grace. @throws Error as `stop` */
  async kill(): Promise<void> {
    const running = this.#processes.running();
    for (const { name, containerId = '' } of running) {
      // A kill that failed is repeated.
      if (this.#killed.has(containerId)) continue;
      this.#dependencies.onEvent({ type: 'Normal', reason: 'Killing', message: `Stopping container ${name}` });
    }
    this.#killed = new Set(running.map(({ containerId = '' }) => containerId));
    await this.#dependencies.engine.endStarts();
    await this.#killRunning();
  }

  async #killRunning(): Promise<void> {
    const processes = this.#processes;
    const { time, check } = this.#dependencies;
    const killedAtMs = time.monotonicMs();
    while (processes.running().length > 0 && !processes.isDetached) {
      if (time.monotonicMs() - killedAtMs >= KILLED_WAIT_MS) {
        throw new Error(`processes of pod ${processes.uid} still exist ${KILLED_WAIT_MS} ms after SIGKILL`);
      }
      for (const container of processes.running()) this.#dependencies.engine.signal(container, 'SIGKILL');
      await processes.pause(POLL_MS);
      check();
    }
  }

  /**
   * Terminates one container of a pod that keeps running. Its restart policy applies afterwards.
   *
   * @returns once this run of it has terminated, or survives SIGKILL, as a process that waits for a dead disk
   */
  async terminateOne(container: ContainerRecord, graceSeconds: number): Promise<void> {
    const processes = this.#processes;
    const { time, log, onEvent, check } = this.#dependencies;
    const run = container.containerId;
    const isSameRun = (): boolean =>
      container.containerId === run && container.state.kind === 'running' && !processes.isDetached;
    const deadlineMs = time.monotonicMs() + graceSeconds * 1_000;
    const leftMs = (): number => deadlineMs - time.monotonicMs();
    await this.#terminate(container, leftMs);
    while (isSameRun() && leftMs() > 0) {
      await processes.pause(Math.min(leftMs(), POLL_MS));
      check();
    }
    const killUntilMs = time.monotonicMs() + KILLED_WAIT_MS;
    while (isSameRun() && time.monotonicMs() < killUntilMs) {
      this.#dependencies.engine.signal(container, 'SIGKILL');
      await processes.pause(POLL_MS);
      check();
    }
    if (!isSameRun()) return;
    const { name } = container;
    log.warn('a container survives SIGKILL', { podUid: processes.uid, container: name });
    const message = `container ${name} still runs ${KILLED_WAIT_MS / 1_000} s after SIGKILL`;
    onEvent({ type: 'Warning', reason: 'FailedKillPod', message });
  }

  /** The preStop hook, then SIGTERM. The time of the hook is part of the grace period. */
  async #terminate(container: ContainerRecord, leftMs: () => number): Promise<void> {
    const processes = this.#processes;
    const run = container.containerId;
    const { hooks, onEvent, log } = this.#dependencies;
    // The next agent continues the stop, if there is one.
    if (processes.isDetached) return;
    const { preStop } = processes.specOf(container).lifecycle ?? {};
    if (preStop !== undefined && leftMs() > 0) {
      const why = await hooks.run(
        container,
        preStop,
        () => this.#mayWait(leftMs) && container.state.kind === 'running',
      );
      if (why !== undefined) {
        log.warn('a preStop hook failed', { podUid: processes.uid, container: container.name, why });
        onEvent({ type: 'Warning', reason: 'FailedPreStopHook', message: 'PreStopHook failed' });
      }
    }
    if (!processes.isDetached && container.containerId === run) this.#dependencies.engine.signal(container, 'SIGTERM');
  }

  #mayWait(leftMs: () => number): boolean {
    return leftMs() > 0 && !this.#processes.isDetached;
  }
}
