import { expect, it } from 'vitest';
import { dropUnusedRows } from './unused-rows.ts';

/** `refused`: names of nodes with a row that stays. */
async function droppedOf(rows: number, refused: readonly string[] = []) {
  const dropped: string[] = [];
  let transactions = 0;
  const unused = Array.from({ length: rows }, (_, index) => ({ nodeName: `n${index}`, version: index + 1 }));
  const copy = { unusedRows: () => unused, rowDropped: (name: string) => void dropped.push(name) };
  const transact = (actions: readonly object[]) => {
    transactions += 1;
    const isRefused = refused.some((name) => JSON.stringify(actions).includes(`"${name}"`));
    return Promise.resolve(isRefused ? { kind: 'refused', index: 1 } : { kind: 'written' });
  };
  await dropUnusedRows({ items: { transact } } as never, copy as never);
  return { dropped, transactions };
}

it('deletes 25 rows of removed nodes in one pass', async () => {
  const { dropped, transactions } = await droppedOf(26);
  expect(dropped).toEqual(Array.from({ length: 25 }, (_, index) => `n${index}`));
  expect(transactions).toBe(25);
});

it('keeps a row where the deletion is refused', async () => {
  expect(await droppedOf(3, ['n1'])).toEqual({ dropped: ['n0', 'n2'], transactions: 3 });
});

it('writes nothing without such rows', async () => {
  expect(await droppedOf(0)).toEqual({ dropped: [], transactions: 0 });
});
