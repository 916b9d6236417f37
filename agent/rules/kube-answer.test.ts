import { describe, expect, it } from 'vitest';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { describeAnswer, isTransient, leaseIn, nodeIn, objectIn, reasonOf } from './kube-answer.ts';
import { leaseRead, leaseWrite } from './lease-answers.ts';
import { nodeAnswer } from './node-answers.ts';
import { registrationAnswer } from './registration-answers.ts';

const answered = (status: number, body: unknown = {}, more: object = {}) =>
  ({ kind: 'answered', status, body, ...more }) as unknown as KubeAnswer;
const FAILED = { kind: 'failed', cause: new Error('no route') } as unknown as KubeAnswer;
const lease = { kind: 'Lease', metadata: { name: 'n' } };
const node = { kind: 'Node', metadata: { name: 'n', uid: 'u' } };

describe('an answer of the API', () => {
  it('may be another one later: without an answer, with 429, and from 500 on', () => {
    const statuses = [200, 404, 428, 429, 430, 499, 500, 503];
    expect(statuses.filter((status) => isTransient(answered(status)))).toEqual([429, 500, 503]);
    expect(isTransient(FAILED)).toBe(true);
  });

  it.each<[string, KubeAnswer]>([
    ['no answer', FAILED],
    ['a text', answered(200, '<html>')],
    ['nothing', answered(200, null)],
    ['a body without metadata', answered(200, { kind: 'Lease' })],
    ['metadata that are no object', answered(200, { kind: 'Lease', metadata: 'n' })],
  ])('has no object in %s', (_what, answer) => {
    expect(objectIn(answer)).toBeUndefined();
    expect(leaseIn(answer, 'n')).toBeUndefined();
    expect(nodeIn(answer, 'n')).toBeUndefined();
  });

  it('has our Node by kind, name and uid, and our Lease by kind and name', () => {
    expect(nodeIn(answered(200, node), 'n')).toBe(node);
    expect(nodeIn(answered(200, node), 'm')).toBeUndefined();
    expect(nodeIn(answered(200, { ...node, kind: 'Pod' }), 'n')).toBeUndefined();
    expect(nodeIn(answered(200, { ...node, metadata: { name: 'n', uid: '' } }), 'n')).toBeUndefined();
    expect(nodeIn(answered(200, { ...node, metadata: { name: 'n' } }), 'n')).toBeUndefined();
    expect(leaseIn(answered(200, lease), 'n')).toBe(lease);
    expect(leaseIn(answered(200, lease), 'm')).toBeUndefined();
    expect(leaseIn(answered(200, { ...lease, kind: 'Node' }), 'n')).toBeUndefined();
  });

  it('has a reason that is a text, or none', () => {
    const bodies = [{ reason: 'Conflict' }, { reason: 1 }, {}, 'text'];
    expect([...bodies.map((body) => reasonOf(answered(409, body))), reasonOf(FAILED)]).toEqual([
      'Conflict',
      '',
      '',
      '',
      '',
    ]);
  });

  it('is described by status and message, or by what failed', () => {
    expect(describeAnswer(answered(409, { message: 'exists' }))).toBe('409 exists');
    expect(describeAnswer(answered(409, { message: 1 }))).toBe('409');
    expect(describeAnswer(answered(502, '<html>'))).toBe('502');
    expect(describeAnswer(FAILED)).toBe('no route');
    expect(describeAnswer({ kind: 'failed', cause: 'reset' } as unknown as KubeAnswer)).toBe('reset');
  });
});

describe('a Lease', () => {
  it.each<[string, KubeAnswer, object, object]>([
    ['200', answered(200, lease), { kind: 'found', lease }, { kind: 'written', lease }],
    ['201', answered(201, lease), { kind: 'failed' }, { kind: 'written', lease }],
    ['200 without it', answered(200), { kind: 'failed' }, { kind: 'failed' }],
    ['404', answered(404), { kind: 'missing' }, { kind: 'missing' }],
    ['404 with a Lease', answered(404, lease), { kind: 'missing' }, { kind: 'missing' }],
    ['409', answered(409), { kind: 'failed' }, { kind: 'conflict' }],
    ['500', answered(500, lease), { kind: 'failed' }, { kind: 'failed' }],
    ['no answer', FAILED, { kind: 'failed' }, { kind: 'failed' }],
  ])('is read and written with %s', (_what, answer, read, written) => {
    expect(leaseRead(answer, 'n')).toEqual(read);
    expect(leaseWrite(answer, 'n')).toEqual(written);
  });
});

describe('our Node', () => {
  it.each<[string, KubeAnswer, object]>([
    ['200', answered(200, node), { kind: 'node', node }],
    ['200 without it', answered(200, 'x'), { kind: 'failed', cause: { status: 200, body: 'x' }, waitMs: 0 }],
    ['201', answered(201, node), { kind: 'failed', cause: { status: 201, body: node }, waitMs: 0 }],
    ['404', answered(404), { kind: 'missing', cause: { status: 404, body: {} } }],
    [
      '429 with a wait',
      answered(429, {}, { retryAfterMs: 2_000 }),
      { kind: 'failed', cause: { status: 429, body: {} }, waitMs: 2_500 },
    ],
  ])('is read with %s', (_what, answer, meaning) => {
    expect(nodeAnswer(answer, () => 0.5)).toEqual(meaning);
  });

  it('is read without an answer, and then no wait is asked for', () => {
    const answer = nodeAnswer(FAILED, () => 0.5);
    expect(answer).toEqual({ kind: 'failed', cause: new Error('no route'), waitMs: 0 });
  });

  it.each<[string, KubeAnswer, object]>([
    ['200', answered(200, node), { kind: 'registered', node }],
    ['201', answered(201, node), { kind: 'registered', node }],
    ['201 with another object', answered(201, lease), { kind: 'failed', why: '201, but the answer is not the Node n' }],
    ['403', answered(403), { kind: 'mayExist' }],
    ['409 of an existing one', answered(409, { reason: 'AlreadyExists' }), { kind: 'mayExist' }],
    ['409 of a conflict', answered(409, { reason: 'Conflict', message: 'm' }), { kind: 'failed', why: '409 m' }],
    ['422 with that reason', answered(422, { reason: 'AlreadyExists' }), { kind: 'failed', why: '422' }],
    ['no answer', FAILED, { kind: 'failed', why: 'no route' }],
  ])('is registered with %s', (_what, answer, meaning) => {
    expect(registrationAnswer(answer, 'n')).toEqual(meaning);
  });
});
