/**
 * Hints: where a resource can be had, and the best place for all of them together.
 * Source: policy.go in pkg/kubelet/cm/topologymanager.
 */
import { bitCount, EMPTY, type Mask } from './mask.ts';

export interface Hint {
  /** Undefined: anywhere. */
  readonly mask: Mask | undefined;
  readonly preferred: boolean;
}

/** Hints by resource. No list: the resource does not care; an empty one: it cannot be had anywhere. Undefined: no say. */
export type ProviderHints = ReadonlyMap<string, readonly Hint[] | undefined> | undefined;

/** Hints of one resource of one provider, of which one has to be chosen. */
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

/** The most nodes that any axis needs at the least: what a hint that is not preferred should span. */
export function targetCount(axes: readonly Axis[]): number {
  let target = 0;
  for (const axis of axes) {
    const counts = axis.flatMap(({ mask }) => (mask === undefined ? [] : [bitCount(mask)]));
    if (counts.length > 0) target = Math.max(target, Math.min(...counts));
  }
  return target;
}

/** Of two masks the better one; the first when they are the same. */
export type Comparison = (current: Mask, candidate: Mask) => Mask;

export type MergedHint = Hint & { readonly mask: Mask };

/** One step of the choice: which of the two is kept. */
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

/** What a choice of one hint an axis comes to so far. */
interface Merging {
  readonly mask: Mask;
  /** The mask that all hints with a mask have; `none` before the first, `several` when they differ. */
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
 * The best of all combinations of one hint an axis; all nodes, not preferred, when there is none. Choices that have come to
 * the same are carried on as one: their number is bounded by that of the masks, and not by the product of the lists.
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
