/**
 * One sync of a ReplicaSet: read, decide, apply.
 *
 * Never more pods than wanted (L14). A sync reads the claim of the ReplicaSet (store/owner-claim-store.ts), then its
 * pods, both strongly consistent. Each transaction that creates, adopts or deletes pods raises the claim from the value
 * that was read, and is refused if the ReplicaSet has another resourceVersion. So when it commits,
 *
 *   - no other worker has changed the set of pods since it was read; it can only be smaller, because pods
 *     terminate by themselves, and
 *   - spec.replicas is still what was read.
 *
 * A worker that loses reads again. One that is killed has committed whole transactions, or none. A transaction that is
 * sent twice is refused the second time. Names of pods follow from the claim, so nothing depends on a random number.
 */
import { selectorFromSpec } from '../../kube/selectors.ts';
import type { KubePod, ObjectRef, OwnerReference } from '../../kube/types.ts';
import type { KubeReplicaSet } from '../../kube/workload-types.ts';
import { StoreFault } from '../../ports/item-store.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { claimWrite, readFence } from '../../store/owner-claim-store.ts';
import { ownedRefs } from '../../store/owner-index.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { subjectOf } from '../framework/record-event.ts';
import { decideClaims } from '../workload-rules/claims.rule.ts';
import { deletionWrite } from '../workload-rules/deletion-write.ts';
import { podNameFor } from '../workload-rules/generated-name.rule.ts';
import { podMaker } from '../workload-rules/new-pod.ts';
import { controllerOf, isActive, type OwnedPod, ownedPodOf } from '../workload-rules/owned-pod.rule.ts';
import { refOfObject, unchanged } from '../workload-rules/owner.ts';
import { type EventsAbout, recordFailedCreate, recordPodEvents } from '../workload-rules/pod-events.ts';
import { slowStartBatches } from '../workload-rules/slow-start.rule.ts';
import { podsCreatedDraft, podsDeletedDraft } from './decisions.ts';
import * as metric from './metrics.ts';
import { decideReplicas, type ReplicaSetDecision, replicaSetStatus, type SyncFailure } from './rule.ts';

/** Pods of one transaction: object, log entry, pointer and head each, below the 100 items of a transaction. */
const PODS_PER_COMMIT = 16;
/** Syncs that another worker overtakes, one after the other. */
const ATTEMPTS_MAX = 4;
export const CONTROLLER = 'replicaset-controller';

export interface SyncReport {
  /** When to look again. Epoch milliseconds; absent: at the next change. */
  readonly lookAgainAtMs?: number;
}

/** Pods without a controller that may belong to it. */
export type Orphans = readonly KubePod[];

const NOTHING: SyncReport = {};

/** @throws StoreFault retryable, when other workers won every attempt */
export async function syncReplicaSet(
  dependencies: ControllerDependencies,
  ref: ObjectRef,
  orphans: Orphans = [],
): Promise<SyncReport> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const outcome = await attemptSync(dependencies, ref, orphans);
    if (outcome !== 'overtaken') return outcome;
  }
  throw new StoreFault('throttled', 'the ReplicaSet changed too often to be synced', { retryable: true });
}

interface World {
  readonly ref: ObjectRef;
  readonly replicaSet: KubeReplicaSet;
  readonly uid: string;
  readonly fence: number;
  readonly pods: readonly KubePod[];
  readonly nowMs: number;
}

async function readWorld(
  { objects, items, clock }: ControllerDependencies,
  ref: ObjectRef,
): Promise<World | undefined> {
  const replicaSet = (await objects.get(ref)) as KubeReplicaSet | undefined;
  if (replicaSet === undefined) return undefined;
  const uid = replicaSet.metadata.uid ?? '';
  const fence = await readFence(items, uid);
  const refs = await ownedRefs(items, uid, 'pods');
  const found = await objects.getMany(refs);
  const pods = found.flatMap((pod) => (pod !== undefined && controllerOf(pod)?.uid === uid ? [pod as KubePod] : []));
  return { ref, replicaSet, uid, fence, pods, nowMs: clock.nowMs() };
}

async function attemptSync(
  dependencies: ControllerDependencies,
  ref: ObjectRef,
  orphans: Orphans,
): Promise<SyncReport | 'overtaken'> {
  const world = await readWorld(dependencies, ref);
  if (world === undefined) return NOTHING;
  const { replicaSet, nowMs } = world;
  const selector = selectorFromSpec(replicaSet.spec?.selector);
  const claims = decideClaims(replicaSet, selector, [...world.pods, ...orphans]);
  if (claims.adopt.length > 0 || claims.release.length > 0) {
    const outcome = await changeOwners(dependencies, world, claims);
    // Adopted pods count: decide on what is stored now.
    return outcome === 'committed' ? attemptSync(dependencies, ref, []) : outcome;
  }
  const pods = claims.owned.map(ownedPodOf);
  const relatedPods = await relatedPodsOf(dependencies, replicaSet, pods);
  const decision = decideReplicas({ replicaSet, pods, relatedPods, nowMs });
  const applied =
    decision.create > 0
      ? await createPods(dependencies, world, decision.create)
      : await deletePods(dependencies, world, { decision, pods, relatedPods });
  if (applied === 'overtaken') return 'overtaken';
  const status = replicaSetStatus({ replicaSet, pods, nowMs }, applied.failure);
  if (status !== undefined) {
    const write: ObjectWrite = { kind: 'update', ref, object: { ...replicaSet, status }, previous: replicaSet };
    const { kind } = await dependencies.objects.commit({ writes: [write] });
    if (kind === 'conflict' || kind === 'contended') return 'overtaken';
  }
  return decision.lookAgainAtMs === undefined ? NOTHING : { lookAgainAtMs: decision.lookAgainAtMs };
}

/** Active pods of every ReplicaSet of the same controller. Read only when some of the pods are to be deleted. */
async function relatedPodsOf(
  { objects, items }: ControllerDependencies,
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

const eventsAbout = (replicaSet: KubeReplicaSet): EventsAbout => ({
  about: subjectOf('ReplicaSet', replicaSet),
  source: CONTROLLER,
});

const referenceTo = ({ metadata }: KubeReplicaSet): OwnerReference => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
  controller: true,
  blockOwnerDeletion: true,
});

const withOwners = (pod: KubePod, owners: readonly OwnerReference[]): KubePod => {
  const { ownerReferences: _owners, ...metadata } = pod.metadata;
  return { ...pod, metadata: owners.length === 0 ? metadata : { ...metadata, ownerReferences: [...owners] } };
};

async function changeOwners(
  { objects }: ControllerDependencies,
  { ref, replicaSet, uid, fence }: World,
  { adopt, release }: { readonly adopt: readonly KubePod[]; readonly release: readonly KubePod[] },
): Promise<'committed' | 'overtaken'> {
  const updates = [
    ...adopt.map((pod) => ({ pod, owners: [...(pod.metadata.ownerReferences ?? []), referenceTo(replicaSet)] })),
    ...release.map((pod) => ({
      pod,
      owners: (pod.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== uid),
    })),
  ].slice(0, PODS_PER_COMMIT);
  const writes = updates.map(
    ({ pod, owners }): ObjectWrite => ({
      kind: 'update',
      ref: refOfObject('pods', pod),
      object: withOwners(pod, owners),
      previous: pod,
    }),
  );
  const { kind } = await objects.commit({ writes, extra: [unchanged(ref, replicaSet), claimWrite(uid, fence)] });
  return kind === 'committed' ? 'committed' : 'overtaken';
}

interface Applied {
  readonly failure: SyncFailure | undefined;
}

async function createPods(
  dependencies: ControllerDependencies,
  { ref, replicaSet, uid, fence, pods, nowMs }: World,
  count: number,
): Promise<Applied | 'overtaken'> {
  const { objects, random, ledger, meter } = dependencies;
  const { metadata, spec } = replicaSet;
  const owner = { namespace: ref.namespace, reference: referenceTo(replicaSet), template: spec?.template };
  const make = await podMaker(dependencies, owner, nowMs);
  const active = pods.map(ownedPodOf).filter(isActive).length;
  let claimed = fence;
  let created = 0;
  for (const size of slowStartBatches(count, PODS_PER_COMMIT)) {
    const made = Array.from({ length: size }, (_, position) =>
      make(podNameFor(metadata.name ?? '', { uid, fence: claimed, position }), random.uuid()),
    );
    const [refused] = made.filter(({ kind }) => kind !== 'pod');
    if (refused !== undefined) return refusal(dependencies, replicaSet, refused, nowMs);
    const batch = made.flatMap((each) => (each.kind === 'pod' ? [each.pod] : []));
    const names = batch.map((pod) => pod.metadata.name ?? '');
    const draft = podsCreatedDraft(replicaSet, { active: active + created, names }, nowMs);
    const outcome = await objects.commit({
      writes: batch.map((pod): ObjectWrite => ({ kind: 'create', ref: refOfObject('pods', pod), object: pod })),
      extra: [unchanged(ref, replicaSet), claimWrite(uid, claimed), ledger.write(draft)],
    });
    if (outcome.kind === 'tooLarge' || outcome.kind === 'overfull') {
      return refusal(dependencies, replicaSet, { kind: 'refused', message: 'the pod template is too large' }, nowMs);
    }
    // A name in use is that of a pod of another claim: the next attempt has other names.
    if (outcome.kind !== 'committed') return 'overtaken';
    claimed += 1;
    created += size;
    meter.add(metric.PODS_CREATED, size, 'Count', { kind: 'ReplicaSet' });
    await recordPodEvents(dependencies, eventsAbout(replicaSet), { act: 'created', names }, nowMs);
  }
  return { failure: undefined };
}

async function refusal(
  dependencies: ControllerDependencies,
  replicaSet: KubeReplicaSet,
  refused: { readonly kind: string; readonly message?: string },
  nowMs: number,
): Promise<Applied> {
  if (refused.kind === 'namespaceTerminating') return { failure: undefined };
  const message = refused.message ?? '';
  const { generation = 0 } = replicaSet.metadata;
  await recordFailedCreate(dependencies, eventsAbout(replicaSet), { generation, message }, nowMs);
  return { failure: { reason: 'FailedCreate', message } };
}

async function deletePods(
  dependencies: ControllerDependencies,
  { ref, replicaSet, uid, fence, pods: stored, nowMs }: World,
  of: {
    readonly decision: ReplicaSetDecision;
    readonly pods: readonly OwnedPod[];
    readonly relatedPods: readonly OwnedPod[];
  },
): Promise<Applied | 'overtaken'> {
  const { objects, ledger, meter } = dependencies;
  const { remove } = of.decision;
  for (let begin = 0; begin < remove.length; begin += PODS_PER_COMMIT) {
    const part = remove.slice(begin, begin + PODS_PER_COMMIT);
    const names = part.map(({ name }) => name);
    const writes = stored
      .filter((pod) => names.includes(pod.metadata.name ?? ''))
      .map((pod) => deletionWrite(refOfObject('pods', pod), pod, nowMs));
    const draft = podsDeletedDraft(replicaSet, { ...of, names, before: begin }, nowMs);
    const claim = claimWrite(uid, fence + begin / PODS_PER_COMMIT);
    const outcome = await objects.commit({ writes, extra: [unchanged(ref, replicaSet), claim, ledger.write(draft)] });
    if (outcome.kind !== 'committed') return 'overtaken';
    meter.add(metric.PODS_DELETED, part.length, 'Count', { kind: 'ReplicaSet' });
    await recordPodEvents(dependencies, eventsAbout(replicaSet), { act: 'deleted', names }, nowMs);
  }
  return { failure: undefined };
}
