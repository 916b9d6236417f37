/**
 * v1 Events of the controllers.
 *
 * The name of an event follows from the object uid, the reason and, for an event that is recorded once, `once`, such as
 * the time of the transition. Recording it again, in another process or after a crash, finds the first one. Without
 * `once` a repetition increments `count` and moves `lastTimestamp`, as upstream's event correlator does. Such callers
 * must run at most once.
 *
 * For an event about a change of an object, put `eventWrite` into the same commit: both are stored, or neither.
 */

import type { WorkloadKind } from '../decisions/decision-record.ts';
import { defined } from '../defined.ts';
import { prepareEvent } from '../kinds/events/defaults.ts';
import { EVENTS } from '../kinds/events/resource.ts';
import { shardsOf } from '../kinds/resources.ts';
import { expirySeconds } from '../kinds/stored-resource.ts';
import type { KubeEvent, KubeObject, ObjectRef } from '../kinds/types.ts';
import { NAME_LENGTH_MAX } from '../kubernetes/kubernetes.ts';
import { formatTime } from '../kubernetes/time.ts';
import { StoreFault } from '../store/item-store.ts';
import { objectSortKey, shardOf } from '../store/layout.ts';
import type { ObjectWrite } from '../store/object-store.ts';
import { groupedBy, inParts, UNBOUNDED, workInHalves } from '../ticks/bounded-work.ts';
import type { WorkDependencies } from '../ticks/dependencies.ts';
import { isRetryable } from '../ticks/item-change.ts';
import type { EventText } from './event-text.ts';

/** Namespace of events about cluster-scoped objects. */
const CLUSTER_NAMESPACE = 'default';
/** Events in one commit: 2 actions each while texts are stored plain, else 1, and a head and a log item per shard. */
const EVENTS_PER_COMMIT_MAX = 48;
/** Attempts per commit, beyond one for each event that exists already. */
const COMMIT_ATTEMPTS_MAX = 6;
/** Names tried until one lies in the wanted shard. With 4 shards the probability that none does is 0.75^64. */
const NAMES_MAX = 64;

export interface EventSubject {
  readonly kind: SubjectKind;
  /** '' for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

type SubjectKind = 'Node' | 'Pod' | 'Namespace' | 'VolumeAttachment' | 'PodDisruptionBudget' | WorkloadKind;

/** An object of any kind. */
type AnySubject = Omit<EventSubject, 'kind'> & { readonly kind: string; readonly apiVersion: string };

export interface PendingEvent extends EventText {
  readonly about: EventSubject | AnySubject;
  /** Distinguishes occurrences of the same reason on the same object. Each occurrence is recorded once. */
  readonly once?: string | number;
  /** Distinguishes series of the same reason on the same object, such as by message. Repetitions are counted. */
  readonly series?: string;
  /** What the component did, as in events.k8s.io, such as `Binding`. */
  readonly action?: string;
}

const API_VERSIONS: Readonly<Partial<Record<SubjectKind, string>>> = {
  VolumeAttachment: 'storage.k8s.io/v1',
  ReplicaSet: 'apps/v1',
  Deployment: 'apps/v1',
  Job: 'batch/v1',
  CronJob: 'batch/v1',
  PodDisruptionBudget: 'policy/v1',
  DaemonSet: 'apps/v1',
  StatefulSet: 'apps/v1',
};

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
  const identity = [
    event.about.uid,
    event.reason,
    event.once ?? event.series ?? '',
    ...(nonce === 0 ? [] : [nonce]),
  ].join('|');
  // Two hashes with different prefixes: 64 bits.
  const suffix = `${hex32(identity)}${hex32(`2|${identity}`)}`;
  const subject = event.about.name.slice(0, NAME_LENGTH_MAX - suffix.length - 1).replace(/[.-]+$/, '');
  return `${subject}.${suffix}`;
}

/** The reference of the event. With a wanted shard, its name is the first candidate in that shard. */
function eventRef(event: PendingEvent, wantedShard?: number): ObjectRef {
  const namespace = namespaceOf(event);
  const { resource } = EVENTS;
  const shards = shardsOf(resource);
  for (let nonce = 0; nonce < NAMES_MAX; nonce += 1) {
    const name = nameOf(event, nonce);
    if (wantedShard === undefined || shardOf(objectSortKey(namespace, name), shards) === wantedShard % shards) {
      return { resource, namespace, name };
    }
  }
  return { resource, namespace, name: nameOf(event, 0) };
}

const expiryOf = (nowMs: number) => defined({ expiresAtSeconds: expirySeconds(EVENTS, nowMs) });

/** The event as an object to create, for the caller's commit. */
export function eventWrite(
  event: PendingEvent,
  at: { readonly nowMs: number; readonly eventUid: string; readonly wantedShard?: number },
): ObjectWrite {
  const ref = eventRef(event, at.wantedShard);
  const now = formatTime(at.nowMs);
  const { about } = event;
  const object = prepareEvent.prepareForCreate(
    {
      metadata: { name: ref.name, namespace: ref.namespace, uid: at.eventUid, creationTimestamp: now },
      involvedObject: {
        kind: about.kind,
        namespace: about.namespace,
        name: about.name,
        uid: about.uid,
        apiVersion: 'apiVersion' in about ? about.apiVersion : (API_VERSIONS[about.kind] ?? 'v1'),
      },
      reason: event.reason,
      ...defined({ action: event.action }),
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
  return { kind: 'create', ref, object, ...expiryOf(at.nowMs) };
}

function repetition(write: ObjectWrite, previous: KubeEvent, nowMs: number): ObjectWrite {
  const { count } = previous;
  return {
    kind: 'update',
    ref: write.ref,
    object: {
      ...previous,
      lastTimestamp: formatTime(nowMs),
      count: (typeof count === 'number' && count > 0 ? count : 1) + 1,
    },
    previous,
    ...expiryOf(nowMs),
  };
}

type Dependencies = Pick<WorkDependencies, 'objects' | 'random'>;

/**
 * Records events, many in one commit. With `wantedShard` all of them are in one shard, so their commits raise one head;
 * a repetition must name the same shard.
 *
 * @throws StoreFault when other commits kept conflicting; a retry is safe.
 */
export async function recordEvents(
  dependencies: Dependencies,
  pending: readonly PendingEvent[],
  nowMs: number,
  { wantedShard }: { readonly wantedShard?: number } = {},
): Promise<void> {
  const byName = new Map(
    pending.map((event) => {
      const eventUid = dependencies.random.uuid();
      const write = eventWrite(event, { nowMs, eventUid, ...defined({ wantedShard }) });
      return [objectSortKey(write.ref.namespace, write.ref.name), { event, write }] as const;
    }),
  );
  // Many events are committed shard by shard: commits that run at once then use different shard heads.
  const shards = EVENTS.shards;
  const lanes =
    byName.size <= EVENTS_PER_COMMIT_MAX
      ? [[...byName.values()]]
      : [...groupedBy([...byName.entries()], ([name]) => shardOf(name, shards)).values()].map((lane) =>
          lane.map(([, each]) => each),
        );
  const faults: unknown[] = [];
  await Promise.all(
    lanes.map(async (lane) => {
      for (const part of inParts(lane, EVENTS_PER_COMMIT_MAX)) {
        const outcome = await workInHalves(part, UNBOUNDED, async (some) => {
          try {
            await commitEvents(dependencies, some, nowMs);
          } catch (fault) {
            // Splitting helps when one event can never be stored, not when the table rejects every write.
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
    // One event exists already, so others may exist too: read all of them.
    const stored = await objects.getMany(waiting.map(({ write }) => write.ref));
    waiting = waiting.flatMap(({ event, write }, index) => {
      const previous = stored[index];
      if (previous === undefined) return [{ event, write: createOf(write) }];
      return event.once === undefined ? [{ event, write: repetition(write, previous, nowMs) }] : [];
    });
  }
  if (waiting.length > 0) {
    throw new StoreFault('throttled', 'events could not be stored: other commits kept conflicting', {
      retryable: true,
    });
  }

  function createOf(write: ObjectWrite): ObjectWrite {
    if (write.kind === 'create') return write;
    const first = part.find((each) => each.write.ref.name === write.ref.name);
    return first?.write ?? write;
  }
}
