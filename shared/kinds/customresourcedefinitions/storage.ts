/**
 * The storage of definitions. Schemas, managedFields and annotations are sections beside the item of a definition
 * (section-store.ts), so its item and its entry in the change log stay small.
 */

import type { KindStorage, StorageContext } from '../../api/kind-storage.ts';
import type { ListPage, ResourceStorage } from '../../api/resource-storage.ts';
import { listKeyOf } from '../../api/resource-storage.ts';
import { defined } from '../../defined.ts';
import * as status from '../../kubernetes/status.ts';
import { formatTime } from '../../kubernetes/time.ts';
import type { TransactWrite } from '../../store/item-store.ts';
import { packSection, type Section, sectionWrites } from '../../store/section-store.ts';
import type { KubeObject } from '../types.ts';
import { withApproval } from './approval.ts';
import {
  asDefinition,
  joinDefinition,
  type KubeCustomResourceDefinition,
  type StoredDefinition,
  splitDefinition,
} from './definition.ts';
import { decidedNames } from './names-store.ts';
import { customresourcedefinitions } from './serve.ts';

/** JSON of a definition without its managedFields, UTF-16 units: upstream stores 1.5 MiB. */
const DEFINITION_TEXT_MAX = 1_572_864;
/** JSON of the sections in one page of a list. The rest is left to the next page. */
const PAGE_CHARACTERS_MAX = 8_000_000;

export const definitionStorages: readonly KindStorage[] = [
  [
    customresourcedefinitions,
    (descriptor, context) =>
      definitionStorage(context, (together) => context.plain(descriptor, { together, refused: contested })),
  ],
];

/** Another definition of the group was written: the names are decided again. */
const contested = async () => ({ kind: 'conflict', ofAlong: true }) as const;

type Together = NonNullable<NonNullable<Parameters<StorageContext['plain']>[1]>['together']>;

function definitionStorage(
  { items, definitions, clock, sections }: StorageContext,
  plainWith: (together: Together) => ResourceStorage,
): ResourceStorage {
  /** What is written along with an item, by the object of the write. */
  const along = new WeakMap<KubeObject, readonly TransactWrite[]>();
  const plain = plainWith((write) => along.get(write.kind === 'delete' ? write.previous : write.object) ?? []);
  const whole = async (stored: StoredDefinition): Promise<KubeObject> =>
    joinDefinition(stored, await sections.read(stored));

  /** The item of a definition with its sections, and what is written along with it. */
  async function prepared(
    next: KubeCustomResourceDefinition,
    old: KubeCustomResourceDefinition | undefined,
  ): Promise<KubeObject> {
    const { core, texts } = splitDefinition(next);
    refuseTooLong(next, texts);
    const packed = [...texts].map(([key, text]) => packSection(key, text));
    const item: StoredDefinition = { ...core, sections: packed.map(({ bytes: _bytes, ...section }) => section) };
    along.set(item, sectionWrites(nameOf(next), { next: packed, previous: sectionsOf(old), nowMs: clock.nowMs() }));
    return item;
  }

  async function written(
    next: KubeCustomResourceDefinition,
    old: KubeCustomResourceDefinition | undefined,
    write: (item: KubeObject) => ReturnType<ResourceStorage['create']>,
  ): ReturnType<ResourceStorage['create']> {
    const nowMs = clock.nowMs();
    const approved = withApproval(next, formatTime(nowMs));
    const { definition, writes } = await decidedNames({ items, definitions }, approved, nowMs);
    const item = await prepared(definition, old);
    along.set(item, [...(along.get(item) ?? []), ...writes]);
    const result = await write(item);
    if (result.kind === 'conflict') return result;
    const { resourceVersion } = result.object.metadata;
    return {
      kind: 'written',
      object: { ...definition, metadata: { ...definition.metadata, resourceVersion: resourceVersion! } },
    };
  }

  return {
    ...plain,
    async get(namespace, name) {
      const stored = await plain.get(namespace, name);
      return stored === undefined ? undefined : whole(asDefinition(stored));
    },
    async list(query): Promise<ListPage> {
      const page = await plain.list(query);
      const found: KubeObject[] = [];
      let characters = 0;
      for (const [index, stored] of page.items.entries()) {
        const object = await whole(asDefinition(stored));
        found.push(object);
        characters += JSON.stringify(object).length;
        const hasMore = index < page.items.length - 1;
        if (hasMore && characters >= PAGE_CHARACTERS_MAX) return { items: found, next: listKeyOf(stored) };
      }
      return { items: found, ...defined({ next: page.next }) };
    },
    served: (stored) => whole(asDefinition(stored)),
    create: (object, more) => written(asDefinition(object), undefined, (item) => plain.create(item, more)),
    update: (next, old, more) =>
      written(asDefinition(next), asDefinition(old), (item) => plain.update(item, old, more)),
    async remove(removed, more) {
      const old = asDefinition(removed);
      const { core } = splitDefinition(old);
      const item: StoredDefinition = { ...core, sections: sectionsOf(old) };
      along.set(item, sectionWrites(nameOf(old), { next: [], previous: sectionsOf(old), nowMs: clock.nowMs() }));
      return plain.remove(item, more);
    },
  };
}

const nameOf = ({ metadata }: KubeObject): string => metadata.name ?? '';

/** Those that the stored definition has: the texts of an object that was read are the stored ones. */
const sectionsOf = (definition: KubeCustomResourceDefinition | undefined): readonly Section[] =>
  definition === undefined
    ? []
    : [...splitDefinition(definition).texts].map(([key, text]) => {
        const { bytes: _bytes, ...section } = packSection(key, text);
        return section;
      });

function refuseTooLong(definition: KubeObject, texts: ReadonlyMap<string, string>): void {
  const length = JSON.stringify(definition).length - (texts.get('managedFields')?.length ?? 0);
  if (length <= DEFINITION_TEXT_MAX) return;
  throw status.requestEntityTooLarge(`a CustomResourceDefinition may take ${DEFINITION_TEXT_MAX} characters`);
}
