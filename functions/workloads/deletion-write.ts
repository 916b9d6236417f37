/**
 * The write of a plain DELETE by a controller: with the object's own grace period and finalizers. `previous`: the
 * object as stored, if the write changes it.
 */

import type { KubeObject, ObjectRef } from '../../shared/kinds/types.ts';
import { markDeleted, podGraceSeconds } from '../../shared/kubernetes/deletion.ts';
import { boundedSeconds } from '../../shared/kubernetes/time.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';

export function deletionWrite(
  ref: ObjectRef,
  object: KubeObject,
  nowMs: number,
  previous: KubeObject = object,
): ObjectWrite {
  const graceSeconds = ref.resource === 'pods' ? (boundedSeconds(podGraceSeconds(object)) ?? 0) : 0;
  return graceSeconds === 0 && (object.metadata.finalizers ?? []).length === 0
    ? { kind: 'delete', ref, previous }
    : { kind: 'update', ref, object: markDeleted(object, graceSeconds, nowMs), previous };
}
