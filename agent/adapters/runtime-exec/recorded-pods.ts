/**
 * The pods of this runtime, each with its record on disk, so the next agent finds their processes.
 *
 * While the disk cannot be used, the constructor and the background checks do not throw. The complaint says why, and
 * `retry` tries again.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import { podCgroup } from '../../rules/cgroup-values.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import { ExecPod, type ExecPodDependencies } from './exec-pod.ts';
import { newRecord, type PodRecord, readRecord, removeQuietly, writeRecord } from './pod-record.ts';
import { isShortage, linuxProcesses, type MarkedProcess, type ProcessTable } from './process-table.ts';

export interface RecordedPodsOptions
  extends Pick<
    ExecPodDependencies,
    'time' | 'log' | 'logLimits' | 'hostIp' | 'cgroups' | 'commands' | 'openEngine' | 'probeClient' | 'processTable'
  > {
  /** Contains one directory per pod, with its uid as name. */
  readonly podsDirectory: string;
  readonly log: Log;
  readonly onChange: (podUid: string) => void;
  readonly onEvent: (pod: KubePod, event: NodeEvent) => void;
}

export class RecordedPods {
  readonly #options: RecordedPodsOptions;
  readonly #table: ProcessTable;
  readonly #pods = new Map<string, ExecPod>();
  #isStarted: (podUid: string, container: string) => boolean = () => true;
  #bootId = '';
  /** Why the records of the previous agent were not read; undefined once they were. */
  #readError: string | undefined = 'the records of pods have not been read yet';
  /** By uid of a removed pod: why its directory could not be removed. */
  readonly #removalErrors = new Map<string, string>();

  constructor(options: RecordedPodsOptions) {
    this.#options = options;
    this.#table = options.processTable ?? linuxProcesses;
    this.#readRecords();
  }

  /** Reads records that could not be read, and removes directories that could not be removed. */
  retry(): void {
    this.#readRecords();
    for (const podUid of [...this.#removalErrors.keys()]) this.#removeDirectory(podUid);
    // Without the records, every pod would be unknown.
    if (this.#readError === undefined) this.#options.cgroups?.sweep(new Set(this.#pods.keys()));
  }

  /** Why the pods of the previous agent are unknown; undefined when they are known. */
  readError(): string | undefined {
    return this.#readError;
  }

  /** The current error of the files, undefined if there is none. */
  complaint(): string | undefined {
    if (this.#readError !== undefined) return `the records of pods cannot be read: ${withoutPath(this.#readError)}`;
    const writeError = this.known()
      .map((pod) => pod.complaint())
      .find((why) => why !== undefined);
    if (writeError !== undefined) return `the records of pods cannot be written: ${withoutPath(writeError)}`;
    const [removalError] = this.#removalErrors.values();
    return removalError === undefined
      ? undefined
      : `directories of removed pods cannot be removed: ${withoutPath(removalError)}`;
  }

  /** @throws Error when the records of the previous agent have not been read */
  get(podUid: string): ExecPod | undefined {
    this.#requireRecords();
    return this.#pods.get(podUid);
  }

  /** @throws Error when the records of the previous agent have not been read */
  all(): readonly ExecPod[] {
    this.#requireRecords();
    return this.known();
  }

  /** The pods that are known so far, even if the records have not been read. */
  known(): readonly ExecPod[] {
    return [...this.#pods.values()];
  }

  /** Calls `check` for each pod. An error affects only its own pod. */
  checkEach(check: (pod: ExecPod) => void): void {
    for (const [podUid, pod] of this.#pods) {
      try {
        check(pod);
      } catch (cause) {
        this.#options.log.error('a pod could not be checked', { podUid, cause: String(cause) });
      }
    }
  }

  /** @throws Error when the record cannot be written: the next agent would start the pod a second time */
  add(uid: string, pod: KubePod): ExecPod {
    const directory = this.#directoryOf(uid);
    const record = newRecord(pod);
    try {
      writeRecord(directory, record);
    } catch (cause) {
      removeQuietly(directory);
      throw cause;
    }
    this.#removalErrors.delete(uid);
    return this.#keep(record);
  }

  /** Whether containers count as started, by their probes. */
  useStarted(isStarted: (podUid: string, container: string) => boolean): void {
    this.#isStarted = isStarted;
    for (const pod of this.known()) pod.advance();
  }

  remove(podUid: string): void {
    const pod = this.#pods.get(podUid)?.pod;
    this.#pods.delete(podUid);
    if (pod !== undefined) this.#options.cgroups?.discard(podCgroup(pod));
    this.applyNodeLimits();
    this.#removeDirectory(podUid);
  }

  /** The share of Burstable pods follows their requests. */
  applyNodeLimits(): void {
    this.#options.cgroups?.applyNode(this.known().map(({ pod }) => pod));
  }

  #requireRecords(): void {
    if (this.#readError !== undefined) throw new Error(`the records of pods cannot be read: ${this.#readError}`);
  }

  #directoryOf(uid: string): string {
    return join(this.#options.podsDirectory, uid);
  }

  #keep(record: PodRecord): ExecPod {
    const { time, log, logLimits, hostIp, commands, openEngine, probeClient, onChange, onEvent, cgroups } =
      this.#options;
    const uid = record.pod.metadata.uid ?? '';
    const pod = new ExecPod(record, {
      time,
      log,
      bootId: this.#bootId,
      directory: this.#directoryOf(uid),
      logLimits,
      hostIp,
      commands,
      openEngine,
      probeClient,
      isStarted: (container) => this.#isStarted(uid, container),
      onChange: () => onChange(uid),
      onEvent: (event) => onEvent(record.pod, event),
      cgroups,
      processTable: this.#table,
    });
    this.#pods.set(uid, pod);
    this.applyNodeLimits();
    return pod;
  }

  #readRecords(): void {
    if (this.#readError === undefined) return;
    try {
      this.#adoptPods();
      this.#readError = undefined;
    } catch (cause) {
      this.#readError = (cause as Error).message;
      this.#options.log.error('the records of pods cannot be read', { why: this.#readError });
    }
  }

  /** @throws Error when the pods of the previous agent cannot be determined */
  #adoptPods(): void {
    const { podsDirectory } = this.#options;
    makeDirectory(podsDirectory, 0o700);
    this.#bootId = this.#table.bootId();
    const marked = this.#table.marked();
    for (const uid of readdirSync(podsDirectory)) {
      const record = this.#pods.has(uid) ? undefined : this.#readRecord(uid, marked);
      if (record !== undefined) this.#keep(record).adopt(marked);
    }
  }

  /** Undefined if the record is lost. The pod would start again, so its processes are killed. */
  #readRecord(uid: string, marked: readonly MarkedProcess[]): PodRecord | undefined {
    try {
      return readRecord(this.#directoryOf(uid));
    } catch (cause) {
      if (isShortage(cause)) throw cause;
      this.#options.log.error('the record of a pod cannot be read', { podUid: uid, cause: String(cause) });
      for (const { pid, mark } of marked) if (mark.startsWith(`${uid}/`)) this.#table.signal(pid, 'SIGKILL');
      return undefined;
    }
  }

  #removeDirectory(podUid: string): void {
    try {
      rmSync(this.#directoryOf(podUid), { recursive: true, force: true });
      this.#removalErrors.delete(podUid);
    } catch (cause) {
      if (!this.#removalErrors.has(podUid)) {
        this.#options.log.error('the directory of a pod cannot be removed', { podUid, cause: String(cause) });
      }
      this.#removalErrors.set(podUid, (cause as Error).message);
    }
  }
}

/**
 * File system errors end with the call and the path, those of `rm` with the path twice. Without them the text is the
 * same for all pods.
 */
const withoutPath = (message: string): string => message.replace(/(?:, \w+|: [^:,]*) '.*$/s, '');
