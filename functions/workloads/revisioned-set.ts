/**
 * The part of a sync that DaemonSets and StatefulSets share: it reads the claim, pods and revisions, adopts and
 * releases.
 */
import type {
  KubeControllerRevision,
  KubeDaemonSet,
  KubeObject,
  KubePod,
  KubeStatefulSet,
  ObjectRef,
} from '../../shared/kinds/types.ts';
import { selectorFromSpec } from '../../shared/kubernetes/selectors.ts';
import { readClaim } from '../../shared/store/owners.ts';
import type { WorkloadDependencies } from './dependencies.ts';
import { candidatesOf, decideClaims } from './owned-pods.rule.ts';
import { isNewWithout, type SyncReport } from './owner.ts';
import { changeOwners, type PodOwner } from './pod-commits.ts';
import type { PodEventText } from './pod-events.ts';
import { currentRevision, type Postponed, readOwned } from './revisions.ts';

/** Changes of owners and revisions that one attempt makes, each in one transaction. */
const CHANGES_MAX = 64;

export interface RevisionedKind {
  readonly kind: 'DaemonSet' | 'StatefulSet';
  /** Source of its events. */
  readonly component: string;
  /** Label of a revision that holds its hash. */
  readonly hashLabel: string;
  /** Text of its events about one pod. Absent: that of a ReplicaSet. */
  readonly doneText?: (setName: string) => PodEventText;
  /** Whether a pod with this name can belong to the set. Absent: every pod that it selects. */
  readonly canOwn?: (setName: string, podName: string) => boolean;
}

export interface RevisionedSet {
  readonly owner: PodOwner;
  /** What is stored with the claim. */
  readonly row: Readonly<Record<string, unknown>>;
  readonly pods: readonly KubePod[];
  readonly revisions: readonly KubeControllerRevision[];
  /** That of the present template. Absent: the set is being deleted, and has none. */
  readonly current?: KubeControllerRevision;
}

/**
 * One attempt at a sync. After each change of owners or revisions it reads again.
 *
 * @param of `check`: a report of it ends the sync; `finish`: acts on what was read
 */
export async function attemptRevisionedSync<Revisioned extends KubeDaemonSet | KubeStatefulSet>(
  dependencies: WorkloadDependencies,
  { ref, orphans }: { readonly ref: ObjectRef; readonly orphans: readonly KubeObject[] | undefined },
  of: {
    readonly kind: RevisionedKind;
    readonly check?: (set: Revisioned) => Promise<SyncReport | undefined>;
    readonly finish: (set: Revisioned, read: RevisionedSet) => Promise<SyncReport | 'overtaken'>;
  },
): Promise<SyncReport | 'overtaken'> {
  for (let changes = 0; changes <= CHANGES_MAX; changes += 1) {
    const set = (await dependencies.objects.get(ref)) as Revisioned | undefined;
    if (set === undefined) return {};
    if (isNewWithout(orphans, set)) return { needsOrphans: true };
    const checked = await of.check?.(set);
    if (checked !== undefined) return checked;
    const read = await readRevisionedSet(dependencies, of.kind, { ref, set }, orphans);
    if (read === 'changed') continue;
    if (read === 'overtaken') return read;
    if ('retryMs' in read) return { lookAgainAtMs: dependencies.clock.nowMs() + read.retryMs };
    return of.finish(set, read);
  }
  return 'overtaken';
}

/** `changed`: read the set again. */
async function readRevisionedSet(
  dependencies: WorkloadDependencies,
  of: RevisionedKind,
  { ref, set }: { readonly ref: ObjectRef; readonly set: KubeDaemonSet | KubeStatefulSet },
  orphans: readonly KubeObject[] = [],
): Promise<RevisionedSet | 'changed' | 'overtaken' | Postponed> {
  const { kind, component, hashLabel, doneText, canOwn = () => true } = of;
  const uid = set.metadata.uid ?? '';
  const { fence, row } = await readClaim(dependencies.items, uid);
  const nowMs = dependencies.clock.nowMs();
  const text = doneText === undefined ? {} : { doneText: doneText(ref.name) };
  const owner: PodOwner = { kind, ref, object: set, fence, nowMs, component, ...text };
  const indexed = [
    ...(await readOwned(dependencies, uid, 'pods')),
    ...(await readOwned(dependencies, uid, 'controllerrevisions')),
  ];
  const candidates = candidatesOf(indexed, orphans).filter(
    (each) => isRevision(each) || canOwn(ref.name, each.metadata.name ?? ''),
  );
  const claims = decideClaims(set, selectorFromSpec(set.spec?.selector), candidates);
  if (claims.adopt.length > 0 || claims.release.length > 0) {
    const changes = { adopt: claims.adopt.map(ownedObject), release: claims.release.map(ownedObject) };
    const outcome = await changeOwners(dependencies, owner, changes);
    return outcome === 'committed' ? 'changed' : outcome;
  }
  const revisions = claims.owned.filter(isRevision) as readonly KubeControllerRevision[];
  const pods = claims.owned.filter((each) => !isRevision(each)) as readonly KubePod[];
  if (set.metadata.deletionTimestamp !== undefined) return { owner, row, pods, revisions };
  const { collisionCount } = set.status ?? {};
  const template = { object: set, template: set.spec?.template, collisionCount, hashLabel };
  const step = await currentRevision(dependencies, owner, template, revisions);
  if (step === 'written') return 'changed';
  if (step === 'overtaken' || 'retryMs' in step) return step;
  return { owner, row, pods, revisions, current: step.current };
}

const isRevision = ({ kind }: KubeObject): boolean => kind === 'ControllerRevision';
const ownedObject = (object: KubeObject) => ({
  resource: isRevision(object) ? 'controllerrevisions' : 'pods',
  object,
});
