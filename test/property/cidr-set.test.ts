/** CIDR sets: no block is assigned twice, occupy and release are inverse, nothing lies outside the cluster. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressBits, cidrOf, formatCidr, type IpFamily, overlaps, parseCidr } from '../../shared/fleet/cidrs/cidr.ts';
import {
  allocateNext,
  blockAt,
  blocksOf,
  type CidrSet,
  createCidrSet,
  isUsed,
} from '../../shared/fleet/cidrs/cidr-set.ts';
import { occupy, release } from '../support/cidr-sets.ts';

const address = (family: IpFamily) =>
  fc.bigInt({ min: 0n, max: (1n << BigInt(addressBits(family))) - 1n }).map((value) => ({ family, value }));

const anyCidr = fc
  .constantFrom<IpFamily>(4, 6)
  .chain((family) => fc.tuple(address(family), fc.integer({ min: 0, max: addressBits(family) })))
  .map(([first, prefix]) => cidrOf(first, prefix));

/** A small set, at most 256 blocks, of either family. */
const anySet = fc
  .constantFrom<IpFamily>(4, 6)
  .chain((family) =>
    fc.tuple(address(family), fc.integer({ min: 0, max: addressBits(family) }), fc.integer({ min: 0, max: 8 })),
  )
  .map(([first, prefix, difference]): CidrSet => {
    const nodePrefix = Math.min(prefix + difference, addressBits(first.family));
    const creation = createCidrSet(cidrOf(first, prefix), nodePrefix);
    if (creation.kind === 'refused') throw new Error(creation.reason);
    return creation.set;
  });

/** Steps: allocate the next block, or mark or free the block of that number. */
const anyStep = fc.record({
  kind: fc.constantFrom('allocate', 'occupy', 'release'),
  at: fc.nat({ max: 1_000 }),
  widen: fc.nat({ max: 3 }),
});

const usedOf = (set: CidrSet): number[] =>
  Array.from({ length: set.size }, (_, index) => index).filter((index) => isUsed(set, index));

describe('CIDR text', () => {
  it('a written set reads back equal', () => {
    fc.assert(
      fc.property(anyCidr, (cidr) => {
        expect(parseCidr(formatCidr(cidr))).toEqual(cidr);
      }),
    );
  });
});

describe('CIDR set', () => {
  it('never assigns a used block, and reports full only when every block is used', () => {
    fc.assert(
      fc.property(anySet, fc.array(anyStep, { maxLength: 300 }), (empty, steps) => {
        let set = empty;
        const model = new Set<number>();
        for (const { kind, at, widen } of steps) {
          if (kind === 'allocate') {
            const allocation = allocateNext(set);
            if (allocation.kind === 'full') {
              expect(model.size).toBe(set.size);
              continue;
            }
            expect(model.has(allocation.index)).toBe(false);
            expect(overlaps(set.cluster, allocation.cidr)).toBe(true);
            model.add(allocation.index);
            set = allocation.set;
            continue;
          }
          const block = blockAt(set, at % set.size);
          const cidr = cidrOf({ family: block.family, value: block.first }, Math.max(0, block.prefix - widen));
          const marked = (kind === 'occupy' ? occupy : release)(set, cidr);
          for (let index = 0; index < set.size; index += 1) {
            if (!overlaps(blockAt(set, index), cidr)) continue;
            if (kind === 'occupy') model.add(index);
            else model.delete(index);
          }
          set = marked;
        }
        expect(usedOf(set)).toEqual([...model].toSorted((a, b) => a - b));
        expect(set.usedCount).toBe(model.size);
      }),
      { numRuns: 150 },
    );
  });

  it('release reverts occupy on free blocks, and a repetition changes nothing', () => {
    fc.assert(
      fc.property(anySet, fc.nat(), fc.nat(), (set, one, other) => {
        const taken = occupy(set, blockAt(set, one % set.size));
        const block = blockAt(set, other % set.size);
        if (isUsed(taken, other % set.size)) return;
        const there = occupy(taken, block);
        expect(occupy(there, block)).toBe(there);
        const back = release(there, block);
        expect(back.bitmap).toEqual(taken.bitmap);
        expect(release(back, block)).toBe(back);
      }),
    );
  });

  it('affects exactly the blocks that overlap, for any CIDR', () => {
    fc.assert(
      fc.property(anySet, anyCidr, (set, cidr) => {
        const blocks = blocksOf(set, cidr);
        const overlapping = Array.from({ length: set.size }, (_, index) => index).filter((index) =>
          overlaps(blockAt(set, index), cidr),
        );
        if (blocks === undefined) expect(overlapping).toEqual([]);
        else expect([overlapping[0], overlapping.at(-1)]).toEqual([blocks.first, blocks.last]);
      }),
    );
  });
});
