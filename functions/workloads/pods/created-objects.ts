/**
 * Admission of objects that controllers create, by policies and webhooks of the cluster, before the transaction that
 * creates them: pods, and what pods come from, which are ReplicaSets, Jobs, ControllerRevisions and claims. Only a
 * process that calls webhooks has it (server/webhooks/controller-objects.ts): elsewhere objects are written as made.
 *
 * A webhook may take seconds. A sync does not wait for it: the answer is kept in memory, and a later sync of the owner
 * uses it. Names follow from the owner, so a later sync asks about the same objects. Pods have other names under
 * another claim. Then, and after a restart, it asks again, as upstream asks for each attempt.
 */

import type { CountedResource } from '../../../shared/kinds/quotas/usage.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import type { OwnerKind } from './owner.ts';

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

/** In a namespace that is being deleted none is created: no failure of the owner. */
export type PodCreation = Creation | { readonly kind: 'namespaceTerminating' };

/** The owner is synced again after this time, milliseconds. `failure`: why its last attempt failed. */
export interface AdmissionWait {
  readonly kind: 'waiting';
  readonly retryMs: number;
  readonly failure?: string;
}

export type Admission =
  /** One for each object, in their order. */
  { readonly kind: 'decided'; readonly objects: readonly Creation[] } | AdmissionWait;

export interface Creator {
  /** A Pod owns the claims of its ephemeral volumes. */
  readonly kind: OwnerKind | 'Deployment' | 'Pod';
  readonly object: KubeObject;
}

/** @param of the resource of the objects @throws StoreFault */
export type AdmitObjects = (
  creator: Creator,
  of: CountedResource,
  objects: readonly MadeObject[],
) => Promise<Admission>;

const IDENTITY = ['name', 'namespace', 'uid'] as const;

/**
 * What admission changed in an object although its owner needs it: the owner would not find the object, or count it
 * twice, and create another one without end. undefined: nothing.
 */
export function lostByAdmission({ metadata: made }: KubeObject, { metadata: changed }: KubeObject): string | undefined {
  const identity = IDENTITY.find((field) => changed[field] !== made[field]);
  if (identity !== undefined) return `metadata.${identity}`;
  const label = Object.entries(made.labels ?? {}).find(([key, value]) => changed.labels?.[key] !== value);
  if (label !== undefined) return `metadata.labels[${label[0]}]`;
  const finalizer = (made.finalizers ?? []).find((each) => changed.finalizers?.includes(each) !== true);
  if (finalizer !== undefined) return `metadata.finalizers[${finalizer}]`;
  return jsonEqual(made.ownerReferences ?? [], changed.ownerReferences ?? []) ? undefined : 'metadata.ownerReferences';
}

/** As the API refuses an invalid object. */
export const invalidObject = (kind: string, { metadata }: KubeObject, field: string | undefined, why: string) =>
  ({ kind: 'refused', message: `${kind} "${metadata.name ?? ''}" is invalid: ${field}: ${why}` }) as const;

export const LOST = 'its owner needs it, and admission changed it';
