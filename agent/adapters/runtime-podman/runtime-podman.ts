/**
 * Runs pods with podman from their manifests (`podman kube play`). Restarts, probes, limits and volumes are podman's. A
 * pod's name in podman contains its uid, because names of pods are unique only within their namespace.
 */

import { defined } from '../../../shared/domain/defined.ts';
import { withoutTokenVolume } from '../../../shared/kube/accounts/pod-account.ts';
import { listOf, numberOf, recordOf, textOf } from '../../../shared/kube/normal-form.ts';
import { parseTimeMs } from '../../../shared/kube/time.ts';
import type { KubeObject, KubePod } from '../../../shared/kube/types.ts';
import type { Log } from '../../../shared/ports/log.ts';
import {
  type ContainerState,
  type LogQuery,
  LogUnavailableError,
  type PodRuntime,
  type RunningContainer,
  type RunningPod,
} from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import type { CgroupNode } from '../../rules/cgroup-values.ts';
import { PodmanCli } from './podman-cli.ts';
import { PodmanLimits } from './podman-limits.ts';

/** Includes the time to pull images. Milliseconds. */
const PLAY_TIMEOUT_MS = 600_000;
const QUERY_TIMEOUT_MS = 30_000;
/** Interval at which the pods are listed to find changes. Milliseconds. */
const POLL_INTERVAL_MS = 5_000;

const UID_LABEL = 'nodekeeper.dev/pod-uid';
const NAMESPACE_LABEL = 'nodekeeper.dev/pod-namespace';
const NAME_LABEL = 'nodekeeper.dev/pod-name';

export interface PodmanRuntimeOptions {
  readonly time: AgentTime;
  readonly log: Log;
  /** For the limits that the manifest does not carry. */
  readonly limits: CgroupNode;
  /** Path of the program. Default: podman on the PATH. */
  readonly program?: string;
}

const podmanName = (podUid: string): string => `nodekeeper-${podUid}`;

/** The manifest for `podman kube play`, which refuses projected volumes. */
export function manifestOf(pod: KubePod): KubeObject {
  const { uid = '', namespace = '', name = '', labels, annotations } = pod.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podmanName(uid),
      labels: { ...labels, [UID_LABEL]: uid, [NAMESPACE_LABEL]: namespace, [NAME_LABEL]: name },
      ...defined({ annotations }),
    },
    spec: withoutTokenVolume(pod.spec ?? {}),
  };
}

/** State of a container from `podman container inspect`. */
export function stateOf(inspected: Record<string, unknown>): ContainerState {
  const state = recordOf(inspected['State']);
  const startedAtMs = parseTimeMs(textOf(state['StartedAt'])) ?? 0;
  switch (state['Status']) {
    case 'running':
    case 'paused':
    case 'stopping':
      return { kind: 'running', startedAtMs };
    case 'exited':
    case 'stopped':
    case 'removing': {
      const exitCode = numberOf(state['ExitCode']) ?? 0;
      return {
        kind: 'terminated',
        exitCode,
        ...(exitCode > 128 ? { signal: exitCode - 128 } : {}),
        reason: state['OOMKilled'] === true ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error',
        startedAtMs,
        finishedAtMs: parseTimeMs(textOf(state['FinishedAt'])) ?? startedAtMs,
      };
    }
    default:
      return { kind: 'waiting', reason: 'ContainerCreating', message: textOf(state['Error']) };
  }
}

export function podmanRuntime({ time, log, limits, program = 'podman' }: PodmanRuntimeOptions): PodRuntime {
  const podman = new PodmanCli(program);
  const podLimits = new PodmanLimits(podman, limits, log);
  const listeners: ((podUid: string) => void)[] = [];
  const closed = new AbortController();
  let version = 'podman://unknown';
  const notify = (podUid: string): void => {
    for (const listener of listeners) listener(podUid);
  };
  void pollForChanges({ podman, time, log, notify }, closed.signal);

  return {
    get version() {
      return version;
    },
    async health() {
      try {
        version = `podman://${await clientVersion(podman)}`;
        return { kind: 'ready' };
      } catch (cause) {
        return { kind: 'notReady', reason: `container runtime is down: ${(cause as Error).message}` };
      }
    },
    async start(pod) {
      const uid = pod.metadata.uid ?? '';
      if (await exists(podman, uid)) {
        podLimits.know(pod);
        return;
      }
      await podman.run(['kube', 'play', '--start', '-'], PLAY_TIMEOUT_MS, JSON.stringify(manifestOf(pod)));
      podLimits.know(pod);
      await podLimits.apply(pod);
      notify(uid);
    },
    async stop(podUid, graceSeconds) {
      if (!(await exists(podman, podUid))) return;
      const seconds = String(Math.ceil(graceSeconds));
      const timeoutMs = graceSeconds * 1_000 + QUERY_TIMEOUT_MS;
      await podman.run(['pod', 'stop', '--time', seconds, podmanName(podUid)], timeoutMs);
    },
    async remove(podUid) {
      if (!(await exists(podman, podUid))) return;
      // As `podman kube down`, which would need the manifest.
      await podman.run(['pod', 'rm', podmanName(podUid)], QUERY_TIMEOUT_MS);
      podLimits.forget(podUid);
      notify(podUid);
    },
    limitWarning: () => podLimits.warning(),
    usePlacement(placementOf) {
      podLimits.usePlacement(placementOf);
    },
    async reclaimStorage() {
      // As a kubelet, all images that no container uses, whoever pulled them.
      await podman.run(['image', 'prune', '--all', '--force'], PLAY_TIMEOUT_MS);
    },
    async *readLog(query, stop) {
      // podman restarts a container in place, and its log continues.
      if (query.previous) {
        const { podUid, container } = query;
        throw new LogUnavailableError(`previous terminated container "${container}" in pod ${podUid} not found`);
      }
      if (!(await exists(podman, query.podUid))) {
        throw new LogUnavailableError(`pod ${query.podUid} is not known to this node`);
      }
      yield* limited(podman.stream(logArguments(query), stop), query.limitBytes);
    },
    pods: () => listPods(podman),
    onChange(listener) {
      listeners.push(listener);
    },
    async close() {
      closed.abort();
    },
  };
}

/** `podman logs` ends a followed log with the container. Source: podman-logs(1). */
function logArguments({ podUid, container, follow, timestamps, tailLines, sinceMs }: LogQuery): readonly string[] {
  return [
    'logs',
    ...(follow ? ['--follow'] : []),
    ...(timestamps ? ['--timestamps'] : []),
    ...(tailLines === undefined ? [] : ['--tail', String(tailLines)]),
    ...(sinceMs === undefined ? [] : ['--since', new Date(sinceMs).toISOString()]),
    `${podmanName(podUid)}-${container}`,
  ];
}

async function* limited(output: AsyncIterable<Uint8Array>, bytesMax = Number.POSITIVE_INFINITY) {
  let left = bytesMax;
  for await (const piece of output) {
    const kept = piece.subarray(0, left);
    left -= kept.length;
    if (kept.length > 0) yield kept;
    if (left <= 0) return;
  }
}

const clientVersion = async (podman: PodmanCli): Promise<string> =>
  (await podman.run(['version', '--format', '{{.Client.Version}}'], QUERY_TIMEOUT_MS)).trim();

const podsWithLabel = (podman: PodmanCli, label: string): Promise<Record<string, unknown>[]> =>
  podman.json(['pod', 'ps', '--format', 'json', '--filter', `label=${label}`], QUERY_TIMEOUT_MS);

const exists = async (podman: PodmanCli, podUid: string): Promise<boolean> =>
  (await podsWithLabel(podman, `${UID_LABEL}=${podUid}`)).length > 0;

async function listPods(podman: PodmanCli): Promise<readonly RunningPod[]> {
  const found = await podsWithLabel(podman, UID_LABEL);
  return Promise.all(found.map((pod) => inspectPod(podman, textOf(pod['Name']), recordOf(pod['Labels']))));
}

async function inspectPod(podman: PodmanCli, name: string, labels: Record<string, unknown>): Promise<RunningPod> {
  const [inspected = {}] = await podman.json(['pod', 'inspect', '--format', 'json', name], QUERY_TIMEOUT_MS);
  const infra = textOf(inspected['InfraContainerID']);
  const ids = listOf(inspected['Containers'])
    .map((each) => textOf(recordOf(each)['Id']))
    .filter((id) => id !== '' && id !== infra);
  const inspect = ['container', 'inspect', '--format', 'json', ...ids];
  const containers = ids.length === 0 ? [] : await podman.json(inspect, QUERY_TIMEOUT_MS);
  return {
    uid: textOf(labels[UID_LABEL]),
    namespace: textOf(labels[NAMESPACE_LABEL]),
    name: textOf(labels[NAME_LABEL]),
    containers: containers.map(
      (each): RunningContainer => ({
        name: textOf(each['Name']).slice(name.length + 1),
        state: stateOf(each),
        restartCount: numberOf(each['RestartCount']) ?? 0,
        containerId: `podman://${textOf(each['Id'])}`,
      }),
    ),
  };
}

interface PollParts {
  readonly podman: PodmanCli;
  readonly time: AgentTime;
  readonly log: Log;
  readonly notify: (podUid: string) => void;
}

/** podman sends no notifications, so its pods are compared with those of the previous poll. */
async function pollForChanges({ podman, time, log, notify }: PollParts, closed: AbortSignal): Promise<void> {
  let previous = new Map<string, string>();
  while (!closed.aborted) {
    await time.sleep(POLL_INTERVAL_MS, closed);
    if (closed.aborted) return;
    try {
      const current = new Map((await listPods(podman)).map((pod) => [pod.uid, JSON.stringify(pod)]));
      for (const uid of new Set([...previous.keys(), ...current.keys()])) {
        if (previous.get(uid) !== current.get(uid)) notify(uid);
      }
      previous = current;
    } catch (cause) {
      // health() reports it in the Ready condition; here it only means that no change is known.
      log.warn('podman could not list its pods', { cause: String(cause) });
    }
  }
}
