/**
 * Watches: the changes of a resource after a resourceVersion, through a selector, as events.
 *
 * One generator serves both ways out: held open by the streaming function, or as a long poll on the HTTP API, which
 * ends at the first news. That none is lost is the change log's business (decision 0002); here it is turned into what
 * one client may see. An object that leaves the selector is DELETED to it, one that enters is ADDED.
 *
 * Kubernetes: "API concepts", efficient detection of changes, watch bookmarks, streaming lists.
 */
import type { ResourceDescriptor } from '../../kube/resources/descriptor.ts';
import type { FieldSelector, LabelSelector } from '../../kube/selectors.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ChangeLog } from '../../store/change-log.ts';
import type { ObjectChange, Selectable } from '../../store/object-record.ts';
import { matches } from './list.ts';
import type { ResourceStorage } from './storage.ts';

/** Time between two looks at the change log. Milliseconds: half of what a write may take to be seen. */
export const POLL_MS = 1_000;
/** Changes taken from the log at a time. */
const CHANGES_MAX = 500;
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
  if (!/^\d{1,16}$/.test(resourceVersion)) {
    throw status.badRequest(
      `resourceVersion: Invalid value: ${JSON.stringify(resourceVersion)}: must be a whole number`,
    );
  }
  return Number(resourceVersion);
}

/** How a change looks through a selector; undefined when it does not show. */
export function seenThrough(request: WatchRequest, change: ObjectChange): WatchEvent | undefined {
  const { descriptor, labels, fields } = request;
  const { object } = change;
  if (request.namespace !== '' && object.metadata.namespace !== request.namespace) return undefined;
  const now = matches(descriptor, object, labels, fields);
  if (change.type === 'DELETED') return now ? { type: 'DELETED', object, fromState: false } : undefined;
  if (change.type === 'ADDED') return now ? { type: 'ADDED', object, fromState: false } : undefined;
  const before = change.previous === undefined ? now : matchedBefore(request, change.previous, object);
  if (now) return { type: before ? 'MODIFIED' : 'ADDED', object, fromState: false };
  return before ? { type: 'DELETED', object, fromState: false } : undefined;
}

function matchedBefore(
  { descriptor, labels, fields }: WatchRequest,
  previous: Selectable,
  object: KubeObject,
): boolean {
  if (!labels.matches(previous.labels)) return false;
  return fields.matches((field) => previous.fields[field] ?? descriptor.selectableFields[field]?.(object) ?? '');
}

/**
 * Events without end, until the consumer stops asking or `deadlineMs` has passed. After every look at the log that told
 * something, and after the state, a BOOKMARK says how far it went; the way out decides who gets to see it.
 */
export async function* watchEvents(
  source: WatchSource,
  request: WatchRequest,
  deadlineMs: number,
): AsyncGenerator<WatchEvent> {
  const { descriptor } = request;
  let cursor = startOf(request.resourceVersion);
  if (cursor === undefined) {
    const version = await source.storage.listVersion();
    for await (const object of stateOf(source.storage, request)) yield { type: 'ADDED', object, fromState: true };
    yield { type: 'BOOKMARK', resourceVersion: version, endsState: true };
    cursor = Number(version);
  }
  while (source.clock.nowMs() < deadlineMs) {
    const outcome = await source.changes.readChanges({
      resource: descriptor.resource,
      after: cursor,
      limit: CHANGES_MAX,
    });
    if (outcome.kind === 'expired') throw status.resourceVersionTooOld(cursor, 'the last hour');
    for (const change of outcome.changes) {
      const event = seenThrough(request, change);
      if (event !== undefined) yield event;
    }
    if (outcome.through > cursor) {
      cursor = outcome.through;
      yield { type: 'BOOKMARK', resourceVersion: String(cursor), endsState: false };
    }
    if (outcome.changes.length < CHANGES_MAX) {
      await source.pause(Math.max(0, Math.min(POLL_MS, deadlineMs - source.clock.nowMs())));
    }
  }
}

async function* stateOf(storage: ResourceStorage, request: WatchRequest): AsyncGenerator<KubeObject> {
  const nodeName = request.fields.exact('spec.nodeName');
  let after: string | undefined;
  for (let page = 0; page < STATE_PAGES_MAX; page += 1) {
    const read = await storage.list({
      namespace: request.namespace,
      limit: STATE_PAGE_ITEMS,
      ...(after === undefined ? {} : { continueAfter: after }),
      ...(nodeName === undefined ? {} : { nodeName }),
    });
    for (const object of read.items) {
      if (matches(request.descriptor, object, request.labels, request.fields)) yield object;
    }
    if (read.next === undefined) return;
    after = read.next;
  }
}
