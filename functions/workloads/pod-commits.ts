/**
 * Transactions that create, adopt, release and delete what an owner has, each under the claim of the owner
 * (shared/store/owners.ts).
 *
 * A sync reads the claim, then the set of the owner's objects, both strongly consistent. Each transaction raises the
 * claim from the value that was read, and is refused if the owner has another resourceVersion. So when it commits, no
 * other worker has changed the set since it was read, and no hub has put a copy in the place of a pod. The set can only
 * be smaller, because pods terminate by themselves. A worker that is refused reads again. One that is killed has
 * committed whole transactions, or none. A transaction that is sent twice is refused the second time.
 */

import type { DecisionDraft } from '../../shared/decisions/decision-record.ts';
import { defined } from '../../shared/defined.ts';
import { subjectOf } from '../../shared/events/record-event.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import type { KubeObject, KubePod, ObjectRef } from '../../shared/kinds/types.ts';
import { controllerOf } from '../../shared/kubernetes/normal-form.ts';
import type { Item, TransactWrite } from '../../shared/store/item-store.ts';
import { objectSortKey, shardOf } from '../../shared/store/layout.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import { claimWrite } from '../../shared/store/owners.ts';
import { deletionWrite } from './deletion-write.ts';
import type { WorkloadDependencies } from './dependencies.ts';
import * as metric from './metrics.ts';
import { chargedObjects, type PodCreation, REFUSED_RETRY_MS } from './new-objects.ts';
import { controllerReference, isCommitted, type OwnerKind, refOfObject, unchanged, withOwners } from './owner.ts';
import { type EventsAbout, type PodEventText, recordFailedCreate, recordPodEvents } from './pod-events.ts';
import type { SyncFailure } from './replica-failure.rule.ts';

const PODS = { group: '', resource: 'pods' } as const;
/** Pods of one transaction: object, log entry, pointer and head each, below the 100 items of a transaction. */
export const PODS_PER_COMMIT = 16;

export interface PodOwner {
  readonly kind: OwnerKind;
  readonly ref: ObjectRef;
  /** The object as stored when it was read. */
  readonly object: KubeObject;
  /** The claim, as read before the objects of the owner. */
  readonly fence: number;
  readonly nowMs: number;
  /** Source of its events. */
  readonly component: string;
  /** Text of its events about one pod. Absent: that of a ReplicaSet. */
  readonly doneText?: PodEventText;
}

/** Names that are tried for one pod. That none is in the wanted one of eight shards has a probability of 0.02 %. */
const NAMES_TRIED_MAX = 64;

export interface NameSeed {
  readonly fence: number;
  readonly position: number;
}

/**
 * `fence`: the claim after the transactions. `count`: pods that were created or deleted. `retryAtMs`: when the others
 * are tried again.
 */
export type Applied = {
  readonly kind: 'applied';
  readonly fence: number;
  readonly count?: number;
  readonly failure?: SyncFailure;
  readonly retryAtMs?: number;
};

const uidOf = ({ object }: PodOwner): string => object.metadata.uid ?? '';

/** The conditions of a transaction on the set of the owner. */
export const claimed = (owner: PodOwner, fence: number, more?: Item): readonly TransactWrite[] => [
  unchanged(owner.ref, owner.object),
  claimWrite(uidOf(owner), fence, more),
];

/** An object that changes its controller. */
export interface OwnedObject {
  readonly resource: string;
  readonly object: KubeObject;
}

/** Adopts and releases objects, as many as fit one transaction. */
export async function changeOwners(
  dependencies: WorkloadDependencies,
  owner: PodOwner,
  { adopt, release }: { readonly adopt: readonly OwnedObject[]; readonly release: readonly OwnedObject[] },
): Promise<'committed' | 'overtaken'> {
  const reference = controllerReference(owner.kind, owner.object);
  const updates = [
    ...adopt.map((each) => ({ ...each, owners: [...(each.object.metadata.ownerReferences ?? []), reference] })),
    ...release.map((each) => ({
      ...each,
      owners: (each.object.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== uidOf(owner)),
    })),
  ];
  const writes = updates.map(
    ({ resource, object, owners }): ObjectWrite => ({
      kind: 'update',
      ref: refOfObject(resource, object),
      object: withOwners(object, owners),
      previous: object,
    }),
  );
  return commitFirst(dependencies, writes, claimed(owner, owner.fence));
}

/** Commits the first of the writes: as many as fit one transaction. The rest follows with the next sync. */
export async function commitFirst(
  { objects }: Pick<WorkloadDependencies, 'objects'>,
  writes: readonly ObjectWrite[],
  extra: readonly TransactWrite[],
): Promise<'committed' | 'overtaken'> {
  for (let count = Math.min(writes.length, PODS_PER_COMMIT); count >= 1; count = Math.floor(count / 2)) {
    const outcome = await objects.commit({ writes: writes.slice(0, count), extra });
    if (outcome.kind !== 'overfull') return isCommitted(outcome) ? 'committed' : 'overtaken';
  }
  return 'overtaken';
}

/**
 * Creates pods in batches of 1, 2, 4, 8 and 16, or fewer if pods are large or quotas are many. After a refused pod no
 * more are created.
 */
export async function createPods(
  dependencies: WorkloadDependencies,
  owner: PodOwner,
  plan: {
    readonly count: number;
    /** The name of the pod at a place of the plan; `fence` and `position` make it unique. */
    readonly nameOf: (index: number, seed: NameSeed) => string;
    readonly make: (index: number, name: string) => PodCreation;
    /** `before`: pods of earlier transactions. */
    readonly draft: (names: readonly string[], before: number) => DecisionDraft;
    /**
     * The failure if another object has the name of a pod. Absent: names follow from their seeds, and others are
     * chosen.
     */
    readonly takenText?: (name: string) => string;
    /** Text of the event about the pod that could not be created. Absent: that of a ReplicaSet. */
    readonly failedText?: (index: number, message: string) => string;
  },
): Promise<Applied | 'overtaken'> {
  const { objects, ledger, meter } = dependencies;
  let { fence } = owner;
  let created = 0;
  const batches = slowStartBatches(plan.count, PODS_PER_COMMIT).toReversed();
  for (let size = batches.pop(); size !== undefined; size = batches.pop()) {
    const nameAt = (offset: number, position: number): string => plan.nameOf(created + offset, { fence, position });
    const chosen =
      plan.takenText === undefined
        ? namesInOneShard(owner, fence, { count: size, nameAt })
        : Array.from({ length: size }, (_, offset) => nameAt(offset, offset));
    const made = chosen.map((name, offset) => plan.make(created + offset, name));
    const failed = async (position: number, cause: Refused): Promise<Applied> => ({
      ...(await refusal(dependencies, owner, cause, {
        fence,
        text: (message) => plan.failedText?.(created + position, message) ?? `Error creating: ${message}`,
      })),
      count: created,
    });
    const refusedAt = made.findIndex(({ kind }) => kind !== 'made');
    if (refusedAt >= 0) return failed(refusedAt, made[refusedAt]!);
    const pods = made.filter((each) => each.kind === 'made');
    const admission = await dependencies.admitObjects(owner, PODS, pods);
    if (admission.kind === 'waiting') {
      const { retryMs, failure: message } = admission;
      const failure = message === undefined ? undefined : ({ reason: 'FailedCreate', message } as const);
      return { kind: 'applied', fence, count: created, retryAtMs: owner.nowMs + retryMs, ...defined({ failure }) };
    }
    const admittedTo = admission.objects.findIndex(({ kind }) => kind !== 'made');
    const wanted = (admittedTo < 0 ? admission.objects : admission.objects.slice(0, admittedTo)).flatMap(podsIn);
    const of = { ...PODS, namespace: owner.ref.namespace, nowMs: owner.nowMs };
    const charged = await chargedObjects(dependencies, of, wanted);
    const { permitted: batch } = charged;
    // The first pod behind the batch.
    const exceeded: Refused | undefined =
      charged.refusal === undefined ? admission.objects[admittedTo] : { kind: 'refused', message: charged.refusal };
    if (exceeded !== undefined && batch.length === 0) return failed(0, exceeded);
    const names = batch.map((pod) => pod.metadata.name ?? '');
    if (new Set(names).size < names.length) return leaveNames(dependencies, owner, fence);
    const outcome = await objects.commit({
      writes: [
        ...batch.map((pod): ObjectWrite => ({ kind: 'create', ref: refOfObject('pods', pod), object: pod })),
        ...charged.quotas,
      ],
      extra: [...claimed(owner, fence), ledger.write(plan.draft(names, created))],
    });
    if (outcome.kind === 'overfull' && batch.length > 1) {
      batches.push(...inHalves(size));
      continue;
    }
    if (outcome.kind === 'tooLarge' || outcome.kind === 'overfull') {
      return failed(0, { kind: 'refused', message: 'the pod template is too large' });
    }
    const isTaken = outcome.kind === 'conflict' && outcome.index < batch.length && outcome.current !== undefined;
    if (isTaken && plan.takenText === undefined) return leaveNames(dependencies, owner, fence);
    if (isTaken && plan.takenText !== undefined && isOfAnother(owner, outcome.current)) {
      const message = plan.takenText(names[outcome.index] ?? '');
      return failed(outcome.index, { kind: 'refused', message });
    }
    if (outcome.kind !== 'committed') return 'overtaken';
    fence += 1;
    created += batch.length;
    meter.add(metric.PODS_CREATED, batch.length, 'Count', { kind: owner.kind });
    await recordPodEvents(dependencies, eventsAbout(owner), doneEvents(owner, 'created', names), owner.nowMs);
    if (exceeded !== undefined) return failed(0, exceeded);
  }
  return { kind: 'applied', fence, count: created };
}

/**
 * Names of one batch. Its pods are in one shard of the change log, so their transaction raises one head and writes one
 * log item: it costs less, and conflicts with fewer commits. Which shard it is follows from the claim, so batches
 * spread over all shards.
 */
function namesInOneShard(
  owner: PodOwner,
  fence: number,
  { count, nameAt }: { readonly count: number; readonly nameAt: (offset: number, position: number) => string },
): readonly string[] {
  const shards = shardsOf('pods');
  const shard = shardOf(`${uidOf(owner)}/${fence}`, shards);
  const names: string[] = [];
  let position = 0;
  for (let offset = 0; offset < count; offset += 1) {
    let name = nameAt(offset, position);
    for (let tries = 1; tries < NAMES_TRIED_MAX; tries += 1) {
      position += 1;
      if (shardOf(objectSortKey(owner.ref.namespace, name), shards) === shard) break;
      name = nameAt(offset, position);
    }
    names.push(name);
  }
  return names;
}

/** More than fits one transaction. */
const inHalves = (size: number): readonly [number, number] => [Math.ceil(size / 2), Math.floor(size / 2)];

/**
 * A name of the batch is in use. Names follow from the claim, so every attempt under this claim would be refused. The
 * claim is raised alone: the next attempt has other names. If another worker raised it, this write is refused.
 */
async function leaveNames({ items }: WorkloadDependencies, owner: PodOwner, fence: number): Promise<'overtaken'> {
  await items.transact(claimed(owner, fence));
  return 'overtaken';
}

const isOfAnother = (owner: PodOwner, existing: KubeObject | undefined): boolean =>
  existing !== undefined && controllerOf(existing)?.uid !== uidOf(owner);

interface Refused {
  readonly kind: string;
  readonly message?: string;
  readonly retryMs?: number;
}

const podsIn = (each: PodCreation): readonly KubePod[] => (each.kind === 'made' ? [each.object] : []);

async function refusal(
  dependencies: WorkloadDependencies,
  owner: PodOwner,
  refused: Refused,
  { fence, text }: { readonly fence: number; readonly text: (message: string) => string },
): Promise<Applied> {
  if (refused.kind === 'namespaceTerminating') return { kind: 'applied', fence };
  const message = refused.message ?? '';
  const { metadata } = owner.object;
  const failed = { generation: metadata.generation ?? 0, message, text };
  await recordFailedCreate(dependencies, eventsAbout(owner), failed, owner.nowMs);
  const retryAtMs = owner.nowMs + (refused.retryMs ?? REFUSED_RETRY_MS);
  return { kind: 'applied', fence, failure: { reason: 'FailedCreate', message }, retryAtMs };
}

/** A quota does not permit an object that the owner needs. */
export const reportRefusal = (dependencies: WorkloadDependencies, owner: PodOwner, message: string): Promise<void> => {
  const generation = owner.object.metadata.generation ?? 0;
  return recordFailedCreate(dependencies, eventsAbout(owner), { generation, message }, owner.nowMs);
};

const eventsAbout = ({ kind, object, component }: PodOwner): EventsAbout => ({
  about: subjectOf(kind, object),
  source: component,
});

const doneEvents = (owner: PodOwner, act: 'created' | 'deleted', names: readonly string[]) => ({
  act,
  names,
  ...defined({ text: owner.doneText }),
  occurrence: owner.object.metadata.resourceVersion ?? '',
});

/** Deletes pods with their own grace periods, in the order of the plan. */
export async function deletePods(
  dependencies: WorkloadDependencies,
  owner: PodOwner,
  plan: {
    readonly pods: readonly KubePod[];
    /** `before`: pods of earlier transactions. */
    readonly draft: (names: readonly string[], before: number) => DecisionDraft;
    /** Stored with the claim. */
    readonly more?: Item;
  },
): Promise<Applied | 'overtaken'> {
  const { objects, ledger, meter } = dependencies;
  let { fence } = owner;
  let partMax = PODS_PER_COMMIT;
  for (let begin = 0; begin < plan.pods.length; ) {
    const part = plan.pods.slice(begin, begin + partMax);
    const names = part.map(({ metadata }) => metadata.name ?? '');
    const outcome = await objects.commit({
      writes: part.map((pod) => deletionWrite(refOfObject('pods', pod), pod, owner.nowMs)),
      extra: [...claimed(owner, fence, plan.more), ledger.write(plan.draft(names, begin))],
    });
    if (outcome.kind === 'overfull' && part.length > 1) {
      partMax = Math.floor(part.length / 2);
      continue;
    }
    if (outcome.kind !== 'committed') return 'overtaken';
    fence += 1;
    begin += part.length;
    meter.add(metric.PODS_DELETED, part.length, 'Count', { kind: owner.kind });
    await recordPodEvents(dependencies, eventsAbout(owner), doneEvents(owner, 'deleted', names), owner.nowMs);
  }
  return { kind: 'applied', fence };
}

/**
 * Batches of 1, 2, 4, 8 … operations, the last one cut to what remains. A batch with a failure is finished, and no
 * later one begins: a quota that refuses everything costs one request instead of five hundred. Source: slowStartBatch
 * in pkg/controller/replicaset/replica_set.go.
 */
export function slowStartBatches(count: number, batchMax = Number.POSITIVE_INFINITY): readonly number[] {
  const batches: number[] = [];
  let size = 1;
  for (let left = count; left > 0; left -= batches.at(-1) ?? left) {
    batches.push(Math.min(size, left, batchMax));
    size *= 2;
  }
  return batches;
}
