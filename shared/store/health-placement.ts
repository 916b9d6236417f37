/**
 * Which of two keys holds the row of a node: that of HEALTH_SHARDS, or that of FORMER_HEALTH_SHARDS in a cluster of an
 * earlier version until its rows are moved (docs/decisions/0024-health-shards.md).
 *
 * A node has one row at most. Rules that keep it so:
 *   - `npm run health-shards` moves a row: one transaction puts it at the other key and leaves a mark (`q`) at the old one.
 *   - A write to an existing row follows it: the preferred key first, then the other key. Its condition
 *     needs an attribute of the row, so it is not applied to a mark or to nothing.
 *   - A write that may create a row checks in the same transaction that the other key has none.
 *
 * All processes may prefer different keys at the same time, as during a deployment. A process that prefers the key of
 * the row pays nothing: a heartbeat is the same single request as without this file.
 */
import { defined } from '../domain/defined.ts';
import { type HealthShards, otherHealthShards } from '../domain/health-shards.ts';
import {
  type CheckWrite,
  type Condition,
  type Item,
  type ItemKey,
  type ItemStore,
  type ItemUpdater,
  StoreFault,
  type TransactOutcome,
  type TransactWrite,
  type Write,
  type WriteOptions,
  type WriteOutcome,
} from '../ports/item-store.ts';
import { all } from './conditions.ts';
import { healthKeyIn, isMovedMark, isRow, noRow, rowExists } from './health-row.ts';

/** A row moves once in minutes: three attempts find it. One more for a row that is created meanwhile. */
const ATTEMPTS_MAX = 4;

interface Keys {
  readonly preferred: ItemKey;
  /** undefined: both layouts have this node in one partition. */
  readonly other: ItemKey | undefined;
}

function keysOf(shards: HealthShards, nodeName: string): Keys {
  const preferred = healthKeyIn(shards, nodeName);
  const other = healthKeyIn(otherHealthShards(shards), nodeName);
  return { preferred, other: other.pk === preferred.pk ? undefined : other };
}

/** Heartbeats: conditional updates that never create a row. */
export function placedUpdater(items: ItemUpdater, shards: HealthShards): ItemUpdater {
  return {
    write(write, options) {
      if (write.key.table !== 'health') return items.write(write, options);
      return writeToRow(items, keysOf(shards, write.key.sk), write, options);
    },
  };
}

/** The tables, with each row of `health` found where it is. `shards` is the layout to look in first. */
export function placedStore(items: ItemStore, shards: HealthShards): ItemStore {
  return {
    ...items,
    async get(key, options) {
      if (key.table !== 'health') return items.get(key, options);
      return readRow(items, keysOf(shards, key.sk), options);
    },
    getMany: (keys, options) => readRows(items, shards, keys, options),
    async write(write, options) {
      if (write.key.table !== 'health') return items.write(write, options);
      const keys = keysOf(shards, write.key.sk);
      if (keys.other === undefined || !mayCreate(write)) return writeToRow(items, keys, write, options);
      return writeOrCreate(items, { preferred: keys.preferred, other: keys.other }, write, options);
    },
    transact: (writes) => transactOnRows(items, shards, writes),
  };
}

/** `items` is an ItemUpdater or an ItemStore: the write is of a kind that it accepts. */
async function writeToRow<Kind extends Write>(
  items: { write(write: Kind, options?: WriteOptions): Promise<WriteOutcome> },
  { preferred, other }: Keys,
  write: Kind,
  options: WriteOptions | undefined,
): Promise<WriteOutcome> {
  const first = await items.write({ ...write, key: preferred }, options);
  if (other === undefined || first.kind === 'written' || isRow(first.current)) return first;
  const second = await items.write({ ...write, key: other }, options);
  if (second.kind === 'written' || isRow(second.current)) return second;
  // Moved between the two attempts.
  const last = isMovedMark(second.current) ? await items.write({ ...write, key: preferred }, options) : second;
  return last.kind === 'written' || isRow(last.current) ? last : { kind: 'refused' };
}

/** Whether a write may be applied where there is no row. */
const mayCreate = (write: Write): boolean => holdsWithoutRow(write.when);

function holdsWithoutRow(when: Condition | undefined): boolean {
  switch (when?.kind) {
    case undefined:
    case 'itemExists':
    case 'itemAbsent':
    case 'lacks':
      return true;
    case 'has':
      return false;
    case 'compare':
      return when.op === '<>';
    case 'all':
      return when.of.every(holdsWithoutRow);
    case 'any':
      return when.of.some(holdsWithoutRow);
  }
}

type BothKeys = { readonly preferred: ItemKey; readonly other: ItemKey };

async function writeOrCreate(
  items: ItemStore,
  { preferred, other }: BothKeys,
  write: Write,
  options: WriteOptions = {},
): Promise<WriteOutcome> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const outcome = await writeToRow(items, { preferred, other }, onlyToRow(write), options);
    if (outcome.kind === 'written' || outcome.current !== undefined) return outcome;
    const created = await items.transact([creating(write, preferred), { kind: 'check', key: other, when: noRow }]);
    if (created.kind === 'written') {
      const item = options.returnItem === true ? await items.get(preferred, { consistent: true }) : undefined;
      return { kind: 'written', ...defined({ item }) };
    }
    const refusal = created.kind === 'refused' ? created.failures.find(({ index }) => index === 0) : undefined;
    if (refusal !== undefined) return { kind: 'refused', ...defined({ current: refusal.current }) };
  }
  throw new StoreFault('throttled', 'the row of a node was created and moved too often', { retryable: true });
}

const onlyToRow = <Kind extends Write>(write: Kind): Kind => ({
  ...write,
  when: write.when === undefined ? rowExists : all(write.when, rowExists),
});

/** The write at the preferred key, whether or not there is a row. It replaces a mark. */
const creating = (write: Write, key: ItemKey): Write =>
  write.kind === 'update' ? { ...write, key, remove: [...(write.remove ?? []), 'q'] } : { ...write, key };

/** Where a write of a transaction is tried. `create`: at the preferred key, if the other key has no row. */
type Place = 'preferred' | 'other' | 'create';

/** A write to a row of `health` that may be at either key. */
interface RowWrite extends BothKeys {
  readonly index: number;
  readonly write: TransactWrite;
  readonly mayCreate: boolean;
  place: Place;
}

/**
 * Tries each row where it most probably is. A refusal says which row is not there, and the next attempt tries its other
 * key. Other refusals are returned at once.
 */
async function transactOnRows(
  items: ItemStore,
  shards: HealthShards,
  writes: readonly TransactWrite[],
): Promise<TransactOutcome> {
  if (!writes.some(({ key }) => key.table === 'health')) return items.transact(writes);
  const rows = writes.flatMap((write, index) => rowWriteOf(write, index, shards));
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const { placed, checked } = placedWrites(writes, rows, shards);
    const outcome = await items.transact(placed);
    if (outcome.kind !== 'refused') return outcome;
    const refusals = outcome.failures.filter(({ index, current }) => {
      const row = index < writes.length ? rows.find((each) => each.index === index) : checked[index - writes.length];
      return row === undefined || !movesOn(row, { current, byCheck: index >= writes.length });
    });
    if (refusals.length > 0) return { kind: 'refused', failures: refusals };
  }
  return { kind: 'contended' };
}

function rowWriteOf(write: TransactWrite, index: number, shards: HealthShards): RowWrite[] {
  if (write.key.table !== 'health') return [];
  const { preferred, other } = keysOf(shards, write.key.sk);
  if (other === undefined) return [];
  const creates = write.kind !== 'check' && mayCreate(write);
  const isNew = creates && write.kind !== 'delete' && write.when === undefined;
  return [{ index, write, preferred, other, mayCreate: creates, place: isNew ? 'create' : 'preferred' }];
}

/** The writes at their keys, in the same order, and after them the checks of the rows that may be created. */
function placedWrites(writes: readonly TransactWrite[], rows: readonly RowWrite[], shards: HealthShards) {
  const placed: TransactWrite[] = writes.map((write) =>
    write.key.table === 'health' ? { ...write, key: healthKeyIn(shards, write.key.sk) } : write,
  );
  const checked = rows.filter(({ place }) => place === 'create');
  for (const row of rows) placed[row.index] = atPlace(row);
  const checks = checked.map(({ other }): CheckWrite => ({ kind: 'check', key: other, when: noRow }));
  return { placed: [...placed, ...checks], checked };
}

function atPlace({ write, place, preferred, other, mayCreate: creates }: RowWrite): TransactWrite {
  const key = place === 'other' ? other : preferred;
  if (write.kind === 'check' || !creates) return { ...write, key };
  return place === 'create' ? creating(write, key) : onlyToRow({ ...write, key });
}

/** Chooses the next place after a refusal. Returns false if the write itself was refused, not its place. */
function movesOn(
  row: RowWrite,
  { current, byCheck }: { readonly current: Item | undefined; readonly byCheck: boolean },
): boolean {
  if (!byCheck && (isRow(current) || row.place === 'create')) return false;
  switch (row.place) {
    case 'create':
    case 'preferred':
      row.place = 'other';
      return true;
    case 'other':
      if (row.mayCreate) row.place = 'create';
      else if (isMovedMark(current)) row.place = 'preferred';
      else return false;
      return true;
  }
}

async function readRow(
  items: ItemStore,
  { preferred, other }: Keys,
  options: { readonly consistent: boolean },
): Promise<Item | undefined> {
  const first = await items.get(preferred, options);
  if (other === undefined || isRow(first)) return first;
  const second = await items.get(other, { consistent: true });
  // Moved between the two reads.
  const row = isMovedMark(second) ? await items.get(preferred, { consistent: true }) : second;
  return isRow(row) ? row : undefined;
}

/** Rows in the order of the keys; undefined where there is none. Keys of other tables are read as they are. */
async function readRows(
  items: ItemStore,
  shards: HealthShards,
  keys: readonly ItemKey[],
  options: { readonly consistent: boolean },
): Promise<readonly (Item | undefined)[]> {
  const ofRow = keys.map((key) => (key.table === 'health' ? keysOf(shards, key.sk) : undefined));
  const preferred = keys.map((key, index) => ofRow[index]?.preferred ?? key);
  const found = [...(await items.getMany(preferred, options))];
  const readAgain = async (place: 'preferred' | 'other', indexes: readonly number[]): Promise<void> => {
    if (indexes.length === 0) return;
    const read = await items.getMany(
      indexes.map((index) => ofRow[index]![place]!),
      { consistent: true },
    );
    indexes.forEach((index, position) => {
      found[index] = read[position];
    });
  };
  const indexes = keys.map((_, index) => index).filter((index) => ofRow[index]?.other !== undefined);
  await readAgain(
    'other',
    indexes.filter((index) => !isRow(found[index])),
  );
  // Moved between the two reads.
  await readAgain(
    'preferred',
    indexes.filter((index) => isMovedMark(found[index])),
  );
  return found.map((item, index) => (ofRow[index] === undefined || isRow(item) ? item : undefined));
}
