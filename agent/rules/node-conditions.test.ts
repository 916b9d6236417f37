import { describe, expect, it } from 'vitest';
import { conditionOf, pressureCondition, type ReadyInput, readyCondition, withCondition } from './node-conditions.ts';

const NOW_MS = 1_700_000_000_000;
const NOW = '2023-11-14T22:13:20Z';
const BEFORE = '2023-01-01T00:00:00Z';

describe('a pressure condition', () => {
  const existing = { type: 'DiskPressure', status: 'False', extra: 'x', lastTransitionTime: BEFORE } as const;
  const input = { underPressure: false, nodeName: 'n1', nowMs: NOW_MS };

  it('keeps what others wrote in a transition', () => {
    expect(pressureCondition('DiskPressure', existing, { ...input, underPressure: true }).condition).toMatchObject({
      extra: 'x',
      status: 'True',
      lastTransitionTime: NOW,
    });
  });

  it('that the controller marked Unknown is overwritten, with an event', () => {
    const unknown = pressureCondition('DiskPressure', { ...existing, status: 'Unknown' }, input);
    expect([unknown.condition.status, unknown.event?.reason]).toEqual(['False', 'NodeHasNoDiskPressure']);
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
    [{ warning: '' }, 'True', 'kubelet is posting ready status'],
    [{ warning: 'w' }, 'True', 'kubelet is posting ready status. WARNING: w'],
    [{ errors: { runtime: '' } }, 'True', 'kubelet is posting ready status'],
    [{ errors: { runtime: 'r', network: 'n', storage: 's', shutdown: 'd' } }, 'False', '[r, n, s, d]'],
    [{ errors: { runtime: 'r' }, warning: 'w' }, 'False', 'r. WARNING: w'],
    [{ capacity: undefined }, 'False', 'missing node capacity for resources: cpu, memory, pods, ephemeral-storage'],
    [{ capacity: { cpu: '1', pods: '0' } }, 'False', 'missing node capacity for resources: memory, ephemeral-storage'],
  ])('with %j is %s', (more, status, message) => {
    const reason = status === 'True' ? 'KubeletReady' : 'KubeletNotReady';
    expect(words(more)).toEqual([status, reason, message]);
  });

  it('has no time of a transition that was not recorded, and an event after Unknown', () => {
    expect(readyCondition({ type: 'Ready', status: 'True' }, input).condition.lastTransitionTime).toBeNull();
    expect(readyCondition({ type: 'Ready', status: 'Unknown' }, input).event?.reason).toBe('NodeReady');
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
