/** Processes that are killed while they write. `STORE_KILLS=50` kills more of them. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Item, ItemPosition, TableName } from '../../shared/store/item-store.ts';
import { randomFrom } from '../../test/support/seeded.ts';
import { CONSUMER, consumersOf, handledKey } from '../../test/support/store-writer.ts';
import { openSqliteStore, type SqliteStore } from './sqlite-store.ts';

const KILLS = Number(process.env['STORE_KILLS'] ?? 10);
const WRITERS = 24;
const LIFE_MS_MIN = 100;
const LIFE_MS_MAX = 600;
const PENDING_MAX = 1_000_000;
const WRITER = new URL('../../test/support/store-writer.ts', import.meta.url).pathname;

/**
 * Starts a writer and kills it some time after its first acknowledged entry. Returns the lines of acknowledged ones.
 */
async function killedWriter(file: string, lifeMs: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, ['--no-warnings', WRITER, file, String(WRITERS)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk;
  });
  child.stdout.on('data', (chunk: Buffer) => {
    if (output === '') setTimeout(() => child.kill('SIGKILL'), lifeMs);
    output += chunk;
  });
  const signal = await new Promise((resolve) => child.on('close', (_, by) => resolve(by)));
  expect(errors).toBe('');
  expect(signal).toBe('SIGKILL');
  // The last line may be cut off.
  return output.split('\n').slice(0, -1);
}

async function idsOf({ items }: SqliteStore, table: TableName): Promise<ReadonlyMap<string, Item>> {
  const found = new Map<string, Item>();
  let after: ItemPosition | undefined;
  do {
    const request = { table, segment: 0, segments: 1, consistent: true } as const;
    const page = await items.scan(after === undefined ? request : { ...request, after });
    for (const item of page.items) found.set(`${item['pk']} ${item['sk']}`, item);
    after = page.next;
  } while (after !== undefined);
  return found;
}

it(
  `loses no acknowledged write and no pending change when a process is killed ${KILLS} times`,
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-kills-'));
    const file = join(directory, 'nodekeeper.db');
    const fraction = randomFrom(20_261_128);
    const acknowledged = new Map<number, number>();
    let count = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      const lines = await killedWriter(file, LIFE_MS_MIN + fraction() * (LIFE_MS_MAX - LIFE_MS_MIN));
      for (const [writer, number] of lines.map((line) => line.split(' ').map(Number) as [number, number])) {
        // A number is not acknowledged twice: what a former life acknowledged was found.
        expect(number).toBeGreaterThan(acknowledged.get(writer) ?? 0);
        acknowledged.set(writer, number);
        count += 1;
      }
    }
    const store = openSqliteStore({ file, clock: { nowMs: Date.now }, synchronous: 'full', consumersOf });
    const { findings, rows } = await store.check();
    expect(findings).toEqual([]);
    const entries = await idsOf(store, 'objects');
    const counters = await idsOf(store, 'health');
    let entryCount = 0;
    for (let writer = 0; writer < WRITERS; writer += 1) {
      const n = Number(counters.get(`counters writer ${writer}`)?.['n'] ?? 0);
      expect(n).toBeGreaterThanOrEqual(acknowledged.get(writer) ?? 0);
      entryCount += n;
    }
    // Each counted entry exists, and no other.
    expect(entries.size).toBe(entryCount);
    const handled = await idsOf(store, 'control');
    const pending = new Set(store.pending(CONSUMER, PENDING_MAX).map(({ change: { key } }) => `${key.pk} ${key.sk}`));
    const lost = [...entries.values()].filter((entry) => {
      const { pk, sk } = entry as { readonly pk: string; readonly sk: string };
      const key = handledKey({ pk, sk });
      return !handled.has(`${key.pk} ${key.sk}`) && !pending.has(`${pk} ${sk}`);
    });
    expect(lost).toEqual([]);
    if (process.env['STORE_KILLS'] !== undefined) {
      console.log({ kills: KILLS, acknowledged: count, entries: entries.size, handled: handled.size, ...rows });
    }
    await store.close();
    rmSync(directory, { recursive: true });
  },
  20_000 + KILLS * 10_000,
);

it('refuses the file of another process by its id, until that one is killed', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-kills-'));
  const file = join(directory, 'nodekeeper.db');
  const open = () => openSqliteStore({ file, clock: { nowMs: Date.now }, synchronous: 'full', consumersOf });
  const child = spawn(process.execPath, ['--no-warnings', WRITER, file, '1'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const closed = new Promise((resolve) => child.on('close', resolve));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.stdout.resume();
  expect(open).toThrow(expect.objectContaining({ name: 'StoreOpenError', code: 'in-use', pid: child.pid }));
  child.kill('SIGKILL');
  await closed;
  const store = open();
  expect((await idsOf(store, 'objects')).size).toBeGreaterThan(0);
  await store.close();
  rmSync(directory, { recursive: true });
});
