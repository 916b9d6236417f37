/**
 * Runs pods as containers of podman. The agent sets up volumes and variables, makes probes, runs hooks and restarts
 * containers, as for the runtime `exec`; podman creates and starts them. No daemon and no socket of podman is needed.
 */
import type { Log } from '../../../shared/observability/log.ts';
import type { CpuPlacement, PodRuntime } from '../../ports/pod-runtime.ts';
import type { ProbeClient } from '../../ports/probe-client.ts';
import type { AgentTime } from '../../ports/time.ts';
import { ANYWHERE, type CgroupNode } from '../../rules/cgroup-values.ts';
import { readBootId } from '../runtime-exec/process-table.ts';
import type { RecordedPods } from '../runtime-exec/recorded-pods.ts';
import { recordedRuntime } from '../runtime-exec/recorded-runtime.ts';
import { PodmanCli } from './podman-cli.ts';
import { PodmanEngine, PULL_TIMEOUT_MS } from './podman-engine.ts';
import { CALL_TIMEOUT_MS, podmanPodUids, removePodmanPod } from './podman-pod.ts';

/** A check of podman is a process, so its result is used for this long. Milliseconds. */
const HEALTH_MS = 60_000;
/** Interval of the attempts to list the pods of podman at the start. Milliseconds. */
const LIST_AGAIN_MS = 10_000;

export interface PodmanRuntimeOptions {
  readonly rootDirectory: string;
  readonly time: AgentTime;
  readonly log: Log;
  readonly hostIp: () => string | undefined;
  readonly limits: CgroupNode;
  /** For HTTP hooks. */
  readonly probeClient?: ProbeClient;
  /** Path of the program. Default: podman on the PATH. */
  readonly program?: string;
}

/** Does not throw when podman or the disk cannot be used: the runtime is then not ready, and reports why. */
export function podmanRuntime(options: PodmanRuntimeOptions): PodRuntime {
  const { rootDirectory, time, log, limits, program = 'podman' } = options;
  const podman = new PodmanCli(program);
  const closed = new AbortController();
  let version = 'podman://unknown';
  let healthyUntilMs = Number.NEGATIVE_INFINITY;
  let warning: string | undefined;
  let placementOf = (_podUid: string, _container: string): CpuPlacement => ANYWHERE;
  let bootId: string | undefined;
  const { recorded, runtime } = recordedRuntime({
    ...options,
    openEngine: (processes, context, callbacks) =>
      new PodmanEngine(processes, context, callbacks, {
        podman,
        time,
        log,
        rootDirectory,
        limits,
        bootId: () => {
          bootId ??= readBootId();
          return bootId;
        },
        placementOf: (podUid, container) => placementOf(podUid, container),
        onLimits: (why) => {
          warning = why;
        },
      }),
  });
  void removeUnknownPods({ podman, recorded, rootDirectory, time, log }, closed.signal);

  return {
    ...runtime,
    get version() {
      return version;
    },
    async health() {
      const why = recorded.readError();
      if (why !== undefined) return { kind: 'notReady', reason: `the records of pods cannot be read: ${why}` };
      if (time.monotonicMs() < healthyUntilMs) return { kind: 'ready' };
      try {
        const format = ['version', '--format', '{{.Client.Version}}'];
        version = `podman://${(await podman.run(format, { timeoutMs: CALL_TIMEOUT_MS })).trim()}`;
        healthyUntilMs = time.monotonicMs() + HEALTH_MS;
        return { kind: 'ready' };
      } catch (cause) {
        return { kind: 'notReady', reason: `container runtime is down: ${(cause as Error).message}` };
      }
    },
    limitWarning: () => warning,
    usePlacement(next) {
      placementOf = next;
      recorded.checkEach((pod) => pod.place());
    },
    async remove(podUid) {
      const pod = recorded.get(podUid);
      if (pod === undefined) return;
      if (!pod.isStopped()) throw new Error(`pod ${podUid} has not been stopped`);
      // The record is removed last. Without it, the agent would not remove the pod of podman.
      await removePodmanPod(podman, podUid);
      await runtime.remove(podUid);
    },
    async reclaimStorage() {
      await runtime.reclaimStorage?.();
      // A kubelet also removes all images that no container uses, whoever pulled them.
      await podman.run(['image', 'prune', '--all', '--force'], { timeoutMs: PULL_TIMEOUT_MS });
    },
    async close() {
      closed.abort();
      await runtime.close();
    },
  };
}

interface UnknownPods {
  readonly podman: PodmanCli;
  readonly recorded: RecordedPods;
  readonly rootDirectory: string;
  readonly time: AgentTime;
  readonly log: Log;
}

/** Removes once the pods of podman without a record, as after a loss of the state directory. */
async function removeUnknownPods(parts: UnknownPods, closed: AbortSignal): Promise<void> {
  const { podman, recorded, rootDirectory, time, log } = parts;
  while (!closed.aborted) {
    try {
      // Throws while the records are unknown.
      const known = new Set(recorded.all().map(({ pod }) => pod.metadata.uid));
      for (const podUid of await podmanPodUids(podman, rootDirectory)) {
        if (known.has(podUid) || recorded.get(podUid) !== undefined) continue;
        log.warn('a pod of podman without a record is removed', { podUid });
        await removePodmanPod(podman, podUid);
      }
      return;
    } catch (cause) {
      log.debug('the pods of podman cannot be listed', { cause: String(cause) });
      await time.sleep(LIST_AGAIN_MS, closed);
    }
  }
}
