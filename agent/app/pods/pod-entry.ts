/** The state of one pod in the agent, from the first list that contains it until its removal. */

import type { KubePod } from '../../../shared/kinds/types.ts';
import { textOf } from '../../../shared/kubernetes/normal-form.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import { isStaticPod } from '../../rules/critical-pod.ts';
import type { ClockReading } from '../../rules/offline-stop.ts';
import { type ResizeProgress, resourcesOf, withResources } from '../../rules/pod-resize.ts';
import { hasEnded } from '../../rules/pod-status.ts';
import type { PodStatus } from '../../rules/shutdown-status.ts';

export interface PodKill {
  graceSeconds: number;
  /** Returns the last status of the pod. `status`: the one that follows from its containers. */
  readonly change: (status: PodStatus) => PodStatus;
  readonly done: PromiseWithResolvers<void>;
  /** It ends the pod for good, also before the API knows it: no restart without the API starts it again. */
  readonly isFinal?: boolean;
}

export type PendingResize = NonNullable<ResizeProgress['pending']> & { readonly sinceMs: number };

export interface PodEntry {
  readonly uid: string;
  /** Its containers have the resources that this node allocated. */
  pod: KubePod;
  /** The pod of the API, if it wants other resources than allocated. */
  desired?: KubePod;
  /** Why `desired` is not allocated, once that was decided. */
  pendingResize?: PendingResize;
  /** The last allocated resize, until the containers run with it. */
  resizing?: NonNullable<ResizeProgress['inProgress']>;
  /** The pod that shows a static pod in the API. */
  mirror?: KubePod;
  /** Whether the last list of the API, or a file for a static pod, contains it. */
  present: boolean;
  admission: 'waiting' | 'admitted' | 'refused';
  /** Whether this process called `start` of the runtime. */
  started: boolean;
  /** True: a previous agent started it, and this one has not read its containers yet. */
  adopted: boolean;
  /** It is remembered from before this agent started, and no list has confirmed it yet. */
  isRemembered: boolean;
  /** The newest answered heartbeat when the last list was requested that contains it. */
  listedAfter?: ClockReading | undefined;
  /** It may not start before it is in a list that is requested after an answered heartbeat. */
  isWaitingForHeartbeat: boolean;
  /** The runtime may run it: a start was requested, or a previous agent's start was found running. */
  mayRun: boolean;
  /** The runtime has stopped it. */
  stopped: boolean;
  /** Its start, by the uptime of the machine; a negative one was before its boot. Milliseconds. */
  activeSinceMs?: number;
  kill?: PodKill;
  /** The newest status; undefined before this agent computed one. */
  status?: PodStatus;
  /** The status that the API last accepted from this agent, as text. */
  reported?: string;
  /** Whether the API has accepted the final DELETE of the pod. */
  deletionConfirmed: boolean;
  /** Grace period of the current stop. Seconds. */
  stoppingSeconds?: number;
  /** The state of each container that an event was recorded for, by container name. */
  readonly recordedStates: Map<string, string>;
  /** The current synchronization. */
  sync?: Promise<void>;
  /** Synchronize once more when `sync` has finished. */
  syncAgain: boolean;
  failures: number;
  /** When a failed synchronization is retried. Monotonic milliseconds. */
  retryAtMs?: number;
}

export const newPodEntry = (pod: KubePod, present: boolean): PodEntry => ({
  uid: pod.metadata.uid ?? '',
  pod,
  present,
  admission: hasEnded(pod) ? 'admitted' : 'waiting',
  started: false,
  adopted: false,
  isRemembered: false,
  isWaitingForHeartbeat: false,
  mayRun: false,
  stopped: false,
  deletionConfirmed: false,
  recordedStates: new Map(),
  syncAgain: false,
  failures: 0,
});

/**
 * The pod of the API, with the resources that are allocated to it. `desired`: it wants others.
 *
 * @param allocated undefined: it gets what it wants
 */
export function asAllocated(listed: KubePod, allocated: KubePod | undefined): Pick<PodEntry, 'pod' | 'desired'> {
  const pod = allocated === undefined ? listed : withResources(listed, (name) => resourcesOf(allocated, name));
  return pod === listed ? { pod } : { pod, desired: listed };
}

export const logFields = ({ pod }: PodEntry) => ({
  namespace: pod.metadata.namespace,
  pod: pod.metadata.name,
  podUid: pod.metadata.uid,
});

export const isDeleted = ({ pod }: PodEntry): boolean => pod.metadata.deletionTimestamp !== undefined;

/** Whether a status says that no container of the pod starts any more. */
export const isTerminal = (status: PodStatus | undefined): boolean =>
  status?.['phase'] === 'Succeeded' || status?.['phase'] === 'Failed';

export const hasFinished = (entry: PodEntry): boolean => hasEnded(entry.pod) || isTerminal(entry.status);

/** Its resources are in use on this node. */
export const countsOnNode = (entry: PodEntry): boolean =>
  entry.present && entry.admission === 'admitted' && !hasFinished(entry);

/**
 * Whether it runs again after a restart without the API: what the API wants, and has not ended by itself. A pod that
 * the agent terminated, such as for a shutdown of the machine, has not ended as long as the API does not know it. One
 * that an offline stop or its deadline terminated has ended.
 */
export function isWantedAgain(entry: PodEntry): boolean {
  if (!entry.present || entry.admission !== 'admitted' || isDeleted(entry) || hasEnded(entry.pod)) return false;
  if (isStaticPod(entry.pod)) return false;
  if (!isTerminal(entry.status)) return true;
  const isKilled = entry.kill !== undefined && entry.kill.isFinal !== true;
  return isKilled && entry.reported !== JSON.stringify(entry.status);
}

/** Oldest first, then by name. */
export const byAge = (one: PodEntry, other: PodEntry): number =>
  (parseTimeMs(one.pod.metadata.creationTimestamp) ?? 0) - (parseTimeMs(other.pod.metadata.creationTimestamp) ?? 0) ||
  textOf(one.pod.metadata.name).localeCompare(textOf(other.pod.metadata.name));
