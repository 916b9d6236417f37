/**
 * Which schemas a definition may have: structural ones, without what the API cannot decide cheaply. Pure.
 *
 * Source: k8s.io/apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go,
 * pkg/apiserver/schema/{validation,complete}.go.
 */

import { forbiddenField, invalidValue, notSupported, required } from '../../kubernetes/causes.ts';
import { isJsonObject, type JsonObject, jsonEqual } from '../../kubernetes/json.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { pruned } from '../custom-resources/prune.ts';
import {
  type CompilePattern,
  compileSchema,
  type JsonSchema,
  type SchemaNode,
} from '../custom-resources/schema-node.ts';
import { validateValue } from '../custom-resources/validate-value.ts';

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const INT_OR_STRING = [{ type: 'integer' }, { type: 'string' }];
/** Members that must not be set in any schema. */
const UNSUPPORTED = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'] as const;
/** Members of a schema within a junctor that only the structure may have, by what upstream says of them. */
const STRUCTURE_ONLY: readonly (readonly [name: string, rule: string])[] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
];
/** Members that a root schema may have if the version has the subresource status. */
const ROOT_WITH_STATUS: ReadonlySet<string> = new Set([
  'description',
  'type',
  'format',
  'title',
  'maximum',
  'exclusiveMaximum',
  'minimum',
  'exclusiveMinimum',
  'maxLength',
  'minLength',
  'pattern',
  'maxItems',
  'minItems',
  'uniqueItems',
  'multipleOf',
  'required',
  'items',
  'properties',
  'externalDocs',
  'example',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
]);
const ROOT_NAMES =
  '[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]';

type Level = 'root' | 'item' | 'field';

/** Why a schema cannot have its rules. `path`: of the schema. `isUnchanged`: the stored definition has it too. */
export type RuleFaults = (root: SchemaNode, path: string, isUnchanged: boolean) => readonly Cause[];

export interface SchemaCheck {
  readonly compilePattern: CompilePattern;
  /** Absent: there are no rules. */
  readonly ruleFaults?: RuleFaults;
}

interface Check {
  readonly compilePattern: CompilePattern;
  readonly causes: Cause[];
}

/**
 * @param path of the schema: `spec.versions[0].schema.openAPIV3Schema`
 * @param options `stored`: the schema that the stored definition has for the version
 */
export function validateRootSchema(
  schema: JsonSchema,
  path: string,
  options: SchemaCheck & { readonly hasStatus: boolean; readonly stored: JsonSchema | undefined },
): Cause[] {
  const check: Check = { compilePattern: options.compilePattern, causes: [] };
  const { causes } = check;
  if (options.hasStatus) {
    const other = Object.keys(schema).find((name) => !ROOT_WITH_STATUS.has(name));
    if (schema.type !== undefined && schema.type !== 'object') {
      const rule =
        'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
      causes.push(invalidValue(`${path}.type`, schema.type, rule));
    } else if (other !== undefined) {
      const rule = `only ${ROOT_NAMES} fields are allowed at the root of the schema if the status subresource is enabled`;
      causes.push(invalidValue(path, schema, rule));
    }
  }
  if (schema.nullable === true) causes.push(forbiddenField(`${path}.nullable`, 'nullable cannot be true at the root'));
  checkStructure(check, schema, 'root', path);
  checkComplete(check, schema, schema, { structure: path, validation: path });
  checkSchema(check, schema, path, { defaults: undefined, isMetadata: false, isRoot: true });
  if (causes.length === 0) checkDefaults(check, schema, path);
  const { ruleFaults, compilePattern, stored } = options;
  if (causes.length === 0 && ruleFaults) {
    causes.push(...ruleFaults(compileSchema(schema, compilePattern), path, jsonEqual(schema, stored)));
  }
  return causes;
}

const at = (path: string, name: string): string => `${path}.${name}`;
const propertyAt = (path: string, name: string): string => `${path}.properties[${name}]`;
const schemasOf = (schemas: Readonly<Record<string, JsonSchema>> | undefined): [string, JsonSchema][] =>
  Object.entries(schemas ?? {});
const additionalOf = ({ additionalProperties }: JsonSchema): JsonSchema | undefined =>
  isJsonObject(additionalProperties) ? (additionalProperties as JsonSchema) : undefined;

/** The structure: every value has a type, or is declared to be any. */
function checkStructure(check: Check, schema: JsonSchema, level: Level, path: string): void {
  const { causes } = check;
  const { type = '' } = schema;
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true;
  const keepsUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  if (type === 'array' && schema.items === undefined) causes.push(required(at(path, 'items'), 'must be specified'));
  if (schema.items !== undefined) checkStructure(check, schema.items, 'item', at(path, 'items'));
  for (const [name, inner] of schemasOf(schema.properties)) {
    if (name === 'metadata' && level === 'root') continue;
    checkStructure(check, inner, 'field', propertyAt(path, name));
  }
  if (schema.additionalProperties !== undefined) {
    if (level === 'root') causes.push(forbiddenField(at(path, 'additionalProperties'), 'must not be used at the root'));
    const additional = additionalOf(schema);
    if (additional !== undefined) checkStructure(check, additional, 'field', at(path, 'additionalProperties'));
  }
  if (isIntOrString && keepsUnknown) {
    const rule = 'must be false if x-kubernetes-int-or-string is true';
    causes.push(invalidValue(at(path, 'x-kubernetes-preserve-unknown-fields'), true, rule));
  }
  if (isIntOrString && isEmbedded) {
    const rule = 'must be false if x-kubernetes-int-or-string is true';
    causes.push(invalidValue(at(path, 'x-kubernetes-embedded-resource'), true, rule));
  }
  checkJunctors(check, schema, path, {
    anyOf: jsonEqual(schema.anyOf, INT_OR_STRING),
    firstAllOf: jsonEqual(schema.allOf?.[0]?.anyOf, INT_OR_STRING),
  });
  if (isEmbedded && type !== 'object') {
    const rule = 'must be object if x-kubernetes-embedded-resource is true';
    causes.push(type === '' ? required(at(path, 'type'), rule) : invalidValue(at(path, 'type'), type, rule));
  } else if (type === '' && !isIntOrString && !keepsUnknown) causes.push(required(at(path, 'type'), EMPTY_TYPE[level]));
  if (level === 'root' && type !== '' && type !== 'object') {
    causes.push(invalidValue(at(path, 'type'), type, 'must be object at the root'));
  }
  checkImplied(check, schema, level, path);
  if (isEmbedded && !keepsUnknown && schemasOf(schema.properties).length === 0) {
    const rule =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
    causes.push(required(at(path, 'properties'), rule));
  }
}

const EMPTY_TYPE: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

/** apiVersion, kind and metadata are specified by Kubernetes. */
function checkImplied({ causes }: Check, schema: JsonSchema, level: Level, path: string): void {
  const { properties = {} } = schema;
  const isResource = level === 'root' || schema['x-kubernetes-embedded-resource'] === true;
  if (!isResource) return;
  for (const name of ['kind', 'apiVersion']) {
    const type = properties[name]?.type ?? '';
    if (properties[name] !== undefined && type !== 'string') {
      causes.push(invalidValue(`${propertyAt(path, name)}.type`, type, 'must be string'));
    }
  }
  const { metadata } = properties;
  if (metadata === undefined) return;
  const place = propertyAt(path, 'metadata');
  if (metadata.type !== 'object') causes.push(invalidValue(`${place}.type`, metadata.type ?? '', 'must be object'));
  if (level !== 'root') return;
  const { type: _type, description: _description, properties: restricted = {}, ...others } = metadata;
  const isMore = Object.keys(restricted).some((name) => name !== 'name' && name !== 'generateName');
  if (isMore || Object.keys(others).length > 0) {
    const rule = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
    causes.push(forbiddenField(place, rule));
  }
}

interface Skipped {
  readonly anyOf: boolean;
  readonly firstAllOf: boolean;
}
const NOTHING_SKIPPED: Skipped = { anyOf: false, firstAllOf: false };

/** Schemas within anyOf, allOf, oneOf and not restrict values. They add nothing to the structure. */
function checkJunctors(check: Check, schema: JsonSchema, path: string, skipped: Skipped): void {
  if (!skipped.anyOf) checkNestedList(check, schema.anyOf, at(path, 'anyOf'));
  for (const [index, inner] of (schema.allOf ?? []).entries()) {
    checkNested(check, inner, `${path}.allOf[${index}]`, {
      ...NOTHING_SKIPPED,
      anyOf: skipped.firstAllOf && index === 0,
    });
  }
  checkNestedList(check, schema.oneOf, at(path, 'oneOf'));
  if (schema.not !== undefined) checkNested(check, schema.not, at(path, 'not'), NOTHING_SKIPPED);
  const { pattern = '' } = schema;
  const compiled = pattern === '' ? undefined : check.compilePattern(pattern);
  if (compiled?.kind === 'malformed') {
    const rule = `must be a valid regular expression, but isn't: ${compiled.message}`;
    check.causes.push(invalidValue(at(path, 'pattern'), pattern, rule));
  }
}

const checkNestedList = (check: Check, schemas: readonly JsonSchema[] = [], path: string): void => {
  for (const [index, inner] of schemas.entries()) checkNested(check, inner, `${path}[${index}]`, NOTHING_SKIPPED);
};

function checkNested(check: Check, schema: JsonSchema, path: string, skipped: Skipped): void {
  checkJunctors(check, schema, path, skipped);
  if (schema.items !== undefined) checkNested(check, schema.items, at(path, 'items'), NOTHING_SKIPPED);
  for (const [name, inner] of schemasOf(schema.properties))
    checkNested(check, inner, propertyAt(path, name), NOTHING_SKIPPED);
  const members = schema as JsonObject;
  for (const [name, rule] of STRUCTURE_ONLY) {
    const value = members[name];
    if (value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0))
      continue;
    check.causes.push(forbiddenField(at(path, name), rule));
  }
  if (schema.properties?.['metadata'] !== undefined) {
    check.causes.push(forbiddenField(propertyAt(path, 'metadata'), 'must not be specified in a nested context'));
  }
}

interface Places {
  readonly structure: string;
  readonly validation: string;
}

/** Each value that a junctor restricts is in the structure. */
function checkComplete(check: Check, validation: JsonSchema, structure: JsonSchema, places: Places): void {
  const within = (inner: JsonSchema, name: string): void =>
    checkCompleteNested(check, inner, structure, { ...places, validation: `${places.validation}.${name}` });
  if (validation.not !== undefined) within(validation.not, 'not');
  for (const name of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [index, inner] of (validation[name] ?? []).entries()) within(inner, `${name}[${index}]`);
  }
  if (validation !== structure) return;
  if (structure.items !== undefined) {
    const path = at(places.structure, 'items');
    checkComplete(check, structure.items, structure.items, { structure: path, validation: path });
  }
  for (const [name, inner] of schemasOf(structure.properties)) {
    const path = propertyAt(places.structure, name);
    checkComplete(check, inner, inner, { structure: path, validation: path });
  }
  const additional = additionalOf(structure);
  if (additional === undefined) return;
  const path = at(places.structure, 'additionalProperties');
  checkComplete(check, additional, additional, { structure: path, validation: path });
}

function checkCompleteNested(check: Check, nested: JsonSchema, structure: JsonSchema, places: Places): void {
  const because = (path: string): string => `because it is defined in ${path}`;
  checkComplete(check, nested, structure, places);
  if (nested.items !== undefined) {
    const inner = { structure: at(places.structure, 'items'), validation: at(places.validation, 'items') };
    if (structure.items === undefined) check.causes.push(required(inner.structure, because(inner.validation)));
    else checkCompleteNested(check, nested.items, structure.items, inner);
  }
  for (const [name, property] of schemasOf(nested.properties)) {
    const inner = { structure: propertyAt(places.structure, name), validation: propertyAt(places.validation, name) };
    const known = structure.properties?.[name];
    if (known === undefined) check.causes.push(required(inner.structure, because(inner.validation)));
    else checkCompleteNested(check, property, known, inner);
  }
}

interface Where {
  /** Why a default is not permitted here. Absent: it is. */
  readonly defaults: string | undefined;
  /** Within apiVersion, kind or metadata of a resource. */
  readonly isMetadata: boolean;
  readonly isRoot: boolean;
}

/** What each schema may have, whatever its place. */
function checkSchema(check: Check, schema: JsonSchema, path: string, where: Where): void {
  const { causes } = check;
  const members = schema as JsonObject;
  const { type = '' } = schema;
  if (type !== '' && !TYPES.includes(type)) causes.push(notSupported(at(path, 'type'), type, TYPES));
  if (type === 'null') {
    causes.push(forbiddenField(at(path, 'type'), 'type cannot be set to null, use nullable as an alternative'));
  }
  if (schema.default !== undefined && where.defaults !== undefined) {
    causes.push(forbiddenField(at(path, 'default'), `must not be set ${where.defaults}`));
  }
  for (const name of UNSUPPORTED)
    if (members[name] !== undefined) causes.push(forbiddenField(at(path, name), `${name} is not supported`));
  if (members['uniqueItems'] === true) {
    const rule = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    causes.push(forbiddenField(at(path, 'uniqueItems'), rule));
  }
  if (where.isMetadata && schema['x-kubernetes-embedded-resource'] === true) {
    causes.push(forbiddenField(at(path, 'x-kubernetes-embedded-resource'), 'must not be used inside of resource meta'));
  }
  if (
    schema.additionalProperties !== undefined &&
    schemasOf(schema.properties).length > 0 &&
    schema.additionalProperties !== true
  ) {
    causes.push(
      forbiddenField(at(path, 'additionalProperties'), 'additionalProperties and properties are mutual exclusive'),
    );
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    causes.push(invalidValue(at(path, 'x-kubernetes-preserve-unknown-fields'), false, 'must be true or undefined'));
  }
  checkCollections(check, schema, path);
  checkRules(check, schema, path);
  const inner = { ...where, isRoot: false };
  const additional = additionalOf(schema);
  if (additional !== undefined) {
    const defaults = where.isMetadata ? 'inside additionalProperties applying to object metadata' : where.defaults;
    checkSchema(check, additional, at(path, 'additionalProperties'), { ...inner, defaults });
  }
  const isResource = where.isRoot || schema['x-kubernetes-embedded-resource'] === true;
  for (const [name, property] of schemasOf(schema.properties)) {
    const isMetadata = where.isMetadata || (isResource && ['apiVersion', 'kind', 'metadata'].includes(name));
    const defaults = where.isRoot && isMetadata ? `in top-level ${name}` : where.defaults;
    checkSchema(check, property, propertyAt(path, name), { ...inner, isMetadata, defaults });
  }
  if (schema.items !== undefined) checkSchema(check, schema.items, at(path, 'items'), inner);
  if (schema.not !== undefined) checkSchema(check, schema.not, at(path, 'not'), inner);
  for (const name of ['allOf', 'oneOf', 'anyOf'] as const) {
    for (const [index, each] of (schema[name] ?? []).entries())
      checkSchema(check, each, `${path}.${name}[${index}]`, inner);
  }
}

/** List and map types. */
function checkCollections({ causes }: Check, schema: JsonSchema, path: string): void {
  const { type = '', items, 'x-kubernetes-map-type': mapType, 'x-kubernetes-list-type': listType } = schema;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const mustBe = (wanted: string, extension: string): void => {
    const rule = `must be ${wanted} if ${extension} is specified`;
    causes.push(type === '' ? required(at(path, 'type'), rule) : invalidValue(at(path, 'type'), type, rule));
  };
  if (mapType !== undefined) {
    if (type !== 'object') mustBe('object', 'x-kubernetes-map-type');
    if (mapType !== 'atomic' && mapType !== 'granular') {
      causes.push(notSupported(at(path, 'x-kubernetes-map-type'), mapType, ['atomic', 'granular']));
    }
  }
  if (keys.length > 0 && listType !== 'map') {
    const rule = 'must be map if x-kubernetes-list-map-keys is non-empty';
    const field = at(path, 'x-kubernetes-list-type');
    causes.push(listType === undefined ? required(field, rule) : invalidValue(field, listType, rule));
  }
  if (listType === undefined) return;
  if (type !== 'array') mustBe('array', 'x-kubernetes-list-type');
  if (!['atomic', 'set', 'map'].includes(listType)) {
    causes.push(notSupported(at(path, 'x-kubernetes-list-type'), listType, ['atomic', 'set', 'map']));
  }
  if (listType === 'set' && items !== undefined) {
    const rule = 'must be atomic as item of a list with x-kubernetes-list-type=set';
    const { 'x-kubernetes-list-type': innerList = 'atomic', 'x-kubernetes-map-type': innerMap } = items;
    if (items.type === 'array' && innerList !== 'atomic') {
      causes.push(invalidValue(`${path}.items.x-kubernetes-list-type`, innerList, rule));
    }
    if (items.type === 'object' && innerMap !== 'atomic') {
      causes.push(invalidValue(`${path}.items.x-kubernetes-map-type`, innerMap ?? null, rule));
    }
  }
  if (listType !== 'set' && listType !== 'map') return;
  if (items?.nullable === true) {
    causes.push(
      forbiddenField(`${path}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${listType}`),
    );
  }
  if (listType === 'map') checkMapKeys(causes, schema, path, keys);
}

function checkMapKeys(causes: Cause[], { items }: JsonSchema, path: string, keys: readonly string[]): void {
  const field = at(path, 'x-kubernetes-list-map-keys');
  if (keys.length === 0) causes.push(required(field, 'must not be empty if x-kubernetes-list-type is map'));
  if (items === undefined) {
    causes.push(required(at(path, 'items'), 'must have a schema if x-kubernetes-list-type is map'));
    return;
  }
  if (items.type !== 'object') {
    causes.push(
      invalidValue(
        `${path}.items.type`,
        items.type ?? '',
        "must be object if parent array's x-kubernetes-list-type is map",
      ),
    );
    return;
  }
  if (new Set(keys).size < keys.length) causes.push(invalidValue(field, keys, 'must not contain duplicate entries'));
  for (const key of keys) {
    const property = items.properties?.[key];
    if (property === undefined) {
      causes.push(invalidValue(field, keys, 'entries must all be names of item properties'));
      continue;
    }
    const place = `${path}.items.properties[${key}]`;
    if (property.type === 'array' || property.type === 'object') {
      causes.push(
        invalidValue(
          `${place}.type`,
          items.type,
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      );
    }
    if (!(items.required ?? []).includes(key) && property.default === undefined) {
      const rule =
        'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
      causes.push(required(`${place}.default`, rule));
    }
    if (property.nullable === true) {
      const rule = 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable';
      causes.push(forbiddenField(`${place}.nullable`, rule));
    }
  }
}

const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];

/** The form of rules. What they mean is checked by `ruleFaults`. */
function checkRules({ causes }: Check, schema: JsonSchema, path: string): void {
  for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    const place = `${path}.x-kubernetes-validations[${index}]`;
    const text = (name: string): string => (typeof rule[name] === 'string' ? (rule[name] as string) : '');
    const [expression, message] = [text('rule').trim(), text('message').trim()];
    if (expression === '') causes.push(required(`${place}.rule`, 'rule is not specified'));
    else if (text('message') !== '' && message === '') {
      causes.push(invalidValue(`${place}.message`, rule['message'], 'must be non-empty if specified'));
    } else if (/[\n\r]/.test(message)) {
      causes.push(invalidValue(`${place}.message`, rule['message'], 'must not contain line breaks'));
    } else if (/[\n\r]/.test(expression) && message === '') {
      causes.push(required(`${place}.message`, 'message must be specified if rule contains line breaks'));
    }
    if (text('messageExpression') !== '' && text('messageExpression').trim() === '') {
      causes.push(required(`${place}.messageExpression`, 'messageExpression must be non-empty if specified'));
    }
    const { reason } = rule;
    if (reason !== undefined && !REASONS.includes(String(reason)))
      causes.push(notSupported(`${place}.reason`, reason, REASONS));
  }
}

/** Defaults are valid values of their schemas, and lose nothing by pruning. */
function checkDefaults(check: Check, schema: JsonSchema, path: string): void {
  if (schema.default !== undefined) {
    const field = at(path, 'default');
    const node = compileSchema(schema, check.compilePattern);
    const unknown: string[] = [];
    pruned(node, schema.default, field, unknown);
    if (unknown.length > 0) check.causes.push(invalidValue(field, schema.default, 'must not have unknown fields'));
    check.causes.push(...validateValue(node, schema.default, undefined, field).slice(0, 1));
  }
  for (const [name, inner] of schemasOf(schema.properties)) checkDefaults(check, inner, propertyAt(path, name));
  if (schema.items !== undefined) checkDefaults(check, schema.items, at(path, 'items'));
  const additional = additionalOf(schema);
  if (additional !== undefined) checkDefaults(check, additional, at(path, 'additionalProperties'));
}
