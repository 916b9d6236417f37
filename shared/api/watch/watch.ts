/**
 * Watches: the changes of a resource after a resourceVersion, through a selector, as events.
 *
 * One generator serves both ways out: held open by the streaming function, or as a long poll on the HTTP API, which
 * ends at the first news. That none is lost is the change log's business (decision 0002); here it is turned into what
 * one client may see. An object that leaves the selector is DELETED to it, one that enters is ADDED.
 *
 * Kubernetes: "API concepts", efficient detection of changes, watch bookmarks, streaming lists.
 */
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { ObjectChange, Selectable } from '../../store/object-record.ts';
import { matches } from '../verbs/list.ts';
import { watchByReading } from './lease-watch.ts';
import { startOf, stateOf, type WatchEvent, type WatchRequest, type WatchSource } from './watch-request.ts';

export type { WatchCall, WatchEvent, WatchRequest, WatchSource } from './watch-request.ts';

/** Time between two looks at the change log. Milliseconds: half of what a write may take to be seen. */
export const POLL_MS = 1_000;
/** Changes taken from the log at a time. */
const CHANGES_MAX = 500;

/** How a change looks through a selector; undefined when it does not show. */
function seenThrough(request: WatchRequest, change: ObjectChange): WatchEvent | undefined {
  const { descriptor, labels, fields } = request;
  const { object } = change;
  if (request.namespace !== '' && object.metadata.namespace !== request.namespace) return undefined;
  const now = matches(descriptor, object, labels, fields);
  if (change.type === 'DELETED') return now ? { type: 'DELETED', object, fromState: false } : undefined;
  if (change.type === 'ADDED') return now ? { type: 'ADDED', object, fromState: false } : undefined;
  const before = change.previous === undefined ? now : matchedBefore(request, change.previous, object);
  if (now) return { type: before ? 'MODIFIED' : 'ADDED', object, fromState: false };
  return before ? { type: 'DELETED', object: asItLeft(request, change), fromState: false } : undefined;
}

/** What a selector saw of an object before it left it: labels, and the text fields it names, as they were then. */
function asItLeft({ fields }: WatchRequest, { object, previous }: ObjectChange): KubeObject {
  if (previous === undefined) return object;
  const left: KubeObject = { ...object, metadata: { ...object.metadata, labels: { ...previous.labels } } };
  for (const { field } of fields.requirements) {
    const [part = '', name = '', ...deeper] = field.split('.');
    const before = previous.fields[field];
    const holder = part === 'spec' || part === 'status' ? left[part] : undefined;
    if (before === undefined || holder === undefined || deeper.length > 0) continue;
    if (typeof holder[name] === 'string') left[part] = { ...holder, [name]: before };
  }
  return left;
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
export function watchEvents(
  source: WatchSource,
  request: WatchRequest,
  deadlineMs: number,
): AsyncGenerator<WatchEvent> {
  return source.storage.readsInsteadOfLog?.(request.namespace) === true
    ? watchByReading(source, request, deadlineMs)
    : watchLog(source, request, deadlineMs);
}

async function* watchLog(source: WatchSource, request: WatchRequest, deadlineMs: number): AsyncGenerator<WatchEvent> {
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
