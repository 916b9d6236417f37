import { expect, it } from 'vitest';
import type { QueryRequest } from '../item-store.ts';
import { queryPage } from './pages.ts';
import type { Partition } from './partitions.ts';

const KEYS = ['a1', 'a2', 'b1', 'b2', 'c1', 'd1', 'e1'];

/** A partition that must not look at the key at this position: that would cost as much as all keys. */
function partitionWithout(position: number): Partition {
  const order = [...KEYS];
  Object.defineProperty(order, position, {
    get: () => {
      throw new Error(`looked at ${KEYS[position]}`);
    },
  });
  return { order, items: new Map(KEYS.map((sk) => [sk, { pk: 'p', sk }])) };
}

it.each<[Partial<QueryRequest>, number, string[]]>([
  [{ beginsWith: 'a' }, 5, ['a1', 'a2']],
  [{ through: 'b1' }, 5, ['a1', 'a2', 'b1']],
  [{ after: 'a1', limit: 1 }, 5, ['a2']],
])('a query of %j does not look at the key at %i', (range, position, expected) => {
  const request = { table: 'objects', pk: 'p', consistent: true, ...range } as const;
  expect(queryPage(partitionWithout(position), request).items.map(({ sk }) => sk)).toEqual(expected);
});
