/** The owner of a sync: read once, and unchanged when its effects are committed. */
import { shardsOf } from '../../api/storage/cluster-objects.ts';
import type { KubeObject, ObjectRef } from '../../kube/types.ts';
import type { CheckWrite } from '../../ports/item-store.ts';
import { is } from '../../store/conditions.ts';
import { resourceVersionOf } from '../../store/object-record.ts';
import { objectKey } from '../../store/object-store.ts';

/** For a commit's `extra`: refuses the commit if the object changed since it was read. */
export const unchanged = (ref: ObjectRef, object: KubeObject): CheckWrite => ({
  kind: 'check',
  key: objectKey(ref, shardsOf(ref.resource)),
  when: is('rv', resourceVersionOf(object)),
});

export const refOfObject = (resource: string, { metadata }: KubeObject): ObjectRef => ({
  resource,
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});
