/**
 * Deletion of a namespace: no object may be created in it, its objects are deleted, then the namespace itself.
 * Kubernetes: "Namespaces", deletion; upstream pkg/controller/namespace/deletion.
 *
 * There is no controller for this. The DELETE request empties the namespace. Objects that take longer (a grace period,
 * a finalizer) are checked again when the namespace is next read, and when the API removes such an object.
 */
import { defined } from '../../domain/defined.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import { isStatusError } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import type { KubeNamespace, KubeObject } from '../../kube/types.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { namespaces, resources } from '../kinds/registry.ts';
import type { ResourceStorage } from '../storage/resource-storage.ts';
import { type DeletedObject, type DeleteOptions, deleteObject } from '../verbs/delete-object.ts';
import type { WriteOptions } from '../verbs/write-options.ts';

/** These may not be deleted. Each would be created again at the next read. */
const UNDELETABLE = new Set(['default', 'kube-node-lease', 'kube-public', 'kube-system']);
/** The finalizer in the spec of every namespace. This API removes it. */
const KUBERNETES_FINALIZER = 'kubernetes';
/** Objects removed in one request. The rest needs another DELETE. */
const REMOVALS_MAX = 2_000;
const PAGE_ITEMS = 100;

const contents: readonly ResourceDescriptor[] = resources.filter(
  (each) => each.namespaced && each.servedFrom === undefined && each.verbs.includes('delete'),
);

const isTerminating = (namespace: KubeObject): boolean => namespace.metadata.deletionTimestamp !== undefined;

/** Only finalizers of other components can hold an empty namespace. */
const isHeld = ({ metadata, spec }: KubeNamespace): boolean =>
  (metadata.finalizers ?? []).length > 0 || (spec?.finalizers ?? []).some((each) => each !== KUBERNETES_FINALIZER);

export async function deleteNamespace(
  dependencies: ApiDependencies,
  target: ResourceTarget,
  requested: DeleteOptions,
  options: WriteOptions,
): Promise<DeletedObject> {
  const { name } = target;
  if (UNDELETABLE.has(name)) throw status.forbidden(namespaces, name, 'this namespace may not be deleted');
  // Marked first: no object can be created after the check that the namespace is empty.
  const marked = await deleteObject(dependencies, namespaces, target, requested, options, async () => ({
    markOnly: true,
    mark: (namespace) => ({ ...namespace, status: { ...namespace.status, phase: 'Terminating' } }),
  }));
  if (options.dryRun) return marked;
  await deleteContents(dependencies, name, options);
  const storage = dependencies.storageOf(namespaces);
  const left = await storage.get('', name);
  return left === undefined ? { object: marked.object, removed: true } : { object: left, removed: false };
}

async function deleteContents(dependencies: ApiDependencies, namespace: string, options: WriteOptions): Promise<void> {
  let left = REMOVALS_MAX;
  for (const descriptor of contents) {
    const storage = dependencies.storageOf(descriptor);
    let after: string | undefined;
    do {
      const page = await storage.list({ namespace, limit: PAGE_ITEMS, ...defined({ continueAfter: after }) });
      for (const { metadata } of page.items) {
        left -= 1;
        if (left < 0) return;
        const target = { ...targetIn(descriptor, namespace), name: metadata.name ?? '' };
        try {
          await deleteObject(dependencies, descriptor, target, {}, options);
        } catch (error) {
          if (!isStatusError(error) || error.status.code !== 404) throw error;
        }
      }
      after = page.next;
    } while (after !== undefined);
  }
}

const targetIn = ({ group, version, resource }: ResourceDescriptor, namespace: string): ResourceTarget => ({
  group,
  version,
  resource,
  namespace,
  name: '',
  subresource: '',
});

/**
 * The storage of namespaces. A read removes a namespace that is terminating and empty, and does not return it.
 *
 * Cost: one list of one object per kind for each read of a terminating namespace.
 */
export function withTermination(
  storage: ResourceStorage,
  storageOf: (descriptor: ResourceDescriptor) => ResourceStorage,
): ResourceStorage {
  async function isEmpty(namespace: string): Promise<boolean> {
    const pages = await Promise.all(contents.map((descriptor) => storageOf(descriptor).list({ namespace, limit: 1 })));
    return pages.every(({ items }) => items.length === 0);
  }
  async function removedIfEmpty(namespace: KubeObject | undefined): Promise<boolean> {
    if (namespace === undefined || !isTerminating(namespace) || isHeld(namespace)) return false;
    return (await isEmpty(namespace.metadata.name ?? '')) && (await storage.remove(namespace)).kind === 'written';
  }
  return {
    ...storage,
    async get(namespace, name) {
      const found = await storage.get(namespace, name);
      return (await removedIfEmpty(found)) ? undefined : found;
    },
    async list(query) {
      const page = await storage.list(query);
      const isRemoved = await Promise.all(page.items.map(removedIfEmpty));
      return { ...page, items: page.items.filter((_, index) => isRemoved[index] !== true) };
    },
  };
}
