/**
 * Pods that must not run on two machines: when this machine stops them, and when it may start them (decision 0061).
 * shared/kinds/pods/offline-stop.ts has the time line and the half of the cluster.
 *
 * The annotation does nothing for static pods: only a file of this machine decides about them.
 */
import { OFFLINE_STOP_AFTER, offlineStopSeconds } from '../../shared/kinds/pods/offline-stop.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { formatGoDuration } from '../../shared/kubernetes/go-duration.ts';
import { recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import type { AgentTime } from '../ports/time.ts';
import { isMirrorPod, isStaticPod } from './critical-pod.ts';
import { killRequest } from './kill-request.ts';
import type { Owner } from './remembered-state.ts';
import { disruptedStatus, type PodStatus } from './shutdown-status.ts';

/** Reason of a pod that waits for a list after an answered heartbeat. */
export const WAITING_FOR_HEARTBEAT = 'WaitingForHeartbeat';
/** Reason of a pod that was stopped. */
export const OFFLINE_STOP = 'OfflineStop';

/** Two clocks at one moment. */
export interface ClockReading {
  /** Since the machine booted, with suspends. Milliseconds. */
  readonly uptimeMs: number;
  /** Epoch milliseconds. */
  readonly wallMs: number;
}

export const clockReading = (time: Pick<AgentTime, 'nowMs' | 'uptimeMs'>): ClockReading => ({
  uptimeMs: time.uptimeMs(),
  wallMs: time.nowMs(),
});

/**
 * The larger of both differences, at least 0. A step of the wall clock forwards makes it longer, which is safe. A step
 * backwards changes nothing. The wall clock alone counts while a hypervisor pauses the machine. Milliseconds.
 */
export const elapsedMs = (from: ClockReading, to: ClockReading): number =>
  Math.max(0, to.uptimeMs - from.uptimeMs, to.wallMs - from.wallMs);

/** Time without an answered heartbeat for which the pod may run. Milliseconds; undefined: for any time. */
export const offlineRunMs = (pod: KubePod): number | undefined => {
  const seconds = isStaticPod(pod) || isMirrorPod(pod) ? undefined : offlineStopSeconds(pod);
  return seconds === undefined ? undefined : seconds * 1_000;
};

/**
 * Whether the pod may start.
 *
 * @param listedAfter the newest answered heartbeat when a list was requested that then contained the pod
 */
export function mayStart(pod: KubePod, listedAfter: ClockReading | undefined, now: ClockReading): boolean {
  const runMs = offlineRunMs(pod);
  if (runMs === undefined) return true;
  return listedAfter !== undefined && elapsedMs(listedAfter, now) < runMs;
}

/**
 * The rest of the grace period of a pod that must stop. It begins when the time of the pod is over: a machine that
 * wakes up later has none left. In whole seconds, rounded up.
 *
 * @param silentMs time without an answered heartbeat, at least that of the pod
 */
export const graceSecondsLeft = (pod: KubePod, silentMs: number): number =>
  Math.max(0, Math.ceil(killRequest(pod, undefined).graceSeconds + ((offlineRunMs(pod) ?? 0) - silentMs) / 1_000));

const wholeSeconds = (milliseconds: number): string => formatGoDuration(Math.floor(milliseconds / 1_000) * 1_000);

const annotationOf = (pod: KubePod): string =>
  `${OFFLINE_STOP_AFTER}: ${pod.metadata.annotations?.[OFFLINE_STOP_AFTER]}`;

/** @param silentMs time without an answered heartbeat; Infinity: unknown, which counts as over */
export const stopMessage = (pod: KubePod, silentMs: number): string =>
  silentMs === Number.POSITIVE_INFINITY
    ? `Pod was stopped: the agent has started, and no heartbeat was answered (${annotationOf(pod)}).`
    : `Pod was stopped: no heartbeat was answered for ${wholeSeconds(silentMs)} (${annotationOf(pod)}).`;

export const waitMessage = (pod: KubePod): string =>
  `Pod starts when the API lists it after an answered heartbeat (${annotationOf(pod)}).`;

/** The status of a stopped pod. */
export const offlineStoppedStatus = (status: PodStatus, message: string, nowMs: number): PodStatus => ({
  ...disruptedStatus(status, message, nowMs),
  phase: 'Failed',
  reason: OFFLINE_STOP,
  message,
});

/** The status of a pod that may not start yet: its containers wait. */
export function waitingStatus(status: PodStatus, message: string): PodStatus {
  const state = { waiting: { reason: WAITING_FOR_HEARTBEAT, message } };
  const waiting = (field: 'containerStatuses' | 'initContainerStatuses'): PodStatus =>
    status[field] === undefined ? {} : { [field]: recordsOf(status[field]).map((each) => ({ ...each, state })) };
  return { ...status, ...waiting('containerStatuses'), ...waiting('initContainerStatuses') };
}

/** The node that sent a heartbeat, and the boot of its machine. */
export interface HeartbeatOrigin extends Owner {
  /** Differs after each start of the machine; '' if it is unknown. */
  readonly bootId: string;
}

export const heartbeatText = (origin: HeartbeatOrigin, { uptimeMs, wallMs }: ClockReading): string =>
  JSON.stringify({ ...origin, uptimeMs, wallMs });

/**
 * @param text what `heartbeatText` returned, a part of it, or another program wrote
 * @returns undefined unless the heartbeat is of this boot
 */
export function parseHeartbeat(text: string, origin: HeartbeatOrigin, nowUptimeMs: number): ClockReading | undefined {
  const found = ofThisBoot(text, origin);
  return found && readingIn(found, nowUptimeMs);
}

/** The permits of a hub, and its copies of pods (app/site-permits.ts). */
export interface KeptPermits {
  /** User name of the hub. */
  readonly hub: string;
  /** By uid of the pod: before the permit was asked for. */
  readonly permits: Readonly<Record<string, ClockReading>>;
  readonly copies: readonly KubePod[];
}

export const permitsText = (origin: HeartbeatOrigin, kept: KeptPermits): string =>
  JSON.stringify({ ...origin, ...kept });

/** As `parseHeartbeat`. Permits of a time that this boot has not reached do not count. */
export function parsePermits(text: string, origin: HeartbeatOrigin, nowUptimeMs: number): KeptPermits | undefined {
  const found = ofThisBoot(text, origin);
  if (found === undefined) return undefined;
  const permits = Object.entries(recordOf(found['permits'])).flatMap(([uid, value]) => {
    const reading = readingIn(recordOf(value), nowUptimeMs);
    return reading === undefined ? [] : [[uid, reading] as const];
  });
  const copies = recordsOf(found['copies']) as unknown as readonly KubePod[];
  return { hub: textOf(found['hub']), permits: Object.fromEntries(permits), copies };
}

function ofThisBoot(text: string, { bootId, nodeName, clusterId }: HeartbeatOrigin) {
  const found = recordOf(parsed(text));
  if (bootId === '' || found['bootId'] !== bootId) return undefined;
  return found['nodeName'] === nodeName && found['clusterId'] === clusterId ? found : undefined;
}

function readingIn({ uptimeMs, wallMs }: Readonly<Record<string, unknown>>, nowUptimeMs: number) {
  return isTime(uptimeMs) && isTime(wallMs) && uptimeMs <= nowUptimeMs ? { uptimeMs, wallMs } : undefined;
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
