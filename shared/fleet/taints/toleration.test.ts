import { describe, expect, it } from 'vitest';
import type { Taint, Toleration } from '../../kubernetes/kubernetes.ts';
import { tolerates, tolerationFor, tolerationTime } from './toleration.ts';

const taint: Taint = { key: 'k', value: 'v', effect: 'NoExecute' };

describe('tolerates', () => {
  it.each<[string, Toleration, boolean]>([
    ['Exists on the key ignores the value', { key: 'k', operator: 'Exists' }, true],
    ['Exists without key matches everything', { operator: 'Exists' }, true],
    ['Exists on another key does not match', { key: 'other', operator: 'Exists' }, false],
    ['Equal asks for the value', { key: 'k', operator: 'Equal', value: 'v' }, true],
    ['Equal with another value does not match', { key: 'k', operator: 'Equal', value: 'w' }, false],
    ['no operator means Equal', { key: 'k', value: 'v' }, true],
    ['an empty key with Equal compares values only', { value: 'v' }, true],
    ['an absent value is an empty one', { key: 'k' }, false],
    ['the same effect matches', { key: 'k', operator: 'Exists', effect: 'NoExecute' }, true],
    ['another effect does not', { key: 'k', operator: 'Exists', effect: 'NoSchedule' }, false],
    ['an unknown operator does not', { key: 'k', operator: 'Near' as 'Exists', value: 'v' }, false],
  ])('%s', (_name, toleration, expected) => {
    expect(tolerates(toleration, taint)).toBe(expected);
  });

  it.each<[string, 'Lt' | 'Gt', string, boolean]>([
    ['5', 'Lt', '10', true],
    ['10', 'Lt', '10', false],
    ['11', 'Gt', '10', true],
    ['10', 'Gt', '10', false],
    ['-3', 'Lt', '-2', true],
    ['9223372036854775807', 'Gt', '9223372036854775806', true],
    ['9223372036854775808', 'Gt', '1', false],
    ['1', 'Lt', '1.5', false],
    ['', 'Lt', '5', false],
    ['five', 'Lt', '10', false],
  ])('taint value %j %s %j is %s', (value, operator, wanted, expected) => {
    expect(tolerates({ key: 'k', operator, value: wanted }, { ...taint, value })).toBe(expected);
  });
});

describe('tolerationFor', () => {
  it('uses the first match in list order, even when a later one is shorter', () => {
    const first: Toleration = { key: 'k', operator: 'Exists', tolerationSeconds: 100 };
    expect(tolerationFor([{ key: 'x' }, first, { operator: 'Exists', tolerationSeconds: 1 }], taint)).toBe(first);
  });
});

describe('tolerationTime', () => {
  it.each<[string, Toleration | undefined, ReturnType<typeof tolerationTime>]>([
    ['nothing that matches is no time', undefined, { kind: 'seconds', seconds: 0 }],
    ['no seconds is for ever', { key: 'k' }, { kind: 'forever' }],
    ['null seconds is for ever', { key: 'k', tolerationSeconds: null as never }, { kind: 'forever' }],
    ['zero is now', { key: 'k', tolerationSeconds: 0 }, { kind: 'seconds', seconds: 0 }],
    ['less than zero is now', { key: 'k', tolerationSeconds: -7 }, { kind: 'seconds', seconds: 0 }],
    ['seconds are seconds', { key: 'k', tolerationSeconds: 30 }, { kind: 'seconds', seconds: 30 }],
  ])('%s', (_name, toleration, expected) => {
    expect(tolerationTime(toleration)).toEqual(expected);
  });
});
