import { describe, expect, it } from 'vitest';
import type { ObjectMeta } from '../kinds/types.ts';
import { causeText } from './status.ts';
import {
  generateName,
  labelErrors,
  labelValueErrors,
  pathSegmentName,
  qualifiedNameErrors,
  subdomainErrors,
  subdomainName,
  validateMetadata,
  validateMetadataUpdate,
} from './validate-metadata.ts';

describe('names of objects', () => {
  it.each(['a', 'ab', 'a1', 'a-1', 'a--1--2--b', '0', '01', '1a', '1-a'])('VN-01 accepts %s', (name) => {
    expect(subdomainErrors(name)).toEqual([]);
  });

  it('VN-03 takes 253 characters and no more', () => {
    expect(subdomainErrors('a'.repeat(253))).toEqual([]);
    expect(subdomainErrors('a'.repeat(254))).toEqual(['must be no more than 253 characters']);
  });

  it.each(['-', 'a-', '-a', '1-', '-1', '_', 'a_', 'a_b', '1_2', '', 'a..b', '.a', 'a.', 'A', 'a b', 'a\n'])(
    'VN-05 refuses %j',
    (name) => {
      expect(subdomainErrors(name)).toHaveLength(1);
    },
  );

  it('VN-07 sets no bound on a dot-separated part', () => {
    expect(subdomainErrors(`${'a'.repeat(64)}.a`)).toEqual([]);
  });

  it('explains itself as an API server does', () => {
    expect(subdomainErrors('Bad_Name')).toEqual([
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ]);
    expect(labelValueErrors('b@d')).toEqual([
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ]);
  });

  it('bounds labels to 63 characters without dots', () => {
    expect(labelErrors('a'.repeat(63))).toEqual([]);
    expect(labelErrors('a'.repeat(64))).toHaveLength(1);
    expect(labelErrors('a.b')).toHaveLength(1);
  });

  it('checks the prefix and the name of keys', () => {
    expect(qualifiedNameErrors('example.org/Some_key.1')).toEqual([]);
    expect(qualifiedNameErrors('/x')).toEqual(['prefix part must be non-empty']);
    expect(qualifiedNameErrors('')).toEqual([
      'name part must be non-empty',
      expect.stringContaining('name part must consist of'),
    ]);
    expect(qualifiedNameErrors('a/b/c')).toEqual([expect.stringMatching(/^a qualified name must consist of/)]);
    expect(qualifiedNameErrors('example.org/Ünder')).toHaveLength(1);
    const prefixOf = (...lengths: readonly number[]) => lengths.map((length) => 'a'.repeat(length)).join('.');
    expect(qualifiedNameErrors(`${prefixOf(63, 63, 63, 61)}/x`)).toEqual([]);
    expect(qualifiedNameErrors(`${prefixOf(63, 63, 63, 62)}/x`)).toEqual([
      'prefix part must be no more than 253 characters',
    ]);
  });

  it('lets a generateName end in a dash', () => {
    expect(subdomainName('web-', true)).toEqual([]);
    expect(subdomainName('web-', false)).toHaveLength(1);
  });

  it('lets events be named by anything that fits into a path', () => {
    expect(pathSegmentName('kw-1.17a0b', false)).toEqual([]);
    expect(pathSegmentName('a/b', false)).toEqual(["may not contain '/'"]);
    expect(pathSegmentName('..', false)).toEqual(["may not be '..'"]);
  });

  it('generates names that stay within 63 characters', () => {
    expect(generateName('web-', () => 0)).toBe('web-bbbbb');
    expect(generateName('a'.repeat(80), () => 0.999)).toHaveLength(63);
  });
});

const clusterScoped = { namespaced: false, name: subdomainName };
const namespaced = { namespaced: true, name: subdomainName };
const created = (meta: ObjectMeta, rules = clusterScoped): string[] => validateMetadata(meta, rules).map(causeText);
const updated = (next: ObjectMeta, old: ObjectMeta): string[] => validateMetadataUpdate(next, old).map(causeText);

const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true };

describe('metadata of a new object', () => {
  it('needs a name', () => {
    expect(created({ name: '' })).toEqual(['metadata.name: Required value: name or generateName is required']);
  });

  it('needs a namespace exactly when the resource is namespaced', () => {
    expect(created({ name: 'a' }, namespaced)).toEqual(['metadata.namespace: Required value']);
    expect(created({ name: 'a', namespace: 'b' })).toEqual(['metadata.namespace: Forbidden: not allowed on this type']);
    expect(created({ name: 'a', namespace: 'x.y' }, namespaced)).toEqual([
      expect.stringContaining('metadata.namespace: Invalid value: "x.y": a lowercase RFC 1123 label'),
    ]);
  });

  it('complains of keys and values of labels', () => {
    expect(created({ name: 'a', labels: { ok: 'b@d', 'bad key!': 'x' } })).toEqual([
      expect.stringContaining('metadata.labels: Invalid value: "b@d": a valid label'),
      expect.stringContaining('metadata.labels: Invalid value: "bad key!": name part must consist'),
    ]);
  });

  it('bounds all annotations together to 256 KiB', () => {
    const annotations = { k: 'x'.repeat(256 * 1024 - 1) };
    expect(created({ name: 'a', annotations })).toEqual([]);
    expect(created({ name: 'a', annotations: { ...annotations, l: '' } })).toEqual([
      'metadata.annotations: Too long: may not be more than 262144 bytes',
    ]);
    expect(created({ name: 'a', annotations: { 'Example.ORG/Key': 'v' } })).toEqual([]);
  });

  it('wants whole owner references and one controller', () => {
    expect(created({ name: 'a', ownerReferences: [owner] })).toEqual([]);
    expect(created({ name: 'a', ownerReferences: [{ ...owner, uid: '' }] })).toEqual([
      'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
    ]);
    expect(created({ name: 'a', ownerReferences: [owner, { ...owner, name: 'other' }] })).toEqual([
      expect.stringContaining('Only one reference can have Controller set to true'),
    ]);
  });

  it('has a name that a request may have, of every kind', () => {
    const named = (name: string) => created({ name }, { namespaced: false, name: pathSegmentName });
    expect(named('x'.repeat(253))).toEqual([]);
    expect(named('\u20ac'.repeat(85))).toEqual([expect.stringContaining('must be no more than 253 characters')]);
    expect(created({ name: 'x'.repeat(254) })).toHaveLength(1);
  });

  it('has at most forty owners, with uids that fit a key', () => {
    const owners = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ ...owner, controller: false, uid: `u${index}` }));
    expect(created({ name: 'a', ownerReferences: owners(40) })).toEqual([]);
    expect(created({ name: 'a', ownerReferences: owners(41) })).toEqual([
      'metadata.ownerReferences: Too many: 41: must have at most 40 items',
    ]);
    expect(created({ name: 'a', ownerReferences: [{ ...owner, uid: '\u20ac'.repeat(301) }] })).toEqual([
      'metadata.ownerReferences.uid: Too long: may not be more than 900 bytes',
    ]);
  });

  it('wants finalizers to be qualified names', () => {
    expect(created({ name: 'a', finalizers: ['example.org/hold'] })).toEqual([]);
    expect(created({ name: 'a', finalizers: ['b@d'] })).toHaveLength(1);
    expect(created({ name: 'a', finalizers: ['orphan', 'foregroundDeletion'] })).toHaveLength(1);
  });
});

describe('metadata of an update', () => {
  const old: ObjectMeta = { name: 'a', uid: 'u', creationTimestamp: '2001-02-03T04:05:06Z', generation: 2 };

  it.each(['name', 'uid', 'creationTimestamp', 'namespace'] as const)('may not change %s', (field) => {
    expect(updated({ ...old, [field]: 'other' }, old)).toEqual([
      `metadata.${field}: Invalid value: "other": field is immutable`,
    ]);
  });

  it('may not go back in generation', () => {
    expect(updated({ ...old, generation: 1 }, old)).toEqual([
      'metadata.generation: Invalid value: 1: must not be decremented',
    ]);
  });

  it('may remove finalizers of a terminating object, but add none', () => {
    const going = { ...old, deletionTimestamp: 't', finalizers: ['example.org/hold'] };
    expect(updated({ ...going, finalizers: [] }, going)).toEqual([]);
    expect(updated({ ...going, finalizers: ['example.org/hold', 'example.org/more'] }, going)).toEqual([
      'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.org/more"}',
    ]);
  });
});
