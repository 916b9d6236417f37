/** What the removal of an object that had been held may let go of. */

import type { KubeObject } from '../../kube/types.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { SYSTEM_NAMESPACES } from '../kinds/namespaces.ts';
import { namespaces } from '../kinds/registry.ts';

/**
 * It may have been the last object of a terminating namespace, which goes when it is read (namespace-lifecycle.ts), and
 * somebody may be watching for that. Only an object that was marked before can have outlived the namespace's emptying.
 */
export async function finishNamespaceOf(dependencies: ApiDependencies, { metadata }: KubeObject): Promise<void> {
  const namespace = metadata.namespace ?? '';
  if (namespace === '' || (SYSTEM_NAMESPACES as readonly string[]).includes(namespace)) return;
  if (metadata.deletionTimestamp !== undefined) await dependencies.storageOf(namespaces).get('', namespace);
}
