/**
 * Moves the rows of the table `health` to the keys of one layout, while machines send heartbeats
 * (docs/decisions/0024-health-shards.md). Functions find a row at either key, so each row moves by itself:
 *
 *   1. One transaction puts the row at its new key and a mark at the old one. It is refused if the row changed since it was
 *      read, and then tried again.
 *   2. The mark is deleted MOVED_MARK_MS later, when no reader that began before the move is left.
 *
 * It may be interrupted, repeated, and run twice at once. Another run continues with what it finds.
 */
import { defined } from '../../shared/domain/defined.ts';
import type { HealthShards } from '../../shared/domain/health-shards.ts';
import type {
  Condition,
  Item,
  ItemKey,
  ItemPosition,
  ItemStore,
  TransactOutcome,
} from '../../shared/ports/item-store.ts';
import { all, is, lacks } from '../../shared/store/conditions.ts';
import {
  DIGEST_ATTRIBUTES,
  HEARTBEAT_TIME_ATTRIBUTES,
  healthKeyIn,
  isMovedMark,
  isRow,
  LEASE_ATTRIBUTES,
  noRow,
} from '../../shared/store/health-row.ts';

/** Longer than any scan or list of the table: a reader that finds neither row finds the mark. */
const MOVED_MARK_MS = 120_000;
/** Rows that functions with another setting create meanwhile are moved by the next pass. */
const PASSES_MAX = 10;
const PAGES_MAX = 10_000;
const PAGE_ROWS = 500;
const CONCURRENCY_MAX = 16;
/** Attempts for a row that changes between the read and the move. */
const MOVE_ATTEMPTS_MAX = 5;
/** Waits for marks to become old enough. */
const WAITS_MAX = 10;

interface MoveOptions {
  readonly to: HealthShards;
  /** Moves per second, at most. */
  readonly rowsPerSecond: number;
  nowMs(): number;
  pause(ms: number): Promise<void>;
  /** After each page. */
  report(progress: MoveProgress): void;
}

/** Since the start. */
interface MoveProgress {
  readonly moved: number;
  readonly marksDeleted: number;
}

export type MoveResult =
  | (MoveProgress & { readonly kind: 'finished' })
  /** Rows are created at the other keys faster than they are moved, or change at each attempt. */
  | (MoveProgress & { readonly kind: 'unfinished'; readonly left: number });

interface Run {
  readonly items: ItemStore;
  readonly options: MoveOptions;
  moved: number;
  marksDeleted: number;
}

interface Pass {
  /** Rows at the other key that were found, and those of them that are still there. */
  misplaced: number;
  left: number;
  /** When the youngest mark was made; undefined: there is none. */
  youngestMarkMs: number | undefined;
}

/** `items` reads and writes the keys as they are. */
export async function moveRows(items: ItemStore, options: MoveOptions): Promise<MoveResult> {
  const run: Run = { items, options, moved: 0, marksDeleted: 0 };
  let pass = await runPass(run);
  for (let passes = 1; passes < PASSES_MAX && pass.misplaced > 0; passes += 1) pass = await runPass(run);
  const progress = () => ({ moved: run.moved, marksDeleted: run.marksDeleted });
  if (pass.left > 0) return { kind: 'unfinished', left: pass.left, ...progress() };
  for (let waits = 0; waits < WAITS_MAX && pass.youngestMarkMs !== undefined; waits += 1) {
    await options.pause(Math.max(0, pass.youngestMarkMs + MOVED_MARK_MS - options.nowMs()));
    pass = await runPass(run);
  }
  return { kind: 'finished', ...progress() };
}

async function runPass(run: Run): Promise<Pass> {
  const { items, options } = run;
  const pass: Pass = { misplaced: 0, left: 0, youngestMarkMs: undefined };
  let after: ItemPosition | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const request = { table: 'health', segment: 0, segments: 1, consistent: true, limit: PAGE_ROWS } as const;
    const page = await items.scan({ ...request, ...defined({ after }) });
    const marks = page.items.filter((item) => !isRow(item) && isMovedMark(item));
    await inTurns(marks, Infinity, options, (mark) => deleteMark(run, pass, mark));
    const rows = page.items.filter((item) => isRow(item) && item.pk !== keyOf(options.to, item).pk);
    pass.misplaced += rows.length;
    await inTurns(rows, options.rowsPerSecond, options, async (row) => {
      const outcome = await moveRow(items, row, options);
      if (outcome === 'moved') run.moved += 1;
      else if (outcome === 'busy') pass.left += 1;
      pass.youngestMarkMs = options.nowMs();
    });
    options.report({ moved: run.moved, marksDeleted: run.marksDeleted });
    if (page.next === undefined) return pass;
    after = page.next;
  }
  return { ...pass, left: Math.max(1, pass.left) };
}

const keyOf = (shards: HealthShards, row: Item): ItemKey => healthKeyIn(shards, String(row.sk));
const ownKey = (row: Item): ItemKey => ({ table: 'health', pk: String(row.pk), sk: String(row.sk) });

/** Some at a time, and at most so many per second. */
async function inTurns(
  rows: readonly Item[],
  perSecond: number,
  { nowMs, pause }: MoveOptions,
  work: (row: Item) => Promise<void>,
): Promise<void> {
  const atOnce = Math.min(CONCURRENCY_MAX, Math.max(1, perSecond));
  for (let start = 0; start < rows.length; start += atOnce) {
    const startedAtMs = nowMs();
    const turn = rows.slice(start, start + atOnce);
    await Promise.all(turn.map(work));
    const waitMs = startedAtMs + (turn.length / perSecond) * 1_000 - nowMs();
    if (waitMs > 0) await pause(waitMs);
  }
}

async function deleteMark(run: Run, pass: Pass, mark: Item): Promise<void> {
  const movedAtMs = Number(mark.q);
  if (movedAtMs > run.options.nowMs() - MOVED_MARK_MS) {
    pass.youngestMarkMs = Math.max(pass.youngestMarkMs ?? 0, movedAtMs);
    return;
  }
  const when = all(is('q', movedAtMs), noRow);
  const outcome = await run.items.write({ kind: 'delete', key: ownKey(mark), when });
  if (outcome.kind === 'written') run.marksDeleted += 1;
}

/** `gone`: it was moved or deleted by another process. `busy`: it changed at each attempt. */
async function moveRow(items: ItemStore, found: Item, options: MoveOptions): Promise<'moved' | 'gone' | 'busy'> {
  const source = ownKey(found);
  const target = keyOf(options.to, found);
  let row: Item | undefined = found;
  let atTarget: Item | undefined;
  for (let attempt = 1; attempt <= MOVE_ATTEMPTS_MAX; attempt += 1) {
    if (!isRow(row)) return 'gone';
    const outcome: TransactOutcome = await items.transact([
      isRow(atTarget)
        ? { kind: 'put', key: target, item: attributesOf(merged(atTarget, row)), when: unchanged(atTarget) }
        : { kind: 'put', key: target, item: attributesOf(row), when: noRow },
      { kind: 'put', key: source, item: { q: options.nowMs() }, when: unchanged(row) },
    ]);
    if (outcome.kind === 'written') return 'moved';
    [row, atTarget] = await items.getMany([source, target], { consistent: true });
  }
  return 'busy';
}

const attributesOf = ({ pk: _pk, sk: _sk, ...attributes }: Item): Item => attributes;

const ATTRIBUTES = [...LEASE_ATTRIBUTES, ...DIGEST_ATTRIBUTES, ...HEARTBEAT_TIME_ATTRIBUTES, 'p'] as const;

/** Holds while no function has written the row since it was read. */
function unchanged(row: Item): Condition {
  const present = Object.entries(attributesOf(row)).map(([name, value]) => is(name, value as string | number));
  return all(...present, ...ATTRIBUTES.filter((name) => row[name] === undefined).map(lacks));
}

/**
 * Two rows of one node, which only functions of a version that knows one layout can leave: the later Lease and receipt,
 * and the digest of the later Node or status.
 */
function merged(one: Item, other: Item): Item {
  const laterBy = (...names: readonly string[]): Item => {
    for (const name of names) {
      const difference = Number(one[name] ?? -1) - Number(other[name] ?? -1);
      if (difference !== 0) return difference > 0 ? one : other;
    }
    return one;
  };
  const digest = laterBy('b', 'l');
  const lease = laterBy('v');
  const result: Item = { ...digest };
  for (const name of LEASE_ATTRIBUTES) {
    delete result[name];
    if (lease[name] !== undefined) result[name] = lease[name];
  }
  for (const name of ['r', 'p']) {
    const later = laterBy(name)[name];
    if (later !== undefined) result[name] = later;
  }
  return result;
}
