/**
 * ObjectMeta on creation and update (staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go), after rules for
 * names, labels and similar texts. Those return the error messages, none if the text is valid
 * (staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go).
 */

import { PROBE_LEASE } from '../access/probe-identity.ts';
import type { KubeObject, ObjectMeta, OwnerReference } from '../kinds/types.ts';
import { utf8Bytes } from '../text.ts';
import { forbiddenField, immutable, invalidValue, nonNegative, required, tooLong, tooMany } from './causes.ts';
import { NAME_LENGTH_MAX } from './kubernetes.ts';
import type { Cause } from './status.ts';

const LABEL_FORMAT = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN_FORMAT = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*';
const QUALIFIED_FORMAT = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE_FORMAT = `(${QUALIFIED_FORMAT})?`;
const ENV_VAR_FORMAT = '[-._a-zA-Z][-._a-zA-Z0-9]*';

// The formats above are only quoted in messages. These match the same texts without nested repetition, which would
// make a long input expensive.
const label = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const qualifiedPart = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const envVar = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;

const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const QUALIFIED_TEXT =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const LABEL_VALUE_TEXT = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`;

const DNS_LABEL_MAX = 63;
const QUALIFIED_NAME_MAX = 63;
const LABEL_VALUE_MAX = 63;
const PORT_NAME_MAX = 15;

/** Length in UTF-8 bytes. Kubernetes counts lengths in bytes. */
export const byteLength = utf8Bytes;

export const tooLongText = (max: number): string => `must be no more than ${max} characters`;

export function formatText(text: string, format: string, ...examples: readonly string[]): string {
  if (examples.length === 0) return `${text} (regex used for validation is '${format}')`;
  const shownExamples = examples.map((example) => `'${example}', `).join(' or ');
  return `${text} (e.g. ${shownExamples}regex used for validation is '${format}')`;
}

/** DNS-1123 label: 1 to 63 characters without dots. Namespaces, container and volume names. */
export function labelErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > DNS_LABEL_MAX) errors.push(tooLongText(DNS_LABEL_MAX));
  if (!label.test(value)) errors.push(formatText(LABEL_TEXT, LABEL_FORMAT, 'my-name', '123-abc'));
  return errors;
}

const DNS_1035_TEXT = formatText(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  '[a-z]([-a-z0-9]*[a-z0-9])?',
  'my-name',
  'abc-123',
);

/** DNS-1035 label: a label that starts with a letter. Services, and the names of custom resources. */
export function dns1035LabelErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > DNS_LABEL_MAX) errors.push(tooLongText(DNS_LABEL_MAX));
  if (!/^[a-z](?:[-a-z0-9]*[a-z0-9])?$/.test(value)) errors.push(DNS_1035_TEXT);
  return errors;
}

/** DNS-1123 subdomain: 1 to 253 characters; a dot-separated part may have any length. Most object names. */
export function subdomainErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > NAME_LENGTH_MAX) errors.push(tooLongText(NAME_LENGTH_MAX));
  if (!value.split('.').every((part) => label.test(part))) {
    errors.push(formatText(SUBDOMAIN_TEXT, SUBDOMAIN_FORMAT, 'example.com'));
  }
  return errors;
}

/** Nearly all: without a prefix, or with one of at most three short labels. Others need several times as long. */
const usualQualified =
  /^(?:[a-z0-9][-a-z0-9]{0,62}(?<!-)(?:\.[a-z0-9][-a-z0-9]{0,62}(?<!-)){0,2}\/)?[A-Za-z0-9][-A-Za-z0-9_.]{0,62}(?<![-_.])$/;

/** `[prefix/]name`: keys of labels, annotations and taints, finalizers, condition types. */
export function qualifiedNameErrors(value: string): string[] {
  if (usualQualified.test(value)) return [];
  const errors: string[] = [];
  const parts = value.split('/');
  const text = (): string => formatText(QUALIFIED_TEXT, QUALIFIED_FORMAT, 'MyName', 'my.name', '123-abc');
  if (parts.length > 2) {
    return [`a qualified name ${text()} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const name = parts.at(-1) ?? '';
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '') errors.push('prefix part must be non-empty');
    else errors.push(...subdomainErrors(prefix).map((error) => `prefix part ${error}`));
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (byteLength(name) > QUALIFIED_NAME_MAX) errors.push(`name part ${tooLongText(QUALIFIED_NAME_MAX)}`);
  if (!qualifiedPart.test(name)) errors.push(`name part ${text()}`);
  return errors;
}

/** Values of labels and taints. */
export function labelValueErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > LABEL_VALUE_MAX) errors.push(tooLongText(LABEL_VALUE_MAX));
  if (value !== '' && !qualifiedPart.test(value)) {
    errors.push(formatText(LABEL_VALUE_TEXT, LABEL_VALUE_FORMAT, 'MyValue', 'my_value', '12345'));
  }
  return errors;
}

/** Names of environment variables, relaxed as in a pod's env. */
export function envVarErrors(value: string): string[] {
  const errors: string[] = [];
  if (!envVar.test(value)) {
    errors.push(
      formatText(
        "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
        ENV_VAR_FORMAT,
        'my.env-name',
        'MY_ENV.NAME',
        'MyEnvName1',
      ),
    );
  }
  if (value === '.') errors.push("must not be '.'");
  else if (value === '..') errors.push("must not be '..'");
  else if (value.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}

/** Names of container ports, and of ports in probes: IANA service names. */
export function portNameErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > PORT_NAME_MAX) errors.push(tooLongText(PORT_NAME_MAX));
  if (!/^[-a-z0-9]+$/.test(value))
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  if (!/[a-z]/.test(value)) errors.push('must contain at least one letter (a-z)');
  if (value.includes('--')) errors.push('must not contain consecutive hyphens');
  if (value.startsWith('-') || value.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

const PATH_FORMAT = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const path = /^[-A-Za-z0-9/._~%!$&'()*+,;=:]+$/;

/** `domain/path`, such as the name of a controller. Not empty. */
export function domainPathErrors(value: string): string[] {
  const slash = value.indexOf('/');
  const rest = value.slice(slash + 1);
  if (slash < 1 || rest === '') return ['must be a domain-prefixed path (such as "acme.io/foo")'];
  const errors = subdomainErrors(value.slice(0, slash));
  return path.test(rest) ? errors : [...errors, formatText('Invalid path', PATH_FORMAT)];
}

/** Names of HTTP headers. */
export const httpHeaderErrors = (value: string): string[] =>
  /^[-A-Za-z0-9]+$/.test(value)
    ? []
    : [
        formatText(
          "a valid HTTP header must consist of alphanumeric characters or '-'",
          '[-A-Za-z0-9]+',
          'X-Header-Name',
        ),
      ];

const CONFIG_KEY_MAX = 253;

/** Keys of ConfigMaps and Secrets. */
export function configKeyErrors(key: string): string[] {
  const errors: string[] = [];
  if (key.length > CONFIG_KEY_MAX) errors.push(tooLongText(CONFIG_KEY_MAX));
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    errors.push(
      formatText(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        '[-._a-zA-Z0-9]+',
        'key.name',
        'KEY_NAME',
        'key-name',
      ),
    );
  }
  if (key === '.') errors.push("must not be '.'");
  else if (key === '..') errors.push("must not be '..'");
  else if (key.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}

/** A rule for names. `prefix`: the text is a generateName, to which a suffix will be added. */
export type NameRule = (name: string, prefix: boolean) => string[];

// A generateName may end with a dash, because a suffix follows. A name may not.
const withoutTrailingDash = (name: string): string => (name.endsWith('-') ? `${name.slice(0, -1)}a` : name);

export const subdomainName: NameRule = (name, prefix) => subdomainErrors(prefix ? withoutTrailingDash(name) : name);
/** Name of a Node or NodeIdentity: a subdomainName, but not the name of the probe's Lease. */
export const nodeName: NameRule = (name, prefix) =>
  !prefix && name === PROBE_LEASE ? ["is the name of the cluster's own probe"] : subdomainName(name, prefix);
export const nodeNameErrors = (name: string): string[] => nodeName(name, false);
export const labelName: NameRule = (name, prefix) => labelErrors(prefix ? withoutTrailingDash(name) : name);

/** Leases and events: whatever can stand as one segment of a path. */
export const pathSegmentName: NameRule = (name, prefix) => {
  if (!prefix && (name === '.' || name === '..')) return [`may not be '${name}'`];
  return ['/', '%'].filter((part) => name.includes(part)).map((part) => `may not contain '${part}'`);
};

/** The same of a name that nothing is added to. */
export const pathSegmentErrors = (name: string): string[] => pathSegmentName(name, false);

/** Characters of the suffix, and of the prefix that is kept: together at most 63. */
const GENERATED_SUFFIX_LENGTH = 5;
const GENERATE_NAME_KEPT = 63 - GENERATED_SUFFIX_LENGTH;
/** Without vowels and look-alike characters, so no suffix forms a word. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

/** A name from a generateName: prefix and five characters. `fraction` yields numbers in [0, 1). */
export function generateName(prefix: string, fraction: () => number): string {
  let suffix = '';
  for (let index = 0; index < GENERATED_SUFFIX_LENGTH; index += 1) {
    suffix += SUFFIX_ALPHABET[Math.floor(fraction() * SUFFIX_ALPHABET.length)] ?? 'b';
  }
  return prefix.slice(0, GENERATE_NAME_KEPT) + suffix;
}

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
 * once. A longer uid does not fit a key of the store behind a due time (ticks/due-rows.ts). Bytes.
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
