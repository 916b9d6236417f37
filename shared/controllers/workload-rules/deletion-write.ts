/** The write of a plain DELETE by a controller: with the object's own grace period and finalizers. */
import { boundedSeconds } from '../../domain/stored-seconds.ts';
import { markDeleted, podGraceSeconds } from '../../kube/deletion.ts';
import type { KubeObject, ObjectRef } from '../../kube/types.ts';
import type { ObjectWrite } from '../../store/object-store.ts';

export function deletionWrite(ref: ObjectRef, object: KubeObject, nowMs: number): ObjectWrite {
  const graceSeconds = ref.resource === 'pods' ? (boundedSeconds(podGraceSeconds(object)) ?? 0) : 0;
  return graceSeconds === 0 && (object.metadata.finalizers ?? []).length === 0
    ? { kind: 'delete', ref, previous: object }
    : { kind: 'update', ref, object: markDeleted(object, graceSeconds, nowMs), previous: object };
}
