import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { Container } from '../pod-containers.ts';
import {
  exclusiveRequest,
  freeCpus,
  freeMemory,
  type Grant,
  granted,
  grantOf,
  type Ledger,
  placementIn,
  released,
} from './ledger.ts';

const nodes = [
  { id: 0, cpus: [2, 0, 10], memoryBytes: 1_000 },
  { id: 1, cpus: [1, 3], memoryBytes: 500 },
];
const grant = (podUid: string, container: string, more: Partial<Grant> = {}): Grant => ({
  podUid,
  container,
  cpus: [],
  memoryBytes: new Map(),
  reusable: false,
  ...more,
});
const ledgerOf = (...grants: Grant[]): Ledger => ({ grants });
const containerOf = (name: string, kind: Container['kind'] = 'app'): Container => ({
  name,
  kind,
  requests: {},
  limits: {},
});
const pod: KubeObject = { metadata: { name: 'p', uid: 'u1' } };

describe('the ledger', () => {
  it('adds to the assignment of a container, and releases those of a pod', () => {
    const other = grant('u2', 'c');
    let ledger = granted(ledgerOf(other), pod, containerOf('c'), { cpus: [1] });
    ledger = granted(ledger, pod, containerOf('c'), { memoryBytes: new Map([[0, 5]]) });
    const own = grant('u1', 'c', { cpus: [1], memoryBytes: new Map([[0, 5]]) });
    expect(ledger).toEqual(ledgerOf(other, own));
    expect([grantOf(ledger, 'u1', 'c'), grantOf(ledger, 'u1', 'd'), grantOf(ledger, 'u3', 'c')]).toEqual([
      own,
      undefined,
      undefined,
    ]);
    expect(granted(ledgerOf(), pod, containerOf('i', 'init'), {}).grants[0]?.reusable).toBe(true);
    expect(granted(ledgerOf(), pod, containerOf('s', 'restartable'), {}).grants[0]?.reusable).toBe(false);
    expect([released(ledger, 'u1'), released(ledger, 'u3')]).toEqual([ledgerOf(other), ledger]);
  });

  it('has free processors, ascending, with those of the own init containers', () => {
    const ledger = ledgerOf(
      grant('u1', 'init', { cpus: [0], reusable: true }),
      grant('u1', 'c', { cpus: [3] }),
      grant('u2', 'init', { cpus: [1], reusable: true }),
    );
    expect([...freeCpus(nodes, ledger, 'u1')]).toEqual([
      [0, [0, 2, 10]],
      [1, []],
    ]);
    expect([...freeCpus(nodes, ledger, 'u2')]).toEqual([
      [0, [2, 10]],
      [1, [1]],
    ]);
  });

  it('has free memory: containers together, or the largest init container of another pod', () => {
    const memory = (bytes: number, node = 0) => ({ memoryBytes: new Map([[node, bytes]]) });
    const ledger = ledgerOf(
      grant('u1', 'a', memory(100)),
      grant('u1', 'b', memory(50)),
      grant('u1', 'i', { ...memory(400), reusable: true }),
      grant('u1', 'j', { ...memory(300), reusable: true }),
      grant('u2', 'c', memory(20, 1)),
      grant('u2', 'i', { ...memory(10, 1), reusable: true }),
    );
    expect([...freeMemory(nodes, ledger, 'u2')]).toEqual([
      [0, 600],
      [1, 480],
    ]);
    expect([...freeMemory(nodes, ledger, 'u1')]).toEqual([
      [0, 850],
      [1, 480],
    ]);
  });

  it('places a container on its own processors, or on those of no container', () => {
    const ledger = ledgerOf(
      grant('u1', 'own', { cpus: [2], memoryBytes: new Map([[1, 5]]) }),
      grant('u1', 'memory', {
        memoryBytes: new Map([
          [0, 5],
          [1, 5],
        ]),
      }),
    );
    expect(placementIn(nodes, ledger, 'u1', 'own')).toEqual({ cpus: [2], memoryNodes: [1], exclusive: true });
    expect(placementIn(nodes, ledger, 'u1', 'memory')).toEqual({
      cpus: [0, 10, 1, 3],
      memoryNodes: [0, 1],
      exclusive: false,
    });
    expect(placementIn(nodes, ledger, 'u9', 'c')).toEqual({ cpus: [0, 10, 1, 3], memoryNodes: [], exclusive: false });
    expect(placementIn(nodes, ledgerOf(), 'u1', 'c')).toEqual({ cpus: [], memoryNodes: [], exclusive: false });
  });
});

describe('what is assigned exclusively', () => {
  const resources = (cpu: string, memory = '1Ki') => ({ limits: { cpu, memory }, requests: { cpu, memory } });
  const podOf = (containers: object[], initContainers: object[] = []): KubeObject => ({
    metadata: { name: 'p', uid: 'u1' },
    spec: { containers, initContainers },
  });
  const of = (given: KubeObject, resource: 'cpu' | 'memory' = 'cpu') => exclusiveRequest(given, undefined, resource);

  it('is that of a Guaranteed pod, in whole cores and bytes', () => {
    const whole = podOf([{ name: 'a', resources: resources('2', '1500m') }]);
    expect([of(whole), of(whole, 'memory')]).toEqual([2, 2]);
    expect(of(podOf([{ name: 'a', resources: resources('1500m') }]))).toBe(0);
    expect(of(podOf([{ name: 'a', resources: { requests: { cpu: '2', memory: '1' } } }]))).toBe(0);
    const container: Container = { ...containerOf('a'), requests: { cpu: '3' } };
    expect(exclusiveRequest(whole, container, 'cpu')).toBe(3);
    expect(exclusiveRequest(whole, { ...containerOf('a'), limits: { cpu: 4 } }, 'cpu')).toBe(4);
    expect(exclusiveRequest(whole, { ...container, limits: { cpu: '9' } }, 'cpu')).toBe(3);
    expect([
      exclusiveRequest(whole, containerOf('a'), 'cpu'),
      exclusiveRequest(whole, { ...containerOf('a'), requests: { cpu: 'x' } }, 'cpu'),
    ]).toEqual([0, 0]);
  });

  it('is the sum of a pod, or more during its start', () => {
    const main = [
      { name: 'a', resources: resources('1') },
      { name: 'b', resources: resources('2') },
    ];
    const init = (cpu: string, more: object = {}) => ({ name: `i${cpu}`, resources: resources(cpu), ...more });
    const side = (cpu: string) => init(cpu, { restartPolicy: 'Always' });
    expect([of(podOf(main)), of(podOf(main, [init('2')])), of(podOf(main, [init('5'), init('4')]))]).toEqual([3, 3, 5]);
    expect(of(podOf(main, [side('3'), init('4')]))).toBe(7);
    expect(of(podOf(main, [init('4'), side('3')]))).toBe(6);
  });
});
