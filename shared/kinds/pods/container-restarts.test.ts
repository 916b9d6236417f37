import { describe, expect, it } from 'vitest';
import {
  isRestartable,
  mayRestartAll,
  RESTART_ALL_ACTION,
  restartsAfter,
  restartsAllAfter,
} from './container-restarts.ts';

const when = (operator: string, ...values: number[]) => ({ action: 'Restart', exitCodes: { operator, values } });

// Source: upstream pkg/api/v1/pod/util_test.go (TestContainerShouldRestart).
it.each([
  ['its pod alone decides', {}, 'Always', [0, 1]],
  ['its pod alone decides', {}, 'OnFailure', [1]],
  ['its pod alone decides', {}, 'Never', []],
  ['its own policy comes first', { restartPolicy: 'Always' }, 'Never', [0, 1]],
  ['its own policy comes first', { restartPolicy: 'OnFailure' }, 'Always', [1]],
  ['its own policy comes first', { restartPolicy: 'Never' }, 'Always', []],
  [
    'a rule that matches restarts it',
    { restartPolicy: 'Never', restartPolicyRules: [when('In', 1, 42)] },
    'Never',
    [1],
  ],
  ['a rule that matches restarts it', { restartPolicy: 'Never', restartPolicyRules: [when('NotIn', 1)] }, 'Never', [0]],
  ['any of the rules', { restartPolicy: 'Never', restartPolicyRules: [when('In', 9), when('In', 0)] }, 'Never', [0]],
  ['no values', { restartPolicy: 'Never', restartPolicyRules: [when('In'), when('NotIn')] }, 'Never', [0, 1]],
  ['without a match its policy', { restartPolicy: 'OnFailure', restartPolicyRules: [when('In', 9)] }, 'Never', [1]],
  ['rules need its own policy', { restartPolicyRules: [when('In', 0, 1)] }, 'Never', []],
] as const)('%s: %j under %s restarts after %j', (_, container, podPolicy, expected) => {
  const given = container as Parameters<typeof restartsAfter>[1];
  expect([0, 1].filter((exitCode) => restartsAfter(exitCode, given, podPolicy))).toEqual(expected);
});

it('may restart by a rule alone, if it has a policy of its own', () => {
  const restartPolicyRules = [when('In', 42)];
  expect(isRestartable({ restartPolicy: 'Never', restartPolicyRules }, 'Never')).toBe(true);
  expect(isRestartable({ restartPolicyRules }, 'Never')).toBe(false);
  expect(isRestartable({ restartPolicy: 'Never' }, 'Always')).toBe(false);
});

describe('all containers of a pod', () => {
  const all = { action: RESTART_ALL_ACTION, exitCodes: { operator: 'In', values: [42] } };

  it('restart if the first rule that matches says so', () => {
    const having = (...restartPolicyRules: object[]) =>
      ({ restartPolicy: 'Never', restartPolicyRules }) as Parameters<typeof restartsAllAfter>[1];
    expect(restartsAllAfter(42, having(when('In', 1), all, when('In', 42)))).toBe(true);
    expect(restartsAllAfter(42, having(when('In', 42), all))).toBe(false);
    expect(restartsAllAfter(1, having(all))).toBe(false);
    expect(restartsAfter(42, having(all), 'Never')).toBe(true);
    expect(restartsAllAfter(42, { restartPolicyRules: [all] })).toBe(false);
  });

  it('may restart for a rule of any container', () => {
    expect(mayRestartAll({ initContainers: [{ name: 'i', restartPolicyRules: [all] }] })).toBe(true);
    expect(mayRestartAll({ containers: [{ name: 'a' }, { name: 'c', restartPolicyRules: [all] }] })).toBe(true);
    expect(mayRestartAll({ containers: [{ name: 'c', restartPolicyRules: [when('In', 42)] }] })).toBe(false);
  });
});
