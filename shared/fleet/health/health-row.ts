/**
 * The row of a node in the `health` table: its Lease and the digest of its Node. They share one item: a beat is one
 * write, and a tick one scan. Attribute names have one letter: a beat is billed by the size of the row (at most 1 KB,
 * one write unit), a tick by the sum of all rows.
 *
 *   lease   v resourceVersion, i uid, c creation (s), t renewTime (us), d duration (s), a acquireTime (us),
 *           n transitions, h holder when it is not the node's name ('' for none), o 1: owned by the Node with the uid `u`,
 *           x JSON of all other fields of the Lease, U what the machine used (shared/fleet/nodes/node-usage.ts)
 *   both    r server receipt time of the last renewal (ms)
 *   digest  u Node uid, z zone, y Ready as T, F or U, e 1: excluded, s 1: suspect,
 *           k our NoExecute taints (1 not-ready, 2 unreachable), b creation (ms), l last status post (ms);
 *           P name of the profile, absent for the default one; C when the profile last changed (s);
 *           S end of the planned silence (s); negative: when it ended early or was removed
 *           f, g: conditions with the stored lastHeartbeatTime f are shown with g (s)
 *   marks   m when node-monitor marked the silent node Unknown (ms); removed by the next status post
 *           F times of the last marks, and whether the node is flapping (shared/fleet/silences/flapping.ts)
 *           w 1: pods of this node must still be set not ready
 *           j counts requests for logs of the node's pods; reported in the response to a beat (log-request-store.ts)
 *           p counts changes of the node's pods: bound, changed, removed; reported in the response to a beat
 *
 * A row has a lease if it has `v`, and a digest if it has `u`; it may have only one of them.
 */
import { defined } from '../../defined.ts';
import type { ConditionStatus } from '../../kubernetes/kubernetes.ts';
import { any } from '../../store/conditions.ts';
import type { Condition, Item, ItemKey } from '../../store/item-store.ts';
import { healthPartitionOf } from '../../store/layout.ts';
import type { HeartbeatTimes } from '../nodes/heartbeat-times.ts';
import type { NodeHealth } from './node-health.ts';

export const LEASE_ATTRIBUTES = ['v', 'i', 'c', 't', 'd', 'a', 'n', 'h', 'o', 'x', 'U'] as const;
/** Attributes that a scan reads. */
export const DIGEST_ATTRIBUTES = [
  'u',
  'z',
  'y',
  'e',
  's',
  'k',
  'b',
  'l',
  'm',
  'w',
  'r',
  'P',
  'C',
  'S',
  'd',
  'F',
] as const;

export const healthKey = (nodeName: string): ItemKey => ({
  table: 'health',
  pk: healthPartitionOf(nodeName),
  sk: nodeName,
});

const READY_CODES = { True: 'T', False: 'F', Unknown: 'U' } as const;
const READY_OF: Readonly<Record<string, ConditionStatus>> = { T: 'True', F: 'False', U: 'Unknown' };

export const readyCode = (ready: ConditionStatus): string => READY_CODES[ready];

const NOT_READY = 1;
const UNREACHABLE = 2;

export const noExecuteCode = (noExecute: NodeHealth['noExecute']): number =>
  (noExecute.notReady ? NOT_READY : 0) + (noExecute.unreachable ? UNREACHABLE : 0);

/** The attributes of a row, see above. */
export type HealthRow = {
  readonly sk: string;
  readonly v?: number;
  readonly i?: string;
  readonly c?: number;
  readonly t?: number;
  readonly d?: number;
  readonly a?: number;
  readonly n?: number;
  readonly h?: string;
  readonly o?: 1;
  readonly x?: string;
  readonly U?: string;
  readonly r?: number;
  readonly u?: string;
  readonly z?: string;
  readonly y?: string;
  readonly e?: 1;
  readonly s?: 1;
  readonly k?: number;
  readonly b?: number;
  readonly P?: string;
  readonly C?: number;
  readonly S?: number;
  readonly l?: number;
  readonly f?: number;
  readonly g?: number;
  readonly m?: number;
  readonly F?: Uint8Array;
  readonly w?: 1;
  readonly j?: number;
  readonly p?: number;
};

export const hasLease = (row: Item): boolean => row.v !== undefined;
export const hasDigest = (row: Item): boolean => row.u !== undefined;

export const rowExists: Condition = any({ kind: 'has', attribute: 'v' }, { kind: 'has', attribute: 'u' });

/** Name of the node's profile; undefined: the default one. */
export const profileOf = (row: Item): string | undefined => (row as HealthRow).P;

/** Changes whenever pods of the node change; undefined before the first change. */
export const podsVersionOf = (row: Item): number | undefined => (row as HealthRow).p;

/** Changes whenever a log of the node is requested; undefined before the first request. */
export const logsVersionOf = (row: Item): number | undefined => (row as HealthRow).j;

/** Attributes that heartbeatTimesOf reads. */
export const HEARTBEAT_TIME_ATTRIBUTES = ['f', 'g'] as const;

export function heartbeatTimesOf(row: Item): HeartbeatTimes | undefined {
  const { f: fromSeconds, g: toSeconds } = row as HealthRow;
  return fromSeconds !== undefined && toSeconds !== undefined ? { fromSeconds, toSeconds } : undefined;
}

/** The digest of a row; undefined for a row that only holds a lease. */
export function nodeHealthOf(row: Item): NodeHealth | undefined {
  if (!hasDigest(row)) return undefined;
  const digest = row as HealthRow & { readonly u: string; readonly b: number };
  const {
    sk,
    u: uid,
    b: createdAtMs,
    r: renewedAtMs,
    z = '',
    y = '',
    k: code = 0,
    e,
    s,
    l,
    m,
    w,
    P,
    C,
    S,
    d,
    F,
  } = digest;
  return {
    nodeName: sk,
    uid,
    zone: z,
    ready: READY_OF[y],
    excluded: e !== undefined,
    suspect: s !== undefined,
    noExecute: { notReady: (code & NOT_READY) !== 0, unreachable: (code & UNREACHABLE) !== 0 },
    createdAtMs,
    // A beat from before the Node was created belongs to an earlier Node (D2).
    renewedAtMs: renewedAtMs !== undefined && renewedAtMs >= createdAtMs ? renewedAtMs : undefined,
    statusAtMs: l,
    markedAtMs: m,
    podsToMark: w !== undefined,
    ...defined({
      profile: P,
      leaseDurationSeconds: d,
      flaps: F,
      profileChangedAtMs: C === undefined ? undefined : C * 1_000,
      plannedUntilMs: S !== undefined && S > 0 ? S * 1_000 : undefined,
      silenceEndedAtMs: S !== undefined && S <= 0 ? -S * 1_000 : undefined,
    }),
  };
}
