/**
 * One sync of a StatefulSet: read, decide, apply.
 *
 * At most one pod has an identity (L14): its name is the lock, because a creation is refused while any object has the
 * name. A pod of a silent node keeps its name until its object is removed: by its machine, by a person, or because the
 * Node no longer exists. No time limit of ours shortens this.
 *
 * Each transaction is under the claim of the StatefulSet (pod-commits.ts), so two workers never delete
 * two pods where the rule allows one. While rollouts are held (hold.rule.ts), a rolling update replaces
 * nothing.
 */
import type { AdmissionWait } from '../../../shared/admission/created-object.ts';
import { defined } from '../../../shared/defined.ts';
import { recordEvents, subjectOf } from '../../../shared/events/record-event.ts';
import { nodeRef } from '../../../shared/fleet/nodes/change-node.ts';
import { conditionOf } from '../../../shared/fleet/nodes/conditions.ts';
import type {
  KubeControllerRevision,
  KubeNode,
  KubeObject,
  KubePod,
  ObjectRef,
  PodTemplateSpec,
} from '../../../shared/kinds/types.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { HELD_RETRY_MS, readHold, reportHeld } from '../held-rollouts.ts';
import { type PodCreation, podMaker } from '../new-objects.ts';
import { availableAfterMs, isAvailable, type OwnedPod, ownedPodOf } from '../owned-pods.rule.ts';
import { controllerReference, isCommitted, refOfObject, type SyncReport, syncUnlessOvertaken } from '../owner.ts';
import { type Applied, claimed, commitFirst, createPods, deletePods, type PodOwner } from '../pod-commits.ts';
import { attemptRevisionedSync, type RevisionedKind, type RevisionedSet } from '../revisioned-set.ts';
import { REVISION_LABEL, surplusRevisions, templateOf } from '../revisions.rule.ts';
import { deleteRevisions } from '../revisions.ts';
import type { KubeStatefulSet } from '../workload-types.ts';
import { withClaims } from './claims.rule.ts';
import { type ClaimsOutcome, ensureClaims, settleClaimOwners } from './claims.ts';
import { awaitedText, podAwaitedDraft, statefulPodsDraft } from './decisions.ts';
import { ordinalOf, podNameOf, templateForOrdinal, withIdentity } from './identity.rule.ts';
import { decideStatefulSet, isWanted, type OrdinalPod, type StatefulDecision, type StatefulRules } from './rule.ts';
import { statefulSetStatus } from './status.rule.ts';

const COMPONENT = 'statefulset-controller';
/** A pod with another name is none of the set, whatever its labels. */
const KIND: RevisionedKind = {
  kind: 'StatefulSet',
  component: COMPONENT,
  hashLabel: 'controller.kubernetes.io/hash',
  doneText: (setName) => (act, name) =>
    `${act === 'created' ? 'create' : 'delete'} Pod ${name} in StatefulSet ${setName} successful`,
  canOwn: (setName, podName) => ordinalOf(setName, podName) !== undefined,
};

/**
 * @param orphans pods and revisions without a controller that may belong to it; absent: not searched
 * @throws StoreFault retryable, when other workers won every attempt
 */
export const syncStatefulSet = (
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  orphans?: readonly KubeObject[],
): Promise<SyncReport> =>
  syncUnlessOvertaken('StatefulSet', () =>
    attemptRevisionedSync<KubeStatefulSet>(
      dependencies,
      { ref, orphans },
      { kind: KIND, finish: (set, read) => finish(dependencies, syncOf(ref, set, read)) },
    ),
  );

interface Sync extends PodOwner {
  readonly set: KubeStatefulSet;
  /** By ordinal. */
  readonly stored: ReadonlyMap<number, KubePod>;
  readonly pods: readonly OrdinalPod[];
  readonly rules: StatefulRules;
  readonly revisions: readonly KubeControllerRevision[];
}

function syncOf(ref: ObjectRef, set: KubeStatefulSet, read: RevisionedSet): Sync {
  const { owner, revisions, current, pods: stored } = read;
  const update = current?.metadata.name ?? set.status?.updateRevision ?? '';
  const pods = stored.map((pod) => ordinalPodOf(pod, set, owner.nowMs));
  return {
    ...owner,
    set,
    stored: new Map(stored.map((pod) => [ordinalOf(ref.name, pod.metadata.name ?? '') ?? 0, pod])),
    pods,
    rules: rulesOf(set, update, revisions),
    revisions,
  };
}

function rulesOf(
  { spec = {}, status = {} }: KubeStatefulSet,
  update: string,
  revisions: readonly KubeControllerRevision[],
): StatefulRules {
  const { updateStrategy: strategy = {} } = spec;
  const { partition = 0, maxUnavailable } = strategy.rollingUpdate ?? {};
  const hasCurrent = revisions.some(({ metadata }) => metadata.name === status.currentRevision);
  return {
    replicas: spec.replicas ?? 1,
    start: spec.ordinals?.start ?? 0,
    isParallel: spec.podManagementPolicy === 'Parallel',
    ...(strategy.type === 'OnDelete'
      ? {}
      : { rollingUpdate: { partition, ...(maxUnavailable === undefined ? {} : { maxUnavailable }) } }),
    currentRevision: hasCurrent ? (status.currentRevision ?? '') : update,
    updateRevision: update,
  };
}

function ordinalPodOf(pod: KubePod, { metadata, spec }: KubeStatefulSet, nowMs: number): OrdinalPod {
  const owned = ownedPodOf(pod);
  return {
    ordinal: ordinalOf(metadata.name ?? '', owned.name) ?? 0,
    state: stateOf(owned, spec?.minReadySeconds ?? 0, nowMs),
    isDeleting: owned.isDeleting,
    revision: owned.labels[REVISION_LABEL] ?? '',
  };
}

function stateOf(pod: OwnedPod, minReadySeconds: number, nowMs: number): OrdinalPod['state'] {
  if (pod.phase === 'Failed' || pod.phase === 'Succeeded') return 'ended';
  if (pod.phase !== 'Running' || !pod.ready) return 'unready';
  return isAvailable(pod, minReadySeconds, nowMs) ? 'available' : 'ready';
}

const NOTHING: StatefulDecision = { create: [], remove: [], replace: [] };

/** The acts of a sync, then its status, which counts the pods before them. */
async function finish(dependencies: WorkloadDependencies, sync: Sync): Promise<SyncReport | 'overtaken'> {
  const { set, ref, rules, pods, nowMs } = sync;
  const isDeleting = set.metadata.deletionTimestamp !== undefined;
  const decision = isDeleting ? NOTHING : decideStatefulSet(rules, pods);
  const applied = await apply(dependencies, sync, decision);
  if (applied === 'overtaken') return applied;
  if (!isDeleting) await cleanHistory(dependencies, sync);
  await reportAwaited(dependencies, sync, decision);
  const revisions = { current: rules.currentRevision, update: rules.updateRevision };
  const status = statefulSetStatus(set, pods, revisions, { failure: applied.failure, nowMs });
  if (status !== undefined) {
    const outcome = await dependencies.objects.commit({
      writes: [{ kind: 'update', ref, object: { ...set, status }, previous: set }],
    });
    if (!isCommitted(outcome)) return 'overtaken';
  }
  return lookAgain(sync, applied);
}

function lookAgain({ set, stored, nowMs }: Sync, { retryAtMs, held }: Outcome): SyncReport {
  const available = [...stored.values()].flatMap((pod) => {
    const afterMs = availableAfterMs(ownedPodOf(pod), set.spec?.minReadySeconds ?? 0);
    // It is available one millisecond after the end of the time.
    return afterMs === undefined || afterMs < nowMs ? [] : [afterMs + 1];
  });
  const times = [
    ...available,
    ...(held > 0 ? [nowMs + HELD_RETRY_MS] : []),
    ...(retryAtMs === undefined ? [] : [retryAtMs]),
  ];
  return times.length === 0 ? {} : { lookAgainAtMs: Math.min(...times) };
}

interface Outcome extends Applied {
  /** Replacements that wait for the end of a hold. */
  readonly held: number;
}

async function apply(
  dependencies: WorkloadDependencies,
  sync: Sync,
  decision: StatefulDecision,
): Promise<Outcome | 'overtaken'> {
  const { set, ref, pods, nowMs } = sync;
  const identified = await restoreIdentities(dependencies, sync);
  if (identified === 'overtaken') return identified;
  if ((set.spec?.volumeClaimTemplates ?? []).length > 0 && set.metadata.deletionTimestamp === undefined) {
    const claimed = [...sync.stored].map(([ordinal, pod]) => ({
      ordinal,
      pod,
      isCondemned: !isWanted(sync.rules, ordinal),
    }));
    if ((await settleClaimOwners(dependencies, set, claimed)) === 'overtaken') return 'overtaken';
  }
  const created = await createMissing(dependencies, { ...sync, fence: identified.fence }, decision);
  if (created === 'overtaken') return created;
  let { fence } = created;
  // The inputs of the rule, for each pod a few bytes.
  const inputs = { rules: sync.rules, pods };
  const isHeld = decision.replace.length > 0 && (await isReplacementHeld(dependencies, sync, decision));
  for (const step of ['remove', 'replace'] as const) {
    const ordinals = step === 'replace' && isHeld ? [] : decision[step];
    const deleted = await deletePods(
      dependencies,
      { ...sync, fence },
      {
        pods: ordinals.flatMap((ordinal) => sync.stored.get(ordinal) ?? []),
        draft: (names) =>
          statefulPodsDraft(
            set,
            step,
            inputs,
            { names, ordinals: names.map((name) => ordinalOf(ref.name, name) ?? 0) },
            nowMs,
          ),
      },
    );
    if (deleted === 'overtaken') return deleted;
    fence = deleted.fence;
  }
  return { ...created, fence, held: isHeld ? decision.replace.length : 0 };
}

async function isReplacementHeld(
  dependencies: WorkloadDependencies,
  { set, ref, nowMs }: Sync,
  { replace }: StatefulDecision,
): Promise<boolean> {
  const reading = await readHold(dependencies, nowMs);
  const held = replace.map((ordinal) => podNameOf(ref.name, ordinal));
  const reported = { kind: 'StatefulSet', object: set, component: COMPONENT } as const;
  await reportHeld(dependencies, reported, { ...reading, held, nowMs });
  return reading.hold !== undefined;
}

/** Pods that were adopted may lack the label with their name. The sync then starts again. */
async function restoreIdentities(dependencies: WorkloadDependencies, sync: Sync): Promise<Applied | 'overtaken'> {
  const { fence, stored, set } = sync;
  if (set.metadata.deletionTimestamp !== undefined) return { kind: 'applied', fence };
  const writes = [...stored.values()].flatMap((pod): ObjectWrite[] => {
    const object = pod.metadata.deletionTimestamp === undefined ? withIdentity(pod) : undefined;
    return object === undefined ? [] : [{ kind: 'update', ref: refOfObject('pods', pod), object, previous: pod }];
  });
  if (writes.length === 0) return { kind: 'applied', fence };
  await commitFirst(dependencies, writes, claimed(sync, fence));
  return 'overtaken';
}

async function createMissing(
  dependencies: WorkloadDependencies,
  sync: Sync,
  { create }: StatefulDecision,
): Promise<Applied | 'overtaken'> {
  const { set, ref, fence, nowMs, rules, pods } = sync;
  if (create.length === 0) return { kind: 'applied', fence };
  const template = set.spec?.template;
  const reference = controllerReference('StatefulSet', set);
  const make = await podMaker(dependencies, { namespace: ref.namespace, reference, template }, nowMs);
  const nameOf = (index: number): string => podNameOf(ref.name, create[index]?.ordinal ?? 0);
  const claims = new Map<number, ClaimsOutcome>();
  let wait: AdmissionWait | undefined;
  for (const { ordinal } of create) {
    const outcome = await ensureClaims(dependencies, set, ordinal);
    if (outcome.kind === 'overtaken') return 'overtaken';
    if (outcome.kind === 'waiting') wait = outcome;
    // An owner has one question at a time.
    if (wait !== undefined) break;
    claims.set(ordinal, outcome);
  }
  const makePod = (index: number, name: string): PodCreation => {
    const { ordinal = 0, revision = '' } = create[index] ?? {};
    const claimed = claims.get(ordinal);
    if (claimed?.kind === 'failed') return { ...claimed, kind: 'refused' };
    const own = templateForOrdinal(withClaims(templateOfRevision(sync, revision), set, ordinal), {
      setName: ref.name,
      serviceName: set.spec?.serviceName ?? '',
      ordinal,
      revision,
    });
    return make(name, dependencies.random.uuid(), own);
  };
  const applied = await createPods(dependencies, sync, {
    // Those with claims: the others wait for admission with theirs.
    count: claims.size,
    nameOf,
    make: makePod,
    draft: (names, before) => {
      const ordinals = create.slice(before, before + names.length).map(({ ordinal }) => ordinal);
      return statefulPodsDraft(set, 'create', { rules, pods }, { names, ordinals }, nowMs);
    },
    takenText: (name) => `pods "${name}" already exists`,
    failedText: (index, message) => `create Pod ${nameOf(index)} in StatefulSet ${ref.name} failed error: ${message}`,
  });
  if (applied === 'overtaken' || wait === undefined) return applied;
  const { failure: message } = wait;
  const failure = message === undefined ? undefined : ({ reason: 'FailedCreate', message } as const);
  return {
    ...defined({ failure }),
    ...applied,
    retryAtMs: Math.min(applied.retryAtMs ?? Infinity, nowMs + wait.retryMs),
  };
}

/** The present template, if the revision is not known. */
function templateOfRevision({ set, revisions }: Sync, name: string): PodTemplateSpec {
  const revision = revisions.find(({ metadata }) => metadata.name === name);
  return revision === undefined ? (set.spec?.template ?? {}) : templateOf(revision);
}

/** A pod that is being deleted on a silent node: one record and one event for each pod. */
async function reportAwaited(
  dependencies: WorkloadDependencies,
  { set, stored, nowMs }: Sync,
  { awaits }: StatefulDecision,
): Promise<void> {
  const stuck = awaits === undefined ? undefined : stored.get(awaits);
  if (stuck === undefined) return;
  const pod = ownedPodOf(stuck);
  if (pod.nodeName === '') return;
  const node = (await dependencies.objects.get(nodeRef(pod.nodeName))) as KubeNode | undefined;
  if (node !== undefined && conditionOf(node.status?.conditions, 'Ready')?.status !== 'Unknown') return;
  await dependencies.ledger.recordOnce(podAwaitedDraft(set, pod, nowMs), { atMs: 0, key: pod.uid });
  const about = subjectOf('StatefulSet', set);
  const text = { type: 'Warning' as const, reason: 'StatefulPodAwaited', message: `${awaitedText(pod)}.` };
  await recordEvents(dependencies, [{ ...text, source: COMPONENT, about, once: pod.uid }], nowMs);
}

/** The current revision, the update revision and those of pods do not count. */
async function cleanHistory(
  dependencies: WorkloadDependencies,
  { ref, set, rules, pods, revisions }: Sync,
): Promise<void> {
  const live = new Set([rules.currentRevision, rules.updateRevision, ...pods.map(({ revision }) => revision)]);
  const isLive = ({ metadata }: KubeControllerRevision): boolean => live.has(metadata.name ?? '');
  const surplus = surplusRevisions(revisions, set.spec?.revisionHistoryLimit ?? 10, isLive, false);
  await deleteRevisions(dependencies, { ref, object: set }, surplus);
}
