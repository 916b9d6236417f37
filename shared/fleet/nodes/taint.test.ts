import { describe, expect, it } from 'vitest';
import { DAEMON_SET_TOLERATIONS } from '../../../test/support/daemon-set.ts';
import type { Taint, Toleration } from '../../kubernetes/kubernetes.ts';
import {
  addTaint,
  findTaint,
  hasTaint,
  removeTaints,
  tolerates,
  tolerationFor,
  tolerationTime,
  withDefaultTolerations,
} from './taint.ts';

const list: readonly Taint[] = Object.freeze([
  Object.freeze<Taint>({ key: 'a', effect: 'NoSchedule', value: '1' }),
  Object.freeze<Taint>({ key: 'a', effect: 'NoExecute' }),
]);

describe('taint lists', () => {
  it('identify by key and effect, not by value', () => {
    expect(hasTaint(list, { key: 'a', effect: 'NoSchedule' })).toBe(true);
    expect(hasTaint(list, { key: 'a', effect: 'PreferNoSchedule' })).toBe(false);
    expect(findTaint(list, { key: 'a', effect: 'NoSchedule' })?.value).toBe('1');
  });

  it('append a new taint and replace one of the same identity, leaving the input alone', () => {
    expect(addTaint(list, { key: 'b', effect: 'NoExecute' })).toHaveLength(3);
    expect(addTaint(list, { key: 'a', effect: 'NoSchedule', value: '2' })).toEqual([
      { key: 'a', effect: 'NoSchedule', value: '2' },
      { key: 'a', effect: 'NoExecute' },
    ]);
    expect(list[0]?.value).toBe('1');
  });

  it('remove by identity only', () => {
    expect(removeTaints(list, [{ key: 'a', effect: 'NoExecute' }])).toEqual([
      { key: 'a', effect: 'NoSchedule', value: '1' },
    ]);
    expect(removeTaints(list, [{ key: 'z', effect: 'NoExecute' }])).toEqual(list);
  });
});

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

const defaults = 300;

describe('withDefaultTolerations', () => {
  it('is settled after one application', () => {
    const once = withDefaultTolerations([{ key: 'x', operator: 'Exists' }], defaults);
    expect(once).toHaveLength(3);
    expect(withDefaultTolerations(once, defaults)).toBe(once);
  });

  it('does not look at operator or seconds of what is there', () => {
    const own = [{ key: 'node.kubernetes.io/not-ready', operator: 'Equal', value: 'never' }] as const;
    expect(withDefaultTolerations(own, defaults).map((toleration) => toleration.key)).toEqual([
      'node.kubernetes.io/not-ready',
      'node.kubernetes.io/unreachable',
    ]);
  });

  it('adds nothing to what the pods of a DaemonSet bring', () => {
    expect(withDefaultTolerations(DAEMON_SET_TOLERATIONS, defaults)).toBe(DAEMON_SET_TOLERATIONS);
  });
});
