import { describe, expect, it } from 'vitest';
import {
  generateName,
  labelErrors,
  labelValueErrors,
  pathSegmentName,
  qualifiedNameErrors,
  subdomainErrors,
  subdomainName,
} from './validate-names.ts';

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
