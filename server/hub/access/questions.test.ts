import { expect, it } from 'vitest';
import type { UpstreamAnswer } from '../upstream.ts';
import { questions } from './questions.ts';

it('asks once what is asked at the same time, 8 different questions of an address, and 32 in all', async () => {
  const waiting: ((answer: UpstreamAnswer) => void)[] = [];
  const upstream = { send: () => new Promise<UpstreamAnswer>((resolve) => waiting.push(resolve)) };
  let address = 'a';
  const { ask } = questions({ upstream, isDown: () => false, address: () => address });
  const shared = Array.from({ length: 100 }, () => ask('GET', '/keys'));
  const others = Array.from({ length: 7 }, (_, index) => ask('POST', '/reviews', { token: index }));
  expect(waiting).toHaveLength(8);
  await expect(ask('POST', '/reviews', { token: 'more' })).rejects.toMatchObject({ status: { code: 429 } });
  // What others of the address ask is still answered, and other addresses have their share.
  shared.push(ask('GET', '/keys'));
  for (const other of ['b', 'c', 'd']) {
    address = other;
    for (let index = 0; index < 8; index += 1) others.push(ask('POST', '/reviews', { token: `${other}${index}` }));
  }
  expect(waiting).toHaveLength(32);
  address = 'e';
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
