import { describe, expect, it } from 'vitest';
import type { NodeCondition } from '../../kubernetes/kubernetes.ts';
import { markPodNotReady, marksPodsBoundNow, markUnknown } from './conditions.ts';

const at = { nowMs: 3_600_000, createdAtMs: 60_000 };

describe('markUnknown', () => {
  it('adds all four conditions to a node that never posted', () => {
    const marked = markUnknown(undefined, at);
    expect(marked?.map((condition) => condition.type)).toEqual([
      'Ready',
      'MemoryPressure',
      'DiskPressure',
      'PIDPressure',
    ]);
    expect(marked?.[0]).toEqual({
      type: 'Ready',
      status: 'Unknown',
      reason: 'NodeStatusNeverUpdated',
      message: 'Kubelet never posted node status.',
      lastHeartbeatTime: '1970-01-01T00:01:00Z',
      lastTransitionTime: '1970-01-01T01:00:00Z',
    });
  });

  it('overwrites what was posted, keeps its heartbeat time, and leaves NetworkUnavailable and what is Unknown', () => {
    const posted: NodeCondition[] = [
      { type: 'NetworkUnavailable', status: 'False' },
      { type: 'DiskPressure', status: 'Unknown', reason: 'x' },
      { type: 'Ready', status: 'True', lastHeartbeatTime: '1970-01-01T00:30:00Z', reason: 'KubeletReady' },
    ];
    const marked = markUnknown(posted, at);
    expect(marked?.slice(0, 3)).toEqual([
      posted[0],
      posted[1],
      {
        type: 'Ready',
        status: 'Unknown',
        reason: 'NodeStatusUnknown',
        message: 'Kubelet stopped posting node status.',
        lastHeartbeatTime: '1970-01-01T00:30:00Z',
        lastTransitionTime: '1970-01-01T01:00:00Z',
      },
    ]);
    expect(marked?.slice(3).map((condition) => condition.type)).toEqual(['MemoryPressure', 'PIDPressure']);
    expect(posted[2]?.status).toBe('True');
  });

  it('writes nothing where Ready is Unknown, even if pressure conditions are missing', () => {
    expect(markUnknown([{ type: 'Ready', status: 'Unknown' }], at)).toBeUndefined();
  });
});

describe('markPodNotReady', () => {
  it('sets Ready False with the time, and keeps the rest', () => {
    expect(
      markPodNotReady(
        [
          { type: 'Initialized', status: 'True' },
          { type: 'Ready', status: 'True', reason: 'r' },
        ],
        1_000,
      ),
    ).toEqual([
      { type: 'Initialized', status: 'True' },
      { type: 'Ready', status: 'False', reason: 'r', lastTransitionTime: '1970-01-01T00:00:01Z' },
    ]);
  });

  it('leaves a pod without Ready, and one that is not ready', () => {
    expect(markPodNotReady([], 0)).toBeUndefined();
    expect(markPodNotReady(undefined, 0)).toBeUndefined();
    expect(markPodNotReady([{ type: 'Ready', status: 'False' }], 0)).toBeUndefined();
  });

  it('marks a pod with Ready Unknown', () => {
    expect(markPodNotReady([{ type: 'Ready', status: 'Unknown' }], 0)?.[0]?.status).toBe('False');
  });
});

describe('marksPodsBoundNow', () => {
  it('speaks only of nodes known not to be Ready', () => {
    expect(marksPodsBoundNow('Unknown')).toBe(true);
    expect(marksPodsBoundNow('False')).toBe(true);
    expect(marksPodsBoundNow('True')).toBe(false);
    expect(marksPodsBoundNow(undefined)).toBe(false);
  });
});
