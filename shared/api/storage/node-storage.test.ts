import { expect, it } from 'vitest';
import { apiInMemory, NODES, node, STRATEGIC } from '../../../test/support/api-in-memory.ts';
import { memoryItemStore } from '../../adapters/memory/item-store.ts';
import type { ItemStore } from '../../ports/item-store.ts';

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
