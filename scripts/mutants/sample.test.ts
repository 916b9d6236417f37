import { expect, it } from 'vitest';
import { seededFraction } from '../../simulation/seeded-random.ts';
import { sampleOf } from './sample.ts';

const items = Array.from({ length: 200 }, (_, index) => index);

it('a seed draws the same sample each time, another seed another one, in order', () => {
  const first = sampleOf(items, 20, seededFraction(1));
  expect(first).toHaveLength(20);
  expect(first).toEqual([...first].sort((a, b) => a - b));
  expect(sampleOf(items, 20, seededFraction(1))).toEqual(first);
  expect(sampleOf(items, 20, seededFraction(2))).not.toEqual(first);
  expect(sampleOf(items, 500, seededFraction(1))).toEqual(items);
});
