import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { PodUsage } from '../ports/pod-runtime.ts';
import { bytesOfQuantity, rankForEviction } from './eviction-ranking.ts';
import type { StarvedResource } from './eviction-signals.ts';

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
  it('by priority, without a request that could be exceeded: processes', () => {
    expect(
      ranked('pids', [
        [pod('important', 10), usage(1, 1, 900)],
        [pod('measured at none', 1), usage(1, 1, 0)],
        [pod('one', 1), usage(1, 1, 1)],
      ]),
    ).toEqual(['one', 'measured at none', 'important']);
  });

  it('by the files of all containers and volumes, in bytes or in number', () => {
    const stores = (bytes: number, inodes: number, volume = { bytes: 0, inodes: 0 }): PodUsage => ({
      memoryBytes: 0,
      processes: 1,
      containers: [{ name: 'main', memoryBytes: 0, storage: { bytes, inodes } }],
      volumes: new Map([['v', volume]]),
    });
    const pods: readonly (readonly [KubePod, PodUsage])[] = [
      [pod('bytes', 1), stores(50, 1)],
      [pod('volume', 1), stores(10, 2, { bytes: 30, inodes: 30 })],
      [pod('files', 1), stores(20, 20)],
    ];
    expect(ranked('ephemeral-storage', pods)).toEqual(['bytes', 'volume', 'files']);
    expect(ranked('inodes', pods)).toEqual(['volume', 'files', 'bytes']);
  });

  it('with those that use all of their request behind those that use more', () => {
    expect(
      ranked('memory', [
        [pod('exactly', 1, { memory: '10Mi' }), usage(10)],
        [pod('above', 1_000, { memory: '1Mi' }), usage(2)],
      ]),
    ).toEqual(['above', 'exactly']);
  });

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

it('an amount is in whole bytes, rounded up, and 0 if it is none', () => {
  expect(['1Ki', '1500m', 7, '0', '', undefined, 'x', {}].map(bytesOfQuantity)).toEqual([1_024, 2, 7, 0, 0, 0, 0, 0]);
});
