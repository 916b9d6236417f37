/** What a watch asks for and tells, however it finds out (watch.ts, lease-watch.ts). */
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import type { FieldSelector, LabelSelector } from '../../kube/selectors.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import { parseUint64 } from '../../kube/whole-number.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ChangeLog } from '../../store/change-log.ts';
import type { Shape } from '../request/shape.ts';
import type { ResourceStorage } from '../storage/storage.ts';
import { matches } from '../verbs/list.ts';

/** Items of the state read at a time. */
const STATE_PAGE_ITEMS = 500;
const STATE_PAGES_MAX = 200_000;

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubeObject; readonly fromState: boolean }
  /** Everything up to this version was told. */
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string; readonly endsState: boolean };

export interface WatchRequest {
  readonly descriptor: ResourceDescriptor;
  readonly namespace: string;
  readonly labels: LabelSelector;
  readonly fields: FieldSelector;
  /** Absent or '0': the state first, then its changes. */
  readonly resourceVersion: string;
}

/** A watch as a client asked for it. */
export interface WatchCall extends WatchRequest {
  readonly shape: Shape;
  /** As asked; undefined when not. Seconds. */
  readonly timeoutSeconds: number | undefined;
  readonly bookmarks: boolean;
  /** Tell the state, say that it ends, go on. */
  readonly sendInitialEvents: boolean;
}

export interface WatchSource {
  readonly storage: ResourceStorage;
  readonly changes: ChangeLog;
  readonly clock: Clock;
  /** Waits; resolves early when the watch is ended from outside. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
}

/** A resourceVersion as a client sends it; undefined: start with the state. */
export function startOf(resourceVersion: string): number | undefined {
  if (resourceVersion === '' || resourceVersion === '0') return undefined;
  const parsed = parseUint64(resourceVersion);
  if (parsed.kind === 'malformed') {
    throw status.badRequest(`resourceVersion: Invalid value: ${JSON.stringify(resourceVersion)}: ${parsed.message}`);
  }
  return parsed.value;
}

/** The state a watch from nothing starts with. */
export async function* stateOf(storage: ResourceStorage, request: WatchRequest): AsyncGenerator<KubeObject> {
  const nodeName = request.fields.exact('spec.nodeName');
  let after: string | undefined;
  for (let page = 0; page < STATE_PAGES_MAX; page += 1) {
    const read = await storage.list({
      namespace: request.namespace,
      limit: STATE_PAGE_ITEMS,
      ...(after === undefined ? {} : { continueAfter: after }),
      ...(nodeName === undefined ? {} : { nodeName }),
      fields: request.fields,
    });
    for (const object of read.items) {
      if (matches(request.descriptor, object, request.labels, request.fields)) yield object;
    }
    if (read.next === undefined) return;
    after = read.next;
  }
}
