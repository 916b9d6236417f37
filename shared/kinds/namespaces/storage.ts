/** Namespaces and the objects that each of them has from its creation (shared/kinds/namespaces/contents.ts). */

import type { KindStorage } from '../../api/kind-storage.ts';
import { withInitialObjects } from '../../api/object-storage.ts';
import type { ResourceStorage } from '../../api/resource-storage.ts';
import { formatTime } from '../../kubernetes/time.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { configmaps } from '../configmaps/serve.ts';
import { serviceaccounts } from '../serviceaccounts/serve.ts';
import { isNamespaceContent } from '../stored-resource.ts';
import type { KubeObject } from '../types.ts';
import { contentOf, contentRefs, type NewObjectContext } from './contents.ts';
import { namespaces, SYSTEM_NAMESPACES } from './serve.ts';

type Context = () => NewObjectContext;

/**
 * A namespace is created together with its contents, in one transaction.
 *
 * Cost of a creation: two more objects.
 */
export function withContents(storage: ResourceStorage, context: Context): ResourceStorage {
  return {
    ...storage,
    async create(namespace, along = []) {
      const writes = contentRefs(namespace.metadata.name ?? '').map(
        (ref): ObjectWrite => ({ kind: 'create', ref, object: contentOf(ref, context()) }),
      );
      const created = await storage.create(namespace, [...along, ...writes]);
      // An object of a former namespace is left. The controller of namespaces creates what is missing.
      return created.kind === 'conflict' && created.ofAlong === true ? storage.create(namespace, along) : created;
    },
  };
}

/**
 * Objects that every namespace has. A read creates a missing one: in a namespace from before this release, and
 * after a deletion, before the controller does.
 */
export function withInitialContent(
  resource: string,
  storage: ResourceStorage,
  namespaces: () => ResourceStorage,
  context: Context,
): ResourceStorage {
  async function created(namespace: string, name: string): Promise<KubeObject | undefined> {
    const within = await namespaces().get('', namespace);
    if (within === undefined || within.metadata.deletionTimestamp !== undefined) return undefined;
    const result = await storage.create(contentOf({ resource, namespace, name }, context()));
    return result.kind === 'written' ? result.object : storage.get(namespace, name);
  }
  return {
    ...storage,
    async get(namespace, name) {
      const found = await storage.get(namespace, name);
      return found === undefined && isNamespaceContent(resource, name) ? created(namespace, name) : found;
    },
  };
}

function newNamespace(name: string, { nowMs, uuid }: NewObjectContext): KubeObject {
  const metadata = { name, uid: uuid(), creationTimestamp: formatTime(nowMs) };
  return namespaces.prepareForCreate({ metadata }, { nowMs });
}

const ofNamespaces: KindStorage[1] = (descriptor, { plain, storageOf, newObject, makesInitialObjects }) =>
  makesInitialObjects
    ? withInitialContent(descriptor.resource, plain(descriptor), () => storageOf(namespaces), newObject)
    : plain(descriptor);

export const namespaceStorages: readonly KindStorage[] = [
  [
    namespaces,
    (descriptor, { plain, newObject, makesInitialObjects }) => {
      const storage = withContents(plain(descriptor), newObject);
      const make = (name: string) => newNamespace(name, newObject());
      return makesInitialObjects ? withInitialObjects(storage, SYSTEM_NAMESPACES, make) : storage;
    },
  ],
  [serviceaccounts, ofNamespaces],
  [configmaps, ofNamespaces],
];
