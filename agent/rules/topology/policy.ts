/**
 * The decision of a policy from the hints.
 * Source: policy_*.go in pkg/kubelet/cm/topologymanager.
 */
import type { TopologyPolicy } from '../../config.ts';
import { type Axis, axesOf, type Hint, mergeHints, type ProviderHints } from './hint.ts';
import { bitCount, closerMask, type Distances, type Mask, narrowerMask } from './mask.ts';

export interface TopologyDecision {
  readonly hint: Hint;
  readonly admit: boolean;
}

export interface TopologySettings {
  readonly policy: Exclude<TopologyPolicy, 'none'>;
  readonly scope: 'container' | 'pod';
  readonly allNodes: Mask;
  /** With the option prefer-closest-numa-nodes only. */
  readonly distances: Distances | undefined;
}

const onOneNode = (axis: Axis): Axis =>
  axis.filter(({ mask, preferred }) => preferred && (mask === undefined || bitCount(mask) === 1));

export function decideTopology(
  { policy, allNodes, distances }: TopologySettings,
  providers: readonly ProviderHints[],
): TopologyDecision {
  const axes = axesOf(providers);
  if (policy === 'single-numa-node') {
    const { mask, preferred } = mergeHints(axes.map(onOneNode), allNodes, narrowerMask);
    return { hint: { mask: mask === allNodes ? undefined : mask, preferred }, admit: preferred };
  }
  const better =
    distances === undefined
      ? narrowerMask
      : (current: Mask, candidate: Mask): Mask => closerMask(current, candidate, distances);
  const hint = mergeHints(axes, allNodes, better);
  return { hint, admit: policy === 'best-effort' || hint.preferred };
}
