import { describe, expect, it } from 'vitest';
import type { Container, KubePod, ResourceRequirements } from '../../shared/kinds/types.ts';
import {
  byUrgency,
  containerResize,
  memoryInUse,
  resizeEvent,
  resizeRefusal,
  resourcesOf,
  sameResources,
  withResources,
} from './pod-resize.ts';

const MIB = 2 ** 20;
const requests = (cpu: string, memory = '128Mi'): ResourceRequirements => ({ requests: { cpu, memory } });
const guaranteed = (cpu: string, memory = '1Gi'): ResourceRequirements => ({
  requests: { cpu, memory },
  limits: { cpu, memory },
});
function podOf(name: string, resources: ResourceRequirements, more: object = {}, container: object = {}): KubePod {
  return {
    metadata: { name, uid: name, generation: 3 },
    spec: { containers: [{ name: 'main', resources, ...container }], ...more },
  };
}
const NODE = { metadata: { name: 'n' }, status: { allocatable: { cpu: '4', memory: '4Gi', pods: '10' } } };
type Machine = Parameters<typeof resizeRefusal>[0]['machine'];
const LINUX: Machine = { operatingSystem: 'linux', maySwap: false, assignsProcessors: false };

const refusalOf = (
  desired: KubePod,
  allocated: KubePod,
  others: readonly KubePod[] = [],
  machine: Partial<Machine> = {},
) => resizeRefusal({ desired, allocated, node: NODE, others, machine: { ...LINUX, ...machine } });

describe('a resize', () => {
  const pod = podOf('p', requests('1'));
  it.each([
    ['fits beside the others', podOf('p', requests('2')), [podOf('o', requests('2'))], undefined],
    ['fits if it is smaller', podOf('p', requests('500m')), [podOf('o', requests('3'))], undefined],
    [
      'does not fit now',
      podOf('p', requests('2500m')),
      [podOf('o', requests('2'))],
      ['Deferred', "Node didn't have enough resource: cpu, requested: 2500, used: 2000, capacity: 4000"],
    ],
    [
      'of memory does not fit now',
      podOf('p', requests('1', '3Gi')),
      [podOf('o', requests('1', '2Gi'))],
      [
        'Deferred',
        `Node didn't have enough resource: memory, requested: ${3072 * MIB}, used: ${2048 * MIB}, capacity: ${4096 * MIB}`,
      ],
    ],
    [
      'never fits',
      podOf('p', requests('4001m')),
      [],
      ['Infeasible', "Node didn't have enough capacity: cpu, requested: 4001, capacity: 4000"],
    ],
    [
      'never fits, and memory is named first',
      podOf('p', requests('5', '5Gi')),
      [],
      ['Infeasible', `Node didn't have enough capacity: memory, requested: ${5120 * MIB}, capacity: ${4096 * MIB}`],
    ],
  ] as const)('%s', (_, desired, others, expected) => {
    const refusal = refusalOf(desired, pod, others);
    expect(refusal && [refusal.reason, refusal.message]).toEqual(expected);
  });

  it('is not supported on Windows, for static pods, and with swap', () => {
    const desired = podOf('p', requests('1', '256Mi'));
    expect(refusalOf(desired, pod, [], { operatingSystem: 'windows' })?.message).toMatch(/on Windows$/);
    const annotations = { 'kubernetes.io/config.source': 'file' };
    const fromFile = { ...desired, metadata: { ...desired.metadata, annotations } };
    expect(refusalOf(fromFile, pod)?.message).toBe('In-place resize of static-pods is not supported');
    const swap = { reason: 'Infeasible', message: 'In-place resize of containers with swap is not supported.' };
    expect(refusalOf(desired, pod, [], { maySwap: true })).toEqual(swap);
    const resizePolicy = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }];
    expect(refusalOf(podOf('p', requests('1', '256Mi'), {}, { resizePolicy }), pod, [], { maySwap: true })).toBe(
      undefined,
    );
    expect(refusalOf(podOf('p', requests('2')), pod, [], { maySwap: true })).toBeUndefined();
  });

  it.each([
    ['2', '1Gi', 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'],
    ['1', '2Gi', 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'],
  ])('of a Guaranteed pod to %s and %s is not possible with processors of its own', (cpu, memory, message) => {
    const desired = podOf('p', guaranteed(cpu, memory));
    const allocated = podOf('p', guaranteed('1'));
    expect(refusalOf(desired, allocated, [], { assignsProcessors: true })).toEqual({ reason: 'Infeasible', message });
    expect(refusalOf(desired, allocated)).toBeUndefined();
  });
});

it('is decided first for those that need no more, then by priority, class and age', () => {
  const request = (name: string, desired: ResourceRequirements, priority: number, pendingSinceMs?: number) => ({
    desired: podOf(name, desired, { priority }),
    allocated: podOf(name, requests('1', '1Gi')),
    pendingSinceMs,
  });
  const order = [
    request('smaller', requests('1', '512Mi'), 0),
    request('important', requests('1', '2Gi'), 10, 30),
    request('guaranteed', guaranteed('2'), 0, 30),
    request('old', requests('2', '1Gi'), 0, 10),
    request('recent', requests('2', '1Gi'), 0, 20),
    request('new', requests('2', '1Gi'), 0),
  ];
  expect(order.toReversed().toSorted(byUrgency)).toEqual(order);
});

describe('a container', () => {
  const restart = (resourceName: string) => ({ resourceName, restartPolicy: 'RestartContainer' });
  const before = { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '2Gi' } };
  it.each([
    ['nothing', { ...before, requests: { cpu: '1000m', memory: '1024Mi' } }, [restart('cpu'), restart('memory')]],
    ['update', { ...before, requests: { cpu: '2', memory: '1Gi' } }, [restart('memory')]],
    ['restart', { ...before, requests: { cpu: '2', memory: '1Gi' } }, [restart('cpu')]],
    ['restart', { ...before, limits: { memory: '3Gi' } }, [restart('memory')]],
    ['update', { ...before, limits: { memory: '3Gi' } }, [{ resourceName: 'memory', restartPolicy: 'NotRequired' }]],
    ['update', { ...before, limits: { cpu: '2', memory: '2Gi' } }, undefined],
  ] as const)('needs: %s', (expected, resources, resizePolicy) => {
    const container: Container = { name: 'c', resources, ...(resizePolicy && { resizePolicy: [...resizePolicy] }) };
    expect(containerResize(container, before)).toBe(expected);
  });
});

describe('a lower limit of memory', () => {
  const limits = (memory: string) => podOf('p', { limits: { memory } });
  const usage = (bytes: number) => ({
    memoryBytes: bytes + 1,
    containers: [{ name: 'main', memoryBytes: bytes, storage: { bytes: 0, inodes: 0 } }],
    volumes: new Map(),
  });

  it('waits while more is in use', () => {
    const [low, high] = [limits('64Mi'), limits('128Mi')];
    const used = usage(64 * MIB);
    expect(memoryInUse(low, high, ['main'], used)).toBe(
      `cannot decrease memory limits: [attempting to set pod memory limit (${64 * MIB}) below current usage (` +
        `${64 * MIB + 1}), attempting to set container "main" memory limit (${64 * MIB}) below current usage (${64 * MIB})]`,
    );
    expect(memoryInUse(low, high, [], used)).toMatch(/^cannot decrease memory limits: attempting to set pod [^[]+$/);
    expect(memoryInUse(low, podOf('p', {}), ['main'], used)).toMatch(/"main"/);
    expect(memoryInUse(high, low, ['main'], usage(500 * MIB))).toBeUndefined();
    expect(memoryInUse(low, high, ['main'], usage(64 * MIB - 2))).toBeUndefined();
    expect(memoryInUse(low, high, ['main'], undefined)).toBeUndefined();
  });
});

describe('resources', () => {
  it('are replaced in containers and sidecars alone', () => {
    const init = (name: string, restartPolicy?: string): Container => ({
      name,
      resources: requests('1'),
      ...(restartPolicy && { restartPolicy }),
    });
    const pod = podOf('p', requests('1'), { initContainers: [init('init'), init('side', 'Always')] });
    const next = withResources(pod, () => requests('2'));
    expect([...(next.spec?.initContainers ?? []), ...(next.spec?.containers ?? [])]).toMatchObject([
      { name: 'init', resources: requests('1') },
      { name: 'side', resources: requests('2') },
      { name: 'main', resources: requests('2') },
    ]);
    expect(withResources(pod, () => requests('1000m', '131072Ki'))).toBe(pod);
    expect(withResources(pod, () => undefined)).toBe(pod);
    expect([resourcesOf(pod, 'init'), resourcesOf(podOf('p', {}), 'main')]).toEqual([undefined, {}]);
    expect([sameResources(undefined, {}), sameResources(requests('1'), undefined)]).toEqual([true, false]);
  });
});

it('is found by name in a pod of many containers without a look at each of them', () => {
  let reads = 0;
  const containers = Array.from({ length: 200 }, (_, index) => ({
    get name() {
      reads += 1;
      return `c${index}`;
    },
    resources: requests('1'),
  }));
  const pod: KubePod = { metadata: { name: 'p' }, spec: { containers } };
  for (let index = 0; index < 200; index += 1) expect(resourcesOf(pod, `c${index}`)).toEqual(requests('1'));
  expect(reads).toBeLessThan(1_000);
});

it('is reported as an event with all resources, sorted', () => {
  const pod = podOf('p', { requests: { memory: '1Gi', cpu: '1' }, limits: { memory: '2Gi' } });
  const shown = '{"name":"main","resources":{"limits":{"memory":"2Gi"},"requests":{"cpu":"1","memory":"1Gi"}}}';
  expect(resizeEvent('started', pod, 3)).toEqual({
    type: 'Normal',
    reason: 'ResizeStarted',
    message: `Pod resize started: {"containers":[${shown}],"generation":3}`,
  });
  expect(resizeEvent('Deferred', podOf('p', {}), 4, 'why')).toEqual({
    type: 'Warning',
    reason: 'ResizeDeferred',
    message: 'Pod resize Deferred: {"containers":[{"name":"main","resources":{}}],"generation":4,"error":"why"}',
  });
});
