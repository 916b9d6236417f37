import { expect, it } from 'vitest';
import type { NodeCondition } from '../../shared/kinds/types.ts';
import { withPressures } from './reported-conditions.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const other: NodeCondition = { type: 'Other', status: 'True' };

it('a node reports each kind of pressure, an event for a change, and keeps what others set', () => {
  const none = { isUnderPressure: () => false, nodeName: 'n1', nowMs: NOW_MS };
  const first = withPressures([other], none);
  expect(first.conditions.map(({ type, status }) => [type, status])).toEqual([
    ['Other', 'True'],
    ['MemoryPressure', 'False'],
    ['DiskPressure', 'False'],
    ['PIDPressure', 'False'],
  ]);
  expect(withPressures(undefined, none).conditions).toHaveLength(3);
  const disk = { ...none, isUnderPressure: (type: string) => type === 'DiskPressure' };
  const second = withPressures(first.conditions, disk);
  expect(second.conditions.map(({ status }) => status)).toEqual(['True', 'False', 'True', 'False']);
  expect(second.events.map(({ reason }) => reason)).toEqual(['NodeHasDiskPressure']);
  expect(withPressures(second.conditions, disk).events).toEqual([]);
});
