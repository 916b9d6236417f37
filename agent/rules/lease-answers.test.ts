import { describe, expect, it } from 'vitest';
import { renewedBy } from './lease-answers.ts';

const sent = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'n1', uid: 'u', resourceVersion: '1', annotations: { 'nodekeeper.dev/usage': '1' } },
  spec: { holderIdentity: 'n1' },
};

describe('the Lease after a renewal', () => {
  it('is the answer, if that is whole', () => {
    const answered = { ...sent, metadata: { ...sent.metadata, resourceVersion: '2' } };
    expect(renewedBy(sent, answered)).toBe(answered);
  });

  it('is what was sent with the version and the annotations of a minimal answer', () => {
    const answered = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'n1', resourceVersion: '2', annotations: { 'nodekeeper.dev/pods-version': '7' } },
    };
    expect(renewedBy(sent, answered)).toEqual({
      ...sent,
      metadata: { ...answered.metadata, uid: 'u' },
    });
    const { annotations: _none, ...metadata } = answered.metadata;
    expect(renewedBy(sent, { ...answered, metadata }).metadata.annotations).toBeUndefined();
  });
});
