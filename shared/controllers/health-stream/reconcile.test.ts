import { expect, it } from 'vitest';
import { settledFleet } from '../../../test/support/controlled-fleet.ts';

it('only the first beat after a mark takes the node out of the queue; the next ones cost no write', async () => {
  const { fleet } = await settledFleet({ a: 3 });
  await fleet.run(0, 45, (seconds) => (seconds % 10 === 0 ? fleet.beat('a-0', 'a-1') : Promise.resolve()));
  expect(await fleet.ready('a-2')).toBe('Unknown');
  const writesAfterBeat = async (seconds: number): Promise<number> => {
    fleet.at(seconds);
    await fleet.beat('a-2');
    fleet.consumed();
    await fleet.streams();
    return fleet.consumed().writes;
  };
  expect(await writesAfterBeat(46)).toBe(1);
  expect(await writesAfterBeat(56)).toBe(0);
});
