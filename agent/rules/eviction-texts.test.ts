import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { PodUsage } from '../ports/pod-runtime.ts';
import type { Observations, Threshold } from './eviction-signals.ts';
import {
  admitUnderPressure,
  evictedStatus,
  evictionMessage,
  limitsStorage,
  storageLimitMessage,
} from './eviction-texts.ts';

const MIB = 2 ** 20;
const podOf = (containers: object[], more: object = {}): KubePod =>
  ({ metadata: { name: 'p' }, spec: { containers, ...more } }) as KubePod;
const used = (name: string, memoryBytes: number | undefined, bytes = 0) => ({
  name,
  ...(memoryBytes === undefined ? {} : { memoryBytes }),
  storage: { bytes, inodes: 0 },
});
const usageOf = (
  containers: PodUsage['containers'],
  volumes: readonly (readonly [string, number])[] = [],
): PodUsage => ({
  containers,
  volumes: new Map(volumes.map(([name, bytes]) => [name, { bytes, inodes: 0 }])),
});
const nothing = { due: [] as readonly Threshold[], observations: {} as Observations };

describe('the message of an eviction', () => {
  const main = { name: 'main', resources: { requests: { memory: '10Mi', 'ephemeral-storage': '1Mi' } } };

  it('names the containers above their requests', () => {
    const pod = podOf([main, { name: 'free' }, { name: 'other', resources: { requests: { memory: '5Mi' } } }], {
      initContainers: [{ name: 'init' }, { name: 'side', restartPolicy: 'Always' }],
    });
    const usage = usageOf([
      used('init', 99 * MIB),
      used('side', 3 * MIB),
      used('main', 10 * MIB + 1),
      used('free', 1_024),
      used('other', 5 * MIB),
      used('unknown', 99 * MIB),
      used('main', undefined),
    ]);
    expect(evictionMessage('memory', pod, usage, nothing)).toBe(
      'The node was low on resource: memory. ' +
        'Container side was using 3Mi, request is 0, has larger consumption of memory. ' +
        'Container main was using 10485761, request is 10Mi, has larger consumption of memory. ' +
        'Container free was using 1Ki, request is 0, has larger consumption of memory. ',
    );
    expect(evictionMessage('ephemeral-storage', pod, usageOf([used('main', 0, 2 * MIB)]), nothing)).toBe(
      'The node was low on resource: ephemeral-storage. ' +
        'Container main was using 2Mi, request is 1Mi, has larger consumption of ephemeral-storage. ',
    );
    expect(evictionMessage('inodes', pod, usage, nothing)).toBe('The node was low on resource: inodes. ');
    expect(evictionMessage('memory', pod, undefined, nothing)).toBe('The node was low on resource: memory. ');
  });

  it('names the threshold that is met, counts without a binary suffix', () => {
    const due = [
      { signal: 'memory.available', value: { kind: 'quantity', value: 100 * MIB }, graceMs: 0 },
      { signal: 'pid.available', value: { kind: 'quantity', value: 2_048 }, graceMs: 0 },
    ] as const;
    const observations = {
      'memory.available': { available: 90 * MIB, capacity: 2_000 * MIB },
      'pid.available': { available: 1_024, capacity: 4_096 },
    };
    expect(evictionMessage('memory', podOf([main]), undefined, { due, observations })).toBe(
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ',
    );
    expect(evictionMessage('pids', podOf([main]), undefined, { due, observations })).toBe(
      'The node was low on resource: pids. Threshold quantity: 2048, available: 1024. ',
    );
  });
});

describe('the limits of storage of a pod', () => {
  const limited = (name: string, limit: string) => ({ name, resources: { limits: { 'ephemeral-storage': limit } } });
  const pod = podOf([limited('a', '1Mi'), limited('b', '3Mi')], { initContainers: [limited('init', '100Mi')] });

  it('are those of all containers together, with the volumes', () => {
    const at = (a: number, b: number, volume: number) =>
      storageLimitMessage(pod, usageOf([used('a', 0, a), used('b', 0, b)], [['v', volume]]));
    expect(at(0, 0, 4 * MIB)).toBeUndefined();
    expect(at(1, 0, 4 * MIB)).toBe('Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ');
    expect(at(MIB, 2 * MIB, 0)).toBeUndefined();
    expect(at(MIB + 1, 0, 0)).toBe('Container a exceeded its local ephemeral storage limit "1Mi". ');
    expect(at(0, 3 * MIB + 1, 0)).toBe('Container b exceeded its local ephemeral storage limit "3Mi". ');
    expect(storageLimitMessage(pod, usageOf([]))).toBeUndefined();
  });

  it('are none of a pod without', () => {
    const free = podOf([{ name: 'a' }]);
    expect(storageLimitMessage(free, usageOf([used('a', 0, 9 * MIB)]))).toBeUndefined();
    expect([limitsStorage(free), limitsStorage(pod), limitsStorage(podOf([limited('a', '0')]))]).toEqual([
      false,
      true,
      false,
    ]);
    const half = podOf([limited('a', '1Mi'), { name: 'b' }]);
    expect(storageLimitMessage(half, usageOf([used('b', 0, MIB)]))).toBeUndefined();
  });
});

it('is failed with its reason, and what else its status had', () => {
  expect(evictedStatus({ phase: 'Succeeded', podIP: 'x' }, 'why', 1_700_000_000_000)).toEqual({
    phase: 'Failed',
    podIP: 'x',
    reason: 'Evicted',
    message: 'why',
    conditions: [
      {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'TerminationByKubelet',
        message: 'why',
        lastTransitionTime: '2023-11-14T22:13:20Z',
      },
    ],
  });
});

describe('a new pod under pressure', () => {
  const bestEffort = podOf([{ name: 'a' }]);
  const burstable = podOf([{ name: 'a', resources: { requests: { cpu: '1' } } }]);
  const tolerating = podOf([{ name: 'a' }], {
    tolerations: [{ key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' }],
  });
  const critical = podOf([{ name: 'a' }], { priority: 2_000_000_000 });

  it.each([
    ['BestEffort', [], 'admitted', bestEffort],
    ['BestEffort', ['MemoryPressure'], 'refused', bestEffort],
    ['Burstable', ['MemoryPressure'], 'admitted', burstable],
    ['Burstable', ['DiskPressure'], 'refused', burstable],
    ['tolerating', ['MemoryPressure'], 'admitted', tolerating],
    ['tolerating', ['MemoryPressure', 'DiskPressure'], 'refused', tolerating],
    ['critical', ['DiskPressure'], 'admitted', critical],
  ] as const)('that is %s under %j is %s', (_what, pressures, kind, pod) => {
    expect(admitUnderPressure(pod, pressures).kind).toBe(kind);
  });

  it('is refused with all pressures', () => {
    expect(admitUnderPressure(bestEffort, ['MemoryPressure', 'DiskPressure'])).toEqual({
      kind: 'refused',
      reason: 'Evicted',
      message: 'The node had condition: [MemoryPressure DiskPressure]. ',
    });
  });
});
