/** Objects of the `objects` table as the verbs see them. */
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject, ObjectRef } from '../../kube/types.ts';
import type { TransactWrite } from '../../ports/item-store.ts';
import type { ChangeLog } from '../../store/change-log.ts';
import type { CommitOutcome, ObjectStore, ObjectWrite } from '../../store/object-store.ts';
import {
  listKeyOf as keyOf,
  type ListPage,
  type ListQuery,
  type ResourceStorage,
  type WriteResult,
} from './resource-storage.ts';

/** Tries at a write that others kept out of its way; each waits a little inside the store already. */
const COMMIT_ATTEMPTS_MAX = 4;

/** apimachinery validation, IsDNS1123Subdomain. Characters. */
const NODE_NAME_LENGTH_MAX = 253;

export interface ObjectStorageOptions {
  readonly objects: ObjectStore;
  readonly changes: ChangeLog;
  /** What must be written together with an object, such as the digest of a Node. */
  readonly together?: (write: ObjectWrite) => readonly TransactWrite[];
  /** Seconds since the epoch at which what is written now may be cleaned up; events have one. */
  readonly expiresAtSeconds?: () => number;
}

export function objectStorage(descriptor: ResourceDescriptor, options: ObjectStorageOptions): ResourceStorage {
  const { resource } = descriptor;
  const { objects, changes } = options;
  const refOf = (object: KubeObject): ObjectRef => ({
    resource,
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name ?? '',
  });
  const expiry = () => (options.expiresAtSeconds === undefined ? {} : { expiresAtSeconds: options.expiresAtSeconds() });

  async function commit(write: ObjectWrite, along: readonly ObjectWrite[] = []): Promise<WriteResult> {
    let outcome: CommitOutcome = { kind: 'contended' };
    for (let attempt = 1; attempt <= COMMIT_ATTEMPTS_MAX && outcome.kind === 'contended'; attempt += 1) {
      const extra = options.together?.(write) ?? [];
      outcome = await objects.commit({ writes: [write, ...along], extra, byClient: true });
    }
    switch (outcome.kind) {
      case 'committed':
        return { kind: 'written', object: outcome.objects[0] as KubeObject };
      case 'conflict':
      case 'extraRefused':
        return { kind: 'conflict' };
      case 'tooLarge':
      case 'overfull':
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
        if (query.nodeName.length > NODE_NAME_LENGTH_MAX) return onePage([], query);
        return onePage(await objects.listByNode(query.nodeName), query);
      }
      const page = await objects.list({
        resource,
        namespace: query.namespace,
        limit: query.limit,
        ...(query.continueAfter === undefined ? {} : { continueAfter: query.continueAfter }),
      });
      return { items: page.objects, ...(page.next === undefined ? {} : { next: page.next }) };
    },
    listVersion: async () => String(await changes.currentVersion(resource)),
    create: (object) => commit({ kind: 'create', ref: refOf(object), object, ...expiry() }),
    update: (next, old, along) =>
      commit({ kind: 'update', ref: refOf(old), object: next, previous: old, ...expiry() }, along),
    remove: (old, along) => commit({ kind: 'delete', ref: refOf(old), previous: old }, along),
  };
}

/** A node's pods come at once; they are put in order and cut like any other list. */
function onePage(pods: readonly KubeObject[], query: ListQuery): ListPage {
  const sorted = pods
    .filter((pod) => query.namespace === '' || pod.metadata.namespace === query.namespace)
    .filter((pod) => query.continueAfter === undefined || keyOf(pod) > query.continueAfter)
    .sort((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
  const items = sorted.slice(0, query.limit);
  const last = items.at(-1);
  return sorted.length > items.length && last !== undefined ? { items, next: keyOf(last) } : { items };
}

/** Leases live in two places by namespace; together they list as one resource. */
export function splitStorage(inNamespace: string, special: ResourceStorage, others: ResourceStorage): ResourceStorage {
  const of = (namespace: string | undefined) => (namespace === inNamespace ? special : others);
  const prefix = `${inNamespace}/`;
  const specialPage = async (query: ListQuery): Promise<ListPage> => {
    const { continueAfter, ...rest } = query;
    const begun = continueAfter?.startsWith(prefix) === true;
    if (continueAfter !== undefined && !begun && continueAfter > prefix) return { items: [] };
    return special.list({ ...rest, namespace: inNamespace, ...(begun ? { continueAfter } : {}) });
  };
  return {
    get: (namespace, name) => of(namespace).get(namespace, name),
    async list(query) {
      if (query.namespace !== '') return of(query.namespace).list(query);
      const pages = await Promise.all([specialPage(query), others.list(query)]);
      const merged = pages.flatMap((page) => page.items).sort((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
      // Beyond the end of an unfinished page the other one may have keys in between that were not read yet.
      const ends = pages.flatMap((page) => (page.next === undefined ? [] : [keyOf(page.items.at(-1) as KubeObject)]));
      const through = ends.sort()[0];
      const items = merged.filter((item) => through === undefined || keyOf(item) <= through).slice(0, query.limit);
      const last = items.at(-1);
      return items.length < merged.length || through !== undefined
        ? { items, next: last === undefined ? (through as string) : keyOf(last) }
        : { items };
    },
    listVersion: others.listVersion,
    create: (object) => of(object.metadata.namespace).create(object),
    update: (next, old, along) => of(old.metadata.namespace).update(next, old, along),
    remove: (old, along) => of(old.metadata.namespace).remove(old, along),
    keepsManagedFields: (namespace) => of(namespace).keepsManagedFields?.(namespace) ?? true,
    readsInsteadOfLog: (namespace) => namespace === '' || of(namespace).readsInsteadOfLog?.(namespace) === true,
  };
}

/** Objects that every cluster has from the start: made when first asked for, with what a creation would give them. */
export function withInitialObjects(
  storage: ResourceStorage,
  names: readonly string[],
  make: (name: string) => KubeObject,
): ResourceStorage {
  async function ensure(name: string): Promise<KubeObject | undefined> {
    const created = await storage.create(make(name));
    return created.kind === 'written' ? created.object : storage.get('', name);
  }
  return {
    ...storage,
    get: async (namespace, name) =>
      (await storage.get(namespace, name)) ?? (names.includes(name) ? ensure(name) : undefined),
    async list(query) {
      if (query.continueAfter === undefined) {
        const present = await Promise.all(names.map((name) => storage.get('', name)));
        await Promise.all(names.filter((_, index) => present[index] === undefined).map(ensure));
      }
      return storage.list(query);
    },
  };
}

/** A kind that is not kept: there, and empty. */
export const emptyStorage = (currentVersion: () => Promise<string>): ResourceStorage => {
  const nothing = async (): Promise<WriteResult> => ({ kind: 'conflict' });
  return {
    get: async () => undefined,
    list: async () => ({ items: [] }),
    listVersion: currentVersion,
    create: nothing,
    update: nothing,
    remove: nothing,
  };
};
