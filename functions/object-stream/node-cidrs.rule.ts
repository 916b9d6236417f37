/**
 * The pod CIDRs of a node: one block from each cluster CIDR, in their order.
 *
 * An allocation is all or nothing: when one set is full, no block of the others is used. An invalid CIDR on one node is
 * reported on that node and affects no other node (D8 in docs/deviations.md).
 * Source: pkg/controller/nodeipam/ipam/range_allocator.go, cidr_allocator.go.
 */
import type { EventText } from '../../shared/events/event-text.ts';
import { formatCidr } from '../../shared/fleet/cidrs/cidr.ts';
import { allocateNext, type CidrSet, occupyBlocks } from '../../shared/fleet/cidrs/cidr-set.ts';
import {
  blocksOfNode,
  CIDR_ALLOCATOR_COMPONENT,
  type CidrFault,
  fault,
  type NodeCidrs,
} from '../../shared/fleet/cidrs/cluster-cidrs.ts';

/** The fault of a node with a pod CIDR that another node owns. Both keep it; a user must resolve the conflict. */
export const podCidrTaken = (nodeName: string, cidr: string, cluster: string): CidrFault =>
  fault(nodeName, `pod CIDR ${cidr} of cluster CIDR ${cluster} belongs to another node`);

/** Marks the CIDRs of a node as used, by index. Malformed CIDRs are skipped. */
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
  /** A set is full. No block of any set is used. */
  | { readonly kind: 'exhausted'; readonly reason: string; readonly event: EventText };

export const nodeEvent = (nodeName: string, reason: 'CIDRNotAvailable' | 'CIDRAssignmentFailed'): EventText => ({
  type: 'Warning',
  reason,
  message: `Node ${nodeName} status is now: ${reason}`,
  source: CIDR_ALLOCATOR_COMPONENT,
});

/** One block of each set, in their order, for a node without CIDRs. */
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
