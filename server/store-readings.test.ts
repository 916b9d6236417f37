import { expect, it } from 'vitest';
import { sqliteStoreForTest } from '../test/support/sqlite-store.ts';
import { storeReadings } from './store-readings.ts';

it('shows every figure of the store', async () => {
  const { store, remove } = sqliteStoreForTest();
  const figures = store.metrics();
  const shown = new Set<string | symbol>();
  const noted = new Proxy(figures, {
    get(target, name) {
      shown.add(name);
      return Reflect.get(target, name);
    },
  });
  for (const { read } of storeReadings(() => noted)) read();
  expect([...shown].sort()).toEqual(Object.keys(figures).sort());
  await remove();
});
