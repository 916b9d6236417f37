/**
 * A process that writes to a store until it is killed: `node store-writer.ts FILE WRITERS`. Each writer adds a numbered
 * entry and counts it in one transaction. A consumer marks each entry as handled, the entries of former lives first.
 * Each acknowledged entry is a line `WRITER NUMBER` on the standard output.
 */
import { type CommittedChange, openSqliteStore } from '../../server/store/sqlite-store.ts';
import type { StoreChange } from '../../shared/store/writes/store-change.ts';

export const CONSUMER = 'marker';
export const entryKey = (writer: number, number: number) =>
  ({ table: 'objects', pk: `writer ${writer}`, sk: String(number).padStart(8, '0') }) as const;
export const counterKey = (writer: number) => ({ table: 'health', pk: 'counters', sk: `writer ${writer}` }) as const;
export const handledKey = ({ pk, sk }: { readonly pk: string; readonly sk: string }) =>
  ({ table: 'control', pk: `handled ${pk}`, sk }) as const;
export const consumersOf = ({ key }: StoreChange): readonly string[] => (key.table === 'objects' ? [CONSUMER] : []);

/** Numbers handled of former lives before the writers begin. */
const PENDING_MAX = 100_000;

async function write(file: string, writers: number): Promise<void> {
  const store = openSqliteStore({
    file,
    clock: { nowMs: Date.now },
    synchronous: 'full',
    consumersOf,
    onCommit: (changes) => void handle(changes),
  });
  const { items } = store;

  async function handle(changes: readonly CommittedChange[]): Promise<void> {
    for (const { key, pending } of changes) {
      if (pending.length === 0) continue;
      await items.write({ kind: 'put', key: handledKey(key), item: {} });
      store.processed(pending.map(({ id }) => id));
    }
  }

  for (const { id, change } of store.pending(CONSUMER, PENDING_MAX)) {
    await handle([{ ...change, pending: [{ consumer: CONSUMER, id }] }]);
  }
  const writing = Array.from({ length: writers }, async (_, writer) => {
    const counter = await items.get(counterKey(writer), { consistent: true });
    for (let number = Number(counter?.['n'] ?? 0) + 1; ; number += 1) {
      const outcome = await items.transact([
        { kind: 'put', key: entryKey(writer, number), item: { text: `${writer} ${number} `.repeat(20) } },
        { kind: 'update', key: counterKey(writer), add: { n: 1 } },
      ]);
      if (outcome.kind === 'written') process.stdout.write(`${writer} ${number}\n`);
    }
  });
  await Promise.all(writing);
}

const [file, writers] = process.argv.slice(2);
if (import.meta.main) await write(file!, Number(writers));
