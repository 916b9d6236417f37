/**
 * A watch of leases that stand in no change log, because a beat is one small write and a log entry would double it: the
 * leases are read again and again within the connection, and what differs is told.
 *
 * What a resuming watch can know: every lease written after the version it names is told again, those deleted between two
 * connections are not. Whoever must see deletions lists. A version handed out lags behind the reading, since writers'
 * clocks may: a beat may be told twice, never left out.
 */
import * as status from '../../kube/status.ts';
import { parseTimeMs } from '../../kube/time.ts';
import type { KubeObject } from '../../kube/types.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../store/layout.ts';
import { listKeyOf } from '../storage/storage.ts';
import { matches } from '../verbs/list.ts';
import { startOf, stateOf, type WatchEvent, type WatchRequest, type WatchSource } from './watch-request.ts';

/** Between two readings of one lease, and of all of them. Milliseconds: reading 10,000 leases takes 3 MB. */
const READ_ONE_MS = 1_000;
const READ_ALL_MS = 5_000;
/** How far the clocks of two writers may be apart. Milliseconds. */
const CLOCK_SKEW_MS = 2_000;

const versionOf = (lease: KubeObject): number => Number(lease.metadata.resourceVersion ?? 0);

/** Creation as a version; a whole second, so one that was created within the second counts as old. */
const createdAt = (lease: KubeObject): number =>
  (parseTimeMs(lease.metadata.creationTimestamp) ?? 0) * RESOURCE_VERSIONS_PER_MS;

export async function* watchByReading(
  source: WatchSource,
  request: WatchRequest,
  deadlineMs: number,
): AsyncGenerator<WatchEvent> {
  const { clock, pause } = source;
  const onlyName = request.fields.exact('metadata.name');
  const onlyOne = onlyName !== undefined && request.namespace !== '';
  const refusal = source.storage.refusesWatch?.(request.fields);
  if (refusal !== undefined) throw status.badRequest(refusal);
  // What never changes is not seen entering or leaving a selector: only what it selects is read.
  const everything =
    source.storage.refusesWatch === undefined ? { ...request, labels: ALL, fields: ALL_FIELDS } : request;
  const read = async (): Promise<Map<string, KubeObject>> => {
    const leases = new Map<string, KubeObject>();
    if (onlyOne) {
      const lease = await source.storage.get(request.namespace, onlyName);
      if (lease !== undefined) leases.set(listKeyOf(lease), lease);
    } else {
      for await (const lease of stateOf(source.storage, everything)) leases.set(listKeyOf(lease), lease);
    }
    return leases;
  };
  const shows = (lease: KubeObject): boolean => matches(request.descriptor, lease, request.labels, request.fields);

  let after = startOf(request.resourceVersion);
  let readAtMs = clock.nowMs();
  let known = await read();
  const fromState = after === undefined;
  for (const lease of known.values()) {
    if (!shows(lease) || (after !== undefined && versionOf(lease) <= after)) continue;
    const isNew = after === undefined || createdAt(lease) > after;
    yield { type: isNew ? 'ADDED' : 'MODIFIED', object: lease, fromState };
  }
  for (;;) {
    after = Math.max(after ?? 0, (readAtMs - CLOCK_SKEW_MS) * RESOURCE_VERSIONS_PER_MS);
    yield { type: 'BOOKMARK', resourceVersion: String(after), endsState: fromState };
    const leftMs = deadlineMs - clock.nowMs();
    if (leftMs <= 0) return;
    await pause(Math.min(leftMs, onlyOne ? READ_ONE_MS : READ_ALL_MS));
    readAtMs = clock.nowMs();
    const now = await read();
    for (const [key, lease] of now) {
      const before = known.get(key);
      const event = before === undefined ? appeared(lease, shows) : changed(lease, before, shows);
      if (event !== undefined) yield event;
    }
    for (const [key, lease] of known) {
      if (now.has(key) || !shows(lease)) continue;
      const metadata = { ...lease.metadata, resourceVersion: String(readAtMs * RESOURCE_VERSIONS_PER_MS) };
      yield { type: 'DELETED', object: { ...lease, metadata }, fromState: false };
    }
    known = now;
  }
}

const ALL: WatchRequest['labels'] = { kind: 'parsed', requirements: [], matches: () => true };
const ALL_FIELDS: WatchRequest['fields'] = {
  kind: 'parsed',
  requirements: [],
  matches: () => true,
  exact: () => undefined,
};

const appeared = (lease: KubeObject, shows: (lease: KubeObject) => boolean): WatchEvent | undefined =>
  shows(lease) ? { type: 'ADDED', object: lease, fromState: false } : undefined;

function changed(lease: KubeObject, before: KubeObject, shows: (lease: KubeObject) => boolean): WatchEvent | undefined {
  if (lease.metadata.uid === before.metadata.uid && versionOf(lease) === versionOf(before)) return undefined;
  if (shows(lease)) return { type: shows(before) ? 'MODIFIED' : 'ADDED', object: lease, fromState: false };
  return shows(before) ? { type: 'DELETED', object: lease, fromState: false } : undefined;
}
