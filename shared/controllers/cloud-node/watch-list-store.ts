/**
 * The nodes EC2 is asked about, in one partition of the `control` table, so that a tick finds them by one query and a
 * fleet without any costs half a read unit.
 *
 *   pk `cloud` sk <node name>   uid, providerID, createdAtMs, ready, shutdown 1, outOfService, uninitialised 1: the node as
 *                               object-stream last saw it; rv its resourceVersion; seen JSON of what EC2 has said so far
 *
 * object-stream writes the node's part and cloud-node the answers; neither touches the other's. `seen` is its own version:
 * who decides on it writes, or deletes the Node, only while it is still what was read. So of two who ask at once, a tick
 * and an event, one is refused, and two answers count as two in a row only if no other came in between.
 */

import type { ConditionStatus } from '../../domain/kubernetes.ts';
import type {
  Condition,
  DeleteWrite,
  Item,
  ItemKey,
  ItemStore,
  PutWrite,
  UpdateWrite,
} from '../../ports/item-store.ts';
import { all, any, is, lacks } from '../../store/conditions.ts';
import { controlPages } from '../../store/control-pages.ts';
import { type CloudSeen, NOTHING_SEEN, type WatchedNode } from './watch-list.rule.ts';

const PARTITION = 'cloud';

export interface WatchRow extends WatchedNode {
  /** Of the Node that the row was made from. */
  readonly resourceVersion: number;
  readonly seen: CloudSeen;
  /** `seen` as it is stored. */
  readonly seenText: string | undefined;
}

export interface CloudStore {
  /** All of them. May be a moment behind: every write says on what it rests. */
  read(): Promise<readonly WatchRow[]>;
  /** One of them, strongly consistent. */
  get(nodeName: string): Promise<WatchRow | undefined>;
  /** Puts the node on the list, or brings its row up to date; what was seen of the same uid stays. */
  watch(node: WatchedNode, resourceVersion: number): Promise<void>;
  /** Takes the node off the list: this uid, or any other that is not it, unless a later version of it was put there. */
  unwatch(node: { readonly nodeName: string; readonly uid: string }, resourceVersion: number): Promise<void>;
  /** Takes a row off whose Node is gone or needs it no more, unless it was brought up to date since. */
  drop(row: WatchRow): Promise<void>;
  /** Keeps what was seen, unless somebody else did since the row was read; `along` is written with it. */
  remember(row: WatchRow, seen: CloudSeen, along?: PutWrite): Promise<'written' | 'refused'>;
}

const keyOf = (nodeName: string): ItemKey => ({ table: 'control', pk: PARTITION, sk: nodeName });

const asSeen = ({ uid, seenText }: WatchRow): Condition =>
  all(is('uid', uid), seenText === undefined ? lacks('seen') : is('seen', seenText));

/** For a commit's `extra`: the row leaves with its Node, or the commit is refused because others have seen more since. */
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
        tooMany: 'more watched nodes than one read takes',
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
      // Of another uid: what EC2 said of that one is nothing to this one (D2).
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
  ...(node.ready === undefined ? {} : { ready: node.ready }),
  ...(node.hasShutdownTaint ? { shutdown: 1 } : {}),
  ...(node.outOfServiceTaint === 'absent' ? {} : { outOfService: node.outOfServiceTaint }),
  ...(node.uninitialised ? { uninitialised: 1 } : {}),
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
    seen: seenText === undefined ? NOTHING_SEEN : (JSON.parse(seenText) as CloudSeen),
  };
}
