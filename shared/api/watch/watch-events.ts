/**
 * Watches: the changes of a resource after a resourceVersion, through a selector, as events.
 *
 * One generator serves both transports: the streaming function, and the long poll of the HTTP API, which ends at the
 * first changes. The change log ensures that no change is lost (decision 0002). This file turns changes into events
 * of one client. An object that leaves the selector is DELETED for it, an object that enters is ADDED.
 *
 * Kubernetes: "API concepts", efficient detection of changes, watch bookmarks, streaming lists.
 */

import type { KubeObject } from '../../kinds/types.ts';
import * as status from '../../kubernetes/status.ts';
import type { ChangesOutcome } from '../../store/change-log.ts';
import { type ObjectChange, resourceVersionOf, type Selectable } from '../../store/object-record.ts';
import { listKeyOf, matches, type ResourceStorage } from '../resource-storage.ts';
import { watchByReading } from './watch-by-reading.ts';
import { startOf, stateOf, type WatchEvent, type WatchRequest, type WatchSource } from './watch-request.ts';

export type { WatchCall, WatchEvent, WatchRequest, WatchSource } from './watch-request.ts';

/** Time between two reads of the change log. Milliseconds. Half of the delay that a write may have until its event. */
export const POLL_MS = 1_000;
/** Changes per read of the log. */
const CHANGES_MAX = 500;

/** The name of the resource in the change log. */
export const logNameOf = ({ custom, resource }: Pick<WatchRequest['descriptor'], 'custom' | 'resource'>): string =>
  custom?.definition ?? resource;

/** The event of a change for this request. undefined: outside the selector before and after. */
function eventOf(request: WatchRequest, change: ObjectChange): WatchEvent | undefined {
  const { descriptor, labels, fields } = request;
  const { object } = change;
  if (request.namespace !== '' && object.metadata.namespace !== request.namespace) return undefined;
  const isSelected = matches(descriptor, object, labels, fields);
  if (change.type === 'DELETED') return isSelected ? { type: 'DELETED', object, fromState: false } : undefined;
  if (change.type === 'ADDED') return isSelected ? { type: 'ADDED', object, fromState: false } : undefined;
  const wasSelected = change.previous === undefined ? isSelected : matchedBefore(request, change.previous, object);
  if (isSelected) return { type: wasSelected ? 'MODIFIED' : 'ADDED', object, fromState: false };
  return wasSelected ? { type: 'DELETED', object: lastSelected(request, change), fromState: false } : undefined;
}

/** An object that left the selector, with its previous labels and the previous text fields that the selector names. */
function lastSelected({ fields }: WatchRequest, { object, previous }: ObjectChange): KubeObject {
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
 * Events until the consumer stops or `deadlineMs` has passed, in batches that are never empty: those of one read of the
 * log together, an object of the initial state alone. A BOOKMARK with the version reached follows the initial state,
 * and is the last event of every read of the log that returned changes. The transport decides which clients receive it.
 */
export function watchEvents(
  source: WatchSource,
  request: WatchRequest,
  deadlineMs: number,
): AsyncGenerator<readonly WatchEvent[]> {
  return source.storage.readsInsteadOfLog?.(request.namespace) === true
    ? watchByReading(source, request, deadlineMs)
    : watchLog(source, request, deadlineMs);
}

/**
 * The initial state is that of one version, as far as the log permits: an object created after this version is left to
 * the log, in which its creation has a place between other changes. So all watches receive changes in one order.
 * Any other object that changed after it is sent in its current state, and its changes until now are not sent.
 */
async function* watchLog(
  source: WatchSource,
  request: WatchRequest,
  deadlineMs: number,
): AsyncGenerator<readonly WatchEvent[]> {
  const resource = logNameOf(request.descriptor);
  const changesAfter = (after: number, eager = false) =>
    source.changes.readChanges({ resource, after, limit: CHANGES_MAX, eager });
  let cursor = startOf(request.resourceVersion);
  let outcome: ChangesOutcome | undefined;
  /** Objects of the state that were written after its version. The log has these writes too. */
  const sentVersions = new Map<string, number>();
  if (cursor === undefined) {
    if (request.stateVersion === undefined) await source.storage.makeInitial?.();
    const version = request.stateVersion ?? (await source.storage.listVersion());
    cursor = Number(version);
    let created: ReadonlySet<string> = new Set();
    let readThrough = cursor;
    for await (const object of stateOf(source.storage, request)) {
      const own = resourceVersionOf(object);
      if (own > readThrough) {
        // At most once per page of the state.
        outcome = await changesAfter(cursor, true);
        const changes = outcome.kind === 'expired' ? [] : outcome.changes;
        created = createdIn(changes);
        readThrough =
          changes.length < CHANGES_MAX && outcome.kind !== 'expired'
            ? Math.max(own, outcome.through)
            : Number.POSITIVE_INFINITY;
      }
      if (own > cursor) {
        if (created.has(listKeyOf(object))) continue;
        sentVersions.set(listKeyOf(object), own);
      }
      yield [{ type: 'ADDED', object, fromState: true }];
    }
    yield [{ type: 'BOOKMARK', resourceVersion: version, endsState: true }];
  }
  while (source.clock.nowMs() < deadlineMs) {
    outcome ??= await changesAfter(cursor);
    if (outcome.kind === 'expired') throw status.resourceVersionTooOld(cursor, 'the last hour');
    const { changes, through } = outcome;
    outcome = undefined;
    const events: WatchEvent[] = [];
    for (const change of changes) {
      if (sentVersions.size > 0 && isIn(sentVersions, change.object)) continue;
      const event = eventOf(request, await served(source.storage, change));
      if (event !== undefined) events.push(event);
    }
    if (through > cursor) {
      cursor = through;
      events.push({ type: 'BOOKMARK', resourceVersion: String(cursor), endsState: false });
    }
    if (events.length > 0) yield events;
    if (changes.length < CHANGES_MAX) {
      await source.pause(Math.max(0, Math.min(source.pollMs ?? POLL_MS, deadlineMs - source.clock.nowMs())));
    }
  }
}

/** The change as the storage returns its object. */
async function served({ served }: ResourceStorage, change: ObjectChange): Promise<ObjectChange> {
  return served === undefined ? change : { ...change, object: await served(change.object) };
}

/** Whether this state of the object, or a newer one, was sent. */
const isIn = (sentVersions: ReadonlyMap<string, number>, object: KubeObject): boolean =>
  resourceVersionOf(object) <= (sentVersions.get(listKeyOf(object)) ?? 0);

/** Keys of the objects that did not exist before these changes. */
function createdIn(changes: readonly ObjectChange[]): ReadonlySet<string> {
  const created = new Set<string>();
  const existed = new Set<string>();
  for (const { type, object } of changes) {
    const key = listKeyOf(object);
    if (type !== 'ADDED') existed.add(key);
    else if (!existed.has(key)) created.add(key);
  }
  return created;
}
