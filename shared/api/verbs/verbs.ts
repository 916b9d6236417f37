/**
 * The verbs that change one object, once for every kind. What is particular to a kind stands in its descriptor.
 *
 * Order inside a write, as in upstream k8s.io/apiserver pkg/registry: decode, admission and defaults, validation,
 * optimistic write. A write that changes nothing is not written and keeps its resourceVersion. A patch or update that
 * names no resourceVersion is decided again when it met another write, at most WRITE_ATTEMPTS_MAX times.
 */
import type { PrepareContext, ResourceDescriptor } from '../../kube/descriptor.ts';
import type { Transform } from '../../kube/patch/transform.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import { isStatusError } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import { formatTime } from '../../kube/time.ts';
import type { KubeObject } from '../../kube/types.ts';
import { resourceVersionRequired } from '../../kube/validation/metadata.ts';
import { generateName } from '../../kube/validation/names.ts';
import { jsonEqual } from '../../kube/wire/json-value.ts';
import { admitCreation } from '../admission/admission.ts';
import { afterRemoval } from '../admission/last-removal.ts';
import type { ApiDependencies } from '../dependencies.ts';

/** Tries at a write that others keep getting ahead of; with the pauses between them about five seconds. */
export const WRITE_ATTEMPTS_MAX = 24;
const PAUSE_MS = 4;
const PAUSE_MAX_MS = 300;
const GENERATED_NAME_ATTEMPTS_MAX = 8;

export interface WriteOptions {
  readonly nowMs: number;
  /** Decide and answer, write nothing. */
  readonly dryRun: boolean;
  /** Says in managedFields who wrote what; `live` is what is stored. Absent where that is not kept. */
  readonly track?: (next: KubeObject, live: KubeObject | undefined) => KubeObject;
  /**
   * Throws the Status of a refusal that hangs on the objects: `next` as it would be stored (undefined for a deletion),
   * `stored` as it is (undefined for a creation). Asked before each try at a write, dry runs included.
   */
  readonly admit?: (next: KubeObject | undefined, stored: KubeObject | undefined) => Promise<void>;
  /**
   * The same for an update that is not computed yet. Asked before the patch is applied: otherwise its `test` operations
   * would answer what an object says that the user may not read.
   */
  readonly admitStored?: (stored: KubeObject) => Promise<void>;
}

export interface WrittenObject {
  readonly object: KubeObject;
  readonly created: boolean;
}

/** Waits before another try, at random, so that writers who met once do not meet again. */
export const pauseBefore = ({ pause, random }: ApiDependencies, attempt: number): Promise<unknown> =>
  pause(Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** (attempt - 1)) * random.fraction());

export const rvOf = (object: KubeObject): string => object.metadata.resourceVersion ?? '';

export function refuseInvalid(descriptor: ResourceDescriptor, name: string, causes: readonly status.Cause[]): void {
  if (causes.length > 0) throw status.invalid(descriptor, name, causes);
}

/** Kind and apiVersion as the URL says; a body that names others is refused. */
function settleType(descriptor: ResourceDescriptor, object: KubeObject): KubeObject {
  const apiVersion = descriptor.group === '' ? descriptor.version : `${descriptor.group}/${descriptor.version}`;
  if (object.kind !== undefined && object.kind !== '' && object.kind !== descriptor.kind) {
    throw status.badRequest(
      `${object.kind} in version "${object.apiVersion ?? ''}" cannot be handled as a ${descriptor.kind}: no kind "${object.kind}" is registered for version "${apiVersion}"`,
    );
  }
  if (object.apiVersion !== undefined && object.apiVersion !== '' && object.apiVersion !== apiVersion) {
    throw status.badRequest(
      `the API version in the data (${object.apiVersion}) does not match the expected API version (${apiVersion})`,
    );
  }
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = object;
  return { kind: descriptor.kind, apiVersion, metadata: metadata ?? {}, ...rest };
}

function settlePlace(descriptor: ResourceDescriptor, target: ResourceTarget, object: KubeObject): KubeObject {
  const metadata = { ...object.metadata };
  if (descriptor.namespaced) {
    if (metadata.namespace !== undefined && metadata.namespace !== '' && metadata.namespace !== target.namespace) {
      throw status.namespaceMismatch();
    }
    metadata.namespace = target.namespace;
  } else {
    if (metadata.namespace !== undefined && metadata.namespace !== '') {
      throw status.badRequest(`namespace is not allowed on this type: ${descriptor.kind} is cluster-scoped`);
    }
    delete metadata.namespace;
  }
  return { ...object, metadata };
}

const prepareContext = (dependencies: ApiDependencies, options: WriteOptions): PrepareContext => ({
  nowMs: options.nowMs,
  defaultTolerationSeconds: dependencies.podEvictionTimeoutSeconds,
});

/** POST on a collection. */
export async function createObject(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  body: KubeObject,
  options: WriteOptions,
): Promise<WrittenObject> {
  const typed = settlePlace(descriptor, target, settleType(descriptor, body));
  if ((typed.metadata.resourceVersion ?? '') !== '') {
    throw status.badRequest('resourceVersion should not be set on objects to be created');
  }
  const admitted = await admitCreation(dependencies, descriptor, typed);
  const storage = dependencies.storageOf(descriptor);
  const prefix = typed.metadata.generateName ?? '';
  const named = (typed.metadata.name ?? '') !== '';
  const attempts = named || prefix === '' ? 1 : GENERATED_NAME_ATTEMPTS_MAX;
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const metadata = { ...typed.metadata };
    if (!named && prefix !== '') metadata.name = generateName(prefix, dependencies.random.fraction);
    metadata.uid = dependencies.random.uuid();
    metadata.creationTimestamp = formatTime(options.nowMs);
    delete metadata.deletionTimestamp;
    delete metadata.deletionGracePeriodSeconds;
    delete metadata.selfLink;
    const settled = descriptor.prepareForCreate(
      { ...typed, metadata },
      { ...prepareContext(dependencies, options), ...admitted },
    );
    const prepared = options.track?.(settled, undefined) ?? settled;
    refuseInvalid(
      descriptor,
      prepared.metadata.name ?? '',
      descriptor.validate(prepared, { operation: 'create', subresource: '' }),
    );
    await options.admit?.(prepared, undefined);
    const name = prepared.metadata.name ?? '';
    if (options.dryRun) {
      const taken = await storage.get(target.namespace, name);
      if (taken === undefined) return { object: prepared, created: true };
    } else {
      const result = await storage.create(prepared);
      if (result.kind === 'written') return { object: result.object, created: true };
    }
    if (named) throw status.alreadyExists(descriptor, name);
  }
  throw status.generateNameConflict(descriptor, prefix);
}

export interface ModifyOptions extends WriteOptions {
  /** A PUT: the body is the whole object, and its resourceVersion a precondition. */
  readonly replaces: boolean;
  /** The writer names no version: a change may be kept without a new one, where the storage knows how. */
  readonly mayConfirm?: boolean;
  /** A machine posts the status of its own Node: a sign of life also where it changes nothing, as with a clock that stands. */
  readonly isOwnStatus?: boolean;
  /** What to create when nothing is stored; absent: 404. */
  readonly whenAbsent?: () => KubeObject;
}

/**
 * Read, transform, prepare, validate, write: the way of PUT and every kind of PATCH.
 *
 * `transform` returns the whole next object; a resourceVersion in it other than the stored one is the client's
 * precondition and ends in 409.
 */
export async function modifyObject(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  transform: Transform,
  options: ModifyOptions,
): Promise<WrittenObject> {
  const storage = dependencies.storageOf(descriptor);
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 1) await pauseBefore(dependencies, attempt);
    const old = await storage.get(target.namespace, target.name);
    if (old === undefined) {
      const created = await createInstead(dependencies, descriptor, target, options);
      if (created !== undefined) return created;
      continue;
    }
    await options.admitStored?.(old);
    const asked = settleType(descriptor, await transform(old));
    const precondition = asked.metadata.resourceVersion ?? '';
    if (precondition !== '' && precondition !== rvOf(old)) throw status.conflict(descriptor, target.name);
    if (options.replaces && precondition === '' && !descriptor.unconditionalUpdate) {
      throw status.invalid(descriptor, target.name, [resourceVersionRequired]);
    }
    const settled = settleUpdate(dependencies, descriptor, target, asked, old, options);
    await options.admit?.(settled, old);
    const next = options.track?.(settled, old) ?? settled;
    if (jsonEqual(withoutVersion(next), withoutVersion(old))) {
      if (options.isOwnStatus === true && !options.dryRun) await storage.received?.(old);
      return { object: old, created: false };
    }
    const finished = next.metadata.deletionTimestamp !== undefined && isReleased(next);
    if (options.dryRun) return { object: next, created: false };
    const confirmed = finished || options.mayConfirm !== true ? undefined : await storage.confirm?.(next, old);
    const result = confirmed ?? (finished ? await storage.remove(old) : await storage.update(next, old));
    if (result.kind === 'written') {
      if (finished) await afterRemoval(dependencies, old);
      return { object: finished ? next : result.object, created: false };
    }
    // A client that named the version it read has lost the race; one that did not asked for "whatever is there now".
    if (options.replaces && precondition !== '') throw status.conflict(descriptor, target.name);
  }
  throw status.conflict(descriptor, target.name);
}

/** undefined: somebody else created it meanwhile. */
async function createInstead(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  { whenAbsent, ...options }: ModifyOptions,
): Promise<WrittenObject | undefined> {
  if (whenAbsent === undefined || target.subresource !== '') throw status.notFound(descriptor, target.name);
  const object = whenAbsent();
  const name = object.metadata.name ?? target.name;
  if (name !== target.name) throw status.nameMismatch(name, target.name);
  try {
    return await createObject(
      dependencies,
      descriptor,
      target,
      { ...object, metadata: { ...object.metadata, name } },
      options,
    );
  } catch (error) {
    if (isStatusError(error) && error.status.reason === 'AlreadyExists') return undefined;
    throw error;
  }
}

function withoutVersion(object: KubeObject): KubeObject {
  const { resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Nothing holds a deleted object back any more: no finalizers, and no grace left to a pod on a node. */
function isReleased(object: KubeObject): boolean {
  return (object.metadata.finalizers ?? []).length === 0 && (object.metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

function settleUpdate(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  asked: KubeObject,
  old: KubeObject,
  options: WriteOptions,
): KubeObject {
  const metadata = { ...asked.metadata };
  // What clients may leave out of a PUT and never change: carried over, then validation sees attempts to change it.
  metadata.uid ??= old.metadata.uid as string;
  metadata.creationTimestamp = old.metadata.creationTimestamp as string;
  if (old.metadata.deletionTimestamp !== undefined) metadata.deletionTimestamp = old.metadata.deletionTimestamp;
  else delete metadata.deletionTimestamp;
  if (old.metadata.deletionGracePeriodSeconds !== undefined) {
    metadata.deletionGracePeriodSeconds = old.metadata.deletionGracePeriodSeconds;
  } else delete metadata.deletionGracePeriodSeconds;
  if (old.metadata.generation !== undefined) metadata.generation = old.metadata.generation;
  else delete metadata.generation;
  if (rvOf(old) !== '') metadata.resourceVersion = rvOf(old);
  delete metadata.selfLink;
  metadata.name ??= target.name;
  if (metadata.name !== target.name) {
    throw status.nameMismatch(metadata.name, target.name);
  }
  const placed = settlePlace(descriptor, target, { ...asked, metadata });
  const prepared = descriptor.prepareForUpdate(placed, old, {
    ...prepareContext(dependencies, options),
    subresource: target.subresource,
  });
  refuseInvalid(
    descriptor,
    target.name,
    descriptor.validate(prepared, { operation: 'update', subresource: target.subresource, old }),
  );
  return prepared;
}
