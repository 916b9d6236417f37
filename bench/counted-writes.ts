/**
 * A store that counts the writes that pass through it, by kind of item, as DynamoDB bills them: the larger of the sizes
 * before and after, rounded up to 1 KB, and twice in a transaction.
 */
import {
  type ItemKey,
  type ItemStore,
  itemBytes,
  type TransactWrite,
  WRITE_UNIT_BYTES,
} from '../shared/store/item-store.ts';

export interface WriteCount {
  writes: number;
  units: number;
  bytes: number;
}

/**
 * By kind of item: `health`, `objects:o#nodes`, `control:pod-gc`; conditions without a write and refused writes apart.
 */
export type WriteCounts = ReadonlyMap<string, WriteCount>;

export interface WriteCounter {
  store(items: ItemStore): ItemStore;
  /** Since the last call. */
  take(): WriteCounts;
  /** What happens meanwhile is not counted. */
  pause(work: () => Promise<void>): Promise<void>;
}

export function writeCounter(): WriteCounter {
  let counts = new Map<string, WriteCount>();
  return {
    store(items) {
      const sizesOf = (writes: readonly TransactWrite[]): Promise<readonly number[]> =>
        Promise.all(
          writes.map(async ({ key }) => {
            const item = await items.get(key, { consistent: true });
            return item === undefined ? 0 : itemBytes(item);
          }),
        );
      async function counted<Outcome extends { readonly kind: string }>(
        writes: readonly TransactWrite[],
        unitsPerKilobyte: number,
        run: () => Promise<Outcome>,
      ): Promise<Outcome> {
        const before = await sizesOf(writes);
        const outcome = await run();
        const after = await sizesOf(writes);
        for (const [index, write] of writes.entries()) {
          const bytes = Math.max(before[index]!, after[index]!);
          const name = `${kindOf(write.key)}${write.kind === 'check' ? ' (check)' : ''}${outcome.kind === 'written' ? '' : ' (refused)'}`;
          const count = counts.get(name) ?? { writes: 0, units: 0, bytes: 0 };
          counts.set(name, count);
          count.writes += 1;
          count.units += unitsPerKilobyte * Math.max(1, Math.ceil(bytes / WRITE_UNIT_BYTES));
          count.bytes += bytes;
        }
        return outcome;
      }
      return {
        ...items,
        write: (write, options) => counted([write], 1, () => items.write(write, options)),
        transact: (writes) => counted(writes, 2, () => items.transact(writes)),
      };
    },
    take() {
      const taken = counts;
      counts = new Map();
      return taken;
    },
    async pause(work) {
      const kept = counts;
      counts = new Map();
      await work();
      counts = kept;
    },
  };
}

function kindOf({ table, pk }: ItemKey): string {
  const words = pk.split('#');
  if (table === 'health') return table;
  if (table === 'control') return `control:${words[0]}`;
  return words.slice(0, /^[olh]#/.test(pk) ? 2 : 1).join('#');
}
