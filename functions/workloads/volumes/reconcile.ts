/**
 * Binds claims and volumes, and lets agents make and remove the volumes of the local provisioner.
 *
 * Upstream's binder writes the volume first (claimRef), then the claim (volumeName), and repairs what a crash left
 * between them. Here both are one transaction, on the condition that each is as it was read:
 *
 *   - Two binders that decide for one volume: the version of the volume differs for the second. It is refused and
 *     decides again. A claim is never bound to two volumes, by the same condition on the claim.
 *   - A binder that is killed has written both or neither.
 *   - A binder that decided on an old copy of the volumes is refused, or has found fewer volumes than there are: the
 *     record of the newer volume starts the next sync of the claims without one.
 *   - Others write one side alone: a person or a provisioner the claimRef, the scheduler the selected node. The rules
 *     finish what they find half-done (claim.rule.ts, volume.rule.ts), so the state of upstream's crash is one of
 *     their inputs.
 *
 * A row for an agent is written after the transaction. If the process is killed before, the record of the claim is
 * delivered again, and at the latest the sweep syncs a claim that is Pending.
 *
 * Cost: two commits per claim (bound, and selected or asked before), and nothing while no claim changes.
 */

import { recordEvents } from '../../../shared/events/record-event.ts';
import { nodeRef } from '../../../shared/fleet/nodes/change-node.ts';
import { conditionOf } from '../../../shared/fleet/nodes/conditions.ts';
import { LOCAL_PROVISIONER } from '../../../shared/kinds/persistentvolumes/annotations.ts';
import {
  classNameOf,
  defaultClass,
  selectedNodeOf,
  wantsDefaultClass,
} from '../../../shared/kinds/persistentvolumes/binding.rule.ts';
import { localNodeOf } from '../../../shared/kinds/persistentvolumes/local-volume.rule.ts';
import { askForWork } from '../../../shared/kinds/persistentvolumes/volume-work-store.ts';
import { claimNamesOf } from '../../../shared/kinds/pods/pod-needs.ts';
import { withLocalClass } from '../../../shared/kinds/storageclasses/local-class.ts';
import type {
  KubeNode,
  KubeObject,
  KubePersistentVolume,
  KubePersistentVolumeClaim,
  KubePod,
  KubeStorageClass,
  ObjectRef,
} from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import { queueStore } from '../../../shared/scheduling/queue-store.ts';
import type { ObjectStore, ObjectWrite } from '../../../shared/store/object-store.ts';
import { shortHash } from '../../../shared/text.ts';
import { UNBOUNDED, workThrough } from '../../../shared/ticks/bounded-work.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { listObjects } from '../object-lists.ts';
import { isCommitted, refOfObject, type SyncReport, syncUnlessOvertaken } from '../owner.ts';
import { type ClaimDecision, type ClaimWorld, decideClaim, type VolumeEvent } from './claim.rule.ts';
import { decideVolume } from './volume.rule.ts';

const COMPONENT = 'persistentvolume-controller';
export const CLAIMS = 'persistentvolumeclaims';
export const VOLUMES = 'persistentvolumes';
/** A node that was selected and does not answer has this long to make the volume. Milliseconds. */
const PROVISION_WAIT_MS = 120_000;
const CONCURRENCY_MAX = 8;

/** Without a name: every claim that has no volume yet. */
export async function syncClaim(dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport> {
  if (ref.name !== '') return syncUnlessOvertaken('PersistentVolumeClaim', () => attemptClaim(dependencies, ref));
  const claims = (await listObjects(dependencies, CLAIMS, '')) as readonly KubePersistentVolumeClaim[];
  const waiting = claims.filter(({ status }) => status?.phase !== 'Bound').map((each) => refOfObject(CLAIMS, each));
  // What keeps one from being bound keeps none of the others.
  const limits = { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED };
  const { faults } = await workThrough(waiting, limits, (each) => syncClaim(dependencies, each));
  if (faults.length > 0) throw new AggregateError(faults, `${faults.length} claims could not be synced`);
  return {};
}

const volumeRef = (name: string): ObjectRef => ({ resource: VOLUMES, namespace: '', name });

async function worldOf(dependencies: WorkloadDependencies, claim: KubePersistentVolumeClaim): Promise<ClaimWorld> {
  const { objects, clock } = dependencies;
  const { volumeName = '' } = claim.spec ?? {};
  const isDeleting = claim.metadata.deletionTimestamp !== undefined;
  const world = { claim, volumes: [], isUsed: false, isNodeLost: false, nowMs: clock.nowMs() };
  if (isDeleting) return { ...world, isUsed: await isUsed(dependencies, claim) };
  if (volumeName !== '') {
    const named: KubePersistentVolume | undefined = await objects.get(volumeRef(volumeName));
    return named === undefined ? world : { ...world, named };
  }
  const [volumes, stored] = await Promise.all([dependencies.volumes.read(), dependencies.storageClasses.read()]);
  const classes = withLocalClass(stored);
  const name = classNameOf(claim);
  const storage = classes.find(({ metadata }) => metadata.name === name);
  const fallback = wantsDefaultClass(claim) ? defaultClass(classes) : undefined;
  return {
    ...world,
    volumes,
    isNodeLost: await isNodeLost(objects, claim, storage),
    ...(storage === undefined ? {} : { storage }),
    ...(fallback === undefined ? {} : { fallback }),
  };
}

/** A pod that has a node: the machine may have mounted the volume. A pod without one cannot start with the claim. */
async function isUsed(dependencies: WorkloadDependencies, { metadata }: KubePersistentVolumeClaim): Promise<boolean> {
  const pods: readonly KubePod[] = await listObjects(dependencies, 'pods', metadata.namespace ?? '');
  return pods.some((pod) => (pod.spec?.nodeName ?? '') !== '' && claimNamesOf(pod).includes(metadata.name ?? ''));
}

async function isNodeLost(
  objects: ObjectStore,
  claim: KubePersistentVolumeClaim,
  storage: KubeStorageClass | undefined,
): Promise<boolean> {
  const name = selectedNodeOf(claim);
  if (name === '' || storage?.provisioner !== LOCAL_PROVISIONER) return false;
  const node: KubeNode | undefined = await objects.get(nodeRef(name));
  return conditionOf(node?.status?.conditions, 'Ready')?.status !== 'True';
}

async function attemptClaim(dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport | 'overtaken'> {
  const { objects, items, clock } = dependencies;
  const claim: KubePersistentVolumeClaim | undefined = await objects.get(ref);
  if (claim === undefined) return {};
  const decision = decideClaim(await worldOf(dependencies, claim));
  const writes = writesOf(claim, decision);
  if (writes.length > 0) {
    if (!isCommitted(await objects.commit({ writes }))) return 'overtaken';
  }
  if (decision.event !== undefined) await report(dependencies, 'PersistentVolumeClaim', claim, decision.event);
  const { phase } = decision.claim.status ?? {};
  // Its first consumer waits for it, or for a node that can make it.
  const isNew = phase === 'Bound' && claim.status?.phase !== 'Bound';
  if (isNew || selectedNodeOf(claim) !== selectedNodeOf(decision.claim)) await queueStore(items).request();
  if (decision.provisionOn === undefined) return {};
  const { namespace, name } = ref;
  await askForWork(items, decision.provisionOn, { kind: 'provision', namespace, name });
  return { lookAgainAtMs: clock.nowMs() + PROVISION_WAIT_MS };
}

function writesOf(claim: KubePersistentVolumeClaim, { claim: next, volume }: ClaimDecision): readonly ObjectWrite[] {
  const writes: ObjectWrite[] = [];
  if (volume !== undefined && !jsonEqual(volume.previous, volume.next)) writes.push(updated(VOLUMES, volume));
  if (!jsonEqual(claim, next)) writes.push(updated(CLAIMS, { previous: claim, next }));
  return writes;
}

/** Without its last finalizer an object that is being deleted is removed. */
function updated(
  resource: string,
  { previous, next }: { readonly previous: KubeObject; readonly next: KubeObject },
): ObjectWrite {
  const ref = refOfObject(resource, previous);
  const { deletionTimestamp, finalizers = [] } = next.metadata;
  return deletionTimestamp !== undefined && finalizers.length === 0
    ? { kind: 'delete', ref, previous }
    : { kind: 'update', ref, object: next, previous };
}

function report(
  dependencies: WorkloadDependencies,
  kind: 'PersistentVolumeClaim' | 'PersistentVolume',
  { metadata }: KubeObject,
  event: VolumeEvent,
): Promise<void> {
  const { namespace = '', name = '', uid = '' } = metadata;
  const about = { kind, apiVersion: 'v1', namespace, name, uid };
  const once = shortHash(event.message);
  return recordEvents(dependencies, [{ ...event, source: COMPONENT, about, once }], dependencies.clock.nowMs());
}

export const syncVolume = (dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport> =>
  syncUnlessOvertaken('PersistentVolume', () => attemptVolume(dependencies, ref));

async function attemptVolume(dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport | 'overtaken'> {
  const { objects, items, clock } = dependencies;
  const volume: KubePersistentVolume | undefined = await objects.get(ref);
  if (volume === undefined) return {};
  const { claimRef } = volume.spec ?? {};
  const claimed = { resource: CLAIMS, namespace: claimRef?.namespace ?? '', name: claimRef?.name ?? '' };
  const claim: KubePersistentVolumeClaim | undefined = claimRef === undefined ? undefined : await objects.get(claimed);
  const decision = decideVolume({ volume, nowMs: clock.nowMs(), ...(claim === undefined ? {} : { claim }) });
  if (!jsonEqual(volume, decision.volume)) {
    const writes = [updated(VOLUMES, { previous: volume, next: decision.volume })];
    if (!isCommitted(await objects.commit({ writes }))) return 'overtaken';
  }
  if (decision.event !== undefined) await report(dependencies, 'PersistentVolume', volume, decision.event);
  if (decision.removeOn !== undefined) await askForWork(items, decision.removeOn, { kind: 'remove', name: ref.name });
  return decision.claimWaits === true ? syncClaim(dependencies, claimed) : {};
}

/** A local volume that a person removed leaves its directory. `removed`: as it was stored last. */
export async function removeDirectory(
  { items }: Pick<WorkloadDependencies, 'items'>,
  removed: KubePersistentVolume,
): Promise<void> {
  const nodeName = localNodeOf(removed);
  const isKept = removed.spec?.persistentVolumeReclaimPolicy !== 'Delete';
  if (nodeName !== undefined && !isKept)
    await askForWork(items, nodeName, { kind: 'remove', name: removed.metadata.name ?? '' });
}
