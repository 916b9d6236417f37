/**
 * Garbage collection by owner: objects that an owner leaves behind.
 *
 * The owner index (store/owners.ts) finds them without a graph in memory. Each one is evaluated by live reads of
 * all its owners, and its deletion is refused if it changed since. A uid is never used again: an owner that is created
 * again has another uid. So an owner that was absent when it was read is absent when the deletion commits (L16).
 *
 * Who finds a dependent:
 *
 *   its owner is removed            the record of the owner (collectDependents)
 *   its owner waits for it          the record of the owner, and of each dependent that ends (finishDeletion)
 *   its owner was absent before it  the record of its own reference (checkOwner): one read unit per owner and batch
 *
 * The two commits of an owner's removal and of a new reference have an order. If the reference is first, the owner's
 * record finds it in the index. If it is second, its own record finds no owner. So at rest nothing has to be scanned.
 */

import { type PendingEvent, recordEvents } from '../../../shared/events/record-event.ts';
import { LEASE_NAMESPACE } from '../../../shared/kinds/leases/resource.ts';
import type { KubeObject, ObjectRef } from '../../../shared/kinds/types.ts';
import { controllerOf } from '../../../shared/kubernetes/normal-form.ts';
import { StoreFault } from '../../../shared/store/item-store.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import { dropClaim, ownedRefs } from '../../../shared/store/owners.ts';
import { UNBOUNDED, workThrough } from '../../../shared/ticks/bounded-work.ts';
import { deletionWrite } from '../deletion-write.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { isReleased, isTracked, withoutTracking } from '../owned-pods.rule.ts';
import { isCommitted, withOwners } from '../owner.ts';
import { storedKindOf } from '../stored-kinds.ts';
import { collectedDraft } from './decisions.ts';
import * as metric from './metrics.ts';
import { fateOf, type JudgedOwner, type OwnerCoordinates, type OwnerState } from './rule.ts';

const CONCURRENCY_MAX = 8;
const ATTEMPTS_MAX = 4;
const FOREGROUND = 'foregroundDeletion';
const ORPHAN = 'orphan';
/** To find an owner in another namespace, for an event alone. Half of a BatchGetItem at most. */
const NAMESPACES_SEARCHED_MAX = 50;
/** Dependents with an event, of one owner and namespace. */
const DEPENDENTS_REPORTED_MAX = 50;

/**
 * Evaluates everything that had this owner. `hasClaim`: false if such an owner never has one, which saves a write.
 *
 * @throws AggregateError of the objects that could not be evaluated
 */
export async function collectDependents(
  dependencies: WorkloadDependencies,
  ownerUid: string,
  hasClaim: boolean,
): Promise<void> {
  const { items } = dependencies;
  const refs = await ownedRefs(items, ownerUid);
  const { faults } = await workThrough(refs, { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED }, (ref) =>
    judge(dependencies, ref),
  );
  if (faults.length > 0) throw new AggregateError(faults, 'objects of a deleted owner could not be collected');
  if (hasClaim) await dropClaim(items, ownerUid);
}

/**
 * A new reference. If its owner does not exist, or is being deleted with its dependents, these are evaluated.
 *
 * @throws AggregateError of the objects that could not be evaluated
 */
export async function checkOwner(
  dependencies: WorkloadDependencies,
  namespace: string,
  owner: OwnerCoordinates,
): Promise<void> {
  const ref = await ownerRef(dependencies, namespace, owner);
  const state = ref === undefined ? 'unknown' : stateOf(await dependencies.objects.get(ref), owner.uid);
  if (state === 'solid') return;
  if (state !== 'waiting') await reportOtherNamespace(dependencies, namespace, owner);
  if (state !== 'unknown') await collectDependents(dependencies, owner.uid, false);
}

/**
 * An owner in another namespace does not count. Upstream shows that on the dependent, if it knows the owner. Source:
 * reportInvalidNamespaceOwnerRef in pkg/controller/garbagecollector/graph_builder.go.
 */
async function reportOtherNamespace(
  dependencies: WorkloadDependencies,
  namespace: string,
  owner: OwnerCoordinates,
): Promise<void> {
  const { objects, items, clock } = dependencies;
  const stored = await storedKindOf(dependencies, owner.apiVersion, owner.kind);
  if (stored?.namespaced !== true) return;
  const { resource } = stored;
  const namespaces = await objects.list({ resource: 'namespaces', limit: NAMESPACES_SEARCHED_MAX });
  const others = namespaces.objects.flatMap(({ metadata: { name = '' } }) => (name === namespace ? [] : [name]));
  const found = await objects.getMany(others.map((other) => ({ resource, namespace: other, name: owner.name })));
  if (!found.some((other) => other?.metadata.uid === owner.uid)) return;
  const refs = (await ownedRefs(items, owner.uid)).filter((dependent) => dependent.namespace === namespace);
  const dependents = await objects.getMany(refs.slice(0, DEPENDENTS_REPORTED_MAX));
  const { apiVersion, kind, name, uid } = owner;
  const coordinates = `[${apiVersion}/${kind}, namespace: ${namespace}, name: ${name}, uid: ${uid}]`;
  const events = dependents.flatMap((dependent): readonly PendingEvent[] => {
    if (dependent === undefined) return [];
    const { metadata } = dependent;
    const about = { namespace, name: metadata.name ?? '', uid: metadata.uid ?? '' };
    return [
      {
        type: 'Warning',
        reason: 'OwnerRefInvalidNamespace',
        message: `ownerRef ${coordinates} does not exist in namespace "${namespace}"`,
        source: 'garbage-collector-controller',
        about: { ...about, kind: dependent.kind ?? '', apiVersion: dependent.apiVersion ?? 'v1' },
        once: uid,
      },
    ];
  });
  await recordEvents(dependencies, events, clock.nowMs());
}

/** One object. Its owners may no longer exist. @throws StoreFault if other writes won every attempt */
export async function judge(dependencies: WorkloadDependencies, ref: ObjectRef): Promise<void> {
  const { objects, ledger, meter, clock } = dependencies;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const object = await objects.get(ref);
    if (object === undefined) return;
    const isDeleting = object.metadata.deletionTimestamp !== undefined;
    // Each of its absent owners leads here. To read all of them each time would cost the square of their number.
    if (isDeleting && !isTracked(object)) return;
    const owners = await judgedOwners(dependencies, ref, object);
    const dependents = owners.some(({ state }) => state === 'waiting')
      ? await ownedRefs(dependencies.items, object.metadata.uid ?? '')
      : [];
    const evaluated = { owners, hasDependents: dependents.length > 0 };
    const fate = fateOf(owners, { isDeleting, hasDependents: evaluated.hasDependents });
    const isUncounted = isTracked(object) && !owners.some(countsPod);
    if (fate.kind === 'keep' && !isUncounted) return;
    const nowMs = clock.nowMs();
    const counted = isUncounted ? withoutTracking(object) : object;
    const next =
      fate.kind === 'delete' && fate.policy === 'Foreground'
        ? await inForeground(dependencies, counted, dependents)
        : counted;
    const outcome =
      fate.kind !== 'delete'
        ? await objects.commit({ writes: [releaseWrite(ref, object, next, fate.kind === 'keep' ? [] : fate.uids)] })
        : await objects.commit({
            writes: [deletionWrite(ref, next, nowMs, object)],
            extra: [ledger.write(collectedDraft(ref, object, evaluated, nowMs))],
          });
    if (!isCommitted(outcome)) continue;
    if (fate.kind === 'delete') meter.add(metric.COLLECTED, 1, 'Count', { kind: object.kind ?? '' });
    return;
  }
  throw new StoreFault('throttled', 'an object changed too often to be collected', { retryable: true });
}

/**
 * The object that waits for its own dependents. If one of them waits as well, they may form a cycle: then the object no
 * longer blocks its owners.
 */
async function inForeground(
  { objects }: WorkloadDependencies,
  object: KubeObject,
  dependents: readonly ObjectRef[],
): Promise<KubeObject> {
  const { finalizers = [], ownerReferences = [] } = object.metadata;
  const isInCycle = (await objects.getMany(dependents)).some(waitsForDependents);
  const owners = isInCycle ? ownerReferences.map((each) => ({ ...each, blockOwnerDeletion: false })) : ownerReferences;
  const waiting = finalizers.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  return withOwners({ ...object, metadata: { ...object.metadata, finalizers: [...waiting, FOREGROUND] } }, owners);
}

const waitsForDependents = (object: KubeObject | undefined): boolean =>
  object?.metadata.deletionTimestamp !== undefined && (object.metadata.finalizers ?? []).includes(FOREGROUND);

/** A Job counts its pods until it is removed. Without it, nothing removes the finalizer of a pod. */
const countsPod = ({ reference, state }: JudgedOwner): boolean =>
  reference.kind === 'Job' && reference.controller === true && state !== 'absent';

/** `object` without these owners. A pod that is being deleted may have waited for this write alone. */
function releaseWrite(ref: ObjectRef, previous: KubeObject, object: KubeObject, uids: readonly string[]): ObjectWrite {
  const { ownerReferences = [] } = object.metadata;
  const kept = ownerReferences.filter(({ uid }) => !uids.includes(uid));
  const next = withOwners(object, kept);
  return isReleased(next) ? { kind: 'delete', ref, previous } : { kind: 'update', ref, object: next, previous };
}

async function judgedOwners(
  dependencies: Pick<WorkloadDependencies, 'objects' | 'definitions'>,
  ref: ObjectRef,
  { metadata }: KubeObject,
): Promise<readonly JudgedOwner[]> {
  return Promise.all(
    (metadata.ownerReferences ?? []).map(async (reference) => {
      const owner = await ownerRef(dependencies, ref.namespace, reference);
      if (owner === undefined) return { reference, state: 'unknown' as const };
      return { reference, state: stateOf(await dependencies.objects.get(owner), reference.uid) };
    }),
  );
}

function stateOf(owner: KubeObject | undefined, uid: string): OwnerState {
  if (owner === undefined || owner.metadata.uid !== uid) return 'absent';
  return waitsForDependents(owner) ? 'waiting' : 'solid';
}

/**
 * Where the owner of an object in this namespace would be stored: in the same namespace, or in none. Undefined: its
 * kind is not stored as an object, or it has a namespace and the object has none.
 */
export async function ownerRef(
  dependencies: Pick<WorkloadDependencies, 'definitions'>,
  namespace: string,
  owner: OwnerCoordinates,
): Promise<ObjectRef | undefined> {
  const stored = await storedKindOf(dependencies, owner.apiVersion, owner.kind);
  if (stored === undefined || NOT_OBJECTS.has(stored.resource)) return undefined;
  const { resource, namespaced } = stored;
  if (resource === 'leases' && namespace === LEASE_NAMESPACE) return undefined;
  if (namespaced && namespace === '') return undefined;
  return { resource, namespace: namespaced ? namespace : '', name: owner.name };
}

/** Served from elsewhere than the objects table. */
const NOT_OBJECTS = new Set(['decisions', 'clusterstatuses', 'silencehistograms', 'nodeidentities', 'bootstraptokens']);

/**
 * An owner that is being deleted and waits for its dependents: with the finalizer `orphan` they lose it as their owner,
 * with `foregroundDeletion` they are deleted, and those that block it must no longer exist.
 */
export async function finishDeletion(dependencies: WorkloadDependencies, ref: ObjectRef): Promise<void> {
  const { objects, items } = dependencies;
  const owner = await objects.get(ref);
  if (owner?.metadata.deletionTimestamp === undefined) return;
  const finalizers = owner.metadata.finalizers ?? [];
  const uid = owner.metadata.uid ?? '';
  if (finalizers.includes(ORPHAN)) {
    const { faults } = await workThrough(
      await ownedRefs(items, uid),
      { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED },
      (dependent) => release(dependencies, dependent, uid),
    );
    if (faults.length > 0) throw new AggregateError(faults, 'dependents could not be orphaned');
    await dropFinalizer(dependencies, ref, owner, ORPHAN);
  } else if (finalizers.includes(FOREGROUND)) {
    const refs = await ownedRefs(items, uid);
    const found = await objects.getMany(refs);
    // The others were evaluated before, and are being deleted.
    const open = refs.filter((_, index) => {
      const dependent = found[index];
      return dependent !== undefined && (dependent.metadata.deletionTimestamp === undefined || isTracked(dependent));
    });
    const { faults } = await workThrough(open, { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED }, (dependent) =>
      judge(dependencies, dependent),
    );
    if (faults.length > 0) throw new AggregateError(faults, 'dependents could not be deleted before their owner');
    const left = await objects.getMany(refs);
    const isBlocked = left.some((dependent) =>
      dependent?.metadata.ownerReferences?.some((each) => each.uid === uid && each.blockOwnerDeletion === true),
    );
    if (!isBlocked) await dropFinalizer(dependencies, ref, owner, FOREGROUND);
  }
}

async function release({ objects }: WorkloadDependencies, ref: ObjectRef, ownerUid: string): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const object = await objects.get(ref);
    if (object?.metadata.ownerReferences?.some(({ uid }) => uid === ownerUid) !== true) return;
    const isCounted = isTracked(object) && controllerOf(object)?.uid === ownerUid;
    const next = isCounted ? withoutTracking(object) : object;
    const outcome = await objects.commit({ writes: [releaseWrite(ref, object, next, [ownerUid])] });
    if (isCommitted(outcome)) return;
  }
  throw new StoreFault('throttled', 'a dependent changed too often to lose its owner', { retryable: true });
}

/**
 * The object is removed with its last finalizer, except for a pod that its node still has to end. A status that its
 * controller writes meanwhile is no reason to wait: such a write starts no function.
 */
async function dropFinalizer(
  { objects }: WorkloadDependencies,
  ref: ObjectRef,
  read: KubeObject,
  finalizer: string,
): Promise<void> {
  let owner: KubeObject | undefined = read;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    if (owner === undefined || owner.metadata.uid !== read.metadata.uid) return;
    const { finalizers = [], ...metadata } = owner.metadata;
    if (!finalizers.includes(finalizer)) return;
    const kept = finalizers.filter((each) => each !== finalizer);
    const next: KubeObject = { ...owner, metadata: { ...metadata, ...(kept.length > 0 && { finalizers: kept }) } };
    const outcome = await objects.commit({
      writes: [
        isReleased(next)
          ? { kind: 'delete', ref, previous: owner }
          : { kind: 'update', ref, object: next, previous: owner },
      ],
    });
    if (isCommitted(outcome)) return;
    owner = await objects.get(ref);
  }
  throw new StoreFault('throttled', 'an owner changed too often to lose its finalizer', { retryable: true });
}
