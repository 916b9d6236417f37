/**
 * Settings of the graceful shutdown, and the periods by priority that follow from them.
 * Source: validation.go (pkg/kubelet/apis/config/validation), migrateConfig in pkg/kubelet/nodeshutdown.
 */

import { formatGoDuration } from '../../shared/kubernetes/go-duration.ts';
import type { PriorityGrace } from '../config.ts';
import { SYSTEM_CRITICAL_PRIORITY } from './critical-pod.ts';

export interface ShutdownSettings {
  readonly shutdownGracePeriodMs: number;
  readonly shutdownGracePeriodCriticalPodsMs: number;
  readonly shutdownGracePeriodByPodPriority: readonly PriorityGrace[];
}

const zeroOrOneSecond = (field: string, milliseconds: number): string[] =>
  milliseconds === 0 || milliseconds >= 1_000
    ? []
    : [`invalid configuration: ${field} {${formatGoDuration(milliseconds)}} must be either zero or otherwise >= 1 sec`];

/** Upstream's error for every invalid setting; empty if all are valid. */
export function shutdownSettingFaults(settings: ShutdownSettings): string[] {
  const { shutdownGracePeriodMs: total, shutdownGracePeriodCriticalPodsMs: critical } = settings;
  const faults: string[] = [];
  if (settings.shutdownGracePeriodByPodPriority.length > 0 && (total > 0 || critical > 0)) {
    faults.push(
      'invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time',
    );
  }
  if (critical > total) {
    faults.push(
      `invalid configuration: shutdownGracePeriodCriticalPods {${formatGoDuration(critical)}} must be <= shutdownGracePeriod {${formatGoDuration(total)}}`,
    );
  }
  return [
    ...faults,
    ...zeroOrOneSecond('shutdownGracePeriod', total),
    ...zeroOrOneSecond('shutdownGracePeriodCriticalPods', critical),
  ];
}

const wholeSeconds = (milliseconds: number): number => Math.trunc(milliseconds / 1_000);

/**
 * The shutdown period of each priority, lowest first. Empty: graceful shutdown is off. A period of 0 s stays in the
 * list: its pods are terminated without a wait.
 */
export function shutdownBuckets(settings: ShutdownSettings): readonly PriorityGrace[] {
  const { shutdownGracePeriodMs: total, shutdownGracePeriodCriticalPodsMs: critical } = settings;
  if (settings.shutdownGracePeriodByPodPriority.length > 0) {
    return [...settings.shutdownGracePeriodByPodPriority].sort((left, right) => left.priority - right.priority);
  }
  if (total === 0 || total < critical) return [];
  return [
    { priority: 0, shutdownGracePeriodSeconds: wholeSeconds(total - critical) },
    { priority: SYSTEM_CRITICAL_PRIORITY, shutdownGracePeriodSeconds: wholeSeconds(critical) },
  ];
}

/** The delay requested from the system: the sum of all periods, also those without pods. Milliseconds. */
export const requestedDelayMs = (buckets: readonly PriorityGrace[]): number =>
  buckets.reduce((sum, { shutdownGracePeriodSeconds }) => sum + shutdownGracePeriodSeconds, 0) * 1_000;
