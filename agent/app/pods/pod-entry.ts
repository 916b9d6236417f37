/** What the agent knows about one pod, from the first list that contains it until its removal. */
import { textOf } from '../../../shared/kube/normal-form.ts';
import { parseTimeMs } from '../../../shared/kube/time.ts';
import type { KubeObject } from '../../../shared/kube/types.ts';
import { hasEnded } from '../../rules/pod-status.ts';
import type { PodStatus } from '../../rules/shutdown-status.ts';

export interface PodKill {
  graceSeconds: number;
  /** Makes the last status of the pod from the one that its containers imply. */
  readonly change: (status: PodStatus) => PodStatus;
  readonly done: PromiseWithResolvers<void>;
}

export interface PodEntry {
  readonly uid: string;
  pod: KubeObject;
  /** The API's last list contains it. */
  present: boolean;
  admission: 'waiting' | 'admitted' | 'refused';
  /** This process has asked the runtime to start it. */
  started: boolean;
  /** A previous agent started it, and this one has not read its containers yet. */
  adopted: boolean;
  /** The runtime has stopped it. */
  stopped: boolean;
  kill?: PodKill;
  /** The newest status; undefined before this agent computed one. */
  status?: PodStatus;
  /** The status that the API last accepted from this agent, as text. */
  reported?: string;
  /** The API has been asked to remove the deleted pod. */
  deletionConfirmed: boolean;
  /** Grace period of the stop under way. Seconds. */
  stoppingSeconds?: number;
  /** The state of each container that an event was recorded for, by container name. */
  readonly recordedStates: Map<string, string>;
  /** The synchronization under way. */
  sync?: Promise<void>;
  /** Synchronize once more when `sync` has finished. */
  syncAgain: boolean;
  failures: number;
  /** On the monotonic clock. Milliseconds. */
  retryAtMs?: number;
}

export const newPodEntry = (pod: KubeObject, present: boolean): PodEntry => ({
  uid: pod.metadata.uid ?? '',
  pod,
  present,
  admission: hasEnded(pod) ? 'admitted' : 'waiting',
  started: false,
  adopted: false,
  stopped: false,
  deletionConfirmed: false,
  recordedStates: new Map(),
  syncAgain: false,
  failures: 0,
});

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

/** Oldest first, then by name. */
export const byAge = (one: PodEntry, other: PodEntry): number =>
  (parseTimeMs(one.pod.metadata.creationTimestamp) ?? 0) - (parseTimeMs(other.pod.metadata.creationTimestamp) ?? 0) ||
  textOf(one.pod.metadata.name).localeCompare(textOf(other.pod.metadata.name));
