/** The large texts of definitions, in memory. A text never changes: it is named by its hash. */

import type { ItemStore } from '../../store/item-store.ts';
import { readSections } from '../../store/section-store.ts';
import type { StoredDefinition } from './definition.ts';

/** JSON of the sections that are kept, UTF-16 units. */
const KEPT_CHARACTERS_MAX = 16_000_000;

export interface DefinitionSections {
  /** @param keys of the wanted sections. Absent: all */
  read(stored: StoredDefinition, keys?: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

export function definitionSections(items: Pick<ItemStore, 'getMany'>): DefinitionSections {
  const kept = new Map<string, string>();
  let characters = 0;
  const keep = (hash: string, text: string): void => {
    if (kept.has(hash)) return;
    if (characters + text.length > KEPT_CHARACTERS_MAX) {
      kept.clear();
      characters = 0;
    }
    kept.set(hash, text);
    characters += text.length;
  };
  return {
    async read(stored, keys) {
      const wanted = (stored.sections ?? []).filter(({ key }) => keys === undefined || keys.includes(key));
      const missing = wanted.filter(({ hash }) => !kept.has(hash));
      const read =
        missing.length === 0
          ? new Map<string, string>()
          : await readSections(items, stored.metadata.name ?? '', missing);
      const texts = new Map(wanted.map(({ key, hash }) => [key, kept.get(hash) ?? read.get(key)!]));
      for (const { key, hash } of missing) keep(hash, read.get(key)!);
      return texts;
    },
  };
}
