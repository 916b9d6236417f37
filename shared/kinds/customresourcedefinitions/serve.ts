import { nameColumn } from '../../kubernetes/columns.ts';
import { freshMetadata, inheritMetadata, nextGeneration, typed, withoutNulls } from '../../kubernetes/normal-form.ts';
import { createdAtColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { type Prepare, STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubeObject } from '../types.ts';
import { asDefinition, type KubeCustomResourceDefinition } from './definition.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from './resource.ts';

/** As upstream. The function URL and API Gateway permit 6 MB. Bytes. */
const DEFINITION_BYTES_MAX = 3 * 1_024 * 1_024;

/** The names and the conversion that a definition leaves out. Source: pkg/apis/apiextensions/v1/defaults.go. */
function withDefaults(object: KubeObject): KubeCustomResourceDefinition {
  const definition: KubeCustomResourceDefinition = asDefinition(object);
  const { spec } = definition;
  if (spec === undefined) return definition;
  const { names } = spec;
  const { kind } = names;
  return {
    ...definition,
    spec: {
      ...spec,
      conversion: spec.conversion ?? { strategy: 'None' },
      names: {
        ...names,
        listKind: (names.listKind ?? '') === '' && kind !== '' ? `${kind}List` : (names.listKind ?? ''),
        singular: (names.singular ?? '') === '' ? kind.toLowerCase() : (names.singular ?? ''),
      },
    },
  };
}

/** The version in which objects are stored from now on is one of those that may be stored. */
function withStorageVersion({ ...definition }: KubeCustomResourceDefinition): KubeCustomResourceDefinition {
  const storage = definition.spec?.versions.find((version) => version.storage)?.name;
  const stored = definition.status?.storedVersions ?? [];
  if (storage === undefined || stored.includes(storage)) return definition;
  return { ...definition, status: { ...definition.status, storedVersions: [...stored, storage] } };
}

const { group, version, kind } = CUSTOM_RESOURCE_DEFINITIONS;

const prepare: Prepare = {
  hasGeneration: true,
  prepareForCreate(object) {
    const { status: _status, ...rest } = withDefaults(object);
    const metadata = { ...freshMetadata(object.metadata), generation: 1 };
    return typed(group, version, kind, withStorageVersion({ ...rest, metadata } as KubeCustomResourceDefinition));
  },
  prepareForUpdate(next, old, { subresource }) {
    const metadata = inheritMetadata(next.metadata, old.metadata);
    const isStatus = subresource === 'status';
    const status = isStatus ? withoutNulls(next.status) : old.status;
    const { status: _status, ...rest } = isStatus ? { ...next, spec: old.spec } : withDefaults(next);
    const whole = { ...rest, metadata, ...(status && { status }) } as KubeCustomResourceDefinition;
    const prepared = typed(group, version, kind, isStatus ? whole : withStorageVersion(whole));
    return { ...prepared, metadata: { ...metadata, generation: nextGeneration(prepared, old) } };
  },
};

export const customresourcedefinitions: ResourceDescriptor = {
  ...servedKind(CUSTOM_RESOURCE_DEFINITIONS, {
    shortNames: ['crd', 'crds'],
    categories: ['api-extensions'],
    subresources: [STATUS_PART],
    columns: [nameColumn, createdAtColumn],
    row: (object) => [nameOf(object), object.metadata.creationTimestamp ?? null],
    unconditionalUpdate: false,
    prepare,
    // functions/api/admission/admit-definition.ts validates it, with the engine of patterns, which few requests load.
    validate: () => [],
  }),
  bodyBytesMax: DEFINITION_BYTES_MAX,
};
