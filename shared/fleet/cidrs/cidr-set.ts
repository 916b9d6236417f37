/**
 * The blocks of one cluster CIDR, one per node: a bitmap of the used blocks and a cursor. Sets are immutable. Every
 * operation returns a new set, so a change that fails half-way leaves the previous set unchanged (D8).
 *
 * Allocation is round robin: it starts at the cursor and wraps. A freed block therefore stays free as long as possible
 * before another node gets it. Source: pkg/controller/nodeipam/ipam/cidrset/cidr_set.go.
 */
import { addressBits, type Cidr, formatCidr, lastAddress, overlaps } from './cidr.ts';

/** Maximum difference between the prefix lengths of cluster CIDR and node block for IPv6, as upstream. Bits. */
const IPV6_DIFFERENCE_MAX = 16;
/** The same for IPv4. Upstream has no limit; with this one a bitmap has at most 2 MiB. Bits. */
const IPV4_DIFFERENCE_MAX = 24;

export interface CidrSet {
  readonly cluster: Cidr;
  /** Prefix length of a node's block. */
  readonly nodePrefix: number;
  /** Number of blocks. */
  readonly size: number;
  /** Bit `i % 8` of byte `i / 8` is set when block i is used. */
  readonly bitmap: Uint8Array;
  readonly usedCount: number;
  /** Index of the block at which the next allocation starts. */
  readonly cursor: number;
}

export type CidrSetCreation =
  | { readonly kind: 'created'; readonly set: CidrSet }
  | { readonly kind: 'refused'; readonly reason: string };

export function createCidrSet(cluster: Cidr, nodePrefix: number): CidrSetCreation {
  const refused = (why: string): CidrSetCreation => ({
    kind: 'refused',
    reason: `cluster CIDR ${formatCidr(cluster)} with node mask ${nodePrefix}: ${why}`,
  });
  if (!Number.isInteger(nodePrefix) || nodePrefix > addressBits(cluster.family)) {
    return refused('no such prefix length');
  }
  if (nodePrefix < cluster.prefix) return refused('a node’s block is larger than the cluster');
  const difference = nodePrefix - cluster.prefix;
  const differenceMax = cluster.family === 4 ? IPV4_DIFFERENCE_MAX : IPV6_DIFFERENCE_MAX;
  if (difference > differenceMax) return refused(`the masks are more than ${differenceMax} bits apart`);
  const size = 2 ** difference;
  return {
    kind: 'created',
    set: {
      cluster,
      nodePrefix,
      size,
      bitmap: new Uint8Array(Math.ceil(size / 8)),
      usedCount: 0,
      cursor: 0,
    },
  };
}

const isUsedIn = (bitmap: Uint8Array, index: number): boolean => (((bitmap[index >> 3] ?? 0) >> (index & 7)) & 1) === 1;

export const isUsed = (set: CidrSet, index: number): boolean => isUsedIn(set.bitmap, index);

/** Block i of the set: the cluster's base + i blocks. */
export function blockAt(set: CidrSet, index: number): Cidr {
  const { family, first } = set.cluster;
  const shift = BigInt(addressBits(family) - set.nodePrefix);
  return { family, first: first + (BigInt(index) << shift), prefix: set.nodePrefix };
}

/** Block numbers, both included. */
export interface BlockRange {
  readonly first: number;
  readonly last: number;
}

/**
 * The blocks that a CIDR overlaps; undefined if it is outside the cluster CIDR. A CIDR that contains the cluster CIDR
 * overlaps all blocks. A CIDR smaller than a block overlaps the block that contains it.
 */
export function blocksOf(set: CidrSet, cidr: Cidr): BlockRange | undefined {
  if (!overlaps(set.cluster, cidr)) return undefined;
  if (cidr.prefix <= set.cluster.prefix) return { first: 0, last: set.size - 1 };
  const shift = BigInt(addressBits(cidr.family) - set.nodePrefix);
  const indexOf = (address: bigint): number => Number((address - set.cluster.first) >> shift);
  return { first: indexOf(cidr.first), last: indexOf(lastAddress(cidr)) };
}

export type CidrAllocation =
  | {
      readonly kind: 'allocated';
      readonly cidr: Cidr;
      readonly index: number;
      /** Number of used blocks between the cursor and the allocated block. */
      readonly skipped: number;
      readonly set: CidrSet;
    }
  | { readonly kind: 'full' };

/** Allocates the first free block from the cursor on, wrapping, and sets the cursor to the following block. */
export function allocateNext(set: CidrSet): CidrAllocation {
  if (set.usedCount >= set.size) return { kind: 'full' };
  let skipped = 0;
  let index = set.cursor;
  while (isUsed(set, index)) {
    skipped += 1;
    index = (index + 1) % set.size;
  }
  const bitmap = set.bitmap.slice();
  bitmap[index >> 3] = (bitmap[index >> 3] ?? 0) | (1 << (index & 7));
  return {
    kind: 'allocated',
    cidr: blockAt(set, index),
    index,
    skipped,
    set: {
      ...set,
      bitmap,
      usedCount: set.usedCount + 1,
      cursor: (index + 1) % set.size,
    },
  };
}

/** Sets the bits of all these blocks in one copy of the bitmap. Returns the same set if no bit changes. */
function markBlocks(set: CidrSet, all: readonly BlockRange[], used: boolean): CidrSet {
  const bitmap = set.bitmap.slice();
  let changed = 0;
  for (const { first, last } of all) {
    for (let index = first; index <= last; index += 1) {
      if (isUsedIn(bitmap, index) === used) continue;
      bitmap[index >> 3] = (bitmap[index >> 3] ?? 0) ^ (1 << (index & 7));
      changed += 1;
    }
  }
  if (changed === 0) return set;
  return { ...set, bitmap, usedCount: set.usedCount + (used ? changed : -changed) };
}

/**
 * Marks these blocks as used; some may already be used. Does not move the cursor. One call for many blocks: a copy of
 * the bitmap for each of 100,000 nodes would take seconds.
 */
export const occupyBlocks = (set: CidrSet, all: readonly BlockRange[]): CidrSet => markBlocks(set, all, true);

/** Frees these blocks; some may already be free. Does not move the cursor. */
export const releaseBlocks = (set: CidrSet, all: readonly BlockRange[]): CidrSet => markBlocks(set, all, false);

/** Share of the used blocks, as in upstream's metric: 0 to 1. */
export const usageOf = ({ usedCount, size }: CidrSet): number => usedCount / size;
