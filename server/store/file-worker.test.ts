import { existsSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { sqliteStoreForTest } from '../../test/support/sqlite-store.ts';
import { FileWorker } from './file-worker.ts';

it('begins the log, which writes wait for, before a backup that was asked for earlier is complete', async () => {
  const { store, file, remove } = sqliteStoreForTest({ synchronous: 'normal' });
  const puts = Array.from({ length: 2_000 }, (_, n) =>
    store.items.write({ kind: 'put', key: { table: 'objects', pk: 'p', sk: `s${n}` }, item: { n } }),
  );
  await Promise.all(puts);
  const worker = new FileWorker(file);
  // Its thread runs.
  await worker.do({ kind: 'checkpoint' });
  const order: string[] = [];
  const note = (what: string) => () => order.push(what);
  await Promise.all([
    worker.do({ kind: 'backup', to: `${file}.copy`, logBytesMax: 1_000_000_000 }).then(note('backed up')),
    worker.do({ kind: 'begin-log' }).then(note('begun')),
  ]);
  expect(order).toEqual(['begun', 'backed up']);
  await worker.end();
  await remove();
});

it('a store that closes waits for a backup, which an exit would cut off', async () => {
  const { store, file, reopen, remove } = sqliteStoreForTest({ synchronous: 'normal' });
  // The threads of the store run: none of them begins later than that of the backup.
  await store.check();
  const backup = store.backup(`${file}.copy`);
  await store.close();
  expect(existsSync(`${file}.copy`)).toBe(true);
  await backup;
  reopen();
  await remove();
});

it('refuses a third backup or check while two run', async () => {
  const { store, remove } = sqliteStoreForTest({ synchronous: 'normal' });
  const outcomes = await Promise.allSettled([store.check(), store.check(), store.check()]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  expect(outcomes[2]).toMatchObject({ reason: { message: 'the database file: 2 backups or checks run already' } });
  await store.check();
  await remove();
});

it('a backup fails, and leaves nothing, when the log grows by more than its bound', async () => {
  const { store, file, remove } = sqliteStoreForTest({ synchronous: 'normal' });
  const text = 'x'.repeat(300_000);
  const put = (n: number) =>
    store.items.write({ kind: 'put', key: { table: 'objects', pk: 'p', sk: `s${n}` }, item: { text } });
  for (let n = 0; n < 20; n += 1) await put(n);
  const worker = new FileWorker(file);
  const failure = worker.do({ kind: 'backup', to: `${file}.copy`, logBytesMax: -1 });
  await expect(failure).rejects.toThrow('too much was written during the copy');
  expect(readdirSync(dirname(file)).filter((name) => name.includes('copy'))).toEqual([]);
  await worker.end();
  await remove();
});
