/**
 * Request and events of a watch, for both sources: the change log (watch-events.ts) and reads (watch-by-reading.ts).
 */

import type { Clock } from '../../clock.ts';
import { defined } from '../../defined.ts';
import type { ResourceDescriptor } from '../../kinds/descriptor.ts';
import type { KubeObject } from '../../kinds/types.ts';
import type { FieldSelector, LabelSelector } from '../../kubernetes/selectors.ts';
import * as status from '../../kubernetes/status.ts';
import { parseUint64 } from '../../kubernetes/whole-number.ts';
import type { ChangeLog } from '../../store/change-log.ts';
import { resourceVersionOf } from '../../store/object-record.ts';
import { matches, type ResourceStorage } from '../resource-storage.ts';
import type { Shape } from '../response-body.ts';

/** Objects per page of the initial state. */
const STATE_PAGE_ITEMS = 500;
const STATE_PAGES_MAX = 200_000;

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubeObject; readonly fromState: boolean }
  /** Every change up to this version was sent. */
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string; readonly endsState: boolean };

export interface WatchRequest {
  readonly descriptor: ResourceDescriptor;
  readonly namespace: string;
  readonly labels: LabelSelector;
  readonly fields: FieldSelector;
  /** '' or '0': the initial state first, then changes. */
  readonly resourceVersion: string;
  /**
   * A version that the initial state must include, from the API's redirect. Absent: the newest when the watch begins.
   */
  readonly stateVersion?: string;
}

/** A watch as the client requested it. */
export interface WatchCall extends WatchRequest {
  readonly shape: Shape;
  /** The requested time. Seconds. */
  readonly timeoutSeconds: number | undefined;
  readonly bookmarks: boolean;
  /** Send the initial state, a bookmark that ends it, then changes. */
  readonly sendInitialEvents: boolean;
}

export interface WatchSource {
  readonly storage: ResourceStorage;
  readonly changes: ChangeLog;
  readonly clock: Clock;
  /** Waits. Resolves early with `'changed'` where commits are seen, or when the watch is ended from outside. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Between two reads of the change log. Milliseconds. Absent: POLL_MS. */
  readonly pollMs?: number;
}

/** The version after which changes are sent. undefined: start with the initial state. */
export function startOf(resourceVersion: string): number | undefined {
  if (resourceVersion === '' || resourceVersion === '0') return undefined;
  const parsed = parseUint64(resourceVersion);
  if (parsed.kind === 'malformed') {
    throw status.badRequest(`resourceVersion: Invalid value: ${JSON.stringify(resourceVersion)}: ${parsed.message}`);
  }
  return parsed.value;
}

/** Whether the initial state comes first, and changes of the change log follow. */
export const beginsWithState = ({ storage }: Pick<WatchSource, 'storage'>, call: WatchCall): boolean =>
  (call.sendInitialEvents || startOf(call.resourceVersion) === undefined) &&
  storage.readsInsteadOfLog?.(call.namespace) !== true;

/** The order in which watches that began earlier saw them. */
const inWriteOrder = (objects: readonly KubeObject[]): readonly KubeObject[] =>
  objects.toSorted((one, other) => resourceVersionOf(one) - resourceVersionOf(other));

/** The objects that exist now and match the request. */
export async function* stateOf(storage: ResourceStorage, request: WatchRequest): AsyncGenerator<KubeObject> {
  const nodeName = request.fields.exact('spec.nodeName');
  const hasLog = storage.readsInsteadOfLog?.(request.namespace) !== true;
  let after: string | undefined;
  for (let page = 0; page < STATE_PAGES_MAX; page += 1) {
    const read = await storage.list({
      namespace: request.namespace,
      limit: STATE_PAGE_ITEMS,
      ...defined({ continueAfter: after, nodeName }),
      fields: request.fields,
    });
    for (const object of hasLog ? inWriteOrder(read.items) : read.items) {
      if (matches(request.descriptor, object, request.labels, request.fields)) yield object;
    }
    if (read.next === undefined) return;
    after = read.next;
  }
}
