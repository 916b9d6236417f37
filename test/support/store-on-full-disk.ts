/**
 * What a store does on a disk that becomes full: `node store-on-full-disk.ts DIRECTORY`, a small file system. Prints
 * what happened as JSON.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSqliteStore, StoreOpenError } from '../../server/store/sqlite-store.ts';
import { StoreFault } from '../../shared/store/item-store.ts';

const key = (sk: string) => ({ table: 'objects', pk: 'p', sk }) as const;
const WRITES_MAX = 100_000;

export interface FullDiskStory {
  /** The error of the first write that failed. */
  readonly fault: { readonly code: string; readonly retryable: boolean };
  /** While the disk is full: items read, of those acknowledged. */
  readonly readWhileFull: number;
  readonly acknowledged: number;
  /** A second write fails as the first one does. */
  readonly failsAgain: boolean;
  /** What the metrics say while the disk is full, and once there is room. */
  readonly isFailing: readonly boolean[];
  /** The same process, once there is room again. */
  readonly writesAfter: boolean;
  /** Why the file cannot be opened on a full disk: SQLite needs room for an index. */
  readonly refusal: string;
  /** After it was opened with room again. */
  readonly readAfterOpen: number;
  readonly wrongCacheEntries: number;
  readonly findings: readonly string[];
}

async function story(directory: string): Promise<FullDiskStory> {
  const file = join(directory, 'nodekeeper.db');
  const filler = join(directory, 'filler');
  const open = () => openSqliteStore({ file, clock: { nowMs: Date.now }, synchronous: 'full' });
  let store = open();
  const write = (sk: string) =>
    store.items.write({ kind: 'put', key: key(sk), item: { text: 'x'.repeat(3_000) } }).then(
      () => undefined,
      (fault: unknown) => fault,
    );
  const read = async (count: number): Promise<number> => {
    const keys = Array.from({ length: count }, (_, index) => key(`k${index}`));
    return (await store.items.getMany(keys, { consistent: true })).filter((item) => item !== undefined).length;
  };
  await write('k0');
  fill(filler);
  let acknowledged = 1;
  let fault: unknown;
  for (; fault === undefined && acknowledged < WRITES_MAX; acknowledged += 1) fault = await write(`k${acknowledged}`);
  acknowledged -= 1;
  const readWhileFull = await read(acknowledged + 1);
  const failsAgain = (await write('again')) instanceof StoreFault;
  const isFailing = [store.metrics().isFailing];
  rmSync(filler);
  const writesAfter = (await write('after')) === undefined;
  isFailing.push(store.metrics().isFailing);
  await store.close();
  fill(filler);
  const refusal = refusalOf(open);
  rmSync(filler);
  store = open();
  const readAfterOpen = await read(acknowledged + 1);
  const wrongCacheEntries = store.wrongCacheEntries().length;
  const { findings } = await store.check();
  await store.close();
  if (!(fault instanceof StoreFault)) throw new Error('the disk did not become full', { cause: fault });
  const { code, retryable } = fault;
  return {
    ...{ fault: { code, retryable }, readWhileFull, acknowledged, failsAgain, isFailing, writesAfter, refusal },
    ...{ readAfterOpen, wrongCacheEntries, findings },
  };
}

function refusalOf(open: () => unknown): string {
  try {
    open();
    return 'none';
  } catch (error) {
    return error instanceof StoreOpenError ? error.code : String(error);
  }
}

/** Uses what room there is, down to one page. */
function fill(filler: string): void {
  for (const size of [1_048_576, 65_536, 4_096]) {
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // Full for this size.
    }
  }
}

const [directory] = process.argv.slice(2);
if (import.meta.main) console.log(JSON.stringify(await story(directory!)));
