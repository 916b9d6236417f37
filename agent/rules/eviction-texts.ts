/**
 * The texts and the status of an evicted pod. They are exactly those of upstream.
 * Source: pkg/kubelet/eviction/helpers.go (evictionMessage), eviction_manager.go (Admit, localStorageEviction).
 */

import { tolerates } from '../../shared/fleet/nodes/taint.ts';
import { podQosClass } from '../../shared/kinds/pods/pod-needs.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { Toleration } from '../../shared/kubernetes/kubernetes.ts';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { canonicalQuantity, formatQuantity } from '../../shared/kubernetes/quantity.ts';
import type { PodUsage } from '../ports/pod-runtime.ts';
import { isCriticalPod } from './critical-pod.ts';
import { bytesOfQuantity } from './eviction-ranking.ts';
import { amountOf, type Observations, resourceOf, type StarvedResource, type Threshold } from './eviction-signals.ts';
import type { PressureType } from './node-conditions.ts';
import { ADMITTED, type Admission, refused } from './pod-admission.ts';
import { containersOf } from './pod-containers.ts';
import { disruptedStatus, type PodStatus } from './shutdown-status.ts';

export const EVICTED_REASON = 'Evicted';

const NANO = 1_000_000_000n;

/** An amount as upstream prints it: bytes with binary suffixes, counts with decimal ones. */
const written = (resource: StarvedResource, amount: number): string =>
  formatQuantity({
    nanos: BigInt(Math.trunc(amount)) * NANO,
    format: resource === 'memory' || resource === 'ephemeral-storage' ? 'binary' : 'decimal',
  });

function thresholdText(resource: StarvedResource, due: readonly Threshold[], observations: Observations): string {
  for (const threshold of due) {
    const observation = observations[threshold.signal];
    if (resourceOf(threshold.signal) !== resource || observation === undefined) continue;
    const quantity = written(resource, amountOf(threshold, observation));
    return `Threshold quantity: ${quantity}, available: ${written(resource, observation.available)}. `;
  }
  return '';
}

/** Use of one container, if it is measured for this resource. */
function containerUse(resource: StarvedResource, used: PodUsage['containers'][number]): number | undefined {
  if (resource === 'memory') return used.memoryBytes;
  return resource === 'ephemeral-storage' ? used.storage.bytes : undefined;
}

/** Why this pod is evicted. Each sentence ends with a blank, as upstream. */
export function evictionMessage(
  resource: StarvedResource,
  pod: KubePod,
  usage: PodUsage | undefined,
  measured: { readonly due: readonly Threshold[]; readonly observations: Observations },
): string {
  const sentences = [
    `The node was low on resource: ${resource}. `,
    thresholdText(resource, measured.due, measured.observations),
  ];
  for (const used of usage?.containers ?? []) {
    const container = containersOf(pod).find(({ name, kind }) => name === used.name && kind !== 'init');
    const amount = containerUse(resource, used);
    const request = container?.requests[resource];
    if (container === undefined || amount === undefined || amount <= bytesOfQuantity(request)) continue;
    const requested = request === undefined ? '0' : canonicalQuantity(String(request));
    sentences.push(
      `Container ${used.name} was using ${written(resource, amount)}, request is ${requested}, has larger consumption of ${resource}. `,
    );
  }
  return sentences.join('');
}

/** Why a pod is evicted for its own limits on storage; undefined if it keeps them. */
export function storageLimitMessage(pod: KubePod, usage: PodUsage): string | undefined {
  const limits = containersOf(pod)
    .filter(({ kind }) => kind !== 'init')
    .map(({ name, limits: each }) => ({ name, limit: each['ephemeral-storage'] }));
  const total = limits.reduce((sum, { limit }) => sum + bytesOfQuantity(limit), 0);
  const parts = [...usage.containers.map(({ storage }) => storage), ...usage.volumes.values()];
  if (total > 0 && parts.reduce((sum, { bytes }) => sum + bytes, 0) > total) {
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${written('ephemeral-storage', total)}. `;
  }
  for (const { name, limit } of limits) {
    const used = usage.containers.find((each) => each.name === name)?.storage.bytes ?? 0;
    if (bytesOfQuantity(limit) <= 0 || used <= bytesOfQuantity(limit)) continue;
    return `Container ${name} exceeded its local ephemeral storage limit "${canonicalQuantity(String(limit))}". `;
  }
  return undefined;
}

/** Whether a pod has a limit that `storageLimitMessage` checks. Others are not measured. */
export const limitsStorage = (pod: KubePod): boolean =>
  containersOf(pod).some(({ limits }) => bytesOfQuantity(limits['ephemeral-storage']) > 0);

/** The status of an evicted pod: Failed, also if its containers exit with code 0. */
export const evictedStatus = (status: PodStatus, message: string, nowMs: number): PodStatus => ({
  ...disruptedStatus(status, message, nowMs),
  phase: 'Failed',
  reason: EVICTED_REASON,
  message,
});

const MEMORY_PRESSURE_TAINT = { key: 'node.kubernetes.io/memory-pressure', value: '', effect: 'NoSchedule' } as const;

/** Whether a pod may start under these pressures. Memory pressure alone keeps only BestEffort pods away. */
export function admitUnderPressure(pod: KubePod, pressures: readonly PressureType[]): Admission {
  if (pressures.length === 0 || isCriticalPod(pod)) return ADMITTED;
  if (pressures.every((type) => type === 'MemoryPressure')) {
    const tolerations = recordsOf(pod.spec?.tolerations) as unknown as readonly Toleration[];
    const tolerated = tolerations.some((each) => tolerates(each, MEMORY_PRESSURE_TAINT));
    if (podQosClass(pod) !== 'BestEffort' || tolerated) return ADMITTED;
  }
  return refused(EVICTED_REASON, `The node had condition: [${pressures.join(' ')}]. `);
}
