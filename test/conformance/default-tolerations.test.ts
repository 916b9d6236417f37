/** Area DT: default tolerations on create and update of a pod. */
import { describe, expect, it } from 'vitest';
import { withDefaultTolerations } from '../../shared/domain/default-tolerations.ts';
import type { Toleration } from '../../shared/domain/kubernetes.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const of = (key: string, tolerationSeconds: number): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds,
});
const defaults = { notReadySeconds: 300, unreachableSeconds: 300 };

describe('default tolerations', () => {
  it('DT-01 a pod without tolerations gets not-ready, then unreachable, 300 s each', () => {
    expect(withDefaultTolerations([], defaults)).toEqual([of(NOT_READY, 300), of(UNREACHABLE, 300)]);
  });

  it('DT-03 keeps not-ready 700 s and appends unreachable', () => {
    expect(withDefaultTolerations([of(NOT_READY, 700)], defaults)).toEqual([of(NOT_READY, 700), of(UNREACHABLE, 300)]);
  });

  it('DT-05 leaves a pod that has both', () => {
    const both = [of(NOT_READY, 700), of(UNREACHABLE, 700)];
    expect(withDefaultTolerations(both, defaults)).toEqual(both);
  });

  it('DT-07 leaves a pod that tolerates everything for 700 s', () => {
    const all: Toleration[] = [{ operator: 'Exists', tolerationSeconds: 700 }];
    expect(withDefaultTolerations(all, defaults)).toEqual(all);
  });

  it('DT-09 another effect does not count', () => {
    const noSchedule: Toleration = { key: NOT_READY, operator: 'Exists', effect: 'NoSchedule' };
    expect(withDefaultTolerations([noSchedule], defaults)).toEqual([
      noSchedule,
      of(NOT_READY, 300),
      of(UNREACHABLE, 300),
    ]);
  });

  it('DT-11 the seconds are two settings', () => {
    expect(withDefaultTolerations([], { notReadySeconds: 30, unreachableSeconds: 60 })).toEqual([
      of(NOT_READY, 30),
      of(UNREACHABLE, 60),
    ]);
  });
});
