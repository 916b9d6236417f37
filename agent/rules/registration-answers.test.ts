import { expect, it } from 'vitest';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { registrationAnswer } from './registration-answers.ts';

const meaning = (status: number, body: unknown) =>
  registrationAnswer({ kind: 'answered', status, body } as KubeAnswer, 'n1');
const node = { kind: 'Node', metadata: { name: 'n1', uid: 'u' } };

it('a Node of our name is registered', () => {
  for (const status of [200, 201]) expect(meaning(status, node)).toEqual({ kind: 'registered', node });
  const other = { ...node, metadata: { name: 'n2', uid: 'u' } };
  expect(meaning(201, other)).toEqual({ kind: 'failed', why: '201, but the answer is not the Node n1' });
});

it('a Node that may exist is read; every other answer is a failure', () => {
  expect(meaning(403, {})).toEqual({ kind: 'mayExist' });
  expect(meaning(409, { reason: 'AlreadyExists' })).toEqual({ kind: 'mayExist' });
  expect(meaning(409, { reason: 'Conflict', message: 'x' })).toEqual({ kind: 'failed', why: '409 x' });
  expect(meaning(500, { reason: 'AlreadyExists' })).toEqual({ kind: 'failed', why: '500' });
  const failed = registrationAnswer({ kind: 'failed', cause: new Error('no route') } as KubeAnswer, 'n1');
  expect(failed).toEqual({ kind: 'failed', why: 'no route' });
});
