import { expect, it } from 'vitest';
import type { CloudAnswer } from './instance.ts';
import { cloudCheckFailed, cloudState, provenAnswer } from './watch-list.rule.ts';

it.each<[CloudAnswer, string | undefined]>([
  [{ kind: 'failed', cause: 'timeout', message: 'no answer' }, 'EC2 request failed (timeout: no answer)'],
  [{ kind: 'foreign', reason: 'another region' }, 'another region'],
  [{ kind: 'notEc2', reason: 'no providerID' }, 'no providerID'],
  [{ kind: 'notFound' }, undefined],
  [{ kind: 'found', state: 'running', launchedAtMs: 0 }, undefined],
])('the answer %j keeps the node for a reason: %s', (answer, why) => {
  const event = cloudCheckFailed(answer);
  expect(event?.message).toBe(why && `Node is kept because its instance could not be checked: ${why}`);
  if (why !== undefined) expect(event).toMatchObject({ type: 'Warning', reason: 'CloudCheckFailed' });
});

it.each<[CloudAnswer, string]>([
  [{ kind: 'found', state: 'stopped', launchedAtMs: 0 }, 'stopped'],
  [{ kind: 'failed', cause: 'throttled', message: '' }, 'throttled'],
  [{ kind: 'notFound' }, 'notFound'],
  [{ kind: 'foreign', reason: '' }, 'foreign'],
  [{ kind: 'notEc2', reason: '' }, 'notEc2'],
])('the answer %j counts as %s', (answer, state) => {
  expect(cloudState(answer)).toBe(state);
});

it('an instance that is not found proves nothing if it may be in another region', () => {
  const notFound: CloudAnswer = { kind: 'notFound' };
  expect(provenAnswer({ region: undefined }, notFound).kind).toBe('foreign');
  expect(provenAnswer({ region: 'eu-central-1' }, notFound)).toBe(notFound);
  const found: CloudAnswer = { kind: 'found', state: 'running', launchedAtMs: 0 };
  expect(provenAnswer({ region: undefined }, found)).toBe(found);
});
