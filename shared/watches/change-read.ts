/**
 * The form of a ChangeRead: one request that returns the changes of many resources, for a process that keeps a copy of
 * a cluster. Nothing of it is stored.
 *
 *   POST /apis/nodekeeper.dev/v1alpha1/changereads
 *     spec.resources     each with a cursor: the version of a list, or `through` of the previous answer
 *     status.resources   the same resources in the same order, each with its outcome
 *     status.clusterId   the cluster in tokens of machines, for those who verify them beside the copy
 *
 * A change is what a watch from the cursor would have sent, and more: labels and fields before it. Watches of the copy
 * find by them which objects leave their selectors. Cursors and changes are those of the change log
 * (shared/store/change-log.ts).
 *
 * Who may not follow a resource as a whole may follow what belongs to nodes that its roles name (site-reads.ts in
 * functions/api/changes). Such a resource is listed by ChangeReads as well, and whenever other objects belong to it.
 *
 * Cost in read units: half of one for each shard of each resource, as an item of a batch; one if it is `consistent`. A
 * resource that has changed costs one more per shard and one per 4 KB of its changes, and a write unit for each shard
 * that lags behind.
 */
import type { KubeObject } from '../kinds/types.ts';
import type { ChangeType, Selectable } from '../store/object-record.ts';

export const CHANGE_READS = {
  group: 'nodekeeper.dev',
  version: 'v1alpha1',
  resource: 'changereads',
  kind: 'ChangeRead',
} as const;

/** Resources of one request. */
export const RESOURCES_MAX = 100;
/** Changes of all resources in one answer. */
export const CHANGES_MAX = 1_000;
/**
 * Their JSON in UTF-8. A Lambda function answers 6 MB at most, as a JSON string: each byte becomes two at worst.
 */
export const CHANGES_BYTES_MAX = 2_900_000;

export interface ResourceName {
  /** '' is the core group. */
  readonly group: string;
  /** Plural. */
  readonly resource: string;
}

export interface ChangeCursor extends ResourceName {
  /** A resourceVersion; '0' before the first list. */
  readonly after: string;
  /** `bounds` of the answer that the copy is from. Absent: it has the whole resource, or nothing. */
  readonly bounds?: string;
  /** `next` of the page before. Absent: the first page, if a list is due. */
  readonly from?: string;
}

export interface ReadChange {
  readonly type: ChangeType;
  /** With its resourceVersion, as it is stored; a deleted one in its last state, with the version of the deletion. */
  readonly object: KubeObject;
  /** Labels and selectable fields before the change. Absent: as after it, or it is an addition. */
  readonly previous?: Selectable;
}

export type ChangesOfResource = ResourceName &
  (
    | {
        readonly outcome: 'changes';
        /** All changes up to this version have been returned: the next cursor. */
        readonly through: string;
        /** There are later changes, for which this answer has no room: ask again at once. */
        readonly more: boolean;
        /** Oldest first. */
        readonly changes: readonly ReadChange[];
        /** The changes are those of what belongs to some nodes. */
        readonly bounds?: string;
      }
    /** A page of all that the user may follow of the resource. */
    | {
        readonly outcome: 'listed';
        /** All changes up to this version are in the objects, and later ones may be. */
        readonly through: string;
        readonly bounds: string;
        readonly objects: readonly KubeObject[];
        /** Where the next page begins. Absent: this is the last one. */
        readonly next?: string;
      }
    /** Changes after the cursor may have expired: list again. */
    | { readonly outcome: 'expired' }
    /** notServed: there is no such resource, or it has no change log. */
    | { readonly outcome: 'forbidden' | 'notServed'; readonly message: string }
  );

export interface ChangeRead {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: KubeObject['metadata'];
  readonly spec: {
    readonly resources: readonly ChangeCursor[];
    /** Everything that was committed before the request is in the answer. Absent: the newest may be missing. */
    readonly consistent?: boolean;
  };
  /** Only in an answer. */
  readonly status?: {
    /** What tokens of machines name as their audience. Absent: this process verifies none. */
    readonly clusterId?: string;
    /** Names the history of the store (shared/store/store-history.ts). Another one: an older backup is in its place. */
    readonly history?: string;
    readonly resources: readonly ChangesOfResource[];
  };
}
