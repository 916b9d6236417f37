/** Stored kinds, those of definitions included. */
import type { DefinitionCatalog } from '../../shared/kinds/customresourcedefinitions/catalog.ts';
import { storedResourceOf } from '../../shared/kinds/resources.ts';

export interface StoredKind {
  readonly group: string;
  /** Name in the store: the plural, or that of the definition. */
  readonly resource: string;
  readonly namespaced: boolean;
}

type Definitions = { readonly definitions: DefinitionCatalog };

/** Undefined: no such kind is stored. A built-in kind costs no read, another one unit. */
export async function storedKindOf(
  { definitions }: Definitions,
  apiVersion: string,
  kind: string,
): Promise<StoredKind | undefined> {
  const builtIn = storedResourceOf(apiVersion, kind);
  const [group = '', version] = apiVersion.split('/');
  if (builtIn !== undefined || version === undefined || !group.includes('.')) return builtIn;
  const definition = (await definitions.all()).find(
    ({ spec }) =>
      spec?.group === group && spec.names.kind === kind && spec.versions.some(({ name }) => name === version),
  );
  if (definition === undefined) return undefined;
  return { group, resource: definition.metadata.name ?? '', namespaced: definition.spec?.scope === 'Namespaced' };
}

/** Kinds of definitions with objects in namespaces. One read unit. */
export async function customNamespacedKinds({
  definitions,
}: Definitions): Promise<readonly (StoredKind & { readonly plural: string })[]> {
  return (await definitions.all())
    .filter(({ spec }) => spec?.scope === 'Namespaced')
    .map(({ metadata, spec }) => ({
      group: spec?.group ?? '',
      resource: metadata.name ?? '',
      plural: spec?.names.plural ?? '',
      namespaced: true,
    }));
}
