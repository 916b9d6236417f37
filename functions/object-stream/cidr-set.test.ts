import { describe, expect, it } from 'vitest';
import { formatCidr } from '../../shared/fleet/cidrs/cidr.ts';
import {
  allocateNext,
  blocksOf,
  type CidrSet,
  createCidrSet,
  occupyBlocks,
  releaseBlocks,
  usageOf,
} from '../../shared/fleet/cidrs/cidr-set.ts';
import { cidr } from '../../test/support/cidr-sets.ts';

function setOf(text: string, nodePrefix: number): CidrSet {
  const creation = createCidrSet(cidr(text), nodePrefix);
  if (creation.kind === 'refused') throw new Error(creation.reason);
  return creation.set;
}

describe('createCidrSet', () => {
  it.each([
    ['10.0.0.0/16', 15, 'a node’s block is larger than the cluster'],
    ['10.0.0.0/16', 33, 'no such prefix length'],
    ['10.0.0.0/4', 32, 'the masks are more than 24 bits apart'],
    ['fd00::/47', 64, 'the masks are more than 16 bits apart'],
  ])('refuses %s with node mask %d', (text, nodePrefix, why) => {
    expect(createCidrSet(cidr(text), nodePrefix)).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining(why),
    });
  });
});

describe('allocateNext', () => {
  it('does not change the set that is passed in', () => {
    const set = setOf('10.0.0.0/30', 32);
    allocateNext(set);
    expect(set.usedCount).toBe(0);
    expect([...set.bitmap]).toEqual([0]);
  });

  it('assigns a freed block again only after a full round', () => {
    let set = setOf('10.0.0.0/30', 32);
    const next = (): string => {
      const allocation = allocateNext(set);
      if (allocation.kind === 'full') return 'full';
      set = allocation.set;
      return formatCidr(allocation.cidr);
    };
    expect([next(), next()]).toEqual(['10.0.0.0/32', '10.0.0.1/32']);
    set = { ...set, bitmap: Uint8Array.of(0b10), usedCount: 1 };
    expect([next(), next(), next(), next()]).toEqual(['10.0.0.2/32', '10.0.0.3/32', '10.0.0.0/32', 'full']);
  });

  it('counts the used blocks that it skipped', () => {
    const marked = occupyBlocks(setOf('10.0.0.0/24', 28), [{ first: 0, last: 3 }]);
    expect(allocateNext(marked)).toMatchObject({ index: 4, skipped: 4 });
  });
});

describe('marking blocks', () => {
  it('counts a block once, however often it is named', () => {
    const half = { first: 0, last: 7 };
    const marked = occupyBlocks(setOf('10.0.0.0/24', 28), [half, { first: 4, last: 7 }]);
    expect([marked.usedCount, usageOf(marked)]).toEqual([8, 0.5]);
    expect(occupyBlocks(marked, [half])).toBe(marked);
    expect(usageOf(releaseBlocks(marked, [half, half]))).toBe(0);
  });
});

describe('blocksOf', () => {
  it('ignores CIDRs of another address family', () => {
    expect(blocksOf(setOf('10.0.0.0/16', 24), cidr('::/0'))).toBeUndefined();
  });
});
