/**
 * Runs pods as plain processes: no images, no isolation, no limits, no probes, no volumes but directories of the machine
 * at their own path. For machines that trust their pods and have no container engine, and for trying things out.
 * Linux only. Records and output lie in `<rootDirectory>/pods/<uid>/`.
 */
import { accessSync, constants, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { recordOf, recordsOf, textOf } from '../../../shared/kube/normal-form.ts';
import type { KubeObject } from '../../../shared/kube/types.ts';
import type { Log } from '../../../shared/ports/log.ts';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { makeDirectory } from '../system/directory.ts';
import { ExecPod } from './exec-pod.ts';
import { newRecord, type PodRecord, readRecord, removeQuietly, writeRecord } from './pod-record.ts';
import { isShortage, type MarkedProcess, markedProcesses, readBootId, signal } from './process-table.ts';

/** How often processes that we did not start are looked after. Milliseconds. */
const LOOK_MS = 1_000;
/** How often the size of the output is looked at. Milliseconds. */
const BOUND_LOGS_MS = 10_000;
/** How often what could not be read or removed is tried again. Milliseconds. */
const TRY_AGAIN_MS = 10_000;
/** As kubelets' containerLogMaxSize. Bytes. */
const LOG_BYTES_MAX = 10 * 1024 * 1024;

/** Both become parts of paths. */
const UID = /^[A-Za-z0-9][A-Za-z0-9-]{0,252}$/;
const CONTAINER_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export interface ExecRuntimeOptions {
  readonly rootDirectory: string;
  readonly time: AgentTime;
  readonly log: Log;
  /** Address of this machine, for pods that ask for it. */
  readonly hostIp: () => string | undefined;
  readonly version?: string;
  readonly logBytesMax?: number;
}

/**
 * A disk that cannot be used is no reason to throw: the runtime is not ready, says why, and tries again. Until the records
 * were read it knows no pods, and refuses to say which ones run.
 */
export function execRuntime(options: ExecRuntimeOptions): PodRuntime {
  const { time, log } = options;
  const podsDirectory = join(options.rootDirectory, 'pods');
  let bootId = '';
  /** Why the records of an agent before this one were not read. */
  let unread: string | undefined = 'the records of pods have not been read yet';
  /** Pods that were removed, whose directories could not be. With the reason. */
  const unremoved = new Map<string, string>();
  const pods = new Map<string, ExecPod>();
  const listeners: ((podUid: string) => void)[] = [];
  const closed = new AbortController();
  const directoryOf = (uid: string): string => join(podsDirectory, uid);

  function keep(record: PodRecord): ExecPod {
    const uid = record.pod.metadata.uid ?? '';
    const made = new ExecPod(record, {
      time,
      log,
      bootId,
      directory: directoryOf(uid),
      logBytesMax: options.logBytesMax ?? LOG_BYTES_MAX,
      hostIp: options.hostIp,
      onChange: () => {
        for (const listener of listeners) listener(uid);
      },
    });
    pods.set(uid, made);
    return made;
  }

  async function every(intervalMs: number, act: () => void): Promise<void> {
    while (!closed.signal.aborted) {
      await time.sleep(intervalMs, closed.signal);
      if (!closed.signal.aborted) act();
    }
  }

  const eachPod = (act: (pod: ExecPod) => void) => (): void => {
    for (const [podUid, pod] of pods) {
      try {
        act(pod);
      } catch (cause) {
        log.error('a pod could not be checked', { podUid, cause: String(cause) });
      }
    }
  };

  /** @throws Error when nothing can be said about the pods that an agent before this one left */
  function readRecords(): void {
    makeDirectory(podsDirectory, 0o700);
    bootId = readBootId();
    const marked = markedProcesses();
    for (const uid of readdirSync(podsDirectory)) {
      const record = pods.has(uid) ? undefined : recordOfPod(uid, marked);
      if (record !== undefined) keep(record).adopt(marked);
    }
  }

  /** Undefined when it is lost. The pod starts anew if it is still wanted, so what runs of it has to end. */
  function recordOfPod(uid: string, marked: readonly MarkedProcess[]): PodRecord | undefined {
    try {
      return readRecord(directoryOf(uid));
    } catch (cause) {
      if (isShortage(cause)) throw cause;
      log.error('the record of a pod cannot be read', { podUid: uid, cause: String(cause) });
      for (const { pid, mark } of marked) if (mark.startsWith(`${uid}/`)) signal(pid, 'SIGKILL');
      return undefined;
    }
  }

  function begin(): void {
    if (unread === undefined) return;
    try {
      readRecords();
      unread = undefined;
    } catch (cause) {
      unread = (cause as Error).message;
      log.error('the records of pods cannot be read', { why: unread });
    }
  }

  function removeDirectory(podUid: string): void {
    try {
      rmSync(directoryOf(podUid), { recursive: true, force: true });
      unremoved.delete(podUid);
    } catch (cause) {
      if (!unremoved.has(podUid)) {
        log.error('the directory of a pod cannot be removed', { podUid, cause: String(cause) });
      }
      unremoved.set(podUid, (cause as Error).message);
    }
  }

  function requireRecords(): void {
    if (unread !== undefined) throw new Error(`the records of pods cannot be read: ${unread}`);
  }

  begin();
  void every(
    LOOK_MS,
    eachPod((pod) => pod.check()),
  );
  void every(
    BOUND_LOGS_MS,
    eachPod((pod) => pod.boundLogs()),
  );
  void every(TRY_AGAIN_MS, () => {
    begin();
    for (const podUid of [...unremoved.keys()]) removeDirectory(podUid);
  });

  return {
    version: `exec://${options.version ?? '1.0.0'}`,
    async health() {
      if (unread !== undefined) return { kind: 'notReady', reason: `processes cannot be run: ${unread}` };
      try {
        accessSync(podsDirectory, constants.W_OK);
        accessSync('/proc/self/stat', constants.R_OK);
        return { kind: 'ready' };
      } catch (cause) {
        return { kind: 'notReady', reason: `processes cannot be run: ${(cause as Error).message}` };
      }
    },
    complaint() {
      if (unread !== undefined) return `the records of pods cannot be read: ${withoutPath(unread)}`;
      const unwritten = [...pods.values()].map((pod) => pod.complaint()).find((why) => why !== undefined);
      if (unwritten !== undefined) return `the records of pods cannot be written: ${withoutPath(unwritten)}`;
      const [left] = unremoved.values();
      return left === undefined ? undefined : `directories of removed pods are left: ${withoutPath(left)}`;
    },
    async start(pod) {
      requireRecords();
      const uid = uidOf(pod);
      const known = pods.get(uid);
      if (known !== undefined) {
        if (known.isStopped()) known.revive();
        else known.advance();
        return;
      }
      const record = newRecord(pod);
      try {
        writeRecord(directoryOf(uid), record);
      } catch (cause) {
        // Without a record the next agent would not find what runs, and would start it a second time.
        removeQuietly(directoryOf(uid));
        throw cause;
      }
      unremoved.delete(uid);
      keep(record).advance();
    },
    async stop(podUid, graceSeconds) {
      requireRecords();
      await pods.get(podUid)?.stop(graceSeconds);
    },
    async remove(podUid) {
      requireRecords();
      const pod = pods.get(podUid);
      if (pod === undefined) return;
      if (!pod.isStopped()) throw new Error(`pod ${podUid} has not been stopped`);
      pod.detach();
      pods.delete(podUid);
      removeDirectory(podUid);
    },
    async pods() {
      requireRecords();
      return [...pods.values()].map((pod) => pod.view());
    },
    onChange(listener) {
      listeners.push(listener);
    },
    async close() {
      closed.abort();
      for (const pod of pods.values()) pod.detach();
    },
  };
}

/** Error texts of the file system end with the path. Without it they are the same for all pods. */
const withoutPath = (message: string): string => message.split(', ', 1)[0] ?? message;

function uidOf(pod: KubeObject): string {
  const uid = pod.metadata.uid ?? '';
  if (!UID.test(uid)) throw new Error(`uid ${JSON.stringify(uid)} cannot name a directory`);
  const spec = recordOf(pod.spec);
  for (const container of [...recordsOf(spec['initContainers']), ...recordsOf(spec['containers'])]) {
    const name = textOf(container['name']);
    if (!CONTAINER_NAME.test(name)) throw new Error(`container name ${JSON.stringify(name)} cannot name a file`);
  }
  return uid;
}
