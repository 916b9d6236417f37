/**
 * One sync of a DaemonSet: read, decide, apply.
 *
 * At most one pod of a node that is not being deleted, two with a surge. Each transaction is under the claim of the
 * DaemonSet (pod-commits.ts), so the pods of a node are those that were read, or fewer. A Node that was
 * removed since it was read leaves a pod that the record of the removal deletes.
 *
 * While rollouts are held (hold.rule.ts), a rolling update replaces nothing, and no pod is deleted
 * because of a taint of our own.
 */
import { defined } from '../../../shared/defined.ts';
import { type PendingEvent, recordEvents, subjectOf } from '../../../shared/events/record-event.ts';
import type {
  KubeControllerRevision,
  KubeDaemonSet,
  KubeObject,
  KubePod,
  ObjectRef,
} from '../../../shared/kinds/types.ts';
import { selectorFromSpec } from '../../../shared/kubernetes/selectors.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { HELD_RETRY_MS, type HoldReading, readHold, reportHeld } from '../held-rollouts.ts';
import { podMaker } from '../new-objects.ts';
import { ownedPodOf } from '../owned-pods.rule.ts';
import { controllerReference, isCommitted, type SyncReport, syncUnlessOvertaken } from '../owner.ts';
import { type Applied, createPods, deletePods, type PodOwner } from '../pod-commits.ts';
import { attemptRevisionedSync, type RevisionedKind, type RevisionedSet } from '../revisioned-set.ts';
import { hashOf, REVISION_LABEL, surplusRevisions, templateOf } from '../revisions.rule.ts';
import { deleteRevisions } from '../revisions.ts';
import { isSameTemplate, podNameFor } from '../template.rule.ts';
import { backoffsOfRow, backoffsRow } from './backoff.rule.ts';
import {
  daemonPodsCreatedDraft,
  daemonPodsDeletedDraft,
  daemonRolloutDraft,
  type NodesOfDecision,
} from './decisions.ts';
import { type DaemonNode, daemonTemplate, placementOf, targetNodeOf, templateForNode } from './placement.rule.ts';
import { allowsSurge, chosenBy, decideRollout, type RolloutChoice } from './rollout.rule.ts';
import { type DaemonPod, type DaemonWorld, daemonSetStatus, decideDaemons, podsByNode, type Removal } from './rule.ts';

const COMPONENT = 'daemonset-controller';
const KIND: RevisionedKind = { kind: 'DaemonSet', component: COMPONENT, hashLabel: REVISION_LABEL };
const GENERATION_ANNOTATION = 'deprecated.daemonset.template.generation';
const GENERATION_LABEL = 'pod-template-generation';
/** How long the same node is the first one to get its pod. Milliseconds. */
const TURN_MS = 60_000;

/**
 * @param orphans pods and revisions without a controller that may belong to it; absent: not searched
 * @param nodes every node, read after the change that starts this sync; absent: they are read
 * @throws StoreFault retryable, when other workers won every attempt
 */
export const syncDaemonSet = (
  dependencies: WorkloadDependencies,
  ref: ObjectRef,
  orphans?: readonly KubeObject[],
  nodes?: readonly DaemonNode[],
): Promise<SyncReport> =>
  syncUnlessOvertaken('DaemonSet', () =>
    attemptRevisionedSync<KubeDaemonSet>(
      dependencies,
      { ref, orphans },
      {
        kind: KIND,
        async check(set) {
          if (set.metadata.deletionTimestamp !== undefined) return {};
          const isEmpty = selectorFromSpec(set.spec?.selector).requirements.length === 0;
          return isEmpty ? reportSelectsAll(dependencies, set) : undefined;
        },
        finish: (set, read) => decideAndAct(dependencies, { set, read, nodes }),
      },
    ),
  );

interface Sync extends PodOwner {
  readonly set: KubeDaemonSet;
  readonly uid: string;
  readonly stored: readonly KubePod[];
  /** Hash of the present template. */
  readonly hash: string;
  readonly world: DaemonWorld;
  readonly holdReading: HoldReading;
}

async function decideAndAct(
  dependencies: WorkloadDependencies,
  {
    set,
    read,
    nodes,
  }: { readonly set: KubeDaemonSet; readonly read: RevisionedSet; readonly nodes: readonly DaemonNode[] | undefined },
): Promise<SyncReport | 'overtaken'> {
  const { owner, row, revisions, current, pods: stored } = read;
  if (current === undefined) return {};
  const hash = hashOf(current, REVISION_LABEL);
  const updatedHashes = new Set(
    revisions
      .filter((each) => isSameTemplate(templateOf(each), set.spec?.template))
      .map((each) => hashOf(each, REVISION_LABEL)),
  );
  const holdReading = await readHold(dependencies, owner.nowMs);
  const world = worldOf(set, {
    pods: stored.flatMap((pod) => daemonPodOf(pod, updatedHashes)),
    row,
    isHeld: holdReading.hold !== undefined,
    nowMs: owner.nowMs,
    nodes: nodes ?? (await dependencies.daemonNodes.read()),
  });
  const sync: Sync = { ...owner, set, uid: set.metadata.uid ?? '', stored, hash, world, holdReading };
  return finish(dependencies, sync, { revisions, current });
}

/** A pod without a node is ignored. */
function daemonPodOf(pod: KubePod, updatedHashes: ReadonlySet<string>): readonly DaemonPod[] {
  const target = targetNodeOf(pod);
  if (target === undefined) return [];
  const isUpdated = updatedHashes.has(pod.metadata.labels?.[REVISION_LABEL] ?? '');
  return [{ ...ownedPodOf(pod), target, isUpdated }];
}

function worldOf(
  { metadata, spec = {} }: KubeDaemonSet,
  read: {
    readonly pods: readonly DaemonPod[];
    readonly row: Readonly<Record<string, unknown>>;
    readonly isHeld: boolean;
    readonly nowMs: number;
    readonly nodes: readonly DaemonNode[];
  },
): DaemonWorld {
  const { pods, row, isHeld, nowMs, nodes } = read;
  return {
    rules: {
      placement: placementOf(spec.template?.spec),
      minReadySeconds: spec.minReadySeconds ?? 0,
      allowsSurge: allowsSurge(spec),
    },
    nodes,
    pods,
    backoffs: backoffsOfRow(row, metadata.generation ?? 0),
    isHeld,
    nowMs,
  };
}

async function reportSelectsAll(dependencies: WorkloadDependencies, set: KubeDaemonSet): Promise<SyncReport> {
  const event: PendingEvent = {
    type: 'Warning',
    reason: 'SelectingAll',
    message: 'This daemon set is selecting all pods. A non-empty selector is required.',
    source: COMPONENT,
    about: subjectOf('DaemonSet', set),
    once: set.metadata.generation ?? 0,
  };
  await recordEvents(dependencies, [event], dependencies.clock.nowMs());
  return {};
}

/** The acts of a sync, then its status, which counts the pods before them. */
async function finish(
  dependencies: WorkloadDependencies,
  sync: Sync,
  history: { readonly revisions: readonly KubeControllerRevision[]; readonly current: KubeControllerRevision },
): Promise<SyncReport | 'overtaken'> {
  const { set, world, nowMs } = sync;
  const decision = decideDaemons(world);
  const managed = await manage(dependencies, sync, decision);
  if (managed === 'overtaken') return managed;
  const isQuiet = decision.create.length === 0 && decision.remove.length === 0;
  const isRolling = set.spec?.updateStrategy?.type !== 'OnDelete';
  const rolled = isQuiet && isRolling ? await rollOut(dependencies, sync) : { held: [] };
  if (rolled === 'overtaken') return rolled;
  await cleanHistory(dependencies, sync, history);
  const { status, lookAgainAtMs } = daemonSetStatus(set, world);
  if (status !== undefined) {
    const outcome = await dependencies.objects.commit({
      writes: [{ kind: 'update', ref: sync.ref, object: { ...set, status }, previous: set }],
    });
    if (!isCommitted(outcome)) return 'overtaken';
  }
  const held = [...decision.held.map(({ pod }) => pod.name), ...rolled.held];
  const reported = { kind: 'DaemonSet', object: set, component: COMPONENT } as const;
  await reportHeld(dependencies, reported, { ...sync.holdReading, held, nowMs });
  const holdEndsAtMs = held.length > 0 ? nowMs + HELD_RETRY_MS : undefined;
  const retries = [managed.retryAtMs, rolled.retryAtMs];
  const times = [decision.lookAgainAtMs, lookAgainAtMs, holdEndsAtMs, ...retries].filter((each) => each !== undefined);
  return times.length === 0 ? {} : { lookAgainAtMs: Math.min(...times) };
}

/** Creates missing pods, and deletes those that must not be there. */
async function manage(
  dependencies: WorkloadDependencies,
  sync: Sync,
  { create, remove, backoffs }: ReturnType<typeof decideDaemons>,
): Promise<Applied | 'overtaken'> {
  const { set, world, nowMs } = sync;
  const of: NodesOfDecision = {
    rules: world.rules,
    nodes: new Map(world.nodes.map((node) => [node.name, node])),
    podsOf: podsByNode(world.pods),
  };
  await reportEndedPods(dependencies, sync, remove);
  const created = await createOn(dependencies, sync, create, (names, nodes) =>
    daemonPodsCreatedDraft(set, of, { names, nodes }, nowMs),
  );
  if (created === 'overtaken' || remove.length === 0) return created;
  const removals = new Map(remove.map(({ pod, cause }) => [pod.name, { name: pod.name, target: pod.target, cause }]));
  const deleted = await deletePods(
    dependencies,
    { ...sync, fence: created.fence },
    {
      pods: sync.stored.filter(({ metadata }) => removals.has(metadata.name ?? '')),
      draft: (names) =>
        daemonPodsDeletedDraft(
          set,
          of,
          names.flatMap((name) => removals.get(name) ?? []),
          nowMs,
        ),
      ...(remove.some(({ cause }) => cause === 'failed') ? { more: backoffsRow(backoffs) } : {}),
    },
  );
  return deleted === 'overtaken' ? deleted : { ...deleted, ...defined({ retryAtMs: created.retryAtMs }) };
}

/**
 * A pod that admission refuses ends the creations of a sync. Each minute begins with another node, so it does not keep
 * those behind it without pods. Upstream's order is random. Within a minute it is the same, so an answer of admission
 * is for the pods of the next sync, too.
 */
const inTurn = (nodes: readonly string[], nowMs: number): readonly string[] => {
  const first = Math.floor(nowMs / TURN_MS) % nodes.length;
  return [...nodes.slice(first), ...nodes.slice(0, first)];
};

async function createOn(
  dependencies: WorkloadDependencies,
  sync: Sync,
  missing: readonly string[],
  draft: (names: readonly string[], nodes: readonly string[]) => ReturnType<typeof daemonPodsCreatedDraft>,
): Promise<Applied | 'overtaken'> {
  const { set, ref, uid, hash, fence, nowMs } = sync;
  if (missing.length === 0) return { kind: 'applied', fence };
  const nodes = inTurn(missing, nowMs);
  const generation = set.metadata.annotations?.[GENERATION_ANNOTATION];
  const template = daemonTemplate(set.spec?.template, {
    [REVISION_LABEL]: hash,
    ...defined({ [GENERATION_LABEL]: /^-?\d+$/.test(generation ?? '') ? generation : undefined }),
  });
  const reference = controllerReference('DaemonSet', set);
  const make = await podMaker(dependencies, { namespace: ref.namespace, reference, template }, nowMs);
  return createPods(dependencies, sync, {
    count: nodes.length,
    nameOf: (_index, seed) => podNameFor(ref.name, { uid, ...seed }),
    make: (index, name) => make(name, dependencies.random.uuid(), templateForNode(template, nodes[index] ?? '')),
    draft: (names, before) => draft(names, nodes.slice(before, before + names.length)),
  });
}

/** Failed and Succeeded pods that are deleted. */
async function reportEndedPods(
  dependencies: WorkloadDependencies,
  { object, nowMs }: Sync,
  remove: readonly Removal[],
): Promise<void> {
  const events = remove.flatMap(({ pod, cause }): PendingEvent[] => {
    if (cause !== 'failed' && cause !== 'succeeded') return [];
    const where = `daemon pod ${pod.namespace}/${pod.name} on node ${pod.target}`;
    const text =
      cause === 'failed'
        ? { type: 'Warning' as const, reason: 'FailedDaemonPod', message: `Found failed ${where}, will try to kill it` }
        : {
            type: 'Normal' as const,
            reason: 'SucceededDaemonPod',
            message: `Found succeeded ${where}, will try to delete it`,
          };
    return [{ ...text, source: COMPONENT, about: subjectOf('DaemonSet', object), once: pod.uid }];
  });
  await recordEvents(dependencies, events, nowMs);
}

/** Replaces pods of an old template. Returns the pods, and the nodes of second pods, that are held back. */
async function rollOut(
  dependencies: WorkloadDependencies,
  sync: Sync,
): Promise<{ readonly held: readonly string[]; readonly retryAtMs?: number } | 'overtaken'> {
  const { set, world, nowMs } = sync;
  const rollout = decideRollout(set.spec ?? {}, world);
  const doomed = chosenBy(rollout.remove);
  const doubled = chosenBy(rollout.create);
  if (world.isHeld) return { held: [...doomed, ...doubled] };
  const draft = (act: 'PodsCreated' | 'PodsDeleted', choice: RolloutChoice, names: readonly string[]) =>
    daemonRolloutDraft(set, act, choice, names, nowMs);
  const created = await createOn(dependencies, sync, doubled, (_names, nodes) =>
    draft('PodsCreated', rollout.create, nodes),
  );
  if (created === 'overtaken') return created;
  const pods = sync.stored.filter(({ metadata }) => doomed.includes(metadata.name ?? ''));
  const deleted = await deletePods(
    dependencies,
    { ...sync, fence: created.fence },
    { pods, draft: (names) => draft('PodsDeleted', rollout.remove, names) },
  );
  return deleted === 'overtaken' ? deleted : { held: [], ...defined({ retryAtMs: created.retryAtMs }) };
}

async function cleanHistory(
  dependencies: WorkloadDependencies,
  { ref, set, world }: Sync,
  {
    revisions,
    current,
  }: { readonly revisions: readonly KubeControllerRevision[]; readonly current: KubeControllerRevision },
): Promise<void> {
  const old = revisions.filter((each) => each !== current);
  const limit = set.spec?.revisionHistoryLimit ?? 10;
  const live = new Set(world.pods.map(({ labels }) => labels[REVISION_LABEL]));
  const surplus = surplusRevisions(old, limit, (each) => live.has(hashOf(each, REVISION_LABEL)), true);
  await deleteRevisions(dependencies, { ref, object: set }, surplus);
}
