/**
 * Pod CIDRs (D8): a Node receives one whole block of each cluster CIDR, and no two Nodes have overlapping blocks. The
 * block of a deleted Node is released. A Node without a free block, or with an invalid one, has an event and blocks no
 * other.
 */
import type { Policy } from '../../shared/fleet/policy.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { objectPartition } from '../../shared/store/layout.ts';
import { OBJECT, unpackText } from '../../shared/store/object-record.ts';
import type { Mark } from '../coverage.ts';
import { STATUS_EVERY_MS } from '../machine.ts';
import type { TimedChange } from '../recent-changes.ts';
import { type Law, type LawContext, SLOW_EFFECT_MS, seconds } from './law.ts';
import { storedObject } from './stored-object.ts';
import type { Writer } from './truth.ts';

/** From a Node's change to what follows from it, with nothing in the way. Milliseconds. */
const FOLLOWED_WITHIN_MS = 30_000;
/** A Node without is tried again with its status report. Milliseconds. */
const TRIED_AGAIN_WITHIN_MS = STATUS_EVERY_MS + 40_000;

interface CidrNode {
  readonly name: string;
  readonly uid: string;
  readonly createdAtMs: number;
  cidrs: readonly string[];
  cidrsSinceMs: number;
  byPeople: boolean;
}

interface Noted {
  readonly pk: string;
  readonly uid: string;
  readonly blocks: number;
  readonly atMs: number;
}

export interface CidrLaw extends Law {
  /** What one step wrote. */
  learn(changes: readonly TimedChange[], by: Writer): void;
}

/**
 * First and last address of an IPv4 CIDR; of IPv6 the simulation has only blocks of one size, which are the same or
 * apart.
 */
function rangeOf(cidr: string): readonly [first: number, last: number] | undefined {
  const [address = '', prefix = ''] = cidr.split('/');
  if (address.includes(':')) return undefined;
  const size = 2 ** (32 - Number(prefix));
  const value = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const first = value - (value % size);
  return [first, first + size - 1];
}

function overlap(one: string, other: string): boolean {
  const [a, b] = [rangeOf(one), rangeOf(other)];
  if (a === undefined || b === undefined) return one === other;
  return a[0] <= b[1] && b[0] <= a[1];
}

function isInside(cidr: string, cluster: string): boolean {
  const [a, b] = [rangeOf(cidr), rangeOf(cluster)];
  return a !== undefined && b !== undefined && a[0] >= b[0] && a[1] <= b[1];
}

export function podCidrsAreUnique(context: LawContext, policy: Policy, hit: (mark: Mark) => void): CidrLaw {
  return new PodCidrsAreUnique(context, policy, hit);
}

class PodCidrsAreUnique implements CidrLaw {
  readonly name = 'cidrs';
  readonly #context: LawContext;
  readonly #policy: Policy;
  readonly #hit: (mark: Mark) => void;
  /** Partition of each set's blocks, and how many it has. */
  readonly #sizes: Map<`cidr#${string}#${number}`, number>;
  readonly #nodes = new Map<string, CidrNode>();
  readonly #goneAtMs = new Map<string, number>();
  readonly #noted = new Map<string, Noted>();
  readonly #notified = new Set<string>();
  /** Since when every set has a free block; undefined while one has none. */
  #freeSinceMs: number | undefined;

  constructor(context: LawContext, policy: Policy, hit: (mark: Mark) => void) {
    this.#context = context;
    this.#policy = policy;
    this.#hit = hit;
    this.#sizes = new Map(
      this.#policy.clusterCIDRs.map((cluster) => {
        const mask = cluster.includes(':') ? this.#policy.nodeCIDRMaskSizeIPv6 : this.#policy.nodeCIDRMaskSizeIPv4;
        return [`cidr#${cluster}#${mask}`, 2 ** (mask - Number(cluster.split('/')[1]))] as const;
      }),
    );
    this.#freeSinceMs = this.#context.nowMs();
  }

  learn(changes: readonly TimedChange[], by: Writer): void {
    if (this.#policy.clusterCIDRs.length === 0) return;
    // The blocks first: they are of one transaction with their Node.
    for (const change of changes) if (change.key.pk.startsWith('cidr#')) this.#changeBlock(change);
    for (const change of changes) {
      if (change.key.pk.startsWith(objectPartition('nodes'))) this.#changeNode(change, by);
      else if (change.key.pk.startsWith(objectPartition('events'))) this.#readEvent(change);
    }
  }

  onMoment(): void {
    const calmMs = this.#context.calmSinceMs();
    if (calmMs === undefined || this.#policy.clusterCIDRs.length === 0) return;
    for (const node of this.#nodes.values()) if (!this.#context.isPoisoned(node.name)) this.#checkNode(node, calmMs);
    const present = new Set([...this.#nodes.values()].map(({ uid }) => uid));
    for (const [block, { uid, atMs }] of this.#noted) {
      if (present.has(uid)) continue;
      const goneMs = this.#context.nowMs() - Math.max(calmMs, atMs, this.#goneAtMs.get(uid) ?? 0);
      if (goneMs <= FOLLOWED_WITHIN_MS) continue;
      this.#fail(
        [block],
        `${block} is not released; its Node was deleted ${seconds(this.#context.nowMs() - (this.#goneAtMs.get(uid) ?? 0))}`,
      );
    }
  }

  #fail(subjects: readonly string[], message: string): void {
    this.#context.fail({ law: 'cidrs', subjects, message });
  }

  #isNoted(uid: string, atMs: number): boolean {
    return [...this.#noted.values()].some((each) => each.uid === uid && each.atMs < atMs);
  }

  /** One block of each cluster CIDR, in their order. */
  #isWhole({ cidrs }: CidrNode): boolean {
    return (
      cidrs.length === this.#policy.clusterCIDRs.length &&
      this.#policy.clusterCIDRs.every((cluster, index) => {
        const cidr = cidrs[index]!;
        if (cluster.includes(':')) return cidr.includes(':') && cidr.endsWith(`/${this.#policy.nodeCIDRMaskSizeIPv6}`);
        return isInside(cidr, cluster) && cidr.endsWith(`/${this.#policy.nodeCIDRMaskSizeIPv4}`);
      })
    );
  }

  #checkAllocation(node: CidrNode): void {
    this.#hit('cidr:allocated');
    if (!this.#isWhole(node)) {
      this.#fail(
        [node.name],
        `${node.name} received ${node.cidrs.join(', ')} of ${this.#policy.clusterCIDRs.join(', ')}`,
      );
    }
    for (const other of this.#nodes.values()) {
      if (other === node) continue;
      const theirs = other.cidrs.find((cidr) => node.cidrs.some((own) => overlap(own, cidr)));
      if (theirs === undefined) continue;
      // What people set counts from when it is noted; a wide one is seen a moment later.
      if (other.byPeople && !this.#isNoted(other.uid, this.#context.nowMs() - SLOW_EFFECT_MS)) continue;
      this.#fail(
        [node.name, other.name],
        `${node.name} received ${node.cidrs.join(', ')}; ${other.name} has ${theirs}`,
      );
    }
  }

  #changeNode({ key, newImage, atMs }: TimedChange, by: Writer): void {
    const before = this.#nodes.get(key.sk);
    const object = newImage === undefined ? undefined : (storedObject(newImage) as KubeNode);
    const uid = object?.metadata.uid ?? '';
    if (before !== undefined && before.uid !== uid) {
      this.#nodes.delete(key.sk);
      this.#goneAtMs.set(before.uid, atMs);
    }
    if (object === undefined) return;
    let node = this.#nodes.get(key.sk);
    if (node === undefined) {
      node = { name: key.sk, uid, createdAtMs: atMs, cidrs: [], cidrsSinceMs: atMs, byPeople: false };
      this.#nodes.set(key.sk, node);
    }
    const cidrs = object.spec?.podCIDRs ?? [];
    if (cidrs.join() === node.cidrs.join()) return;
    node.cidrs = cidrs;
    node.cidrsSinceMs = atMs;
    node.byPeople = by.who !== '';
    if (!node.byPeople) this.#checkAllocation(node);
  }

  #changeBlock({ key, newImage, atMs }: TimedChange): void {
    const id = `${key.pk} ${key.sk}`;
    const uid = newImage?.['uid'] as string | undefined;
    if (uid === undefined) {
      if (this.#noted.delete(id)) this.#hit('cidr:released');
    } else {
      const [kind, first, last = first] = key.sk.split('#');
      const blocks = kind === 'r' ? Number(last) - Number(first) + 1 : 1;
      this.#noted.set(id, { pk: key.pk, uid, blocks, atMs });
    }
    const isFree = [...this.#sizes].every(([pk, size]) => {
      const used = [...this.#noted.values()].reduce((sum, each) => (each.pk === pk ? sum + each.blocks : sum), 0);
      return used < size;
    });
    if (!isFree) this.#freeSinceMs = undefined;
    else this.#freeSinceMs ??= atMs;
  }

  #readEvent({ newImage }: TimedChange): void {
    const text = newImage === undefined ? '' : unpackText(OBJECT.object.of(newImage));
    if (!text.includes('cidrAllocator')) return;
    const event = JSON.parse(text) as { readonly reason: string; readonly involvedObject: { readonly uid: string } };
    this.#notified.add(`${event.involvedObject.uid} ${event.reason}`);
    this.#hit(event.reason === 'InvalidPodCIDR' ? 'cidr:invalid' : 'cidr:exhausted');
  }

  #checkNode(node: CidrNode, calmMs: number): void {
    const { name, uid, cidrs, createdAtMs, cidrsSinceMs, byPeople } = node;
    const now = this.#context.nowMs();
    const isFollowed = now - Math.max(calmMs, createdAtMs, cidrsSinceMs) > FOLLOWED_WITHIN_MS;
    if (cidrs.length === 0) {
      if (isFollowed && !this.#notified.has(`${uid} CIDRNotAvailable`))
        this.#fail([name], `${name} has no pod CIDR and no event about it`);
      const steadySinceMs = this.#context.truth.nodes.get(name)?.steadySinceMs ?? now;
      if (this.#freeSinceMs === undefined) return;
      const waitedMs = now - Math.max(calmMs, createdAtMs, steadySinceMs, this.#freeSinceMs);
      if (waitedMs <= TRIED_AGAIN_WITHIN_MS) return;
      this.#fail([name], `${name} has no pod CIDR, and blocks are free since ${seconds(now - this.#freeSinceMs)}`);
      return;
    }
    if (!isFollowed) return;
    const isBad =
      this.#policy.clusterCIDRs.length < cidrs.length ||
      !cidrs.every((cidr) => this.#policy.clusterCIDRs.some((all) => cidr.includes(':') || isInside(cidr, all)));
    if (isBad && !this.#notified.has(`${uid} InvalidPodCIDR`))
      this.#fail([name], `${name} has ${cidrs.join(', ')} and no event about it`);
    if (byPeople) return;
    const own = [...this.#noted.values()].filter((each) => each.uid === uid).length;
    if (own !== cidrs.length) this.#fail([name], `${name} has ${cidrs.join(', ')}; ${own} blocks are noted as its own`);
  }
}
