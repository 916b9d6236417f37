/**
 * Revisions of a Deployment: numbers in annotations of its ReplicaSets, and what a new ReplicaSet looks like. Source:
 * pkg/controller/deployment/sync.go (getNewReplicaSet), deployment/util/deployment_util.go
 * (SetNewReplicaSetAnnotations, MaxRevision).
 */

import type { KubeObject } from '../../../shared/kinds/types.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import { HASH_LABEL, isSameTemplate, templateHash } from '../template.rule.ts';
import type { KubeDeployment, KubeReplicaSet, ReplicaSetSpec } from '../workload-types.ts';
import { fencepostsOf, newSetSize, type SizedSet } from './sizes.rule.ts';

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
