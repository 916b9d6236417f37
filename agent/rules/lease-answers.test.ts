import { describe, expect, it } from 'vitest';
import { answered, timedOut } from '../../test/support/agent-api.ts';
import { isMissedBeat, leaseRead, leaseWrite, renewedBy } from './lease-answers.ts';

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

describe('an answer', () => {
  const page = answered(200, '<html>');
  const lease = { kind: 'Lease', metadata: { name: 'n1' } };
  const other = { kind: 'Lease', metadata: { name: 'n2' } };

  it.each([
    [200, false],
    [399, false],
    [400, true],
    [403, true],
    [404, false],
    [409, false],
    [503, true],
  ])('%i to a heartbeat shows an outage: %s', (status, isMissed) => {
    expect(isMissedBeat(answered(status, {}))).toBe(isMissed);
  });

  it('that never came shows an outage', () => {
    expect(isMissedBeat(timedOut)).toBe(true);
  });

  it('to a read has the Lease of this node, or shows that there is none', () => {
    expect(leaseRead(answered(200, lease), 'n1')).toEqual({ kind: 'found', lease });
    expect(leaseRead(answered(404, {}), 'n1')).toEqual({ kind: 'missing' });
    for (const answer of [page, answered(200, other), answered(201, lease), answered(500, {}), timedOut])
      expect(leaseRead(answer, 'n1')).toEqual({ kind: 'failed' });
  });

  it('to a write has the Lease of this node, or says why it was not written', () => {
    for (const status of [200, 201])
      expect(leaseWrite(answered(status, lease), 'n1')).toEqual({ kind: 'written', lease });
    expect(leaseWrite(answered(409, {}), 'n1')).toEqual({ kind: 'conflict' });
    expect(leaseWrite(answered(404, {}), 'n1')).toEqual({ kind: 'missing' });
    for (const answer of [page, answered(200, other), answered(202, lease), answered(500, {}), timedOut])
      expect(leaseWrite(answer, 'n1')).toEqual({ kind: 'failed' });
  });
});
