/**
 * Which objects of a namespace belong to an owner. Source: pkg/controller/controller_ref_manager.go (ClaimObject).
 */

import type { KubeObject } from '../../../shared/kinds/types.ts';
import { controllerOf } from '../../../shared/kubernetes/normal-form.ts';
import type { LabelSelector } from '../../../shared/kubernetes/selectors.ts';

export interface Claims<Owned extends KubeObject> {
  /** Controlled by the owner already. */
  readonly owned: readonly Owned[];
  /** Without a controller, to be adopted. */
  readonly adopt: readonly Owned[];
  /** Controlled by the owner, and no longer selected. */
  readonly release: readonly Owned[];
}

/**
 * What the index has, and what may be adopted. Another worker may have adopted an orphan since it was found: then it
 * counts once, as the index has it.
 */
export function candidatesOf<Owned extends KubeObject>(
  indexed: readonly Owned[],
  orphans: readonly Owned[],
): readonly Owned[] {
  const known = new Set(indexed.map(({ metadata }) => metadata.uid));
  const free = orphans.filter((each) => controllerOf(each) === undefined && !known.has(each.metadata.uid));
  return [...indexed, ...free];
}

export function decideClaims<Owned extends KubeObject>(
  owner: KubeObject,
  selector: LabelSelector,
  candidates: readonly Owned[],
): Claims<Owned> {
  const owned: Owned[] = [];
  const adopt: Owned[] = [];
  const release: Owned[] = [];
  const isOwnerDeleting = owner.metadata.deletionTimestamp !== undefined;
  for (const candidate of candidates) {
    const { metadata } = candidate;
    const controller = controllerOf(candidate);
    const isSelected = selector.matches(metadata.labels ?? {});
    if (controller !== undefined) {
      if (controller.uid !== owner.metadata.uid) continue;
      if (isSelected) owned.push(candidate);
      else if (!isOwnerDeleting) release.push(candidate);
    } else if (
      isSelected &&
      !isOwnerDeleting &&
      metadata.namespace === owner.metadata.namespace &&
      metadata.deletionTimestamp === undefined
    ) {
      adopt.push(candidate);
    }
  }
  return { owned, adopt, release };
}
