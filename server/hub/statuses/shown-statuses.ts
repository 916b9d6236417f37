/**
 * The copy of a cluster as clients of the hub read it: with the statuses that machines of the site reported while the
 * cluster could not be reached. They are in memory alone, over the tables of the copy, and never in the file: the
 * cluster decides, and the machines send it what they report here.
 *
 * A status that is shown is a change like every other. It has a version, the next one above all heads of its resource,
 * and a row in the change log, so the code that answers reads and watches is the same.
 *
 *   - The copy does not know these versions. When the cluster can be reached again, its changes have versions of its
 *     clock, which are higher. A clock that is behind can issue one that is not. A watch that has read further would
 *     miss that change, so its cursor is 410 Expired (`missed`).
 *   - A status counts over one version of its object. A later one of the cluster replaces it, without an act here.
 *   - A machine that sent its status to the cluster may have changed nothing there. Two full rounds of reads after the
 *     cluster was reached, what is still shown is withdrawn, as one more change.
 *   - A process that starts anew shows nothing, and does not know which versions it issued. A watch from one of them
 *     reads on from there. It misses a change only if the clock of its writer was behind in the moment of the cut.
 */
import type { Clock } from '../../../shared/clock.ts';
import { defined } from '../../../shared/defined.ts';
import { selectableFieldsOf, shardsOf } from '../../../shared/kinds/resources.ts';
import type { KubeObject, ObjectRef } from '../../../shared/kinds/types.ts';
import type { MissedVersions } from '../../../shared/store/change-log.ts';
import type { Item, ItemKey, ItemStore, QueryPage, QueryRequest } from '../../../shared/store/item-store.ts';
import {
  ALONE,
  changeOf,
  headPartition,
  loggedResource,
  objectSortKey,
  readRow,
  storedResource,
} from '../../../shared/store/layout.ts';
import { HEAD, OBJECT, objectOf, refOf, resourceVersionOf } from '../../../shared/store/object-record.ts';
import { issuedItems, objectKey } from '../../../shared/store/object-store.ts';
import type { StoreChange } from '../../../shared/store/writes/store-change.ts';

/** Changes in the log of a resource. A watch that is further behind lists again. */
const LOG_MAX = 2_000;
/** Full rounds of reads after which a status is withdrawn: the machine has had 15 s and more to send it. */
const ROUNDS_KEPT = 2;
/** Attempts at a version above the heads, while the copy is written. */
const ATTEMPTS_MAX = 3;

interface Shown {
  readonly row: Item;
  /** The version of the object in the copy that it is shown over. */
  readonly over: number;
  /** Full rounds since it is shown. */
  rounds: number;
}

interface LogRow {
  readonly pk: string;
  readonly sk: string;
  readonly item: Item;
}

/** What is shown of one resource. */
interface Layer {
  /** The highest version that was issued here. */
  last: number;
  /** By sort key. */
  readonly shown: Map<string, Shown>;
  /** In the order of their versions. */
  log: LogRow[];
  /** The log is complete after this version. */
  logFrom: number;
  /** Changes of the cluster had versions that are not above those of here. A cursor in between may have missed one. */
  missed: MissedVersions | undefined;
}

export interface ShownStatuses {
  /** For those who answer clients. Writes go to the copy. */
  readonly items: ItemStore;
  /** Shows `object` in place of `stored`, which was read from `items`. */
  show(ref: ObjectRef, object: KubeObject, stored: KubeObject): Promise<void>;
  /** A commit of the copy is durable. */
  onCommit(changes: readonly StoreChange[]): void;
  /** Every resource was read from the cluster. @throws StoreFault */
  onRead(): Promise<void>;
  /** Objects with such a status. */
  count(): number;
}

export interface ShownStatusesOptions {
  /** The copy. */
  readonly items: ItemStore;
  readonly clock: Clock;
  /** The change log of the resource has changed: wakes watches. */
  readonly onChanged: (resource: string) => void;
}

export function shownStatuses({ items, clock, onChanged }: ShownStatusesOptions): ShownStatuses {
  const common = { clock, shardsOf, selectableFields: selectableFieldsOf };
  const layers = new Map<string, Layer>();

  function layerOf(resource: string): Layer {
    const known = layers.get(resource);
    if (known !== undefined) return known;
    const made: Layer = { last: 0, shown: new Map(), log: [], logFrom: 0, missed: undefined };
    layers.set(resource, made);
    return made;
  }

  async function highestHead(resource: string): Promise<number> {
    const keys = Array.from({ length: shardsOf(resource) }, (_, shard): ItemKey => {
      return { table: 'objects', pk: headPartition(resource, shard), sk: ALONE };
    });
    const heads = await items.getMany(keys, { consistent: true });
    return Math.max(0, ...heads.map((head) => readRow(HEAD, head ?? {}).version ?? 0));
  }

  /** Adds a change to the log. A reader may have read up to a head that rose meanwhile: then it is added again. */
  async function logged(ref: ObjectRef, object: KubeObject, previous: KubeObject): Promise<Item> {
    const layer = layerOf(ref.resource);
    let row: Item = {};
    for (let attempt = 0, highest = await highestHead(ref.resource); attempt < ATTEMPTS_MAX; attempt += 1) {
      const version = Math.max(highest, layer.last) + 1;
      const writes = issuedItems(common, [{ kind: 'update', ref, object, previous, version }], { logged: true });
      for (const write of writes) {
        if (write.kind !== 'put') continue;
        const { pk, sk } = write.key;
        if (storedResource(pk) === ref.resource) row = { ...write.item, pk, sk };
        if (loggedResource(pk) === ref.resource) layer.log.push({ pk, sk, item: { ...write.item, pk, sk } });
      }
      layer.last = version;
      highest = await highestHead(ref.resource);
      if (highest < version) break;
    }
    const surplus = layer.log.length - LOG_MAX;
    if (surplus > 0) layer.logFrom = Number(layer.log.splice(0, surplus).at(-1)!.sk);
    return row;
  }

  const isHead = (pk: string): boolean => pk.startsWith('h#');

  /** A row of the copy, as it is shown. */
  function asShown(pk: string, item: Item | undefined): Item | undefined {
    if (item === undefined) return undefined;
    const resource = storedResource(pk);
    if (resource !== undefined) {
      const shown = layers.get(resource)?.shown.get(String(item['sk']));
      return shown !== undefined && shown.over === OBJECT.version.of(item) ? shown.row : item;
    }
    const layer = isHead(pk) ? layers.get(pk.slice(2, pk.lastIndexOf('#'))) : undefined;
    return layer === undefined || layer.last === 0 ? item : withHead(item, layer);
  }

  async function query(request: QueryRequest): Promise<QueryPage> {
    const page = await items.query(request);
    if (request.table !== 'objects') return page;
    const resource = loggedResource(request.pk);
    if (resource === undefined) {
      // A projection without them is no read of objects.
      const isWhole = [OBJECT.version, OBJECT.object].every(({ name }) => request.attributes?.includes(name) !== false);
      if (!isWhole) return page;
      return { ...page, items: page.items.map((item) => asShown(request.pk, item)!) };
    }
    const { after = '', through, pk } = request;
    const end = page.next ?? through;
    const own = layers.get(resource)?.log.filter((row) => row.pk === pk && row.sk > after && (end ?? row.sk) >= row.sk);
    if (own === undefined || own.length === 0) return page;
    const merged = [...page.items, ...own.map(({ item }) => item)];
    return { ...page, items: merged.sort((one, other) => (String(one['sk']) < String(other['sk']) ? -1 : 1)) };
  }

  return {
    items: {
      ...items,
      get: async (key, at) => asShown(key.pk, await items.get(key, at)),
      async getMany(keys, at) {
        const rows = await items.getMany(keys, at);
        return layers.size === 0 ? rows : rows.map((row, index) => asShown(keys[index]!.pk, row));
      },
      query: (request) => (layers.size === 0 ? items.query(request) : query(request)),
      async write(write, wanted) {
        const outcome = await items.write(write, wanted);
        // Readers raise heads, and read in the answer up to where a log is complete.
        if (layers.size === 0 || !isHead(write.key.pk)) return outcome;
        return outcome.kind === 'written'
          ? { ...outcome, ...defined({ item: asShown(write.key.pk, outcome.item) }) }
          : { ...outcome, ...defined({ current: asShown(write.key.pk, outcome.current) }) };
      },
    },
    async show(ref, object, stored) {
      const { resource, namespace, name } = ref;
      const row = await logged(ref, object, stored);
      const { shown } = layerOf(resource);
      const sk = objectSortKey(namespace, name);
      const before = shown.get(sk);
      const version = resourceVersionOf(stored);
      const isOverShown = before !== undefined && OBJECT.version.of(before.row) === version;
      shown.set(sk, { row, over: isOverShown ? before.over : version, rounds: 0 });
      onChanged(resource);
    },
    onCommit(changes) {
      if (layers.size === 0) return;
      for (const { key, type } of changes) {
        const layer = type === 'INSERT' ? layers.get(loggedResource(key.pk) ?? '') : undefined;
        if (layer === undefined || Number(key.sk) > layer.last) continue;
        // Above every cursor that was delivered: those are not at the end of the log any more.
        layer.last += 1;
        const after = Math.min(layer.missed?.after ?? Number.POSITIVE_INFINITY, Number(key.sk) - 1);
        layer.missed = { after, before: layer.last };
        onChanged(loggedResource(key.pk)!);
      }
    },
    async onRead() {
      for (const [resource, { shown }] of layers) {
        for (const [sk, each] of shown) {
          each.rounds += 1;
          if (each.rounds <= ROUNDS_KEPT) continue;
          const ref = refOf(resource, sk);
          const row = await items.get(objectKey(ref, shardsOf(resource)), { consistent: true });
          // A newer status was shown meanwhile.
          if (shown.get(sk) !== each) continue;
          shown.delete(sk);
          if (row === undefined || OBJECT.version.of(row) !== each.over) continue;
          await logged(ref, objectOf(row), objectOf(each.row));
          onChanged(resource);
        }
      }
    },
    count: () => [...layers.values()].reduce((sum, { shown }) => sum + shown.size, 0),
  };
}

/** The heads of the copy, and what is shown. */
function withHead(item: Item, { last, logFrom, missed }: Layer): Item {
  const head = readRow(HEAD, item);
  return {
    ...item,
    ...changeOf(HEAD, {
      version: Math.max(head.version ?? 0, last),
      committed: Math.max(head.committed ?? 0, last),
      logFrom: Math.max(head.logFrom ?? 0, logFrom),
      ...(missed !== undefined && { missedAfter: missed.after, missedBefore: missed.before }),
    }).set,
  };
}
