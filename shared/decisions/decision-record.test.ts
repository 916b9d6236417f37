import { describe, expect, it } from 'vitest';
import type { NodeHealth } from '../fleet/nodes/health.ts';
import { defaultPolicy } from '../fleet/policy.ts';
import {
  aboutNode,
  aboutPod,
  aboutWorkload,
  aboutZone,
  fullPolicy,
  gateOf,
  healthOf,
  limiterOf,
  policyPart,
  rateText,
  recordedGate,
  recordedHealth,
  secondsText,
  zoneText,
} from './decision-record.ts';

it('a record names its object with what it has', () => {
  expect(aboutNode({ nodeName: 'n', uid: 'u' })).toEqual({ kind: 'Node', name: 'n', uid: 'u' });
  expect(aboutZone('a')).toEqual({ kind: 'Zone', name: 'a' });
  expect(aboutPod({ namespace: 'd', name: 'p', podUid: 'u' })).toEqual({
    kind: 'Pod',
    namespace: 'd',
    name: 'p',
    uid: 'u',
  });
  const metadata = { namespace: 'd', name: 'w', uid: 'u' };
  expect(aboutWorkload('Job', { metadata })).toEqual({ kind: 'Job', ...metadata });
  expect(aboutWorkload('Job', { metadata: {} })).toEqual({ kind: 'Job', namespace: '', name: '', uid: '' });
});

it('the policy is recorded in parts, and completed by its defaults', () => {
  const policy = { ...defaultPolicy, flapThreshold: 9, beatIntervalSeconds: 7 };
  const part = policyPart(policy, 'flapThreshold', 'beatIntervalSeconds');
  expect(part).toEqual({ flapThreshold: 9, beatIntervalSeconds: 7 });
  expect(fullPolicy(part)).toEqual(policy);
});

it('the digest of a node is recorded without what no rule reads', () => {
  const read = { zone: 'a', ready: 'True', renewedAtMs: 5, createdAtMs: 1, excluded: false } as const;
  const health = {
    ...read,
    nodeName: 'n',
    uid: 'u',
    suspect: false,
    podsToMark: true,
    flaps: new Uint8Array(7),
    leaseDurationSeconds: 40,
  } as unknown as NodeHealth;
  const recorded = recordedHealth(health);
  expect(recorded).toEqual(read);
  expect(healthOf({ kind: 'Node', name: 'n', uid: 'u' }, recorded)).toEqual({
    ...read,
    nodeName: 'n',
    uid: 'u',
    suspect: true,
  });
  expect(healthOf({ kind: 'Node', name: 'n' }, recorded).uid).toBe('');
});

it('a closed gate is recorded as its reasons, and an open one has none', () => {
  const reasons = ['missing-ticks'] as unknown as ReturnType<typeof recordedGate>;
  expect(recordedGate({ kind: 'holding', reasons, sinceMs: 5 })).toBe(reasons);
  expect(recordedGate({ kind: 'open' })).toEqual([]);
  expect(gateOf(reasons)).toEqual({ kind: 'holding', reasons, sinceMs: 0 });
  expect(gateOf([])).toEqual({ kind: 'open' });
});

it('a limiter that was never used has no time, also when it is read back', () => {
  expect(limiterOf(JSON.parse(JSON.stringify({ tatMs: undefined, ratePerSecond: 1 })))).toStrictEqual({
    tatMs: undefined,
    ratePerSecond: 1,
  });
});

describe('texts', () => {
  it.each([
    [40, '40 s'],
    [0.04, '0 s'],
    [0.05, '0.1 s'],
    [12.34, '12.3 s'],
  ])('%d seconds are %s', (value, text) => {
    expect(secondsText(value)).toBe(text);
  });

  it('name the zone of nodes without a label, and the rate of taints', () => {
    expect([zoneText('a'), zoneText('')]).toEqual(['a', '"" (nodes without a zone label)']);
    expect([rateText(0.1), rateText(0), rateText(0.3)]).toEqual([
      'one taint every 10 s',
      'no taints',
      'one taint every 3.3 s',
    ]);
  });
});
