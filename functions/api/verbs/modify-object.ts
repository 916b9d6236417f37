/**
 * PUT and PATCH of one object, for every kind. The descriptor contains the differences between kinds.
 *
 * Order of a write, as in upstream k8s.io/apiserver pkg/registry: decode, admission and defaults, validation,
 * optimistic write. A write that changes nothing is not stored and keeps its resourceVersion. A write without a
 * resourceVersion that loses to another writer is computed again from the current object, at most WRITE_ATTEMPTS_MAX
 * times.
 */

import type { WriteResult } from '../../../shared/api/resource-storage.ts';
import { defined } from '../../../shared/defined.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { hasSpecFinalizers, namespaces } from '../../../shared/kinds/namespaces/serve.ts';
import type { KubeObject, ObjectMeta } from '../../../shared/kinds/types.ts';
import { isStatusError } from '../../../shared/kubernetes/http.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import type { Transform } from '../../../shared/kubernetes/patch/patch.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { resourceVersionRequired } from '../../../shared/kubernetes/validate-metadata.ts';
import { refuseOutsideLimits } from '../admission/admit-creation.ts';
import { chargedQuotas } from '../admission/admit-write.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { createObject } from './create-object.ts';
import {
  pauseBefore,
  prepareContext,
  refuseInvalid,
  resourceVersionOf,
  WRITE_ATTEMPTS_MAX,
  type WriteOptions,
  type WrittenObject,
  withNamespaceOf,
  withTypeOf,
} from './write-options.ts';

export interface ModifyOptions extends WriteOptions {
  /** A PUT: the body is the whole object, and its resourceVersion a precondition. */
  readonly replaces: boolean;
  /** The uid in the body of a PUT: the object must be the one with this uid. Absent or empty: any. */
  readonly uid?: string;
  /**
   * True: the request has no resourceVersion. The storage may then store new heartbeat times of a Node without a new
   * resourceVersion (`ResourceStorage.confirm`).
   */
  readonly mayConfirm?: boolean;
  /**
   * True: a node writes its own status. The write counts as a heartbeat even if it changes nothing, for example when
   * the clock of the node has stopped.
   */
  readonly isOwnStatus?: boolean;
  /** The object to create when none is stored. Absent: 404. */
  readonly whenAbsent?: () => KubeObject;
}

/** One PUT or PATCH: its object, its path and its options. */
interface Modification {
  readonly dependencies: ApiDependencies;
  readonly descriptor: ResourceDescriptor;
  readonly target: ResourceTarget;
  readonly options: ModifyOptions;
}

/**
 * Read, transform, prepare, validate, write.
 *
 * `transform` returns the whole next object. A resourceVersion in it is the client's precondition.
 *
 * @throws StatusError 409 when the precondition does not hold, or other writers win every attempt
 */
export async function modifyObject(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  transform: Transform,
  options: ModifyOptions,
): Promise<WrittenObject> {
  const modification = { dependencies, descriptor, target, options };
  const storage = dependencies.storageOf(descriptor);
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 1) await pauseBefore(dependencies, attempt);
    const old = await storage.get(target.namespace, target.name);
    refuseOtherUid(modification, old);
    const written =
      old === undefined ? await createInstead(modification) : await modifyOnce(modification, transform, old);
    if (written !== undefined) return written;
  }
  throw status.conflict(descriptor, target.name);
}

/** A client that replaces a deleted object does not meet the one of the same name that was created since. */
function refuseOtherUid(
  { descriptor, target, options: { uid = '' } }: Modification,
  old: KubeObject | undefined,
): void {
  const { uid: stored = '' } = old?.metadata ?? {};
  if (uid === '' || uid === stored) return;
  const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${stored}`;
  throw status.conflict(descriptor, target.name, why);
}

/** One attempt. Returns undefined when another writer changed the object first. */
async function modifyOnce(
  modification: Modification,
  transform: Transform,
  old: KubeObject,
): Promise<WrittenObject | undefined> {
  const { descriptor, target, options } = modification;
  await options.admitStored?.(old);
  const requested = withTypeOf(descriptor, await transform(old));
  const precondition = resourceVersionOf(requested);
  if (precondition !== '' && precondition !== resourceVersionOf(old)) throw status.conflict(descriptor, target.name);
  if (precondition === '' && resourceVersionOf(old) !== '' && !descriptor.unconditionalUpdate) {
    throw status.invalid(descriptor, target.name, [resourceVersionRequired]);
  }
  const prepared = await preparedForUpdate(modification, requested, old);
  await options.admit?.(prepared, old);
  const next = options.track?.(prepared, old) ?? prepared;
  const complete = (await options.complete?.(next)) ?? next;
  const stored = await storeChange(modification, complete, old);
  if (stored.kind === 'written') return { object: stored.object, created: false };
  // The version that the client named is outdated. Without one the next attempt replaces the current object.
  if (options.replaces && precondition !== '' && stored.ofAlong !== true) {
    throw status.conflict(descriptor, target.name);
  }
  return undefined;
}

/** The stored or removed object, or a conflict with another writer. */
async function storeChange(modification: Modification, next: KubeObject, old: KubeObject): Promise<WriteResult> {
  const { dependencies, descriptor, target, options } = modification;
  const storage = dependencies.storageOf(descriptor);
  if (jsonEqual(withoutVersion(next), withoutVersion(old))) {
    if (options.isOwnStatus === true && !options.dryRun) await storage.received?.(old);
    return { kind: 'written', object: old };
  }
  const { nowMs } = options;
  const changesUse = hasOtherUse(modification);
  const quotas =
    target.subresource === '' || changesUse
      ? await chargedQuotas(dependencies, descriptor, { object: next, old, nowMs, changesUse })
      : [];
  if (options.dryRun) return { kind: 'written', object: next };
  if (next.metadata.deletionTimestamp !== undefined && isRemovable(descriptor, next)) {
    const removed = await storage.remove(old);
    return removed.kind === 'written' ? { kind: 'written', object: next } : removed;
  }
  const confirmed = options.mayConfirm === true ? await storage.confirm?.(next, old) : undefined;
  return confirmed ?? storage.update(next, old, quotas);
}

/** Returns undefined when another writer created the object in the meantime. */
async function createInstead({
  dependencies,
  descriptor,
  target,
  options: { whenAbsent, ...options },
}: Modification): Promise<WrittenObject | undefined> {
  if (whenAbsent === undefined || target.subresource !== '') throw status.notFound(descriptor, target.name);
  const object = whenAbsent();
  const { name = target.name, uid = '' } = object.metadata;
  if (name !== target.name) throw status.nameMismatch(name, target.name);
  if (uid !== '') {
    // An apply to an object that was deleted since it was read. Text of apiserver's pkg/endpoints/handlers/patch.go.
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    throw status.conflict(descriptor, target.name, why);
  }
  const named = { ...object, metadata: { ...object.metadata, name } };
  try {
    return await createObject(dependencies, descriptor, target, named, options);
  } catch (error) {
    if (isStatusError(error) && error.status.reason === 'AlreadyExists') return undefined;
    throw error;
  }
}

/** Whether the write is to a subresource that changes what the object uses. */
const hasOtherUse = ({ descriptor, target }: Modification): boolean =>
  descriptor.subresources.some(({ name, changesUse }) => name === target.subresource && changesUse === true);

function withoutVersion(object: KubeObject): KubeObject {
  const { resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** True when a deleted object can be removed: it has no finalizers, and its grace period is 0. */
function isRemovable(descriptor: ResourceDescriptor, object: KubeObject): boolean {
  if (descriptor === namespaces && hasSpecFinalizers(object)) return false;
  return (object.metadata.finalizers ?? []).length === 0 && (object.metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

/** The validated object to store: the request with the immutable metadata of the old object and the kind's defaults. */
async function preparedForUpdate(
  modification: Modification,
  requested: KubeObject,
  old: KubeObject,
): Promise<KubeObject> {
  const { dependencies, descriptor, target, options } = modification;
  const { subresource, group } = target;
  const metadata = keptMetadata(requested.metadata, old.metadata);
  metadata.name ??= target.name;
  if (metadata.name !== target.name) throw status.nameMismatch(metadata.name, target.name);
  const placed = withNamespaceOf(descriptor, target, { ...requested, metadata });
  // LimitRanges do not bound what is being deleted.
  const isLimited = hasOtherUse(modification) && old.metadata.deletionTimestamp === undefined;
  const limitRanges = isLimited ? await dependencies.namespacePolicies.limitRanges(target.namespace) : [];
  const context = { ...prepareContext(dependencies, options), subresource, limitRanges };
  const withDefaults = descriptor.prepareForUpdate(placed, old, context);
  const mutated = (await options.mutate?.(withDefaults, old)) ?? withDefaults;
  const prepared = mutated === withDefaults ? withDefaults : descriptor.prepareForUpdate(mutated, old, context);
  refuseInvalid(
    descriptor,
    target.name,
    descriptor.validate(prepared, { operation: 'update', subresource, old, group }),
  );
  if (isLimited) refuseOutsideLimits(descriptor, prepared, { limitRanges });
  return prepared;
}

/** Fields that only the server sets come from the old object. A different uid is kept, and validation refuses it. */
function keptMetadata(requested: ObjectMeta, old: ObjectMeta): ObjectMeta {
  const {
    deletionTimestamp: _deletionTimestamp,
    deletionGracePeriodSeconds: _deletionGracePeriodSeconds,
    generation: _generation,
    selfLink: _selfLink,
    ...metadata
  } = requested;
  metadata.uid ??= old.uid as string;
  metadata.creationTimestamp = old.creationTimestamp as string;
  if ((old.resourceVersion ?? '') !== '') metadata.resourceVersion = old.resourceVersion as string;
  return {
    ...metadata,
    ...defined({
      deletionTimestamp: old.deletionTimestamp,
      deletionGracePeriodSeconds: old.deletionGracePeriodSeconds,
      generation: old.generation,
    }),
  };
}
