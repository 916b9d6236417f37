import { describe, expect, it } from 'vitest';
import { causeText } from '../../kubernetes/status.ts';
import { leases } from './serve.ts';

const context = { nowMs: 0 };
const metadata = { name: 'kw-1', namespace: 'kube-node-lease' };
const complaints = (spec: Record<string, unknown>): string[] =>
  leases
    .validate(leases.prepareForCreate({ metadata, spec }, context), { operation: 'create', subresource: '' })
    .map(causeText);

describe('leases', () => {
  it('keep microseconds and drop nulls', () => {
    expect(
      leases.prepareForCreate(
        { metadata, spec: { holderIdentity: 'kw-1', acquireTime: null, renewTime: '2001-02-03T04:05:06.789012Z' } },
        context,
      ),
    ).toEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata,
      spec: { holderIdentity: 'kw-1', renewTime: '2001-02-03T04:05:06.789012Z' },
    });
  });

  it('require a positive duration', () => {
    expect(complaints({ leaseDurationSeconds: -5 })).toEqual([
      'spec.leaseDurationSeconds: Invalid value: -5: must be greater than 0',
    ]);
    expect(complaints({ leaseDurationSeconds: 40 })).toEqual([]);
  });

  it('require non-negative transitions', () => {
    expect(complaints({ leaseTransitions: -1 })).toEqual([
      'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0',
    ]);
  });

  it('may have an empty holder, as after the release of a leader', () => {
    expect(complaints({ holderIdentity: '' })).toEqual([]);
  });

  it('refuse a malformed time', () => {
    expect(complaints({ renewTime: 'soon' })).toHaveLength(1);
  });

  it('are created by an update, and never replaced without a resourceVersion', () => {
    expect(leases).toMatchObject({ createOnUpdate: true, unconditionalUpdate: false });
  });

  it('show their holder', () => {
    const lease = {
      metadata: { ...metadata, creationTimestamp: '1970-01-01T00:00:00Z' },
      spec: { holderIdentity: 'h' },
    };
    expect(leases.row(lease, 5_000)).toEqual(['kw-1', 'h', '5s']);
  });
});
