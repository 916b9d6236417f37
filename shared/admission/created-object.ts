/** Objects that controllers create, as policies and webhooks of the cluster see them before they are written. */

import type { CountedResource } from '../kinds/quotas/quota.ts';
import type { KubeObject } from '../kinds/types.ts';

export interface MadeObject {
  readonly kind: 'made';
  readonly object: KubeObject;
  /** As its controller made it, before defaults. Some of these follow from the uid. */
  readonly given: KubeObject;
  /** What is stored if admission makes this of it: with defaults. */
  readonly complete: (changed: KubeObject) => Creation;
}

export type Creation =
  | MadeObject
  /** The API would refuse it. `retryMs`: until the owner is synced again, milliseconds; absent: a minute. */
  | { readonly kind: 'refused'; readonly message: string; readonly retryMs?: number };

/** The owner is synced again after this time, milliseconds. `failure`: why its last attempt failed. */
export interface AdmissionWait {
  readonly kind: 'waiting';
  readonly retryMs: number;
  readonly failure?: string;
}

export type Admission =
  /** One for each object, in their order. */
  { readonly kind: 'decided'; readonly objects: readonly Creation[] } | AdmissionWait;

/** Accounts of kube-controller-manager, in kube-system. A Pod owns the claims of its ephemeral volumes. */
export const CREATOR_ACCOUNTS = {
  Deployment: 'deployment-controller',
  ReplicaSet: 'replicaset-controller',
  ReplicationController: 'replication-controller',
  DaemonSet: 'daemon-set-controller',
  StatefulSet: 'statefulset-controller',
  Job: 'job-controller',
  CronJob: 'cronjob-controller',
  Pod: 'ephemeral-volume-controller',
} as const;

export interface Creator {
  readonly kind: keyof typeof CREATOR_ACCOUNTS;
  readonly object: KubeObject;
}

/** @param of the resource of the objects @throws StoreFault */
export type AdmitObjects = (
  creator: Creator,
  of: CountedResource,
  objects: readonly MadeObject[],
) => Promise<Admission>;
