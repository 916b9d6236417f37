/**
 * What becomes of an object when an owner of it no longer exists. Pure. Source: attemptToDeleteItem in
 * pkg/controller/garbagecollector/garbagecollector.go.
 */
import type { OwnerReference } from '../../../shared/kinds/types.ts';

/** The coordinates of an ownerReference. Its namespace is that of the dependent. */
export type OwnerCoordinates = Pick<OwnerReference, 'apiVersion' | 'kind' | 'name' | 'uid'>;

/** An owner as a live read found it. */
export type OwnerState =
  /** It exists, with the uid of the reference, and does not wait for its dependents. */
  | 'solid'
  /** It exists and is being deleted in the foreground. */
  | 'waiting'
  /** It does not exist, or has another uid. */
  | 'absent'
  /** Its kind is not served, so nothing is known about it. */
  | 'unknown';

export interface JudgedOwner {
  readonly reference: OwnerReference;
  readonly state: OwnerState;
}

export type Fate =
  | { readonly kind: 'keep' }
  /** At least one owner stands: only the references to the others are removed. */
  | { readonly kind: 'release'; readonly uids: readonly string[] }
  /** `Foreground`: its own dependents before it. */
  | { readonly kind: 'delete'; readonly policy: 'Background' | 'Foreground' };

/**
 * L16: an object with an owner that stands, or that cannot be read, is never deleted. It also loses its reference to an
 * owner that waits for its dependents: that owner would wait for it forever.
 *
 * An owner that waits for its dependents waits for theirs too: so a Deployment stays until the pods of its ReplicaSets
 * have terminated.
 */
export function fateOf(
  owners: readonly JudgedOwner[],
  { isDeleting, hasDependents }: { readonly isDeleting: boolean; readonly hasDependents: boolean },
): Fate {
  if (owners.length === 0 || isDeleting) return { kind: 'keep' };
  const standing = owners.filter(({ state }) => state === 'solid' || state === 'unknown');
  const lost = owners.filter(({ state }) => state === 'absent' || state === 'waiting');
  if (standing.length > 0) {
    return lost.length === 0 ? { kind: 'keep' } : { kind: 'release', uids: lost.map(({ reference }) => reference.uid) };
  }
  const isAwaited = owners.some(({ state }) => state === 'waiting');
  return { kind: 'delete', policy: isAwaited && hasDependents ? 'Foreground' : 'Background' };
}
