/**
 * The row of a node in the `health` table: its Lease and the digest of its Node. They share one item: a beat is one
 * write, and a tick one scan. Attribute names have one letter: a beat is billed by the size of the row (at most 1 KB,
 * one write unit), a tick by the sum of all rows.
 *
 * A row has a lease if it has LEASE.version, and a digest if it has DIGEST.uid. It may have only one of them.
 */
import type { ConditionStatus } from '../../kubernetes/kubernetes.ts';
import {
  type Attribute,
  any,
  bytes,
  flag,
  isIn,
  mapped,
  namesOf,
  number,
  present,
  type RowValues,
  readRow,
  text,
} from '../../store/attributes.ts';
import type { Condition, Item } from '../../store/item-store.ts';
import type { HeartbeatTimes } from './heartbeat-times.ts';

/** The Lease (shared/kinds/leases/lease-record.ts). */
export const LEASE = {
  version: present(number('v')),
  uid: present(text('i')),
  createdAtSeconds: present(number('c')),
  renewedAtMicros: number('t'),
  durationSeconds: number('d'),
  acquiredAtMicros: number('a'),
  transitions: number('n'),
  /** Absent: the node's name. '' for none. */
  holder: text('h'),
  /** Its only owner is the Node with the uid of the digest. */
  ownedByNode: flag('o'),
  /** JSON of all other fields. */
  extras: text('x'),
  /** What the machine used (shared/fleet/nodes/node-usage.ts). */
  usage: text('U'),
};

const READY_CODES = { True: 'T', False: 'F', Unknown: 'U' } as const;
const READY_OF: Readonly<Record<string, ConditionStatus>> = { T: 'True', F: 'False', U: 'Unknown' };

const NOT_READY = 1;
const UNREACHABLE = 2;

/** Positive: the promised end of a planned silence. Otherwise when it ended early or was removed. Seconds. */
const promise = number('S');

/** Server receipt time of the last renewal of the Lease. */
export const RECEIVED_AT_MS = number('r');
const createdAt = number('b');

const podsToMark: Attribute<boolean | undefined> = flag('w');

/** The digest of a Node and its marks. A tick reads all of it. */
export const DIGEST = {
  /** uid of the Node. A re-created Node gets a new digest (D2). */
  uid: present(text('u')),
  /** Zone key, see zone.ts; '' for nodes without zone and region labels. */
  zone: mapped(text('z'), { read: (zone = '') => zone, write: (zone: string) => (zone === '' ? undefined : zone) }),
  /** Stored status of the Ready condition; absent when the Node has none. */
  ready: mapped(text('y'), {
    read: (code = ''): ConditionStatus | undefined => READY_OF[code],
    write: (ready) => (ready === undefined ? undefined : READY_CODES[ready]),
  }),
  /** Whether the Node has the label node.kubernetes.io/exclude-disruption. */
  excluded: flag('e'),
  /** Its next heartbeat needs processing: the node is not Ready, or carries taints of ours. */
  suspect: flag('s'),
  /** Which of our two NoExecute taints the stored Node has. */
  noExecute: mapped(number('k'), {
    read: (code = 0) => ({ notReady: (code & NOT_READY) !== 0, unreachable: (code & UNREACHABLE) !== 0 }),
    write: ({ notReady, unreachable }) => (notReady ? NOT_READY : 0) + (unreachable ? UNREACHABLE : 0) || undefined,
  }),
  /** Creation of the Node, server time. */
  createdAtMs: present(createdAt),
  /**
   * Server receipt time of the last renewal since the Node was created. An earlier one belongs to another Node (D2).
   */
  renewedAtMs: {
    ...RECEIVED_AT_MS,
    of(row: Item) {
      const atMs = RECEIVED_AT_MS.of(row);
      return atMs !== undefined && atMs >= (createdAt.of(row) ?? 0) ? atMs : undefined;
    },
  },
  /** Server receipt time of the last status post; absent when none was received. */
  statusAtMs: number('l'),
  /**
   * When node-monitor marked the node Unknown; removed by the next status post. A node that has sent a heartbeat since,
   * but no status yet, is not tainted.
   */
  markedAtMs: number('m'),
  /** Pods of this node are still to be marked not ready, because writing some of them failed after the mark. */
  podsToMark,
  /** Name of the profile; absent: `default`. A name that the policy no longer has means `default`, too. */
  profile: text('P'),
  /** When the profile last changed, server time; absent: never since the Node was created. */
  profileChangedAtMs: mapped(number('C'), {
    read: (seconds): number | undefined => (seconds === undefined ? undefined : seconds * 1_000),
    write: (atMs) => (atMs === undefined ? undefined : Math.floor(atMs / 1_000)),
  }),
  /** Promised end of its planned silence; absent without a promise. It may be over. */
  plannedUntilMs: mapped(promise, {
    read: (seconds): number | undefined => (seconds !== undefined && seconds > 0 ? seconds * 1_000 : undefined),
    write: (untilMs) => (untilMs === undefined ? undefined : Math.ceil(untilMs / 1_000)),
  }),
  /** When its last promise ended early or was removed, server time: silence before it does not count. */
  silenceEndedAtMs: mapped(promise, {
    read: (seconds): number | undefined => (seconds !== undefined && seconds <= 0 ? -seconds * 1_000 : undefined),
    write: (atMs) => (atMs === undefined ? undefined : -Math.ceil(atMs / 1_000)),
  }),
  /** Duration that the machine wrote into its Lease. Seconds. Shown in an event, and never decided on. */
  leaseDurationSeconds: LEASE.durationSeconds,
  /** Its last marks, packed (shared/fleet/silences/flapping.ts); absent: it was never marked. */
  flaps: bytes('F'),
};

/**
 * Conditions stored with the first lastHeartbeatTime are shown with the second (shared/fleet/nodes/heartbeat-times.ts).
 */
export const HEARTBEAT_TIMES = { fromSeconds: number('f'), toSeconds: number('g') };

/** Reported in the response to a beat. */
export const COUNTERS = {
  /** Changes whenever pods of the node change: bound, changed, removed. Absent before the first change. */
  podsVersion: number('p'),
  /** Changes whenever a log of the node's pods is requested (log-request-store.ts). Absent before the first request. */
  logsVersion: number('j'),
  /** Changes whenever its agent has to make or remove a volume (volume-work-store.ts). Absent before the first time. */
  volumesVersion: number('q'),
  /** Changes whenever Services may have changed for its agent (service-readers.ts). Absent before the first time. */
  servicesVersion: number('E'),
};

const NODE_HEALTH = { nodeName: present(text('sk')), ...DIGEST };

/**
 * The digest of a node: one small item per node beside its Lease. A tick reads only digests; it reads a Node object
 * only when it changes it.
 */
export type NodeHealth = RowValues<typeof NODE_HEALTH>;

export const hasLease = isIn(LEASE.version);
export const hasDigest = isIn(DIGEST.uid);

export const holdsLease: Condition = { kind: 'has', attribute: LEASE.version.name };
export const rowExists: Condition = any(holdsLease, { kind: 'has', attribute: DIGEST.uid.name });

/** Attributes that a scan reads. */
export const DIGEST_ATTRIBUTES = namesOf(DIGEST);

export function heartbeatTimesOf(row: Item): HeartbeatTimes | undefined {
  const { fromSeconds, toSeconds } = readRow(HEARTBEAT_TIMES, row);
  return fromSeconds !== undefined && toSeconds !== undefined ? { fromSeconds, toSeconds } : undefined;
}

/** The digest of a row; undefined for a row that only holds a lease. */
export const nodeHealthOf = (row: Item): NodeHealth | undefined =>
  hasDigest(row) ? readRow(NODE_HEALTH, row) : undefined;
