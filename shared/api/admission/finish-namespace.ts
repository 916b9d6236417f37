/** Completes the deletion of a namespace when its last object was removed. */

import type { KubeObject } from '../../kube/types.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { SYSTEM_NAMESPACES } from '../kinds/namespaces.ts';
import { namespaces } from '../kinds/registry.ts';

/**
 * Reads the namespace of a removed object. The read deletes a terminating namespace that is empty
 * (namespace-lifecycle.ts); watches then see its deletion. Only an object with an earlier deletion mark can be the last
 * one: all others were removed with the deletion of the namespace.
 */
export async function finishNamespaceOf(dependencies: ApiDependencies, { metadata }: KubeObject): Promise<void> {
  const namespace = metadata.namespace ?? '';
  if (namespace === '' || (SYSTEM_NAMESPACES as readonly string[]).includes(namespace)) return;
  if (metadata.deletionTimestamp !== undefined) await dependencies.storageOf(namespaces).get('', namespace);
}
