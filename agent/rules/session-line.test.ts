import { describe, expect, it } from 'vitest';
import type { ContainerState, RunningPod } from '../ports/pod-runtime.ts';
import { lineWaitMs, needsLine } from './session-line.ts';

const podIn = (state: ContainerState, isInit = false): RunningPod => {
  const container = { name: 'c', state, restartCount: 0 };
  const names = { uid: 'u', namespace: 'd', name: 'p' };
  return isInit ? { ...names, initContainers: [container], containers: [] } : { ...names, containers: [container] };
};
const RUNNING: ContainerState = { kind: 'running', startedAtMs: 0 };

describe('the line for sessions', () => {
  it('is needed while a container runs', () => {
    expect(needsLine([])).toBe(false);
    expect(needsLine([podIn({ kind: 'waiting', reason: 'ContainerCreating' })])).toBe(false);
    expect(needsLine([podIn(RUNNING)])).toBe(true);
    expect(needsLine([podIn(RUNNING, true)])).toBe(true);
    const stopped = podIn({ kind: 'waiting', reason: 'CrashLoopBackOff' });
    const running = podIn(RUNNING);
    expect(needsLine([stopped, running])).toBe(true);
    expect(needsLine([{ ...running, containers: [...stopped.containers, ...running.containers] }])).toBe(true);
  });

  it('is tried again soon, later and later, and hourly where it is not served', () => {
    expect(lineWaitMs('failed', 0, 0, 0)).toBe(500);
    expect(lineWaitMs('failed', 0, 3, 0.5)).toBe(6_000);
    expect(lineWaitMs('failed', 0, 1_000, 1)).toBe(60_000);
    for (const status of [401, 429, 500, 503]) expect(lineWaitMs('refused', status, 0, 1)).toBe(1_000);
    for (const status of [400, 403, 404, 405]) expect(lineWaitMs('refused', status, 0, 1)).toBe(3_600_000);
  });
});
