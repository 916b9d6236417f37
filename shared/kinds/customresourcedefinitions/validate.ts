/**
 * Validates a CustomResourceDefinition, with the messages of upstream. Pure.
 * Source: k8s.io/apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go.
 */

import {
  duplicate,
  forbiddenField,
  immutable,
  invalidValue,
  required,
  requiredOneOf,
  tooMany,
} from '../../kubernetes/causes.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import type { Cause } from '../../kubernetes/status.ts';
import {
  dns1035LabelErrors,
  subdomainErrors,
  validateMetadata,
  validateMetadataUpdate,
} from '../../kubernetes/validate-metadata.ts';
import { parseJsonPath } from '../custom-resources/json-path.ts';
import type { JsonSchema } from '../custom-resources/schema-node.ts';
import { APPROVED, approvalOf } from './approval.ts';
import { type DefinitionVersion, isEstablished, type KubeCustomResourceDefinition } from './definition.ts';
import { type SchemaCheck, validateRootSchema } from './validate-schema.ts';

const SELECTABLE_FIELDS_MAX = 8;
const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = ['binary', 'byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];
const WEBHOOK =
  'no program outside is called for a conversion: convert objects with a client of your own, and serve versions with strategy None';

type Spec = NonNullable<KubeCustomResourceDefinition['spec']>;

export function validateDefinition(
  definition: KubeCustomResourceDefinition,
  old: KubeCustomResourceDefinition | undefined,
  { subresource, ...check }: SchemaCheck & { readonly subresource: string },
): Cause[] {
  const { spec, metadata } = definition;
  if (spec === undefined) return [required('spec')];
  const wanted = `${spec.names.plural}.${spec.group}`;
  const name = (text: string): string[] => [
    ...subdomainErrors(text),
    ...(text === wanted ? [] : ['must be spec.names.plural+"."+spec.group']),
  ];
  const ofMetadata =
    old === undefined
      ? validateMetadata(metadata, { namespaced: false, name })
      : validateMetadataUpdate(metadata, old.metadata);
  const ofStatus = [...validateNames(definition.status?.acceptedNames ?? {}, 'status.acceptedNames')];
  if (subresource === 'status') return [...ofMetadata, ...ofStatus];
  return [
    ...ofMetadata,
    ...validateSpec(spec, old?.spec, check),
    ...(old?.spec === undefined ? [] : validateChange(spec, old.spec, isEstablished(old))),
    ...ofStatus,
    ...validateStoredVersions(definition.status?.storedVersions ?? [], spec),
    ...validateApproval(definition),
  ];
}

function validateChange(spec: Spec, old: Spec, isServed: boolean): Cause[] {
  return [
    ...(isServed ? immutable('spec.scope', spec.scope, old.scope) : []),
    ...(isServed ? immutable('spec.names.kind', spec.names.kind, old.names.kind) : []),
    ...immutable('spec.group', spec.group, old.group),
    ...immutable('spec.names.plural', spec.names.plural, old.names.plural),
  ];
}

function validateSpec(spec: Spec, old: Spec | undefined, check: SchemaCheck): Cause[] {
  const causes: Cause[] = [];
  const { group, names, versions } = spec;
  if (group === '') causes.push(required('spec.group'));
  else {
    const errors = subdomainErrors(group);
    if (errors.length > 0) causes.push(invalidValue('spec.group', group, errors.join(',')));
    else if (!group.includes('.'))
      causes.push(invalidValue('spec.group', group, 'should be a domain with at least one dot'));
  }
  causes.push(...requiredOneOf('spec.scope', spec.scope, ['Cluster', 'Namespaced']));
  const isShared = sharedMembers(versions);
  const storedSchemas = new Map(old?.versions.map(({ name, schema }) => [name, schema?.openAPIV3Schema]));
  for (const [index, version] of versions.entries()) {
    const stored = storedSchemas.get(version.name);
    causes.push(...validateVersion(version, placesOf(isShared, index), { ...check, stored }));
  }
  if (spec.preserveUnknownFields === true) {
    const rule =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    causes.push(invalidValue('spec.preserveUnknownFields', true, rule));
  }
  const versionNames = versions.map(({ name }) => name);
  if (new Set(versionNames).size < versionNames.length) {
    causes.push(invalidValue('spec.versions', versionNames, 'must contain unique version names'));
  }
  if (versions.filter(({ storage }) => storage).length !== 1) {
    causes.push(invalidValue('spec.versions', versionNames, 'must have exactly one version marked as storage version'));
  }
  for (const name of ['plural', 'singular', 'kind', 'listKind'] as const) {
    if ((names[name] ?? '') === '') causes.push(required(`spec.names.${name}`));
  }
  causes.push(...validateNames(names, 'spec.names'), ...validateConversion(spec.conversion));
  return causes;
}

function validateConversion(conversion: Spec['conversion']): Cause[] {
  if (conversion === undefined) return [];
  const { strategy, webhook } = conversion;
  if (strategy === 'Webhook') return [forbiddenField('spec.conversion.strategy', WEBHOOK)];
  return [
    ...requiredOneOf('spec.conversion.strategy', strategy, ['None', 'Webhook']),
    ...(webhook === undefined
      ? []
      : [
          forbiddenField(
            'spec.conversion.webhookClientConfig',
            'should not be set when strategy is not set to Webhook',
          ),
        ]),
  ];
}

function validateNames(names: Partial<Spec['names']>, path: string): Cause[] {
  const causes: Cause[] = [];
  const label = (field: string, text: string | undefined, prefix = ''): void => {
    const errors =
      text === undefined || text === '' ? [] : dns1035LabelErrors(prefix === '' ? text : text.toLowerCase());
    if (errors.length > 0) causes.push(invalidValue(`${path}.${field}`, text, `${prefix}${errors.join(',')}`));
  };
  const mixed = 'may have mixed case, but should otherwise match: ';
  label('plural', names.plural);
  label('singular', names.singular);
  label('kind', names.kind, mixed);
  label('listKind', names.listKind, mixed);
  for (const [index, name] of (names.shortNames ?? []).entries()) label(`shortNames[${index}]`, name);
  if ((names.kind ?? '') !== '' && names.kind === names.listKind) {
    causes.push(invalidValue(`${path}.listKind`, names.listKind, 'kind and listKind may not be the same'));
  }
  for (const [index, name] of (names.categories ?? []).entries()) label(`categories[${index}]`, name);
  return causes;
}

/** The members that upstream validates as one of the whole definition where all versions have the same. */
const SHARED = {
  schema: 'validation',
  subresources: 'subresources',
  additionalPrinterColumns: 'additionalPrinterColumns',
  selectableFields: 'selectableFields',
} as const;

interface Places extends Readonly<Record<keyof typeof SHARED, string | undefined>> {
  readonly path: string;
}

type Member = keyof typeof SHARED;

/** Once for all versions: to compare them for each version would be quadratic. */
function sharedMembers(versions: readonly DefinitionVersion[]): (member: Member) => boolean {
  const isEqual = (member: Member): boolean =>
    versions.every((each) => jsonEqual(each[member] ?? null, versions[0]?.[member] ?? null));
  const shared = new Set((Object.keys(SHARED) as Member[]).filter(isEqual));
  return (member) => shared.has(member);
}

/** Where the causes of a version are reported. undefined: they are those of the first version. */
function placesOf(isShared: (member: Member) => boolean, index: number): Places {
  const path = `spec.versions[${index}]`;
  const placeOf = (member: Member): string | undefined => {
    if (!isShared(member)) return `${path}.${member}`;
    return index === 0 ? `spec.${SHARED[member]}` : undefined;
  };
  return {
    path,
    schema: placeOf('schema'),
    subresources: placeOf('subresources'),
    additionalPrinterColumns: placeOf('additionalPrinterColumns'),
    selectableFields: placeOf('selectableFields'),
  };
}

function validateVersion(
  version: DefinitionVersion,
  { path, ...places }: Places,
  check: SchemaCheck & { readonly stored: JsonSchema | undefined },
): Cause[] {
  const causes: Cause[] = [];
  const errors = dns1035LabelErrors(version.name);
  if (errors.length > 0) causes.push(invalidValue(`${path}.name`, version.name, errors.join(',')));
  const { deprecationWarning: warning, deprecated = false } = version;
  if (warning !== undefined) {
    const fault = !deprecated
      ? 'can only be set for deprecated versions'
      : warning.length > 256
        ? 'must be <= 256 characters long'
        : warning === ''
          ? 'must not be an empty string'
          : undefined;
    if (fault !== undefined) causes.push(invalidValue(`${path}.deprecationWarning`, warning, fault));
  }
  const schema = version.schema?.openAPIV3Schema;
  const hasStatus = version.subresources?.status !== undefined;
  if (schema === undefined) causes.push(required(`${path}.schema.openAPIV3Schema`));
  else if (places.schema !== undefined) {
    causes.push(...validateRootSchema(schema, `${places.schema}.openAPIV3Schema`, { ...check, hasStatus }));
  }
  if (places.subresources !== undefined) {
    causes.push(...validateScale(version.subresources?.scale, `${places.subresources}.scale`));
  }
  if (places.additionalPrinterColumns !== undefined) {
    for (const [index, column] of (version.additionalPrinterColumns ?? []).entries()) {
      causes.push(...validateColumn(column, `${places.additionalPrinterColumns}[${index}]`));
    }
  }
  if (places.selectableFields !== undefined) {
    causes.push(...validateSelectableFields(version, schema, places.selectableFields));
  }
  return causes;
}

function validateColumn(column: Readonly<Record<string, unknown>>, path: string): Cause[] {
  const text = (name: string): string => (typeof column[name] === 'string' ? (column[name] as string) : '');
  const types = `must be one of ${COLUMN_TYPES.join(',')}`;
  const causes: Cause[] = [];
  if (text('name') === '') causes.push(required(`${path}.name`));
  if (text('type') === '') causes.push(required(`${path}.type`, types));
  else if (!COLUMN_TYPES.includes(text('type'))) causes.push(invalidValue(`${path}.type`, text('type'), types));
  if (text('format') !== '' && !COLUMN_FORMATS.includes(text('format'))) {
    causes.push(invalidValue(`${path}.format`, text('format'), `must be one of ${COLUMN_FORMATS.join(',')}`));
  }
  causes.push(...validatePath(text('jsonPath'), `${path}.JSONPath`));
  return causes;
}

function validatePath(path: string, field: string): Cause[] {
  if (path === '') return [required(field)];
  return path.startsWith('.') ? [] : [invalidValue(field, path, 'must be a simple json path starting with .')];
}

function validateScale(scale: NonNullable<DefinitionVersion['subresources']>['scale'], path: string): Cause[] {
  if (scale === undefined) return [];
  const below = (name: keyof typeof scale, parts: readonly string[], rule: string): Cause[] => {
    const value = scale[name] ?? '';
    const causes = validatePath(value, `${path}.${name}`);
    if (causes.length > 0 || parts.some((part) => value.startsWith(`.${part}.`))) return causes;
    return [invalidValue(`${path}.${name}`, value, `should be a json path under ${rule}`)];
  };
  return [
    ...below('specReplicasPath', ['spec'], '.spec'),
    ...below('statusReplicasPath', ['status'], '.status'),
    ...((scale.labelSelectorPath ?? '') === ''
      ? []
      : below('labelSelectorPath', ['spec', 'status'], 'either .spec or .status')),
  ];
}

function validateSelectableFields(
  { selectableFields = [] }: DefinitionVersion,
  schema: JsonSchema | undefined,
  path: string,
): Cause[] {
  const causes: Cause[] = [];
  const seen = new Set<string>();
  for (const [index, { jsonPath = '' }] of selectableFields.entries()) {
    const field = `${path}[${index}].jsonPath`;
    if (jsonPath === '') {
      causes.push(required(field));
      continue;
    }
    const steps = parseJsonPath(jsonPath);
    let found = schema;
    for (const step of steps ?? []) found = step.kind === 'member' ? found?.properties?.[step.name] : undefined;
    if (steps === undefined || steps.length === 0 || found === undefined) {
      causes.push(invalidValue(field, jsonPath, 'is an invalid path: does not refer to a valid field'));
      continue;
    }
    if (jsonPath.startsWith('.metadata'))
      causes.push(invalidValue(field, jsonPath, 'must not point to fields in metadata'));
    if (!['string', 'boolean', 'integer'].includes(found.type ?? '')) {
      const rule =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      causes.push(invalidValue(field, jsonPath, rule));
    }
    if (seen.has(jsonPath)) causes.push(duplicate(field, jsonPath));
    seen.add(jsonPath);
  }
  if (seen.size > SELECTABLE_FIELDS_MAX) causes.push(tooMany(path, seen.size, SELECTABLE_FIELDS_MAX));
  return causes;
}

function validateStoredVersions(stored: readonly string[], { versions }: Spec): Cause[] {
  const path = 'status.storedVersions';
  if (stored.length === 0) return [invalidValue(path, stored, 'must have at least one stored version')];
  const names = new Set(versions.map(({ name }) => name));
  const storage = versions.find((version) => version.storage)?.name;
  return [
    ...(storage === undefined || stored.includes(storage)
      ? []
      : [invalidValue(path, stored, `must have the storage version ${storage}`)]),
    ...stored.flatMap((name, index) =>
      names.has(name)
        ? []
        : [
            invalidValue(
              `${path}[${index}]`,
              name,
              `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`,
            ),
          ],
    ),
  ];
}

function validateApproval(definition: KubeCustomResourceDefinition): Cause[] {
  const { reason, message = '' } = approvalOf(definition) ?? {};
  const field = `metadata.annotations[${APPROVED}]`;
  if (reason === 'MissingAnnotation') return [required(field, message)];
  if (reason !== 'InvalidAnnotation') return [];
  return [invalidValue(field, definition.metadata.annotations?.[APPROVED], message)];
}
