/**
 * DELETE of a namespace. It is only marked: admission refuses new objects in it from then on. The controller of
 * namespaces deletes its objects, then removes the finalizer in its spec.
 */

import { hasSpecFinalizers, namespaces, SYSTEM_NAMESPACES } from '../../../shared/kinds/namespaces/serve.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { type DeletedObject, type DeleteOptions, deleteObject } from '../verbs/delete-object.ts';
import type { WriteOptions } from '../verbs/write-options.ts';

/** They may not be deleted. Each would be created again at the next read. */
const UNDELETABLE: ReadonlySet<string> = new Set(SYSTEM_NAMESPACES);

export async function deleteNamespace(
  dependencies: ApiDependencies,
  target: ResourceTarget,
  requested: DeleteOptions,
  options: WriteOptions,
): Promise<DeletedObject> {
  const { name } = target;
  if (UNDELETABLE.has(name)) throw status.forbidden(namespaces, name, 'this namespace may not be deleted');
  return deleteObject(dependencies, namespaces, target, requested, options, async (namespace) => ({
    markOnly: hasSpecFinalizers(namespace),
    mark: (marked) => ({ ...marked, status: { ...marked.status, phase: 'Terminating' } }),
  }));
}
