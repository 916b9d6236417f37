import { expect, it } from 'vitest';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { nodeAnswer } from './node-answers.ts';

const answered = (status: number, body: unknown = {}, more: object = {}): KubeAnswer => ({
  ...{ kind: 'answered', status, body, serverTimeMs: undefined },
  ...more,
});
const node = { kind: 'Node', metadata: { name: 'n1' } };

it('a 200 with an object is our Node; a 404 means that it does not exist', () => {
  expect(nodeAnswer(answered(200, node), () => 0)).toEqual({ kind: 'node', node });
  const body = { message: 'not found' };
  expect(nodeAnswer(answered(404, body), () => 0)).toEqual({ kind: 'missing', cause: { status: 404, body } });
});

it.each([
  ['a page of a gateway', answered(200, '<html>')],
  ['another answer with the object', answered(201, node)],
  ['a fault of the server', answered(500, node)],
])('%s is a failure that may be tried at once', (_, answer) => {
  const failed = nodeAnswer(answer, () => 0);
  expect(failed).toMatchObject({ kind: 'failed', waitMs: 0, cause: { status: expect.any(Number) } });
});

it('the server may ask for a wait; without an answer there is none', () => {
  const busy = answered(429, {}, { retryAfterMs: 7_000 });
  const failed = nodeAnswer(busy, () => 0);
  expect(failed.kind === 'failed' && failed.waitMs >= 7_000).toBe(true);
  const cause = new Error('no route');
  const fraction = () => expect.fail('nothing asks for a wait');
  expect(nodeAnswer({ kind: 'failed', cause } as KubeAnswer, fraction)).toEqual({ kind: 'failed', cause, waitMs: 0 });
});
