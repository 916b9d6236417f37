/**
 * The SQLite store: updates at a rate, as heartbeats are, in the forms of decision 0056, on this disk and on one with
 * slow syncs; and reads. CPU is of this process, generator included.
 */
import { fdatasync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { eventLoopDelaySeconds } from '../server/event-loop-delay.ts';
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from '../server/store/sqlite-store.ts';
import type { ItemKey } from '../shared/store/item-store.ts';
import { healthKey } from '../shared/store/layout.ts';
import { type Benchmark, percentile, type Report, readOptions, rounded, wholeNumber } from './benchmark.ts';

const KEYS = 500;
/** Requests are sent in turns of this length. */
const TURN_MS = 2;

interface Form extends Partial<SqliteStoreOptions> {
  readonly form: string;
  /** A sync takes at least so long. Milliseconds. */
  readonly syncMs?: number;
}

const FORMS = (slowSyncMs: number): readonly Form[] => [
  { form: 'one group in flight', groupIntervalMsMax: 0 },
  { form: 'with a growing interval' },
  { form: 'with a growing interval, slow sync', syncMs: slowSyncMs },
  { form: 'synchronous normal', synchronous: 'normal' },
];

export const store: Benchmark = {
  name: 'store',
  about: 'the SQLite store: updates at a rate, commits, CPU, latency, with fast and slow syncs; reads of many items',
  usage: '[--rate 500] [--seconds 10] [--slow-sync-ms 20] [--rows 10000]',
  smallest: ['--rate', '200', '--seconds', '1', '--slow-sync-ms', '5', '--rows', '300'],
  async run(report, words) {
    const options = readOptions(words, {
      rate: { type: 'string' },
      seconds: { type: 'string' },
      'slow-sync-ms': { type: 'string' },
      rows: { type: 'string' },
    });
    const rate = wholeNumber('rate', options.rate, { least: 1, most: 50_000, otherwise: 500 });
    const seconds = wholeNumber('seconds', options.seconds, { least: 1, most: 600, otherwise: 10 });
    const slowSyncMs = wholeNumber('slow-sync-ms', options['slow-sync-ms'], { least: 1, most: 1_000, otherwise: 20 });
    const rows = wholeNumber('rows', options.rows, { least: 100, most: 1_000_000, otherwise: 10_000 });
    for (const form of FORMS(slowSyncMs)) {
      await withStore(form, (opened) => measureUpdates(report, opened, { form: form.form, rate, seconds }));
    }
    await withStore({ form: 'reads', synchronous: 'normal' }, (opened) => measureReads(report, opened, rows));
  },
};

async function withStore(
  { form: _, syncMs, ...options }: Form,
  run: (opened: SqliteStore) => Promise<void>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-bench-'));
  const sync = promisify(fdatasync);
  const slowSync = async (descriptor: number): Promise<void> => {
    await Promise.all([sync(descriptor), pause(syncMs)]);
  };
  const opened = openSqliteStore({
    file: join(directory, 'nodekeeper.db'),
    clock: { nowMs: Date.now },
    synchronous: 'full',
    ...options,
    ...(syncMs !== undefined && { fdatasync: slowSync }),
  });
  try {
    await run(opened);
  } finally {
    await opened.close();
    rmSync(directory, { recursive: true });
  }
}

const keyOf = (index: number): ItemKey => healthKey(`node-${index}`);

/** Some 250 bytes, as the row of a node. */
const ROW = {
  ...{ i: '8b0c2f4e-7a54-4c1d-9d2a-2f9b7a0c1e11', c: 1_764_200_000, d: 40, n: 3, o: 1, z: 'use1-az4', y: 'T' },
  ...{ u: '8b0c2f4e-7a54-4c1d-9d2a-2f9b7a0c1e12', b: 1_764_200_000_000, l: 1_764_299_900_000, U: '12,4096,77' },
};

async function fill({ items }: SqliteStore, rows: number): Promise<void> {
  const writes = Array.from({ length: rows }, (_, index) =>
    items.write({ kind: 'put', key: keyOf(index), item: { ...ROW, r: 0 } }),
  );
  await Promise.all(writes);
}

async function measureUpdates(
  report: Report,
  opened: SqliteStore,
  { form, rate, seconds }: { readonly form: string; readonly rate: number; readonly seconds: number },
): Promise<void> {
  await fill(opened, KEYS);
  const before = opened.metrics();
  const latencies: number[] = [];
  const writing: Promise<void>[] = [];
  const update = async (index: number): Promise<void> => {
    const sentMs = performance.now();
    // Equal bytes would not be written.
    await opened.items.write({
      kind: 'update',
      key: keyOf(index % KEYS),
      set: { r: Date.now(), t: index },
      when: { kind: 'itemExists' },
    });
    latencies.push(performance.now() - sentMs);
  };
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const cpu = process.cpuUsage();
  const startedMs = performance.now();
  const wanted = rate * seconds;
  for (let sent = 0; sent < wanted; ) {
    const due = Math.min(wanted, ((performance.now() - startedMs) / 1_000) * rate);
    for (; sent < due; sent += 1) writing.push(update(sent));
    await pause(TURN_MS);
  }
  await Promise.all(writing);
  const { user, system } = process.cpuUsage(cpu);
  const tookSeconds = (performance.now() - startedMs) / 1_000;
  delay.disable();
  const after = opened.metrics();
  const groups = after.groups - before.groups;
  report({
    form,
    updatesPerSecond: rounded(wanted / tookSeconds),
    commitsPerSecond: rounded(groups / tookSeconds),
    cpuUsPerUpdate: rounded((user + system) / wanted, 3),
    p50Ms: rounded(percentile(latencies, 0.5), 3),
    p99Ms: rounded(percentile(latencies, 0.99), 3),
    syncMs: rounded(groups === 0 ? 0 : (after.syncMs - before.syncMs) / groups, 3),
    syncMsMax: rounded(after.syncMsMax, 3),
    loopDelayP99Ms: rounded(eventLoopDelaySeconds(delay.percentile(99), 1) * 1_000, 3),
    checkpoints: after.checkpoints - before.checkpoints,
    heldMsMax: rounded(after.heldMsMax, 3),
  });
}

async function measureReads(report: Report, opened: SqliteStore, rows: number): Promise<void> {
  await fill(opened, rows);
  const { items } = opened;
  const keys = Array.from({ length: rows }, (_, index) => keyOf(index));
  const timed = async (read: string, run: () => Promise<unknown>): Promise<void> => {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const startedMs = performance.now();
    await run();
    const tookMs = performance.now() - startedMs;
    delay.disable();
    report({
      read,
      rows,
      usPerRow: rounded((tookMs * 1_000) / rows, 3),
      loopDelayMaxMs: rounded(eventLoopDelaySeconds(delay.max, 1) * 1_000, 3),
    });
  };
  await timed('one by one', async () => {
    for (const key of keys) await items.get(key, { consistent: true });
  });
  await timed('many', () => items.getMany(keys, { consistent: true }));
  await timed('scan', async () => {
    let after: Awaited<ReturnType<typeof items.scan>>['next'];
    do {
      const request = { table: 'health', segment: 0, segments: 1, consistent: true } as const;
      ({ next: after } = await items.scan(after === undefined ? request : { ...request, after }));
    } while (after !== undefined);
  });
}
