import { expect, it } from 'vitest';
import { listTurns } from './list-turns.ts';

/** Lists that end when `ends` says so. */
function lists() {
  const inTurn = listTurns();
  const ends: (() => void)[] = [];
  const begun: string[] = [];
  const ask = (user: string): Promise<string> =>
    inTurn(user, async () => {
      begun.push(user);
      await new Promise<void>((resolve) => ends.push(resolve));
      return user;
    });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { inTurn, ask, begun, ends, settled };
}

it('a user has two lists at once, and the next when one ends', async () => {
  const { ask, begun, ends, settled } = lists();
  const asked = ['ada', 'ada', 'ada', 'bob'].map(ask);
  await settled();
  expect(begun).toEqual(['ada', 'ada', 'bob']);
  ends[0]!();
  expect(await asked[0]).toBe('ada');
  await settled();
  expect(begun).toEqual(['ada', 'ada', 'bob', 'ada']);
});

it('all users have eight, and users with fewer turns come first', async () => {
  const { ask, begun, ends, settled } = lists();
  for (const user of ['a', 'b', 'c', 'd']) for (let each = 0; each < 20; each += 1) void ask(user);
  void ask('late');
  await settled();
  expect(begun).toEqual(['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']);
  ends[0]!();
  ends[1]!();
  await settled();
  expect(begun.slice(8)).toContain('late');
});

it('a list that fails ends its turn, and users without lists are forgotten', async () => {
  const { inTurn, ask, begun, settled } = lists();
  const fail = (): Promise<never> => inTurn('ada', () => Promise.reject(new Error('no list')));
  await Promise.all([fail(), fail(), fail()].map((list) => expect(list).rejects.toThrow('no list')));
  void ask('ada');
  await settled();
  expect(begun).toEqual(['ada']);
});
