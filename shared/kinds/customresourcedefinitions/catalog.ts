/**
 * The definitions of the cluster in memory, each without its schemas.
 *
 * A result has every definition that was committed before the call (object-copy.ts). An object is created under the
 * condition that its definition still has the version that the catalog knows (custom-resources/storage.ts).
 *
 * Cost: one read unit per call, and what changed.
 */

import type { Clock } from '../../clock.ts';
import { defined } from '../../defined.ts';
import type { ItemStore } from '../../store/item-store.ts';
import { objectCopy } from '../../store/object-copy.ts';
import type { ObjectStore } from '../../store/object-store.ts';
import type { KubeObject } from '../types.ts';
import { asDefinition, type StoredDefinition } from './definition.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from './resource.ts';

const { resource } = CUSTOM_RESOURCE_DEFINITIONS;
const PAGE_ITEMS = 500;
/** 10,000 definitions. */
const PAGES_MAX = 20;

export interface DefinitionCatalog {
  /** All definitions, as of this call. */
  all(): Promise<readonly StoredDefinition[]>;
}

export interface CatalogOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly objects: Pick<ObjectStore, 'list'>;
}

export function definitionCatalog({ items, clock, objects }: CatalogOptions): DefinitionCatalog {
  async function listAll(): Promise<readonly KubeObject[]> {
    const all: KubeObject[] = [];
    let continueAfter: string | undefined;
    for (let page = 1; page <= PAGES_MAX; page += 1) {
      const list = await objects.list({ resource, limit: PAGE_ITEMS, ...defined({ continueAfter }) });
      all.push(...list.objects);
      continueAfter = list.next;
      if (continueAfter === undefined) break;
    }
    return all;
  }
  const copy = objectCopy({ items, clock, resource, listAll, keep: asDefinition });
  return { all: copy.read };
}
