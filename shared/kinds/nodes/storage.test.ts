import { expect, it } from 'vitest';
import { apiInMemory, NODES, node, STRATEGIC } from '../../../test/support/api-in-memory.ts';
import type { ConsumedUnits, ItemStore } from '../../store/item-store.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';

it('reads a Node and its heartbeat times in one request', async () => {
  const items = memoryItemStore();
  const calls: string[] = [];
  const counted =
    <A extends unknown[], R>(name: string, call: (...args: A) => R) =>
    (...args: A): R => {
      calls.push(name);
      return call(...args);
    };
  const counting: ItemStore = {
    ...items,
    get: counted('get', items.get),
    getMany: counted('getMany', items.getMany),
    query: counted('query', items.query),
    transact: counted('transact', items.transact),
  };
  const api = apiInMemory({ items: counting });
  await api.send('POST', NODES, { body: node('n1') });
  calls.length = 0;
  expect((await api.send('GET', `${NODES}/n1`)).code).toBe(200);
  expect(calls).toEqual(['getMany']);
  calls.length = 0;
  api.advance(1_000);
  const body = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  expect((await api.send('PATCH', `${NODES}/n1/status`, { body, contentType: STRATEGIC })).code).toBe(200);
  expect(calls).toEqual(['getMany', 'transact']);
  expect((await api.send('GET', `${NODES}/n2`)).code).toBe(404);
});

/** Requests to `health` of a list of the nodes, in pages of 500. */
async function listed(nodes: number, isLarge: boolean) {
  const consumed: ConsumedUnits[] = [];
  const items = memoryItemStore({ onConsumed: (units) => consumed.push(units) });
  const api = apiInMemory({
    items: {
      ...items,
      scan: async (request) => ({ ...(await items.scan(request)), ...(isLarge && { next: { pk: 's00', sk: '' } }) }),
    },
  });
  for (let index = 0; index < nodes; index += 1) await api.send('POST', NODES, { body: node(`n${index}`) });
  api.advance(1_000);
  const body = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  await api.send('PATCH', `${NODES}/n7/status`, { body, contentType: STRATEGIC });
  consumed.length = 0;
  const { body: list } = await api.send('GET', `${NODES}?limit=500`);
  const second = await api.send('GET', `${NODES}?limit=500&continue=${list.metadata.continue ?? ''}`);
  expect([list.items.length, second.body.items.length]).toEqual([500, nodes - 500]);
  const ofHealth = consumed.filter(({ table }) => table === 'health');
  return {
    operations: ofHealth.map(({ operation }) => operation),
    readUnits: ofHealth.reduce((sum, { readUnits }) => sum + readUnits, 0),
  };
}

it('reads the heartbeat times of a page of 500 nodes by a Scan, while one page holds the table', async () => {
  const { operations, readUnits } = await listed(1_000, false);
  expect(operations).toEqual(['Scan', 'Scan']);
  expect(readUnits).toBeLessThan(50);
});

it('reads them row by row in a larger table, which it scans once', async () => {
  const { operations } = await listed(1_000, true);
  expect(operations.filter((operation) => operation === 'Scan')).toHaveLength(1);
  expect(operations.filter((operation) => operation === 'BatchGetItem').length).toBeGreaterThan(1);
});
