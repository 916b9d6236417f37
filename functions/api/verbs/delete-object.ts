/**
 * Deletion of one object. Kubernetes: upstream k8s.io/apiserver pkg/registry/generic/registry/store.go, rest/delete.go.
 *
 * A running pod on a node is first marked with its grace period. It is removed when the node deletes it with grace
 * period 0. A second DELETE can only shorten the grace period. An object with finalizers is removed when the last
 * finalizer is removed.
 */

import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { markDeleted, podGraceSeconds } from '../../../shared/kubernetes/deletion.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { pauseBefore, resourceVersionOf, WRITE_ATTEMPTS_MAX, type WriteOptions } from './write-options.ts';

export interface DeleteOptions {
  /** Grace period of a pod on a node. Seconds. Absent: the one in the pod's spec. */
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

export interface DeletedObject {
  readonly object: KubeObject;
  /** True: the object was removed. False: it is marked and waits for its grace period or finalizers. */
  readonly removed: boolean;
}

/** Changes to the default steps of a deletion, decided per attempt. */
export interface Deletion {
  /** True: mark the object as deleted, but do not remove it now. */
  readonly markOnly?: boolean;
  /** The finalizers from now on. Absent: those that it has. */
  readonly finalizers?: readonly string[];
  /** Changes the marked object before it is stored. */
  readonly mark?: (marked: KubeObject) => KubeObject;
  /** Writes of other objects in the same transaction. */
  readonly along?: readonly ObjectWrite[];
}

export type DecideDeletion = (old: KubeObject) => Promise<Deletion>;

const PLAIN: Deletion = {};

/**
 * Marks or removes one object. At most WRITE_ATTEMPTS_MAX attempts.
 *
 * @param decide called at each attempt with the current object; throws the Status of a refusal
 * @throws StatusError 404 when there is no object, 409 for an unmet precondition or when other writers win each attempt
 */
export async function deleteObject(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  requested: DeleteOptions,
  options: WriteOptions,
  decide: DecideDeletion = async () => PLAIN,
): Promise<DeletedObject> {
  const storage = dependencies.storageOf(descriptor);
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 1) await pauseBefore(dependencies, attempt);
    const old = await storage.get(target.namespace, target.name);
    if (old === undefined) throw status.notFound(descriptor, target.name);
    refuseUnmetPreconditions(descriptor, target.name, old, requested);
    await options.admit?.(undefined, old);
    const { markOnly = false, finalizers, mark, along } = await decide(old);
    const graceSeconds = graceOf(descriptor, old, requested);
    const held = markOnly || graceSeconds > 0 || (finalizers ?? old.metadata.finalizers ?? []).length > 0;
    if (!held) {
      if (options.dryRun) return { object: old, removed: true };
      const result = await storage.remove(old, along);
      if (result.kind === 'conflict') continue;
      return { object: old, removed: true };
    }
    const marked = withFinalizers(markDeleted(old, graceSeconds, options.nowMs), finalizers);
    if (marked === old || options.dryRun) return { object: marked, removed: false };
    const result = await storage.update(mark?.(marked) ?? marked, old, along);
    if (result.kind === 'written') return { object: result.object, removed: false };
  }
  throw status.conflict(descriptor, target.name);
}

function withFinalizers(object: KubeObject, wanted: readonly string[] | undefined): KubeObject {
  if (wanted === undefined) return object;
  const { finalizers: _replaced, ...metadata } = object.metadata;
  return { ...object, metadata: wanted.length === 0 ? metadata : { ...metadata, finalizers: [...wanted] } };
}

function refuseUnmetPreconditions(
  descriptor: ResourceDescriptor,
  name: string,
  old: KubeObject,
  { preconditions }: DeleteOptions,
): void {
  const uid = old.metadata.uid ?? '';
  // Upstream names the kind here, not the plural resource: k8s.io/apiserver pkg/registry/rest/delete.go.
  const kind = { group: descriptor.group, resource: descriptor.kind };
  if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
    throw status.conflict(
      kind,
      name,
      `the UID in the precondition (${preconditions.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    );
  }
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersionOf(old)) {
    throw status.conflict(
      kind,
      name,
      `the ResourceVersion in the precondition (${preconditions.resourceVersion}) does not match the ResourceVersion in record (${resourceVersionOf(old)}). The object might have been modified`,
    );
  }
}

/** Grace period in seconds. 0 for every kind except pods. */
const graceOf = (descriptor: ResourceDescriptor, old: KubeObject, requested: DeleteOptions): number =>
  descriptor.group === '' && descriptor.resource === 'pods' ? podGraceSeconds(old, requested.gracePeriodSeconds) : 0;
