/** Which syncs the changes of objects require. Pure. Each owner is synced once per batch, from what is stored then. */
import { defined } from '../../shared/defined.ts';
import { claimNamesOf } from '../../shared/kinds/pods/pod-needs.ts';
import { isTerminated } from '../../shared/kinds/pods/resource.ts';
import { usesOtherAmounts } from '../../shared/kinds/quotas/quota.ts';
import { isNamespaceContent } from '../../shared/kinds/stored-resource.ts';
import type {
  KubeNode,
  KubeObject,
  KubePersistentVolume,
  KubePersistentVolumeClaim,
  KubePod,
  ObjectRef,
  OwnerReference,
} from '../../shared/kinds/types.ts';
import { jsonEqual } from '../../shared/kubernetes/json.ts';
import { controllerOf } from '../../shared/kubernetes/normal-form.ts';
import { labelsOfConcern } from './disruption-budgets.rule.ts';
import { changesPeers, concernedZones, unitedZones } from './endpoints/announcements.rule.ts';
import { labelsOfEndpoints, SERVICE_NAME_LABEL } from './endpoints/rule.ts';
import type { OwnerCoordinates } from './garbage-collector/rule.ts';

export interface ObjectRecord {
  /** In the batch. */
  readonly position: number;
  readonly ref: ObjectRef;
  /** Absent: it was created. */
  readonly before?: KubeObject;
  /** Absent: it was deleted. */
  readonly after?: KubeObject;
}

export interface NodeChange {
  /** Absent: it appeared. */
  readonly before?: KubeNode;
  /** Absent: it was removed. */
  readonly after?: KubeNode;
}

type Labels = Readonly<Record<string, string>>;

export type Work =
  | { readonly kind: 'sync'; readonly ref: ObjectRef }
  /** A volume of an agent was removed. */
  | { readonly kind: 'removeDirectory'; readonly ref: ObjectRef; readonly removed: KubePersistentVolume }
  /** Find the owners that a pod or ReplicaSet without a controller may have. */
  | { readonly kind: 'adopt'; readonly orphan: KubeObject; readonly ref: ObjectRef }
  /**
   * Budgets that select pods with some of these labels count them again. `ref` names all budgets of the namespace. Each
   * pod of a StatefulSet has labels of its own: one work for all of them counts a budget once per batch.
   */
  | { readonly kind: 'budgets'; readonly ref: ObjectRef; readonly labels: readonly Labels[] }
  /** Services that select pods with some of these labels write their endpoints. `ref` names all of the namespace. */
  | { readonly kind: 'services'; readonly ref: ObjectRef; readonly labels: readonly Labels[] }
  /** A Service selects other pods than before. */
  | { readonly kind: 'reselect'; readonly ref: ObjectRef }
  /** Agents of these zones that route Services read what changed. */
  | { readonly kind: 'announce'; readonly zones: readonly string[] }
  /** What NetworkPolicies select changed: agents read it, if there are policies. */
  | { readonly kind: 'announcePeers' }
  /** A NetworkPolicy changed. */
  | { readonly kind: 'policiesChanged' }
  /** Endpoints that a client wrote are mirrored into EndpointSlices. `ref`: their Service. */
  | { readonly kind: 'mirror'; readonly ref: ObjectRef }
  /** A new owner: objects that it selects may be there already. */
  | { readonly kind: 'adoptAll'; readonly ref: ObjectRef }
  /** A pod of this ReplicaSet was removed: its Deployment may wait for the end of all old pods. */
  | { readonly kind: 'podEnded'; readonly ref: ObjectRef }
  /** Nodes appeared, were removed, or changed labels or taints: DaemonSets may want other pods. */
  | { readonly kind: 'nodesChanged'; readonly changes: readonly NodeChange[] }
  /** An object was removed: what becomes of its dependents. */
  | { readonly kind: 'collect'; readonly ownerUid: string; readonly hasClaim: boolean }
  /** An object is being deleted and waits for its dependents. */
  | { readonly kind: 'finish'; readonly ref: ObjectRef }
  /** This owner of an object in `namespace` may be absent, or deleted before it. */
  | { readonly kind: 'checkOwner'; readonly namespace: string; readonly owner: OwnerCoordinates }
  /** An object no longer blocks the deletion of this owner. */
  | { readonly kind: 'finishOwner'; readonly namespace: string; readonly owner: OwnerCoordinates };

export interface RequiredWork {
  readonly of: readonly number[];
  readonly work: Work;
}

interface Workload {
  readonly kind: string;
  /** Resources of what it owns, and adopts. */
  readonly owns: readonly string[];
  /** Its creations are claimed (owner-claim-store.ts). */
  readonly hasClaim: boolean;
}

/**
 * The kinds that are synced here, by plural name. work.ts has a sync and a test of rest for each: the compiler checks
 * it.
 */
const KINDS = {
  deployments: { kind: 'Deployment', owns: ['replicasets'], hasClaim: false },
  replicasets: { kind: 'ReplicaSet', owns: ['pods'], hasClaim: true },
  replicationcontrollers: { kind: 'ReplicationController', owns: ['pods'], hasClaim: true },
  daemonsets: { kind: 'DaemonSet', owns: ['pods', 'controllerrevisions'], hasClaim: true },
  // A Job finds its former pods by the label with its name.
  jobs: { kind: 'Job', owns: [], hasClaim: true },
  cronjobs: { kind: 'CronJob', owns: [], hasClaim: false },
  statefulsets: { kind: 'StatefulSet', owns: ['pods', 'controllerrevisions'], hasClaim: true },
  poddisruptionbudgets: { kind: 'PodDisruptionBudget', owns: [], hasClaim: false },
  services: { kind: 'Service', owns: [], hasClaim: false },
  persistentvolumeclaims: { kind: 'PersistentVolumeClaim', owns: [], hasClaim: false },
  persistentvolumes: { kind: 'PersistentVolume', owns: [], hasClaim: false },
} satisfies Readonly<Record<string, Workload>>;
export type WorkloadResource = keyof typeof KINDS;
export const workloadResources = Object.keys(KINDS) as readonly WorkloadResource[];
export const isWorkload = (resource: string): resource is WorkloadResource => Object.hasOwn(KINDS, resource);
const workloadOf = (resource: string): Workload | undefined => (isWorkload(resource) ? KINDS[resource] : undefined);
/** What objects of this resource own, and adopt. */
export const ownedResources = (resource: string): readonly string[] => workloadOf(resource)?.owns ?? [];
/** Resources of the owners that may adopt an object of this resource. */
export const adoptersOf = (resource: string): readonly WorkloadResource[] =>
  workloadResources.filter((each) => ownedResources(each).includes(resource));

/** A sync of one that is new searches nothing that it may adopt. */
const ADOPTS_NOTHING: ReadonlySet<string> = new Set(['persistentvolumeclaims', 'persistentvolumes']);
/** They own nothing. Each sync reads all pods of the namespace, or all objects that a quota counts. */
export const COUNTED: ReadonlySet<string> = new Set(['resourcequotas', 'poddisruptionbudgets', 'services']);

/** By kind. */
const SYNCED: ReadonlyMap<string, WorkloadResource> = new Map(
  workloadResources.map((resource) => [KINDS[resource].kind, resource]),
);
const isClaimed = (resource: string): boolean => workloadOf(resource)?.hasClaim === true;
const JOB_NAME_LABELS = ['batch.kubernetes.io/job-name', 'job-name'];
const WAITING = ['foregroundDeletion', 'orphan'];

export function requiredWorks(records: readonly ObjectRecord[]): readonly RequiredWork[] {
  const byKey = new Map<string, { of: number[]; work: Work }>();
  const ofNodes = records.filter(({ ref }) => ref.resource === 'nodes');
  for (const record of records) {
    for (const work of record.ref.resource === 'nodes' ? dependentsWorks(record) : worksOf(record)) {
      const key = JSON.stringify(keyOf(work));
      const found = byKey.get(key);
      byKey.set(key, {
        of: [...(found?.of ?? []), record.position],
        work: found === undefined ? work : merged(found.work, work),
      });
    }
  }
  const changes = ofNodes.map(({ before, after }): NodeChange => defined({ before, after }));
  const nodesChanged: RequiredWork = {
    of: ofNodes.map(({ position }) => position),
    work: { kind: 'nodesChanged', changes },
  };
  return [...byKey.values(), ...(ofNodes.length === 0 ? [] : [nodesChanged])];
}

/** One work per batch has it. */
function keyOf(work: Work): unknown {
  switch (work.kind) {
    case 'announce':
      return { kind: work.kind };
    case 'adopt':
    case 'budgets':
    case 'services':
      return { kind: work.kind, ref: work.ref };
    default:
      return work;
  }
}

/** The union of two works with one key. */
function merged(first: Work, next: Work): Work {
  if (first.kind === 'announce' && next.kind === 'announce') {
    return { ...first, zones: unitedZones(first.zones, next.zones) };
  }
  return (first.kind === 'budgets' || first.kind === 'services') && first.kind === next.kind
    ? { ...first, labels: [...first.labels, ...next.labels] }
    : first;
}

function worksOf({ ref, before, after }: ObjectRecord): readonly Work[] {
  const labels = labelsOfConcern(ref.resource, before, after);
  const zones = concernedZones(ref, before, after);
  const budgets = { resource: 'poddisruptionbudgets', namespace: ref.namespace, name: '' };
  const works: Work[] = [
    ...controllersOf(ref, before, after === undefined),
    ...controllersOf(ref, after, false),
    ...ofOwners(ref, before, after),
    ...ofNamespace(ref, before, after),
    ...(labels.length === 0 ? [] : [{ kind: 'budgets' as const, ref: budgets, labels }]),
    ...ofServices(ref, before, after),
    ...(zones.length === 0 ? [] : [{ kind: 'announce' as const, zones }]),
    ...(zones.length > 0 && ref.resource === 'networkpolicies' ? [{ kind: 'policiesChanged' as const }] : []),
    ...(changesPeers(ref, before, after) ? [{ kind: 'announcePeers' as const }] : []),
    ...ofVolumes(ref, before, after),
  ];
  works.push(...dependentsWorks({ ref, ...defined({ before, after }) }));
  if (after === undefined) return works;
  if (isWorkload(ref.resource)) {
    const mayAdopt = !COUNTED.has(ref.resource) && !ADOPTS_NOTHING.has(ref.resource);
    works.push({ kind: before === undefined && mayAdopt ? 'adoptAll' : 'sync', ref });
  }
  if (adoptersOf(ref.resource).length > 0 && isOrphan(after) && mayBeAdoptedNow(before, after)) {
    works.push({ kind: 'adopt', orphan: after, ref });
  }
  return works;
}

/** What becomes of the dependents of an object that was removed, or that waits for them. */
function dependentsWorks({ ref, before, after }: Omit<ObjectRecord, 'position'>): readonly Work[] {
  if (after === undefined) {
    const uid = before?.metadata.uid ?? '';
    return uid === '' ? [] : [{ kind: 'collect', ownerUid: uid, hasClaim: isClaimed(ref.resource) }];
  }
  const { deletionTimestamp, finalizers = [] } = after.metadata;
  const isWaiting = deletionTimestamp !== undefined && WAITING.some((each) => finalizers.includes(each));
  return isWaiting ? [{ kind: 'finish', ref }] : [];
}

const coordinatesOf = ({ apiVersion, kind, name, uid }: OwnerReference): OwnerCoordinates => ({
  apiVersion,
  kind,
  name,
  uid,
});

/** Owners of new references, which may not exist, and owners that the object no longer blocks. */
function ofOwners(
  { namespace }: ObjectRef,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
): readonly Work[] {
  const [former, current] = [before?.metadata.ownerReferences ?? [], after?.metadata.ownerReferences ?? []];
  const blocks = (references: readonly OwnerReference[], uid: string): boolean =>
    references.some((each) => each.uid === uid && each.blockOwnerDeletion === true);
  const known = new Set(former.map((each) => JSON.stringify(coordinatesOf(each))));
  return [
    ...current
      .filter((each) => !known.has(JSON.stringify(coordinatesOf(each))))
      .map((each): Work => ({ kind: 'checkOwner', namespace, owner: coordinatesOf(each) })),
    ...former
      .filter(({ uid }) => blocks(former, uid) && !blocks(current, uid))
      .map((each): Work => ({ kind: 'finishOwner', namespace, owner: coordinatesOf(each) })),
  ];
}

/**
 * Services of a changed pod; a Service with another selector; the Service of removed endpoints, and a removed Service,
 * which leaves its Endpoints.
 */
function ofServices(ref: ObjectRef, before: KubeObject | undefined, after: KubeObject | undefined): readonly Work[] {
  const { resource, namespace } = ref;
  const service = (name: string): ObjectRef => ({ resource: 'services', namespace, name });
  if (resource === 'pods') {
    const labels = labelsOfEndpoints(before, after);
    return labels.length === 0 ? [] : [{ kind: 'services', ref: service(''), labels }];
  }
  if (resource === 'services' && before !== undefined && after !== undefined) {
    return jsonEqual(before.spec?.['selector'], after.spec?.['selector']) ? [] : [{ kind: 'reselect', ref }];
  }
  if (resource === 'endpoints' && after !== undefined) return [{ kind: 'mirror', ref: service(ref.name) }];
  if (after !== undefined) return [];
  if (resource === 'services' || resource === 'endpoints') return [{ kind: 'sync', ref: service(ref.name) }];
  const named = before?.metadata.labels?.[SERVICE_NAME_LABEL];
  return resource === 'endpointslices' && named !== undefined ? [{ kind: 'sync', ref: service(named) }] : [];
}

/** Every claim without a volume. */
const WAITING_CLAIMS: Work = { kind: 'sync', ref: { resource: 'persistentvolumeclaims', namespace: '', name: '' } };

/**
 * The other side of a claim or volume that changed; claims that a new volume or class may help; claims of a pod that
 * is removed, which may be held for it; claims of the ephemeral volumes of a new pod.
 */
function ofVolumes(ref: ObjectRef, before: KubeObject | undefined, after: KubeObject | undefined): readonly Work[] {
  const claim = (namespace: string, name: string): Work => ({
    kind: 'sync',
    ref: { resource: 'persistentvolumeclaims', namespace, name },
  });
  switch (ref.resource) {
    case 'pods':
      if (after === undefined) return claimNamesOf(before as KubePod).map((name) => claim(ref.namespace, name));
      return before === undefined && hasEphemeralVolumes(after) ? [{ kind: 'sync', ref }] : [];
    case 'persistentvolumeclaims': {
      const { volumeName = '' } = ((after ?? before) as KubePersistentVolumeClaim).spec ?? {};
      const isGone = after === undefined && volumeName !== '';
      return isGone ? [{ kind: 'sync', ref: { resource: 'persistentvolumes', namespace: '', name: volumeName } }] : [];
    }
    case 'persistentvolumes': {
      const [old, now]: readonly (KubePersistentVolume | undefined)[] = [before, after];
      const { namespace = '', name = '' } = (now ?? old)?.spec?.claimRef ?? {};
      const claimed = name === '' ? [] : [claim(namespace, name)];
      if (now === undefined) return [...claimed, { kind: 'removeDirectory', ref, removed: old ?? { metadata: {} } }];
      const isFree = now.status?.phase === 'Available' && old?.status?.phase !== 'Available';
      return isFree ? [WAITING_CLAIMS] : claimed;
    }
    case 'storageclasses':
      return after === undefined ? [] : [WAITING_CLAIMS];
    default:
      return [];
  }
}

const hasEphemeralVolumes = ({ spec }: KubePod): boolean =>
  (spec?.volumes ?? []).some(({ ephemeral }) => ephemeral !== undefined);

/** Name of the Job that a pod's label names. */
export function formerJob(pod: KubeObject): string | undefined {
  const { labels = {} } = pod.metadata;
  return JOB_NAME_LABELS.map((label) => labels[label]).find((name) => name !== undefined);
}

/** Every quota of a namespace. */
const quotasOf = (namespace: string): Work => ({
  kind: 'sync',
  ref: { resource: 'resourcequotas', namespace, name: '' },
});

const SYNCED_WHOLE: ReadonlySet<string> = new Set(['namespaces', 'resourcequotas', 'customresourcedefinitions']);

/** The works of the namespace itself and its quotas. A creation is counted by admission. */
function ofNamespace(ref: ObjectRef, before: KubeObject | undefined, after: KubeObject | undefined): readonly Work[] {
  if (SYNCED_WHOLE.has(ref.resource)) {
    if (after !== undefined) return [{ kind: 'sync', ref }];
  }
  const works: Work[] = [];
  if (isNamespaceContent(ref.resource, ref.name)) {
    works.push({ kind: 'sync', ref: { resource: 'namespaces', namespace: '', name: ref.namespace } });
  }
  if (ref.namespace !== '' && countsOtherwise(ref, before, after)) works.push(quotasOf(ref.namespace));
  return works;
}

/** It was removed, or it is a pod that terminated, is being deleted or is resized, which its node completes later. */
function countsOtherwise(ref: ObjectRef, before: KubeObject | undefined, after: KubeObject | undefined): boolean {
  if (after === undefined) return true;
  if (ref.resource !== 'pods' || before === undefined) return false;
  return (
    isTerminated(before) !== isTerminated(after) ||
    before.metadata.deletionTimestamp !== after.metadata.deletionTimestamp ||
    usesOtherAmounts(before, after)
  );
}

/** The controller, which counts the object. */
function controllersOf({ namespace }: ObjectRef, object: KubeObject | undefined, isRemoved: boolean): readonly Work[] {
  const controller = object === undefined ? undefined : controllerOf(object);
  const synced = controller === undefined ? undefined : SYNCED.get(controller.kind);
  if (synced === undefined) return [];
  const ref = { resource: synced, namespace, name: controller?.name ?? '' };
  return isRemoved && synced === 'replicasets'
    ? [
        { kind: 'sync', ref },
        { kind: 'podEnded', ref },
      ]
    : [{ kind: 'sync', ref }];
}

const isOrphan = (object: KubeObject): boolean =>
  controllerOf(object) === undefined && object.metadata.deletionTimestamp === undefined;

/** It is new, or its labels or its controller changed. */
function mayBeAdoptedNow(before: KubeObject | undefined, after: KubePod): boolean {
  if (before === undefined) return true;
  const { metadata } = before;
  return (
    controllerOf(before) !== undefined ||
    JSON.stringify(metadata.labels ?? {}) !== JSON.stringify(after.metadata.labels ?? {})
  );
}
