/**
 * The storage of one resource, as the verbs use it. Most resources are in the `objects` table. Leases of nodes are in
 * `health`, where a beat is one small write. Outcomes are values, which the verbs turn into Kubernetes responses.
 */

import type { KubeObject } from '../kinds/types.ts';
import type { FieldSelector } from '../kubernetes/selectors.ts';
import type { ObjectWrite } from '../store/object-store.ts';

export interface ListQuery {
  /** '' for all namespaces. */
  readonly namespace: string;
  /** Objects per page, at most. */
  readonly limit: number;
  /** Key (`namespace/name` or name) after which the page starts. */
  readonly continueAfter?: string;
  /** Only pods bound to this node. A storage without such an index ignores it: the caller filters in any case. */
  readonly nodeName?: string;
  /** The field selector. A storage without an index for it ignores it: the caller filters in any case. */
  readonly fields?: Pick<FieldSelector, 'exact'>;
}

export interface ListPage {
  readonly items: readonly KubeObject[];
  /** Key of the last object read, when there may be more. */
  readonly next?: string;
  /** `continueAfter` of what follows each item. Absent: listKeyOf. */
  readonly positions?: readonly string[];
}

export type WriteResult =
  | { readonly kind: 'written'; readonly object: KubeObject }
  /**
   * Another writer wrote, removed or created it first. `ofAlong`: it has the expected version, but one of the objects
   * written along has not.
   */
  | { readonly kind: 'conflict'; readonly ofAlong?: boolean };

export interface ResourceStorage {
  get(namespace: string, name: string): Promise<KubeObject | undefined>;
  list(query: ListQuery): Promise<ListPage>;
  /**
   * The resourceVersion of a list. Read it before the list: a watch from there then misses no change (decision 0002).
   */
  listVersion(): Promise<string>;
  /** For a dry run: what `create` refuses before it writes. @throws StatusError 403. Absent: nothing */
  refuseCreation?(name: string): void;
  /** `along`: writes of other objects in the same transaction. */
  create(object: KubeObject, along?: readonly ObjectWrite[]): Promise<WriteResult>;
  /** Replaces `old`, which must be the stored version. */
  update(next: KubeObject, old: KubeObject, along?: readonly ObjectWrite[]): Promise<WriteResult>;
  /**
   * Stores a change without a new version, at less cost. Clients read it, watches do not see it. undefined: this change
   * needs `update`. Absent: every change does.
   */
  confirm?(next: KubeObject, old: KubeObject): Promise<WriteResult | undefined>;
  /** Records that a node posted an unchanged status of its own object. Absent: nothing to record. */
  received?(object: KubeObject): Promise<void>;
  remove(old: KubeObject, along?: readonly ObjectWrite[]): Promise<WriteResult>;
  /** A stored object, as of the change log, in the form that the other members return. Absent: as it is stored. */
  served?(stored: KubeObject): KubeObject | Promise<KubeObject>;
  /** False where objects of the namespace have no managedFields. Absent: all have them. */
  keepsManagedFields?(namespace: string): boolean;
  /** True where the namespace has no change log: a watch must compare reads. Absent: it has one. */
  readsInsteadOfLog?(namespace: string): boolean;
  /** Why a watch with this selector is refused. Present only where objects are immutable and have no change log. */
  refusesWatch?(fields: FieldSelector): string | undefined;
}

/** Key of an object in lists. Lists are ordered by it, and a continue token holds it. */
export const listKeyOf = ({ metadata }: KubeObject): string =>
  (metadata.namespace ?? '') === '' ? (metadata.name ?? '') : `${metadata.namespace}/${metadata.name}`;
