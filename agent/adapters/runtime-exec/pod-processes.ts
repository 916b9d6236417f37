/**
 * The processes of one pod and their record, shared by the steps of the pod's life.
 *
 * Only the next agent reads the record on disk. A failed write does not affect running processes: it is retried later,
 * and the pod has a complaint meanwhile.
 */
import type { ChildProcess } from 'node:child_process';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import type { Container, KubePod } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { AgentTime } from '../../ports/time.ts';
import { memoryLimitBytes, oomScoreAdjust, podCgroup } from '../../rules/cgroup-values.ts';
import { containersOf, type Container as LimitedContainer } from '../../rules/pod-containers.ts';
import { groupOf, type PodCgroups } from '../cgroup/pod-cgroups.ts';
import type { Launch } from './launch.ts';
import type { LogName } from './log-file.ts';
import { type ContainerRecord, containerSpec, type Moment, type PodRecord, writeRecord } from './pod-record.ts';
import { linuxProcesses, type ProcessTable, type SignalName } from './process-table.ts';

/** Time for killed processes to terminate; a process that needs longer hangs in the kernel. Milliseconds. */
export const KILLED_WAIT_MS = 10_000;
/** Interval of the checks of processes that are not our children. Milliseconds. */
export const POLL_MS = 250;
/** First wait for killed processes; it doubles up to POLL_MS. Milliseconds. */
const KILLED_POLL_MS = 10;
/** Interval of the retries to write the record. Milliseconds. */
const SAVE_AGAIN_MS = 10_000;

export interface PodProcessesDependencies {
  readonly time: AgentTime;
  readonly log: Log;
  readonly bootId: string;
  /** For the record and the output of the pod. */
  readonly directory: string;
  readonly onChange: () => void;
  /** Absent: pods have no groups. */
  readonly cgroups?: PodCgroups | undefined;
  /** Default: those of Linux. */
  readonly processTable?: ProcessTable | undefined;
}

export type LaunchLimits = Pick<Launch, 'enter' | 'dataBytesMax' | 'oomScoreAdjust'>;

export class PodProcesses {
  readonly record: PodRecord;
  /** Processes that this agent started and that have not been observed to exit. */
  readonly children = new Map<ContainerRecord, ChildProcess>();
  readonly table: ProcessTable;
  readonly #dependencies: PodProcessesDependencies;
  readonly #detached = new AbortController();
  /** Aborted and replaced at each change. */
  #change = new AbortController();
  #unsaved: { readonly why: string; readonly triedAtMs: number } | undefined;

  constructor(record: PodRecord, dependencies: PodProcessesDependencies) {
    this.record = record;
    this.#dependencies = dependencies;
    this.table = dependencies.processTable ?? linuxProcesses;
  }

  get pod(): KubePod {
    return this.record.pod;
  }

  get uid(): string {
    return this.pod.metadata.uid ?? '';
  }

  /** Whether the pod is detached: the processes stay, and this agent does nothing with them any more. */
  get isDetached(): boolean {
    return this.#detached.signal.aborted;
  }

  detach(): void {
    this.#detached.abort();
  }

  /** For the record and the output of the pod. */
  get directory(): string {
    return this.#dependencies.directory;
  }

  /** The output of the current run of the container. */
  logOf({ name, restartCount }: ContainerRecord): LogName {
    return { directory: this.#dependencies.directory, container: name, run: restartCount };
  }

  specOf({ name }: ContainerRecord): Container {
    return containerSpec(this.pod, name) ?? {};
  }

  /** The termination message of the container is in this file. */
  terminationLogOf({ name }: ContainerRecord): string {
    return join(this.#dependencies.directory, `${name}.termination-log`);
  }

  /** Different for each start, because the rest of one start is killed while the next one runs. */
  markOf(container: ContainerRecord): string {
    return `${this.uid}/${container.name}/${container.restartCount}`;
  }

  /** Whether this mark belongs to this start of the container. Marks of earlier agents lack the start. */
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

  /** Waits until the next change, and no longer than this. */
  pause(milliseconds: number): Promise<void> {
    const signals = [this.#change.signal, this.#detached.signal];
    return this.#dependencies.time.sleep(milliseconds, AbortSignal.any(signals));
  }

  after(milliseconds: number, act: () => void): void {
    void this.#dependencies.time.sleep(milliseconds, this.#detached.signal).then(() => this.guarded(act));
  }

  /** For callbacks: they have no caller that could handle their errors. */
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

  /** Resolves all current pauses. */
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

  // ---- limits

  /** Creates the group of the current run. @throws CgroupError */
  limitsOf(record: ContainerRecord): LaunchLimits {
    const { cgroups } = this.#dependencies;
    const { name, restartCount } = record;
    const container = this.limited(record);
    const group = cgroups?.prepare(this.pod, name, restartCount);
    const memoryBytes = container === undefined ? 0 : memoryLimitBytes(container);
    return {
      enter: group === undefined ? undefined : (pid) => cgroups?.tree.enter(group, pid),
      dataBytesMax: memoryBytes > 0 && cgroups?.has('memory') !== true ? memoryBytes : undefined,
      oomScoreAdjust: container === undefined ? 0 : oomScoreAdjust(this.pod, container, totalmem()),
    };
  }

  /** The spec of a container, with the limits of its next run. */
  limited(record: ContainerRecord): LimitedContainer | undefined {
    if (record.state.kind !== 'running') delete record.resources;
    return containersOf(this.pod).find(({ name }) => name === record.name);
  }

  /** Whether the kernel killed a process of the current run for lack of memory. False if that cannot be read. */
  ranOutOfMemory({ name, restartCount }: ContainerRecord): boolean {
    try {
      return (this.#dependencies.cgroups?.oomKills(this.pod, name, restartCount) ?? 0) > 0;
    } catch {
      return false;
    }
  }

  /** Kills and removes groups of runs that are not these. */
  discardRunsExcept(live: readonly ContainerRecord[]): void {
    const { cgroups } = this.#dependencies;
    const path = podCgroup(this.pod);
    for (const run of cgroups?.tree.children(path) ?? []) {
      if (!live.some(({ name, restartCount }) => run === `${name}.${restartCount}`)) cgroups?.discard(`${path}/${run}`);
    }
  }

  // ---- processes

  /** Records the identity of the container's process. False if /proc cannot be read now. */
  learnIdentity(container: ContainerRecord, { pid = 0 }: ChildProcess): boolean {
    try {
      const found = this.table.identify(pid, this.#dependencies.bootId);
      if (found !== undefined) container.process = found;
      return true;
    } catch {
      return false;
    }
  }

  /** Also true if /proc cannot be read: waiting does less harm than terminating a running container. */
  mayBeAlive({ process }: ContainerRecord): boolean {
    try {
      return process !== undefined && this.table.isAlive(process, this.#dependencies.bootId);
    } catch {
      return true;
    }
  }

  /** Signals a process only if it certainly belongs to the container, because process ids are reused. */
  signalGroup(container: ContainerRecord, name: SignalName): void {
    // The id of a child is not reused until this process has observed its exit.
    const pid = this.children.get(container)?.pid ?? this.#adoptedPid(container);
    const refusal = pid === undefined ? undefined : this.table.signal(-pid, name);
    if (refusal === undefined) return;
    this.#dependencies.log.warn('a process cannot be signalled', { podUid: this.uid, pid, signal: name, refusal });
  }

  /** Signals the first process of a container that this process is not the parent of. */
  signalFirst(container: ContainerRecord, name: NodeJS.Signals): void {
    const pid = this.#adoptedPid(container);
    const refusal = pid === undefined ? undefined : this.table.signal(pid, name);
    if (refusal === undefined) return;
    this.#dependencies.log.warn('a process cannot be signalled', { podUid: this.uid, pid, signal: name, refusal });
  }

  #adoptedPid({ process }: ContainerRecord): number | undefined {
    try {
      return process !== undefined && this.table.isAlive(process, this.#dependencies.bootId) ? process.pid : undefined;
    } catch {
      // The next poll reads it again.
      return undefined;
    }
  }

  /** Kills all processes of the pod. @throws Error when some still exist after KILLED_WAIT_MS */
  killAll(): Promise<void> {
    return this.#killUntilNone((mark) => mark.startsWith(`${this.uid}/`), podCgroup(this.pod));
  }

  /** Kills the rest of the current run. @throws Error when some still exist after KILLED_WAIT_MS */
  killRun(container: ContainerRecord): Promise<void> {
    const mark = this.markOf(container);
    const unnumbered = `${this.uid}/${container.name}`;
    const group = groupOf(this.pod, container.name, container.restartCount);
    return this.#killUntilNone((each) => each === mark || each === unnumbered, group);
  }

  /**
   * Kills the group, and the processes with selected marks: those of an earlier agent are in no group. Repeats until
   * none exists, because a process may start others meanwhile. The first pass is synchronous. Then removes the group.
   */
  async #killUntilNone(isSelected: (mark: string) => boolean, group: string): Promise<void> {
    const { time } = this.#dependencies;
    const untilMs = time.monotonicMs() + KILLED_WAIT_MS;
    for (let waitMs = KILLED_POLL_MS; !this.isDetached; waitMs = Math.min(2 * waitMs, POLL_MS)) {
      const why = this.#killOnce(isSelected, group);
      if (why === undefined) {
        this.#dependencies.cgroups?.discard(group);
        return;
      }
      if (time.monotonicMs() >= untilMs) throw new Error(why);
      await time.sleep(waitMs, this.#detached.signal);
    }
  }

  /** One pass. Returns why selected processes may still exist, undefined if there were none. */
  #killOnce(isSelected: (mark: string) => boolean, group: string): string | undefined {
    const tree = this.#dependencies.cgroups?.tree;
    try {
      const grouped = tree?.processes(group) ?? [];
      if (grouped.length > 0) tree?.kill(group);
      const marked = this.table.marked().filter(({ mark }) => isSelected(mark));
      const left = [...new Set([...grouped, ...marked.map(({ pid }) => pid)])];
      if (left.length === 0) return undefined;
      let why = `${left.length} processes of pod ${this.uid} still exist ${KILLED_WAIT_MS} ms after SIGKILL`;
      for (const { pid } of marked) {
        const refusal = this.table.signal(pid, 'SIGKILL');
        if (refusal !== undefined) why = `process ${pid} of pod ${this.uid} cannot be killed: ${refusal}`;
      }
      return why;
    } catch (cause) {
      return `the processes of pod ${this.uid} cannot be listed: ${(cause as Error).message}`;
    }
  }
}
