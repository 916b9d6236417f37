import { describe, expect, it } from 'vitest';
import type { Taint } from '../../kubernetes/kubernetes.ts';
import { addTaint, findTaint, hasTaint, removeTaints } from './taint.ts';

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
