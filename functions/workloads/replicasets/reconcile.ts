/**
 * One sync of a ReplicaSet or ReplicationController: read, decide, apply.
 *
 * Never more pods than wanted (L14): each transaction is under the claim of the owner (pod-commits.ts),
 * so when it commits, no other worker has changed the set of pods since it was read, and spec.replicas is still what
 * was read. Names of pods follow from the claim, so nothing depends on a random number.
 */
import { shardsOf } from '../../../shared/kinds/resources.ts';
import type { KubeObject, KubePod, ObjectRef } from '../../../shared/kinds/types.ts';
import { controllerOf } from '../../../shared/kubernetes/normal-form.ts';
import { selectorFromSpec } from '../../../shared/kubernetes/selectors.ts';
import { ownedRefs, readFence } from '../../../shared/store/owners.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { podMaker } from '../new-objects.ts';
import { candidatesOf, decideClaims, isActive, isHeld, type OwnedPod, ownedPodOf } from '../owned-pods.rule.ts';
import { controllerReference, isCommitted, isNewWithout, type SyncReport, syncUnlessOvertaken } from '../owner.ts';
import { type Applied, changeOwners, createPods, deletePods, type OwnedObject, type PodOwner } from '../pod-commits.ts';
import { podNameFor } from '../template.rule.ts';
import type { KubeReplicaSet } from '../workload-types.ts';
import { podsCreatedDraft, podsDeletedDraft } from './decisions.ts';
import {
  byLogShard,
  decideReplicas,
  type ReplicaSetDecision,
  replicaSetStatus,
  type SetKind,
  setKindOf,
} from './rule.ts';

const NOTHING: SyncReport = {};

/**
 * @param orphans pods without a controller that may belong to it; absent: not searched
 * @throws StoreFault retryable, when other workers won every attempt
 */
export const syncReplicaSet = (
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  orphans?: readonly KubePod[],
): Promise<SyncReport> =>
  syncUnlessOvertaken(setKindOf(ref.resource).kind, () => attemptSync(dependencies, ref, orphans));

interface World extends PodOwner {
  readonly kind: SetKind['kind'];
  readonly replicaSet: KubeReplicaSet;
  readonly uid: string;
  readonly pods: readonly KubePod[];
}

async function readWorld({ objects, items, clock }: WorkloadDependencies, ref: ObjectRef): Promise<World | undefined> {
  const object = await objects.get(ref);
  if (object === undefined) return undefined;
  const { asReplicaSet, ...named } = setKindOf(ref.resource);
  const uid = object.metadata.uid ?? '';
  const fence = await readFence(items, uid);
  const refs = await ownedRefs(items, uid, 'pods');
  const found = await objects.getMany(refs);
  const pods = found.flatMap((pod) => (pod !== undefined && controllerOf(pod)?.uid === uid ? [pod as KubePod] : []));
  return { ...named, ref, object, replicaSet: asReplicaSet(object), uid, fence, pods, nowMs: clock.nowMs() };
}

async function attemptSync(
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  orphans: readonly KubePod[] | undefined,
): Promise<SyncReport | 'overtaken'> {
  const world = await readWorld(dependencies, ref);
  if (world === undefined) return NOTHING;
  if (isNewWithout(orphans, world.object)) return { needsOrphans: true };
  const { replicaSet, object, nowMs } = world;
  const selector = selectorFromSpec(replicaSet.spec?.selector);
  const claims = decideClaims(object, selector, candidatesOf(world.pods, orphans ?? []));
  if (claims.adopt.length > 0 || claims.release.length > 0) {
    const asPods = (pods: readonly KubePod[]): OwnedObject[] => pods.map((pod) => ({ resource: 'pods', object: pod }));
    const changes = { adopt: asPods(claims.adopt), release: asPods(claims.release) };
    const outcome = await changeOwners(dependencies, world, changes);
    // Adopted pods count: decide on what is stored now.
    return outcome === 'committed' ? attemptSync(dependencies, ref, orphans) : outcome;
  }
  const pods = claims.owned.map(ownedPodOf);
  const relatedPods = await relatedPodsOf(dependencies, replicaSet, pods);
  const decision = decideReplicas({ replicaSet, pods, relatedPods, nowMs });
  const applied =
    decision.create > 0
      ? await createMissing(dependencies, world, decision.create)
      : await deleteSurplus(dependencies, world, { decision, pods, relatedPods });
  if (applied === 'overtaken') return 'overtaken';
  const status = replicaSetStatus({ replicaSet, pods, nowMs }, applied.failure);
  if (status !== undefined) {
    const next: KubeObject = { ...object, status };
    const outcome = await dependencies.objects.commit({
      writes: [{ kind: 'update', ref, object: next, previous: object }],
    });
    if (!isCommitted(outcome)) return 'overtaken';
  }
  const times = [decision.lookAgainAtMs, applied.retryAtMs].flatMap((atMs) => atMs ?? []);
  return times.length === 0 ? NOTHING : { lookAgainAtMs: Math.min(...times) };
}

/** Active pods of every ReplicaSet of the same controller. Read only when some of the pods are to be deleted. */
async function relatedPodsOf(
  { objects, items }: WorkloadDependencies,
  replicaSet: KubeReplicaSet,
  pods: readonly OwnedPod[],
): Promise<readonly OwnedPod[]> {
  const controller = controllerOf(replicaSet);
  const active = pods.filter(isActive);
  const wanted = replicaSet.spec?.replicas ?? 1;
  if (controller === undefined || wanted === 0 || active.length <= wanted) return [];
  const sets = await objects.getMany(await ownedRefs(items, controller.uid, 'replicasets'));
  const others = sets.flatMap((set) =>
    set === undefined || set.metadata.uid === replicaSet.metadata.uid ? [] : [set.metadata.uid ?? ''],
  );
  const refs = (await Promise.all(others.map((uid) => ownedRefs(items, uid, 'pods')))).flat();
  const related = (await objects.getMany(refs)).flatMap((pod) => (pod === undefined ? [] : [ownedPodOf(pod)]));
  return [...active, ...related.filter(isActive)];
}

async function createMissing(
  dependencies: WorkloadDependencies,
  world: World,
  count: number,
): Promise<Applied | 'overtaken'> {
  const { ref, replicaSet, object, uid, kind, nowMs } = world;
  const owner = {
    namespace: ref.namespace,
    reference: controllerReference(kind, object),
    template: replicaSet.spec?.template,
  };
  const make = await podMaker(dependencies, owner, nowMs);
  const pods = world.pods.map(ownedPodOf);
  const [active, held] = [pods.filter(isActive).length, pods.filter(isHeld).length];
  return createPods(dependencies, world, {
    count,
    nameOf: (_index, seed) => podNameFor(ref.name, { uid, ...seed }),
    make: (_index, name) => make(name, dependencies.random.uuid()),
    draft: (names, before) => podsCreatedDraft(kind, replicaSet, { active: active + before, held, names }, nowMs),
  });
}

function deleteSurplus(
  dependencies: WorkloadDependencies,
  world: World,
  of: {
    readonly decision: ReplicaSetDecision;
    readonly pods: readonly OwnedPod[];
    readonly relatedPods: readonly OwnedPod[];
  },
): Promise<Applied | 'overtaken'> {
  const { kind, ref, replicaSet, nowMs } = world;
  const stored = new Map(world.pods.map((pod) => [pod.metadata.name, pod]));
  const logShards = shardsOf('pods');
  const remove = byLogShard(of.decision.remove, { namespace: ref.namespace, logShards });
  return deletePods(dependencies, world, {
    pods: remove.flatMap(({ name }) => stored.get(name) ?? []),
    draft: (names, before) => podsDeletedDraft(kind, replicaSet, { ...of, names, before, logShards }, nowMs),
  });
}
