/**
 * Deletion of one object. Kubernetes: upstream k8s.io/apiserver pkg/registry/generic/registry/store.go, rest/delete.go.
 *
 * A pod that is bound to a node and still running is marked with its grace period and removed when its node confirms
 * with grace 0; a second delete can only shorten the grace. Finalizers hold any object until they are removed.
 */
import { markDeleted, podGraceSeconds } from '../../kube/deletion.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { finishNamespaceOf } from '../admission/finish-namespace.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { pauseBefore, resourceVersionOf, WRITE_ATTEMPTS_MAX, type WriteOptions } from './write-options.ts';

export interface DeleteOptions {
  /** Seconds a pod on a node may take to end; undefined: the pod's own. */
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

export interface DeletedObject {
  readonly object: KubeObject;
  /** The object is gone; otherwise it is marked and waits for its grace period or finalizers. */
  readonly removed: boolean;
}

/** What has to happen for one attempt at a deletion, besides the deletion itself. */
export interface Deletion {
  /** The object is marked, not removed, even if nothing else holds it. */
  readonly holds?: boolean;
  /** Changes what a marked object looks like. */
  readonly mark?: (marked: KubeObject) => KubeObject;
  /** Written in the same transaction. */
  readonly along?: readonly ObjectWrite[];
}

export type DecideDeletion = (old: KubeObject) => Promise<Deletion>;

const PLAIN: Deletion = {};

/** `decide` is asked at each attempt, with the object as it is then; it throws the Status of a refusal. */
export async function deleteObject(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  wanted: DeleteOptions,
  options: WriteOptions,
  decide: DecideDeletion = async () => PLAIN,
): Promise<DeletedObject> {
  const storage = dependencies.storageOf(descriptor);
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 1) await pauseBefore(dependencies, attempt);
    const old = await storage.get(target.namespace, target.name);
    if (old === undefined) throw status.notFound(descriptor, target.name);
    refuseUnmetPreconditions(descriptor, target.name, old, wanted);
    await options.admit?.(undefined, old);
    const { holds = false, mark, along } = await decide(old);
    const graceSeconds = graceOf(descriptor, old, wanted);
    const held = holds || graceSeconds > 0 || (old.metadata.finalizers ?? []).length > 0;
    if (!held) {
      if (options.dryRun) return { object: old, removed: true };
      const result = await storage.remove(old, along);
      if (result.kind === 'conflict') continue;
      await finishNamespaceOf(dependencies, old);
      return { object: old, removed: true };
    }
    const marked = markDeleted(old, graceSeconds, options.nowMs);
    if (marked === old || options.dryRun) return { object: marked, removed: false };
    const result = await storage.update(mark?.(marked) ?? marked, old, along);
    if (result.kind === 'written') return { object: result.object, removed: false };
  }
  throw status.conflict(descriptor, target.name);
}

function refuseUnmetPreconditions(
  descriptor: ResourceDescriptor,
  name: string,
  old: KubeObject,
  { preconditions }: DeleteOptions,
): void {
  const uid = old.metadata.uid ?? '';
  if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
    throw status.conflict(
      descriptor,
      name,
      `Precondition failed: UID in precondition: ${preconditions.uid}, UID in object meta: ${uid}`,
    );
  }
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersionOf(old)) {
    throw status.conflict(
      descriptor,
      name,
      `Precondition failed: ResourceVersion in precondition: ${preconditions.resourceVersion}, ResourceVersion in object meta: ${resourceVersionOf(old)}`,
    );
  }
}

/** Only pods end gracefully. */
const graceOf = (descriptor: ResourceDescriptor, old: KubeObject, wanted: DeleteOptions): number =>
  descriptor.group === '' && descriptor.resource === 'pods' ? podGraceSeconds(old, wanted.gracePeriodSeconds) : 0;
