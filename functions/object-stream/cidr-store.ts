/**
 * The owner of each block of a cluster CIDR, in the `control` table.
 *
 *   pk `cidr#<cluster CIDR>#<node mask>` sk `b#<block, 8 digits>`   one block: node, uid
 *                                        sk `r#<first>#<last>#<uid>` a node's CIDR of more than one block: node, uid
 *                                        sk `cursor`                next: block at which a new process starts to search
 *                                        sk `counted`               at (ms): when the CIDRs of existing nodes were
 *                                        added
 *
 * One item per block, claimed by a conditional put in the transaction that writes the Node. So no two allocators assign
 * one block twice, and a process that dies half-way leaves no block claimed (D8). Only the uid that owns a block frees
 * it: a deletion that is processed twice cannot free the block of a later node.
 */
import { defined } from '../../shared/defined.ts';
import type { BlockRange } from '../../shared/fleet/cidrs/cidr-set.ts';
import {
  type DeleteWrite,
  type Item,
  type ItemKey,
  type ItemStore,
  type PutWrite,
  StoreFault,
} from '../../shared/store/item-store.ts';
import { any, is } from '../../shared/store/layout.ts';

const BLOCK_PREFIX = 'b#';
const RANGE_PREFIX = 'r#';
const BLOCK_DIGITS = 8;
const CURSOR = 'cursor';
const COUNTED = 'counted';
/** With 1 MB per page about a million blocks. */
const PAGES_MAX = 128;

/** Key of one set: its cluster CIDR and node mask, as configured. */
export type CidrSetKey = `${string}#${number}`;

export interface BlockOwner {
  readonly nodeName: string;
  readonly uid: string;
}

export interface TakenBlocks {
  /** Single blocks and wide CIDRs, each with its owner. */
  readonly taken: readonly (BlockOwner & BlockRange)[];
  readonly cursor: number;
  /** Whether `taken` includes the CIDRs of nodes that existed before this cluster CIDR was configured. */
  readonly counted: boolean;
}

export interface CidrStore {
  /** All items of a set, strongly consistent. */
  read(set: CidrSetKey): Promise<TakenBlocks>;
  /** Only the wide CIDRs. Users set them, and the condition on one block does not cover them. */
  readRanges(set: CidrSetKey): Promise<readonly (BlockOwner & BlockRange)[]>;
  /** Records the owner of blocks. `known`: it was recorded before. `taken`: the block belongs to another node. */
  occupy(set: CidrSetKey, blocks: BlockRange, owner: BlockOwner): Promise<'written' | 'known' | 'taken'>;
  /** Frees those of the blocks that this uid owns. */
  release(set: CidrSetKey, blocks: BlockRange, uid: string): Promise<'written' | 'notTheirs'>;
  /** A hint: the block at which the next process starts to search. */
  moveCursor(set: CidrSetKey, next: number): Promise<void>;
  setCounted(set: CidrSetKey, nowMs: number): Promise<void>;
}

const keyOf = (set: CidrSetKey, sk: string): ItemKey => ({ table: 'control', pk: `cidr#${set}`, sk });
const digits = (block: number): string => String(block).padStart(BLOCK_DIGITS, '0');
const sortKeyOf = ({ first, last }: BlockRange, uid: string): string =>
  first === last ? `${BLOCK_PREFIX}${digits(first)}` : `${RANGE_PREFIX}${digits(first)}#${digits(last)}#${uid}`;

/** For a commit's `extra`: assigns the block to the node. The commit is refused when the block has another owner. */
export const takeBlockWrite = (set: CidrSetKey, block: number, owner: BlockOwner): PutWrite => ({
  kind: 'put',
  key: keyOf(set, sortKeyOf({ first: block, last: block }, owner.uid)),
  item: { node: owner.nodeName, uid: owner.uid },
  when: any({ kind: 'itemAbsent' }, is('uid', owner.uid)),
});

export function cidrStore(items: ItemStore): CidrStore {
  async function readAll(set: CidrSetKey, beginsWith: string | undefined): Promise<Item[]> {
    const found: Item[] = [];
    let after: string | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const { items: part, next } = await items.query({
        table: 'control',
        pk: `cidr#${set}`,
        consistent: true,
        ...defined({ beginsWith, after }),
      });
      found.push(...part);
      if (next === undefined) return found;
      after = next;
    }
    throw new StoreFault('rejected', `more than ${PAGES_MAX} pages of pod CIDRs`, { retryable: false });
  }

  return {
    async read(set) {
      const all = await readAll(set, undefined);
      const cursor = all.find((item) => item['sk'] === CURSOR)?.['next'];
      return {
        taken: all.flatMap((item) => ownedBlocks(item) ?? []),
        cursor: typeof cursor === 'number' ? cursor : 0,
        counted: all.some((item) => item['sk'] === COUNTED),
      };
    },

    readRanges: async (set) => (await readAll(set, RANGE_PREFIX)).flatMap((item) => ownedBlocks(item) ?? []),

    async occupy(set, blocks, owner) {
      const outcome = await items.write(
        { ...takeBlockWrite(set, blocks.first, owner), key: keyOf(set, sortKeyOf(blocks, owner.uid)) },
        { returnPrevious: true },
      );
      if (outcome.kind === 'refused') return 'taken';
      return outcome.previous === undefined ? 'written' : 'known';
    },

    async release(set, blocks, uid) {
      const write: DeleteWrite = {
        kind: 'delete',
        key: keyOf(set, sortKeyOf(blocks, uid)),
        when: is('uid', uid),
      };
      const outcome = await items.write(write);
      return outcome.kind === 'written' ? 'written' : 'notTheirs';
    },

    async moveCursor(set, next) {
      await items.write({ kind: 'put', key: keyOf(set, CURSOR), item: { next } });
    },

    async setCounted(set, nowMs) {
      await items.write({ kind: 'put', key: keyOf(set, COUNTED), item: { at: nowMs } });
    },
  };
}

function ownedBlocks(item: Item): (BlockOwner & BlockRange) | undefined {
  const sk = item['sk'] as string;
  const isBlock = sk.startsWith(BLOCK_PREFIX);
  if (!isBlock && !sk.startsWith(RANGE_PREFIX)) return undefined;
  const [first = Number.NaN, last = first] = sk
    .split('#')
    .slice(1, isBlock ? 2 : 3)
    .map(Number);
  if (!Number.isInteger(first) || !Number.isInteger(last)) {
    throw new StoreFault('rejected', 'a pod CIDR row has a malformed sort key', { retryable: false });
  }
  return { first, last, nodeName: item['node'] as string, uid: item['uid'] as string };
}
