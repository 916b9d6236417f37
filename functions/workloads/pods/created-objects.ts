/**
 * Admission of objects that controllers create, by policies and webhooks of the cluster, before the transaction that
 * creates them: pods, and what pods come from, which are ReplicaSets, Jobs, ControllerRevisions and claims.
 * Source: every controller of kube-controller-manager is a client of the API.
 *
 * A webhook may take seconds. A sync does not wait for it: the answer is kept in memory, and a later sync of the owner
 * uses it. Names follow from the owner, so a later sync asks about the same objects. Pods have other names under
 * another claim. Then, and after a restart, it asks again, as upstream asks for each attempt.
 */

import type { Creation } from '../../../shared/admission/created-object.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';

/** In a namespace that is being deleted none is created: no failure of the owner. */
export type PodCreation = Creation | { readonly kind: 'namespaceTerminating' };

/**
 * What admission changed in an object although its owner needs it: the owner would not find the object, or count it
 * twice, and create another one without end. Name, namespace and uid are kept by admission. undefined: nothing.
 */
export function lostByAdmission({ metadata: made }: KubeObject, { metadata: changed }: KubeObject): string | undefined {
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
