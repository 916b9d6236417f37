/**
 * Evicts pods when the node is under pressure, one per pass, and pods that exceed their own limits on storage.
 * Source: pkg/kubelet/eviction/eviction_manager.go (synchronize).
 *
 * A pass without pressure reads the machine once. The use of pods is measured only when a pod must be chosen, and their
 * storage once per minute if a pod has a limit on it.
 */
import type { KubePod } from '../../shared/kinds/types.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { Machine } from '../ports/machine.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { PodRuntime, PodUsage } from '../ports/pod-runtime.ts';
import type { AgentTime } from '../ports/time.ts';
import { isCriticalPod } from '../rules/critical-pod.ts';
import { rankForEviction } from '../rules/eviction-ranking.ts';
import { mostUrgent, resourceOf, type StarvedResource, type Threshold } from '../rules/eviction-signals.ts';
import {
  EVICTED_REASON,
  evictedStatus,
  evictionMessage,
  limitsStorage,
  storageLimitMessage,
} from '../rules/eviction-texts.ts';
import { terminationGraceOf } from '../rules/kill-request.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import type { PodStatus } from '../rules/shutdown-status.ts';
import { describeError } from './describe-error.ts';
import type { Measured, NodePressure } from './node-pressure.ts';

/** evictionMonitoringPeriod. */
const PASS_EVERY_MS = 10_000;
/** After an eviction, the next pass sees its effect. Milliseconds. */
const AFTER_EVICTION_MS = 1_000;
/** The kubelet measures volumes in this period (volumeStatsAggPeriod). Milliseconds. */
const STORAGE_EVERY_MS = 60_000;
/** Time that a hard threshold leaves to a pod (immediateEvictionGracePeriodSeconds). */
const HARD_GRACE_SECONDS = 1;

export interface EvictionDependencies {
  readonly pressure: NodePressure;
  readonly maxPodGracePeriodSeconds: number;
  readonly machine: Pick<Machine, 'facts' | 'use'>;
  readonly runtime: Pick<PodRuntime, 'usage' | 'reclaimStorage'>;
  readonly time: AgentTime;
  readonly log: Log;
  readonly meter: AgentMeter;
  /** Pods that run or are about to. */
  readonly activePods: () => readonly KubePod[];
  readonly killPod: (pod: KubePod, graceSeconds: number, change: (status: PodStatus) => PodStatus) => Promise<void>;
  readonly recordNodeEvent: (event: NodeEvent) => void;
  readonly recordPodEvent: (pod: KubePod, event: NodeEvent) => void;
}

export class Eviction {
  readonly #dependencies: EvictionDependencies;
  #storageMeasuredAtMs = Number.NEGATIVE_INFINITY;

  constructor(dependencies: EvictionDependencies) {
    this.#dependencies = dependencies;
  }

  /** Until stopped. */
  async run(stop: AbortSignal): Promise<void> {
    const { time, log } = this.#dependencies;
    while (!stop.aborted) {
      const evicted = await this.pass().catch((cause: unknown) => {
        log.error('eviction manager: the pressure of the node cannot be determined', { cause: describeError(cause) });
        return false;
      });
      await time.sleep(evicted ? AFTER_EVICTION_MS : PASS_EVERY_MS, stop);
    }
  }

  /** Whether a pod was evicted. @throws Error when the machine cannot be read */
  async pass(): Promise<boolean> {
    const measured = await this.#measure();
    if (await this.#evictAboveLimits()) return true;
    const threshold = mostUrgent(measured.due);
    if (threshold === undefined) return false;
    const resource = resourceOf(threshold.signal);
    this.#dependencies.recordNodeEvent({
      type: 'Warning',
      reason: 'EvictionThresholdMet',
      message: `Attempting to reclaim ${resource}`,
    });
    if (await this.#reclaimed(resource)) return false;
    return this.#evictOne(threshold, resource, measured);
  }

  async #measure(): Promise<Measured> {
    const { machine, pressure, time } = this.#dependencies;
    const [facts, use] = [await machine.facts(), await machine.use()];
    return pressure.measure(use, facts.memoryBytes, time.monotonicMs());
  }

  /** Removes what no pod needs. True if no threshold is met afterwards. */
  async #reclaimed(resource: StarvedResource): Promise<boolean> {
    const { runtime, log } = this.#dependencies;
    if (runtime.reclaimStorage === undefined || (resource !== 'ephemeral-storage' && resource !== 'inodes'))
      return false;
    await runtime.reclaimStorage().catch((cause: unknown) => {
      log.warn('eviction manager: unexpected error when attempting to reduce pressure', {
        resource,
        cause: describeError(cause),
      });
    });
    return (await this.#measure()).due.length === 0;
  }

  async #evictOne(threshold: Threshold, resource: StarvedResource, measured: Measured): Promise<boolean> {
    const { activePods, log, meter } = this.#dependencies;
    const pods = activePods();
    const usages = await this.#usages(pods, resource === 'ephemeral-storage' || resource === 'inodes');
    const usageOf = (pod: KubePod): PodUsage | undefined => usages.get(pod.metadata.uid ?? '');
    for (const pod of rankForEviction(resource, pods, usageOf)) {
      const message = evictionMessage(resource, pod, usageOf(pod), measured);
      if (!(await this.#evict(pod, this.#graceSeconds(threshold, pod), message))) continue;
      meter.count('kubelet_evictions', { eviction_signal: threshold.signal });
      return true;
    }
    log.warn('eviction manager: unable to evict any pods from the node', { resource, pods: pods.length });
    return false;
  }

  #graceSeconds({ graceMs }: Threshold, pod: KubePod): number {
    if (graceMs === 0) return HARD_GRACE_SECONDS;
    const { maxPodGracePeriodSeconds } = this.#dependencies;
    return Math.min(maxPodGracePeriodSeconds, terminationGraceOf(pod) ?? maxPodGracePeriodSeconds);
  }

  async #evictAboveLimits(): Promise<boolean> {
    const { activePods, time, meter } = this.#dependencies;
    const limited = activePods().filter(limitsStorage);
    if (limited.length === 0 || time.monotonicMs() - this.#storageMeasuredAtMs < STORAGE_EVERY_MS) return false;
    this.#storageMeasuredAtMs = time.monotonicMs();
    const usages = await this.#usages(limited, true);
    let evicted = false;
    for (const pod of limited) {
      const usage = usages.get(pod.metadata.uid ?? '');
      const message = usage === undefined ? undefined : storageLimitMessage(pod, usage);
      if (message === undefined || !(await this.#evict(pod, HARD_GRACE_SECONDS, message))) continue;
      meter.count('kubelet_evictions', { eviction_signal: 'ephemeralpodfs.limit' });
      evicted = true;
    }
    return evicted;
  }

  /** By uid. A pod that cannot be measured is absent. */
  async #usages(pods: readonly KubePod[], withStorage: boolean): Promise<ReadonlyMap<string, PodUsage>> {
    const { runtime, log } = this.#dependencies;
    const usages = new Map<string, PodUsage>();
    for (const { metadata } of pods) {
      const uid = metadata.uid ?? '';
      try {
        const usage = await runtime.usage?.(uid, withStorage);
        if (usage !== undefined) usages.set(uid, usage);
      } catch (cause) {
        log.warn('the use of a pod cannot be measured', { podUid: uid, cause: describeError(cause) });
      }
    }
    return usages;
  }

  /** False if the pod must not be evicted. A pod that does not terminate in time counts as evicted, as upstream. */
  async #evict(pod: KubePod, graceSeconds: number, message: string): Promise<boolean> {
    const { log, time, recordPodEvent, killPod } = this.#dependencies;
    const { namespace, name } = pod.metadata;
    if (isCriticalPod(pod)) {
      log.warn('eviction manager: cannot evict a critical pod', { namespace, pod: name });
      return false;
    }
    recordPodEvent(pod, { type: 'Warning', reason: EVICTED_REASON, message });
    try {
      await killPod(pod, graceSeconds, (status) => evictedStatus(status, message, time.nowMs()));
      log.info('eviction manager: pod is evicted successfully', { namespace, pod: name, message });
    } catch (cause) {
      log.error('eviction manager: pod failed to evict', { namespace, pod: name, cause: describeError(cause) });
    }
    return true;
  }
}
