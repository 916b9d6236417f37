import { describe, expect, it } from 'vitest';
import { policyOf } from '../fleet/nodes/node-profile.ts';
import { describePolicyFault, parsePolicy } from './policy.ts';
import { policyFromYaml } from './policy-file.ts';

const cell = { name: 'cell', nodeSelector: { matchLabels: { link: 'cell' } } };
const textsOf = (...profiles: unknown[]): readonly string[] => {
  const parsed = parsePolicy({ profiles });
  return parsed.kind === 'ok' ? [] : parsed.faults.map(describePolicyFault);
};

describe('the profiles of a policy', () => {
  it('inherit the times that they do not set', () => {
    const parsed = parsePolicy({
      podEvictionTimeoutSeconds: 60,
      profiles: [{ ...cell, nodeMonitorGracePeriodSeconds: 120 }],
    });
    if (parsed.kind !== 'ok') throw new Error('faults');
    const { beatIntervalSeconds, nodeMonitorGracePeriodSeconds, podEvictionTimeoutSeconds } = policyOf(
      parsed.policy,
      'cell',
    );
    expect([beatIntervalSeconds, nodeMonitorGracePeriodSeconds, podEvictionTimeoutSeconds]).toEqual([10, 120, 60]);
    expect(policyOf(parsed.policy, 'removed')).toBe(parsed.policy);
    expect(policyOf(parsed.policy, undefined)).toBe(parsed.policy);
  });

  it('are frozen, and survive JSON', () => {
    const parsed = parsePolicy({ profiles: [cell] });
    if (parsed.kind !== 'ok') throw new Error('faults');
    expect(Object.isFrozen(parsed.policy.profiles[0]?.nodeSelector.matchLabels)).toBe(true);
    expect(parsePolicy(JSON.parse(JSON.stringify(parsed.policy)))).toEqual(parsed);
  });

  it.each([
    [{ beatIntervalSeconds: 30, leaseDurationSeconds: 90 }, 'profiles[0].nodeMonitorGracePeriodSeconds 40'],
    [{ nodeMonitorGracePeriodSeconds: 19 }, 'profiles[0].nodeMonitorGracePeriodSeconds 19'],
    [{ leaseDurationSeconds: 29 }, 'profiles[0].leaseDurationSeconds 29'],
    [{ nodeStartupGracePeriodSeconds: 4 }, 'profiles[0].nodeStartupGracePeriodSeconds 4'],
    [{ nodeMonitorGracePeriodSeconds: 'a minute' }, 'profiles[0].nodeMonitorGracePeriodSeconds "a minute"'],
    [{ graceSeconds: 40 }, 'profiles[0].graceSeconds 40 is no field of a profile'],
  ])('refuse the times %j', (times, text) => {
    const texts = textsOf({ ...cell, ...times });
    expect(texts).toHaveLength(1);
    expect(texts[0]).toContain(text);
  });

  it('name the interval that a grace period cannot keep', () => {
    expect(textsOf({ ...cell, beatIntervalSeconds: 30, leaseDurationSeconds: 90 })).toEqual([
      'profiles[0].nodeMonitorGracePeriodSeconds 40 must be at least 2 × beatIntervalSeconds, because one lost beat must ' +
        'not mark a node (beatIntervalSeconds is 30)',
    ]);
  });

  it.each([
    [{}],
    [{ matchLabels: {} }],
    [{ matchExpressions: [] }],
    [undefined],
    ['link=cell'],
    [{ labels: { link: 'cell' } }],
  ])('refuse the empty or malformed selector %j', (nodeSelector) => {
    expect(textsOf({ name: 'cell', nodeSelector })[0]).toContain('select by at least one label');
  });

  it.each([
    [{ key: 'link', operator: 'In' }, 'must have values'],
    [{ key: 'link', operator: 'Exists', values: ['x'] }, 'must have no values'],
    [{ key: 'link', operator: 'Gt', values: ['1'] }, 'must have an operator of'],
    [{ key: '-', operator: 'Exists' }, 'must have a label key'],
  ])('refuse the requirement %j', (requirement, text) => {
    const nodeSelector = { matchExpressions: [requirement] };
    expect(textsOf({ name: 'cell', nodeSelector })[0]).toContain(text);
  });

  it.each([
    [{ matchLabels: { link: 'cell', site: 'a' } }],
    [{ matchExpressions: [{ key: 'link', operator: 'In', values: ['cell'] }] }],
    [{ matchLabels: { link: 'cell' }, matchExpressions: [{ key: 'gpu', operator: 'Exists' }] }],
  ])('refuse a selector behind one that matches all its nodes: %j', (nodeSelector) => {
    expect(textsOf(cell, { name: 'late', nodeSelector })).toEqual([
      `profiles[1].nodeSelector ${JSON.stringify(nodeSelector)} selects no further node: profiles[0] (cell) matches all ` +
        'of them before',
    ]);
  });

  it('allow selectors that share some nodes: the first match wins', () => {
    expect(textsOf(cell, { name: 'site-a', nodeSelector: { matchLabels: { site: 'a' } } })).toEqual([]);
    const named = { matchExpressions: [{ key: 'link', operator: 'Exists' }] };
    expect(textsOf(cell, { name: 'linked', nodeSelector: named })).toEqual([]);
  });

  it.each([
    [
      [
        { key: 'a', operator: 'In', values: ['x'] },
        { key: 'a', operator: 'NotIn', values: ['x'] },
      ],
    ],
    [
      [
        { key: 'a', operator: 'Exists' },
        { key: 'a', operator: 'DoesNotExist' },
      ],
    ],
  ])('refuse the contradiction %j', (matchExpressions) => {
    expect(textsOf({ name: 'none', nodeSelector: { matchExpressions } })[0]).toContain('contradict each other');
  });

  it('refuse names: twice, default, too long, malformed', () => {
    const other = { matchLabels: { link: 'wire' } };
    expect(textsOf(cell, { name: 'cell', nodeSelector: other })).toEqual([
      'profiles[1].name "cell" is the name of profiles[0] too',
    ]);
    for (const name of ['default', 'twelve-chars', 'Cell', '', 7]) {
      expect(textsOf({ name, nodeSelector: other })[0]).toContain(`profiles[0].name ${JSON.stringify(name)} must`);
    }
  });

  it('are at most eight, and fit the environment of a function', () => {
    const many = (count: number, value: string) =>
      Array.from({ length: count }, (_, index) => ({
        name: `p${index}`,
        nodeSelector: { matchLabels: { link: `${value}${index}` } },
      }));
    expect(textsOf(...many(9, 'x'))[0]).toContain('must be a list of at most 8 profiles');
    expect(textsOf(...many(8, 'x'))).toEqual([]);
    const long = many(8, 'x').map((each) => ({
      ...each,
      nodeSelector: { matchLabels: { ['k'.repeat(63)]: each.name } },
    }));
    expect(textsOf(...long)).toEqual([]);
    const values = Array.from({ length: 30 }, (_, index) => `${'v'.repeat(60)}${index}`);
    const nodeSelector = { matchExpressions: [{ key: 'link', operator: 'In', values }] };
    expect(textsOf({ name: 'cell', nodeSelector })[0]).toMatch(/^profiles \d+ must have at most 1500 bytes/);
  });

  it('report the line of a fault in a file', () => {
    const text = [
      'profiles:',
      '  - name: cell',
      '    nodeSelector:',
      '      matchLabels: {link: cell}',
      '    beatIntervalSeconds: 60',
      '    leaseDurationSeconds: 180',
      '  - name: late',
      '    nodeSelector: {}',
    ].join('\n');
    const parsed = policyFromYaml(text, 'policy.yaml');
    expect(parsed.kind === 'faults' && parsed.faults.map(({ at, field }) => [at, field])).toEqual([
      ['policy.yaml:8', 'profiles[1].nodeSelector'],
    ]);
    const fixed = policyFromYaml(text.replace('nodeSelector: {}', 'nodeSelector: {matchLabels: {a: b}}'), 'p.yaml');
    expect(fixed.kind === 'faults' && fixed.faults.map(({ at, field }) => [at, field])).toEqual([
      ['p.yaml:5', 'profiles[0].nodeMonitorGracePeriodSeconds'],
    ]);
  });
});
