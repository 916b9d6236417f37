/**
 * Hints: the sets of NUMA nodes that can provide a resource, and the best set for all resources of a pod.
 * Source: policy.go in pkg/kubelet/cm/topologymanager.
 */
import { bitCount, EMPTY, type Mask } from './mask.ts';

export interface Hint {
  /** Undefined: any set of nodes. */
  readonly mask: Mask | undefined;
  readonly preferred: boolean;
}

/**
 * Hints by resource. A resource without a list has no preference; with an empty list it is not available on any set of
 * nodes. Undefined: the provider has no preference.
 */
export type ProviderHints = ReadonlyMap<string, readonly Hint[] | undefined> | undefined;

/** The hints of one resource of one provider. One of them is chosen. */
export type Axis = readonly Hint[];

const ANYWHERE: Hint = { mask: undefined, preferred: true };
const NOWHERE: Hint = { mask: undefined, preferred: false };

export function axesOf(providers: readonly ProviderHints[]): Axis[] {
  return providers.flatMap((hints): Axis[] => {
    if (hints === undefined || hints.size === 0) return [[ANYWHERE]];
    return [...hints.values()].map((list) => {
      if (list === undefined) return [ANYWHERE];
      return list.length === 0 ? [NOWHERE] : list;
    });
  });
}

/**
 * The maximum over all axes of the fewest nodes that the axis needs: the target size of a hint that is not preferred.
 */
export function targetCount(axes: readonly Axis[]): number {
  let target = 0;
  for (const axis of axes) {
    const counts = axis.flatMap(({ mask }) => (mask === undefined ? [] : [bitCount(mask)]));
    if (counts.length > 0) target = Math.max(target, Math.min(...counts));
  }
  return target;
}

/** The better of two masks; the first if they are equal. */
export type Comparison = (current: Mask, candidate: Mask) => Mask;

export type MergedHint = Hint & { readonly mask: Mask };

/** The better of two hints. */
export function keepHint(
  target: number,
  current: MergedHint | undefined,
  candidate: MergedHint,
  better: Comparison,
): MergedHint | undefined {
  if (candidate.mask === EMPTY) return current;
  if (current === undefined) return candidate;
  if (current.preferred !== candidate.preferred) return current.preferred ? current : candidate;
  const betterOne = (): MergedHint => (better(current.mask, candidate.mask) === current.mask ? current : candidate);
  if (current.preferred) return betterOne();
  const has = bitCount(current.mask);
  const offers = bitCount(candidate.mask);
  if (has > target) return betterOne();
  if (has === target) return offers === target ? betterOne() : current;
  if (offers > target) return current;
  if (offers === has) return betterOne();
  return offers > has ? candidate : current;
}

/** The merged hints of the axes so far, one hint per axis. */
interface Merging {
  readonly mask: Mask;
  /** The common mask of all hints with a mask; `none` before the first one, `several` if they differ. */
  readonly shared: Mask | 'none' | 'several';
  readonly preferred: boolean;
}

function mergeOne({ mask, shared, preferred }: Merging, hint: Hint): Merging {
  if (hint.mask === undefined) return { mask, shared, preferred: preferred && hint.preferred };
  return {
    mask: mask & hint.mask,
    shared: shared === 'none' || shared === hint.mask ? hint.mask : 'several',
    preferred: preferred && hint.preferred,
  };
}

/**
 * The best of all combinations of one hint per axis; all nodes, not preferred, if there is none. Equal intermediate
 * results are kept once, so their number is bounded by the number of masks and not by the product of the lists.
 */
export function mergeHints(axes: readonly Axis[], allNodes: Mask, better: Comparison): MergedHint {
  let merged: readonly Merging[] = [{ mask: allNodes, shared: 'none', preferred: true }];
  for (const axis of axes) {
    const next = new Map<string, Merging>();
    for (const left of merged) {
      for (const hint of axis) {
        const both = mergeOne(left, hint);
        const key = `${both.mask}/${both.shared}/${both.preferred}`;
        if (!next.has(key)) next.set(key, both);
      }
    }
    merged = [...next.values()];
  }
  const target = targetCount(axes);
  let best: MergedHint | undefined;
  for (const { mask, shared, preferred } of merged) {
    best = keepHint(target, best, { mask, preferred: preferred && shared !== 'several' }, better);
  }
  return best ?? { mask: allNodes, preferred: false };
}
