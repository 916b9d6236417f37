/** Reads and writes the ControllerRevisions of a DaemonSet or StatefulSet. */
import { prepareRevision } from '../../shared/kinds/controllerrevisions/defaults.ts';
import type { KubeControllerRevision, KubeObject, ObjectRef } from '../../shared/kinds/types.ts';
import { controllerOf } from '../../shared/kubernetes/normal-form.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { CommitOutcome, ObjectWrite } from '../../shared/store/object-store.ts';
import { ownedRefs } from '../../shared/store/owners.ts';
import type { WorkloadDependencies } from './dependencies.ts';
import { permitted } from './new-objects.ts';
import { controllerReference, isCommitted, refOfObject, unchanged } from './owner.ts';
import { claimed, commitFirst, type PodOwner, reportRefusal } from './pod-commits.ts';
import { nextRevisionStep, type RevisionOwner, templateOf } from './revisions.rule.ts';
import { isSameTemplate } from './template.rule.ts';

const REVISIONS = 'controllerrevisions';

/** It is not permitted, or not yet. `retryMs`: until the next attempt, milliseconds. */
export interface Postponed {
  readonly retryMs: number;
}

/** What an owner has of one resource, strongly consistent. */
export async function readOwned(
  { objects, items }: Pick<WorkloadDependencies, 'objects' | 'items'>,
  ownerUid: string,
  resource: string,
): Promise<readonly KubeObject[]> {
  const found = await objects.getMany(await ownedRefs(items, ownerUid, resource));
  return found.flatMap((each) => (each !== undefined && controllerOf(each)?.uid === ownerUid ? [each] : []));
}

/**
 * The revision of the present template. If it does not exist, or is not the highest, it is written, and the sync starts
 * again. `refused`: an event says why.
 */
export async function currentRevision(
  dependencies: WorkloadDependencies,
  owner: PodOwner,
  of: RevisionOwner,
  revisions: readonly KubeControllerRevision[],
): Promise<{ readonly current: KubeControllerRevision } | 'written' | 'overtaken' | Postponed> {
  const { objects, random } = dependencies;
  const step = nextRevisionStep(of, revisions);
  if (step.kind === 'current') return step;
  const extra = claimed(owner, owner.fence);
  if (step.kind === 'renumber') {
    const { previous, revision } = step;
    const ref = refOfObject(REVISIONS, previous);
    const write: ObjectWrite = { kind: 'update', ref, object: { ...previous, revision } as KubeObject, previous };
    return writtenOr(await objects.commit({ writes: [write], extra }));
  }
  const metadata = {
    ...step.revision.metadata,
    uid: random.uuid(),
    creationTimestamp: formatTime(owner.nowMs),
    ownerReferences: [controllerReference(owner.kind, owner.object)],
  };
  const prepare = (given: KubeObject): KubeControllerRevision =>
    prepareRevision.prepareForCreate(given, { nowMs: owner.nowMs });
  const permission = await permitted(dependencies, {
    creator: owner,
    group: 'apps',
    resource: REVISIONS,
    given: { ...step.revision, metadata },
    prepare,
    compared: ({ data, revision }: KubeControllerRevision) => ({ data, revision }),
  });
  if (permission.kind === 'waiting') return permission;
  if (permission.kind === 'refused') {
    await reportRefusal(dependencies, owner, permission.message);
    return permission;
  }
  const { object, quotas } = permission;
  const write: ObjectWrite = { kind: 'create', ref: refOfObject(REVISIONS, object), object };
  const outcome = await objects.commit({ writes: [write, ...quotas], extra });
  const isTaken = outcome.kind === 'conflict' && outcome.index === 0;
  return isTaken ? resolveCollision(dependencies, owner, of, outcome.current) : writtenOr(outcome);
}

const writtenOr = (outcome: CommitOutcome): 'written' | 'overtaken' => (isCommitted(outcome) ? 'written' : 'overtaken');

/** The name is in use. By ours: another sync was faster. By any other: the next attempt makes another name. */
async function resolveCollision(
  { objects }: WorkloadDependencies,
  { ref, object }: PodOwner,
  of: RevisionOwner,
  existing: KubeControllerRevision | undefined,
): Promise<'overtaken'> {
  const isOurs =
    existing === undefined ||
    (controllerOf(existing)?.uid === object.metadata.uid && isSameTemplate(templateOf(existing), of.template));
  if (!isOurs) {
    const status = { ...object.status, collisionCount: (of.collisionCount ?? 0) + 1 };
    await objects.commit({ writes: [{ kind: 'update', ref, object: { ...object, status }, previous: object }] });
  }
  return 'overtaken';
}

/** Deletes revisions that exceed the limit, if the owner is as it was read. A lost race is left to the next sync. */
export async function deleteRevisions(
  dependencies: WorkloadDependencies,
  owner: { readonly ref: ObjectRef; readonly object: KubeObject },
  surplus: readonly KubeControllerRevision[],
): Promise<void> {
  if (surplus.length === 0) return;
  const writes = surplus.map(
    (each): ObjectWrite => ({ kind: 'delete', ref: refOfObject(REVISIONS, each), previous: each }),
  );
  await commitFirst(dependencies, writes, [unchanged(owner.ref, owner.object)]);
}
