import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../shared/clock.ts';
import { readHistory } from '../../shared/store/store-history.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { lockStore, moveLockOf } from '../store/store-lock.ts';
import { operationCommand } from './commands.ts';

/** A data directory, and a backup from before the move of its cluster. */
async function directoryWithBackup() {
  const directory = mkdtempSync(join(tmpdir(), 'nk-restore-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, 'data'));
  const database = join(directory, 'data', 'nodekeeper.db');
  const backup = join(directory, 'backup.db');
  const inStore = async (work: (store: ReturnType<typeof openSqliteStore>) => Promise<unknown>): Promise<void> => {
    const store = openSqliteStore({ file: database, clock: systemClock, synchronous: 'full' });
    await work(store).finally(() => store.close());
  };
  await inStore((store) => store.backup(backup));
  async function restore() {
    const lines: string[] = [];
    const errors: string[] = [];
    const io = { print: (line: string) => lines.push(line), printError: (line: string) => errors.push(line), nowMs: 0 };
    const code = await operationCommand('restore', [backup, '--data', directory], io);
    return { code, text: (code === 0 ? lines : errors).join('\n') };
  }
  return { database, inStore, restore };
}

it.each([false, true])('a restore does not lift the fence of a move (ready: %s)', async (isReady) => {
  const { inStore, restore } = await directoryWithBackup();
  const fence = { moveId: 'm', to: '/new', sinceMs: 7, isReady };
  await inStore((store) => store.setFence(fence, undefined));
  const refused = await restore();
  expect(refused.code).toBe(1);
  expect(refused.text).toContain('is being moved to /new, or was: end the move with `nodekeeper move --abandon` first');
  await inStore(async (store) => {
    expect(store.fence()).toEqual(fence);
    await store.setFence(undefined, fence);
  });
  expect(await restore()).toMatchObject({ code: 0 });
});

it('each restore begins another history of the store: copies of the cluster notice it', async () => {
  const { inStore, restore } = await directoryWithBackup();
  const seen: string[] = [];
  const look = () => inStore(async ({ items }) => seen.push(await readHistory(items)));
  await look();
  for (let restores = 0; restores < 2; restores += 1) {
    expect(await restore()).toMatchObject({ code: 0 });
    await look();
  }
  expect(seen[0]).toBe('');
  expect(new Set(seen).size).toBe(3);
});

it('a damaged database is restored', async () => {
  const { database, restore } = await directoryWithBackup();
  rmSync(`${database}-wal`, { force: true });
  writeFileSync(database, 'no database');
  const restored = await restore();
  expect(restored.text).toContain('; the one before is ');
  expect(restored.code).toBe(0);
});

it('a restore is refused while a move runs', async () => {
  const { database, restore } = await directoryWithBackup();
  const moving = lockStore(moveLockOf(database));
  try {
    expect(await restore()).toMatchObject({ code: 1, text: expect.stringContaining('.move is in use by process') });
  } finally {
    moving.release();
  }
  expect(await restore()).toMatchObject({ code: 0 });
});

it('a backup removes what commands left that were killed, and no backup of an operator', async () => {
  const { database } = await directoryWithBackup();
  const { pid = 0 } = spawnSync('true');
  const copy = '.unfinished-backup-of-process-';
  const kept = [`.backup-${pid}`, '.backup-2026-12-01', `${copy}${process.ppid}`, `${copy}${pid}.gz`];
  for (const end of [`${copy}${pid}`, `${copy}${pid}.new`, ...kept]) writeFileSync(`${database}${end}`, '');
  const to = join(dirname(database), 'second.db');
  const io = { print() {}, printError() {}, nowMs: 0 };
  expect(await operationCommand('backup', [to, '--data', dirname(dirname(database))], io)).toBe(0);
  const left = readdirSync(dirname(database)).filter((name) => name.includes('backup-'));
  expect(left.sort()).toEqual(kept.map((end) => `nodekeeper.db${end}`).sort());
});

it('files that a command of root creates belong to the user of the service alone', async () => {
  const { database, restore } = await directoryWithBackup();
  const directory = dirname(database);
  for (const name of readdirSync(directory)) rmSync(join(directory, name));
  // Without root it is the same user.
  const serviceUid = process.getuid?.() === 0 ? 61_184 : statSync(directory).uid;
  chownSync(directory, serviceUid, statSync(directory).gid);
  expect(await restore()).toMatchObject({ code: 0 });
  // While the store is locked, the file with the id of the process exists, too.
  const lock = lockStore(database);
  onTestFinished(() => lock.release());
  expect(existsSync(`${database}.pid`)).toBe(true);
  expect(existsSync(`${moveLockOf(database)}.lock`)).toBe(true);
  for (const name of readdirSync(directory)) {
    const { uid, mode } = statSync(join(directory, name));
    expect({ name, uid, mode: mode & 0o777 }).toEqual({ name, uid: serviceUid, mode: 0o600 });
  }
});
