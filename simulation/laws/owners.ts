/**
 * L16: garbage collection never deletes an object with an owner that is stored, or with one of a kind that nothing is
 * known about, and never one without owners. An owner that is being deleted in the foreground does not keep its
 * dependents. A reference to an owner that stays is not removed either.
 */

import type { KubeReplicaSet } from '../../functions/workloads/workload-types.ts';
import type { KubeJob, OwnerReference } from '../../shared/kinds/types.ts';
import type { Mark } from '../coverage.ts';
import type { Law, LawContext } from './law.ts';
import type { Writer } from './truth.ts';
import { type Changed, isDeleting, uidOf, type WorkloadWorld, wasDeleted } from './workload-world.ts';

const FOREGROUND = 'foregroundDeletion';
/** Kinds of owners in the simulation. Others are not served. */
const SERVED = new Set(['ConfigMap', 'Deployment', 'ReplicaSet', 'DaemonSet', 'StatefulSet', 'Job', 'Node']);

export interface OwnersLaw extends Law {
  /** What one step changed. `world` has it already. */
  learn(changed: readonly Changed[], by: Writer): void;
}

export const ownersKeepDependents = (context: LawContext, world: WorkloadWorld, hit: (mark: Mark) => void): OwnersLaw =>
  new OwnersKeep(context, world, hit);

class OwnersKeep implements OwnersLaw {
  readonly name = 'L16';
  readonly #context: LawContext;
  readonly #world: WorkloadWorld;
  readonly #hit: (mark: Mark) => void;

  constructor(context: LawContext, world: WorkloadWorld, hit: (mark: Mark) => void) {
    this.#context = context;
    this.#world = world;
    this.#hit = hit;
  }

  learn(changed: readonly Changed[], by: Writer): void {
    if (by.name !== 'workloads') return;
    for (const change of changed) {
      if (change.resource === 'nodes' || change.before === undefined) continue;
      if (wasDeleted(change)) this.#checkDeletion(change);
      else if (change.after !== undefined && uidOf(change.after) === uidOf(change.before)) this.#checkRelease(change);
    }
  }

  #checkDeletion({ resource, key, before }: Changed): void {
    const object = before!;
    const references = object.metadata.ownerReferences ?? [];
    const controller = references.find((reference) => reference.controller === true);
    const owner = controller === undefined ? undefined : this.#world.withUid(controller.uid);
    // Its controller may delete it: L14 has the rules for pods.
    if (owner !== undefined && !isDeleting(owner.object)) {
      const size = (object as KubeReplicaSet).spec?.replicas ?? 0;
      if (resource === 'replicasets' && size > 0) this.#fail([key], `${key} was deleted with ${size} replicas`);
      return;
    }
    if (resource === 'jobs' && references.length === 0 && isExpired(object)) return;
    this.#hit('L16:collected');
    if (references.length === 0) this.#fail([key], `${resource} ${key} was deleted, and has no owner`);
    const standing = references.find((reference) => this.#isStanding(reference));
    if (standing === undefined) return;
    this.#fail([key], `${resource} ${key} was deleted, its owner ${standing.kind} ${standing.name} stays`);
  }

  #isStanding({ kind, uid }: OwnerReference): boolean {
    if (!SERVED.has(kind)) return true;
    const owner = this.#world.withUid(uid)?.object;
    return owner !== undefined && !(isDeleting(owner) && (owner.metadata.finalizers ?? []).includes(FOREGROUND));
  }

  #checkRelease({ resource, key, before, after }: Changed): void {
    const kept = new Set((after!.metadata.ownerReferences ?? []).map(({ uid }) => uid));
    const lost = (before!.metadata.ownerReferences ?? []).filter(({ uid }) => !kept.has(uid));
    const hasUnknown = (after!.metadata.ownerReferences ?? []).some(({ kind }) => !SERVED.has(kind));
    if (lost.length > 0 && hasUnknown) this.#hit('L16:unknown-owner');
    for (const reference of lost) {
      const owner = this.#world.withUid(reference.uid)?.object;
      this.#hit(owner === undefined ? 'L16:released' : 'L16:orphaned');
      if (!SERVED.has(reference.kind) || (owner !== undefined && !isDeleting(owner)))
        this.#fail([key], `${resource} ${key} lost its owner ${reference.kind} ${reference.name}, which stays`);
    }
  }

  #fail(subjects: readonly string[], message: string): void {
    this.#context.fail({ law: 'L16', subjects, message });
  }
}

/** A finished Job with a time after which it is deleted. */
function isExpired({ spec, status }: KubeJob): boolean {
  const isFinished = (status?.conditions ?? []).some(
    ({ type, status: is }) => is === 'True' && (type === 'Complete' || type === 'Failed'),
  );
  return isFinished && spec?.ttlSecondsAfterFinished !== undefined;
}
