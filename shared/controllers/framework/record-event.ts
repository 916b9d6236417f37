/**
 * v1 Events of the controllers.
 *
 * An event has a name that follows from what it tells: object uid, reason and, where it must be told once, an ordinal such
 * as the time of the transition. Telling it again, from another process or after a crash, meets the first telling. Without
 * an ordinal a repetition counts up `count` and moves `lastTimestamp`, as upstream's event correlator does; that is for
 * callers who themselves run at most once.
 *
 * Where an event belongs to a change of an object, put `eventWrite` into that very commit: then neither is there alone.
 */

import { events as eventsResource } from '../../api/kinds/registry.ts';
import { shardsOf } from '../../api/storage/cluster-objects.ts';
import type { EventText } from '../../domain/events/event-text.ts';
import { formatTime } from '../../kube/time.ts';
import type { KubeObject, ObjectRef } from '../../kube/types.ts';
import { StoreFault } from '../../ports/item-store.ts';
import { objectSortKey, shardOf } from '../../store/layout.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { groupedBy, inParts, UNBOUNDED, workInHalves } from './bounded-work.ts';
import type { ControllerDependencies } from './dependencies.ts';
import { isRetryable } from './item-change.ts';

/** Kept this long after it was last told. Seconds; upstream's --event-ttl. */
export const EVENT_TTL_SECONDS = 3_600;
/** Namespace of events about objects that have none. */
const CLUSTER_NAMESPACE = 'default';
const NAME_LENGTH_MAX = 253;
/** Events in one commit: 2 actions each and a head for each of their shards. */
const EVENTS_A_COMMIT_MAX = 25;
/** Tries at one commit beyond one for each event that turns out to be there already. */
const COMMIT_ATTEMPTS_MAX = 6;
/** Names tried until one lies in the wanted shard; at 4 shards the chance to miss is 0.75^64. */
const NAMES_MAX = 64;

export interface EventSubject {
  readonly kind: 'Node' | 'Pod' | 'Namespace' | 'VolumeAttachment';
  /** '' for what has none. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface PendingEvent extends EventText {
  readonly about: EventSubject;
  /** Tells apart two tellings of the same reason about the same object; with it, each is told once. */
  readonly once?: string | number;
}

export const subjectOf = (kind: EventSubject['kind'], object: KubeObject): EventSubject => ({
  kind,
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name ?? '',
  uid: object.metadata.uid ?? '',
});

const hex32 = (text: string): string =>
  shardOf(text, 2 ** 32)
    .toString(16)
    .padStart(8, '0');

const namespaceOf = ({ about }: PendingEvent): string => (about.namespace === '' ? CLUSTER_NAMESPACE : about.namespace);

function nameOf(event: PendingEvent, nonce: number): string {
  const told = [event.about.uid, event.reason, event.once ?? '', ...(nonce === 0 ? [] : [nonce])].join('|');
  // Two hashes from two beginnings: 64 bits.
  const suffix = `${hex32(told)}${hex32(`2|${told}`)}`;
  const subject = event.about.name.slice(0, NAME_LENGTH_MAX - suffix.length - 1).replace(/[.-]+$/, '');
  return `${subject}.${suffix}`;
}

/** Where the event lies. With a wanted shard its name is the first of its names that lies there. */
function eventRef(event: PendingEvent, wantedShard?: number): ObjectRef {
  const namespace = namespaceOf(event);
  const { resource } = eventsResource;
  const shards = shardsOf(resource);
  for (let nonce = 0; nonce < NAMES_MAX; nonce += 1) {
    const name = nameOf(event, nonce);
    if (wantedShard === undefined || shardOf(objectSortKey(namespace, name), shards) === wantedShard % shards) {
      return { resource, namespace, name };
    }
  }
  return { resource, namespace, name: nameOf(event, 0) };
}

const expiryOf = (nowMs: number): number => Math.ceil(nowMs / 1_000) + EVENT_TTL_SECONDS;

/** The event as an object to create, for somebody else's commit. */
export function eventWrite(
  event: PendingEvent,
  at: { readonly nowMs: number; readonly eventUid: string; readonly wantedShard?: number },
): ObjectWrite {
  const ref = eventRef(event, at.wantedShard);
  const now = formatTime(at.nowMs);
  const { about } = event;
  const object = eventsResource.prepareForCreate(
    {
      metadata: { name: ref.name, namespace: ref.namespace, uid: at.eventUid, creationTimestamp: now },
      involvedObject: {
        kind: about.kind,
        namespace: about.namespace,
        name: about.name,
        uid: about.uid,
        apiVersion: about.kind === 'VolumeAttachment' ? 'storage.k8s.io/v1' : 'v1',
      },
      reason: event.reason,
      message: event.message,
      source: { component: event.source },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
      type: event.type,
      reportingComponent: event.source,
      reportingInstance: '',
    },
    { nowMs: at.nowMs },
  );
  return { kind: 'create', ref, object, expiresAtSeconds: expiryOf(at.nowMs) };
}

function toldAgain(write: ObjectWrite, previous: KubeObject, nowMs: number): ObjectWrite {
  const count = previous['count'];
  return {
    kind: 'update',
    ref: write.ref,
    object: {
      ...previous,
      lastTimestamp: formatTime(nowMs),
      count: (typeof count === 'number' && count > 0 ? count : 1) + 1,
    },
    previous,
    expiresAtSeconds: expiryOf(nowMs),
  };
}

type Dependencies = Pick<ControllerDependencies, 'objects' | 'random'>;

/** Tells events, many in one commit. @throws StoreFault when other commits stayed in the way; telling again is safe. */
export async function recordEvents(
  dependencies: Dependencies,
  toTell: readonly PendingEvent[],
  nowMs: number,
): Promise<void> {
  const byName = new Map(
    toTell.map((event) => {
      const write = eventWrite(event, { nowMs, eventUid: dependencies.random.uuid() });
      return [objectSortKey(write.ref.namespace, write.ref.name), { event, write }] as const;
    }),
  );
  // Shard by shard when there are many, so that commits at the same time do not meet on the shards' heads.
  const shards = shardsOf(eventsResource.resource);
  const lanes =
    byName.size <= EVENTS_A_COMMIT_MAX
      ? [[...byName.values()]]
      : [...groupedBy([...byName.entries()], ([name]) => shardOf(name, shards)).values()].map((lane) =>
          lane.map(([, each]) => each),
        );
  const faults: unknown[] = [];
  await Promise.all(
    lanes.map(async (lane) => {
      for (const part of inParts(lane, EVENTS_A_COMMIT_MAX)) {
        const outcome = await workInHalves(part, UNBOUNDED, async (some) => {
          try {
            await commitEvents(dependencies, some, nowMs);
          } catch (fault) {
            // Halves help where one event can never be stored, not where the table takes none.
            if (!isRetryable(fault)) throw fault;
            faults.push(fault);
          }
          return 'done';
        });
        faults.push(...outcome.faults);
      }
    }),
  );
  if (faults.length === 1) throw faults[0];
  if (faults.length > 1) throw new AggregateError(faults, `${faults.length} events could not be stored`);
}

async function commitEvents(
  { objects }: Dependencies,
  part: readonly { readonly event: PendingEvent; readonly write: ObjectWrite }[],
  nowMs: number,
): Promise<void> {
  let waiting = [...part];
  for (let attempt = 1; attempt <= COMMIT_ATTEMPTS_MAX; attempt += 1) {
    if (waiting.length === 0) return;
    const outcome = await objects.commit({ writes: waiting.map(({ write }) => write) });
    if (outcome.kind === 'committed') return;
    if (outcome.kind === 'tooLarge' || outcome.kind === 'overfull') {
      throw new StoreFault('too-large', 'an event is larger than an item may be', { retryable: false });
    }
    if (outcome.kind !== 'conflict') continue;
    // One is there already, so others may be: look at all of them once.
    const stored = await objects.getMany(waiting.map(({ write }) => write.ref));
    waiting = waiting.flatMap(({ event, write }, index) => {
      const previous = stored[index];
      if (previous === undefined) return [{ event, write: createOf(write) }];
      return event.once === undefined ? [{ event, write: toldAgain(write, previous, nowMs) }] : [];
    });
  }
  if (waiting.length > 0) {
    throw new StoreFault('throttled', 'events could not be stored for other commits', { retryable: true });
  }

  function createOf(write: ObjectWrite): ObjectWrite {
    if (write.kind === 'create') return write;
    const first = part.find((each) => each.write.ref.name === write.ref.name);
    return first?.write ?? write;
  }
}
