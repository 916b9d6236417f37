/**
 * ObjectMeta on creation and update
 * (staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go).
 */

import type { KubeObject, ObjectMeta, OwnerReference } from '../kinds/types.ts';
import { forbiddenField, immutable, invalidValue, nonNegative, required, tooLong, tooMany } from './causes.ts';
import { NAME_LENGTH_MAX } from './kubernetes.ts';
import type { Cause } from './status.ts';
import {
  byteLength,
  labelName,
  labelValueErrors,
  type NameRule,
  qualifiedNameErrors,
  tooLongText,
} from './validate-names.ts';

/** Total length of the keys and values of all annotations of an object. Bytes, as upstream (256 KiB). */
export const ANNOTATIONS_BYTES_MAX = 256 * 1024;

export interface MetadataRules {
  readonly namespaced: boolean;
  readonly name: NameRule;
}

export function validateLabels(labels: Readonly<Record<string, string>> | undefined, field: string): Cause[] {
  const causes: Cause[] = [];
  for (const [key, value] of Object.entries(labels ?? {})) {
    for (const error of qualifiedNameErrors(key)) causes.push(invalidValue(field, key, error));
    for (const error of labelValueErrors(value)) causes.push(invalidValue(field, value, error));
  }
  return causes;
}

export function validateAnnotations(annotations: Readonly<Record<string, string>> | undefined, field: string): Cause[] {
  const causes: Cause[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations ?? {})) {
    bytes += byteLength(key) + byteLength(value);
    // Upstream lowers the case of annotation keys before the check, but not of label keys.
    for (const error of qualifiedNameErrors(key.toLowerCase())) {
      causes.push(invalidValue(field, key, error));
    }
  }
  if (bytes > ANNOTATIONS_BYTES_MAX) causes.push(tooLong(field, ANNOTATIONS_BYTES_MAX));
  return causes;
}

export function validateFinalizers(finalizers: readonly string[] | undefined, field: string): Cause[] {
  const causes: Cause[] = [];
  for (const finalizer of finalizers ?? []) {
    for (const error of qualifiedNameErrors(finalizer)) causes.push(invalidValue(field, finalizer, error));
  }
  if (finalizers?.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    causes.push(invalidValue(field, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'));
  }
  return causes;
}

/**
 * Owners of an object, and the length of the uid of one. Not in upstream. Each is an item of the index of owners, also
 * in the transaction that deletes the object: one with more could not be deleted, and all of them may be replaced at
 * once. A longer uid does not fit a key of the store behind a due time (ticks/workload-due-store.ts). Bytes.
 */
const OWNERS_MAX = 40;
const OWNER_UID_BYTES_MAX = 900;

const versionOf = (apiVersion: string): string => apiVersion.split('/').at(-1) ?? '';

export function validateOwnerReferences(references: readonly OwnerReference[] | undefined, field: string): Cause[] {
  const causes: Cause[] = [];
  const count = references?.length ?? 0;
  if (count > OWNERS_MAX) return [tooMany(field, count, OWNERS_MAX)];
  let controller: string | undefined;
  for (const reference of references ?? []) {
    if (versionOf(reference.apiVersion ?? '') === '') {
      causes.push(invalidValue(`${field}.apiVersion`, reference.apiVersion ?? '', 'version must not be empty'));
    }
    for (const key of ['kind', 'name', 'uid'] as const) {
      if ((reference[key] ?? '') === '') causes.push(invalidValue(`${field}.${key}`, '', 'must not be empty'));
    }
    if (byteLength(reference.uid ?? '') > OWNER_UID_BYTES_MAX) {
      causes.push(tooLong(`${field}.uid`, OWNER_UID_BYTES_MAX));
    }
    if (reference.kind === 'Event' && (reference.apiVersion === 'v1' || reference.apiVersion?.startsWith('events.'))) {
      causes.push(
        invalidValue(field, reference, `${reference.apiVersion}, Kind=Event is disallowed from being an owner`),
      );
    }
    if (reference.controller === true) {
      if (controller === undefined) controller = reference.name;
      else {
        causes.push(
          invalidValue(
            field,
            references,
            `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${reference.name}`,
          ),
        );
      }
    }
  }
  return causes;
}

/** Upstream has no bound for the names of some kinds. Here no request finds an object by a longer name. */
function nameErrors(name: string, rules: MetadataRules): string[] {
  const errors = rules.name(name, false);
  return errors.length === 0 && byteLength(name) > NAME_LENGTH_MAX ? [tooLongText(NAME_LENGTH_MAX)] : errors;
}

/** Metadata of a new object, with the name that was generated from generateName. */
export function validateMetadata(meta: ObjectMeta, rules: MetadataRules): Cause[] {
  const causes: Cause[] = [];
  const generated = meta.generateName ?? '';
  if (generated !== '') {
    for (const error of rules.name(generated, true)) {
      causes.push(invalidValue('metadata.generateName', generated, error));
    }
  }
  const name = meta.name ?? '';
  if (name === '') causes.push(required('metadata.name', 'name or generateName is required'));
  else for (const error of nameErrors(name, rules)) causes.push(invalidValue('metadata.name', name, error));
  const namespace = meta.namespace ?? '';
  if (rules.namespaced) {
    if (namespace === '') causes.push(required('metadata.namespace'));
    else {
      for (const error of labelName(namespace, false)) {
        causes.push(invalidValue('metadata.namespace', namespace, error));
      }
    }
  } else if (namespace !== '') causes.push(forbiddenField('metadata.namespace', 'not allowed on this type'));
  causes.push(
    ...nonNegative('metadata.generation', meta.generation),
    ...validateLabels(meta.labels, 'metadata.labels'),
    ...validateAnnotations(meta.annotations, 'metadata.annotations'),
    ...validateOwnerReferences(meta.ownerReferences, 'metadata.ownerReferences'),
    ...validateFinalizers(meta.finalizers, 'metadata.finalizers'),
  );
  return causes;
}

/** Metadata of an update, compared with the stored metadata. The caller compares the resourceVersion. */
export function validateMetadataUpdate(next: ObjectMeta, old: ObjectMeta): Cause[] {
  const causes: Cause[] = [];
  if (old.deletionTimestamp !== undefined) {
    const kept = new Set(old.finalizers);
    const added = (next.finalizers ?? []).filter((finalizer) => !kept.has(finalizer)).sort();
    if (added.length > 0) {
      const list = added.map((finalizer) => JSON.stringify(finalizer)).join(', ');
      causes.push(
        forbiddenField(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`,
        ),
      );
    }
  }
  if ((next.generation ?? 0) < (old.generation ?? 0)) {
    causes.push(invalidValue('metadata.generation', next.generation ?? 0, 'must not be decremented'));
  }
  for (const key of [
    'name',
    'namespace',
    'uid',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  ] as const) {
    causes.push(...immutable(`metadata.${key}`, next[key], old[key]));
  }
  causes.push(
    ...validateLabels(next.labels, 'metadata.labels'),
    ...validateAnnotations(next.annotations, 'metadata.annotations'),
    ...validateOwnerReferences(next.ownerReferences, 'metadata.ownerReferences'),
  );
  return causes;
}

export function validateObjectMetadata(object: KubeObject, old: KubeObject | undefined, rules: MetadataRules): Cause[] {
  return old === undefined
    ? validateMetadata(object.metadata, rules)
    : validateMetadataUpdate(object.metadata, old.metadata);
}

/** The refusal of a PUT without resourceVersion, for resources with `unconditionalUpdate` false. */
export const resourceVersionRequired: Cause = {
  reason: 'FieldValueInvalid',
  message: 'Invalid value: 0x0: must be specified for an update',
  field: 'metadata.resourceVersion',
};
