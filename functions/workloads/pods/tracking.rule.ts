/**
 * The finalizer of a pod that its Job has not counted yet. Only the Job, or the end of the Job, removes it, so a pod
 * that is deleted meanwhile is still counted. Source: pkg/controller/job/tracking_utils.go.
 */
import type { KubeObject } from '../../../shared/kinds/types.ts';

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
