/** Runs a suite of a typed store on every ItemStore that needs no download. */
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { dynamoDbItemStore } from '../../shared/aws/dynamodb-store.ts';
import type { ConsumedUnits, ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { conflictingStore } from '../support/conflicting-store.ts';
import { startEngine, type TestEngine } from '../support/engine.ts';
import { type ShadowedStore, shadowedStore } from '../support/shadowed-store.ts';
import { sqliteStoreForTest, type TestSqliteStore } from '../support/sqlite-store.ts';

export interface StoreFixture {
  /** The store of this run; valid inside tests and hooks. */
  items(): ItemStore;
  /** Units consumed since last asked. */
  consumed(): ConsumedUnits[];
}

export function describeOnStores(title: string, suite: (fixture: StoreFixture) => void): void {
  describe(`${title} in memory`, () => {
    let units: ConsumedUnits[] = [];
    const store = memoryItemStore({ onConsumed: (consumed) => units.push(consumed) });
    suite({ items: () => store, consumed: () => units.splice(0, units.length) });
    afterAll(() => {
      units = [];
    });
  });
  describe(`${title} in memory, with transactions that conflict`, () => {
    let units: ConsumedUnits[] = [];
    const store = conflictingStore(memoryItemStore({ onConsumed: (consumed) => units.push(consumed) }), {
      transactionMs: 10,
      // A turn of the event loop stands for any time: transactions overlap.
      pause: () => new Promise<void>((resolve) => setImmediate(resolve)),
      random: () => 0.5,
    });
    suite({ items: () => store, consumed: () => units.splice(0, units.length) });
    afterAll(() => {
      units = [];
    });
  });
  describe(`${title} in SQLite`, () => {
    const units: ConsumedUnits[] = [];
    let sqlite: TestSqliteStore;
    let store: ShadowedStore;
    beforeAll(() => {
      sqlite = sqliteStoreForTest();
      store = shadowedStore(sqlite.store.items, (consumed) => units.push(consumed));
    });
    afterAll(async () => {
      expect(await store.differences()).toEqual([]);
      expect(sqlite.store.wrongCacheEntries()).toEqual([]);
      await sqlite.remove();
    });
    suite({ items: () => store, consumed: () => units.splice(0, units.length) });
  });
  describe(`${title} in the embedded engine`, () => {
    const units: ConsumedUnits[] = [];
    let engine: TestEngine;
    let store: ItemStore;
    beforeAll(async () => {
      engine = await startEngine();
      store = dynamoDbItemStore({
        client: engine.client,
        tables: engine.tables,
        onConsumed: (consumed) => units.push(consumed),
      });
    });
    afterAll(async () => {
      await engine?.stop();
    });
    suite({ items: () => store, consumed: () => units.splice(0, units.length) });
  });
}
