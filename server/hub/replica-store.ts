/**
 * The copy of a cluster's objects in the tables of this process, with the cluster's own versions. Its rows are those of
 * shared/store/object-store.ts, so everything that reads objects and change logs reads them here as in the cluster.
 *
 * There is one writer, and its calls do not overlap. Clients of the copy read a change log as in change-log.ts. What
 * that needs, and why it holds here:
 *
 *   - No change at or below a version that was delivered as complete is written later. Changes of a resource are
 *     written in the order of their versions, over all its shards. So below the highest head every change is there, and
 *     a reader that raises the other heads to it closes nothing that is still to come. A reader may also raise heads to
 *     the time of its clock. That clock is `oldestCursor` (version-clock.ts): the cluster had closed that version, and
 *     this copy had every change up to it. By the clock of the machine, a reader would close versions that the cluster
 *     has yet to issue. Their changes would be refused here, or never be read.
 *   - No change is skipped. The cursors are in one row, which is written in the transaction of the changes that it
 *     counts. After a crash, and after a write with an unknown outcome, the row is read again. Changes at or below the
 *     cursor are left out, so a change that is delivered twice is applied once.
 *   - The clock of the cluster may go back. Its versions do not: a commit is above the head of its shard, and a cursor
 *     is a version to which all heads of its resource were raised. The clock of this machine chooses no version.
 *
 * A list (`merge`) brings the copy up to date after the changes have expired. The differences are changes as well, in
 * the order of their versions, so watches that are held go on. An object that is missing was deleted at an unknown
 * time: its deletion has the highest version that is free, up to that of the list. What the list has from after its
 * version is left to the next read of changes.
 *
 * The log of a merge is not that of the cluster: an object that appeared and disappeared meanwhile is not in it. For a
 * client with a cursor of ours it is enough. A client may come from the cluster itself, with a cursor between ours and
 * the list, and know such an object. So cursors in between are 410 Expired: `missedAfter` and `missedBefore` of the
 * heads, which are written before the first difference. A client that has read only a part of the differences has such
 * a cursor as well, and lists again. For that reason watches are woken after the last difference.
 *
 * Until the merge is complete, the row says that the resource has to be listed. By its cursor, which is that of before,
 * the changes would be read from the log once that is possible, and the heads are above them. The next merge writes
 * above the heads.
 *
 * What cannot be merged is begun anew (`fill`), as on the first day: the rows are deleted, and the log begins at the
 * version of the list. A watch from before is 410 Expired then, as for any version that the log has lost.
 *
 * The rows of a resource that is not held are deleted one after the other. Until none is left, and while a first list
 * is written, the row names the resource: who is interrupted may not be allowed to list it later, but deletes the rest.
 *
 * Flash memory: a read without changes writes nothing. The cursors that it moved are stored with the next change of any
 * resource.
 */
import type { Clock } from '../../shared/clock.ts';
import { defined } from '../../shared/defined.ts';
import { clusterObjects, findStored, selectableFieldsOf, shardsOf } from '../../shared/kinds/resources.ts';
import { expirySeconds } from '../../shared/kinds/stored-resource.ts';
import type { KubeObject, ObjectRef } from '../../shared/kinds/types.ts';
import {
  type ItemKey,
  type ItemStore,
  itemBytes,
  type QueryRequest,
  StoreFault,
  TRANSACT_BYTES_MAX,
  TRANSACT_WRITES_MAX,
  type TransactWrite,
} from '../../shared/store/item-store.ts';
import {
  ALONE,
  changeOf,
  headPartition,
  json,
  logPartition,
  number,
  objectPartition,
  objectSortKey,
  ownedPartition,
  RESOURCE_VERSIONS_PER_MS,
  type RowValues,
  readRow,
  text,
} from '../../shared/store/layout.ts';
import {
  HEAD,
  OBJECT,
  objectOf,
  objectText,
  packText,
  refOf,
  resourceVersionOf,
  type StoredText,
  unpackText,
} from '../../shared/store/object-record.ts';
import { COMMIT_OBJECTS_MAX, type IssuedWrite, issuedItems } from '../../shared/store/object-store.ts';
import type { ReadChange } from '../../shared/watches/change-read.ts';
import type { ListedPage } from './cluster-reads.ts';

/** Rows per page of a scan of the copy. */
const PAGE_ROWS = 500;
/** Ten million rows of a shard. */
const PAGES_MAX = 20_000;
/** Half of a transaction: items have a size after the write and one before. */
const TRANSACTION_BYTES = TRANSACT_BYTES_MAX / 2;
/** No cursor is above it: the log of a resource that is not held is expired for every watch. */
const NEVER = Number.MAX_SAFE_INTEGER;

const STATE_KEY: ItemKey = { table: 'control', pk: 'replica', sk: ALONE };
const STATE = {
  /** The uid of its namespace kube-system. */
  clusterUid: text('u'),
  /** Names it in tokens of machines. */
  clusterId: text('i'),
  /** Names the history of its store. */
  history: text('h'),
  /** When the last complete read of the cluster began, as of the last change. Epoch milliseconds. */
  readAtMs: number('r'),
  /** By resource that is held: every change up to here was written. */
  cursors: json<Readonly<Record<string, number>>>('c'),
  /** Resources that are held and have to be listed. */
  unlisted: json<readonly string[]>('l'),
  /** Resources that are not held, but may have rows: a first list or a deletion has not ended, or was interrupted. */
  unfinished: json<readonly string[]>('f'),
  /** By resource, if a part of it is held: the name of the part in ChangeReads. */
  bounds: json<Readonly<Record<string, string>>>('b'),
};
type State = RowValues<typeof STATE>;

export interface ReplicaStore {
  /** Reads the row again after a write that may have failed. First in each round. */
  load(): Promise<void>;
  clusterUid(): string | undefined;
  clusterId(): string | undefined;
  readAtMs(): number | undefined;
  /** A complete read of the cluster that began then has ended. It is stored with the next change. */
  wasRead(atMs: number): void;
  /** The copy has every change of the resource up to `cursor`. */
  holds(resource: string): boolean;
  /** 0: it has to be listed. */
  cursor(resource: string): number;
  /** Names the part of the resource that is held. Undefined: the whole, or nothing. */
  bounds(resource: string): string | undefined;
  keepBounds(resource: string, bounds: string | undefined): Promise<void>;
  /** The lowest stored cursor. 0: nothing is held. */
  oldestCursor(): number;
  /** Changes after the cursor, oldest first, and the version up to which they are all. */
  apply(resource: string, read: { readonly changes: readonly ReadChange[]; readonly through: number }): Promise<void>;
  /** A list of the whole resource: writes what differs, or all. */
  list(resource: string, pages: () => AsyncIterable<ListedPage>): Promise<void>;
  /** It is not held, but rows of it may be stored. */
  isUnfinished(resource: string): boolean;
  /** The cluster does not let us read it any more. */
  drop(resource: string): Promise<void>;
  /** Another cluster, or another history of it: nothing of the former one remains. */
  begin(clusterUid: string): Promise<void>;
  history(): string | undefined;
  keepHistory(history: string): Promise<void>;
  /** What the cluster says that it is called: kept for the time without it. */
  keepClusterId(clusterId: string): Promise<void>;
}

export interface ReplicaStoreOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  /** The log of the resource has changed: for watches. */
  readonly onChanged: (resource: string) => void;
}

/** A change, or a difference that a list showed. */
interface Step {
  readonly ref: ObjectRef;
  readonly version: number;
  /** Absent: a deletion. */
  readonly object?: () => KubeObject;
}

export function replicaStore({ items, clock, onChanged }: ReplicaStoreOptions): ReplicaStore {
  const common = { clock, shardsOf, selectableFields: selectableFieldsOf };
  const objects = clusterObjects({ items, clock, random: { uuid: () => '', fraction: () => 0.5 } });
  let state: State = {};
  /** Cursors in memory: at or above the stored ones. */
  let cursors: ReadonlyMap<string, number> = new Map();
  let bounds: ReadonlyMap<string, string> = new Map();
  let readAtMs: number | undefined;
  let isLoaded = false;

  async function load(): Promise<void> {
    if (isLoaded) return;
    const before = cursors;
    state = readRow(STATE, (await items.get(STATE_KEY, { consistent: true })) ?? {});
    cursors = new Map(Object.entries(state.cursors ?? {}));
    bounds = new Map(Object.entries(state.bounds ?? {}));
    readAtMs = state.readAtMs;
    isLoaded = true;
    // The write that failed may have been done: its changes are not read again, so nothing else wakes their watches.
    for (const resource of before.keys()) onChanged(resource);
  }

  const stateWrite = (next: State): TransactWrite => ({
    kind: 'put',
    key: STATE_KEY,
    item: changeOf(STATE, next).set,
  });

  const isUnlisted = (resource: string): boolean => state.unlisted?.includes(resource) === true;

  async function keep(part: Pick<State, 'clusterId' | 'history'>): Promise<void> {
    await load();
    const next: State = { ...state, ...part };
    if (next.clusterId === state.clusterId && next.history === state.history) return;
    await transact([stateWrite(next)]);
    state = next;
  }

  async function keepBounds(resource: string, next: string | undefined): Promise<void> {
    if (bounds.get(resource) === next) return;
    const { [resource]: _, ...others } = Object.fromEntries(bounds);
    const kept = next === undefined ? others : { ...others, [resource]: next };
    const changed: State = { ...state, bounds: kept };
    await transact([stateWrite(changed)]);
    state = changed;
    bounds = new Map(Object.entries(kept));
  }

  /** All or nothing, with the row. `cursor` undefined: the resource is not held any more. */
  async function commit(
    writes: readonly TransactWrite[],
    resource: string,
    { cursor, unlisted = false }: { readonly cursor: number | undefined; readonly unlisted?: boolean },
  ): Promise<void> {
    const { [resource]: _, ...others } = Object.fromEntries(cursors);
    const next: State = {
      ...state,
      ...defined({ readAtMs }),
      cursors: cursor === undefined ? others : { ...others, [resource]: cursor },
      unlisted: withOrWithout(state.unlisted, resource, unlisted),
      unfinished: withOrWithout(state.unfinished, resource, cursor === undefined),
    };
    await transact([...writes, stateWrite(next)]);
    state = next;
    cursors = new Map(Object.entries(next.cursors ?? {}));
  }

  async function transact(writes: readonly TransactWrite[]): Promise<void> {
    isLoaded = false;
    const outcome = await items.transact(writes);
    if (outcome.kind !== 'written') {
      throw new StoreFault('rejected', `a write of the copy was ${outcome.kind}`, { retryable: true });
    }
    isLoaded = true;
  }

  /** The writes of these steps, over what is stored. A deletion of what is not stored needs none. */
  async function writesOf(steps: readonly Step[]): Promise<readonly IssuedWrite[]> {
    const before = await objects.getMany(steps.map(({ ref }) => ref));
    return steps.flatMap(({ ref, version, object }, index): readonly IssuedWrite[] => {
      const previous = before[index];
      if (object === undefined) return previous === undefined ? [] : [{ kind: 'delete', ref, previous, version }];
      const writtenAtMs = version / RESOURCE_VERSIONS_PER_MS;
      const expiry = defined({ expiresAtSeconds: expirySeconds(findStored(ref.resource)!, writtenAtMs) });
      return previous === undefined
        ? [{ kind: 'create', ref, object: object(), version, ...expiry }]
        : [{ kind: 'update', ref, object: object(), previous, version, ...expiry }];
    });
  }

  /** In the order of their versions. Each transaction moves the cursor, unless a list is being merged. */
  async function applySteps(resource: string, steps: readonly Step[], merging?: { readonly cursor: number }) {
    const written = async (part: readonly Step[]): Promise<void> => {
      const writes = issuedItems(common, await writesOf(part), { logged: true });
      const isOneTransaction = fits(writes);
      if (!isOneTransaction && part.length > 1) {
        const half = Math.ceil(part.length / 2);
        await written(part.slice(0, half));
        return written(part.slice(half));
      }
      // The owners of one object may fill a transaction. Who reads that index reads the object, too.
      const isIndex = ({ key }: TransactWrite): boolean => !isOneTransaction && key.pk.startsWith(ownedPartition(''));
      for (const some of inParts(writes.filter(isIndex))) await transact(some);
      const rest = writes.filter((write) => !isIndex(write));
      await commit(
        rest,
        resource,
        merging === undefined ? { cursor: part.at(-1)!.version } : { ...merging, unlisted: true },
      );
      if (writes.length > 0 && merging === undefined) onChanged(resource);
    };
    for (const part of partsOf(steps)) await written(part);
  }

  /** It stays unfinished. */
  async function erase(resource: string): Promise<void> {
    await load();
    await keepBounds(resource, undefined);
    await commit(headUpdates(resource, { committed: NEVER, logFrom: NEVER }), resource, { cursor: undefined });
    onChanged(resource);
    for (const pk of partitions(resource, objectPartition)) {
      for await (const rows of pagesOf({ table: 'objects', pk })) {
        const writes = rows.map((row): IssuedWrite => {
          const previous = objectOf(row);
          return {
            kind: 'delete',
            ref: refOf(resource, String(row['sk'])),
            previous,
            version: resourceVersionOf(previous),
          };
        });
        await writeUnlogged(writes);
      }
    }
    for (const pk of partitions(resource, logPartition)) {
      for await (const rows of pagesOf({ table: 'objects', pk, attributes: [] })) {
        const deletions = rows.map(
          ({ sk }): TransactWrite => ({ kind: 'delete', key: { table: 'objects', pk, sk: String(sk) } }),
        );
        for (const part of inParts(deletions)) await transact(part);
      }
    }
  }

  async function drop(resource: string): Promise<void> {
    await erase(resource);
    const next: State = { ...state, unfinished: withOrWithout(state.unfinished, resource, false) };
    await transact([stateWrite(next)]);
    state = next;
  }

  async function writeUnlogged(writes: readonly IssuedWrite[]): Promise<void> {
    let transaction: readonly TransactWrite[] = [];
    for (const write of writes) {
      const own = issuedItems(common, [write], { logged: false });
      if (!fits([...transaction, ...own])) {
        for (const part of inParts(transaction)) await transact(part);
        transaction = [];
      }
      transaction = [...transaction, ...own];
    }
    for (const part of inParts(transaction)) await transact(part);
  }

  /** Every page of a partition. Each begins after the last row of the one before, which may be deleted by then. */
  async function* pagesOf(request: Omit<QueryRequest, 'consistent'>) {
    let after: string | undefined;
    for (let pages = 0; pages < PAGES_MAX; pages += 1) {
      const page = await items.query({ ...request, consistent: true, limit: PAGE_ROWS, ...defined({ after }) });
      yield page.items;
      if (page.next === undefined) return;
      after = page.next;
    }
    throw new StoreFault('too-large', `${request.pk} has more than ${PAGES_MAX} pages`, { retryable: false });
  }

  /** Nothing of it is held until the last page is written. */
  async function fill(resource: string, pages: AsyncIterable<ListedPage>): Promise<void> {
    await erase(resource);
    let through: number | undefined;
    for await (const page of pages) {
      through ??= page.through;
      const steps = page.objects.map((object) => stepOf(resource, object));
      await writeUnlogged(await writesOf(steps));
    }
    const version = through ?? 0;
    const heads = headKeys(resource).map(
      (key): TransactWrite => ({
        kind: 'put',
        key,
        item: changeOf(HEAD, { version, committed: version, logFrom: version }).set,
      }),
    );
    await commit(heads, resource, { cursor: version });
    onChanged(resource);
  }

  /** By sort key: the version of each object that is stored. */
  async function storedVersions(resource: string): Promise<Map<string, number>> {
    const versions = new Map<string, number>();
    for (const pk of partitions(resource, objectPartition)) {
      for await (const rows of pagesOf({ table: 'objects', pk, attributes: [OBJECT.version.name] })) {
        for (const row of rows) versions.set(String(row['sk']), OBJECT.version.of(row));
      }
    }
    return versions;
  }

  /** @returns false if the list is no later state of what is stored: nothing was written */
  async function merge(resource: string, pages: AsyncIterable<ListedPage>): Promise<boolean> {
    const cursor = cursors.get(resource) ?? 0;
    const heads = (await items.getMany(headKeys(resource), { consistent: true })).map((head) =>
      readRow(HEAD, head ?? {}),
    );
    const floor = Math.max(cursor, ...heads.map((head) => head.version ?? 0));
    const missing = await storedVersions(resource);
    const differences: Difference[] = [];
    let through: number | undefined;
    for await (const page of pages) {
      through ??= page.through;
      const changed: KubeObject[] = [];
      for (const object of page.objects) {
        const sk = sortKeyOf(object);
        const stored = missing.get(sk);
        missing.delete(sk);
        if (stored !== resourceVersionOf(object)) changed.push(object);
      }
      const steps = changed.map((object) => stepOf(resource, object));
      const before = await objects.getMany(steps.map(({ ref }) => ref));
      for (const [index, object] of changed.entries()) {
        const { ref, version } = steps[index]!;
        if (version <= floor) return false;
        if (version > through) continue;
        const isAnother = before[index] !== undefined && before[index].metadata.uid !== object.metadata.uid;
        // Packed: all differences are in memory until the last page has come.
        differences.push({ ref, version, text: packText(objectText(object)), replaces: isAnother });
      }
    }
    const version = through ?? 0;
    const gone = [...missing.keys()].map((sk) => refOf(resource, sk));
    const steps = orderedSteps(differences, gone, { floor, through: version });
    // Nothing was committed since then.
    if (version <= floor) return steps?.length === 0;
    if (steps === undefined) return false;
    const logFrom = Math.max(0, ...heads.map((head) => Math.max(head.logFrom ?? 0, head.missedBefore ?? 0)));
    const missed = { logFrom, missedAfter: floor, missedBefore: version };
    await commit(headUpdates(resource, missed), resource, { cursor, unlisted: true });
    await applySteps(resource, steps, { cursor });
    await commit(headUpdates(resource, { version, committed: version }), resource, { cursor: version });
    onChanged(resource);
    return true;
  }

  return {
    load,
    clusterUid: () => state.clusterUid,
    clusterId: () => state.clusterId,
    readAtMs: () => readAtMs,
    wasRead(atMs) {
      readAtMs = atMs;
    },
    holds: (resource) => cursors.has(resource),
    cursor: (resource) => (isUnlisted(resource) ? 0 : (cursors.get(resource) ?? 0)),
    bounds: (resource) => bounds.get(resource),
    async keepBounds(resource, next) {
      await load();
      await keepBounds(resource, next);
    },
    oldestCursor() {
      const stored = Object.values(state.cursors ?? {});
      return stored.length === 0 ? 0 : Math.min(...stored);
    },
    async apply(resource, { changes, through }) {
      await load();
      const cursor = cursors.get(resource) ?? 0;
      const steps = changes.map((change) => changeStep(resource, change)).filter(({ version }) => version > cursor);
      await applySteps(resource, steps);
      cursors = new Map(cursors).set(resource, Math.max(through, cursors.get(resource) ?? 0));
    },
    async list(resource, pages) {
      await load();
      if (cursors.has(resource) && (await merge(resource, pages()))) return;
      await fill(resource, pages());
    },
    isUnfinished: (resource) => state.unfinished?.includes(resource) === true,
    drop,
    async begin(clusterUid) {
      for (const resource of [...cursors.keys(), ...(state.unfinished ?? [])]) await erase(resource);
      const next: State = { clusterUid };
      await transact([stateWrite(next)]);
      state = next;
      readAtMs = undefined;
    },
    keepClusterId: (clusterId) => keep({ clusterId }),
    history: () => state.history,
    keepHistory: (history) => keep({ history }),
  };
}

const withOrWithout = (names: readonly string[] = [], name: string, isIn: boolean): readonly string[] => [
  ...names.filter((each) => each !== name),
  ...(isIn ? [name] : []),
];

const partitions = (resource: string, partition: (resource: string, shard: number) => string): readonly string[] =>
  Array.from({ length: shardsOf(resource) }, (_, shard) => partition(resource, shard));

const headKeys = (resource: string): readonly ItemKey[] =>
  partitions(resource, headPartition).map((pk) => ({ table: 'objects', pk, sk: ALONE }));

const headUpdates = (resource: string, values: RowValues<typeof HEAD>): readonly TransactWrite[] =>
  headKeys(resource).map((key) => ({ kind: 'update', key, set: changeOf(HEAD, values).set }));

const sortKeyOf = ({ metadata: { namespace = '', name = '' } }: KubeObject): string => objectSortKey(namespace, name);

const stepOf = (resource: string, object: KubeObject) => ({
  ref: refOf(resource, sortKeyOf(object)),
  version: resourceVersionOf(object),
  object: () => object,
});

function changeStep(resource: string, { type, object }: ReadChange): Step {
  const { object: written, ...step } = stepOf(resource, object);
  return type === 'DELETED' ? step : { ...step, object: written };
}

const inParts = (writes: readonly TransactWrite[]): readonly (readonly TransactWrite[])[] =>
  Array.from({ length: Math.ceil(writes.length / TRANSACT_WRITES_MAX) }, (_, part) =>
    writes.slice(part * TRANSACT_WRITES_MAX, (part + 1) * TRANSACT_WRITES_MAX),
  );

/** Beside the row of the state. */
function fits(writes: readonly TransactWrite[]): boolean {
  if (writes.length >= TRANSACT_WRITES_MAX) return false;
  return writes.reduce((sum, write) => sum + (write.kind === 'put' ? itemBytes(write.item) : 0), 0) < TRANSACTION_BYTES;
}

/** Of distinct objects each: an item is written once in a transaction. */
function* partsOf(steps: readonly Step[]): Generator<readonly Step[]> {
  let part: Step[] = [];
  const keys = new Set<string>();
  for (const step of steps) {
    const key = objectSortKey(step.ref.namespace, step.ref.name);
    if (part.length === COMMIT_OBJECTS_MAX || keys.has(key)) {
      yield part;
      part = [];
      keys.clear();
    }
    part.push(step);
    keys.add(key);
  }
  if (part.length > 0) yield part;
}

/** An object of a list that is stored in another version, or not at all. */
interface Difference {
  readonly ref: ObjectRef;
  readonly version: number;
  readonly text: StoredText;
  /** The stored one has another uid: it was deleted first. */
  readonly replaces: boolean;
}

/**
 * The differences between a copy and a list as changes, in the order of their versions. A deletion has the highest
 * version that it can have had and that nothing else has: below its successor of the same name, or up to the list.
 *
 * @returns undefined if there are fewer such versions above `floor` than deletions
 */
function orderedSteps(
  differences: readonly Difference[],
  missing: readonly ObjectRef[],
  { floor, through }: { readonly floor: number; readonly through: number },
): readonly Step[] | undefined {
  const used = new Set(differences.map(({ version }) => version));
  const deletion = (ref: ObjectRef, from: number): Step => {
    let version = from;
    while (used.has(version)) version -= 1;
    used.add(version);
    return { ref, version };
  };
  const steps = differences.flatMap(({ ref, version, text: packed, replaces }): readonly Step[] => [
    ...(replaces ? [deletion(ref, version - 1)] : []),
    { ref, version, object: () => JSON.parse(unpackText(packed)) as KubeObject },
  ]);
  let last = through;
  for (const ref of missing) {
    const step = deletion(ref, last);
    last = step.version - 1;
    steps.push(step);
  }
  const sorted = steps.toSorted((one, other) => one.version - other.version);
  return (sorted[0]?.version ?? floor + 1) > floor ? sorted : undefined;
}
