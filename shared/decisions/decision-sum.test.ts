import { expect, it } from 'vitest';
import type { Outcome } from './decision-record.ts';
import { sealed } from './decision-record.ts';

const aRecord = (outcome: Outcome) =>
  sealed({
    v: 1,
    policy: 'p',
    act: 'PodCollected',
    about: { kind: 'Pod', namespace: 'default', name: 'web', uid: 'u1' },
    atMs: 1_767_225_600_000,
    reason: 'it has ended, and more have than are kept',
    rule: 'podGc',
    inputs: { pod: { name: 'web', terminating: false }, othersEnded: 2 },
    outcome,
  });

it('the sum of a record is the same in all versions: stored records can be verified', () => {
  expect(aRecord({ remove: 'terminated', steps: ['delete', 'forget'] }).sum).toBe('f000c35e');
});

it('the sum of a record does not depend on the order of its members', () => {
  const { sum } = aRecord({ remove: 'terminated', steps: ['delete', 'forget'] });
  expect(aRecord({ steps: ['delete', 'forget'], remove: 'terminated' }).sum).toBe(sum);
  expect(aRecord({ remove: 'terminated', steps: ['forget', 'delete'] }).sum).not.toBe(sum);
});
