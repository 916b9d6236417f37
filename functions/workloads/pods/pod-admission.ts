/**
 * Admission of new pods by policies and webhooks of the cluster, before the transaction that creates them. Only a
 * process that calls webhooks has it (server/webhooks/controller-pods.ts): elsewhere pods are written as made.
 *
 * A webhook may take seconds. A sync does not wait for it: the answer is kept in memory, and a later sync of the owner
 * uses it. Names of pods follow from the claim, so a sync under the same claim asks about the same pods. Under another
 * claim, or after a restart, it asks again, as upstream asks for each attempt.
 */

import type { KubeObject, KubePod } from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import type { OwnerKind } from './owner.ts';

export interface MadePod {
  readonly kind: 'pod';
  readonly pod: KubePod;
  /** As its controller made it, before defaults. Some of these follow from the uid. */
  readonly given: KubeObject;
  /** What is stored if admission makes this of it: with defaults, and validated. */
  readonly complete: (changed: KubePod) => PodCreation;
}

export type PodCreation =
  | MadePod
  /** The API would refuse it. `retryMs`: until the owner is synced again, milliseconds; absent: a minute. */
  | { readonly kind: 'refused'; readonly message: string; readonly retryMs?: number }
  /** Its namespace is being deleted: no failure of the owner. */
  | { readonly kind: 'namespaceTerminating' };

export type PodAdmission =
  /** One for each pod, in their order. */
  | { readonly kind: 'decided'; readonly pods: readonly PodCreation[] }
  /** The owner is synced again after this time, milliseconds. `failure`: why its last attempt failed. */
  | { readonly kind: 'waiting'; readonly retryMs: number; readonly failure?: string };

/** @throws StoreFault */
export type AdmitPods = (
  owner: { readonly kind: OwnerKind; readonly object: KubeObject },
  pods: readonly MadePod[],
) => Promise<PodAdmission>;

/**
 * What admission changed in a pod although its owner needs it: the owner would not find the pod, or count it twice, and
 * create another one without end. undefined: nothing.
 */
export function lostByAdmission({ metadata: made }: KubePod, { metadata: changed }: KubePod): string | undefined {
  const label = Object.entries(made.labels ?? {}).find(([key, value]) => changed.labels?.[key] !== value);
  if (label !== undefined) return `metadata.labels[${label[0]}]`;
  const finalizer = (made.finalizers ?? []).find((each) => changed.finalizers?.includes(each) !== true);
  if (finalizer !== undefined) return `metadata.finalizers[${finalizer}]`;
  return jsonEqual(made.ownerReferences ?? [], changed.ownerReferences ?? []) ? undefined : 'metadata.ownerReferences';
}
