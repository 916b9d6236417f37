/**
 * The copy of a pod that the hub of its site has moved (site-permit.ts). Hub and cluster make the same one: the cluster
 * makes it of its own object. No hub changes what runs.
 */
import { defined } from '../../defined.ts';
import { NAME_LENGTH_MAX } from '../../kubernetes/kubernetes.ts';
import { controllerOf } from '../../kubernetes/normal-form.ts';
import type { TransactWrite } from '../../store/item-store.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { claimAnyway } from '../../store/owners.ts';
import type { KubePod } from '../types.ts';

/** The uid of the original, on a copy. @tools */
export const COPY_OF = 'nodekeeper.dev/copy-of';

/** The name of a copy, from that of the original and its own uid. */
export function copyName(name: string, uid: string): string {
  const suffix = `-${uid.slice(0, 8)}`;
  return `${name.slice(0, NAME_LENGTH_MAX - suffix.length)}${suffix}`;
}

/** The copy, on the machine of the move. `original`: names the first one, also if a copy is moved on. */
export function copyOf(
  pod: KubePod,
  original: { readonly name: string; readonly uid: string },
  { uid, nodeName }: { readonly uid: string; readonly nodeName: string },
): KubePod {
  const { metadata, spec, apiVersion = 'v1', kind = 'Pod' } = pod;
  const { labels, annotations, ownerReferences, namespace, generateName } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name: copyName(original.name, uid),
      uid,
      ...defined({ namespace, generateName, labels, ownerReferences }),
      annotations: { ...annotations, [COPY_OF]: original.uid },
    },
    spec: { ...spec, nodeName },
    status: { phase: 'Pending' },
  };
}

/**
 * For the transaction that creates a pod and deletes another one `along`: a copy in the place of its original. No other
 * request does both, so no client can claim owners. The controller of both may have read neither: it reads its pods
 * again before it creates another one.
 */
export function copyWrites(write: ObjectWrite, along: readonly ObjectWrite[]): TransactWrite[] {
  if (write.kind !== 'create' || !along.some(({ kind }) => kind === 'delete')) return [];
  const controller = controllerOf(write.object);
  return controller === undefined ? [] : [claimAnyway(controller.uid)];
}
