import { describe, expect, it } from 'vitest';
import {
  conditionOf,
  PRESSURE_TYPES,
  pressureCondition,
  type ReadyInput,
  readyCondition,
  statusEvent,
  withCondition,
} from './node-conditions.ts';

const NOW_MS = 1_700_000_000_000;
const NOW = '2023-11-14T22:13:20Z';
const BEFORE = '2023-01-01T00:00:00Z';

describe('a pressure condition', () => {
  it.each([
    [
      'MemoryPressure',
      true,
      'KubeletHasInsufficientMemory',
      'kubelet has insufficient memory available',
      'NodeHasInsufficientMemory',
    ],
    [
      'MemoryPressure',
      false,
      'KubeletHasSufficientMemory',
      'kubelet has sufficient memory available',
      'NodeHasSufficientMemory',
    ],
    ['DiskPressure', true, 'KubeletHasDiskPressure', 'kubelet has disk pressure', 'NodeHasDiskPressure'],
    ['DiskPressure', false, 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure', 'NodeHasNoDiskPressure'],
    [
      'PIDPressure',
      true,
      'KubeletHasInsufficientPID',
      'kubelet has insufficient PID available',
      'NodeHasInsufficientPID',
    ],
    ['PIDPressure', false, 'KubeletHasSufficientPID', 'kubelet has sufficient PID available', 'NodeHasSufficientPID'],
  ] as const)('%s %s has the words of upstream', (type, underPressure, reason, message, event) => {
    const status = underPressure ? 'True' : 'False';
    expect(pressureCondition(type, undefined, { underPressure, nodeName: 'n1', nowMs: NOW_MS })).toEqual({
      condition: { type, status, reason, message, lastHeartbeatTime: NOW, lastTransitionTime: NOW },
      event: { type: 'Normal', reason: event, message: `Node n1 status is now: ${event}` },
    });
  });

  it('changes its heartbeat alone without a transition, and what others wrote stays', () => {
    const existing = {
      type: 'DiskPressure',
      status: 'False',
      reason: 'Mine',
      extra: 'x',
      lastTransitionTime: BEFORE,
    } as const;
    const input = { underPressure: false, nodeName: 'n1', nowMs: NOW_MS };
    expect(pressureCondition('DiskPressure', existing, input)).toEqual({
      condition: { ...existing, lastHeartbeatTime: NOW },
    });
    const changed = pressureCondition('DiskPressure', existing, { ...input, underPressure: true });
    expect(changed.condition).toMatchObject({ extra: 'x', status: 'True', lastTransitionTime: NOW });
    const unknown = pressureCondition('DiskPressure', { ...existing, status: 'Unknown' }, input);
    expect([unknown.condition.status, unknown.event?.reason]).toEqual(['False', 'NodeHasNoDiskPressure']);
    expect(PRESSURE_TYPES).toEqual(['MemoryPressure', 'DiskPressure', 'PIDPressure']);
  });
});

describe('the Ready condition', () => {
  const input: ReadyInput = {
    errors: {},
    capacity: { cpu: '1', memory: '1', pods: '1', 'ephemeral-storage': '1' },
    localStorageCapacityIsolation: true,
    nodeName: 'n1',
    nowMs: NOW_MS,
  };
  const words = (more: Partial<ReadyInput>) => {
    const { status, reason, message } = readyCondition(undefined, { ...input, ...more }).condition;
    return [status, reason, message];
  };

  it.each([
    [{}, 'True', 'kubelet is posting ready status'],
    [{ warning: '' }, 'True', 'kubelet is posting ready status'],
    [{ warning: 'w' }, 'True', 'kubelet is posting ready status. WARNING: w'],
    [{ errors: { runtime: 'r' } }, 'False', 'r'],
    [{ errors: { runtime: '' } }, 'True', 'kubelet is posting ready status'],
    [{ errors: { runtime: 'r', network: 'n', storage: 's', shutdown: 'd' } }, 'False', '[r, n, s, d]'],
    [{ errors: { runtime: 'r', network: 'r' } }, 'False', 'r'],
    [{ errors: { runtime: 'r' }, warning: 'w' }, 'False', 'r. WARNING: w'],
    [{ capacity: undefined }, 'False', 'missing node capacity for resources: cpu, memory, pods, ephemeral-storage'],
    [{ capacity: { cpu: '1', pods: '0' } }, 'False', 'missing node capacity for resources: memory, ephemeral-storage'],
    [
      { capacity: { cpu: '1', memory: '1' }, localStorageCapacityIsolation: false },
      'False',
      'missing node capacity for resources: pods',
    ],
  ])('with %j is %s', (more, status, message) => {
    const reason = status === 'True' ? 'KubeletReady' : 'KubeletNotReady';
    expect(words(more)).toEqual([status, reason, message]);
  });

  it('has a transition, and an event, when its status changes', () => {
    const existing = { type: 'Ready', status: 'True', lastTransitionTime: BEFORE } as const;
    expect(readyCondition(undefined, input)).toEqual({
      condition: expect.objectContaining({ type: 'Ready', lastHeartbeatTime: NOW, lastTransitionTime: NOW }),
    });
    expect(readyCondition(existing, input)).toEqual({
      condition: expect.objectContaining({ lastHeartbeatTime: NOW, lastTransitionTime: BEFORE }),
    });
    expect(readyCondition({ type: 'Ready', status: 'True' }, input).condition.lastTransitionTime).toBeNull();
    const down = readyCondition(existing, { ...input, errors: { runtime: 'r' } });
    expect([down.condition.lastTransitionTime, down.event]).toEqual([NOW, statusEvent('n1', 'NodeNotReady')]);
    const up = readyCondition({ type: 'Ready', status: 'Unknown' }, input);
    expect(up.event).toEqual({ type: 'Normal', reason: 'NodeReady', message: 'Node n1 status is now: NodeReady' });
  });
});

it('replaces the condition of its type in its place, or adds it', () => {
  const [a, b, changed] = [
    { type: 'A', status: 'True' },
    { type: 'B', status: 'True' },
    { type: 'A', status: 'False' },
  ] as const;
  expect(withCondition([a, b], changed)).toEqual([changed, b]);
  expect(withCondition([b], changed)).toEqual([b, changed]);
  expect(withCondition(undefined, a)).toEqual([a]);
  expect([conditionOf([a, b], 'B'), conditionOf([a], 'B'), conditionOf(undefined, 'A')]).toEqual([
    b,
    undefined,
    undefined,
  ]);
});
