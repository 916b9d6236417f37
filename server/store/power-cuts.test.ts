/** Power cuts at every sync of a store under load. `STORE_CUTS=1000` makes more of them. */
import { fdatasync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { CutDisk } from '../../test/support/power-cut.ts';
import { randomFrom } from '../../test/support/seeded.ts';
import { CONSUMER, consumersOf, counterKey, entryKey } from '../../test/support/store-writer.ts';
import { openSqliteStore } from './sqlite-store.ts';

const CUTS = Number(process.env['STORE_CUTS'] ?? 60);
const WRITERS = 6;
/** Large enough that the log begins again within a test. */
const TEXT_BYTES_MAX = 60_000;
/** Entries of a writer that exist at a time, each with its pending change. */
const KEPT = 10;
const PENDING_MAX = 1_000_000;

interface Found {
  readonly lostWrites: number;
  readonly lostChanges: number;
  readonly damaged: number;
  readonly cuts: number;
  readonly checkpoints: number;
}

/** `syncs`: whether the sync of this number reaches the disk. */
async function cutsUnderLoad(cuts: number, syncs: (number: number) => boolean = () => true): Promise<Found> {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-cuts-'));
  const file = join(directory, 'nodekeeper.db');
  const fraction = randomFrom(20_261_129);
  const found = { lostWrites: 0, lostChanges: 0, damaged: 0, cuts: 0, checkpoints: 0 };
  const pendingIds = new Map<string, number[]>();
  const acknowledged = Array.from({ length: WRITERS }, () => 0);
  let disk: CutDisk | undefined;
  let syncCount = 0;
  const store = openSqliteStore({
    file,
    clock: { nowMs: Date.now },
    synchronous: 'full',
    consumersOf: (change) => (change.type === 'INSERT' ? consumersOf(change) : []),
    groupIntervalMsMax: 0,
    onCommit(changes) {
      for (const { key, pending } of changes) {
        const ids = pendingIds.get(key.pk) ?? [];
        ids.push(...pending.map(({ id }) => id));
        pendingIds.set(key.pk, ids);
        // Those of the entries that the next transaction deletes, and older ones.
        store.processed(ids.splice(0, Math.max(0, ids.length - KEPT)));
      }
    },
    async fdatasync(descriptor) {
      disk ??= new CutDisk(file, fraction);
      disk.see();
      if (found.cuts < cuts) await cut(disk);
      syncCount += 1;
      if (!syncs(syncCount)) return;
      const log = disk.readLog();
      await promisify(fdatasync)(descriptor);
      disk.synced(log);
    },
  });

  async function cut(now: CutDisk): Promise<void> {
    const copy = join(directory, `cut-${found.cuts}.db`);
    const expected = [...acknowledged];
    found.cuts += 1;
    now.cutTo(copy);
    let after: ReturnType<typeof openSqliteStore>;
    try {
      after = openSqliteStore({ file: copy, clock: { nowMs: Date.now }, synchronous: 'full' });
    } catch {
      found.damaged += 1;
      return;
    }
    try {
      if ((await after.check()).findings.length > 0) found.damaged += 1;
      const pending = new Set(after.pending(CONSUMER, PENDING_MAX).map(({ change: { key } }) => `${key.pk} ${key.sk}`));
      for (const [writer, last] of expected.entries()) {
        const counter = await after.items.get(counterKey(writer), { consistent: true });
        const count = Number(counter?.['n'] ?? 0);
        found.lostWrites += Math.max(0, last - count);
        // The last counted entries exist, each with its pending change, and no other does.
        for (let number = Math.max(1, count - KEPT + 2); number <= count + 1; number += 1) {
          const key = entryKey(writer, number);
          const entry = await after.items.get(key, { consistent: true });
          const isPending = pending.has(`${key.pk} ${key.sk}`);
          if (number <= count ? entry === undefined : entry !== undefined) found.lostWrites += 1;
          if ((entry !== undefined) !== isPending) found.lostChanges += 1;
        }
      }
    } finally {
      await after.close();
      for (const suffix of ['', '-wal', '-shm', '.lock']) rmSync(`${copy}${suffix}`, { force: true });
    }
  }

  const write = async (writer: number): Promise<void> => {
    for (let number = 1; found.cuts < cuts; number += 1) {
      await store.items.transact([
        { kind: 'put', key: entryKey(writer, number), item: { text: 'x'.repeat(fraction() * TEXT_BYTES_MAX), number } },
        { kind: 'update', key: counterKey(writer), add: { n: 1 } },
        ...(number > KEPT ? [{ kind: 'delete', key: entryKey(writer, number - KEPT) } as const] : []),
      ]);
      acknowledged[writer] = number;
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  found.checkpoints = store.metrics().checkpoints;
  await store.close();
  rmSync(directory, { recursive: true });
  return found;
}

describe('a power cut', () => {
  it(
    `loses no acknowledged write and no pending change, wherever it comes (${CUTS} cuts)`,
    async () => {
      const found = await cutsUnderLoad(CUTS);
      if (process.env['STORE_CUTS'] !== undefined) console.log(found);
      expect(found).toMatchObject({ lostWrites: 0, lostChanges: 0, damaged: 0, cuts: CUTS });
      expect(found.checkpoints).toBeGreaterThan(0);
    },
    60_000 + CUTS * 2_000,
  );

  it('loses writes if answers leave before the sync: the model finds that', async () => {
    const found = await cutsUnderLoad(30, (number) => number % 5 === 0);
    expect(found.lostWrites).toBeGreaterThan(0);
  }, 120_000);
});
