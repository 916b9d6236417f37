/** What discovery lists of the kinds of definitions. It needs no schema. Pure. */

import type { DefinitionVersion, KubeCustomResourceDefinition } from '../customresourcedefinitions/definition.ts';
import type { Subresource } from '../descriptor.ts';
import { SCALE_PART, STATUS_PART } from '../served-kind.ts';
import { storedResource } from '../stored-resource.ts';
import type { KubeObject } from '../types.ts';
import { parseJsonPath, valuesAt } from './json-path.ts';

/** The names and subresources of a version. */
export function customResourceNames(
  definition: KubeCustomResourceDefinition,
  { name, subresources: parts = {}, selectableFields = [] }: DefinitionVersion,
) {
  const { spec, status } = definition;
  const {
    plural = '',
    singular = '',
    kind = '',
    listKind = '',
    shortNames = [],
    categories = [],
  } = {
    ...spec?.names,
    ...status?.acceptedNames,
  };
  const subresources: readonly Subresource[] = [
    ...(parts.status === undefined ? [] : [STATUS_PART]),
    ...(parts.scale === undefined ? [] : [SCALE_PART]),
  ];
  const stored = storedResource({
    group: spec?.group ?? '',
    version: name,
    resource: plural,
    kind,
    scope: spec?.scope === 'Namespaced' ? 'namespaced' : 'cluster',
    selectableFields: Object.fromEntries(
      selectableFields.map(({ jsonPath = '' }) => [jsonPath.slice(1), readingText(jsonPath)]),
    ),
  });
  const storageVersion = spec?.versions.find((each) => each.storage)?.name ?? name;
  return { ...stored, singular, listKind, shortNames, categories, subresources, storageVersion };
}

/** A field that a selector names: '' for one that is absent. */
function readingText(jsonPath: string): (object: KubeObject) => string {
  const path = parseJsonPath(jsonPath) ?? [];
  return (object) => {
    const [value] = valuesAt(path, object);
    return value === undefined || value === null ? '' : String(value);
  };
}
