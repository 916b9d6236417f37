/**
 * Evicts pods that exceed the size limit of an emptyDir. Source: upstream pkg/kubelet/eviction/eviction_manager.go
 * (emptyDirLimitEviction).
 */
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { AgentTime } from '../../ports/time.ts';
import { isCriticalPod } from '../../rules/critical-pod.ts';
import { EVICTED_REASON, evictedStatus } from '../../rules/eviction-texts.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import type { PodStatus } from '../../rules/shutdown-status.ts';
import { sizeLimitBytes } from '../../rules/volume-content.ts';
import { describeError } from '../describe-error.ts';
import type { PodInputs } from './pod-inputs.ts';

/** A kubelet measures volumes in this period. Milliseconds. */
export const VOLUME_LIMIT_CHECK_MS = 60_000;
/** Grace period of such an eviction. Seconds. */
const GRACE_SECONDS = 1;

export interface VolumeLimitsDependencies {
  readonly inputs: Pick<PodInputs, 'usedBytes'>;
  readonly time: AgentTime;
  readonly log: Log;
  readonly activePods: () => readonly KubePod[];
  readonly killPod: (pod: KubePod, graceSeconds: number, change: (status: PodStatus) => PodStatus) => Promise<void>;
  readonly recordEvent: (pod: KubePod, event: NodeEvent) => void;
}

export class VolumeLimits {
  readonly #dependencies: VolumeLimitsDependencies;

  constructor(dependencies: VolumeLimitsDependencies) {
    this.#dependencies = dependencies;
  }

  /** Until stopped. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.#dependencies.time.sleep(VOLUME_LIMIT_CHECK_MS, stop);
      if (!stop.aborted) await this.#check();
    }
  }

  async #check(): Promise<void> {
    const { activePods, log } = this.#dependencies;
    for (const pod of activePods()) {
      try {
        await this.#checkPod(pod);
      } catch (cause) {
        const { name, namespace } = pod.metadata;
        log.warn('the volumes of a pod could not be measured', { namespace, pod: name, why: describeError(cause) });
      }
    }
  }

  async #checkPod(pod: KubePod): Promise<void> {
    for (const volume of pod.spec?.volumes ?? []) {
      const limitBytes = sizeLimitBytes(volume);
      if (limitBytes === undefined) continue;
      const name = { podUid: pod.metadata.uid ?? '', volume: volume.name ?? '' };
      if ((await this.#dependencies.inputs.usedBytes(name)) <= limitBytes) continue;
      // The text of upstream ends with a space.
      const limit = JSON.stringify(volume.emptyDir?.sizeLimit);
      return this.#evict(pod, `Usage of EmptyDir volume ${JSON.stringify(volume.name)} exceeds the limit ${limit}. `);
    }
  }

  async #evict(pod: KubePod, message: string): Promise<void> {
    const { killPod, recordEvent, time } = this.#dependencies;
    if (isCriticalPod(pod)) return;
    recordEvent(pod, { type: 'Warning', reason: EVICTED_REASON, message });
    await killPod(pod, GRACE_SECONDS, (status) => evictedStatus(status, message, time.nowMs()));
  }
}
