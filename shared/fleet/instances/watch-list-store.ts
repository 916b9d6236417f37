/**
 * The nodes that EC2 is asked about, in one partition of the `control` table. A tick finds them with one query. Without
 * any, the query costs half a read unit.
 *
 *   pk `cloud` sk <node name>   uid, providerID, createdAtMs, ready, shutdown 1, outOfService, uninitialised 1: the node
 *                               that object-stream last read; rv its resourceVersion; seen JSON of EC2's answers
 *   pk `cloud-asked` sk `-`     asked JSON: when EC2 was last asked (poll-plan.rule.ts); only beyond 2,000 nodes
 *
 * object-stream writes the attributes of the node, cloud-node writes the answers. Neither overwrites the other's.
 * `seen` is its own version: cloud-node stores an answer, or deletes the Node, only while `seen` is unchanged since the
 * read. Of a tick and an event that run at once, one is refused. Two answers are in a row only if no other was stored
 * in between.
 */

import { defined } from '../../defined.ts';
import type { ConditionStatus } from '../../kubernetes/kubernetes.ts';
import { all, any, is, lacks } from '../../store/attributes.ts';
import { controlPages } from '../../store/control-pages.ts';
import type {
  Condition,
  DeleteWrite,
  Item,
  ItemKey,
  ItemStore,
  PutWrite,
  UpdateWrite,
} from '../../store/item-store.ts';
import { ALONE } from '../../store/layout.ts';
import type { AskedSeconds } from './poll-plan.rule.ts';
import { type CloudSeen, NOTHING_SEEN, type WatchedNode } from './watch-list.rule.ts';

const PARTITION = 'cloud';

export interface WatchRow extends WatchedNode {
  /** Version of the Node from which the row was written. */
  readonly resourceVersion: number;
  readonly seen: CloudSeen;
  /** `seen` as it is stored. */
  readonly seenText: string | undefined;
}

export interface CloudStore {
  /** All rows. Eventually consistent: every write carries its own condition. */
  read(): Promise<readonly WatchRow[]>;
  /** Whether the list has no row. Eventually consistent: half a read unit. */
  isEmpty(): Promise<boolean>;
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

const keyOf = (nodeName: string): ItemKey => ({ table: 'control', pk: PARTITION, sk: nodeName });

const asSeen = ({ uid, seenText }: WatchRow): Condition =>
  all(is('uid', uid), seenText === undefined ? lacks('seen') : is('seen', seenText));

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

    async isEmpty() {
      const page = await items.query({ table: 'control', pk: PARTITION, consistent: false, limit: 1 });
      return page.items.length === 0;
    },

    async get(nodeName) {
      const item = await items.get(keyOf(nodeName), { consistent: true });
      return item === undefined ? undefined : rowOf(item);
    },

    async readAsked() {
      const item = await items.get(ASKED, { consistent: false });
      return item === undefined ? {} : (JSON.parse(item['asked'] as string) as AskedSeconds);
    },

    async rememberAsked(asked) {
      await items.write({ kind: 'put', key: ASKED, item: { asked: JSON.stringify(asked) } });
    },

    async watch(node, resourceVersion) {
      const key = keyOf(node.nodeName);
      const attributes = attributesOf(node, resourceVersion);
      const gone = OPTIONAL.filter((name) => attributes[name] === undefined);
      const updated = await items.write({
        kind: 'update',
        key,
        set: attributes,
        remove: gone,
        when: any(
          { kind: 'itemAbsent' },
          all(is('uid', node.uid), { kind: 'compare', attribute: 'rv', op: '<', value: resourceVersion }),
        ),
      });
      if (updated.kind === 'written') return;
      // Another uid: answers about the previous instance do not count for this one (D2).
      await items.write({
        kind: 'put',
        key,
        item: attributes,
        when: { kind: 'compare', attribute: 'uid', op: '<>', value: node.uid },
      });
    },

    async unwatch({ nodeName, uid }, resourceVersion) {
      await items.write({
        kind: 'delete',
        key: keyOf(nodeName),
        when: all(
          { kind: 'itemExists' },
          any(
            { kind: 'compare', attribute: 'uid', op: '<>', value: uid },
            { kind: 'compare', attribute: 'rv', op: '<=', value: resourceVersion },
          ),
        ),
      });
    },

    async drop(row) {
      await items.write({
        kind: 'delete',
        key: keyOf(row.nodeName),
        when: all(is('uid', row.uid), is('rv', row.resourceVersion)),
      });
    },

    async remember(row, seen, along) {
      const write: UpdateWrite = {
        kind: 'update',
        key: keyOf(row.nodeName),
        set: { seen: JSON.stringify(seen) },
        when: asSeen(row),
      };
      const outcome = along === undefined ? await items.write(write) : await items.transact([write, along]);
      return outcome.kind === 'written' ? 'written' : 'refused';
    },
  };
}

/** Attributes that a row may lack. */
const OPTIONAL = ['ready', 'shutdown', 'outOfService', 'uninitialised'] as const;

const attributesOf = (node: WatchedNode, resourceVersion: number): Item => ({
  uid: node.uid,
  providerID: node.providerId,
  createdAtMs: node.createdAtMs,
  rv: resourceVersion,
  ...defined({
    ready: node.ready,
    shutdown: node.hasShutdownTaint ? 1 : undefined,
    outOfService: node.outOfServiceTaint === 'absent' ? undefined : node.outOfServiceTaint,
    uninitialised: node.uninitialised ? 1 : undefined,
  }),
});

function rowOf(item: Item): WatchRow {
  const seenText = item['seen'] as string | undefined;
  return {
    nodeName: item['sk'] as string,
    uid: item['uid'] as string,
    providerId: item['providerID'] as string,
    createdAtMs: item['createdAtMs'] as number,
    resourceVersion: item['rv'] as number,
    ready: item['ready'] as ConditionStatus | undefined,
    hasShutdownTaint: item['shutdown'] === 1,
    outOfServiceTaint: (item['outOfService'] as WatchedNode['outOfServiceTaint'] | undefined) ?? 'absent',
    uninitialised: item['uninitialised'] === 1,
    seenText,
    seen: seenText === undefined ? NOTHING_SEEN : seenOf(seenText),
  };
}

/** Older rows name the field `reported` `told`. */
function seenOf(text: string): CloudSeen {
  const { told, ...seen } = JSON.parse(text) as CloudSeen & { readonly told?: string };
  return { ...seen, ...defined({ reported: seen.reported ?? told }) };
}
