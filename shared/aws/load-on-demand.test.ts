import { expect, it } from 'vitest';
import { loadOnDemand } from './load-on-demand.ts';

it('loads once, with the first call', async () => {
  let loads = 0;
  const loaded = loadOnDemand(async () => ++loads);
  expect(loads).toBe(0);
  expect(await Promise.all([loaded(), loaded()])).toEqual([1, 1]);
  expect(await loaded()).toBe(1);
});

it('loads again after a failure, which all its callers see', async () => {
  let loads = 0;
  const loaded = loadOnDemand(async () => {
    loads += 1;
    if (loads === 1) throw new Error('EMFILE');
    return loads;
  });
  const outcomes = await Promise.allSettled([loaded(), loaded()]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await loaded()).toBe(2);
});
