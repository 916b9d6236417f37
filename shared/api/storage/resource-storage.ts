/**
 * Where objects of one resource are kept, as the verbs see it. Most live in the `objects` table; leases of nodes live
 * in `health`, where a beat is one small write. Outcomes are values; the verbs turn them into Kubernetes answers.
 */
import type { FieldSelector } from '../../kube/selectors.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { ObjectWrite } from '../../store/object-store.ts';

export interface ListQuery {
  /** '' for all namespaces. */
  readonly namespace: string;
  /** Items in the page at most. */
  readonly limit: number;
  /** Key (`namespace/name` or name) after which to go on. */
  readonly continueAfter?: string;
  /** Only pods bound to this node; a storage that cannot look this up ignores it, the caller filters anyway. */
  readonly nodeName?: string;
  /** What the objects are narrowed to; a storage that cannot look it up ignores it, the caller filters anyway. */
  readonly fields?: Pick<FieldSelector, 'exact'>;
}

export interface ListPage {
  readonly items: readonly KubeObject[];
  /** Key of the last item read, when there may be more. */
  readonly next?: string;
}

export type WriteResult =
  | { readonly kind: 'written'; readonly object: KubeObject }
  /** Somebody else wrote it first (or removed it, or created it). */
  | { readonly kind: 'conflict' };

export interface ResourceStorage {
  get(namespace: string, name: string): Promise<KubeObject | undefined>;
  list(query: ListQuery): Promise<ListPage>;
  /**
   * The resourceVersion a list must answer, asked before the list is read: a watch from there misses nothing.
   * Decision 0002.
   */
  listVersion(): Promise<string>;
  create(object: KubeObject): Promise<WriteResult>;
  /** Replaces `old`, which must still be the stored version. `along`: other objects, in the same transaction. */
  update(next: KubeObject, old: KubeObject, along?: readonly ObjectWrite[]): Promise<WriteResult>;
  /**
   * Keeps a change that is worth no new version, as cheaply as it can be kept: clients read it, watches are not told. undefined:
   * this change is not of that kind, or not now, and is to be written by `update`. Absent: none is.
   */
  confirm?(next: KubeObject, old: KubeObject): Promise<WriteResult | undefined>;
  /** The machine whose object this is posted a status that changes nothing. Absent: that means nothing. */
  received?(object: KubeObject): Promise<void>;
  remove(old: KubeObject, along?: readonly ObjectWrite[]): Promise<WriteResult>;
  /** False where objects of a namespace carry no managedFields. Absent: all do. */
  keepsManagedFields?(namespace: string): boolean;
  /** True where changes in a namespace stand in no change log, so that a watch has to compare what it reads. */
  readsInsteadOfLog?(namespace: string): boolean;
  /** Why a watch with this selector is refused; only where it reads instead of the log, and objects never change. */
  refusesWatch?(fields: FieldSelector): string | undefined;
}

/** Key of an object in lists: their order, and what a continue token names. */
export const listKeyOf = ({ metadata }: KubeObject): string =>
  (metadata.namespace ?? '') === '' ? (metadata.name ?? '') : `${metadata.namespace}/${metadata.name}`;
