/**
 * Stops a pod: hooks and SIGTERM, then SIGKILL at the deadline, then every process with a mark of the pod. A running
 * stop can only be shortened.
 */
import type { ChildProcess } from 'node:child_process';
import type { Log } from '../../../shared/ports/log.ts';
import type { AgentTime } from '../../ports/time.ts';
import { type CommandLine, commandLine } from './command-line.ts';
import { startProcess } from './container-start.ts';
import { openLog } from './log-file.ts';
import { KILLED_WAIT_MS, POLL_MS, type PodProcesses } from './pod-processes.ts';
import { type ContainerRecord, containerSpec } from './pod-record.ts';
import { signal } from './process-table.ts';

export interface PodStopDependencies {
  readonly time: AgentTime;
  readonly log: Log;
  readonly hostIp: () => string | undefined;
  /** Marks containers as terminated if their process no longer exists. */
  readonly check: () => void;
}

export class PodStop {
  readonly #processes: PodProcesses;
  readonly #dependencies: PodStopDependencies;
  /** Deadline of the current stop. Monotonic milliseconds. */
  #underWay: { deadlineMs: number; readonly over: Promise<void> } | undefined;

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
    if (processes.record.stopped && processes.running().length === 0) return processes.killAll();
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
    for (const container of record.containers) {
      // A container that waits for its restart has terminated.
      if (container.state.kind === 'waiting' && container.restart !== undefined && container.lastState !== undefined) {
        container.state = container.lastState;
        delete container.lastState;
      }
      delete container.restart;
    }
  }

  async #stopAll(until: { readonly deadlineMs: number }): Promise<void> {
    const processes = this.#processes;
    const { time, check } = this.#dependencies;
    const leftMs = (): number => until.deadlineMs - time.monotonicMs();
    if (leftMs() > 0) await Promise.all(processes.running().map((each) => this.#terminate(each, leftMs)));
    while (processes.running().length > 0 && this.#mayWait(leftMs)) {
      await processes.pause(Math.min(leftMs(), POLL_MS));
      check();
    }
    await this.#killRunning();
    if (processes.running().length > 0) throw new Error(`pod ${processes.uid} was released before it terminated`);
    await processes.killAll();
  }

  async #killRunning(): Promise<void> {
    const processes = this.#processes;
    const { time, check } = this.#dependencies;
    const killedAtMs = time.monotonicMs();
    while (processes.running().length > 0 && !processes.isDetached) {
      if (time.monotonicMs() - killedAtMs >= KILLED_WAIT_MS) {
        throw new Error(`processes of pod ${processes.uid} still exist ${KILLED_WAIT_MS} ms after SIGKILL`);
      }
      for (const container of processes.running()) processes.signalGroup(container, 'SIGKILL');
      await processes.pause(POLL_MS);
      check();
    }
  }

  /** The preStop hook, then SIGTERM. The time of the hook is part of the grace period. */
  async #terminate(container: ContainerRecord, leftMs: () => number): Promise<void> {
    const processes = this.#processes;
    const { time, hostIp } = this.#dependencies;
    const spec = containerSpec(processes.pod, container.name);
    const { exec, sleep } = spec?.lifecycle?.preStop ?? {};
    const line = commandLine(processes.pod, { ...spec, command: exec?.command ?? [], args: [] }, hostIp());
    if (line.kind === 'command') await this.#runHook(container, line, leftMs);
    const wakeAtMs = time.monotonicMs() + (sleep?.seconds ?? 0) * 1_000;
    while (time.monotonicMs() < wakeAtMs && container.state.kind === 'running' && this.#mayWait(leftMs)) {
      await processes.pause(Math.min(wakeAtMs - time.monotonicMs(), leftMs()));
    }
    if (!processes.isDetached) processes.signalGroup(container, 'SIGTERM');
  }

  #mayWait(leftMs: () => number): boolean {
    return leftMs() > 0 && !this.#processes.isDetached;
  }

  async #runHook(container: ContainerRecord, line: CommandLine, leftMs: () => number): Promise<void> {
    const processes = this.#processes;
    let isOver = false;
    let hook: ChildProcess;
    const finished = (fields: Record<string, unknown>): void => {
      isOver = true;
      if (fields['code'] !== 0) {
        const about = { podUid: processes.uid, container: container.name };
        this.#dependencies.log.warn('a preStop hook failed', { ...about, ...fields });
      }
      processes.wake();
    };
    try {
      hook = startProcess(processes, container, line, openLog(processes.logOf(container)));
    } catch (cause) {
      finished({ cause: String(cause) });
      return;
    }
    hook.once('error', (cause) => finished({ cause: cause.message }));
    hook.once('exit', (code, signalName) => finished({ code, signal: signalName }));
    while (!isOver && this.#mayWait(leftMs)) await processes.pause(leftMs());
    if (!isOver && hook.pid !== undefined) signal(-hook.pid, 'SIGKILL');
  }
}
