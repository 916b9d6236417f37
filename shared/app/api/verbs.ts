/**
 * The verbs that change one object, once for every kind. What is particular to a kind stands in its descriptor.
 *
 * Order inside a write, as in upstream k8s.io/apiserver pkg/registry: decode, admission and defaults, validation,
 * optimistic write. A write that changes nothing is not written and keeps its resourceVersion. A patch or update that
 * names no resourceVersion is decided again when it met another write, at most WRITE_ATTEMPTS_MAX times.
 */
import type { PrepareContext, ResourceDescriptor } from '../../kube/resources/descriptor.ts';
import * as status from '../../kube/status.ts';
import { formatTime } from '../../kube/time.ts';
import type { KubeObject } from '../../kube/types.ts';
import { resourceVersionRequired } from '../../kube/validation/metadata.ts';
import { generateName } from '../../kube/validation/names.ts';
import { jsonEqual } from '../../kube/wire/json-value.ts';
import type { ApiDependencies } from './dependencies.ts';
import type { ResourceTarget } from './request.ts';

export const WRITE_ATTEMPTS_MAX = 8;
const GENERATED_NAME_ATTEMPTS_MAX = 8;

export interface WriteOptions {
  readonly nowMs: number;
  /** Decide and answer, write nothing. */
  readonly dryRun: boolean;
}

export interface WrittenObject {
  readonly object: KubeObject;
  readonly created: boolean;
}

const rvOf = (object: KubeObject): string => object.metadata.resourceVersion ?? '';

function refuseInvalid(descriptor: ResourceDescriptor, name: string, causes: readonly status.Cause[]): void {
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
  notReadyTolerationSeconds: dependencies.podEvictionTimeoutSeconds,
  unreachableTolerationSeconds: dependencies.podEvictionTimeoutSeconds,
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
    const prepared = descriptor.prepareForCreate({ ...typed, metadata }, prepareContext(dependencies, options));
    refuseInvalid(
      descriptor,
      prepared.metadata.name ?? '',
      descriptor.validate(prepared, { operation: 'create', subresource: '' }),
    );
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

/** What the caller makes of the stored object; it may throw a StatusError. `old` is undefined when nothing is stored. */
export type Transform = (old: KubeObject) => KubeObject | Promise<KubeObject>;

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
  options: WriteOptions & { readonly replaces: boolean },
): Promise<WrittenObject> {
  const storage = dependencies.storageOf(descriptor);
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    const old = await storage.get(target.namespace, target.name);
    if (old === undefined) throw status.notFound(descriptor, target.name);
    const asked = settleType(descriptor, await transform(old));
    const precondition = asked.metadata.resourceVersion ?? '';
    if (precondition !== '' && precondition !== rvOf(old)) throw status.conflict(descriptor, target.name);
    if (options.replaces && precondition === '' && !descriptor.unconditionalUpdate) {
      throw status.invalid(descriptor, target.name, [resourceVersionRequired]);
    }
    const next = settleUpdate(dependencies, descriptor, target, asked, old, options);
    if (jsonEqual(withoutVersion(next), withoutVersion(old))) return { object: old, created: false };
    const finished = next.metadata.deletionTimestamp !== undefined && isReleased(next);
    if (options.dryRun) return { object: next, created: false };
    const result = finished ? await storage.remove(old) : await storage.update(next, old);
    if (result.kind === 'written') return { object: finished ? next : result.object, created: false };
    // A client that named the version it read has lost the race; one that did not asked for "whatever is there now".
    if (options.replaces && precondition !== '') throw status.conflict(descriptor, target.name);
  }
  throw status.conflict(descriptor, target.name);
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

export interface DeleteOptions {
  /** Seconds a pod on a node may take to end; undefined: the pod's own. */
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

export interface DeletedObject {
  readonly object: KubeObject;
  /** The object is gone; otherwise it is marked and waits for its grace period or finalizers. */
  readonly gone: boolean;
}

/**
 * DELETE of one object. Kubernetes: upstream k8s.io/apiserver pkg/registry/generic/registry/store.go, rest/delete.go.
 *
 * A pod that is bound to a node and still running is marked with its grace period and removed when its node confirms
 * with grace 0; a second delete can only shorten the grace. Finalizers hold any object until they are removed.
 */
export async function deleteObject(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  wanted: DeleteOptions,
  options: WriteOptions,
): Promise<DeletedObject> {
  const storage = dependencies.storageOf(descriptor);
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    const old = await storage.get(target.namespace, target.name);
    if (old === undefined) throw status.notFound(descriptor, target.name);
    refuseUnmetPreconditions(descriptor, target.name, old, wanted);
    const graceSeconds = graceOf(descriptor, old, wanted);
    const held = graceSeconds > 0 || (old.metadata.finalizers ?? []).length > 0;
    if (!held) {
      if (options.dryRun) return { object: old, gone: true };
      const result = await storage.remove(old);
      if (result.kind === 'written') return { object: old, gone: true };
      continue;
    }
    const marked = markDeleted(old, graceSeconds, options.nowMs);
    if (marked === old || options.dryRun) return { object: marked, gone: false };
    const result = await storage.update(marked, old);
    if (result.kind === 'written') return { object: result.object, gone: false };
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
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== rvOf(old)) {
    throw status.conflict(
      descriptor,
      name,
      `Precondition failed: ResourceVersion in precondition: ${preconditions.resourceVersion}, ResourceVersion in object meta: ${rvOf(old)}`,
    );
  }
}

const POD_GRACE_SECONDS_DEFAULT = 30;

/** Only pods end gracefully; one that no node runs, or that has ended, has nothing to wait for. */
function graceOf(descriptor: ResourceDescriptor, old: KubeObject, wanted: DeleteOptions): number {
  if (descriptor.group !== '' || descriptor.resource !== 'pods') return 0;
  const spec = old.spec ?? {};
  const phase = old.status?.['phase'];
  if ((spec['nodeName'] ?? '') === '' || phase === 'Succeeded' || phase === 'Failed') return 0;
  const own = spec['terminationGracePeriodSeconds'];
  const asked = wanted.gracePeriodSeconds ?? (typeof own === 'number' ? own : POD_GRACE_SECONDS_DEFAULT);
  // Kubernetes reads a negative grace as 1 second.
  return asked < 0 ? 1 : asked;
}

function markDeleted(old: KubeObject, graceSeconds: number, nowMs: number): KubeObject {
  const before = old.metadata.deletionGracePeriodSeconds;
  if (old.metadata.deletionTimestamp !== undefined && (before === undefined || graceSeconds >= before)) return old;
  return {
    ...old,
    metadata: {
      ...old.metadata,
      deletionTimestamp: formatTime(nowMs + graceSeconds * 1_000),
      deletionGracePeriodSeconds: graceSeconds,
    },
  };
}
