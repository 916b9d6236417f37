/**
 * The end of a namespace: nothing new may be made in it, everything in it is deleted, and when the last object has gone
 * it goes too. Kubernetes: "Namespaces", deletion; upstream pkg/controller/namespace/deletion.
 *
 * There is no controller for this. Whoever deletes a namespace empties it within the request; what takes longer (a pod's
 * grace, a finalizer) is looked for again when the namespace is next read, and when the API removes such an object.
 */
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { listOf } from '../../kube/normal-form.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import { isStatusError } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { namespaces, resources } from '../kinds/registry.ts';
import type { ResourceStorage } from '../storage/resource-storage.ts';
import { type DeletedObject, type DeleteOptions, deleteObject } from '../verbs/delete-object.ts';
import type { WriteOptions } from '../verbs/write-options.ts';

/** They may not be deleted; all of them would be back when next asked for. */
const IMMORTAL = new Set(['default', 'kube-node-lease', 'kube-public', 'kube-system']);
/** What a namespace waits for that is ours to remove. */
const OWN_FINALIZER = 'kubernetes';
/** Objects removed in one request; more need another delete, or a look at the namespace. */
const REMOVALS_MAX = 2_000;
const PAGE_ITEMS = 100;

const contents: readonly ResourceDescriptor[] = resources.filter(
  (each) => each.namespaced && each.servedFrom === undefined,
);

const isTerminating = (namespace: KubeObject): boolean => namespace.metadata.deletionTimestamp !== undefined;

/** Only what others put there can hold an empty namespace. */
const isHeld = ({ metadata, spec }: KubeObject): boolean =>
  (metadata.finalizers ?? []).length > 0 || listOf(spec?.['finalizers']).some((each) => each !== OWN_FINALIZER);

export async function deleteNamespace(
  dependencies: ApiDependencies,
  target: ResourceTarget,
  wanted: DeleteOptions,
  options: WriteOptions,
): Promise<DeletedObject> {
  const { name } = target;
  if (IMMORTAL.has(name)) throw status.forbidden(namespaces, name, 'this namespace may not be deleted');
  // Marked first, so that nothing can be put into a namespace that was just found empty.
  const marked = await deleteObject(dependencies, namespaces, target, wanted, options, async () => ({
    holds: true,
    mark: (namespace) => ({ ...namespace, status: { ...namespace.status, phase: 'Terminating' } }),
  }));
  if (options.dryRun) return marked;
  await empty(dependencies, name, options);
  const storage = dependencies.storageOf(namespaces);
  const left = await storage.get('', name);
  return left === undefined ? { object: marked.object, removed: true } : { object: left, removed: false };
}

async function empty(dependencies: ApiDependencies, namespace: string, options: WriteOptions): Promise<void> {
  let left = REMOVALS_MAX;
  for (const descriptor of contents) {
    const storage = dependencies.storageOf(descriptor);
    let after: string | undefined;
    do {
      const page = await storage.list({
        namespace,
        limit: PAGE_ITEMS,
        ...(after === undefined ? {} : { continueAfter: after }),
      });
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
 * Namespaces that go when they are found terminating and empty. Reading one costs, only while it is terminating, a
 * look at each kind.
 */
export function withTermination(
  storage: ResourceStorage,
  storageOf: (descriptor: ResourceDescriptor) => ResourceStorage,
): ResourceStorage {
  async function isEmpty(namespace: string): Promise<boolean> {
    for (const descriptor of contents) {
      const { items } = await storageOf(descriptor).list({ namespace, limit: 1 });
      if (items.length > 0) return false;
    }
    return true;
  }
  async function ended(namespace: KubeObject | undefined): Promise<boolean> {
    if (namespace === undefined || !isTerminating(namespace) || isHeld(namespace)) return false;
    return (await isEmpty(namespace.metadata.name ?? '')) && (await storage.remove(namespace)).kind === 'written';
  }
  return {
    ...storage,
    async get(namespace, name) {
      const found = await storage.get(namespace, name);
      return (await ended(found)) ? undefined : found;
    },
    async list(query) {
      const page = await storage.list(query);
      const gone = await Promise.all(page.items.map(ended));
      return { ...page, items: page.items.filter((_, index) => gone[index] !== true) };
    },
  };
}
