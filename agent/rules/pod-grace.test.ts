import { describe, expect, it } from 'vitest';
import { defined } from '../../shared/defined.ts';
import { deletionGraceSeconds } from './pod-grace.ts';

const pod = (own?: number, deletion?: number) => ({
  metadata: { name: 'p', ...defined({ deletionGracePeriodSeconds: deletion }) },
  spec: own === undefined ? {} : { terminationGracePeriodSeconds: own },
});

describe('grace of a deletion', () => {
  it('is what the deletion says, else the pod, and at least one second', () => {
    expect(deletionGraceSeconds(pod(30, 5))).toBe(5);
    expect(deletionGraceSeconds(pod(30))).toBe(30);
    expect(deletionGraceSeconds(pod(30, 0))).toBe(1);
    expect(deletionGraceSeconds(pod())).toBe(1);
  });
});
