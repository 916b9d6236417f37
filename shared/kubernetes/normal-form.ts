/**
 * The form in which objects are stored: what an API server written in Go prints after decoding the same body. Nulls and
 * empty optional fields are absent. A write without a change is then equal to the stored object.
 */

import type { KubeObject, ObjectMeta, OwnerReference } from '../kinds/types.ts';
import { sameJson } from './causes.ts';
import { isJsonObject, type JsonObject, setMember } from './json.ts';

export type Json = JsonObject;

export { isJsonObject as isRecord } from './json.ts';

/** A field as a record; {} when it is absent or something else. */
export const recordOf = (value: unknown): Json => (isJsonObject(value) ? value : {});
/** A field as a list; [] when it is absent or something else. */
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
/** A list of records; anything else in it is left out. */
export const recordsOf = (value: unknown): Json[] => listOf(value).filter(isJsonObject);
/** A field as text; '' when it is absent or something else. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
/** A field as a number; undefined when it is absent or something else. */
export const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** Without null fields, at any depth. Nulls in lists stay, because validation must report them. */
export function withoutNulls<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item)) as T;
  if (!isJsonObject(value)) return value;
  const kept: Json = {};
  for (const [key, item] of Object.entries(value)) {
    if (item !== null && item !== undefined) setMember(kept, key, withoutNulls(item));
  }
  return kept as T;
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  value === false ||
  value === 0 ||
  (Array.isArray(value) && value.length === 0) ||
  (isJsonObject(value) && Object.keys(value).length === 0);

/** Without those of the named fields that are empty: '', 0, false, [] or {}. */
export function withoutEmpty<T extends object>(record: T, ...fields: readonly string[]): T {
  const entries = Object.entries(record);
  const kept = entries.filter(([key, value]) => !(fields.includes(key) && isEmpty(value)));
  return kept.length === entries.length ? record : (Object.fromEntries(kept) as T);
}

export function tidyMetadata(meta: ObjectMeta): ObjectMeta {
  return withoutEmpty(
    withoutNulls(meta),
    'generateName',
    'namespace',
    'labels',
    'annotations',
    'finalizers',
    'ownerReferences',
    'resourceVersion',
    'uid',
    'selfLink',
    'creationTimestamp',
    'deletionTimestamp',
    'generation',
  );
}

/**
 * Metadata of an update. Fields that only the server sets are copied from the stored object. The uid is copied only if
 * none was sent; validation refuses a wrong one.
 */
export function inheritMetadata(next: ObjectMeta, old: ObjectMeta): ObjectMeta {
  const meta: ObjectMeta = { ...tidyMetadata(next) };
  for (const key of ['generation', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    if (old[key] === undefined) delete meta[key];
    else Object.assign(meta, { [key]: old[key] });
  }
  if (meta.uid === undefined && old.uid !== undefined) meta.uid = old.uid;
  if (meta.name === undefined && old.name !== undefined) meta.name = old.name;
  if (meta.namespace === undefined && old.namespace !== undefined) meta.namespace = old.namespace;
  return meta;
}

/** Metadata of a creation: without generation and deletion, whatever the client sent. */
export function freshMetadata(meta: ObjectMeta): ObjectMeta {
  const {
    generation: _generation,
    deletionTimestamp: _deleted,
    deletionGracePeriodSeconds: _grace,
    ...fresh
  } = tidyMetadata(meta);
  return fresh;
}

/** The generation after an update: one more when the spec is no longer the same. */
export function nextGeneration(next: KubeObject, old: KubeObject, { countsAnnotations = false } = {}): number {
  const isSame =
    sameJson(next.spec, old.spec) &&
    (!countsAnnotations || sameJson(next.metadata.annotations ?? {}, old.metadata.annotations ?? {}));
  return (old.metadata.generation ?? 0) + (isSame ? 0 : 1);
}

/** kind and apiVersion first, as clients print objects; both are filled in where the body left them out. */
export function typed(group: string, version: string, kind: string, object: KubeObject): KubeObject {
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  return { apiVersion: apiVersionOf({ group, version }), kind, ...rest, metadata: object.metadata ?? {} };
}

/** `v1`, or `<group>/<version>`. '' is the core group. */
export const apiVersionOf = ({ group, version }: { readonly group: string; readonly version: string }): string =>
  group === '' ? version : `${group}/${version}`;

/** The owner that controls an object; undefined without one. */
export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  (metadata.ownerReferences ?? []).find(({ controller }) => controller === true);
