/** What the value of a mutation makes of an object. */

import { defined } from '../defined.ts';
import type { KubeObject, ObjectMeta } from '../kinds/types.ts';
import { durationText, timestampText } from '../kubernetes/cel/times.ts';
import {
  CelDuration,
  CelMap,
  CelMessage,
  CelOptional,
  CelTimestamp,
  CelUint,
  type CelValue,
  isList,
} from '../kubernetes/cel/values.ts';
import { applyServerSide } from '../kubernetes/patch/apply.ts';
import { applyJsonPatch } from '../kubernetes/patch/json-patch.ts';
import type { Writer } from '../kubernetes/patch/managed-fields.ts';
import type { StructSchema } from '../kubernetes/schema.ts';

/** A value as JSON. undefined: it is none. */
function jsonOf(value: CelValue): unknown {
  switch (typeof value) {
    case 'bigint':
      return Number(value);
    case 'object':
      break;
    default:
      return value;
  }
  if (value === null) return null;
  if (isList(value)) return value.map(jsonOf);
  if (value instanceof CelMap) {
    return Object.fromEntries(value.keys().map((key) => [String(key), jsonOf(value.get(key) as CelValue)]));
  }
  if (value instanceof CelMessage) {
    return Object.fromEntries([...value.fields].map(([name, field]) => [name, jsonOf(field)]));
  }
  if (value instanceof CelUint) return Number(value.value);
  if (value instanceof CelTimestamp) return timestampText(value);
  if (value instanceof CelDuration) return durationText(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  return value instanceof CelOptional && value.value !== undefined ? jsonOf(value.value) : undefined;
}

/** The fields that it owns are not kept. */
const NOBODY: Writer = { manager: 'admission', apiVersion: 'v1', subresource: '', time: '1970-01-01T00:00:00Z' };

/** A mutation that cannot be made. */
export class MutationFault extends Error {}

/**
 * An ApplyConfiguration is merged as server-side apply merges: lists with keys by their items, atomic ones whole. It
 * removes nothing. @throws MutationFault
 */
export function withConfiguration(schema: StructSchema, object: KubeObject, value: CelValue): KubeObject {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  const result = applyServerSide({
    schema,
    live: { ...object, metadata },
    applied: jsonOf(value),
    writer: NOBODY,
    force: true,
  });
  if (result.kind !== 'applied') throw new MutationFault(`invalid ApplyConfiguration: ${result.message}`);
  const [unknown] = result.unknownFields;
  if (unknown !== undefined) throw new MutationFault(`invalid ApplyConfiguration: unknown field "${unknown}"`);
  return withIdentityOf(object, result.object as KubeObject & object);
}

/** @throws MutationFault */
export function withJsonPatch(object: KubeObject, value: CelValue): KubeObject {
  const result = applyJsonPatch(object as never, jsonOf(value));
  if (result.kind !== 'patched') throw new MutationFault(`invalid JSONPatch: ${result.message}`);
  return withIdentityOf(object, result.object as unknown as KubeObject);
}

/** What the server sets: a mutation does not change it. */
const OWN_METADATA = [
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'generation',
  'managedFields',
  'resourceVersion',
  'selfLink',
  'uid',
] as const;

/** A mutation cannot make it another object, and does not own fields. @throws MutationFault */
export function withIdentityOf({ apiVersion, kind, metadata: old }: KubeObject, next: KubeObject): KubeObject {
  const metadata: Partial<Record<string, unknown>> & ObjectMeta = { ...next.metadata };
  const { name = '', namespace = '' } = metadata;
  if (name !== (old.name ?? '') || namespace !== (old.namespace ?? '')) {
    throw new MutationFault('must mutate neither metadata.name nor metadata.namespace');
  }
  for (const field of OWN_METADATA) {
    if (old[field] === undefined) delete metadata[field];
    else metadata[field] = old[field] as never;
  }
  return { ...next, ...defined({ apiVersion, kind }), metadata };
}
