/**
 * The processes of one pod and the record of them, as the steps of its life share them.
 *
 * The record on disk serves the next agent alone. A failed write changes nothing about what runs: it is tried again later,
 * and is a complaint of the pod meanwhile.
 */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { KubeObject } from '../../../shared/kube/types.ts';
import type { Log } from '../../../shared/ports/log.ts';
import type { AgentTime } from '../../ports/time.ts';
import { type ContainerRecord, type Moment, type PodRecord, writeRecord } from './pod-record.ts';
import { identify, isAlive, markedProcesses, signal } from './process-table.ts';

/** Time for killed processes to terminate; one that needs longer hangs in the kernel. Milliseconds. */
export const KILLED_WAIT_MS = 10_000;
/** Between two looks at processes that are not children of this one. Milliseconds. */
export const POLL_MS = 250;
/** First wait for killed processes; it doubles up to POLL_MS. Milliseconds. */
const KILLED_POLL_MS = 10;
/** Between two tries to write the record. Milliseconds. */
const SAVE_AGAIN_MS = 10_000;

export interface PodProcessesDependencies {
  readonly time: AgentTime;
  readonly log: Log;
  readonly bootId: string;
  /** For the record and the output of the pod. */
  readonly directory: string;
  readonly onChange: () => void;
}

export class PodProcesses {
  readonly record: PodRecord;
  /** Processes that this agent started and that run, or whose end is not known yet. */
  readonly children = new Map<ContainerRecord, ChildProcess>();
  readonly #dependencies: PodProcessesDependencies;
  readonly #detached = new AbortController();
  /** Aborted and replaced at each change. */
  #change = new AbortController();
  #unsaved: { readonly why: string; readonly triedAtMs: number } | undefined;

  constructor(record: PodRecord, dependencies: PodProcessesDependencies) {
    this.record = record;
    this.#dependencies = dependencies;
  }

  get pod(): KubeObject {
    return this.record.pod;
  }

  get uid(): string {
    return this.pod.metadata.uid ?? '';
  }

  /** Whether the agent has left the processes alone; nothing may happen to them any more. */
  get isDetached(): boolean {
    return this.#detached.signal.aborted;
  }

  detach(): void {
    this.#detached.abort();
  }

  logPath(container: ContainerRecord): string {
    return join(this.#dependencies.directory, `${container.name}.log`);
  }

  /** Differs between starts, because the rest of one start is killed while the next one runs. */
  markOf(container: ContainerRecord): string {
    return `${this.uid}/${container.name}/${container.restartCount}`;
  }

  /** Whether a mark is of this start of the container. Agents before this one left out the start. */
  isMarkOf(container: ContainerRecord, mark: string): boolean {
    return mark === this.markOf(container) || mark === `${this.uid}/${container.name}`;
  }

  running(): ContainerRecord[] {
    return this.record.containers.filter(({ state }) => state.kind === 'running');
  }

  // ---- time

  momentIn(milliseconds: number): Moment {
    const { bootId, time } = this.#dependencies;
    return { bootId, monotonicMs: time.monotonicMs() + milliseconds };
  }

  /** Milliseconds; undefined when the machine has booted since. */
  elapsedMs(since: Moment | undefined): number | undefined {
    const { bootId, time } = this.#dependencies;
    const milliseconds = since?.bootId === bootId ? time.monotonicMs() - since.monotonicMs : -1;
    return milliseconds < 0 ? undefined : milliseconds;
  }

  /** Milliseconds, never negative; 0 when the machine has booted since. */
  leftMs(until: Moment | undefined): number {
    const { bootId, time } = this.#dependencies;
    return until?.bootId === bootId ? Math.max(0, until.monotonicMs - time.monotonicMs()) : 0;
  }

  /** Until the next change, and no longer than this. */
  pause(milliseconds: number): Promise<void> {
    const signals = [this.#change.signal, this.#detached.signal];
    return this.#dependencies.time.sleep(milliseconds, AbortSignal.any(signals));
  }

  after(milliseconds: number, act: () => void): void {
    void this.#dependencies.time.sleep(milliseconds, this.#detached.signal).then(() => this.guarded(act));
  }

  /** For callbacks, whose errors have no caller to handle them. */
  guarded(act: () => void): void {
    try {
      act();
    } catch (cause) {
      this.#dependencies.log.error('a pod could not be checked', { podUid: this.uid, cause: String(cause) });
    }
  }

  // ---- changes and the record

  changed(): void {
    this.save();
    this.wake();
    this.#dependencies.onChange();
  }

  /** Ends the pauses under way. */
  wake(): void {
    const before = this.#change;
    this.#change = new AbortController();
    before.abort();
  }

  save(): void {
    if (this.isDetached) return;
    const { directory, log, time } = this.#dependencies;
    try {
      writeRecord(directory, this.record);
      if (this.#unsaved !== undefined) log.info('the record of a pod is written again', { podUid: this.uid });
      this.#unsaved = undefined;
    } catch (cause) {
      const why = (cause as Error).message;
      if (this.#unsaved === undefined) {
        log.error('the record of a pod cannot be written', { podUid: this.uid, why });
      }
      this.#unsaved = { why, triedAtMs: time.monotonicMs() };
    }
  }

  saveAgainIfDue(): void {
    if (this.#unsaved === undefined) return;
    if (this.#dependencies.time.monotonicMs() - this.#unsaved.triedAtMs >= SAVE_AGAIN_MS) this.save();
  }

  /** Why the record on disk is older than the pod; undefined while it is current. */
  complaint(): string | undefined {
    return this.#unsaved?.why;
  }

  // ---- processes

  /** Records which process a container is. False when /proc cannot be read now. */
  learnIdentity(container: ContainerRecord, { pid = 0 }: ChildProcess): boolean {
    try {
      const found = identify(pid, this.#dependencies.bootId);
      if (found !== undefined) container.process = found;
      return true;
    } catch {
      return false;
    }
  }

  /** True also when /proc cannot be read: waiting does less harm than ending a container that runs. */
  mayBeAlive({ process }: ContainerRecord): boolean {
    try {
      return process !== undefined && isAlive(process, this.#dependencies.bootId);
    } catch {
      return true;
    }
  }

  /** Signals only a process that is certainly the container's, because process ids are used again. */
  signalGroup(container: ContainerRecord, name: 'SIGTERM' | 'SIGKILL'): void {
    // The id of a child stays its own until this process knows its end.
    const pid = this.children.get(container)?.pid ?? this.#adoptedPid(container);
    const refusal = pid === undefined ? undefined : signal(-pid, name);
    if (refusal === undefined) return;
    this.#dependencies.log.warn('a process cannot be signalled', { podUid: this.uid, pid, signal: name, refusal });
  }

  #adoptedPid({ process }: ContainerRecord): number | undefined {
    try {
      return process !== undefined && isAlive(process, this.#dependencies.bootId) ? process.pid : undefined;
    } catch {
      // The next poll asks again.
      return undefined;
    }
  }

  killAllMarked(): Promise<void> {
    return this.killMarked((mark) => mark.startsWith(`${this.uid}/`));
  }

  /**
   * Kills until no process with such a mark is left: one may start others meanwhile. The first pass is over before this
   * returns its promise.
   *
   * @throws Error when some are left after KILLED_WAIT_MS
   */
  async killMarked(isMeant: (mark: string) => boolean): Promise<void> {
    const { time } = this.#dependencies;
    const untilMs = time.monotonicMs() + KILLED_WAIT_MS;
    for (let waitMs = KILLED_POLL_MS; !this.isDetached; waitMs = Math.min(2 * waitMs, POLL_MS)) {
      const why = this.#killMarkedOnce(isMeant);
      if (why === undefined) return;
      if (time.monotonicMs() >= untilMs) throw new Error(why);
      await time.sleep(waitMs, this.#detached.signal);
    }
  }

  /** Why some may be left; undefined when there were none. */
  #killMarkedOnce(isMeant: (mark: string) => boolean): string | undefined {
    try {
      const left = markedProcesses().filter(({ mark }) => isMeant(mark));
      if (left.length === 0) return undefined;
      let why = `${left.length} processes of pod ${this.uid} still exist ${KILLED_WAIT_MS} ms after SIGKILL`;
      for (const { pid } of left) {
        const refusal = signal(pid, 'SIGKILL');
        if (refusal !== undefined) why = `process ${pid} of pod ${this.uid} cannot be killed: ${refusal}`;
      }
      return why;
    } catch (cause) {
      return `the processes of pod ${this.uid} cannot be listed: ${(cause as Error).message}`;
    }
  }
}
