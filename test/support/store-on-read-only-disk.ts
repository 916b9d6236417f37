/**
 * What a store does on a disk that becomes read-only: `node store-on-read-only-disk.ts DIRECTORY write|refuse|read`.
 * `write` makes ext4 find an error: it then refuses writes (`errors=remount-ro`). Prints what happened as JSON.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openSqliteStore, StoreOpenError } from '../../server/store/sqlite-store.ts';
import { StoreFault } from '../../shared/store/item-store.ts';

const [directory = '', mode = ''] = process.argv.slice(2);
const COUNT = 100;
const key = (index: number) => ({ table: 'objects', pk: 'p', sk: `k${index}` }) as const;
const keys = Array.from({ length: COUNT }, (_, index) => key(index));
const open = () =>
  openSqliteStore({ file: join(directory, 'nodekeeper.db'), clock: { nowMs: Date.now }, synchronous: 'full' });

function breakDisk(): void {
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[1] === directory);
  writeFileSync(`/sys/fs/ext4/${basename(mount?.split(' ')[0] ?? '')}/trigger_fs_error`, '1');
}

async function written() {
  const store = open();
  const write = (index: number) =>
    store.items.write({ kind: 'put', key: key(index), item: { text: 'x' } }).then(
      () => 'written',
      (fault: unknown) =>
        fault instanceof StoreFault ? { code: fault.code, retryable: fault.retryable } : String(fault),
    );
  for (let index = 0; index < COUNT; index += 1) await write(index);
  breakDisk();
  const faults = [await write(COUNT), await write(COUNT + 1)];
  const found = (await store.items.getMany(keys, { consistent: true })).filter((item) => item !== undefined).length;
  return { faults, found, isFailing: store.metrics().isFailing };
}

function refused() {
  try {
    open();
    return { code: 'none' };
  } catch (error) {
    if (!(error instanceof StoreOpenError)) throw error;
    return { code: error.code, message: error.message };
  }
}

async function read() {
  const store = open();
  const found = (await store.items.getMany(keys, { consistent: true })).filter((item) => item !== undefined).length;
  const { findings } = await store.check();
  await store.close();
  return { found, findings };
}

console.log(JSON.stringify(mode === 'write' ? await written() : mode === 'refuse' ? refused() : await read()));
process.exit(0);
