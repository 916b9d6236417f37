/** The storage of resources in the `objects` table. */
import type { Clock } from '../clock.ts';
import { defined } from '../defined.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { expirySeconds } from '../kinds/stored-resource.ts';
import type { KubeObject, ObjectRef } from '../kinds/types.ts';
import { NAME_LENGTH_MAX } from '../kubernetes/kubernetes.ts';
import * as status from '../kubernetes/status.ts';
import type { ChangeLog } from '../store/change-log.ts';
import type { TransactWrite } from '../store/item-store.ts';
import type { CommitOutcome, ObjectStore, ObjectWrite, SelectableFields } from '../store/object-store.ts';
import {
  listKeyOf as keyOf,
  type ListPage,
  type ListQuery,
  type ResourceStorage,
  type WriteResult,
} from './resource-storage.ts';

/** Attempts at a contended write. The store waits inside each attempt. */
const COMMIT_ATTEMPTS_MAX = 4;

export interface ObjectStorageOptions {
  readonly objects: ObjectStore;
  readonly changes: ChangeLog;
  /** Writes in the same transaction as an object, such as the digest of a Node. `along`: the other objects in it. */
  readonly together?: (write: ObjectWrite, along: readonly ObjectWrite[]) => readonly TransactWrite[];
  readonly clock: Clock;
  /** Fields that a field selector may name. Absent: those of the store for this resource. */
  readonly selectableFields?: SelectableFields;
  /** The outcome when the condition of such a write does not hold. Absent: another writer was first. */
  readonly refused?: () => Promise<WriteResult>;
}

export function objectStorage(descriptor: ResourceDescriptor, options: ObjectStorageOptions): ResourceStorage {
  const { resource } = descriptor;
  const { objects, changes } = options;
  const refOf = (object: KubeObject): ObjectRef => ({
    resource,
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name ?? '',
  });
  const selectable = defined({ selectableFields: options.selectableFields });
  const expiry = () => defined({ expiresAtSeconds: expirySeconds(descriptor, options.clock.nowMs()) });

  async function commit(write: ObjectWrite, along: readonly ObjectWrite[] = []): Promise<WriteResult> {
    let outcome: CommitOutcome = { kind: 'contended' };
    for (let attempt = 1; attempt <= COMMIT_ATTEMPTS_MAX && outcome.kind === 'contended'; attempt += 1) {
      const extra = options.together?.(write, along) ?? [];
      outcome = await objects.commit({ writes: [write, ...along], extra, byClient: true });
    }
    switch (outcome.kind) {
      case 'committed':
        return { kind: 'written', object: outcome.objects[0]! };
      case 'conflict':
        return outcome.index === 0 ? { kind: 'conflict' } : { kind: 'conflict', ofAlong: true };
      case 'extraRefused':
        return (await options.refused?.()) ?? { kind: 'conflict' };
      case 'overfull':
        throw status.requestEntityTooLarge('it and what is written with it exceed one transaction');
      case 'tooLarge':
        throw status.requestEntityTooLarge('an object may take 100,000 characters');
      case 'contended':
        throw status.serverTimeout(descriptor, 'write', 1);
    }
  }

  return {
    get: (namespace, name) => objects.get({ resource, namespace, name }),
    async list(query: ListQuery): Promise<ListPage> {
      if (query.nodeName !== undefined && query.nodeName !== '' && resource === 'pods') {
        // No Node has a longer name, and it may be longer than a key of the store.
        if (query.nodeName.length > NAME_LENGTH_MAX) return onePage([], query);
        return onePage(await objects.listByNode(query.nodeName), query);
      }
      const page = await objects.list({
        resource,
        namespace: query.namespace,
        limit: query.limit,
        ...defined({ continueAfter: query.continueAfter }),
      });
      const { objects: items, ...rest } = page;
      return { items, ...rest };
    },
    listVersion: async () => String(await changes.currentVersion(resource)),
    create: (object, along) => commit({ kind: 'create', ref: refOf(object), object, ...expiry() }, along),
    update: (next, old, along) =>
      commit({ kind: 'update', ref: refOf(old), object: next, previous: old, ...selectable, ...expiry() }, along),
    remove: (old, along) => commit({ kind: 'delete', ref: refOf(old), previous: old }, along),
  };
}

/** One page of the pods of a node. All of them were read at once; here they are sorted and cut to the page. */
function onePage(pods: readonly KubeObject[], query: ListQuery): ListPage {
  const sorted = pods
    .filter((pod) => query.namespace === '' || pod.metadata.namespace === query.namespace)
    .filter((pod) => query.continueAfter === undefined || keyOf(pod) > query.continueAfter)
    .sort((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
  const items = sorted.slice(0, query.limit);
  const last = items.at(-1);
  return sorted.length > items.length && last !== undefined ? { items, next: keyOf(last) } : { items };
}

/**
 * One resource in two storages, such as leases: `special` contains the namespace `inNamespace`, `others` all other
 * namespaces. A list of all namespaces merges one page of each by key.
 */
export function splitStorage(inNamespace: string, special: ResourceStorage, others: ResourceStorage): ResourceStorage {
  const storageOf = (namespace: string | undefined) => (namespace === inNamespace ? special : others);
  const prefix = `${inNamespace}/`;
  /** The page of `special` after the continue key. The key may be before, in or after its namespace. */
  const specialPage = async (query: ListQuery): Promise<ListPage> => {
    const { continueAfter, ...rest } = query;
    const hasStarted = continueAfter?.startsWith(prefix) === true;
    if (continueAfter !== undefined && !hasStarted && continueAfter > prefix) return { items: [] };
    const after = hasStarted ? continueAfter : undefined;
    const page = await special.list({ ...rest, namespace: inNamespace, ...defined({ continueAfter: after }) });
    return page.next === undefined || page.next.startsWith(prefix) ? page : { ...page, next: `${prefix}${page.next}` };
  };
  return {
    get: (namespace, name) => storageOf(namespace).get(namespace, name),
    async list(query) {
      if (query.namespace !== '') return storageOf(query.namespace).list(query);
      const pages = await Promise.all([specialPage(query), others.list(query)]);
      const merged = pages.flatMap((page) => page.items).sort((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
      // A page with `next` has unread keys after it, and may be empty: rows without a Lease count to its length.
      // The merged page must not continue past that end.
      const through = pages.flatMap(({ next }) => next ?? []).sort()[0];
      const read = merged.filter((item) => through === undefined || keyOf(item) <= through);
      const items = read.slice(0, query.limit);
      const next = items.length < read.length ? keyOf(items.at(-1)!) : through;
      return { items, ...defined({ next }) };
    },
    listVersion: others.listVersion,
    create: (object, along) => storageOf(object.metadata.namespace).create(object, along),
    update: (next, old, along) => storageOf(old.metadata.namespace).update(next, old, along),
    remove: (old, along) => storageOf(old.metadata.namespace).remove(old, along),
    keepsManagedFields: (namespace) => storageOf(namespace).keepsManagedFields?.(namespace) ?? true,
    readsInsteadOfLog: (namespace) => namespace === '' || storageOf(namespace).readsInsteadOfLog?.(namespace) === true,
  };
}

/**
 * A storage in which the objects with these names always exist. A read creates a missing one with `make`, and so does
 * a watch that begins with the state.
 */
export function withInitialObjects(
  storage: ResourceStorage,
  names: readonly string[],
  make: (name: string) => KubeObject,
): ResourceStorage {
  async function ensure(name: string): Promise<KubeObject | undefined> {
    const created = await storage.create(make(name));
    return created.kind === 'written' ? created.object : storage.get('', name);
  }
  async function ensureAll(): Promise<void> {
    const present = await Promise.all(names.map((name) => storage.get('', name)));
    await Promise.all(names.filter((_, index) => present[index] === undefined).map(ensure));
  }
  return {
    ...storage,
    get: async (namespace, name) =>
      (await storage.get(namespace, name)) ?? (names.includes(name) ? ensure(name) : undefined),
    async list(query) {
      if (query.continueAfter === undefined) await ensureAll();
      return storage.list(query);
    },
    makeInitial: ensureAll,
  };
}

/** A resource without objects. It is served because clients list it. Every write is a conflict. */
export const emptyStorage = (currentVersion: () => Promise<string>): ResourceStorage => {
  const refused = async (): Promise<WriteResult> => ({ kind: 'conflict' });
  return {
    get: async () => undefined,
    list: async () => ({ items: [] }),
    listVersion: currentVersion,
    create: refused,
    update: refused,
    remove: refused,
  };
};
