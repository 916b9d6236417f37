/** CIDR sets in tests: made from text, and changed in place. */
import { type Cidr, formatCidr, parseCidr } from '../../shared/domain/cidr.ts';
import { allocateNext, blocksOf, type CidrSet, createCidrSet, occupy, release } from '../../shared/domain/cidr-set.ts';

export function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(`${text} is no CIDR`);
  return parsed;
}

export class TestCidrSet {
  set: CidrSet;
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

  /** The block handed out, or 'full'. */
  allocate(): string {
    const allocation = allocateNext(this.set);
    if (allocation.kind === 'full') return 'full';
    this.set = allocation.set;
    this.tries += allocation.skipped;
    return formatCidr(allocation.cidr);
  }

  allocateMany(count: number): string[] {
    return Array.from({ length: count }, () => this.allocate());
  }

  occupy(text: string): this {
    return this.#take(occupy(this.set, cidr(text)), text);
  }

  release(text: string): this {
    return this.#take(release(this.set, cidr(text)), text);
  }

  /** First and last block the CIDR touches, or 'out of range'. */
  blocks(text: string): [number, number] | 'out of range' {
    const blocks = blocksOf(this.set, cidr(text));
    return blocks === undefined ? 'out of range' : [blocks.first, blocks.last];
  }

  #take(mark: ReturnType<typeof occupy>, text: string): this {
    if (mark.kind === 'outOfRange') throw new Error(`${text} is out of range`);
    this.set = mark.set;
    return this;
  }
}
