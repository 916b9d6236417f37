/**
 * State of the scheduler in the `control` table:
 *
 *   pk `scheduler` sk `turn`               wanted counts requests for a pass; done the requests that passes have
 *                                          served; busyUntil end of the running pass at the latest (ms), 0 without
 *                                          one; by its id; due when a waiting pod is tried next (ms), absent: none is
 *                  sk `order`              v: incremented by every transaction that binds pods
 *                  sk `pod#<ns>/<name>`    a pod that was tried and is not bound
 *
 * `turn` decides only who works. Two passes at once are safe, because every binding has its own conditions (bind.ts).
 *
 * No request is lost. A request increments `wanted` first and tries to start a pass then. A pass ends by clearing
 * `busyUntil` on the condition that `wanted` is what it was before the pass last read the cluster. Refused, it
 * continues.
 */
import { defined } from '../defined.ts';
import { controlPages, type Item, type ItemKey, type ItemStore, type UpdateWrite } from '../store/item-store.ts';
import { all, any, is, lacks } from '../store/layout.ts';
import { peekTurn, type Turn, turnOf } from '../ticks/due-rows.ts';
import type { PluginName } from './filter.rule.ts';
import type { WaitingPod } from './queue.rule.ts';

const PARTITION = 'scheduler';
const POD_PREFIX = 'pod#';

const keyOf = (sk: string): ItemKey => ({ table: 'control', pk: PARTITION, sk });
export const TURN = keyOf('turn');
const ORDER = keyOf('order');

export interface WaitingRow extends WaitingPod {
  /** `namespace/name`. */
  readonly key: string;
  /** When the pod entered the queue. Epoch milliseconds. */
  readonly queuedAtMs: number;
  /** When the event of its rejection was last written. Epoch milliseconds. */
  readonly eventAtMs: number;
  /** The process that tried it last, and how many changes of the cluster it had seen by then. */
  readonly process: string;
  readonly changesSeen: number;
}

export interface QueueStore {
  /** Requests a pass: one write unit. Returns the turn with the request. */
  request(): Promise<Turn>;
  /** Eventually consistent: half a read unit. */
  peek(): Promise<Turn>;
  /** Starts a pass, unless another one is running. Returns the requests so far. */
  begin(pass: { readonly id: string; readonly nowMs: number; readonly untilMs: number }): Promise<number | 'busy'>;
  /** Requests so far, strongly consistent. */
  wanted(): Promise<number>;
  /** Ends the pass, unless there was a request since `wanted`. */
  end(pass: {
    readonly id: string;
    readonly wanted: number;
    readonly dueAtMs: number | undefined;
  }): Promise<'ended' | 'wanted'>;
  /** Ends a pass that failed. Its requests stay. */
  abandon(id: string): Promise<void>;
  rows(): Promise<readonly WaitingRow[]>;
  putRow(row: WaitingRow): Promise<void>;
  dropRow(key: string): Promise<void>;
  /** Version of the order of bindings, strongly consistent. */
  orderVersion(): Promise<number>;
}

export const orderVersionOf = (item: Item | undefined): number => (item?.['v'] as number | undefined) ?? 0;

/** For the transaction that binds pods by the state that was read at `seenVersion`. */
export const advanceOrder = (seenVersion: number): UpdateWrite => ({
  kind: 'update',
  key: ORDER,
  add: { v: 1 },
  when: seenVersion === 0 ? lacks('v') : is('v', seenVersion),
});

export const queueStore = (items: ItemStore): QueueStore => ({
  async request() {
    const outcome = await items.write({ kind: 'update', key: TURN, add: { wanted: 1 } }, { returnItem: true });
    return turnOf(outcome.kind === 'written' ? outcome.item : undefined);
  },

  peek: () => peekTurn(items, TURN),

  async begin({ id, nowMs, untilMs }) {
    const outcome = await items.write(
      {
        kind: 'update',
        key: TURN,
        set: { busyUntil: untilMs, by: id },
        when: any(lacks('busyUntil'), { kind: 'compare', attribute: 'busyUntil', op: '<=', value: nowMs }),
      },
      { returnItem: true },
    );
    return outcome.kind === 'written' ? turnOf(outcome.item).wanted : 'busy';
  },

  wanted: async () => turnOf(await items.get(TURN, { consistent: true })).wanted,

  async end({ id, wanted, dueAtMs }) {
    const outcome = await items.write({
      kind: 'update',
      key: TURN,
      set: { busyUntil: 0, done: wanted, ...defined({ due: dueAtMs }) },
      remove: dueAtMs === undefined ? ['due'] : [],
      // Another pass has begun since: it ends by itself.
      when: all(is('by', id), wanted === 0 ? lacks('wanted') : is('wanted', wanted)),
    });
    if (outcome.kind === 'written') return 'ended';
    return outcome.current?.['by'] === id ? 'wanted' : 'ended';
  },

  async abandon(id) {
    await items.write({ kind: 'update', key: TURN, set: { busyUntil: 0 }, when: is('by', id) });
  },

  async rows() {
    const rows: WaitingRow[] = [];
    const pages = controlPages(items, PARTITION, {
      consistent: true,
      tooMany: 'more pods wait for the scheduler than one read may return',
    });
    for await (const page of pages) {
      for (const item of page) if ((item['sk'] as string).startsWith(POD_PREFIX)) rows.push(rowOf(item));
    }
    return rows;
  },

  async putRow({ key, uid, rejections, errors, triedAtMs, plugins, isRequeued, ...rest }) {
    const item: Item = {
      u: uid,
      k: rejections,
      e: errors,
      t: triedAtMs,
      p: [...plugins],
      q: rest.queuedAtMs,
      v: rest.eventAtMs,
      by: rest.process,
      n: rest.changesSeen,
      ...defined({ r: isRequeued ? 1 : undefined }),
    };
    await items.write({ kind: 'put', key: keyOf(`${POD_PREFIX}${key}`), item });
  },

  async dropRow(key) {
    await items.write({ kind: 'delete', key: keyOf(`${POD_PREFIX}${key}`) });
  },

  orderVersion: async () => orderVersionOf(await items.get(ORDER, { consistent: true })),
});

const rowOf = (item: Item): WaitingRow => ({
  key: (item['sk'] as string).slice(POD_PREFIX.length),
  uid: item['u'] as string,
  rejections: item['k'] as number,
  errors: item['e'] as number,
  triedAtMs: item['t'] as number,
  plugins: item['p'] as PluginName[],
  isRequeued: item['r'] === 1,
  queuedAtMs: item['q'] as number,
  eventAtMs: item['v'] as number,
  process: item['by'] as string,
  changesSeen: item['n'] as number,
});
