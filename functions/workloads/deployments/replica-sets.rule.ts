/**
 * Sizes of the ReplicaSets of a Deployment. Pure numbers. Source: pkg/controller/deployment/{rolling,sync}.go,
 * deployment/util/deployment_util.go.
 *
 * Revisions of a Deployment: numbers in annotations of its ReplicaSets, and what a new ReplicaSet looks like. Source:
 * pkg/controller/deployment/sync.go (getNewReplicaSet), deployment/util/deployment_util.go
 * (SetNewReplicaSetAnnotations, MaxRevision).
 */

import type { KubeObject } from '../../../shared/kinds/types.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import { scaledValue } from '../int-or-percent.rule.ts';
import { HASH_LABEL, isSameTemplate, templateHash } from '../template.rule.ts';
import type { DeploymentSpec, KubeDeployment, KubeReplicaSet, ReplicaSetSpec } from '../workload-types.ts';

/** A ReplicaSet, as these rules see it. */
export interface SizedSet {
  readonly name: string;
  /** spec.replicas. */
  readonly size: number;
  /** status.availableReplicas. */
  readonly available: number;
  readonly createdAtMs: number;
  /** Annotation desired-replicas; absent when it is missing or no number. */
  readonly desired?: number;
  /** Annotation max-replicas; absent when it is missing or no number. */
  readonly max?: number;
}

export interface Resize {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly step: 'new' | 'unhealthy' | 'available' | 'scale' | 'saturated' | 'proportional' | 'recreate';
}

export interface Fenceposts {
  readonly surge: number;
  readonly unavailable: number;
}

const DEFAULT_SHARE = '25%';

/** A malformed value counts as 0; validation refuses it before. Without surge, one may be unavailable. */
export function fencepostsOf(spec: Pick<DeploymentSpec, 'replicas' | 'strategy'>): Fenceposts {
  if (spec.strategy?.type === 'Recreate') return { surge: 0, unavailable: 0 };
  const replicas = spec.replicas ?? 1;
  const { maxSurge = DEFAULT_SHARE, maxUnavailable = DEFAULT_SHARE } = spec.strategy?.rollingUpdate ?? {};
  const surge = scaledValue(maxSurge, replicas, 'up') ?? 0;
  const unavailable = scaledValue(maxUnavailable, replicas, 'down') ?? 0;
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** How many pods may be unavailable: never more than there are. */
export const unavailableMax = ({ unavailable }: Fenceposts, replicas: number): number =>
  Math.min(unavailable, replicas);

const sizeOf = (sets: readonly SizedSet[]): number => sets.reduce((sum, { size }) => sum + size, 0);
const oldestFirst = (left: SizedSet, right: SizedSet): number =>
  left.createdAtMs - right.createdAtMs || (left.name < right.name ? -1 : 1);

/** The size of the new ReplicaSet in a rolling update; it may have none yet (size 0). */
export function newSetSize(
  newSize: number,
  sets: readonly SizedSet[],
  replicas: number,
  { surge }: Fenceposts,
): number {
  if (newSize > replicas) return replicas;
  const room = replicas + surge - sizeOf(sets);
  return room <= 0 ? newSize : newSize + Math.min(room, replicas - newSize);
}

/** One reduction of the old ReplicaSets: unhealthy pods first, then by what is available. */
export function reduceOldSets(
  newSet: SizedSet,
  oldSets: readonly SizedSet[],
  replicas: number,
  fenceposts: Fenceposts,
): readonly Resize[] {
  const minAvailable = replicas - unavailableMax(fenceposts, replicas);
  const newUnavailable = newSet.size - newSet.available;
  const reducible = sizeOf([newSet, ...oldSets]) - minAvailable - newUnavailable;
  if (reducible <= 0) return [];
  const cleaned = reduceUnhealthy(oldSets, reducible);
  const resizes = reduceAvailable(applied(oldSets, cleaned), newSet, minAvailable);
  return [...cleaned, ...resizes];
}

const applied = (sets: readonly SizedSet[], resizes: readonly Resize[]): readonly SizedSet[] =>
  sets.map((set) => ({ ...set, size: resizes.find(({ name }) => name === set.name)?.to ?? set.size }));

/** Oldest ReplicaSet first: pods that are not available anyhow. */
export function reduceUnhealthy(oldSets: readonly SizedSet[], reducible: number): readonly Resize[] {
  const resizes: Resize[] = [];
  let left = reducible;
  for (const { name, size, available } of oldSets.toSorted(oldestFirst)) {
    const reduce = Math.min(left, size - available);
    if (size === 0 || reduce <= 0) continue;
    resizes.push({ name, from: size, to: size - reduce, step: 'unhealthy' });
    left -= reduce;
  }
  return resizes;
}

/** Oldest ReplicaSet first, down to the minimum that must be available. */
export function reduceAvailable(
  oldSets: readonly SizedSet[],
  newSet: Pick<SizedSet, 'available'>,
  minAvailable: number,
): readonly Resize[] {
  const resizes: Resize[] = [];
  let left = oldSets.reduce((sum, { available }) => sum + available, newSet.available) - minAvailable;
  for (const { name, size } of oldSets.toSorted(oldestFirst)) {
    const reduce = Math.min(left, size);
    if (reduce <= 0) continue;
    resizes.push({ name, from: size, to: size - reduce, step: 'available' });
    left -= reduce;
  }
  return resizes;
}

export interface Scaling {
  readonly newSet: SizedSet | undefined;
  readonly oldSets: readonly SizedSet[];
  readonly replicas: number;
  readonly fenceposts: Fenceposts;
  readonly isRollingUpdate: boolean;
  /** status.replicas of the Deployment. */
  readonly statusReplicas: number;
}

/** spec.replicas was changed since the ReplicaSets were sized. */
export const isScalingEvent = (sets: readonly SizedSet[], replicas: number): boolean =>
  sets.some(({ size, desired }) => size > 0 && desired !== undefined && desired !== replicas);

/** Sizes after a change of spec.replicas, or while the Deployment is paused. */
export function scaleSets({ newSet, oldSets, ...more }: Scaling): readonly Resize[] {
  const { replicas } = more;
  const sets = [...(newSet === undefined ? [] : [newSet]), ...oldSets];
  const active = sets.filter(({ size }) => size > 0);
  if (active.length <= 1) {
    const only = active[0] ?? newSet ?? oldSets.toSorted(oldestFirst).at(-1);
    return only === undefined || only.size === replicas
      ? []
      : [{ name: only.name, from: only.size, to: replicas, step: 'scale' }];
  }
  if (newSet !== undefined && isSaturated(newSet, replicas)) {
    return oldSets
      .filter(({ size }) => size > 0)
      .map(({ name, size }) => ({ name, from: size, to: 0, step: 'saturated' as const }));
  }
  return more.isRollingUpdate ? scaleProportionally(active, more) : [];
}

const isSaturated = ({ size, desired, available }: SizedSet, replicas: number): boolean =>
  size === replicas && desired === replicas && available === replicas;

function scaleProportionally(
  active: readonly SizedSet[],
  { replicas, fenceposts, statusReplicas }: Pick<Scaling, 'replicas' | 'fenceposts' | 'statusReplicas'>,
): readonly Resize[] {
  const allowed = replicas > 0 ? replicas + fenceposts.surge : 0;
  const toAdd = allowed - sizeOf(active);
  const sorted = active.toSorted(
    (left, right) => right.size - left.size || (toAdd > 0 ? oldestFirst(right, left) : oldestFirst(left, right)),
  );
  let added = 0;
  const sizes = sorted.map((set) => {
    if (toAdd === 0) return set.size;
    const fraction = proportionOf(set, { replicas, surge: fenceposts.surge, statusReplicas });
    const rest = toAdd - added;
    const change = toAdd > 0 ? Math.min(fraction, rest) : Math.max(fraction, rest);
    added += change;
    return set.size + change;
  });
  // The first one receives what rounding left over.
  if (sizes[0] !== undefined) sizes[0] = Math.max(0, sizes[0] + toAdd - added);
  return sorted.flatMap(({ name, size }, index) =>
    sizes[index] === size ? [] : [{ name, from: size, to: sizes[index] ?? size, step: 'proportional' as const }],
  );
}

function proportionOf(
  { size, max }: SizedSet,
  of: { readonly replicas: number; readonly surge: number; readonly statusReplicas: number },
): number {
  if (of.replicas === 0) return -size;
  const before = max ?? of.statusReplicas;
  return before === 0 ? 0 : roundHalfAway((size * (of.replicas + of.surge)) / before) - size;
}

const roundHalfAway = (value: number): number => Math.sign(value) * Math.round(Math.abs(value));

export const REVISION = 'deployment.kubernetes.io/revision';
const REVISION_HISTORY = 'deployment.kubernetes.io/revision-history';
export const DESIRED_REPLICAS = 'deployment.kubernetes.io/desired-replicas';
export const MAX_REPLICAS = 'deployment.kubernetes.io/max-replicas';
const HISTORY_CHARACTERS_MAX = 2_000;
const REVISION_MAX = 2n ** 63n - 1n;
const NOT_COPIED = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  'deprecated.deployment.rollback.to',
  REVISION,
  REVISION_HISTORY,
  DESIRED_REPLICAS,
  MAX_REPLICAS,
]);

const createdAtMs = ({ metadata }: KubeObject): number => parseTimeMs(metadata.creationTimestamp) ?? 0;

const byAge = (left: KubeObject, right: KubeObject): number =>
  createdAtMs(left) - createdAtMs(right) || ((left.metadata.name ?? '') < (right.metadata.name ?? '') ? -1 : 1);

export interface Revisions {
  /** The oldest ReplicaSet with the template of the Deployment; absent: there is none yet. */
  readonly newSet: KubeReplicaSet | undefined;
  /** All others, oldest first. */
  readonly oldSets: readonly KubeReplicaSet[];
}

export function revisionsOf(deployment: KubeDeployment, sets: readonly KubeReplicaSet[]): Revisions {
  const sorted = sets.toSorted(byAge);
  const newSet = sorted.find((set) => isSameTemplate(set.spec?.template, deployment.spec?.template));
  return { newSet, oldSets: sorted.filter((set) => set !== newSet) };
}

/** The number that Go's strconv.ParseInt reads. Undefined: there is none, or none with so many bits. */
function integerOf({ metadata }: KubeObject, name: string, bits: 32 | 64): bigint | undefined {
  const text = metadata.annotations?.[name] ?? '';
  if (!/^[+-]?\d{1,40}$/.test(text)) return undefined;
  const number = BigInt(text);
  return BigInt.asIntN(bits, number) === number ? number : undefined;
}

const revisionNumber = (set: KubeReplicaSet): bigint | undefined => integerOf(set, REVISION, 64);

/** Undefined: it has none, or none that is a number of replicas. */
function replicasAnnotation(set: KubeReplicaSet, name: string): number | undefined {
  const number = integerOf(set, name, 32);
  return number === undefined ? undefined : Number(number);
}

/** The largest int64 is followed by itself. */
function revisionAfter(oldSets: readonly KubeReplicaSet[]): bigint {
  const highest = oldSets.map(revisionNumber).reduce<bigint>((max, each = 0n) => (each > max ? each : max), 0n);
  return highest < REVISION_MAX ? highest + 1n : highest;
}

export function sizedSet(set: KubeReplicaSet): SizedSet {
  const desired = replicasAnnotation(set, DESIRED_REPLICAS);
  const max = replicasAnnotation(set, MAX_REPLICAS);
  return {
    name: set.metadata.name ?? '',
    size: set.spec?.replicas ?? 0,
    available: set.status?.availableReplicas ?? 0,
    createdAtMs: createdAtMs(set),
    ...(desired === undefined ? {} : { desired }),
    ...(max === undefined ? {} : { max }),
  };
}

/** What a ReplicaSet records of the size that it is a part of. */
export function sizeAnnotations({ spec = {} }: KubeDeployment): Readonly<Record<string, string>> {
  const replicas = spec.replicas ?? 1;
  return {
    [DESIRED_REPLICAS]: String(replicas),
    [MAX_REPLICAS]: String(replicas + fencepostsOf(spec).surge),
  };
}

const copiedAnnotations = ({ metadata }: KubeDeployment): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([name]) => !NOT_COPIED.has(name)));

/** The current ReplicaSet with its revision, annotations and minReadySeconds. The same object: nothing changes. */
export function updatedNewSet(
  deployment: KubeDeployment,
  newSet: KubeReplicaSet,
  oldSets: readonly KubeReplicaSet[],
): KubeReplicaSet {
  const stored = newSet.metadata.annotations ?? {};
  const annotations = { ...stored, ...copiedAnnotations(deployment) };
  const revision = revisionAfter(oldSets);
  const former = revisionNumber(newSet);
  if (former === undefined || former < revision) {
    annotations[REVISION] = String(revision);
    if (former !== undefined) annotations[REVISION_HISTORY] = historyWith(stored[REVISION_HISTORY], former);
  }
  const minReadySeconds = deployment.spec?.minReadySeconds ?? 0;
  const isSame =
    Object.entries(annotations).every(([name, value]) => stored[name] === value) &&
    (newSet.spec?.minReadySeconds ?? 0) === minReadySeconds;
  if (isSame) return newSet;
  return {
    ...newSet,
    metadata: { ...newSet.metadata, annotations },
    spec: withMinReady(newSet.spec ?? {}, minReadySeconds),
  };
}

/** Zero is left out, as it is stored. */
function withMinReady(spec: ReplicaSetSpec, minReadySeconds: number): ReplicaSetSpec {
  const { minReadySeconds: _stored, ...others } = spec;
  return minReadySeconds === 0 ? others : { ...others, minReadySeconds };
}

function historyWith(history: string | undefined, revision: bigint): string {
  const revisions = [...(history === undefined || history === '' ? [] : history.split(',')), String(revision)];
  while (revisions.join(',').length > HISTORY_CHARACTERS_MAX) revisions.shift();
  return revisions.join(',');
}

/** The ReplicaSet of a new template. Its name is a hash, so two syncs at once create the same one. */
export function createdNewSet(deployment: KubeDeployment, oldSets: readonly KubeReplicaSet[]): KubeReplicaSet {
  const { metadata, spec = {}, status } = deployment;
  const hash = templateHash(spec.template, status?.collisionCount);
  const labels = { ...spec.template?.metadata?.labels, [HASH_LABEL]: hash };
  const replicas = spec.replicas ?? 1;
  const isRecreate = spec.strategy?.type === 'Recreate';
  const size = isRecreate ? replicas : newSetSize(0, oldSets.map(sizedSet), replicas, fencepostsOf(spec));
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `${metadata.name}-${hash}`,
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      labels,
      annotations: {
        ...copiedAnnotations(deployment),
        [REVISION]: String(revisionAfter(oldSets)),
        ...sizeAnnotations(deployment),
      },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          name: metadata.name ?? '',
          uid: metadata.uid ?? '',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: withMinReady(
      {
        replicas: size,
        selector: {
          ...spec.selector,
          matchLabels: { ...spec.selector?.matchLabels, [HASH_LABEL]: hash },
        },
        template: { ...spec.template, metadata: { ...spec.template?.metadata, labels } },
      },
      spec.minReadySeconds ?? 0,
    ),
  };
}
