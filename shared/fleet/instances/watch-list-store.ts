/**
 * The nodes that EC2 is asked about, in one partition of the `control` table. A tick finds them with one query. Without
 * any, the query costs half a read unit.
 *
 *   pk `cloud` sk <node name>   the node that object-stream last read (NODE), and EC2's answers
 *   pk `cloud-asked` sk `-`     asked JSON: when EC2 was last asked (poll-plan.rule.ts); only beyond 2,000 nodes
 *
 * object-stream writes the attributes of the node, cloud-node writes the answers. Neither overwrites the other's.
 * `seen` is its own version: cloud-node stores an answer, or deletes the Node, only while `seen` is unchanged since the
 * read. Of a tick and an event that run at once, one is refused. Two answers are in a row only if no other was stored
 * in between.
 *
 * object-stream maintains the list: each row is written from the current state of the Node, so late or repeated records
 * do no harm. A lost record is repaired by the next
 * change of that Node. cloud-node also compares every row with its Node at intervals.
 */

import type { KubeNode } from '../../kinds/types.ts';
import type { ConditionStatus } from '../../kubernetes/kubernetes.ts';
import {
  type Condition,
  controlPages,
  type DeleteWrite,
  type Item,
  type ItemKey,
  type ItemStore,
  type PutWrite,
  type UpdateWrite,
} from '../../store/item-store.ts';
import {
  ALONE,
  all,
  any,
  changeOf,
  flag,
  holds,
  json,
  mapped,
  number,
  present,
  type RowValues,
  readRow,
  text,
  word,
} from '../../store/layout.ts';
import type { WorkDependencies } from '../../ticks/dependencies.ts';
import type { DueRows } from '../../ticks/due-rows.ts';
import type { RecordWork } from '../../ticks/item-change.ts';
import { nodeRef } from '../nodes/change-node.ts';
import { readyStatusOf } from '../nodes/conditions.ts';
import { createdAtMsOf } from '../nodes/node-digest.ts';
import { isUninitialised } from './initialisation.rule.ts';
import type { AskedSeconds } from './poll-plan.rule.ts';
import {
  type CloudSeen,
  hasShutdownTaint,
  isWatched,
  NOTHING_SEEN,
  outOfServiceTaintOf,
  type WatchedNode,
} from './watch-list.rule.ts';

const PARTITION = 'cloud';
/** A node on the list is work for every tick. */
export const WATCHED_DUE: DueRows = { pk: PARTITION, time: 'none' };

const OUT_OF_SERVICE = word<'ours' | 'others'>('outOfService');

/** Attributes of a watched node. */
const NODE = {
  uid: present(text('uid')),
  providerId: present(text('providerID')),
  createdAtMs: present(number('createdAtMs')),
  /** Version of the Node from which the row was written. */
  resourceVersion: present(number('rv')),
  ready: word<ConditionStatus>('ready'),
  hasShutdownTaint: flag('shutdown'),
  outOfServiceTaint: mapped(OUT_OF_SERVICE, {
    read: (taint): WatchedNode['outOfServiceTaint'] => taint ?? 'absent',
    write: (taint) => (taint === 'absent' ? undefined : taint),
  }),
  uninitialised: flag('uninitialised'),
};
const ROW = {
  ...NODE,
  nodeName: present(text('sk')),
  /** JSON of CloudSeen. */
  seenText: text('seen'),
};

export type WatchRow = WatchedNode & RowValues<typeof ROW> & { readonly seen: CloudSeen };

export interface CloudStore {
  /** All rows. Eventually consistent: every write carries its own condition. */
  read(): Promise<readonly WatchRow[]>;
  /** One row, strongly consistent. */
  get(nodeName: string): Promise<WatchRow | undefined>;
  /** When EC2 was last asked. Eventually consistent. */
  readAsked(): Promise<AskedSeconds>;
  /** Stores when EC2 was last asked. The last writer wins: an earlier time only means that EC2 is asked again. */
  rememberAsked(asked: AskedSeconds): Promise<void>;
  /** Adds the node to the list, or updates its row. Answers about the same uid are kept. */
  watch(node: WatchedNode, resourceVersion: number): Promise<void>;
  /** Removes the node from the list, unless a later version of this uid was added. */
  unwatch(node: { readonly nodeName: string; readonly uid: string }, resourceVersion: number): Promise<void>;
  /** Removes the row of a Node that is deleted or no longer watched, unless the row was updated since it was read. */
  drop(row: WatchRow): Promise<void>;
  /**
   * Stores the answers, unless another call stored one since the row was read. `along` is written in the same commit.
   */
  remember(row: WatchRow, seen: CloudSeen, along?: PutWrite): Promise<'written' | 'refused'>;
}

const ASKED: ItemKey = { table: 'control', pk: 'cloud-asked', sk: ALONE };
const ASKED_SECONDS = json<AskedSeconds>('asked');

const keyOf = (nodeName: string): ItemKey => ({ table: 'control', pk: PARTITION, sk: nodeName });

const asSeen = ({ uid, seenText }: WatchRow): Condition => all(holds(ROW.uid, uid), holds(ROW.seenText, seenText));

/** For a commit's `extra`: deletes the row with its Node. Refused when another answer was stored since the read. */
export const leaveWatchWrite = (row: WatchRow): DeleteWrite => ({
  kind: 'delete',
  key: keyOf(row.nodeName),
  when: asSeen(row),
});

export function cloudStore(items: ItemStore): CloudStore {
  return {
    async read() {
      const rows: WatchRow[] = [];
      const pages = controlPages(items, PARTITION, {
        consistent: false,
        tooMany: 'the list of watched nodes exceeds the page limit of one read',
      });
      for await (const page of pages) {
        rows.push(...page.map(rowOf));
      }
      return rows;
    },

    async get(nodeName) {
      const item = await items.get(keyOf(nodeName), { consistent: true });
      return item === undefined ? undefined : rowOf(item);
    },

    async readAsked() {
      const item = await items.get(ASKED, { consistent: false });
      return ASKED_SECONDS.of(item ?? {}) ?? {};
    },

    async rememberAsked(asked) {
      await items.write({ kind: 'put', key: ASKED, item: changeOf({ asked: ASKED_SECONDS }, { asked }).set });
    },

    async watch(node, resourceVersion) {
      const key = keyOf(node.nodeName);
      const { nodeName: _, ...attributes } = node;
      const { set, remove } = changeOf(NODE, { ...attributes, resourceVersion });
      const updated = await items.write({
        kind: 'update',
        key,
        set,
        remove,
        when: any(
          { kind: 'itemAbsent' },
          all(holds(ROW.uid, node.uid), {
            kind: 'compare',
            attribute: ROW.resourceVersion.name,
            op: '<',
            value: resourceVersion,
          }),
        ),
      });
      if (updated.kind === 'written') return;
      // Another uid: answers about the previous instance do not count for this one (D2).
      await items.write({
        kind: 'put',
        key,
        item: set,
        when: { kind: 'compare', attribute: ROW.uid.name, op: '<>', value: node.uid },
      });
    },

    async unwatch({ nodeName, uid }, resourceVersion) {
      await items.write({
        kind: 'delete',
        key: keyOf(nodeName),
        when: all(
          { kind: 'itemExists' },
          any(
            { kind: 'compare', attribute: ROW.uid.name, op: '<>', value: uid },
            { kind: 'compare', attribute: ROW.resourceVersion.name, op: '<=', value: resourceVersion },
          ),
        ),
      });
    },

    async drop(row) {
      await items.write({
        kind: 'delete',
        key: keyOf(row.nodeName),
        when: all(holds(ROW.uid, row.uid), holds(ROW.resourceVersion, row.resourceVersion)),
      });
    },

    async remember(row, seen, along) {
      const write: UpdateWrite = {
        kind: 'update',
        key: keyOf(row.nodeName),
        ...changeOf(ROW, { seenText: JSON.stringify(seen) }),
        when: asSeen(row),
      };
      const outcome = along === undefined ? await items.write(write) : await items.transact([write, along]);
      return outcome.kind === 'written' ? 'written' : 'refused';
    },
  };
}

function rowOf(item: Item): WatchRow {
  const { ready, ...row } = readRow(ROW, item);
  const { seenText } = row;
  return { ...row, ready, seen: seenText === undefined ? NOTHING_SEEN : (JSON.parse(seenText) as CloudSeen) };
}

interface NodeRecord {
  readonly position: number;
  readonly before: KubeNode | undefined;
  readonly after: KubeNode | undefined;
  /** A retry: `before` has only names, so a comparison decides nothing. */
  readonly isRetry?: boolean;
}

export function watchedNodeOf(node: KubeNode): WatchedNode {
  const taints = node.spec?.taints ?? [];
  return {
    nodeName: node.metadata.name ?? '',
    uid: node.metadata.uid ?? '',
    providerId: node.spec?.providerID ?? '',
    createdAtMs: createdAtMsOf(node),
    ready: readyStatusOf(node.status?.conditions),
    hasShutdownTaint: hasShutdownTaint(taints),
    outOfServiceTaint: outOfServiceTaintOf(taints),
    uninitialised: isUninitialised(taints),
  };
}

export const isWatchedNode = (node: KubeNode | undefined): boolean =>
  node !== undefined && isWatched(watchedNodeOf(node));

/** One unit of work per node that is, or was, watched. */
export function cloudWatchWorks(dependencies: WorkDependencies, nodes: readonly NodeRecord[]): RecordWork[] {
  const byName = new Map<string, { uid: string; readonly of: number[] }>();
  for (const { before, after, position, isRetry } of nodes) {
    if (isRetry !== true && !isWatchedNode(before) && !isWatchedNode(after)) continue;
    const { name = '', uid = '' } = (after ?? before)?.metadata ?? {};
    const known = byName.get(name);
    if (known === undefined) byName.set(name, { uid, of: [position] });
    else {
      known.uid = uid;
      known.of.push(position);
    }
  }
  return [...byName].map(([name, { uid, of }]) => ({ of, run: () => settleWatch(dependencies, name, uid) }));
}

async function settleWatch({ items, objects }: WorkDependencies, nodeName: string, uid: string): Promise<void> {
  const list = cloudStore(items);
  const node: KubeNode | undefined = await objects.get(nodeRef(nodeName));
  // The Node does not exist: no version of its row is needed.
  if (node === undefined) return list.unwatch({ nodeName, uid }, Number.MAX_SAFE_INTEGER);
  const watched = watchedNodeOf(node);
  const version = Number(node.metadata.resourceVersion ?? 0);
  return isWatched(watched) ? list.watch(watched, version) : list.unwatch(watched, version);
}
