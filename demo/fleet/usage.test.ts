import { describe, expect, it } from 'vitest';
import { usageAt, useOf } from './usage.ts';

const START_MS = Date.UTC(2026, 0, 1);
const pod = (phase: string, ...requests: object[]) => ({
  metadata: { name: 'p' },
  spec: { containers: requests.map((each) => ({ resources: { requests: each } })) },
  status: { phase },
});
const idle = useOf([]);

describe('the usage of a simulated machine', () => {
  it('is what its pods request, and that of its system', () => {
    const use = useOf([pod('Running', { cpu: '250m', memory: '64Mi' }, { cpu: 1 }), pod('Pending', {})]);
    expect(use.cpuCores - idle.cpuCores).toBeCloseTo(1.25, 9);
    expect(use.memoryBytes - idle.memoryBytes).toBe(64 * 2 ** 20);
  });

  it('does not count finished pods, nor requests that are not quantities', () => {
    const ended = { cpu: '1', memory: '1Gi' };
    expect(useOf([pod('Failed', ended), pod('Succeeded', ended), pod('Running', { cpu: 'much' })])).toEqual(idle);
  });

  it('is reported from the first full minute on, and changes once a minute', () => {
    const atSeconds = (seconds: number) => usageAt(idle, START_MS, START_MS + seconds * 1_000)?.atSeconds;
    const first = START_MS / 1_000 + 60;
    expect([0, 59, 60, 119, 120].map(atSeconds)).toEqual([undefined, undefined, first, first, first + 60]);
  });
});
