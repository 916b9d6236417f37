/**
 * The Lease of this node, and when it is renewed (component-helpers/apimachinery/lease/controller.go,
 * pkg/kubelet/util/nodelease.go).
 */

import { HEARTBEAT_URL_ANNOTATION } from '../../shared/fleet/nodes/heartbeat-url.ts';
import { BEAT_INTERVAL_ANNOTATION, LEASE_DURATION_ANNOTATION } from '../../shared/fleet/nodes/node-profile.ts';
import { type NodeUsage, USAGE_ANNOTATION, usageText } from '../../shared/fleet/nodes/node-usage.ts';
import { INTERVAL_JITTER } from '../../shared/fleet/policy.ts';
import { SILENT_MACHINES_ANNOTATION } from '../../shared/fleet/silent-machines.ts';
import { LEASE_NAMESPACE } from '../../shared/kinds/leases/resource.ts';
import type { KubeNode, KubeObject, OwnerReference } from '../../shared/kinds/types.ts';
import { formatMicroTime } from '../../shared/kubernetes/time.ts';

/** The server changes this annotation in its answer to a heartbeat whenever pods of the node changed. */
export const PODS_VERSION_ANNOTATION = 'nodekeeper.dev/pods-version';

/** The same for requests for logs of its pods. */
export const LOGS_VERSION_ANNOTATION = 'nodekeeper.dev/logs-version';
export const VOLUMES_VERSION_ANNOTATION = 'nodekeeper.dev/volumes-version';
export const SERVICES_VERSION_ANNOTATION = 'nodekeeper.dev/services-version';

const DEFAULT_LEASE_DURATION_SECONDS = 40;
/** A Lease is renewed four times per lease duration. */
const RENEWAL_FRACTION = 0.25;

export const LEASES_PATH = `/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE}/leases`;
export const leasePath = (nodeName: string): string => `${LEASES_PATH}/${encodeURIComponent(nodeName)}`;
export const nodePath = (nodeName: string): string => `/api/v1/nodes/${encodeURIComponent(nodeName)}`;

/** The effective nodeLeaseDurationSeconds; 0 means unset. */
export const leaseDurationSeconds = (configured: number | undefined): number =>
  configured === undefined || configured === 0 ? DEFAULT_LEASE_DURATION_SECONDS : configured;

/** Milliseconds from the end of a round to the next, before jitter. */
export const renewIntervalMs = (durationSeconds: number): number => durationSeconds * 1_000 * RENEWAL_FRACTION;

/** The wait between two rounds: in [interval, 1.04 × interval) for a `fraction` in [0, 1). Milliseconds. */
export const jitteredMs = (intervalMs: number, fraction: number): number =>
  intervalMs * (1 + INTERVAL_JITTER * fraction);

/**
 * The wait after the first round, which starts at once: a share of the interval, derived from the name. Machines that
 * boot in the same second, as after a power cut, are spread over the interval from their second heartbeat on.
 * Milliseconds.
 */
export const firstWaitMs = (intervalMs: number, nodeName: string): number => intervalMs * nameFraction(nodeName);

/** FNV-1a over UTF-16 units with a final mix, as a number in [0, 1). */
export function nameFraction(name: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < name.length; index += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  }
  // Before this step, names that differ only in their last digit differ only in the low bits.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

export interface Renewal {
  readonly leaseDurationSeconds: number;
  readonly nowMs: number;
  /** What the machine used in the last minute. */
  readonly usage?: NodeUsage | undefined;
  /** What the machine reports about others of its site. */
  readonly silentMachines?: string | undefined;
  /** The Node that was just read; used only if `needsOwner`. */
  readonly node?: KubeNode | undefined;
}

const ownerOf = (node: KubeNode): OwnerReference => ({
  apiVersion: 'v1',
  kind: 'Node',
  name: node.metadata.name ?? '',
  uid: node.metadata.uid ?? '',
});

export const newLease = (node: KubeNode, { leaseDurationSeconds, nowMs }: Omit<Renewal, 'node'>): KubeObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: node.metadata.name ?? '', namespace: LEASE_NAMESPACE, ownerReferences: [ownerOf(node)] },
  spec: {
    holderIdentity: node.metadata.name ?? '',
    leaseDurationSeconds,
    renewTime: formatMicroTime(nowMs),
  },
});

/** A Lease with an owner of any kind keeps it. The Node is read only for a Lease without one. */
export const needsOwner = (lease: KubeObject): boolean => (lease.metadata.ownerReferences ?? []).length === 0;

/**
 * The body of a renewal: the base with the new duration and renewal time, and a missing owner added. The holder stays.
 */
export function renewedLease(
  base: KubeObject,
  { leaseDurationSeconds, nowMs, node, usage, silentMachines }: Renewal,
): KubeObject {
  const {
    [PODS_VERSION_ANNOTATION]: _pods,
    [LOGS_VERSION_ANNOTATION]: _logs,
    [VOLUMES_VERSION_ANNOTATION]: _volumes,
    [SERVICES_VERSION_ANNOTATION]: _services,
    [BEAT_INTERVAL_ANNOTATION]: _interval,
    [LEASE_DURATION_ANNOTATION]: _duration,
    [HEARTBEAT_URL_ANNOTATION]: _url,
    [SILENT_MACHINES_ANNOTATION]: _silent,
    ...kept
  } = base.metadata.annotations ?? {};
  const annotations = {
    ...kept,
    ...(usage === undefined ? {} : { [USAGE_ANNOTATION]: usageText(usage) }),
    ...(silentMachines === undefined ? {} : { [SILENT_MACHINES_ANNOTATION]: silentMachines }),
  };
  const { annotations: _all, ...metadata } = base.metadata;
  return {
    ...base,
    metadata: {
      ...metadata,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      ...(needsOwner(base) && node !== undefined ? { ownerReferences: [ownerOf(node)] } : {}),
    },
    spec: { ...base.spec, leaseDurationSeconds, renewTime: formatMicroTime(nowMs) },
  };
}

/** When and with which duration a machine renews its Lease. */
export interface LeaseTiming {
  /** Time from the end of a round to the next, before jitter. Milliseconds. */
  readonly intervalMs: number;
  /** leaseDurationSeconds of the Lease. Seconds. */
  readonly durationSeconds: number;
}

/** Longest interval that an answer may ask for. Seconds; one hour. */
const ANSWERED_INTERVAL_SECONDS_MAX = 3_600;

/**
 * The timing that the answer to a heartbeat asks for: the times of the node's profile. Undefined if the answer has
 * none, or values that no policy has: a Lease lasts at least three intervals.
 */
export function answeredTiming(lease: KubeObject): LeaseTiming | undefined {
  const secondsIn = (annotation: string): number => {
    const text = lease.metadata.annotations?.[annotation] ?? '';
    return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : Number.NaN;
  };
  const intervalSeconds = secondsIn(BEAT_INTERVAL_ANNOTATION);
  const durationSeconds = secondsIn(LEASE_DURATION_ANNOTATION);
  const isUsable = intervalSeconds <= ANSWERED_INTERVAL_SECONDS_MAX && durationSeconds >= 3 * intervalSeconds;
  return isUsable ? { intervalMs: intervalSeconds * 1_000, durationSeconds } : undefined;
}

/**
 * A longer interval is followed after it was answered for this long. A new policy reaches function heartbeat and
 * node-monitor minutes apart: until node-monitor has it, a machine with the longer interval would exceed the grace
 * period that it knows. Milliseconds.
 */
const LONGER_INTERVAL_AFTER_MS = 300_000;

/** The timing that a machine follows. */
export interface FollowedTiming extends LeaseTiming {
  /** Since when answers ask for a longer interval; undefined: they do not. Monotonic milliseconds. */
  readonly longerSinceMs?: number | undefined;
}

/**
 * The timing to follow after an answer that asks for `wanted`: a shorter interval at once, a longer one later.
 *
 * @param isRelayed whether a relay may have made up the answer. A longer interval waits for an answer of the cluster
 * itself: otherwise a relay could silence the machine for an hour.
 */
export function followedTiming(
  { longerSinceMs, ...followed }: FollowedTiming,
  wanted: LeaseTiming,
  monotonicMs: number,
  isRelayed = false,
): FollowedTiming {
  if (wanted.intervalMs <= followed.intervalMs) return wanted;
  const sinceMs = longerSinceMs ?? monotonicMs;
  const waits = isRelayed || monotonicMs - sinceMs < LONGER_INTERVAL_AFTER_MS;
  return waits ? { ...followed, longerSinceMs: sinceMs } : wanted;
}

/** Undefined until a pod of the node changes for the first time. */
export const podsVersionOf = (lease: KubeObject): string | undefined =>
  lease.metadata.annotations?.[PODS_VERSION_ANNOTATION];

/** Undefined until a log of the node is requested for the first time. */
export const logsVersionOf = (lease: KubeObject): string | undefined =>
  lease.metadata.annotations?.[LOGS_VERSION_ANNOTATION];

/** Undefined until a volume of the node is to be made for the first time. */
export const volumesVersionOf = (lease: KubeObject): string | undefined =>
  lease.metadata.annotations?.[VOLUMES_VERSION_ANNOTATION];

/** Undefined until the node is on the list of those that route Services. */
export const servicesVersionOf = (lease: KubeObject): string | undefined =>
  lease.metadata.annotations?.[SERVICES_VERSION_ANNOTATION];

/** The URL for heartbeats in an answer to a heartbeat; undefined: there is none, or it is no https URL of a server. */
export function heartbeatUrlOf(answer: unknown): string | undefined {
  const url = (answer as KubeObject | undefined)?.metadata?.annotations?.[HEARTBEAT_URL_ANNOTATION];
  return typeof url === 'string' && /^https:\/\/[a-z0-9.:-]+$/.test(url) ? url : undefined;
}
