import { expect, it } from 'vitest';
import { randomFrom } from '../../test/support/seeded.ts';
import { sampleOf } from './sample.ts';

const items = Array.from({ length: 200 }, (_, index) => index);

it('a seed draws the same sample each time, another seed another one, in order', () => {
  const first = sampleOf(items, 20, randomFrom(1));
  expect(first).toHaveLength(20);
  expect(first).toEqual([...first].sort((a, b) => a - b));
  expect(sampleOf(items, 20, randomFrom(1))).toEqual(first);
  expect(sampleOf(items, 20, randomFrom(2))).not.toEqual(first);
  expect(sampleOf(items, 500, randomFrom(1))).toEqual(items);
});
