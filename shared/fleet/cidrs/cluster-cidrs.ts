/**
 * The cluster CIDRs as sets of blocks, and the blocks that the pod CIDRs of a node use.
 * Source: pkg/controller/nodeipam/ipam.
 */

import type { EventText } from '../../events/event-text.ts';
import type { Policy } from '../policy.ts';
import { type Cidr, formatCidr, parseCidr } from './cidr.ts';
import { type BlockRange, blocksOf, type CidrSet, createCidrSet, occupyBlocks } from './cidr-set.ts';

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
  /** The configuration is invalid. `reasons`: all its faults. */
  | { readonly kind: 'refused'; readonly reasons: readonly string[] };

/** One set per cluster CIDR. Blocks that overlap a service range are marked as used. */
export function createCidrSets(policy: CidrPolicy): CidrSetsCreation {
  if (policy.clusterCIDRs.length === 0) return { kind: 'off' };
  const reasons: string[] = [];
  const parsed = (texts: readonly string[], what: string): Cidr[] =>
    texts.flatMap((text) => {
      const cidr = parseCidr(text);
      if (cidr === undefined) reasons.push(`${what} ${JSON.stringify(text)} is not a CIDR`);
      return cidr ?? [];
    });
  const clusters = parsed(policy.clusterCIDRs, 'cluster CIDR');
  const serviceRanges = parsed(policy.serviceClusterIPRanges, 'service range');
  if (clusters.length > 2) reasons.push('at most two cluster CIDRs');
  if (clusters.length === 2 && clusters[0]?.family === clusters[1]?.family) {
    reasons.push('of two cluster CIDRs one must be IPv4 and one IPv6');
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

export const fault = (nodeName: string, reason: string): CidrFault => ({
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
      /** Index of the set. */
      readonly index: number;
      readonly blocks: BlockRange;
    }
  | { readonly kind: 'fault'; readonly fault: CidrFault };

/** For each pod CIDR of a node: its set and blocks, or the fault that it has. */
export function blocksOfNode(sets: readonly CidrSet[], { nodeName, podCIDRs }: NodeCidrs): NodeBlocks[] {
  return podCIDRs.map((text, index): NodeBlocks => {
    const bad = (reason: string): NodeBlocks => ({ kind: 'fault', fault: fault(nodeName, reason) });
    const set = sets[index];
    if (set === undefined) {
      return bad(`pod CIDR ${text} is number ${index + 1}, there are ${sets.length} cluster CIDRs`);
    }
    const cidr = parseCidr(text);
    if (cidr === undefined) return bad(`pod CIDR ${JSON.stringify(text)} is not a CIDR`);
    const blocks = blocksOf(set, cidr);
    if (blocks === undefined) return bad(`pod CIDR ${text} is not in cluster CIDR ${formatCidr(set.cluster)}`);
    return { kind: 'readable', cidr: text, index, blocks };
  });
}

/**
 * Why a node may not set these pod CIDRs on itself; undefined if it may. A node may use at most one block per cluster
 * CIDR: a larger CIDR would exclude blocks for other nodes. Users may set larger CIDRs.
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
