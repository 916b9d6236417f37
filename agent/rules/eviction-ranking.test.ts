import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { PodUsage } from '../ports/pod-runtime.ts';
import { rankForEviction } from './eviction-ranking.ts';
import type { StarvedResource } from './eviction-signals.ts';
import { admitUnderPressure, evictionMessage, storageLimitMessage } from './eviction-texts.ts';

const MIB = 1_024 ** 2;

type Amounts = Readonly<Record<string, string>>;
const pod = (name: string, priority: number, requests: Amounts = {}, limits: Amounts = {}): KubePod => ({
  metadata: { name, namespace: 'ns', uid: name },
  spec: { priority, containers: [{ name: 'main', resources: { requests, limits } }] },
});
const usage = (memoryMib: number, storageMib = 0, processes = 1): PodUsage => ({
  memoryBytes: memoryMib * MIB,
  processes,
  containers: [
    { name: 'main', memoryBytes: memoryMib * MIB, storage: { bytes: storageMib * MIB, inodes: storageMib } },
  ],
  volumes: new Map(),
});
const ranked = (resource: StarvedResource, pods: readonly (readonly [KubePod, PodUsage | undefined])[]) => {
  const usages = new Map(pods.map(([each, used]) => [each, used]));
  return rankForEviction(resource, [...usages.keys()], (each) => usages.get(each)).map(({ metadata }) => metadata.name);
};

describe('pods ranked for memory', () => {
  // The pods of TestOrderedByExceedsRequestMemoryThenPriorityThenMemory in pkg/kubelet/eviction/helpers_test.go.
  it('are those above their request, then by priority, then by their excess', () => {
    expect(
      ranked('memory', [
        [pod('guaranteed-low', 1, { cpu: '200m', memory: '1Gi' }, { cpu: '200m', memory: '1Gi' }), usage(400)],
        [pod('guaranteed-high', 100, { cpu: '100m', memory: '1Gi' }, { cpu: '100m', memory: '1Gi' }), usage(800)],
        [pod('burstable-low', 1, { memory: '100Mi' }), usage(300)],
        [pod('burstable-low-more', 1, { memory: '100Mi' }), usage(310)],
        [pod('burstable-high', 100, { memory: '100Mi' }), usage(900)],
        [pod('best-effort-low', 1), usage(50)],
        [pod('best-effort-high', 100), usage(400)],
      ]),
    ).toEqual([
      'burstable-low-more',
      'burstable-low',
      'best-effort-low',
      'burstable-high',
      'best-effort-high',
      'guaranteed-low',
      'guaranteed-high',
    ]);
  });

  it('begin with those that cannot be measured', () => {
    expect(
      ranked('memory', [
        [pod('large', 1), usage(900)],
        [pod('unknown', 1_000), undefined],
      ]),
    ).toEqual(['unknown', 'large']);
  });
});

describe('pods ranked for other resources', () => {
  it('by priority, then by processes', () => {
    expect(
      ranked('pids', [
        [pod('important', 10), usage(1, 1, 900)],
        [pod('few', 1), usage(1, 1, 5)],
        [pod('many', 1), usage(1, 1, 50)],
      ]),
    ).toEqual(['many', 'few', 'important']);
  });

  it('by what they store above their request', () => {
    expect(
      ranked('ephemeral-storage', [
        [pod('within', 1, { 'ephemeral-storage': '1Gi' }), usage(1, 900)],
        [pod('little', 1), usage(1, 5)],
        [pod('much', 1), usage(1, 50)],
      ]),
    ).toEqual(['much', 'little', 'within']);
  });
});

describe('the message of an eviction', () => {
  const measured = {
    due: [{ signal: 'memory.available', value: { kind: 'quantity', value: 100 * MIB }, graceMs: 0 }],
    observations: { 'memory.available': { available: 90 * MIB, capacity: 2_000 * MIB } },
  } as const;

  it('names the threshold, and the containers above their request', () => {
    expect(evictionMessage('memory', pod('p', 0, { memory: '100Mi' }), usage(300), measured)).toBe(
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container main was using 300Mi, request is 100Mi, has larger consumption of memory. ',
    );
    expect(evictionMessage('memory', pod('p', 0, { memory: '1Gi' }), usage(300), measured)).toBe(
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ',
    );
    expect(evictionMessage('memory', pod('p', 0), usage(1), measured)).toContain('request is 0, ');
  });

  it('has counts without a binary suffix', () => {
    const pids = {
      due: [{ signal: 'pid.available', value: { kind: 'quantity', value: 2_048 }, graceMs: 0 }],
      observations: { 'pid.available': { available: 1_024, capacity: 4_096 } },
    } as const;
    expect(evictionMessage('pids', pod('p', 0), usage(1), pids)).toBe(
      'The node was low on resource: pids. Threshold quantity: 2048, available: 1024. ',
    );
  });
});

describe('a limit on storage', () => {
  const limit = { 'ephemeral-storage': '100Mi' };

  it('is that of the pod, then that of a container', () => {
    expect(storageLimitMessage(pod('p', 0, {}, limit), usage(1, 100))).toBeUndefined();
    expect(storageLimitMessage(pod('p', 0, {}, limit), usage(1, 101))).toBe(
      'Pod ephemeral local storage usage exceeds the total limit of containers 100Mi. ',
    );
    const two: KubePod = {
      metadata: {},
      spec: {
        containers: [
          { name: 'main', resources: { limits: limit } },
          { name: 'other', resources: { limits: limit } },
        ],
      },
    };
    expect(storageLimitMessage(two, usage(1, 101))).toBe(
      'Container main exceeded its local ephemeral storage limit "100Mi". ',
    );
  });
});

describe('a new pod', () => {
  const bestEffort = pod('b', 0);
  const burstable = pod('u', 0, { memory: '1Mi' });
  const tolerating: KubePod = {
    ...bestEffort,
    spec: { ...bestEffort.spec, tolerations: [{ key: 'node.kubernetes.io/memory-pressure', operator: 'Exists' }] },
  };
  const critical = pod('c', 2_000_000_000);

  it.each([
    ['without pressure', bestEffort, [], true],
    ['BestEffort under memory pressure', bestEffort, ['MemoryPressure'], false],
    ['BestEffort that tolerates memory pressure', tolerating, ['MemoryPressure'], true],
    ['Burstable under memory pressure', burstable, ['MemoryPressure'], true],
    ['Burstable under disk pressure', burstable, ['DiskPressure'], false],
    [
      'BestEffort that tolerates memory pressure, under disk pressure too',
      tolerating,
      ['MemoryPressure', 'DiskPressure'],
      false,
    ],
    ['critical under disk pressure', critical, ['DiskPressure'], true],
  ] as const)('%s', (_name, each, pressures, admitted) => {
    expect(admitUnderPressure(each, pressures).kind).toBe(admitted ? 'admitted' : 'refused');
  });

  it('is refused with the conditions of the node', () => {
    expect(admitUnderPressure(bestEffort, ['MemoryPressure', 'DiskPressure'])).toMatchObject({
      reason: 'Evicted',
      message: 'The node had condition: [MemoryPressure DiskPressure]. ',
    });
  });
});
