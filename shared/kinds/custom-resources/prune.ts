/**
 * Which members of a custom resource are kept, and which values are filled in. Pure.
 *
 * Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting}.
 */

import { DECODE_FAULTS_MAX, decodeStrict, type TypeFault } from '../../kubernetes/decode.ts';
import { cloneJson, isJsonObject, type JsonObject, setMember } from '../../kubernetes/json.ts';
import { upstream } from '../upstream.ts';
import { nodeOfMember, type SchemaNode, TYPE_AND_METADATA } from './schema-node.ts';

export const OBJECT_META = upstream.struct('meta/v1.ObjectMeta');

/**
 * A copy of the value without members that the schema does not know. Nulls that the schema does not permit are left
 * out, unless a default replaces them.
 *
 * @param unknown receives the paths of the members that were left out: `spec.rules[0].colour`
 * @param typeFaults receives those of metadata within embedded resources. Absent: its unknown fields are not reported
 *   either, as in defaults
 * @param keepsNulls leaves those nulls too. An apply does: validation refuses them
 */
export function pruned(
  node: SchemaNode,
  value: unknown,
  path: string,
  unknown: string[],
  typeFaults?: TypeFault[],
  keepsNulls = false,
): unknown {
  if (Array.isArray(value)) {
    const { items } = node;
    return items === undefined
      ? cloneJson(value)
      : value.map((item, index) => pruned(items, item, `${path}[${index}]`, unknown, typeFaults, keepsNulls));
  }
  if (!isJsonObject(value)) return value;
  const kept: JsonObject = {};
  const isUntyped = node.types.length === 0 && node.properties.size === 0;
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const place = path === '' ? key : `${path}.${key}`;
    const known = nodeOfMember(node, key);
    const isImplied = (path === '' || node.isEmbedded) && TYPE_AND_METADATA.has(key);
    if (node.isEmbedded && key === 'metadata') {
      const read = decodeStrict(OBJECT_META, member);
      const [fault] = read.typeFaults;
      if (fault !== undefined) {
        const message = `${place}: Invalid value: ${JSON.stringify(member)}: ${fault.message}`;
        typeFaults?.push({ path: place, message });
      } else if (typeFaults !== undefined) {
        const fields = read.unknownFields.slice(0, DECODE_FAULTS_MAX - unknown.length);
        unknown.push(...fields.map((field) => `${place}.${field}`));
      }
      // Decoded metadata has one, null if it was absent.
      if (read.value['creationTimestamp'] === null) delete read.value['creationTimestamp'];
      kept[key] = fault === undefined ? read.value : cloneJson(member);
    } else if (isImplied || known === 'any' || (isUntyped && node.keepsUnknown)) {
      setMember(kept, key, cloneJson(member));
    } else if (known === undefined) {
      if (unknown.length < DECODE_FAULTS_MAX) unknown.push(place);
    } else if (member !== null || keepsNulls || known.schema.nullable === true || known.schema.default !== undefined) {
      setMember(kept, key, pruned(known, member, place, unknown, typeFaults, keepsNulls));
    }
  }
  return kept;
}

/** The value with defaults where members are absent. Parts without a default are not copied. */
export function defaulted(node: SchemaNode, value: unknown): unknown {
  if (!node.hasDefaults) return value;
  if (Array.isArray(value)) {
    const { items } = node;
    return items?.hasDefaults === true ? value.map((item) => defaulted(items, item)) : value;
  }
  if (!isJsonObject(value)) return value;
  const filled: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    const known = node.properties.get(key) ?? node.additional;
    setMember(filled, key, typeof known === 'object' ? defaultedMember(known, member) : member);
  }
  for (const [name, { schema }] of node.properties) {
    if (schema.default === undefined || Object.hasOwn(filled, name)) continue;
    setMember(filled, name, defaulted(node.properties.get(name)!, cloneJson(schema.default)));
  }
  return filled;
}

function defaultedMember(node: SchemaNode, member: unknown): unknown {
  const isReplaced = member === null && node.schema.nullable !== true && node.schema.default !== undefined;
  return defaulted(node, isReplaced ? cloneJson(node.schema.default) : member);
}
