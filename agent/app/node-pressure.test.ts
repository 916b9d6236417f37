import { expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { MachineUse } from '../ports/machine.ts';
import { NodePressure } from './node-pressure.ts';

const fs = { capacityBytes: 1_000, availableBytes: 1_000, inodes: 0, inodesFree: 0 };
const use = (memoryAvailableBytes: number): MachineUse => ({
  ...{ memoryAvailableBytes, nodeFs: fs, imageFs: fs, cpuBusySeconds: 0 },
  ...({ pidsMax: 100, pidsUsed: 1 } as unknown as MachineUse),
  memoryAvailableBytes,
});
const settings = {
  evictionHard: { 'memory.available': { kind: 'quantity', value: 100 } as const },
  evictionSoft: {},
  evictionSoftGracePeriodMs: {},
  evictionMinimumReclaim: {},
  enforceNodeAllocatable: true,
  evictionPressureTransitionPeriodMs: 10_000,
};
const pod: KubePod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c' }] } };

it('a node is under pressure from its first measurement below a threshold to some time after the last', () => {
  const pressure = new NodePressure(settings, () => undefined);
  expect(pressure.thresholds.map(({ signal }) => signal)).toEqual(['memory.available', 'allocatableMemory.available']);
  expect(pressure.current(0)).toEqual([]);
  expect(pressure.measure(use(100), 1_000, 0).due).toEqual([]);
  expect(pressure.admit(pod, 0)).toEqual({ kind: 'admitted' });
  const { due, observations } = pressure.measure(use(99), 1_000, 1_000);
  expect(due.map(({ signal }) => signal)).toEqual(['memory.available']);
  expect(observations['memory.available']).toEqual({ available: 99, capacity: 1_000 });
  expect(pressure.isUnder('MemoryPressure', 1_000)).toBe(true);
  expect(pressure.admit(pod, 1_000).kind).toBe('refused');
  expect(pressure.measure(use(500), 1_000, 2_000).due).toEqual([]);
  expect([pressure.current(10_999), pressure.current(11_001)]).toEqual([['MemoryPressure'], []]);
});

it('all pods together have a limit of their own', () => {
  const pressure = new NodePressure(settings, () => ({ limitBytes: 800, workingSetBytes: 750 }));
  expect(pressure.measure(use(900), 1_000, 0).due.map(({ signal }) => signal)).toEqual(['allocatableMemory.available']);
});
