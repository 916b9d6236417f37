/**
 * The storage of one resource, as the verbs use it. Most resources are in the `objects` table. Leases of nodes are in
 * `health`, where a beat is one small write. Outcomes are values, which the verbs turn into Kubernetes responses.
 */

import { defined } from '../defined.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import type { KubeObject } from '../kinds/types.ts';
import { NAME_LENGTH_MAX } from '../kubernetes/kubernetes.ts';
import type { FieldSelector, LabelSelector } from '../kubernetes/selectors.ts';
import * as status from '../kubernetes/status.ts';
import { SORT_KEY_BYTES_MAX } from '../store/item-store.ts';
import type { ObjectWrite } from '../store/object-store.ts';
import { utf8Bytes } from '../text.ts';

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
  /** Characters of the JSON of each, or about so many. Absent: they are counted. */
  readonly lengths?: readonly number[];
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
  /** Makes what every cluster has of this resource, before a watch begins with its state. Absent: there is nothing. */
  makeInitial?(): Promise<void>;
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

type Reading = Omit<ResourceStorage, 'create' | 'update' | 'remove' | 'keepsManagedFields'>;

/** Never reached by a client: kinds/read-only.ts has no verb for a write. */
const refused = async (): Promise<WriteResult> => ({ kind: 'conflict' });

/** The storage of objects that no client writes. */
export const readOnlyStorage = (reading: Reading): ResourceStorage => ({
  ...reading,
  create: refused,
  update: refused,
  remove: refused,
  keepsManagedFields: () => false,
});

/*
 * Lists: selectors, pages, and the size of a response.
 *
 * Objects are ordered by key over all shards. A page ends at `limit` matching objects or at `charactersMax`, whichever
 * comes first. The continue token holds the last key, not an offset, so a deletion between two pages skips nothing.
 * Each page reads the current state.
 */

/** Objects per page of the store, at most. */
const STORE_PAGE_ITEMS = 500;
/** A continue token older than this is 410 Expired. Upstream: after a compaction, every 5 minutes. */
export const CONTINUE_SECONDS_MAX = 900;
/** 100 million objects, which no cluster has. */
const STORE_PAGES_MAX = 200_000;

export interface ListRequest {
  readonly namespace: string;
  /** 0: no limit. */
  readonly limit: number;
  /** Length of the JSON of all items at which a page ends. Absent: no bound. */
  readonly charactersMax?: number;
  readonly continueToken: string;
  readonly labels: LabelSelector;
  readonly fields: FieldSelector;
  readonly nowMs: number;
  /** Aborted when the client has left. */
  readonly gone?: AbortSignal | undefined;
}

export interface ListedPage {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
  readonly continueToken: string;
}

interface ContinueToken {
  readonly v: 1;
  /** resourceVersion of the first page. */
  readonly rv: string;
  /** Key of the last object that was returned (listKeyOf), or its position in the storage. */
  readonly after: string;
  /** When the first page was read. */
  readonly atMs: number;
}

function encodeContinue(token: Omit<ContinueToken, 'v'>): string {
  return Buffer.from(JSON.stringify({ v: 1, ...token })).toString('base64url');
}

/** @throws StatusError 400 for a malformed token, 410 for one older than CONTINUE_SECONDS_MAX */
function decodeContinue(text: string, nowMs: number): ContinueToken {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch {
    value = undefined;
  }
  const token = value as Partial<ContinueToken> | undefined;
  if (
    token === undefined ||
    token === null ||
    token.v !== 1 ||
    typeof token.rv !== 'string' ||
    typeof token.after !== 'string' ||
    token.after === '' ||
    utf8Bytes(token.after) > SORT_KEY_BYTES_MAX ||
    typeof token.atMs !== 'number'
  ) {
    throw status.badRequest('continue key is not valid');
  }
  if (nowMs - token.atMs > CONTINUE_SECONDS_MAX * 1_000) throw status.continueExpired();
  return token as ContinueToken;
}

/** Whether an object matches both selectors. A field that the object does not have is ''. */
export function matches(
  descriptor: ResourceDescriptor,
  object: KubeObject,
  labels: LabelSelector,
  fields: FieldSelector,
): boolean {
  if (!labels.matches(object.metadata.labels ?? {})) return false;
  return fields.matches((field) => descriptor.selectableFields[field]?.(object) ?? '');
}

/**
 * Ends a list when its client has left. Other lists of the user wait for it. The answer is not sent.
 *
 * @throws StatusError
 */
export function refuseLeft(gone: AbortSignal | undefined): void {
  if (gone?.aborted) throw status.badRequest('the client has left');
}

/**
 * Reads one page. A list of one name, as `kubectl wait` and a watch of one object begin with, reads that object alone.
 *
 * @throws StatusError 400 or 410 for the continue token
 */
export async function listObjects(
  storage: ResourceStorage,
  descriptor: ResourceDescriptor,
  request: ListRequest,
): Promise<ListedPage> {
  const token = request.continueToken === '' ? undefined : decodeContinue(request.continueToken, request.nowMs);
  const resourceVersion = token?.rv ?? (await storage.listVersion());
  const name = token === undefined ? request.fields.exact('metadata.name') : undefined;
  if (name !== undefined && (request.namespace !== '' || !descriptor.namespaced)) {
    // The store refuses keys of such length.
    const object = name.length > NAME_LENGTH_MAX ? undefined : await storage.get(request.namespace, name);
    const isListed = object !== undefined && matches(descriptor, object, request.labels, request.fields);
    return { items: isListed ? [object] : [], resourceVersion, continueToken: '' };
  }
  const nodeName = request.fields.exact('spec.nodeName');
  const items: KubeObject[] = [];
  let characters = 0;
  const charactersMax = request.charactersMax ?? Number.POSITIVE_INFINITY;
  let after = token?.after;
  let wanted = request.limit === 0 ? STORE_PAGE_ITEMS : Math.min(STORE_PAGE_ITEMS, request.limit);
  for (let page = 0; page < STORE_PAGES_MAX; page += 1) {
    refuseLeft(request.gone);
    const read = await storage.list({
      namespace: request.namespace,
      limit: wanted,
      ...defined({ continueAfter: after, nodeName }),
      fields: request.fields,
    });
    for (const [index, object] of read.items.entries()) {
      after = read.positions?.[index] ?? listKeyOf(object);
      if (!matches(descriptor, object, request.labels, request.fields)) continue;
      items.push(object);
      characters += read.lengths?.[index] ?? JSON.stringify(object).length;
      const hasMore = index < read.items.length - 1 || read.next !== undefined;
      if (hasMore && (items.length === request.limit || characters >= charactersMax)) {
        const atMs = token?.atMs ?? request.nowMs;
        return { items, resourceVersion, continueToken: encodeContinue({ rv: resourceVersion, after, atMs }) };
      }
    }
    if (read.next === undefined) return { items, resourceVersion, continueToken: '' };
    after = read.next;
    // Few objects match: pages of the requested size would be as many reads as there are objects.
    wanted = Math.min(STORE_PAGE_ITEMS, 2 * wanted);
  }
  throw status.internalError(`a list has more than ${STORE_PAGES_MAX} pages`);
}
