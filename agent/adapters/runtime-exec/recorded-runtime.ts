/**
 * What the runtimes `exec` and `podman` share. The agent starts and restarts containers: `exec-pod.ts` decides, and a
 * ContainerEngine runs them. Records and output are in `<rootDirectory>/pods/<uid>/`.
 */
import { join } from 'node:path';
import { RESTART_ALL } from '../../../shared/kinds/pods/declared-features.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { ContainerInputSource } from '../../ports/container-inputs.ts';
import { LogUnavailableError, type PodRuntime } from '../../ports/pod-runtime.ts';
import type { ProbeClient } from '../../ports/probe-client.ts';
import type { AgentTime } from '../../ports/time.ts';
import { containerEnv } from '../../rules/env.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import type { PodCgroups } from '../cgroup/pod-cgroups.ts';
import { probeClient } from '../probe/probe-client.ts';
import type { OpenEngine } from './container-engine.ts';
import { type MountMode, mountMode } from './isolation.ts';
import type { ProcessTable } from './process-table.ts';
import { RecordedPods } from './recorded-pods.ts';

/** Interval of the checks for exited processes that this agent did not start. Milliseconds. */
const EXIT_CHECK_MS = 1_000;
/** Interval of the checks of the output's size. Milliseconds. */
const LOG_SIZE_CHECK_MS = 10_000;
/** Interval of the retries to read or remove files. Milliseconds. */
const RETRY_MS = 10_000;
/** The defaults of the kubelet's containerLogMaxSize, in bytes, and containerLogMaxFiles. */
const LOG_BYTES_MAX = 10 * 1024 * 1024;
const LOG_FILES_MAX = 5;

/** Both become parts of paths. */
const UID = /^[A-Za-z0-9][A-Za-z0-9-]{0,252}$/;
const CONTAINER_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export interface RecordedRuntimeOptions {
  readonly rootDirectory: string;
  readonly time: AgentTime;
  readonly log: Log;
  /** Address of this machine, for pods that request it through the downward API. */
  readonly hostIp: () => string | undefined;
  /** Absent: pods have no groups. */
  readonly cgroups?: PodCgroups | undefined;
  /** For HTTP hooks. */
  readonly probeClient?: ProbeClient;
  readonly logBytesMax?: number;
  /** Files of one run of a container. */
  readonly logFilesMax?: number;
  readonly openEngine: OpenEngine;
  /** Default: those of Linux. */
  readonly processTable?: ProcessTable;
}

export interface RecordedRuntime {
  readonly recorded: RecordedPods;
  readonly podsDirectory: string;
  /** All but what depends on the engine. */
  readonly runtime: Omit<PodRuntime, 'version' | 'health'>;
}

/**
 * Does not throw when the disk cannot be used: the runtime then reports why, and retries. Until the records of the
 * previous agent are read, it rejects every request about pods.
 */
export function recordedRuntime(options: RecordedRuntimeOptions): RecordedRuntime {
  const podsDirectory = join(options.rootDirectory, 'pods');
  const listeners: ((podUid: string) => void)[] = [];
  const eventListeners: ((pod: KubePod, event: NodeEvent) => void)[] = [];
  const closed = new AbortController();
  let inputs = inputsOfSpec(options.hostIp);
  let mode: MountMode | undefined;
  const recorded = new RecordedPods({
    podsDirectory,
    time: options.time,
    log: options.log,
    logLimits: {
      bytesMax: options.logBytesMax ?? LOG_BYTES_MAX,
      filesMax: options.logFilesMax ?? LOG_FILES_MAX,
    },
    hostIp: options.hostIp,
    cgroups: options.cgroups,
    openEngine: options.openEngine,
    processTable: options.processTable,
    commands: {
      inputs: () => inputs,
      mountMode: () => {
        mode ??= mountMode();
        return mode;
      },
    },
    probeClient: options.probeClient ?? probeClient(),
    onEvent: (pod, event) => {
      for (const listener of eventListeners) listener(pod, event);
    },
    onChange: (podUid) => {
      for (const listener of listeners) listener(podUid);
    },
  });
  startBackgroundChecks(recorded, options, closed.signal);
  const runtime: RecordedRuntime['runtime'] = {
    declaredFeatures: [RESTART_ALL],
    complaint: () => recorded.complaint(),
    podsMemory: () => options.cgroups?.podsMemory(),
    async usage(podUid, withStorage) {
      return recorded.get(podUid)?.usage(withStorage, join(options.rootDirectory, 'volumes', podUid));
    },
    async reclaimStorage() {
      recorded.checkEach((pod) => pod.removeOutput());
    },
    usePlacement(placementOf) {
      options.cgroups?.usePlacement(placementOf);
      recorded.checkEach((pod) => pod.place());
    },
    async start(pod) {
      const uid = checkedUid(pod);
      (recorded.get(uid) ?? recorded.add(uid, pod)).start();
    },
    async stop(podUid, graceSeconds) {
      await recorded.get(podUid)?.stop(graceSeconds);
    },
    async remove(podUid) {
      const pod = recorded.get(podUid);
      if (pod === undefined) return;
      if (!pod.isStopped()) throw new Error(`pod ${podUid} has not been stopped`);
      pod.detach();
      recorded.remove(podUid);
    },
    useInputs(source) {
      inputs = source;
    },
    useStarted(isStarted) {
      recorded.useStarted(isStarted);
    },
    async execute(podUid, container, command, timeoutMs) {
      const pod = recorded.get(podUid);
      if (pod === undefined) return { kind: 'failed', message: `pod ${podUid} is not known to this node` };
      return pod.execute(container, command, timeoutMs);
    },
    async open(podUid, command) {
      const pod = recorded.get(podUid);
      if (pod === undefined) throw new Error(`pod ${podUid} is not known to this node`);
      return pod.open(command);
    },
    async restartContainer(podUid, container, graceSeconds, message) {
      await recorded.get(podUid)?.restart(container, graceSeconds, message);
    },
    async resize(pod) {
      const outcome = await recorded.get(pod.metadata.uid ?? '')?.resize(pod);
      recorded.applyNodeLimits();
      return outcome ?? { kind: 'failed', message: `pod ${pod.metadata.uid} is not known to this node` };
    },
    async useImages(pod) {
      recorded.get(pod.metadata.uid ?? '')?.useImages(pod);
    },
    onEvent(listener) {
      eventListeners.push(listener);
    },
    async *readLog(query, stop) {
      const pod = recorded.get(query.podUid);
      if (pod === undefined) throw new LogUnavailableError(`pod ${query.podUid} is not known to this node`);
      yield* pod.readLog(query, stop);
    },
    async pods() {
      return recorded.all().map((pod) => pod.view());
    },
    onChange(listener) {
      listeners.push(listener);
    },
    async close() {
      closed.abort();
      for (const pod of recorded.known()) pod.detach();
    },
  };
  return { recorded, podsDirectory, runtime };
}

function startBackgroundChecks(recorded: RecordedPods, loop: Loop, closed: AbortSignal): void {
  void repeatedly(loop, EXIT_CHECK_MS, closed, () => recorded.checkEach((pod) => pod.check()));
  void repeatedly(loop, EXIT_CHECK_MS, closed, () => recorded.checkEach((pod) => pod.recordOutputTimes()));
  void repeatedly(loop, LOG_SIZE_CHECK_MS, closed, () => recorded.checkEach((pod) => pod.boundLogs()));
  void repeatedly(loop, RETRY_MS, closed, () => recorded.retry());
}

type Loop = Pick<RecordedRuntimeOptions, 'time' | 'log'>;

/** No caller waits for it: an error would end the agent. The next round tries again. */
async function repeatedly(
  { time, log }: Loop,
  intervalMs: number,
  closed: AbortSignal,
  act: () => void,
): Promise<void> {
  while (!closed.aborted) {
    await time.sleep(intervalMs, closed);
    try {
      if (!closed.aborted) act();
    } catch (cause) {
      log.error('pods could not be checked', { cause: String(cause) });
    }
  }
}

/** Until the agent provides others: the values and fields of the spec, and directories of the machine. */
const inputsOfSpec = (hostIp: () => string | undefined): ContainerInputSource => ({
  inputsOf(pod, container) {
    const env = containerEnv({
      pod,
      container,
      objects: (kind) => ({
        kind: 'failed',
        message: `failed to sync ${kind} cache: timed out waiting for the condition`,
      }),
      machine: { hostIp: hostIp(), allocatable: {} },
      services: {},
    });
    const fault = (message: string) => ({ kind: 'notReady' as const, reason: 'CreateContainerConfigError', message });
    if (env.kind === 'failed') return fault(env.message);
    const volumes = pod.spec?.volumes ?? [];
    const missing = (container.volumeMounts ?? []).find(
      ({ name, mountPath }) => volumes.find((each) => each.name === name)?.hostPath?.path !== mountPath,
    );
    if (missing !== undefined) return fault(`the volume of volumeMount ${missing.mountPath} is not set up yet`);
    return { kind: 'ready', variables: env.variables, mounts: [] };
  },
  readMissing: async () => undefined,
});

/** @throws Error when the uid or the name of a container cannot be part of a path */
function checkedUid(pod: KubePod): string {
  const uid = pod.metadata.uid ?? '';
  if (!UID.test(uid)) throw new Error(`uid ${JSON.stringify(uid)} cannot name a directory`);
  const { initContainers = [], containers = [] } = pod.spec ?? {};
  for (const { name = '' } of [...initContainers, ...containers]) {
    if (!CONTAINER_NAME.test(name)) throw new Error(`container name ${JSON.stringify(name)} cannot name a file`);
  }
  return uid;
}
