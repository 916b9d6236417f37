import { describe, expect, it } from 'vitest';
import type { PolicyRule } from '../types.ts';
import { coversPath, FULL_AUTHORITY, missingRules, ruleAllows, ruleLines } from './policy-rule.ts';

const ask = (verb: string, group: string, resource: string, more: { subresource?: string; name?: string } = {}) => ({
  verb,
  group,
  resource,
  subresource: '',
  name: '',
  ...more,
});
const rule = (verbs: string[], apiGroups: string[], resources: string[], resourceNames: string[] = []): PolicyRule => ({
  verbs,
  apiGroups,
  resources,
  resourceNames,
});

describe('ruleAllows', () => {
  it.each([
    ['the resource', rule(['get'], [''], ['pods']), ask('get', '', 'pods'), true],
    ['another verb', rule(['get'], [''], ['pods']), ask('list', '', 'pods'), false],
    ['another group', rule(['get'], ['apps'], ['pods']), ask('get', '', 'pods'), false],
    ['the core group is not *', rule(['get'], [''], ['*']), ask('get', 'apps', 'deployments'), false],
    ['all groups', rule(['*'], ['*'], ['*']), ask('get', 'apps', 'deployments', { subresource: 'scale' }), true],
    [
      'a subresource is not its resource',
      rule(['get'], [''], ['pods']),
      ask('get', '', 'pods', { subresource: 'log' }),
      false,
    ],
    ['a resource is not its subresource', rule(['get'], [''], ['pods/log']), ask('get', '', 'pods'), false],
    ['its subresource', rule(['get'], [''], ['pods/log']), ask('get', '', 'pods', { subresource: 'log' }), true],
    [
      'a subresource of all',
      rule(['get'], ['*'], ['*/scale']),
      ask('get', 'apps', 'deployments', { subresource: 'scale' }),
      true,
    ],
    [
      'another subresource of all',
      rule(['get'], ['*'], ['*/scale']),
      ask('get', 'apps', 'deployments', { subresource: 'status' }),
      false,
    ],
    ['*/scale is not the resource', rule(['get'], ['*'], ['*/scale']), ask('get', 'apps', 'deployments'), false],
    ['pods/* is no pattern', rule(['get'], [''], ['pods/*']), ask('get', '', 'pods', { subresource: 'log' }), false],
    ['a name', rule(['get'], [''], ['pods'], ['a']), ask('get', '', 'pods', { name: 'a' }), true],
    ['another name', rule(['get'], [''], ['pods'], ['a']), ask('get', '', 'pods', { name: 'b' }), false],
    ['a name and a list', rule(['list'], [''], ['pods'], ['a']), ask('list', '', 'pods'), false],
    ['* is no pattern of a name', rule(['get'], [''], ['pods'], ['*']), ask('get', '', 'pods', { name: 'a' }), false],
    ['a path rule and a resource', { verbs: ['*'], nonResourceURLs: ['*'] }, ask('get', '', 'pods'), false],
    ['an empty rule', {}, ask('get', '', 'pods'), false],
    ['a path', { verbs: ['get'], nonResourceURLs: ['/metrics'] }, { verb: 'get', path: '/metrics' }, true],
    ['a path below', { verbs: ['get'], nonResourceURLs: ['/metrics'] }, { verb: 'get', path: '/metrics/x' }, false],
    ['paths below', { verbs: ['get'], nonResourceURLs: ['/logs/*'] }, { verb: 'get', path: '/logs/a/b' }, true],
    ['a resource rule and a path', rule(['*'], ['*'], ['*']), { verb: 'get', path: '/metrics' }, false],
  ])('decides by %s', (_, each, request, allowed) => {
    expect(ruleAllows(each, request)).toBe(allowed);
  });

  it('matches a * only at the end of a path', () => {
    expect(coversPath('/a*/b', '/ax/b')).toBe(false);
    expect(coversPath('/a*', '/a')).toBe(true);
    expect(coversPath('*', '/a')).toBe(true);
  });
});

describe('missingRules', () => {
  const missing = (held: PolicyRule[], wanted: PolicyRule[]): string[] | undefined => {
    const parts = missingRules(held, wanted);
    return parts === undefined ? undefined : ruleLines(parts);
  };

  it('lists what is not held, one line per resource', () => {
    expect(
      missing([rule(['get'], [''], ['pods'])], [rule(['get', 'list', 'watch'], [''], ['pods', 'secrets'])]),
    ).toEqual([
      '{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "watch"]}',
    ]);
  });

  it.each([
    ['a wildcard needs a wildcard', [rule(['get'], [''], ['pods'])], [rule(['*'], [''], ['pods'])], 1],
    ['all resources need all resources', [rule(['get'], [''], ['pods', 'secrets'])], [rule(['get'], [''], ['*'])], 1],
    [
      'a rule for one name does not cover all names',
      [rule(['get'], [''], ['pods'], ['a'])],
      [rule(['get'], [''], ['pods'])],
      1,
    ],
    ['a rule for all names covers one', [rule(['get'], [''], ['pods'])], [rule(['get'], [''], ['pods'], ['a'])], 0],
    [
      '*/scale covers a subresource',
      [rule(['get'], ['*'], ['*/scale'])],
      [rule(['get'], ['apps'], ['deployments/scale'])],
      0,
    ],
    [
      '*/scale does not cover all subresources',
      [rule(['get'], ['*'], ['*/scale'])],
      [rule(['get'], ['apps'], ['*'])],
      1,
    ],
    [
      'the rules of two are joined',
      [rule(['get'], [''], ['pods']), rule(['list'], [''], ['pods'])],
      [rule(['get', 'list'], [''], ['pods'])],
      0,
    ],
    ['full authority covers all', [...FULL_AUTHORITY], [...FULL_AUTHORITY, rule(['get'], [''], ['pods'], ['a'])], 0],
    ['paths are not resources', [rule(['*'], ['*'], ['*'])], [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }], 1],
    [
      'a prefix of paths covers a path',
      [{ verbs: ['get'], nonResourceURLs: ['/a/*'] }],
      [{ verbs: ['get'], nonResourceURLs: ['/a/b*'] }],
      0,
    ],
    [
      'a path does not cover its prefix',
      [{ verbs: ['get'], nonResourceURLs: ['/a/b'] }],
      [{ verbs: ['get'], nonResourceURLs: ['/a/*'] }],
      1,
    ],
  ] as [string, PolicyRule[], PolicyRule[], number][])('%s', (_, held, wanted, lines) => {
    expect(missing(held, wanted)).toHaveLength(lines);
  });

  it('does not compare billions of combinations', () => {
    const many = Array.from({ length: 2_000 }, (_, index) => `r${index}`);
    const wide = rule(many, many, many, many);
    expect(missingRules([rule(['get'], [''], ['pods'])], [wide])).toBeUndefined();
    expect(missingRules(FULL_AUTHORITY, [wide])).toEqual([]);
  });
});
