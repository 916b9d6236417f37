/**
 * Validates a custom resource by the schema of its definition, with the messages of upstream. Pure.
 *
 * Source: k8s.io/kube-openapi pkg/validation/validate, k8s.io/apiextensions-apiserver pkg/apiserver/validation,
 * pkg/apiserver/schema/{listtype,objectmeta}.
 */

import * as causes from '../../kubernetes/causes.ts';
import { decodeStrict } from '../../kubernetes/decode.ts';
import { isJsonObject, type JsonObject, jsonEqual } from '../../kubernetes/json.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { dns1035LabelErrors, pathSegmentName, validateMetadata } from '../../kubernetes/validate-metadata.ts';
import type { ObjectMeta } from '../types.ts';
import { FORMATS } from './formats.ts';
import { OBJECT_META } from './prune.ts';
import { canonicalJson, type SchemaNode } from './schema-node.ts';

/**
 * Values that one validation may visit, a repeated visit counted again. An object that can be stored has up to about
 * 40,000 values; schemas within anyOf visit them again.
 */
const VISITS_MAX = 2_000_000;
/** Faults after which a validation ends. */
export const FAULTS_MAX = 100;
/** Upstream prints the path of such a fault as a Go nil. */
export const WITHOUT_PATH = '<nil>';

interface Walk {
  visitsLeft: number;
  /** In lists with keys and in sets. */
  readonly duplicates: Cause[];
  readonly isUnchanged: (place: Place) => boolean;
}

/**
 * @param old the value before an update. What did not change is not refused. Absent: a creation
 * @param path of the value; '' for a whole object
 */
export function validateValue(node: SchemaNode, value: unknown, old?: unknown, path = ''): Cause[] {
  const walk: Walk = { visitsLeft: VISITS_MAX, duplicates: [], isUnchanged: unchangedPlaces() };
  const found: Cause[] = [];
  visit(walk, found, { node, value, old, path });
  // An object that had any before, also in another list, may have more.
  if (walk.duplicates.length > 0 && !(old !== undefined && hasDuplicates(walk, node, old)))
    found.push(...walk.duplicates);
  if (walk.visitsLeft < 0) return [causes.forbiddenField(WITHOUT_PATH, 'the schema takes too long to evaluate')];
  return found.slice(0, FAULTS_MAX);
}

function hasDuplicates(walk: Walk, node: SchemaNode, value: unknown): boolean {
  const before: Walk = { ...walk, duplicates: [] };
  visit(before, [], { node, value, old: value, path: '' });
  return before.duplicates.length > 0;
}

export interface Place {
  readonly node: SchemaNode;
  readonly value: unknown;
  readonly old: unknown;
  readonly path: string;
}

const dottedPath = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);

/**
 * The members and items of a value that have a schema, each with its former value where the two can be correlated.
 *
 * @param keyedPath the path of a member without a property
 */
export function membersOf({ node, value, old, path }: Place, keyedPath = dottedPath): Place[] {
  if (Array.isArray(value)) {
    const { items } = node;
    if (items === undefined) return [];
    const before = itemsByKey(node, old);
    return value.map((item, index) => ({
      node: items,
      value: item,
      old: before?.get(keyOf(node, item)),
      path: `${path}[${index}]`,
    }));
  }
  if (!isJsonObject(value)) return [];
  return Object.keys(value).flatMap((key): Place[] => {
    const property = node.properties.get(key);
    const inner = property ?? node.additional;
    if (typeof inner !== 'object') return [];
    const before = isJsonObject(old) && Object.hasOwn(old, key) ? old[key] : undefined;
    return [{ node: inner, value: value[key], old: before, path: (property ? dottedPath : keyedPath)(path, key) }];
  });
}

const mapKeysOf = ({ schema }: SchemaNode): readonly string[] => schema['x-kubernetes-list-map-keys'] ?? [];

const keyOf = (node: SchemaNode, item: unknown): string =>
  canonicalJson(mapKeysOf(node).map((key) => (isJsonObject(item) ? (item[key] ?? null) : null)));

function itemsByKey(node: SchemaNode, items: unknown): ReadonlyMap<string, unknown> | undefined {
  if (node.schema['x-kubernetes-list-type'] !== 'map' || !Array.isArray(items)) return undefined;
  return new Map(items.map((item) => [keyOf(node, item), item]));
}

function visit(walk: Walk, found: Cause[], place: Place): void {
  walk.visitsLeft -= 1;
  if (walk.visitsLeft < 0 || found.length >= FAULTS_MAX) return;
  const { node, value, path } = place;
  if (value === null && node.schema.nullable === true) return;
  const before = found.length;
  addTypeFault(found, node, value, path);
  if (value !== null) {
    addJunctorFaults(walk, found, place);
    if (typeof value === 'string') addTextFaults(found, node, value, path);
    else if (typeof value === 'number') addNumberFaults(found, node, value, path);
  }
  addEnumFault(found, node, value, path);
  if (Array.isArray(value)) addListFaults(walk, found, place, value);
  else if (isJsonObject(value)) addObjectFaults(found, node, value, path);
  for (const member of membersOf(place)) visit(walk, found, member);
  // What an update leaves as it was stays valid, also under a schema that refuses it now.
  if (found.length > before && walk.isUnchanged(place)) found.length = before;
}

/**
 * Whether the value of a place is equal to its former one. A list with keys may have another order. Each pair of values
 * is compared once: a place, and those that it is within, are asked about in turn.
 */
export function unchangedPlaces(): (place: Place) => boolean {
  const known = new Map<object, { readonly old: unknown; readonly isEqual: boolean }>();
  const isEqual = (value: unknown, old: unknown): boolean => {
    if (typeof value !== 'object' || value === null) return value === old;
    const last = known.get(value);
    if (last !== undefined && last.old === old) return last.isEqual;
    const outcome = { old, isEqual: jsonEqual(value, old, isEqual) };
    known.set(value, outcome);
    return outcome.isEqual;
  };
  return (place) => {
    const { node, value, old } = place;
    if (old === undefined) return false;
    if (isEqual(value, old)) return true;
    if (node.schema['x-kubernetes-list-type'] !== 'map' || !Array.isArray(value) || !Array.isArray(old)) return false;
    return value.length === old.length && membersOf(place).every((member) => isEqual(member.value, member.old));
  };
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function addTypeFault(found: Cause[], { types }: SchemaNode, value: unknown, path: string): void {
  const type = typeOf(value);
  if (types.length === 0 || types.includes(type) || (type === 'integer' && types.includes('number'))) return;
  const detail = `${path} in body must be of type ${types.join(',')}: ${JSON.stringify(type)}`;
  found.push({ ...causes.invalidValue(path, type, detail), reason: 'FieldValueTypeInvalid' });
}

const composed = (path: string, what: string): Cause =>
  causes.invalidValue(WITHOUT_PATH, '', `${JSON.stringify(path)} must ${what}`);

function addJunctorFaults(walk: Walk, found: Cause[], { node, value, path }: Place): void {
  const faultsOf = (inner: SchemaNode): Cause[] => {
    const faults: Cause[] = [];
    visit(walk, faults, { node: inner, value, old: undefined, path });
    return faults;
  };
  if (node.anyOf.length > 0) {
    let fewest: Cause[] | undefined;
    const isMatched = node.anyOf.some((inner) => {
      const faults = faultsOf(inner);
      if (fewest === undefined || faults.length < fewest.length) fewest = faults;
      return faults.length === 0;
    });
    if (!isMatched) found.push(composed(path, 'validate at least one schema (anyOf)'), ...(fewest ?? []));
  }
  if (node.oneOf.length > 0) {
    const outcomes = node.oneOf.map(faultsOf);
    const valid = outcomes.filter((faults) => faults.length === 0).length;
    const rule = 'validate one and only one schema (oneOf)';
    if (valid === 0) {
      const fewest = outcomes.reduce((one, other) => (other.length < one.length ? other : one));
      found.push(composed(path, `${rule}. Found none valid`), ...fewest);
    } else if (valid > 1) found.push(composed(path, `${rule}. Found ${valid} valid alternatives`));
  }
  if (node.allOf.length > 0) {
    const outcomes = node.allOf.map(faultsOf).filter((faults) => faults.length > 0);
    const none = outcomes.length === node.allOf.length ? '. None validated' : '';
    if (outcomes.length > 0) found.push(...outcomes.flat(), composed(path, `validate all the schemas (allOf)${none}`));
  }
  if (node.not !== undefined && faultsOf(node.not).length === 0)
    found.push(composed(path, 'not validate the schema (not)'));
}

function addTextFaults(found: Cause[], { schema, matches }: SchemaNode, value: string, path: string): void {
  const { maxLength, minLength, pattern, format = '' } = schema;
  // Go counts code points. A text of fewer units has fewer of them.
  const length = maxLength !== undefined || minLength !== undefined ? [...value].length : 0;
  if (maxLength !== undefined && length > maxLength) found.push(causes.tooLong(path, maxLength));
  if (minLength !== undefined && length < minLength) {
    found.push(causes.invalidValue(path, value, `${path} in body should be at least ${minLength} chars long`));
  }
  if (matches !== undefined && !matches(value)) {
    found.push(causes.invalidValue(path, value, `${path} in body should match '${pattern}'`));
  }
  if (FORMATS.get(format)?.(value) === false) {
    found.push(causes.invalidValue(path, value, `${path} in body must be of type ${format}: ${JSON.stringify(value)}`));
  }
}

function addNumberFaults(found: Cause[], { schema }: SchemaNode, value: number, path: string): void {
  const { maximum, minimum, multipleOf, exclusiveMaximum = false, exclusiveMinimum = false } = schema;
  const refuse = (rule: string) => found.push(causes.invalidValue(path, value, `${path} in body should be ${rule}`));
  if (multipleOf !== undefined && multipleOf > 0 && !Number.isInteger(value / multipleOf)) {
    refuse(`a multiple of ${multipleOf}`);
  }
  if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)) {
    refuse(`less than ${exclusiveMaximum ? '' : 'or equal to '}${maximum}`);
  }
  if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)) {
    refuse(`greater than ${exclusiveMinimum ? '' : 'or equal to '}${minimum}`);
  }
}

function addEnumFault(found: Cause[], { enumTexts, schema }: SchemaNode, value: unknown, path: string): void {
  if (enumTexts === undefined || enumTexts.has(canonicalJson(value))) return;
  const values = (schema.enum ?? []).map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
  found.push(causes.notSupported(path, value, values));
}

function addListFaults(walk: Walk, found: Cause[], { node, path }: Place, value: readonly unknown[]): void {
  const { minItems, maxItems, 'x-kubernetes-list-type': listType } = node.schema;
  if (minItems !== undefined && value.length < minItems) {
    found.push(causes.invalidValue(path, value.length, `${path} in body should have at least ${minItems} items`));
  }
  if (maxItems !== undefined && value.length > maxItems) found.push(causes.tooMany(path, value.length, maxItems));
  if (listType !== 'set' && listType !== 'map') return;
  const isSet = listType === 'set';
  const keys = (items: readonly unknown[]) => items.map((item) => (isSet ? canonicalJson(item) : keyOf(node, item)));
  const seen = new Set<string>();
  for (const [index, key] of keys(value).entries()) {
    if (seen.has(key))
      walk.duplicates.push(causes.duplicate(`${path}[${index}]`, isSet ? value[index] : keyFields(node, value[index])));
    seen.add(key);
  }
}

const keyFields = (node: SchemaNode, item: unknown): JsonObject =>
  Object.fromEntries(mapKeysOf(node).map((key) => [key, isJsonObject(item) ? item[key] : undefined]));

function addObjectFaults(found: Cause[], node: SchemaNode, value: JsonObject, path: string): void {
  const { required = [], minProperties, maxProperties } = node.schema;
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
  for (const name of required) if (!Object.hasOwn(value, name)) found.push(causes.required(at(name)));
  const count = minProperties !== undefined || maxProperties !== undefined ? Object.keys(value).length : 0;
  if (minProperties !== undefined && count < minProperties) {
    found.push(causes.invalidValue(path, count, `${path} in body should have at least ${minProperties} properties`));
  }
  if (maxProperties !== undefined && count > maxProperties) found.push(causes.tooMany(path, count, maxProperties));
  if (!node.isEmbedded) return;
  for (const name of ['apiVersion', 'kind'] as const) {
    const text = value[name];
    if (text === undefined) found.push(causes.required(at(name)));
    else if (typeof text !== 'string') found.push(causes.invalidValue(at(name), text, 'must be a string'));
    else if (text === '') found.push(causes.invalidValue(at(name), text, 'must not be empty'));
    else if (name === 'kind') {
      const [why] = dns1035LabelErrors(text.toLowerCase());
      const detail = `may have mixed case, but should otherwise match: ${why}`;
      if (why !== undefined) found.push(causes.invalidValue(at(name), text, detail));
    } else if (text.split('/').length > 2) {
      found.push(causes.invalidValue(at(name), text, `unexpected GroupVersion string: ${text}`));
    }
  }
  if (value['metadata'] === undefined) return;
  const { value: meta, typeFaults } = decodeStrict(OBJECT_META, value['metadata']);
  const [fault] = typeFaults;
  if (fault !== undefined) found.push(causes.invalidValue(at('metadata'), value['metadata'], fault.message));
  const named: ObjectMeta = { ...meta, name: (meta['name'] as string | undefined) || 'fakename' };
  const rules = { namespaced: meta['namespace'] !== undefined, name: pathSegmentName };
  found.push(...validateMetadata(named, rules).map((cause) => ({ ...cause, field: at(cause.field ?? '') })));
}
