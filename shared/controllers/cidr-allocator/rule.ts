/**
 * Which pod CIDRs a node gets: one block from each cluster CIDR, in their order.
 *
 * An allocation is all or nothing: when a later set is full, what was taken from earlier ones is given back, and a bad CIDR
 * on one node is reported on that node and stops nobody else (D8 in docs/deviations.md).
 * Source: pkg/controller/nodeipam/ipam/range_allocator.go, cidr_allocator.go.
 */
import { type Cidr, formatCidr, parseCidr } from '../../domain/cidr.ts';
import type { EventText } from '../../domain/events/event-text.ts';
import type { Policy } from '../../domain/policy.ts';
import { allocateNext, type BlockRange, blocksOf, type CidrSet, createCidrSet, occupyBlocks } from './cidr-set.rule.ts';

/** `source.component` of the events of this controller. */
export const CIDR_ALLOCATOR_COMPONENT = 'cidrAllocator';

export type CidrPolicy = Pick<
  Policy,
  'clusterCIDRs' | 'serviceClusterIPRanges' | 'nodeCIDRMaskSizeIPv4' | 'nodeCIDRMaskSizeIPv6'
>;

export type CidrSetsCreation =
  /** No cluster CIDR: allocation is off. */
  | { readonly kind: 'off' }
  | { readonly kind: 'created'; readonly sets: readonly CidrSet[] }
  /** The configuration cannot work; every fault of it. */
  | { readonly kind: 'refused'; readonly reasons: readonly string[] };

/** The sets as configured, with every overlapping service range marked as used in each of them. */
export function createCidrSets(policy: CidrPolicy): CidrSetsCreation {
  if (policy.clusterCIDRs.length === 0) return { kind: 'off' };
  const reasons: string[] = [];
  const parsed = (texts: readonly string[], what: string): Cidr[] =>
    texts.flatMap((text) => {
      const cidr = parseCidr(text);
      if (cidr === undefined) reasons.push(`${what} ${JSON.stringify(text)} is no CIDR`);
      return cidr ?? [];
    });
  const clusters = parsed(policy.clusterCIDRs, 'cluster CIDR');
  const serviceRanges = parsed(policy.serviceClusterIPRanges, 'service range');
  if (clusters.length > 2) reasons.push('at most two cluster CIDRs');
  if (clusters.length === 2 && clusters[0]?.family === clusters[1]?.family) {
    reasons.push('two cluster CIDRs must be one of each family');
  }
  const sets: CidrSet[] = [];
  for (const cluster of clusters) {
    const nodePrefix = cluster.family === 4 ? policy.nodeCIDRMaskSizeIPv4 : policy.nodeCIDRMaskSizeIPv6;
    const creation = createCidrSet(cluster, nodePrefix);
    if (creation.kind === 'refused') {
      reasons.push(creation.reason);
      continue;
    }
    let set = creation.set;
    for (const range of serviceRanges) {
      const blocks = blocksOf(set, range);
      if (blocks !== undefined) set = occupyBlocks(set, [blocks]);
    }
    sets.push(set);
  }
  return reasons.length > 0 ? { kind: 'refused', reasons } : { kind: 'created', sets };
}

export interface NodeCidrs {
  readonly nodeName: string;
  readonly podCIDRs: readonly string[];
}

export interface CidrFault {
  readonly nodeName: string;
  readonly reason: string;
  readonly event: EventText;
}

const fault = (nodeName: string, reason: string): CidrFault => ({
  nodeName,
  reason,
  event: {
    type: 'Warning',
    reason: 'InvalidPodCIDR',
    message: `Node ${nodeName}: ${reason}`,
    source: CIDR_ALLOCATOR_COMPONENT,
  },
});

export type NodeBlocks =
  | {
      readonly kind: 'readable';
      readonly cidr: string;
      /** Number of the set. */
      readonly index: number;
      readonly blocks: BlockRange;
    }
  | { readonly kind: 'fault'; readonly fault: CidrFault };

/** A node's CIDRs, each with its set's number and blocks, or as a fault of that node. */
export function blocksOfNode(sets: readonly CidrSet[], { nodeName, podCIDRs }: NodeCidrs): NodeBlocks[] {
  return podCIDRs.map((text, index): NodeBlocks => {
    const bad = (reason: string): NodeBlocks => ({ kind: 'fault', fault: fault(nodeName, reason) });
    const set = sets[index];
    if (set === undefined) {
      return bad(`pod CIDR ${text} is number ${index + 1}, there are ${sets.length} cluster CIDRs`);
    }
    const cidr = parseCidr(text);
    if (cidr === undefined) return bad(`pod CIDR ${JSON.stringify(text)} is no CIDR`);
    const blocks = blocksOf(set, cidr);
    if (blocks === undefined) return bad(`pod CIDR ${text} is not in cluster CIDR ${formatCidr(set.cluster)}`);
    return { kind: 'readable', cidr: text, index, blocks };
  });
}

/**
 * Why a machine may not say that it has these CIDRs; undefined when it may. A machine gets one block of each cluster CIDR, so
 * that is the most it may claim: a wider claim would keep blocks from every other node. People may set wider ones.
 */
export function refusedClaim(sets: readonly CidrSet[], podCIDRs: readonly string[]): string | undefined {
  for (const entry of blocksOfNode(sets, { nodeName: '', podCIDRs })) {
    if (entry.kind === 'fault') return entry.fault.reason;
    const set = sets[entry.index];
    if (set !== undefined && entry.blocks.last > entry.blocks.first) {
      return `pod CIDR ${entry.cidr} is larger than a node's block, which has prefix length ${set.nodePrefix}`;
    }
  }
  return undefined;
}

/** On the node: it says to have what is another node's. Both keep it; a person has to choose. */
export const podCidrTaken = (nodeName: string, cidr: string, cluster: string): CidrFault =>
  fault(nodeName, `pod CIDR ${cidr} of cluster CIDR ${cluster} is another node's`);

/** Marks the CIDRs that a node has, index by index, as far as they can be read. */
export function occupyNode(sets: readonly CidrSet[], node: NodeCidrs): readonly CidrSet[] {
  const readable = blocksOfNode(sets, node).flatMap((entry) => (entry.kind === 'readable' ? [entry] : []));
  return sets.map((set, index) =>
    occupyBlocks(
      set,
      readable.filter((entry) => entry.index === index).map(({ blocks }) => blocks),
    ),
  );
}

export type NodeAllocation =
  | {
      readonly kind: 'allocated';
      /** For spec.podCIDRs; spec.podCIDR is the first of them. */
      readonly podCIDRs: readonly string[];
      readonly sets: readonly CidrSet[];
      /** Used blocks passed over in each set: the metric allocation_tries_per_request. */
      readonly skipped: readonly number[];
    }
  /** A set is full; nothing was taken from any. */
  | { readonly kind: 'exhausted'; readonly reason: string; readonly event: EventText };

export const nodeEvent = (nodeName: string, reason: 'CIDRNotAvailable' | 'CIDRAssignmentFailed'): EventText => ({
  type: 'Warning',
  reason,
  message: `Node ${nodeName} status is now: ${reason}`,
  source: CIDR_ALLOCATOR_COMPONENT,
});

/** A block of each set, in their order, for a node that has no CIDRs. */
export function allocateForNode(sets: readonly CidrSet[], nodeName: string): NodeAllocation {
  const podCIDRs: string[] = [];
  const next: CidrSet[] = [];
  const skipped: number[] = [];
  for (const set of sets) {
    const allocation = allocateNext(set);
    if (allocation.kind === 'full') {
      return {
        kind: 'exhausted',
        reason: `cluster CIDR ${formatCidr(set.cluster)} has no free block`,
        event: nodeEvent(nodeName, 'CIDRNotAvailable'),
      };
    }
    podCIDRs.push(formatCidr(allocation.cidr));
    next.push(allocation.set);
    skipped.push(allocation.skipped);
  }
  return { kind: 'allocated', podCIDRs, sets: next, skipped };
}
