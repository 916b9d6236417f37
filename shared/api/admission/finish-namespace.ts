/** Completes the deletion of a namespace when its last object was removed. */

import type { KubeObject } from '../../kube/types.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { SYSTEM_NAMESPACES } from '../kinds/namespaces.ts';
import { namespaces } from '../kinds/registry.ts';

/**
 * Reads the namespace of a removed object. The read deletes a terminating namespace that is empty (namespace-lifecycle.ts),
 * so that watches see its deletion. Only an object that was marked earlier can be the last one: the others were removed
 * when the namespace was emptied.
 */
export async function finishNamespaceOf(dependencies: ApiDependencies, { metadata }: KubeObject): Promise<void> {
  const namespace = metadata.namespace ?? '';
  if (namespace === '' || (SYSTEM_NAMESPACES as readonly string[]).includes(namespace)) return;
  if (metadata.deletionTimestamp !== undefined) await dependencies.storageOf(namespaces).get('', namespace);
}
