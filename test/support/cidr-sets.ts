/** CIDR sets in tests: made from text, and changed in place. */

import { type Cidr, formatCidr, parseCidr } from '../../shared/fleet/cidrs/cidr.ts';
import {
  allocateNext,
  blocksOf,
  type CidrSet,
  createCidrSet,
  occupyBlocks,
  releaseBlocks,
} from '../../shared/fleet/cidrs/cidr-set.ts';

export function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(`${text} is not a CIDR`);
  return parsed;
}

/** @throws Error for a CIDR out of the set's range */
const marking =
  (mark: typeof occupyBlocks) =>
  (set: CidrSet, of: Cidr): CidrSet => {
    const blocks = blocksOf(set, of);
    if (blocks === undefined) throw new Error(`${formatCidr(of)} is out of range`);
    return mark(set, [blocks]);
  };

/** With every block the CIDR touches used. */
export const occupy = marking(occupyBlocks);
/** With every block the CIDR touches free. */
export const release = marking(releaseBlocks);

export class TestCidrSet {
  set: CidrSet;
  /** Blocks that became used, and free, since the set was made. */
  allocations = 0;
  releases = 0;
  /** Blocks passed over in all allocations. */
  tries = 0;

  constructor(cluster: string, nodePrefix: number) {
    const creation = createCidrSet(cidr(cluster), nodePrefix);
    if (creation.kind === 'refused') throw new Error(creation.reason);
    this.set = creation.set;
  }

  get used(): number {
    return this.set.usedCount;
  }

  /** The allocated block, or 'full'. */
  allocate(): string {
    const allocation = allocateNext(this.set);
    if (allocation.kind === 'full') return 'full';
    this.#become(allocation.set);
    this.tries += allocation.skipped;
    return formatCidr(allocation.cidr);
  }

  allocateMany(count: number): string[] {
    return Array.from({ length: count }, () => this.allocate());
  }

  occupy(text: string): this {
    return this.#become(occupy(this.set, cidr(text)));
  }

  release(text: string): this {
    return this.#become(release(this.set, cidr(text)));
  }

  /** First and last block the CIDR touches, or 'out of range'. */
  blocks(text: string): [number, number] | 'out of range' {
    const blocks = blocksOf(this.set, cidr(text));
    return blocks === undefined ? 'out of range' : [blocks.first, blocks.last];
  }

  #become(set: CidrSet): this {
    const changed = set.usedCount - this.set.usedCount;
    if (changed > 0) this.allocations += changed;
    else this.releases -= changed;
    this.set = set;
    return this;
  }
}
