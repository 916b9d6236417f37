/**
 * The tables of a long run: the memory store, with the heartbeats of the closed form in its rows of nodes. A scan of
 * the `health` table returns a row per node with the receipt time of its last heartbeat. Every other read and every
 * write is the memory store's. Before an access to a row its receipt time is written there. Conditions on it then
 * decide as in DynamoDB.
 *
 * Scans are eventually consistent: each partition may show the fleet as it was some seconds ago (`staleReads`).
 */

import { fleetKeyOf } from '../../shared/fleet/fleet-store.ts';
import { healthWritesFor } from '../../shared/fleet/nodes/change-node.ts';
import { withoutPlannedSilence, withProfile, withSilenceMarks } from '../../shared/fleet/nodes/node-digest.ts';
import { PLANNED_UNTIL_ANNOTATION } from '../../shared/fleet/nodes/planned-silence.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import type {
  Item,
  ItemKey,
  ItemStore,
  ScanPage,
  ScanRequest,
  TransactOutcome,
  TransactWrite,
  Write,
  WriteOptions,
  WriteOutcome,
} from '../../shared/store/item-store.ts';
import { healthKey } from '../../shared/store/layout.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { segmentOf } from '../../shared/store/writes/page-items.ts';
import type { FaultPlan } from '../faults/catalogue.ts';
import { readyNode } from '../ready-node.ts';
import { seededUuid } from '../seeded-random.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { Heartbeats } from './heartbeats.ts';
import { type Kind, labelsOf, relabelled } from './mixed-fleet.ts';

/** The share is that of faulty-store.ts. */
const STALE_SHARE = 0.9;
const STALE_MAX_MS = 3_000;
/** Nodes registered in one commit at the start. */
const NODES_PER_COMMIT = 16;
/** Attempts to change a Node that another writer changes too. */
const CHANGE_ATTEMPTS_MAX = 5;
const UNKNOWN = 'U';
/** Items with a time to live are deleted this often. Milliseconds. */
export const EXPIRE_EVERY_MS = 600_000;

export interface FleetTablesOptions {
  readonly nodes: number;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly heartbeats: Heartbeats;
  readonly fraction: () => number;
  /** The node has just been marked Unknown. */
  readonly onMarked: (node: number) => void;
  /** The state of node-monitor has changed. */
  readonly onState: (state: Item) => void;
  /** A machine registered again: its Node is a new one. */
  readonly onReplaced: (node: number) => void;
  /** The stored name of its profile has changed. */
  readonly onProfile: (node: number) => void;
  readonly kindOf: (node: number) => Kind;
  readonly zoneOf: (node: number) => string;
  /** The policy of the API. */
  readonly policy: () => Policy;
}

type Row = { -readonly [Name in keyof Item]: Item[Name] };

const isState = (key: ItemKey): boolean => key.table === 'control' && fleetKeyOf(key)?.kind === 'state';
export const nameOf = (node: number): string => `m-${node}`;
export const nodeNamed = (name: string): number => Number(name.slice('m-'.length));
const nodeOf = ({ sk }: ItemKey): number => nodeNamed(sk);
const isRow = ({ table, sk }: ItemKey): boolean => table === 'health' && sk.startsWith('m-');

export class FleetTables implements ItemStore {
  readonly #options: FleetTablesOptions;
  readonly #memory: MemoryItemStore = memoryItemStore();
  readonly #rows: Row[] = [];
  /** A row before its last change, and when that was: for reads that lag behind. */
  readonly #before = new Map<number, { readonly row: Row; readonly changedMs: number }>();
  /** True time of the heartbeat that the row shows. */
  readonly #shownMs: Float64Array;
  readonly #partitions = new Map<string, number[]>();
  #rowsRead = 0;

  constructor(options: FleetTablesOptions) {
    this.#options = options;
    this.#shownMs = new Float64Array(options.nodes);
    for (let node = 0; node < options.nodes; node += 1) {
      const { pk } = healthKey(nameOf(node));
      const partition = this.#partitions.get(pk);
      if (partition === undefined) this.#partitions.set(pk, [node]);
      else partition.push(node);
    }
  }

  /** Rows that scans returned: nodes that the rule evaluated. */
  get rowsRead(): number {
    return this.#rowsRead;
  }

  isMarked(node: number): boolean {
    return this.#rows[node]?.['y'] === UNKNOWN;
  }

  /** Stored name of its profile; undefined: `default`. */
  profileOf(node: number): string | undefined {
    return this.#rows[node]?.['P'] as string | undefined;
  }

  /** Registers every machine. */
  async registerAll(): Promise<void> {
    const { nodes } = this.#options;
    for (let first = 0; first < nodes; first += NODES_PER_COMMIT) {
      const count = Math.min(NODES_PER_COMMIT, nodes - first);
      await this.#register(Array.from({ length: count }, (_, index) => first + index));
    }
  }

  /** The Node is deleted and registered again, with a new uid. `isReady: false`: without a status. */
  async replace(node: number, { isReady = true } = {}): Promise<void> {
    const { time, onReplaced, onProfile } = this.#options;
    const profile = this.profileOf(node);
    const objects = this.#objects();
    const ref = nodeRef(node);
    const previous = await objects.get(ref);
    if (previous === undefined) throw new Error(`${nameOf(node)} has no Node`);
    const outcome = await objects.commit({
      writes: [{ kind: 'delete', ref, previous }],
      extra: healthWritesFor({ kind: 'delete', old: previous }),
    });
    if (outcome.kind !== 'committed') throw new Error(`${nameOf(node)} could not be deleted: ${outcome.kind}`);
    this.#options.heartbeats.register(node, time.nowMs());
    await this.#register([node], isReady);
    this.#before.delete(node);
    onReplaced(node);
    if (this.profileOf(node) !== profile) onProfile(node);
  }

  /** A person labels the machine as this kind. */
  async relabel(node: number, kind: Kind): Promise<void> {
    await this.#change(node, ({ metadata, ...rest }) =>
      withProfile(
        { ...rest, metadata: { ...metadata, labels: relabelled(metadata.labels, kind) } },
        this.#options.policy().profiles,
      ),
    );
  }

  /** The Node announces that no heartbeat is to be expected until then. */
  async promiseSilence(node: number, untilMs: number): Promise<void> {
    await this.#change(node, ({ metadata, ...rest }, nowMs) => {
      const annotations = { ...metadata.annotations, [PLANNED_UNTIL_ANNOTATION]: rfc3339(untilMs) };
      return withSilenceMarks({ ...rest, metadata: { ...metadata, annotations } }, nowMs);
    });
  }

  /** False without a promise. */
  endPromise(node: number): Promise<boolean> {
    return this.#change(node, (stored, nowMs) =>
      stored.metadata.annotations?.[PLANNED_UNTIL_ANNOTATION] === undefined
        ? stored
        : withoutPlannedSilence(stored, nowMs),
    );
  }

  /** The first status of a machine that registered without one. */
  async postReady(node: number): Promise<void> {
    const { status } = this.#nodeOf(node, this.#options.time.nowMs());
    await this.#change(node, (stored) => ({ ...stored, status: { ...stored.status, ...status } }), true);
  }

  /** Deletes what time to live deletes, and images that no read can show any more. */
  expire(): void {
    for (const [node, { changedMs }] of this.#before) {
      if (changedMs < this.#options.time.nowMs() - STALE_MAX_MS) this.#before.delete(node);
    }
    this.#memory.expire('objects', this.#options.time.nowMs() / 1_000);
  }

  get(...[key, at]: Parameters<ItemStore['get']>): Promise<Item | undefined> {
    this.#writeReceipts([{ key }]);
    return this.#memory.get(key, at);
  }

  getMany(...[keys, at]: Parameters<ItemStore['getMany']>): ReturnType<ItemStore['getMany']> {
    this.#writeReceipts(keys.map((key) => ({ key })));
    return this.#memory.getMany(keys, at);
  }

  query(...[request]: Parameters<ItemStore['query']>): ReturnType<ItemStore['query']> {
    return this.#memory.query(request);
  }

  /** One page per segment: a fleet of some thousands. */
  async scan(request: ScanRequest): Promise<ScanPage> {
    if (request.table !== 'health') return this.#memory.scan(request);
    const { time, plan } = this.#options;
    const items: Item[] = [];
    // A frozen process reads its answer after later scans.
    const keepsAnswer = plan.severity('freeze') > 0;
    for (const [pk, nodes] of this.#partitions) {
      if (segmentOf(pk, request.segments) !== request.segment) continue;
      const isStale = plan.strikes('staleReads', STALE_SHARE);
      const atMs = time.nowMs() - (isStale ? plan.fraction('staleReads') * STALE_MAX_MS : 0);
      for (const node of nodes) {
        const row = this.#rowAt(node, atMs);
        items.push(keepsAnswer ? { ...row } : row);
      }
    }
    this.#rowsRead += items.length;
    return { items };
  }

  async write(write: Write, options?: WriteOptions): Promise<WriteOutcome> {
    this.#writeReceipts([write]);
    const outcome = await this.#memory.write(write, options);
    if (outcome.kind === 'written') await this.#afterWrites([write]);
    return outcome;
  }

  async transact(writes: readonly TransactWrite[]): Promise<TransactOutcome> {
    this.#writeReceipts(writes);
    const outcome = await this.#memory.transact(writes);
    if (outcome.kind === 'written') await this.#afterWrites(writes);
    return outcome;
  }

  /** The row as it was at this moment. Valid until the next scan. */
  #rowAt(node: number, atMs: number): Row {
    const { heartbeats } = this.#options;
    const lastMs = heartbeats.lastMs(node, atMs);
    const before = this.#before.size === 0 ? undefined : this.#before.get(node);
    if (before !== undefined && before.changedMs > atMs) {
      before.row['r'] = heartbeats.receiptMs(node, lastMs);
      return before.row;
    }
    const row = this.#rows[node]!;
    if (this.#shownMs[node] !== lastMs) {
      row['r'] = heartbeats.receiptMs(node, lastMs);
      this.#shownMs[node] = lastMs;
    }
    return row;
  }

  #writeReceipts(of: readonly { readonly key: ItemKey }[]): void {
    const { heartbeats, time } = this.#options;
    for (const { key } of of) {
      if (!isRow(key) || this.#rows[nodeOf(key)] === undefined) continue;
      const r = heartbeats.receiptMs(nodeOf(key), heartbeats.lastMs(nodeOf(key), time.nowMs()));
      // The memory store applies a write during the call.
      void this.#memory.write({ kind: 'update', key, set: { r } });
    }
  }

  async #afterWrites(writes: readonly TransactWrite[]): Promise<void> {
    for (const { key, kind } of writes) {
      if (kind === 'check') continue;
      if (isState(key)) this.#options.onState((await this.#memory.get(key, { consistent: true }))!);
      if (isRow(key)) await this.#afterRowWrite(key);
    }
  }

  async #afterRowWrite(key: ItemKey): Promise<void> {
    const { time, onMarked, onProfile } = this.#options;
    const node = nodeOf(key);
    const item = await this.#memory.get(key, { consistent: true });
    const before = this.#rows[node];
    if (item === undefined || before === undefined) return;
    const row: Row = { ...item };
    this.#rows[node] = row;
    this.#shownMs[node] = 0;
    this.#before.set(node, { row: before, changedMs: time.nowMs() });
    if (row['y'] === UNKNOWN && before['y'] !== UNKNOWN) onMarked(node);
    if (row['P'] !== before['P']) onProfile(node);
  }

  /** False if the change is none. */
  async #change(
    node: number,
    change: (stored: KubeNode, nowMs: number) => KubeNode,
    statusPost = false,
  ): Promise<boolean> {
    const { heartbeats, time } = this.#options;
    const ref = nodeRef(node);
    // By the clock of a process of the API.
    const nowMs = heartbeats.receiptMs(node, time.nowMs());
    const objects = this.#objects();
    for (let attempt = 0; attempt < CHANGE_ATTEMPTS_MAX; attempt += 1) {
      const old = await objects.get(ref);
      if (old === undefined) return false;
      const next = change(old, nowMs);
      if (next === old) return false;
      const outcome = await objects.commit({
        writes: [{ kind: 'update', ref, object: next, previous: old }],
        extra: healthWritesFor({ kind: 'update', next, old, statusPost, nowMs }),
      });
      if (outcome.kind !== 'committed') continue;
      await this.#afterRowWrite(healthKey(nameOf(node)));
      return true;
    }
    throw new Error(`${nameOf(node)} could not be changed in ${CHANGE_ATTEMPTS_MAX} attempts`);
  }

  #nodeOf(node: number, nowMs: number): KubeNode {
    const { fraction, kindOf, zoneOf, policy } = this.#options;
    const found = readyNode(nameOf(node), zoneOf(node), nowMs, seededUuid(fraction));
    const labels = { ...found.metadata.labels, ...labelsOf(kindOf(node)) };
    return withProfile({ ...found, metadata: { ...found.metadata, labels } }, policy().profiles);
  }

  async #register(nodes: readonly number[], isReady = true): Promise<void> {
    const { time, heartbeats } = this.#options;
    const nowMs = time.nowMs();
    const all = nodes.map((node) => {
      const found = this.#nodeOf(node, nowMs);
      return isReady ? found : { ...found, status: { ...found.status, conditions: [] } };
    });
    const outcome = await this.#objects().commit({
      writes: all.map((object, index) => ({ kind: 'create', ref: nodeRef(nodes[index]!), object })),
      extra: all.flatMap((next) => healthWritesFor({ kind: 'create', next, statusPost: isReady, nowMs })),
    });
    if (outcome.kind !== 'committed') throw new Error(`Nodes could not be registered: ${outcome.kind}`);
    for (const node of nodes) {
      const r = heartbeats.receiptMs(node, nowMs);
      const item = await this.#memory.get(healthKey(nameOf(node)), { consistent: true });
      // Creation and first status are of our clock, too.
      this.#rows[node] = { ...item!, r, b: r, ...(isReady ? { l: r } : {}) };
      this.#shownMs[node] = 0;
      const { pk: _, sk: __, ...set } = this.#rows[node];
      await this.#memory.write({ kind: 'update', key: healthKey(nameOf(node)), set });
    }
  }

  #objects() {
    const { time, fraction } = this.#options;
    const random = { fraction, uuid: () => seededUuid(fraction) };
    return clusterObjects({ items: this.#memory, clock: time, random });
  }
}

const nodeRef = (node: number) => ({ resource: 'nodes', namespace: '', name: nameOf(node) });
