/**
 * The rows of a move in the `control` table (docs/decisions/0059-moving-a-cluster.md). They stay where they are: a copy
 * has none of its source's.
 *
 *   pk `move` sk `source`        the fence: this store accepts no writes
 *   pk `move` sk `destination`   how far the move into this store is
 */
import { type ClusterAddress, clusterAddress } from '../agents/moved-cluster.ts';
import type { Item, ItemKey } from './item-store.ts';

export const MOVE_PARTITION = 'move';
export const FENCE_KEY: ItemKey = { table: 'control', pk: MOVE_PARTITION, sk: 'source' };
export const ARRIVAL_KEY: ItemKey = { table: 'control', pk: MOVE_PARTITION, sk: 'destination' };

export interface Fence {
  readonly moveId: string;
  /** The destination, as the command names it. */
  readonly to: string;
  readonly sinceMs: number;
  /** The destination may have been opened: it is complete, or about to be marked so. */
  readonly isReady: boolean;
  /** Where the cluster is now, for its clients. */
  readonly address?: ClusterAddress;
}

/**
 * What a change of the fence expects to find; undefined: no fence. The id alone is not enough: a fence that says
 * `isReady` meanwhile belongs to a destination that may be open (server/move/move.ts).
 */
export type FenceState = Pick<Fence, 'moveId' | 'isReady'>;

export const isInState = (fence: Fence | undefined, expected: FenceState | undefined): boolean =>
  fence?.moveId === expected?.moveId && fence?.isReady === expected?.isReady;

export function fenceItem({ moveId, to, sinceMs, isReady, address }: Fence): Item {
  const { endpoint, certificateAuthority } = address ?? {};
  return {
    moveId,
    to,
    sinceMs,
    isReady,
    ...(endpoint !== undefined && { endpoint }),
    ...(certificateAuthority !== undefined && { certificateAuthority }),
  };
}

export function fenceOf(item: Item | undefined): Fence | undefined {
  if (item === undefined) return undefined;
  const { moveId, to, sinceMs, isReady, endpoint, certificateAuthority } = item;
  const address = clusterAddress(endpoint, certificateAuthority);
  return {
    moveId: String(moveId),
    to: String(to),
    sinceMs: Number(sinceMs),
    isReady: isReady === true,
    ...(address !== undefined && { address }),
  };
}

/**
 * copying    rows are missing
 * ready      complete; the next start opens it
 * open       it is the cluster
 * abandoned  it will never be opened
 */
export type ArrivalPhase = 'copying' | 'ready' | 'open' | 'abandoned';

export interface Arrival {
  readonly moveId: string;
  readonly phase: ArrivalPhase;
}

export function arrivalOf(item: Item | undefined): Arrival | undefined {
  return item === undefined ? undefined : { moveId: String(item['moveId']), phase: item['phase'] as ArrivalPhase };
}

/**
 * Whether the store is a cluster. Only such a store is moved: what is copied from another one would be opened beside
 * the source of that one. `open` is final, and a store with rows never becomes a destination.
 */
export const isCluster = (arrival: Arrival | undefined): boolean => arrival === undefined || arrival.phase === 'open';
