/**
 * How much a table serves per second, as DynamoDB limits it.
 *
 *   partition   1,000 write units and 3,000 read units per second, whatever the table's mode. An item belongs to the
 *               partition that covers the hash of its partition key. A new table has as many partitions as its warm
 *               throughput needs: four for an on-demand table that was not warmed.
 *   split       A partition that refuses requests for minutes is split at the middle of its hash range. A single hot
 *               key gains nothing by it.
 *   provisioned The table's own units per second besides. Unused ones are kept for up to 300 s.
 *
 * A request is admitted while its partition has capacity left, and pays what it consumed afterwards, so a large one can
 * leave the partition in debt. Time is an argument: epoch milliseconds that may stand still, and never count backwards.
 *
 * DynamoDB publishes the limits but not how it places items nor when it splits: SHA-256 and five minutes are ours.
 * Sources: Amazon DynamoDB Developer Guide, "Partitions and data distribution", "Burst and adaptive capacity",
 * "Understanding DynamoDB warm throughput", "Key range throughput exceeded".
 */
import { createHash } from 'node:crypto';

export const PARTITION_WRITE_UNITS_PER_SECOND = 1_000;
export const PARTITION_READ_UNITS_PER_SECOND = 3_000;
/** The capacity of an on-demand table that was not warmed. */
export const WARM_DEFAULT = { readUnitsPerSecond: 12_000, writeUnitsPerSecond: 4_000 } as const;
/** Unused provisioned units that are kept. Seconds. */
const BURST_SECONDS = 300;
/** A partition that refused requests in this many seconds of the last `SPLIT_WINDOW_MS` is split. */
const SPLIT_SECONDS = 180;
const SPLIT_WINDOW_MS = 300_000;
const PARTITIONS_MAX = 10_000;
const HASH_RANGE = 2 ** 32;

export interface UnitsPerSecond {
  readonly readUnitsPerSecond: number;
  readonly writeUnitsPerSecond: number;
}

export type TableCapacity =
  | { readonly mode: 'onDemand'; readonly warm?: UnitsPerSecond }
  | { readonly mode: 'provisioned'; readonly provisioned: UnitsPerSecond; readonly warm?: UnitsPerSecond };

export type Access = 'read' | 'write';

/** Why a request is refused, in the words of DynamoDB's `ThrottlingReasons`, after `TableRead` or `TableWrite`. */
export type ThrottlingLimit = 'KeyRangeThroughputExceeded' | 'ProvisionedThroughputExceeded';

/** Units that return at a fixed rate, up to a maximum. May be in debt. */
class Bucket {
  #units: number;
  #atMs: number;
  readonly #perSecond: number;
  readonly #unitsMax: number;

  constructor(perSecond: number, keptSeconds: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#unitsMax = perSecond * keptSeconds;
    this.#units = this.#unitsMax;
    this.#atMs = nowMs;
  }

  hasUnits(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#units > 0;
  }

  consume(units: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#units -= units;
  }

  #refill(nowMs: number): void {
    if (nowMs <= this.#atMs) return;
    this.#units = Math.min(this.#unitsMax, this.#units + ((nowMs - this.#atMs) / 1_000) * this.#perSecond);
    this.#atMs = nowMs;
  }
}

interface Partition {
  /** First hash of its range. */
  readonly from: number;
  /** First hash after its range. */
  readonly to: number;
  readonly read: Bucket;
  readonly write: Bucket;
  /** Seconds in which a request was refused, the latest last. */
  readonly refusedSeconds: number[];
}

const partition = (from: number, to: number, nowMs: number): Partition => ({
  from,
  to,
  read: new Bucket(PARTITION_READ_UNITS_PER_SECOND, 1, nowMs),
  write: new Bucket(PARTITION_WRITE_UNITS_PER_SECOND, 1, nowMs),
  refusedSeconds: [],
});

/** Where a partition key lies. 0 to 2^32 - 1. */
export const hashOfKey = (partitionKey: string): number =>
  createHash('sha256').update(partitionKey).digest().readUInt32BE(0);

/** Hashes that are kept. A fleet writes the same keys again and again. */
const KEPT_HASHES_MAX = 10_000;

function keptHashes(): (partitionKey: string) => number {
  const kept = new Map<string, number>();
  return (partitionKey) => {
    const known = kept.get(partitionKey);
    if (known !== undefined) return known;
    if (kept.size >= KEPT_HASHES_MAX) kept.clear();
    const hash = hashOfKey(partitionKey);
    kept.set(partitionKey, hash);
    return hash;
  };
}

export interface PartitionCapacity {
  /** Whether a request on this key is served now, or the limit that refuses it. */
  refusal(partitionKey: string, access: Access, nowMs: number): ThrottlingLimit | undefined;
  /** Units that a served request consumed. A scan, which has no key, consumes from all partitions alike. */
  consume(partitionKey: string | undefined, access: Access, units: number, nowMs: number): void;
  /** Number of partitions. */
  readonly partitions: number;
}

export function partitionCapacity(table: TableCapacity, nowMs: number): PartitionCapacity {
  const hashOf = keptHashes();
  const own = table.mode === 'provisioned' ? table.provisioned : undefined;
  const partitions = initialPartitions(table.warm ?? own ?? WARM_DEFAULT, nowMs);
  const provisioned = own && {
    read: new Bucket(own.readUnitsPerSecond, BURST_SECONDS, nowMs),
    write: new Bucket(own.writeUnitsPerSecond, BURST_SECONDS, nowMs),
  };
  return {
    refusal(partitionKey, access, atMs) {
      if (provisioned !== undefined && !provisioned[access].hasUnits(atMs)) return 'ProvisionedThroughputExceeded';
      const index = indexOf(partitions, hashOf(partitionKey));
      if (partitions[index]![access].hasUnits(atMs)) return undefined;
      splitWhenHot(partitions, index, atMs);
      return 'KeyRangeThroughputExceeded';
    },
    consume(partitionKey, access, units, atMs) {
      provisioned?.[access].consume(units, atMs);
      if (partitionKey !== undefined) {
        partitions[indexOf(partitions, hashOf(partitionKey))]![access].consume(units, atMs);
        return;
      }
      for (const each of partitions) each[access].consume(units / partitions.length, atMs);
    },
    get partitions() {
      return partitions.length;
    },
  };
}

function initialPartitions(warm: UnitsPerSecond, nowMs: number): Partition[] {
  const count = Math.max(
    1,
    Math.ceil(warm.writeUnitsPerSecond / PARTITION_WRITE_UNITS_PER_SECOND),
    Math.ceil(warm.readUnitsPerSecond / PARTITION_READ_UNITS_PER_SECOND),
  );
  const bound = (index: number) => Math.floor((index * HASH_RANGE) / count);
  return Array.from({ length: count }, (_, index) => partition(bound(index), bound(index + 1), nowMs));
}

/** The partition that covers a hash, by bisection. */
function indexOf(partitions: readonly Partition[], hash: number): number {
  let low = 0;
  let high = partitions.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (partitions[middle]!.from <= hash) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Notes a refused second, and splits a partition that refused for long. Each half starts with its full capacity. */
function splitWhenHot(partitions: Partition[], index: number, nowMs: number): void {
  const { from, to, refusedSeconds } = partitions[index]!;
  const second = Math.floor(nowMs / 1_000);
  if (refusedSeconds.at(-1) !== second) refusedSeconds.push(second);
  while (refusedSeconds.length > 0 && refusedSeconds[0]! * 1_000 < nowMs - SPLIT_WINDOW_MS) refusedSeconds.shift();
  if (refusedSeconds.length < SPLIT_SECONDS || to - from < 2 || partitions.length >= PARTITIONS_MAX) return;
  const middle = Math.floor((from + to) / 2);
  partitions.splice(index, 1, partition(from, middle, nowMs), partition(middle, to, nowMs));
}
