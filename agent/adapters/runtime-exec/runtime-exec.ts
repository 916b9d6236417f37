/**
 * Runs pods as plain processes: no images, no isolation, no limits, no probes, no volumes but directories of the machine
 * at their own path. For machines that trust their pods and have no container engine, and for trying things out.
 * Linux only. Records and output lie in `<rootDirectory>/pods/<uid>/`.
 */
import { accessSync, constants, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { recordOf, recordsOf, textOf } from '../../../shared/kube/resources/normal-form.ts';
import type { KubeObject } from '../../../shared/kube/types.ts';
import type { Log } from '../../../shared/ports/log.ts';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { type ExecPod, execPod, newRecord } from './exec-pod.ts';
import { type PodRecord, readRecord, writeRecord } from './pod-record.ts';
import { readBootId } from './process-table.ts';

/** How often processes that we did not start are looked after. Milliseconds. */
const LOOK_MS = 1_000;
/** How often the size of the output is looked at. Milliseconds. */
const BOUND_LOGS_MS = 10_000;
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

/** @throws Error when the directory for pods cannot be made. */
export function execRuntime(options: ExecRuntimeOptions): PodRuntime {
  const { time, log } = options;
  const podsDirectory = join(options.rootDirectory, 'pods');
  const bootId = readBootId();
  const pods = new Map<string, ExecPod>();
  const listeners: ((podUid: string) => void)[] = [];
  const closed = new AbortController();
  const directoryOf = (uid: string): string => join(podsDirectory, uid);

  function keep(record: PodRecord): ExecPod {
    const uid = record.pod.metadata.uid ?? '';
    const made = execPod(record, {
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

  async function every(intervalMs: number, act: (pod: ExecPod) => void): Promise<void> {
    while (!closed.signal.aborted) {
      await time.sleep(intervalMs, closed.signal);
      if (closed.signal.aborted) return;
      for (const [podUid, pod] of pods) {
        try {
          act(pod);
        } catch (cause) {
          log.error('a pod could not be looked after', { podUid, cause: String(cause) });
        }
      }
    }
  }

  mkdirSync(podsDirectory, { recursive: true, mode: 0o700 });
  for (const uid of readdirSync(podsDirectory)) {
    try {
      keep(readRecord(directoryOf(uid))).look();
    } catch (cause) {
      // Its processes, if any, cannot be told from others; the pod starts anew if it is still wanted.
      log.error('the record of a pod cannot be read', { podUid: uid, cause: String(cause) });
    }
  }
  void every(LOOK_MS, (pod) => pod.look());
  void every(BOUND_LOGS_MS, (pod) => pod.boundLogs());

  return {
    version: `exec://${options.version ?? '1.0.0'}`,
    async health() {
      try {
        accessSync(podsDirectory, constants.W_OK);
        accessSync('/proc/self/stat', constants.R_OK);
        return { kind: 'ready' };
      } catch (cause) {
        return { kind: 'notReady', reason: `processes cannot be run: ${(cause as Error).message}` };
      }
    },
    async start(pod) {
      const uid = uidOf(pod);
      const known = pods.get(uid);
      if (known !== undefined) {
        if (known.isStopped()) known.revive();
        else known.advance();
        return;
      }
      const record = newRecord(pod);
      writeRecord(directoryOf(uid), record);
      keep(record).advance();
    },
    async stop(podUid, graceSeconds) {
      await pods.get(podUid)?.stop(graceSeconds);
    },
    async remove(podUid) {
      const pod = pods.get(podUid);
      if (pod === undefined) return;
      if (!pod.isStopped()) throw new Error(`pod ${podUid} has not been stopped`);
      pod.detach();
      pods.delete(podUid);
      rmSync(directoryOf(podUid), { recursive: true, force: true });
    },
    pods: async () => [...pods.values()].map((pod) => pod.view()),
    onChange(listener) {
      listeners.push(listener);
    },
    async close() {
      closed.abort();
      for (const pod of pods.values()) pod.detach();
    },
  };
}

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
