import { describe, expect, it } from 'vitest';
import type { ConditionStatus } from '../../kubernetes/kubernetes.ts';
import { defaultPolicy } from '../policy.ts';
import { healthVerdict, isReturning, isSuspect, lastSignOfLifeMs } from './health.ts';

const signs = (
  overrides: Partial<{
    createdAtMs: number;
    renewedAtMs: number | undefined;
    statusAtMs: number | undefined;
    ready: ConditionStatus | undefined;
    markedAtMs: number;
  }> = {},
) => ({
  createdAtMs: 0,
  renewedAtMs: undefined,
  statusAtMs: undefined,
  ready: 'True' as ConditionStatus | undefined,
  ...overrides,
});
const at = (nowMs: number, freshSinceMs = 0, policy = defaultPolicy) => ({ nowMs, freshSinceMs, policy });

describe('healthVerdict', () => {
  it('keeps a node with a beat exactly one grace period old, and reports it silent a millisecond later', () => {
    const node = signs({ renewedAtMs: 100_000 });
    expect(healthVerdict(node, at(140_000)).kind).toBe('late');
    expect(healthVerdict(node, at(140_001))).toEqual({ kind: 'silent', silentMs: 40_001, deadlineMs: 140_000 });
  });

  it('uses the later of lease renewal and status post', () => {
    expect(healthVerdict(signs({ renewedAtMs: 10_000, statusAtMs: 100_000 }), at(140_000)).kind).toBe('late');
    expect(healthVerdict(signs({ renewedAtMs: 100_000, statusAtMs: 10_000 }), at(140_000)).kind).toBe('late');
  });

  it('calls a node late after one beat interval', () => {
    expect(healthVerdict(signs({ renewedAtMs: 100_000 }), at(110_000)).kind).toBe('alive');
    expect(healthVerdict(signs({ renewedAtMs: 100_000 }), at(110_001)).kind).toBe('late');
  });

  it('knows no negative silence', () => {
    expect(healthVerdict(signs({ renewedAtMs: 100_000 }), at(90_000))).toMatchObject({ kind: 'alive', silentMs: 0 });
  });

  it('starts a full grace period for every node at freshSinceMs, and still reports the actual silence', () => {
    const node = signs({ renewedAtMs: 0 });
    expect(healthVerdict(node, at(140_000, 100_000))).toMatchObject({ kind: 'late', silentMs: 140_000 });
    expect(healthVerdict(node, at(140_001, 100_000)).kind).toBe('silent');
  });

  it('counts the startup grace of a node without Ready from its creation', () => {
    const node = signs({ ready: undefined, createdAtMs: 50_000 });
    expect(healthVerdict(node, at(110_000)).kind).toBe('late');
    expect(healthVerdict(node, at(110_001)).kind).toBe('silent');
  });

  it('keeps a node that beats and never posts status', () => {
    const node = signs({ ready: undefined, renewedAtMs: 3_600_000 });
    expect(healthVerdict(node, at(3_600_000)).kind).toBe('alive');
    expect(healthVerdict(node, at(3_660_001)).kind).toBe('silent');
  });

  it('does not let a short startup grace break the beat of a node that never posted', () => {
    const policy = { ...defaultPolicy, nodeStartupGracePeriodSeconds: 5 };
    expect(healthVerdict(signs({ ready: undefined, renewedAtMs: 60_000 }), at(95_000, 0, policy)).kind).toBe('late');
  });
});

describe('lastSignOfLifeMs', () => {
  it('falls back on creation', () => {
    expect(lastSignOfLifeMs(signs({ createdAtMs: 7 }), 0)).toBe(7);
  });
});

describe('isReturning', () => {
  const verdict = (node: ReturnType<typeof signs>, nowMs: number) => healthVerdict(node, at(nowMs));

  it('is a node that has beaten since it was marked', () => {
    const node = signs({ ready: 'Unknown', markedAtMs: 50_000, renewedAtMs: 60_000 });
    expect(isReturning(node, verdict(node, 61_000))).toBe(true);
  });

  it('is not a node that is silent again, nor one with its own status Unknown', () => {
    const again = signs({ ready: 'Unknown', markedAtMs: 50_000, renewedAtMs: 60_000 });
    expect(isReturning(again, verdict(again, 100_001))).toBe(false);
    const posted = signs({ ready: 'Unknown', statusAtMs: 60_000 });
    expect(isReturning(posted, verdict(posted, 61_000))).toBe(false);
  });
});

describe('isSuspect', () => {
  const none = { notReady: false, unreachable: false };
  it('is anything but a Ready node without taints of ours', () => {
    expect(isSuspect({ ready: 'True', noExecute: none })).toBe(false);
    expect(isSuspect({ ready: 'True', noExecute: { ...none, unreachable: true } })).toBe(true);
    expect(isSuspect({ ready: undefined, noExecute: none })).toBe(true);
  });
});
