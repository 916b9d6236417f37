import { expect, it } from 'vitest';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { relayedLease } from './relayed-lease.ts';

const PODS = 'nodekeeper.dev/pods-version';
const LOGS = 'nodekeeper.dev/logs-version';
const INTERVAL = 'nodekeeper.dev/beat-interval-seconds';
const DURATION = 'nodekeeper.dev/lease-duration-seconds';
const sent = {
  kind: 'Lease',
  metadata: { name: 'n', labels: { a: 'b' }, annotations: { own: '1', [PODS]: '3', 'nodekeeper.dev/usage': 'u' } },
  spec: { holderIdentity: 'n' },
};
const answerOf = (metadata: object, over: object = {}) =>
  ({
    kind: 'answered',
    status: 200,
    body: { kind: 'Lease', metadata: { name: 'n', ...metadata } },
    ...over,
  }) as unknown as KubeAnswer;

it('has the version and the news of the answer, and what was sent', () => {
  const annotations = { [PODS]: '4', [LOGS]: '5', [INTERVAL]: '6', [DURATION]: '7', other: 'x', own: '2' };
  const answer = answerOf({ resourceVersion: '9', annotations, labels: { a: 'z' }, ownerReferences: [{}] });
  expect(relayedLease(answer, sent, 'n')).toEqual({
    ...sent,
    metadata: {
      name: 'n',
      labels: { a: 'b' },
      resourceVersion: '9',
      annotations: { own: '1', [PODS]: '4', [LOGS]: '5', [INTERVAL]: '6', [DURATION]: '7' },
    },
  });
});

it('has no news that the answer leaves out, or that are no texts, and no usage', () => {
  const answer = answerOf({ resourceVersion: '9', annotations: { [LOGS]: 5 } });
  expect(relayedLease(answer, sent, 'n')?.metadata.annotations).toEqual({ own: '1' });
  const alone = { ...sent, metadata: { name: 'n', annotations: { [PODS]: '3' } } };
  expect(relayedLease(answerOf({ resourceVersion: '9' }), alone, 'n')?.metadata).toEqual({
    name: 'n',
    resourceVersion: '9',
  });
  const without = { ...sent, metadata: { name: 'n' } };
  expect(Object.keys(relayedLease(answer, without, 'n')?.metadata ?? {})).toEqual(['name', 'resourceVersion']);
});

it.each<[string, KubeAnswer]>([
  ['no answer', { kind: 'failed', cause: new Error('x') } as unknown as KubeAnswer],
  ['another status', answerOf({ resourceVersion: '9' }, { status: 201 })],
  ['another Lease', answerOf({ resourceVersion: '9', name: 'm' })],
  ['no version', answerOf({})],
  ['a version that is no text', answerOf({ resourceVersion: 9 })],
  ['a version that is no number', answerOf({ resourceVersion: 'v9' })],
  ['a version with more after it', answerOf({ resourceVersion: '9 ' })],
  ['an empty version', answerOf({ resourceVersion: '' })],
  ['a version of 17 digits', answerOf({ resourceVersion: '1'.repeat(17) })],
])('refuses %s', (_what, answer) => {
  expect(relayedLease(answer, sent, 'n')).toBeUndefined();
});

it('accepts a version of 16 digits', () => {
  expect(relayedLease(answerOf({ resourceVersion: '1'.repeat(16) }), sent, 'n')).toBeDefined();
});
