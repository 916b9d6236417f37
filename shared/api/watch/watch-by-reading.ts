/**
 * A watch of objects that have no change log, such as the leases of nodes. A log entry would double the cost of a beat.
 * The objects are read again and again during the connection, and the differences become events.
 *
 * A resuming watch gets every object written after its resourceVersion. It does not get objects that were deleted
 * between two connections: a client that needs deletions must list. A returned resourceVersion lags behind the read,
 * because the clocks of writers may lag. So a beat may be sent twice, but is never left out.
 */

import type { KubeObject } from '../../kinds/types.ts';
import * as status from '../../kubernetes/status.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../store/layout.ts';
import { listKeyOf, matches } from '../resource-storage.ts';
import { startOf, stateOf, type WatchEvent, type WatchRequest, type WatchSource } from './watch-request.ts';

/** Between two reads of one object, and of all. Milliseconds. A read of 10,000 leases transfers 3 MB. */
const READ_ONE_MS = 1_000;
const READ_ALL_MS = 5_000;
/** Largest difference between the clocks of two writers. Milliseconds. */
const CLOCK_SKEW_MS = 2_000;

const versionOf = ({ metadata }: KubeObject): number => Number(metadata.resourceVersion ?? 0);

/**
 * Creation time as a resourceVersion. It has whole seconds, so an object created within the same second counts as old.
 */
const createdAt = ({ metadata }: KubeObject): number =>
  (parseTimeMs(metadata.creationTimestamp) ?? 0) * RESOURCE_VERSIONS_PER_MS;

type Objects = ReadonlyMap<string, KubeObject>;
type Matches = (object: KubeObject) => boolean;

export async function* watchByReading(
  source: WatchSource,
  request: WatchRequest,
  deadlineMs: number,
): AsyncGenerator<readonly WatchEvent[]> {
  const { clock } = source;
  const refusal = source.storage.refusesWatch?.(request.fields);
  if (refusal !== undefined) throw status.badRequest(refusal);
  const { read, periodMs } = readerOf(source, request);
  const isSelected: Matches = (object) => matches(request.descriptor, object, request.labels, request.fields);

  let after = startOf(request.resourceVersion);
  let readAtMs = clock.nowMs();
  let known = await read();
  const fromState = after === undefined;
  for (const object of known.values()) {
    if (!isSelected(object) || (after !== undefined && versionOf(object) <= after)) continue;
    const isNew = after === undefined || createdAt(object) > after;
    yield [{ type: isNew ? 'ADDED' : 'MODIFIED', object, fromState }];
  }
  for (;;) {
    after = Math.max(after ?? 0, (readAtMs - CLOCK_SKEW_MS) * RESOURCE_VERSIONS_PER_MS);
    yield [{ type: 'BOOKMARK', resourceVersion: String(after), endsState: fromState }];
    const leftMs = deadlineMs - clock.nowMs();
    if (leftMs <= 0) return;
    await wholePause(source, Math.min(leftMs, periodMs));
    readAtMs = clock.nowMs();
    const current = await read();
    const changed = [...differences(known, current, isSelected, readAtMs)];
    if (changed.length > 0) yield changed;
    known = current;
  }
}

/** A change of the log ends a pause early, and may be of other objects. A clock that was set back ends it, too. */
async function wholePause({ clock, pause }: WatchSource, milliseconds: number): Promise<void> {
  const startMs = clock.nowMs();
  for (let pausedMs = 0; pausedMs >= 0 && pausedMs < milliseconds; pausedMs = clock.nowMs() - startMs) {
    await pause(milliseconds - pausedMs);
  }
}

interface Reader {
  readonly read: () => Promise<Objects>;
  readonly periodMs: number;
}

/** Reads one object where the selector names one, else all of the namespace. */
function readerOf(source: WatchSource, request: WatchRequest): Reader {
  const { storage } = source;
  const name = request.namespace === '' ? undefined : request.fields.exact('metadata.name');
  if (name !== undefined) {
    const readOne = async (): Promise<Objects> => {
      const object = await storage.get(request.namespace, name);
      return new Map(object === undefined ? [] : [[listKeyOf(object), object]]);
    };
    return { read: readOne, periodMs: READ_ONE_MS };
  }
  // An immutable object never enters or leaves a selector, so only the selected ones are read.
  const isImmutable = storage.refusesWatch !== undefined;
  const wanted = isImmutable ? request : { ...request, labels: ALL, fields: ALL_FIELDS };
  const readAll = async (): Promise<Objects> => {
    const objects = new Map<string, KubeObject>();
    for await (const object of stateOf(storage, wanted)) objects.set(listKeyOf(object), object);
    return objects;
  };
  return { read: readAll, periodMs: READ_ALL_MS };
}

function* differences(known: Objects, current: Objects, isSelected: Matches, nowMs: number): Generator<WatchEvent> {
  for (const [key, object] of current) {
    const event = changeOf(object, known.get(key), isSelected);
    if (event !== undefined) yield event;
  }
  for (const [key, object] of known) {
    if (current.has(key) || !isSelected(object)) continue;
    const metadata = { ...object.metadata, resourceVersion: String(nowMs * RESOURCE_VERSIONS_PER_MS) };
    yield { type: 'DELETED', object: { ...object, metadata }, fromState: false };
  }
}

const ALL: WatchRequest['labels'] = { kind: 'parsed', requirements: [], matches: () => true };
const ALL_FIELDS: WatchRequest['fields'] = {
  kind: 'parsed',
  requirements: [],
  matches: () => true,
  exact: () => undefined,
};

/** undefined: not changed, or outside the selector before and after. */
function changeOf(object: KubeObject, before: KubeObject | undefined, isSelected: Matches): WatchEvent | undefined {
  const wasSelected = before !== undefined && isSelected(before);
  if (before !== undefined && before.metadata.uid === object.metadata.uid && versionOf(before) === versionOf(object)) {
    return undefined;
  }
  if (isSelected(object)) return { type: wasSelected ? 'MODIFIED' : 'ADDED', object, fromState: false };
  return wasSelected ? { type: 'DELETED', object, fromState: false } : undefined;
}
