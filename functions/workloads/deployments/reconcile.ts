/**
 * One sync of a Deployment: read, decide, apply in one transaction.
 *
 * The transaction holds every change of its ReplicaSets and of its status. It is refused if the Deployment or one of
 * these ReplicaSets has another resourceVersion than the one that was read. So of two syncs at once one commits, and
 * the sum of the sizes never exceeds what the rule allows (L14). The name of a new ReplicaSet follows from its
 * template: a second one of the same template is refused.
 */
import { type PendingEvent, recordEvents, subjectOf } from '../../../shared/events/record-event.ts';
import { prepareReplicaSet } from '../../../shared/kinds/replicasets/defaults.ts';
import type { KubeObject, ObjectRef, OwnerReference } from '../../../shared/kinds/types.ts';
import { controllerOf } from '../../../shared/kubernetes/normal-form.ts';
import { selectorFromSpec } from '../../../shared/kubernetes/selectors.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { COMMIT_OBJECTS_MAX, type ObjectWrite } from '../../../shared/store/object-store.ts';
import { ownedRefs, readFence } from '../../../shared/store/owners.ts';
import { deletionWrite } from '../deletion-write.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { HELD_RETRY_MS, type HoldReading, readHold, reportHeld } from '../held-rollouts.ts';
import { lastHoldEndedMs } from '../hold.rule.ts';
import { type Permission, permitted } from '../new-objects.ts';
import { candidatesOf, decideClaims } from '../owned-pods.rule.ts';
import {
  isCommitted,
  isNewWithout,
  refOfObject,
  type SyncReport,
  syncUnlessOvertaken,
  unchanged,
  withOwners,
} from '../owner.ts';
import { commitFirst } from '../pod-commits.ts';
import { isSameTemplate } from '../template.rule.ts';
import type { KubeDeployment, KubeReplicaSet } from '../workload-types.ts';
import { resizeText, setCreatedDraft, setsScaledDraft } from './decisions.ts';
import { fencepostsOf, REVISION, type Resize, revisionsOf, sizedSet } from './replica-sets.rule.ts';
import { type DeploymentDecision, decideDeployment } from './rule.ts';
import { CREATION_FAILED, creationFailedStatus } from './status.rule.ts';

const CONTROLLER = 'deployment-controller';

interface World {
  readonly ref: ObjectRef;
  readonly deployment: KubeDeployment;
  readonly sets: readonly KubeReplicaSet[];
  readonly oldPods: number;
  readonly holdReading: HoldReading;
  readonly nowMs: number;
}

/**
 * @param orphans ReplicaSets without a controller that may belong to it; absent: not searched
 * @throws StoreFault retryable, when other writers won every attempt
 */
export const syncDeployment = (
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  orphans?: readonly KubeReplicaSet[],
): Promise<SyncReport> => syncUnlessOvertaken('Deployment', () => attemptSync(dependencies, ref, orphans));

async function attemptSync(
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  orphans: readonly KubeReplicaSet[] | undefined,
): Promise<SyncReport | 'overtaken'> {
  const { objects, items } = dependencies;
  const deployment = (await objects.get(ref)) as KubeDeployment | undefined;
  if (deployment === undefined) return {};
  if (isNewWithout(orphans, deployment)) return { needsOrphans: true };
  const uid = deployment.metadata.uid ?? '';
  const found = await objects.getMany(await ownedRefs(items, uid, 'replicasets'));
  const owned = found.flatMap((set) => (set !== undefined && controllerOf(set)?.uid === uid ? [set] : []));
  const selector = selectorFromSpec(deployment.spec?.selector);
  const claims = decideClaims(deployment, selector, candidatesOf<KubeReplicaSet>(owned, orphans ?? []));
  if (claims.adopt.length > 0 || claims.release.length > 0) {
    const kind = await changeOwners(dependencies, ref, deployment, claims);
    return kind === 'committed' ? attemptSync(dependencies, ref, orphans) : kind;
  }
  const sets: readonly KubeReplicaSet[] = claims.owned;
  const world = await completeWorld(dependencies, { ref, deployment, sets });
  if (world === 'overtaken') return world;
  const { hold, state } = world.holdReading;
  const decision = decideDeployment({
    ...world,
    isHeld: hold !== undefined,
    lastHoldEndedMs: lastHoldEndedMs(state),
  });
  const outcome = await apply(dependencies, world, decision);
  if (outcome === 'overtaken') return outcome;
  if (outcome !== 'applied') return { lookAgainAtMs: world.nowMs + outcome.retryMs };
  // A held rollout resumes by itself.
  const isHeld = decision.held.length > 0 || decision.holdsHistory === true;
  const heldUntilMs = isHeld ? world.nowMs + HELD_RETRY_MS : undefined;
  const lookAgainAtMs = Math.min(decision.lookAgainAtMs ?? Infinity, heldUntilMs ?? Infinity);
  return Number.isFinite(lookAgainAtMs) ? { lookAgainAtMs } : {};
}

async function completeWorld(
  dependencies: WorkloadDependencies,
  of: Pick<World, 'ref' | 'deployment' | 'sets'>,
): Promise<World | 'overtaken'> {
  const { clock, objects, items } = dependencies;
  const nowMs = clock.nowMs();
  const holdReading = await readHold(dependencies, nowMs);
  let oldPods = 0;
  if (of.deployment.spec?.strategy?.type === 'Recreate') {
    const { oldSets } = revisionsOf(of.deployment, of.sets);
    const uids = oldSets.map(({ metadata }) => metadata.uid ?? '');
    const fences = async (): Promise<string> => (await Promise.all(uids.map((uid) => readFence(items, uid)))).join();
    const before = await fences();
    const refs = await Promise.all(uids.map((uid) => ownedRefs(items, uid, 'pods')));
    const pods = await objects.getMany(refs.flat());
    // A hub may have put a copy in the place of a pod. Then neither was read.
    if ((await fences()) !== before) return 'overtaken';
    oldPods = pods.filter((pod) => pod !== undefined && !isTerminated(pod)).length;
  }
  return { ...of, oldPods, holdReading, nowMs };
}

const isTerminated = ({ status }: KubeObject): boolean =>
  status?.['phase'] === 'Succeeded' || status?.['phase'] === 'Failed';

async function changeOwners(
  { objects }: WorkloadDependencies,
  ref: ObjectRef,
  deployment: KubeDeployment,
  { adopt, release }: { readonly adopt: readonly KubeReplicaSet[]; readonly release: readonly KubeReplicaSet[] },
): Promise<'committed' | 'overtaken'> {
  const { name = '', uid = '' } = deployment.metadata;
  const reference = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
  const update = (set: KubeReplicaSet, owners: readonly OwnerReference[]): ObjectWrite => ({
    kind: 'update',
    ref: refOfObject('replicasets', set),
    object: withOwners(set, owners),
    previous: set,
  });
  const writes = [
    ...adopt.map((set) => update(set, [...(set.metadata.ownerReferences ?? []), reference])),
    ...release.map((set) =>
      update(
        set,
        (set.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== uid),
      ),
    ),
  ].slice(0, COMMIT_OBJECTS_MAX);
  return commitFirst({ objects }, writes, [unchanged(ref, deployment)]);
}

async function apply(
  dependencies: WorkloadDependencies,
  world: World,
  decision: DeploymentDecision,
): Promise<'applied' | 'overtaken' | { readonly retryMs: number }> {
  const { objects, ledger } = dependencies;
  const { ref, deployment, nowMs } = world;
  const held = decision.held.map(resizeText);
  const owner = { kind: 'Deployment', object: deployment, component: CONTROLLER } as const;
  await reportHeld(dependencies, owner, { ...world.holdReading, held, nowMs });
  const resizes = decision.update.flatMap(({ resize }) => (resize === undefined ? [] : [resize]));
  const permission = await permissionOf(dependencies, world, decision);
  if (permission?.kind === 'waiting') return permission;
  if (permission?.kind === 'refused') {
    return refuse(dependencies, world, decision.create?.metadata.name, permission);
  }
  const { object: created, quotas = [] } = permission ?? {};
  const writes = [...writesOf(world, decision, created === undefined ? [] : [created]), ...quotas];
  if (writes.length > 0) {
    const drafts = [
      ...(decision.create === undefined
        ? []
        : [
            setCreatedDraft(
              deployment,
              decision.create.metadata.name ?? '',
              decision.create.spec?.replicas ?? 0,
              nowMs,
            ),
          ]),
      ...(resizes.length === 0
        ? []
        : [setsScaledDraft(deployment, resizes, recordedSizes(world, decision, resizes), nowMs)]),
    ];
    const writesDeployment = writes.some((write) => write.ref.resource === 'deployments');
    const outcome = await objects.commit({
      writes,
      extra: [...(writesDeployment ? [] : [unchanged(ref, deployment)]), ...drafts.map((draft) => ledger.write(draft))],
    });
    if (outcome.kind === 'conflict' && writes[outcome.index]?.kind === 'create') {
      return resolveCollision(dependencies, world, outcome.current as KubeReplicaSet | undefined);
    }
    if (outcome.kind === 'overfull' && decision.update.length + decision.remove.length > 1) {
      return apply(dependencies, world, firstHalf(decision));
    }
    if (!isCommitted(outcome)) return 'overtaken';
  }
  await recordEvents(dependencies, eventsOf(deployment, decision, resizes), nowMs);
  return 'applied';
}

/** For ReplicaSets near the size limit, which do not fit one transaction. The rest follows, as after `writesOf`. */
const firstHalf = (decision: DeploymentDecision): DeploymentDecision => ({
  ...decision,
  update: decision.update.slice(0, Math.ceil(decision.update.length / 2)),
  remove: decision.remove.slice(0, Math.floor(decision.remove.length / 2)),
});

/** At most as many as fit a transaction; the rest follows with the next sync, which changed ReplicaSets start. */
function writesOf(
  { ref, deployment, nowMs }: World,
  decision: DeploymentDecision,
  created: readonly KubeReplicaSet[],
): readonly ObjectWrite[] {
  const { update, remove, status, revision } = decision;
  const annotations = {
    ...deployment.metadata.annotations,
    ...(revision === undefined ? {} : { [REVISION]: revision }),
  };
  const isWritten = status !== undefined || revision !== undefined;
  const own: ObjectWrite = {
    kind: 'update',
    ref,
    object: {
      ...deployment,
      metadata: revision === undefined ? deployment.metadata : { ...deployment.metadata, annotations },
      ...(status === undefined ? {} : { status }),
    },
    previous: deployment,
  };
  return [
    ...(isWritten ? [own] : []),
    ...created.map((object): ObjectWrite => ({ kind: 'create', ref: refOfObject('replicasets', object), object })),
    ...update.map(
      ({ previous, next }): ObjectWrite => ({
        kind: 'update',
        ref: refOfObject('replicasets', previous),
        object: withGeneration(next, previous),
        previous,
      }),
    ),
    ...remove.map((set) => deletionWrite(refOfObject('replicasets', set), set, nowMs)),
  ].slice(0, COMMIT_OBJECTS_MAX);
}

/** Whether the new ReplicaSet may be created. undefined: none is. */
async function permissionOf(
  dependencies: WorkloadDependencies,
  { deployment, nowMs }: World,
  { create }: DeploymentDecision,
): Promise<Permission | undefined> {
  if (create === undefined) return undefined;
  const prepare = (set: KubeObject) => prepareReplicaSet.prepareForCreate(set, { nowMs });
  const metadata = { ...create.metadata, uid: dependencies.random.uuid(), creationTimestamp: formatTime(nowMs) };
  return permitted(dependencies, {
    creator: { kind: 'Deployment', object: deployment },
    group: 'apps',
    resource: 'replicasets',
    given: { ...create, metadata },
    prepare,
    // The new ReplicaSet is found by its template, and its size was decided with those of the others.
    compared: ({ spec }: KubeReplicaSet) => ({
      'spec.template': spec?.template,
      'spec.selector': spec?.selector,
      'spec.replicas': spec?.replicas,
    }),
  });
}

/** The new ReplicaSet is not permitted. Source: pkg/controller/deployment/sync.go, getNewReplicaSet. */
async function refuse(
  dependencies: WorkloadDependencies,
  { ref, deployment, nowMs }: World,
  name = '',
  refused: { readonly message: string; readonly retryMs: number },
): Promise<{ readonly retryMs: number } | 'overtaken'> {
  const message = `Failed to create new replica set "${name}": ${refused.message}`;
  const status = creationFailedStatus(deployment, message, nowMs);
  if (status !== undefined) {
    const write: ObjectWrite = { kind: 'update', ref, object: { ...deployment, status }, previous: deployment };
    if (!isCommitted(await dependencies.objects.commit({ writes: [write] }))) return 'overtaken';
  }
  const about = subjectOf('Deployment', deployment);
  const once = `${deployment.metadata.generation ?? 0}/${message}`;
  const event = { type: 'Warning' as const, reason: CREATION_FAILED, message, source: CONTROLLER, about, once };
  await recordEvents(dependencies, [event], nowMs);
  return refused;
}

/** A change of the spec raises the generation, as a write through the API does. */
function withGeneration(next: KubeReplicaSet, previous: KubeReplicaSet): KubeReplicaSet {
  const isSame = JSON.stringify(next.spec) === JSON.stringify(previous.spec);
  const generation = (previous.metadata.generation ?? 0) + (isSame ? 0 : 1);
  return { ...next, metadata: { ...next.metadata, generation } };
}

/**
 * The name of the new ReplicaSet is in use. By one of ours with this template: another sync was faster. By any other:
 * the next attempt makes another name.
 */
async function resolveCollision(
  { objects }: WorkloadDependencies,
  { ref, deployment }: World,
  existing: KubeReplicaSet | undefined,
): Promise<'overtaken'> {
  const isOurs =
    existing === undefined ||
    (controllerOf(existing)?.uid === deployment.metadata.uid &&
      isSameTemplate(existing.spec?.template, deployment.spec?.template));
  if (!isOurs) {
    const { status = {} } = deployment;
    const object = { ...deployment, status: { ...status, collisionCount: (status.collisionCount ?? 0) + 1 } };
    await objects.commit({ writes: [{ kind: 'update', ref, object, previous: deployment }] });
  }
  return 'overtaken';
}

/** The inputs of the rolling update, if it alone decided these sizes. */
function recordedSizes({ deployment, sets }: World, { create }: DeploymentDecision, resizes: readonly Resize[]) {
  const { newSet, oldSets } = revisionsOf(deployment, sets);
  const current = create ?? newSet;
  const [first] = resizes;
  const isRolling = resizes.every(({ step }) => step === 'new' || step === 'unhealthy' || step === 'available');
  if (current === undefined || first === undefined || !isRolling) return undefined;
  return {
    newSet: { ...sizedSet(current), available: newSet?.status?.availableReplicas ?? 0 },
    oldSets: oldSets.map(sizedSet),
    replicas: deployment.spec?.replicas ?? 1,
    fenceposts: fencepostsOf(deployment.spec ?? {}),
    step: first.step === 'new' ? ('new' as const) : ('old' as const),
  };
}

function eventsOf(
  deployment: KubeDeployment,
  { create, warning }: DeploymentDecision,
  resizes: readonly Resize[],
): readonly PendingEvent[] {
  const about = subjectOf('Deployment', deployment);
  const scaled = (name: string, from: number, to: number): PendingEvent => ({
    type: 'Normal',
    reason: 'ScalingReplicaSet',
    message: `Scaled ${to > from ? 'up' : 'down'} replica set ${name} from ${from} to ${to}`,
    source: CONTROLLER,
    about,
    once: `${name}/${from}/${to}/${deployment.metadata.resourceVersion}`,
  });
  const size = create?.spec?.replicas ?? 0;
  return [
    ...(create === undefined || size === 0 ? [] : [scaled(create.metadata.name ?? '', 0, size)]),
    ...resizes.map(({ name, from, to }) => scaled(name, from, to)),
    ...(warning === undefined
      ? []
      : [
          {
            type: 'Warning' as const,
            ...warning,
            source: CONTROLLER,
            about,
            once: deployment.metadata.generation ?? 0,
          },
        ]),
  ];
}
