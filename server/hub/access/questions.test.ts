import { expect, it } from 'vitest';
import type { UpstreamAnswer } from '../upstream.ts';
import { questions } from './questions.ts';

it('asks once what is asked at the same time, and refuses more than 32 different questions', async () => {
  const waiting: ((answer: UpstreamAnswer) => void)[] = [];
  const upstream = { send: () => new Promise<UpstreamAnswer>((resolve) => waiting.push(resolve)) };
  const { ask } = questions(upstream, () => false);
  const shared = Array.from({ length: 100 }, () => ask('GET', '/keys'));
  const others = Array.from({ length: 31 }, (_, index) => ask('POST', '/reviews', { token: index }));
  expect(waiting).toHaveLength(32);
  await expect(ask('POST', '/reviews', { token: 'another' })).rejects.toMatchObject({ status: { code: 429 } });
  for (const answer of waiting.splice(0)) answer({ status: 200, headers: {}, body: Buffer.from('{"keys":[]}') });
  for (const answer of await Promise.all([...shared, ...others])) {
    expect(answer).toEqual({ kind: 'answered', body: { keys: [] } });
  }
  // A later question is asked again.
  const later = ask('GET', '/keys');
  expect(waiting).toHaveLength(1);
  waiting[0]!({ status: 503, headers: {}, body: Buffer.from('') });
  expect(await later).toMatchObject({ kind: 'unanswered' });
});
