/** Cases of TestMatchSuccessPolicy in pkg/controller/job/success_policy_test.go. */
import { expect, it } from 'vitest';
import type { SuccessPolicyRule } from '../../../shared/kinds/types.ts';
import { withIndexes } from './indexes.rule.ts';
import { successMessageOf } from './policies.rule.ts';

const met = (rules: readonly SuccessPolicyRule[] | undefined, succeeded: readonly number[], completions = 10) =>
  successMessageOf(
    { completions, ...(rules === undefined ? {} : { successPolicy: { rules: [...rules] } }) },
    withIndexes([], succeeded),
  );

it.each<[string, readonly SuccessPolicyRule[] | undefined, readonly number[], number | undefined]>([
  ['no policy', undefined, [0], undefined],
  ['no rule', [], [0], undefined],
  ['no success, even for 0', [{ succeededCount: 0 }], [], undefined],
  ['too few successes', [{ succeededCount: 3 }], [4, 0], undefined],
  ['enough successes', [{ succeededCount: 2 }], [4, 0], 0],
  ['not all of the indexes', [{ succeededIndexes: '0-2,5' }], [0, 1, 2, 4, 6], undefined],
  ['all of the indexes', [{ succeededIndexes: '0-2,5' }], [5, 2, 9, 1, 0], 0],
  ['too few of the indexes', [{ succeededIndexes: '0-2,5', succeededCount: 3 }], [3, 4, 5, 0], undefined],
  ['enough of the indexes', [{ succeededIndexes: '0-2,5', succeededCount: 2 }], [3, 4, 5, 0], 0],
  ['no index of another form', [{ succeededIndexes: 'x', succeededCount: 1 }], [0], undefined],
  ['no index in range', [{ succeededIndexes: '10-12', succeededCount: 1 }], [0], undefined],
  ['the first rule that is met', [{ succeededCount: 9 }, { succeededIndexes: '1' }, { succeededCount: 1 }], [1], 1],
])('with %s', (_what, rules, succeeded, index) => {
  expect(met(rules, succeeded)).toBe(index === undefined ? undefined : `Matched rules at index ${index}`);
});

it('reads a rule about more indexes than memory holds', () => {
  expect(met([{ succeededIndexes: '0-2147483646', succeededCount: 2 }], [1, 2], 2_147_483_647)).toBeDefined();
});
