import { describe, expect, it } from 'vitest';
import { answered, timedOut } from '../../test/support/agent-api.ts';
import { batchAnswers, batchRequest, notRelayed, refusesReads, relayedRequest, statusAnswer } from './relay.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const beat = { method: 'PUT', target: `${LEASES}/n-1.a`, authorization: 'Bearer abc', collect: undefined, body: '{}' };

describe('a request to a relay', () => {
  it.each(['PUT', 'PATCH'])('is relayed: %s of a Lease, with its token', (method) => {
    expect(relayedRequest({ ...beat, method })).toEqual({
      kind: 'heartbeat',
      item: { method, path: `${LEASES}/n-1.a`, token: 'abc', body: '{}' },
      collectMs: 2_000,
    });
  });

  it.each([
    ['1000', 1_000],
    ['0', 500],
    ['499', 500],
    ['2001', 2_000],
    ['-1', 2_000],
    ['1e2', 2_000],
    ['600, 700', 2_000],
  ])('is collected for the time in its header %j, within bounds', (collect, collectMs) => {
    expect(relayedRequest({ ...beat, collect })).toMatchObject({ kind: 'heartbeat', collectMs });
  });

  it.each(['bearer abc', 'BEARER   abc  '])('has its token in %j', (authorization) => {
    expect(relayedRequest({ ...beat, authorization })).toMatchObject({ item: { token: 'abc' } });
  });

  it.each([
    [{ target: `${LEASES}/` }, 404],
    [{ target: `${LEASES}/N1` }, 404],
    [{ target: `${LEASES}/n1/status` }, 404],
    [{ target: `${LEASES}/n1?x=1` }, 404],
    [{ target: `/x${LEASES}/n1` }, 404],
    [{ target: `${LEASES}/${'n'.repeat(254)}` }, 404],
    [{ method: 'GET' }, 405],
    [{ method: 'DELETE' }, 405],
    [{ authorization: undefined }, 401],
    [{ authorization: 'Basic abc' }, 401],
    [{ authorization: 'Bearer' }, 401],
    [{ authorization: 'Bearer a b' }, 401],
    [{ authorization: 'x Bearer a' }, 401],
    [{ authorization: `Bearer ${'a'.repeat(2_049)}` }, 401],
  ])('is refused with %j', (more, status) => {
    expect(relayedRequest({ ...beat, ...more })).toMatchObject({ kind: 'refused', answer: { status } });
  });

  it('may have the longest name and the longest token', () => {
    const target = `${LEASES}/${'n'.repeat(253)}`;
    expect(relayedRequest({ ...beat, target })).toMatchObject({ kind: 'heartbeat' });
    const authorization = `Bearer ${'a'.repeat(2_048)}`;
    expect(relayedRequest({ ...beat, authorization })).toMatchObject({ kind: 'heartbeat' });
  });
});

describe('an answer of the relay itself', () => {
  it('is a Status', () => {
    expect(statusAnswer(404, 'NotFound', 'none')).toEqual({
      status: 404,
      body: {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'none',
        reason: 'NotFound',
        code: 404,
      },
    });
    expect(notRelayed('full')).toMatchObject({
      status: 503,
      body: { reason: 'ServiceUnavailable', message: 'the heartbeat was not relayed: full' },
    });
  });

  it('shows a relay by its refusal of a read', () => {
    const refusal = relayedRequest({ ...beat, method: 'GET' });
    if (refusal.kind !== 'refused') throw new Error('not refused');
    const { status, body } = refusal.answer;
    expect(refusesReads({ status, body })).toBe(true);
    expect(refusesReads({ status: 401, body })).toBe(false);
    expect(refusesReads({ status, body: { message: 'not allowed' } })).toBe(false);
    expect(refusesReads({ status, body: 'x' })).toBe(false);
  });
});

describe('a batch', () => {
  const item = { method: 'PUT' as const, path: `${LEASES}/n1`, token: 't', body: '{}' };
  const request = batchRequest([item, item]);
  const { kind } = request.body as { kind: string };
  const sent = [item, { ...item, path: `${LEASES}/n2` }];
  const batch = (items: unknown, more: object = {}) => answered(200, { kind, items, ...more });

  it('is one request', () => {
    expect(request).toMatchObject({ method: 'POST', body: { items: [item, item] } });
    expect(kind).not.toBe('');
  });

  it('completes the Leases of its answer, and leaves other answers', () => {
    const lease = { metadata: { resourceVersion: '5', annotations: { a: 'b' } } };
    const refused = { status: 401, body: { metadata: {}, reason: 'Unauthorized' }, retryAfterSeconds: 3 };
    expect(batchAnswers(batch([{ status: 200, body: lease }, refused]), sent)).toEqual({
      kind: 'answered',
      items: [
        {
          status: 200,
          body: {
            apiVersion: 'coordination.k8s.io/v1',
            kind: 'Lease',
            metadata: { name: 'n1', namespace: 'kube-node-lease', resourceVersion: '5', annotations: { a: 'b' } },
          },
        },
        refused,
      ],
    });
    const bare = { status: 200, body: { x: 1 } };
    expect(batchAnswers(batch([bare]), [item])).toEqual({ kind: 'answered', items: [bare] });
  });

  it.each([
    [timedOut, 'no answer'],
    [answered(500, { kind, items: [] }), '500'],
    [answered(200, undefined), 'the answer is not that to our batch'],
    [batch([], { kind: 'Other' }), 'the answer is not that to our batch'],
    [batch('x'), 'the answer is not that to our batch'],
    [batch([{ status: 200, body: {} }]), 'the answer is not that to our batch'],
  ])('fails with %j', (answer, why) => {
    expect(batchAnswers(answer, sent)).toEqual({ kind: 'failed', why });
  });

  it.each([
    [{ status: 200, body: {} }, true],
    [{ status: 599, body: {} }, true],
    [{ status: 429, body: {}, retryAfterSeconds: 0 }, true],
    [{ status: 429, body: {}, retryAfterSeconds: 86_400 }, true],
    [{ status: 199, body: {} }, false],
    [{ status: 600, body: {} }, false],
    [{ status: 200.5, body: {} }, false],
    [{ status: '200', body: {} }, false],
    [{ status: 429, body: {}, retryAfterSeconds: -1 }, false],
    [{ status: 429, body: {}, retryAfterSeconds: 86_401 }, false],
    [{ status: 429, body: {}, retryAfterSeconds: '1' }, false],
    [{ status: 200, body: 'x' }, false],
    [{ status: 200 }, false],
    ['x', false],
  ])('passes on the item %j: %s', (given, isPassed) => {
    const malformed = notRelayed('the answer of the cluster is malformed');
    expect(batchAnswers(batch([given]), [item])).toEqual({ kind: 'answered', items: [isPassed ? given : malformed] });
  });
});
