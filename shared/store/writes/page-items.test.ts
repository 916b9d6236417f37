import { describe, expect, it } from 'vitest';
import { PageItems, segmentOf } from './page-items.ts';

describe('a page of items', () => {
  it('is full with as many items as its limit', () => {
    const page = new PageItems({ limit: 2 });
    const full = [1, 2].map((n) => {
      const before = page.isFull;
      page.add({ pk: 'p', sk: `s${n}` }, 10);
      return [before, page.isFull, page.last, page.bytes];
    });
    expect(full).toEqual([
      [false, false, { pk: 'p', sk: 's1' }, 10],
      [false, true, { pk: 'p', sk: 's2' }, 20],
    ]);
  });

  it('is full with 1 MB of items, whatever is returned of them', () => {
    const page = new PageItems({ attributes: ['n', 'absent'] });
    page.add({ pk: 'p', sk: 's', n: 1, text: 'x' }, 1_024 * 1_024 - 1);
    expect(page.isFull).toBe(false);
    page.add({ pk: 'p', sk: 't' }, 1);
    expect(page.isFull).toBe(true);
    expect(page.items).toEqual([
      { pk: 'p', sk: 's', n: 1 },
      { pk: 'p', sk: 't' },
    ]);
  });
});

it.each([1, 4, 32])('partitions are spread evenly over %i segments', (segments) => {
  const counts = Array.from({ length: segments }, () => 0);
  for (let n = 0; n < 100 * segments; n += 1) counts[segmentOf(`o#pods#${n}`, segments)]! += 1;
  expect(Math.min(...counts)).toBeGreaterThan(25);
});
