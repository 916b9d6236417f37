/** Constraints of ObjectMeta, which hold for every kind (staging/src/k8s.io/apimachinery/pkg/api/validation). */
import { at, type Constraint, invalid, leftOut, on, required } from './constraint.ts';

/** Form of the names of a kind. */
export type NameForm = 'subdomain' | 'label' | 'path segment' | 'service';

const NAMES: Readonly<Record<NameForm, readonly [rule: string, wrong: string, text: string][]>> = {
  subdomain: [
    ['a DNS subdomain', 'Not_Valid', ''],
    ['at most 253 characters', 'a'.repeat(254), 'must be no more than 253 characters'],
  ],
  label: [
    ['a DNS label', 'a.b', ''],
    ['at most 63 characters', 'a'.repeat(64), 'must be no more than 63 characters'],
  ],
  'path segment': [
    ['no percent sign', 'a%b', "may not contain '%'"],
    ['not .', '.', "may not be '.'"],
  ],
  service: [
    ['a DNS label that starts with a letter', '1a', ''],
    ['at most 63 characters', 'a'.repeat(64), 'must be no more than 63 characters'],
  ],
};

const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };
const KEY_TEXT =
  "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

export const labels = (field: string): Constraint[] => [
  at(field, 'keys are qualified names', { 'a b': 'x' }, invalid(KEY_TEXT)),
  at(field, 'the prefix of a key is a DNS subdomain', { 'A/b': 'x' }, invalid()),
  at(
    field,
    'a name part has at most 63 characters',
    { ['k'.repeat(64)]: 'x' },
    invalid('name part must be no more than 63 characters'),
  ),
  at(field, 'values have the form of label values', { a: 'x y' }, invalid()),
  at(field, 'values have at most 63 characters', { a: 'v'.repeat(64) }, invalid('must be no more than 63 characters')),
];

export const annotations = (field: string): Constraint[] => [
  at(field, 'keys are qualified names', { 'a b': 'x' }, invalid(KEY_TEXT)),
];

export const metadataConstraints = (form: NameForm): Constraint[] => [
  on(
    'metadata.name',
    'set, or made from generateName',
    { 'metadata.name': undefined },
    required('name or generateName is required'),
  ),
  ...NAMES[form].map(([rule, wrong, text]) => at('metadata.name', rule, wrong, invalid(text))),
  ...NAMES[form].slice(0, 1).map(([rule, wrong]) => at('metadata.generateName', rule, wrong, invalid())),
  ...labels('metadata.labels'),
  ...annotations('metadata.annotations'),
  on(
    'metadata.ownerReferences',
    'an apiVersion',
    { 'metadata.ownerReferences': [{ ...owner, apiVersion: '' }] },
    invalid('version must not be empty', 'metadata.ownerReferences.apiVersion'),
  ),
  ...['kind', 'name', 'uid'].map((key) =>
    on(
      'metadata.ownerReferences',
      `a ${key}`,
      { 'metadata.ownerReferences': [{ ...owner, [key]: '' }] },
      invalid('must not be empty', `metadata.ownerReferences.${key}`),
    ),
  ),
  on(
    'metadata.ownerReferences',
    'an Event owns nothing',
    { 'metadata.ownerReferences': [{ ...owner, kind: 'Event' }] },
    invalid('is disallowed from being an owner'),
  ),
  on(
    'metadata.ownerReferences',
    'at most one controller',
    {
      'metadata.ownerReferences': [
        { ...owner, controller: true },
        { ...owner, name: 'q', controller: true },
      ],
    },
    invalid('Only one reference can have Controller set to true. Found "true" in references for p and q'),
  ),
  at('metadata.finalizers', 'qualified names', ['a b'], invalid(KEY_TEXT)),
  at(
    'metadata.finalizers',
    'not both orphan and foregroundDeletion',
    ['orphan', 'foregroundDeletion'],
    invalid('finalizer orphan and foregroundDeletion cannot be both set'),
  ),
  ...labels('metadata.labels')
    .slice(0, 1)
    .map((each) => ({ ...each, on: 'update' as const, rule: 'the same for updates' })),
  ...annotations('metadata.annotations').map((each) => ({
    ...each,
    on: 'update' as const,
    rule: 'the same for updates',
  })),
  leftOut('metadata.uid', 'immutable', 'another uid in a PUT is a conflict (409), before validation'),
  leftOut('metadata.annotations', 'at most 256 KiB', 'objects have at most 100,000 characters (413)'),
  leftOut(
    'metadata.managedFields',
    'known operation, version, field type and manager',
    'managedFields of a request are replaced by the server',
  ),
  leftOut(
    'metadata.generation',
    'at least 0, never decremented',
    'the server sets it and ignores the value of a request',
  ),
  leftOut(
    'metadata.creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds',
    'immutable',
    'the server sets them and ignores the values of a request',
  ),
];
