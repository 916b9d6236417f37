import { describe, expect, it } from 'vitest';
import { defaultPolicy, type NodeSelector, type Policy } from '../policy.ts';
import {
  beatTimesOf,
  contradictoryKey,
  coversSelector,
  overProfiles,
  podEvictionTimeoutOn,
  policyOf,
  profileNameOf,
  profileNames,
  selectedKeys,
  timesOf,
} from './node-profile.ts';

const expression = (operator: string, values?: readonly string[], key = 'link'): NodeSelector =>
  ({ matchExpressions: [{ key, operator, ...(values === undefined ? {} : { values }) }] }) as unknown as NodeSelector;
const labelled = (matchLabels: Record<string, string>): NodeSelector => ({ matchLabels });

describe('the profile of a node', () => {
  const nameOf = (labels: Record<string, string> | undefined, ...selectors: readonly NodeSelector[]) =>
    profileNameOf(
      labels,
      selectors.map((nodeSelector, index) => ({ name: `p${index}`, nodeSelector })),
    );

  it.each<[NodeSelector, Record<string, string> | undefined, boolean]>([
    [labelled({ link: 'cell' }), { link: 'cell' }, true],
    [labelled({ link: 'cell' }), { link: 'wire' }, false],
    [labelled({ link: 'cell' }), undefined, false],
    [labelled({ link: 'cell', zone: 'a' }), { link: 'cell' }, false],
    [labelled({ constructor: 'x' }), {}, false],
    [expression('In', ['a', 'b']), { link: 'b' }, true],
    [expression('In', ['a', 'b']), { link: 'c' }, false],
    [expression('In', ['a']), {}, false],
    [expression('NotIn', ['a']), { link: 'a' }, false],
    [expression('NotIn', ['a']), { link: 'b' }, true],
    [expression('NotIn', ['a']), {}, true],
    [expression('Exists'), { link: '' }, true],
    [expression('Exists'), {}, false],
    [expression('DoesNotExist'), {}, true],
    [expression('DoesNotExist'), { link: 'a' }, false],
    [{}, undefined, true],
  ])('with the selector %j and the labels %j matches: %s', (selector, labels, isMatched) => {
    expect(nameOf(labels, selector)).toBe(isMatched ? 'p0' : undefined);
  });

  it('is the first that matches', () => {
    expect(nameOf({ link: 'cell' }, labelled({ link: 'wire' }), expression('Exists'), {})).toBe('p1');
  });

  it('follows from the labels that the selectors name', () => {
    const selectors = [
      labelled({ a: '1', b: '2' }),
      expression('Exists', undefined, 'b'),
      expression('Exists', undefined, 'c'),
    ];
    expect(selectedKeys(selectors.map((nodeSelector) => ({ nodeSelector })))).toEqual(['a', 'b', 'c']);
  });
});

it.each<[NodeSelector, NodeSelector, boolean]>([
  [{}, labelled({ link: 'a' }), true],
  [labelled({ link: 'a' }), {}, false],
  [labelled({ link: 'a' }), labelled({ link: 'a', zone: 'b' }), true],
  [labelled({ link: 'a', zone: 'b' }), labelled({ link: 'a' }), false],
  [labelled({ link: 'a' }), labelled({ zone: 'a' }), false],
  [expression('In', ['a', 'b']), labelled({ link: 'a' }), true],
  [expression('In', ['a']), expression('In', ['a', 'b']), false],
  [expression('In', ['a']), expression('Exists'), false],
  [expression('NotIn', ['a']), labelled({ link: 'b' }), true],
  [expression('NotIn', ['a']), labelled({ link: 'a' }), false],
  [expression('NotIn', ['a']), expression('NotIn', ['a', 'b']), true],
  [expression('NotIn', ['a', 'b']), expression('NotIn', ['a']), false],
  [expression('NotIn', ['a']), expression('DoesNotExist'), true],
  [expression('NotIn', ['a']), expression('Exists'), false],
  [expression('Exists'), labelled({ link: 'a' }), true],
  [expression('Exists'), expression('Exists'), true],
  [expression('Exists'), expression('NotIn', ['a']), false],
  [expression('Exists'), expression('DoesNotExist'), false],
  [expression('DoesNotExist'), expression('DoesNotExist'), true],
  [expression('DoesNotExist'), expression('NotIn', ['a']), false],
])('%j matches every node that %j matches: %s', (earlier, later, covers) => {
  expect(coversSelector(earlier, later)).toBe(covers);
});

it.each<[NodeSelector, string | undefined]>([
  [{}, undefined],
  [labelled({ link: 'a' }), undefined],
  [{ matchLabels: { link: 'a' }, ...expression('In', ['b']) }, 'link'],
  [{ matchLabels: { link: 'a' }, ...expression('In', ['a', 'b']) }, undefined],
  [{ matchLabels: { link: 'a' }, ...expression('NotIn', ['a']) }, 'link'],
  [{ matchLabels: { link: 'a' }, ...expression('DoesNotExist') }, 'link'],
  [{ matchLabels: { zone: 'a' }, ...expression('DoesNotExist') }, undefined],
  [
    { matchExpressions: [...expression('Exists').matchExpressions!, ...expression('DoesNotExist').matchExpressions!] },
    'link',
  ],
  [
    { matchExpressions: [...expression('Exists').matchExpressions!, ...expression('NotIn', ['a']).matchExpressions!] },
    undefined,
  ],
  [
    {
      matchExpressions: [
        ...expression('NotIn', ['a']).matchExpressions!,
        ...expression('DoesNotExist').matchExpressions!,
      ],
    },
    undefined,
  ],
  [expression('In', []), 'link'],
])('%j matches no value of the key %s', (selector, key) => {
  expect(contradictoryKey(selector)).toBe(key);
});

describe('the policy of a profile', () => {
  const cell = {
    name: 'cell',
    nodeSelector: labelled({ link: 'cell' }),
    beatIntervalSeconds: 60,
    podEvictionTimeoutSeconds: 900,
  };
  const policy: Policy = { ...defaultPolicy, profiles: [cell] };

  it('has its own times, and those of the policy for the rest', () => {
    expect(policyOf(policy, 'cell')).toEqual({ ...policy, beatIntervalSeconds: 60, podEvictionTimeoutSeconds: 900 });
    expect(policyOf(policy, 'cell')).toBe(policyOf(policy, 'cell'));
    for (const name of [undefined, 'default', 'former']) expect(policyOf(policy, name)).toBe(policy);
    expect(policyOf(defaultPolicy, 'cell')).toBe(defaultPolicy);
    expect(policyOf({ beatIntervalSeconds: 10 }, 'cell')).toEqual({ beatIntervalSeconds: 10 });
    expect(timesOf(cell)).toEqual({ beatIntervalSeconds: 60, podEvictionTimeoutSeconds: 900 });
  });

  it('is one of the named ones and the default', () => {
    expect([profileNames(policy), profileNames({})]).toEqual([['cell', 'default'], ['default']]);
    expect(beatTimesOf(policy)).toEqual({
      cell: [60, policy.leaseDurationSeconds],
      default: [10, policy.leaseDurationSeconds],
    });
    expect(overProfiles(policy, 'beatIntervalSeconds', Math.min)).toBe(10);
    expect(overProfiles(policy, 'beatIntervalSeconds', Math.max)).toBe(60);
  });

  it('has default tolerations of its own, where any profile has', () => {
    const timeoutOn = podEvictionTimeoutOn(policy);
    expect([timeoutOn?.({ link: 'cell' }), timeoutOn?.({})]).toEqual([900, policy.podEvictionTimeoutSeconds]);
    expect(podEvictionTimeoutOn(defaultPolicy)).toBeUndefined();
    const { podEvictionTimeoutSeconds: _same, ...others } = cell;
    expect(podEvictionTimeoutOn({ ...policy, profiles: [others] })).toBeUndefined();
    const same = { ...cell, podEvictionTimeoutSeconds: policy.podEvictionTimeoutSeconds };
    expect(podEvictionTimeoutOn({ ...policy, profiles: [same] })).toBeUndefined();
  });
});
