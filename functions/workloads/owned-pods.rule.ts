/**
 * What the workload controllers read of a pod. Source: pkg/controller/controller_utils.go (IsPodActive), pkg/api/v1/pod
 * (IsPodReady, IsPodAvailable).
 *
 * Which objects of a namespace belong to an owner. Source: pkg/controller/controller_ref_manager.go (ClaimObject).
 *
 * The finalizer of a pod that its Job has not counted yet. Only the Job, or the end of the Job, removes it, so a pod
 * that is deleted meanwhile is still counted. Source: pkg/controller/job/tracking_utils.go.
 */
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import type { KubeObject, KubePod, PodPhase } from '../../shared/kinds/types.ts';
import { controllerOf } from '../../shared/kubernetes/normal-form.ts';
import type { LabelSelector } from '../../shared/kubernetes/selectors.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';

export interface OwnedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  /** '' while it is not bound. */
  readonly nodeName: string;
  readonly phase: PodPhase;
  readonly ready: boolean;
  /** Last transition of the Ready condition. Epoch milliseconds. */
  readonly readyChangedAtMs: number | undefined;
  readonly createdAtMs: number | undefined;
  readonly isDeleting: boolean;
  /** It must not run twice (shared/kinds/pods/offline-stop.ts): nothing replaces it while it exists. */
  readonly isSingle: boolean;
  /** Annotation controller.kubernetes.io/pod-deletion-cost; 0 without it, or when it is no number. */
  readonly deletionCost: number;
  /** The restarts of the container that restarted most. */
  readonly restartsMax: number;
}

const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';
const INT32_MAX = 2 ** 31 - 1;

export function ownedPodOf(pod: KubePod): OwnedPod {
  const { metadata, spec, status } = pod;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    labels: metadata.labels ?? {},
    nodeName: spec?.nodeName ?? '',
    phase: status?.phase ?? 'Pending',
    ready: ready?.status === 'True',
    readyChangedAtMs: parseTimeMs(ready?.lastTransitionTime),
    createdAtMs: parseTimeMs(metadata.creationTimestamp),
    isDeleting: metadata.deletionTimestamp !== undefined,
    isSingle: metadata.annotations?.[OFFLINE_STOP_AFTER] !== undefined,
    deletionCost: deletionCostOf(metadata.annotations?.[DELETION_COST]),
    restartsMax: Math.max(0, ...(status?.containerStatuses ?? []).map(({ restartCount }) => restartCount ?? 0)),
  };
}

/** An int32 without a leading plus or zeros; anything else counts as 0. */
function deletionCostOf(text: string | undefined): number {
  if (text === undefined || !/^(0|-?[1-9]\d*)$/.test(text)) return 0;
  const cost = Number(text);
  return cost >= -INT32_MAX - 1 && cost <= INT32_MAX ? cost : 0;
}

const hasTerminated = ({ phase }: Pick<OwnedPod, 'phase'>): boolean => phase === 'Succeeded' || phase === 'Failed';

/** A terminating pod is inactive at once: its replacement does not wait for the end of the object. */
export const isActive = (pod: Pick<OwnedPod, 'phase' | 'isDeleting'>): boolean =>
  !hasTerminated(pod) && !pod.isDeleting;

/** A terminating pod that is not replaced before its machine confirms the end, or it is removed. */
export const isHeld = (pod: Pick<OwnedPod, 'phase' | 'isDeleting' | 'isSingle'>): boolean =>
  pod.isSingle && pod.isDeleting && !hasTerminated(pod);

/** Epoch milliseconds from which a Ready pod is available; undefined: it is not Ready, or its time is unknown. */
export function availableAfterMs(pod: OwnedPod, minReadySeconds: number): number | undefined {
  if (!pod.ready) return undefined;
  if (minReadySeconds === 0) return Number.NEGATIVE_INFINITY;
  return pod.readyChangedAtMs === undefined ? undefined : pod.readyChangedAtMs + minReadySeconds * 1_000;
}

/** At exactly the end of minReadySeconds it is not yet available. */
export function isAvailable(pod: OwnedPod, minReadySeconds: number, nowMs: number): boolean {
  const afterMs = availableAfterMs(pod, minReadySeconds);
  return afterMs !== undefined && afterMs < nowMs;
}

export interface Claims<Owned extends KubeObject> {
  /** Controlled by the owner already. */
  readonly owned: readonly Owned[];
  /** Without a controller, to be adopted. */
  readonly adopt: readonly Owned[];
  /** Controlled by the owner, and no longer selected. */
  readonly release: readonly Owned[];
}

/**
 * What the index has, and what may be adopted. Another worker may have adopted an orphan since it was found: then it
 * counts once, as the index has it.
 */
export function candidatesOf<Owned extends KubeObject>(
  indexed: readonly Owned[],
  orphans: readonly Owned[],
): readonly Owned[] {
  const known = new Set(indexed.map(({ metadata }) => metadata.uid));
  const free = orphans.filter((each) => controllerOf(each) === undefined && !known.has(each.metadata.uid));
  return [...indexed, ...free];
}

export function decideClaims<Owned extends KubeObject>(
  owner: KubeObject,
  selector: LabelSelector,
  candidates: readonly Owned[],
): Claims<Owned> {
  const owned: Owned[] = [];
  const adopt: Owned[] = [];
  const release: Owned[] = [];
  const isOwnerDeleting = owner.metadata.deletionTimestamp !== undefined;
  for (const candidate of candidates) {
    const { metadata } = candidate;
    const controller = controllerOf(candidate);
    const isSelected = selector.matches(metadata.labels ?? {});
    if (controller !== undefined) {
      if (controller.uid !== owner.metadata.uid) continue;
      if (isSelected) owned.push(candidate);
      else if (!isOwnerDeleting) release.push(candidate);
    } else if (
      isSelected &&
      !isOwnerDeleting &&
      metadata.namespace === owner.metadata.namespace &&
      metadata.deletionTimestamp === undefined
    ) {
      adopt.push(candidate);
    }
  }
  return { owned, adopt, release };
}

export const TRACKING = 'batch.kubernetes.io/job-tracking';

export const isTracked = ({ metadata }: KubeObject): boolean => (metadata.finalizers ?? []).includes(TRACKING);

export function withoutTracking<T extends KubeObject>(object: T): T {
  const { finalizers = [], ...metadata } = object.metadata;
  const kept = finalizers.filter((each) => each !== TRACKING);
  return { ...object, metadata: kept.length === 0 ? metadata : { ...metadata, finalizers: kept } };
}

/** No finalizer and no grace period keeps it: it is removed with this write. */
export const isReleased = ({ metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp !== undefined &&
  (metadata.deletionGracePeriodSeconds ?? 0) === 0 &&
  (metadata.finalizers ?? []).length === 0;
