/**
 * Works of object-stream that failed and are retried later (functions/object-stream/work.ts), in one partition
 * of the `control` table:
 *
 *   pk `parked` sk `<resource>#[<namespace>/]<name>#<uid>`
 *      o JSON of what the works need of the object, rv its resourceVersion; one attribute `w-<work>` for each work:
 *      when it was parked first (ms); first when the row was written first (ms); due when it is retried next (ms);
 *      tries retries so far; version grows with every change of the works
 *
 * A row belongs to one uid: a Node that was deleted and created again has two rows. So the work for the earlier Node
 * (the release of its pod CIDRs) is never mixed with the work for the later one.
 *
 * Concurrency. Every write is one conditional update or delete:
 *   - `park` adds works and keeps due time, tries and times of a row and of works that exist. Repeated or concurrent
 *     calls lead to the same row. Its `o` is replaced only by a newer state of the object, so a late record loses
 *     nothing.
 *   - `settle` removes works, or the row, unless works were parked since the row was read. A row that was deleted and
 *     written again has another first time, although its version may be the same.
 *   - `postpone` moves the due time, unless another caller did.
 *
 * A row in the `objects` table starts a retry: the table's stream invokes object-stream.
 *
 *   pk `r#<sort key of the parked row>` sk `-`   at when the retry was started (ms); ttl
 *
 * Each has a partition of its own, so retries are spread over the lanes of the stream.
 */
import { defined } from '../defined.ts';
import { ALL_FUNCTIONS, RECORDS_GIVEN_UP } from '../functions/tick-metrics.ts';
import { type Item, type ItemKey, type ItemStore, StoreFault } from '../store/item-store.ts';
import { ALONE, all, any, is, lacks, objectSortKey, RETRY_PREFIX } from '../store/layout.ts';
import type { WorkDependencies } from './dependencies.ts';
import type { DueRows } from './due-rows.ts';

const PARTITION = 'parked';
export const RETRIES_DUE: DueRows = { pk: PARTITION, time: { attribute: 'due' } };
const WORK_PREFIX = 'w-';
/** Pages of one read, of 1 MB: about 8,000 rows. Rows behind them are read when earlier ones are deleted. */
const PAGES_MAX = 4;
/** Attempts to park while the row is deleted or replaced concurrently. */
const ATTEMPTS_MAX = 4;
/** Rows that start retries expire after this. Seconds. */
const RETRY_ROW_TTL_SECONDS = 3_600;

export interface ParkedObject {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: number;
  /** JSON of the parts of the object that its works need. Bounded by the caller. */
  readonly text: string;
}

export interface ParkedRow {
  /** Sort key. */
  readonly id: string;
  readonly text: string;
  readonly works: readonly string[];
  /** When each work was parked first. */
  readonly workParkedAtMs: Readonly<Record<string, number>>;
  /** When the row was written first. */
  readonly firstMs: number;
  readonly dueMs: number;
  readonly tries: number;
  readonly version: number;
}

export interface ParkedStore {
  /** Adds works of this object, due at once if it has no row. @throws StoreFault */
  park(object: ParkedObject, works: readonly string[], nowMs: number): Promise<void>;
  /**
   * The rows, eventually consistent: half a read unit while there are none.
   */
  list(): Promise<readonly ParkedRow[]>;
  /** Strongly consistent. */
  get(id: string): Promise<ParkedRow | undefined>;
  /** Starts a retry: object-stream receives the id. */
  startRetry(id: string, nowMs: number): Promise<void>;
  /** Counts a retry and moves the due time, unless another caller did since the row was read. */
  postpone(row: ParkedRow, dueMs: number): Promise<void>;
  /** Only these works are left; none: deletes the row. Does nothing if works were parked since the row was read. */
  settle(row: ParkedRow, left: readonly string[]): Promise<'written' | 'refused'>;
}

const keyOf = (id: string): ItemKey => ({ table: 'control', pk: PARTITION, sk: id });

/** The id of the parked row to retry; undefined for other records. */
export const retriedId = ({ pk }: { readonly pk: string }): string | undefined =>
  pk.startsWith(RETRY_PREFIX) ? pk.slice(RETRY_PREFIX.length) : undefined;

export const parkedId = ({ resource, namespace, name, uid }: Omit<ParkedObject, 'text' | 'resourceVersion'>): string =>
  `${resource}#${objectSortKey(namespace, name)}#${uid}`;

export function parkedStore(items: ItemStore): ParkedStore {
  return {
    async park(object, works, nowMs) {
      const key = keyOf(parkedId(object));
      const { text, resourceVersion: rv } = object;
      const parkedAt: Item = Object.fromEntries(works.map((work) => [`${WORK_PREFIX}${work}`, nowMs]));
      const added = { setIfAbsent: { ...parkedAt, first: nowMs, due: nowMs, tries: 0 }, add: { version: 1 } };
      for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
        const isNewest = any(lacks('rv'), { kind: 'compare', attribute: 'rv', op: '<=', value: rv });
        const set = { o: text, rv };
        const newest = await items.write({ kind: 'update', key, set, ...added, when: isNewest });
        if (newest.kind === 'written') return;
        // The row has a later state of the object, which has everything that an earlier one has.
        const late = await items.write({
          kind: 'update',
          key,
          ...added,
          when: { kind: 'compare', attribute: 'rv', op: '>', value: rv },
        });
        if (late.kind === 'written') return;
      }
      throw new StoreFault('throttled', 'a parked row kept changing', { retryable: true });
    },

    async list() {
      const rows: ParkedRow[] = [];
      let after: string | undefined;
      for (let pages = 0; pages < PAGES_MAX; pages += 1) {
        const page = await items.query({
          table: 'control',
          pk: PARTITION,
          consistent: false,
          ...defined({ after }),
        });
        rows.push(...page.items.map(rowOf));
        after = page.next;
        if (after === undefined) break;
      }
      return rows;
    },

    async get(id) {
      const item = await items.get(keyOf(id), { consistent: true });
      return item === undefined ? undefined : rowOf(item);
    },

    async startRetry(id, nowMs) {
      await items.write({
        kind: 'put',
        key: { table: 'objects', pk: `${RETRY_PREFIX}${id}`, sk: ALONE },
        item: { at: nowMs, ttl: Math.ceil(nowMs / 1_000) + RETRY_ROW_TTL_SECONDS },
      });
    },

    async postpone({ id, dueMs: seenDueMs }, dueMs) {
      await items.write({
        kind: 'update',
        key: keyOf(id),
        set: { due: dueMs },
        add: { tries: 1 },
        when: is('due', seenDueMs),
      });
    },

    async settle({ id, version, firstMs, works }, left) {
      const when = all(is('version', version), is('first', firstMs));
      if (left.length === 0) return (await items.write({ kind: 'delete', key: keyOf(id), when })).kind;
      const remove = works.filter((work) => !left.includes(work)).map((work) => `${WORK_PREFIX}${work}`);
      if (remove.length === 0) return 'written';
      return (await items.write({ kind: 'update', key: keyOf(id), remove, when })).kind;
    },
  };
}

function rowOf(item: Item): ParkedRow {
  const firstMs = item['first'] as number;
  const parkedAtMs = Object.entries(item).flatMap(([name, value]) =>
    name.startsWith(WORK_PREFIX) ? [[name.slice(WORK_PREFIX.length), Number(value)] as const] : [],
  );
  return {
    id: item['sk'] as string,
    text: item['o'] as string,
    works: parkedAtMs.map(([work]) => work),
    workParkedAtMs: Object.fromEntries(parkedAtMs),
    firstMs,
    dueMs: item['due'] as number,
    tries: item['tries'] as number,
    version: item['version'] as number,
  };
}

/** Counts and logs works of a parked row that are not retried any more. */
export function reportGivenUp(
  { log, meter }: Pick<WorkDependencies, 'log' | 'meter'>,
  row: ParkedRow,
  { works, nowMs }: { readonly works: readonly string[]; readonly nowMs: number },
): void {
  meter.add(RECORDS_GIVEN_UP, 1, 'Count', ALL_FUNCTIONS);
  log.error('works of a stream record were given up', {
    object: row.id,
    works,
    tries: row.tries,
    ageSeconds: Math.round((nowMs - row.firstMs) / 1_000),
  });
}
