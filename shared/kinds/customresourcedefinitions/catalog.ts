/**
 * The definitions of the cluster in memory, each without its schemas.
 *
 * Freshness: `all` reads the head of the definitions' change log, strongly consistent. Every commit of a definition
 * writes this head. Nothing was committed since if it has the version that was read before the list. So the result is
 * not older than the call. An object is created under the condition that its definition still has the version that the
 * catalog knows (custom-resources/storage.ts).
 *
 * Cost: one read unit per call; after a change one query of the definitions, without their schemas.
 */

import { defined } from '../../defined.ts';
import type { ChangeLog } from '../../store/change-log.ts';
import type { ObjectStore } from '../../store/object-store.ts';
import { asDefinition, type StoredDefinition } from './definition.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from './resource.ts';

const { resource } = CUSTOM_RESOURCE_DEFINITIONS;
const PAGE_ITEMS = 500;
/** 10,000 definitions. */
const PAGES_MAX = 20;

export interface DefinitionCatalog {
  /** In order of their names, as of this call. */
  all(): Promise<readonly StoredDefinition[]>;
}

export interface CatalogOptions {
  readonly changes: Pick<ChangeLog, 'newestCommits'>;
  readonly objects: Pick<ObjectStore, 'list'>;
}

interface Known {
  readonly version: number;
  readonly definitions: readonly StoredDefinition[];
}

export function definitionCatalog({ changes, objects }: CatalogOptions): DefinitionCatalog {
  let known: Known = { version: 0, definitions: [] };
  /** Reads of the list, by the version that they have at least. */
  const reading = new Map<number, Promise<Known>>();

  async function read(version: number): Promise<Known> {
    const definitions: StoredDefinition[] = [];
    let continueAfter: string | undefined;
    for (let page = 1; page <= PAGES_MAX; page += 1) {
      const list = await objects.list({ resource, limit: PAGE_ITEMS, ...defined({ continueAfter }) });
      definitions.push(...list.objects.map(asDefinition));
      continueAfter = list.next;
      if (continueAfter === undefined) break;
    }
    const next = { version, definitions };
    if (version > known.version) known = next;
    return next;
  }

  return {
    async all() {
      const [version = 0] = await changes.newestCommits([resource], { consistent: true });
      if (version === known.version) return known.definitions;
      const current = reading.get(version) ?? read(version).finally(() => reading.delete(version));
      reading.set(version, current);
      return (await current).definitions;
    },
  };
}
