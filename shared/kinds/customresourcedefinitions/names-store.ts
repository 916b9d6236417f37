/**
 * Decides the names of a definition against the others of its group. A counter of the group is raised with each
 * decision, under the condition that no other writer raised it since the others were read. So of two definitions that
 * want one name only the first gets it.
 */
import { formatTime } from '../../kubernetes/time.ts';
import type { ItemStore, TransactWrite } from '../../store/item-store.ts';
import { ALONE, changeOf, definitionNamesPartition, holds, number } from '../../store/layout.ts';
import type { DefinitionCatalog } from './catalog.ts';
import type { KubeCustomResourceDefinition } from './definition.ts';
import { withAcceptedNames } from './names.ts';

const NAMES = { count: number('v') };

export interface DecidedNames<T> {
  readonly definition: T;
  /** For the transaction that stores the definition. Empty: its names are those that it had. */
  readonly writes: readonly TransactWrite[];
}

export async function decidedNames<T extends KubeCustomResourceDefinition>(
  { items, definitions }: { readonly items: ItemStore; readonly definitions: DefinitionCatalog },
  next: T,
  nowMs: number,
): Promise<DecidedNames<T>> {
  const group = next.spec?.group ?? '';
  const key = { table: 'objects', pk: definitionNamesPartition(group), sk: ALONE } as const;
  const row = await items.get(key, { consistent: true });
  const count = row === undefined ? undefined : NAMES.count.of(row);
  const others = (await definitions.all()).filter(
    ({ spec, metadata }) => spec?.group === group && metadata.name !== next.metadata.name,
  );
  const definition = withAcceptedNames(next, others, formatTime(nowMs)) as T;
  if (definition === next) return { definition, writes: [] };
  const raised = changeOf(NAMES, { count: (count ?? 0) + 1 }).set;
  return { definition, writes: [{ kind: 'update', key, set: raised, when: holds(NAMES.count, count) }] };
}
