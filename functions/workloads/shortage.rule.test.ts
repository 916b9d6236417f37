import { describe, expect, it } from 'vitest';
import { longestSeconds, shortagesOf } from './shortage.rule.ts';

const workload = (resource: string, uid: string, { spec = {}, status = {}, owners = [] as object[] } = {}) => ({
  resource,
  object: { metadata: { name: uid, uid, ownerReferences: owners as never }, spec, status },
});

describe('shortages', () => {
  it.each([
    ['deployments', { spec: { replicas: 2 }, status: { availableReplicas: 1 } }, true],
    ['deployments', { spec: { replicas: 2 }, status: { availableReplicas: 2 } }, false],
    ['statefulsets', {}, true],
    ['statefulsets', { status: { availableReplicas: 1 } }, false],
    ['replicationcontrollers', { spec: { replicas: 0 } }, false],
    ['replicasets', { spec: { replicas: 1 } }, true],
    ['replicasets', { spec: { replicas: 1 }, owners: [{ uid: 'd', controller: true }] }, false],
    ['daemonsets', { status: { numberAvailable: 1, desiredNumberScheduled: 2 } }, true],
    ['daemonsets', { status: { numberAvailable: 2, desiredNumberScheduled: 2 } }, false],
    ['daemonsets', {}, false],
    ['jobs', { spec: { replicas: 3 } }, false],
  ])('%s %j is one: %s', (resource, parts, isOne) => {
    expect(shortagesOf({}, [workload(resource, 'u', parts)], 7)).toEqual(isOne ? { u: 7 } : {});
  });

  it('keep the time at which they were seen first, until they are over', () => {
    const lacking = workload('deployments', 'a', { spec: { replicas: 2 } });
    expect(shortagesOf({ a: 3, over: 1 }, [lacking], 7)).toEqual({ a: 3 });
  });

  it('are remembered up to 2,000, the longest first', () => {
    const workloads = Array.from({ length: 2_001 }, (_, index) => workload('deployments', `u${index}`));
    const kept = shortagesOf({ u2000: 1 }, workloads, 7);
    expect(Object.keys(kept)).toHaveLength(2_000);
    expect(kept).toHaveProperty('u2000', 1);
    expect(kept).not.toHaveProperty('u1999');
  });

  it('last whole seconds since the earliest', () => {
    expect(longestSeconds({}, 9_999)).toBeUndefined();
    expect(longestSeconds({ a: 5_000, b: 1_001 }, 9_000)).toBe(7);
  });
});
