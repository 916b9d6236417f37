/**
 * What node-monitor and evictor know of the fleet as a whole, in one partition of the `control` table, so that a quiet
 * tick reads it by one query:
 *
 *   state            slot the last slot claimed, fence, at when (ms); doneAt when the last tick that finished began (ms);
 *                    gate JSON of the gate's record; holding 1 while the gate holds;
 *                    disruption JSON of its record; total 1 during total disruption; nodes how many it saw
 *   zone#<zone>      state as judged last, absent while no node counts; ratePerSecond and tatMs, the limiter; hold why
 *                    nobody of those who wait is tainted, as last told to the ledger
 *   queue#<zone>#<node>   a node that waits for its zone's limiter: uid, addedAtMs
 *
 * The claim of node-monitor's tick carries what the tick has decided about ourselves: gate, probes and total disruption. So a
 * quiet tick is one write, a tick that dies half-way has said so already, and whoever decided on an older state loses the
 * claim. Evictor decides nothing about ourselves and has nothing to carry: it looks first, and claims in an item of its
 * own (`tick#evictor`: slot, fence, at) what slots it has work in. The rule of who wins is one for both (domain/tick.ts); one
 * item for both would make a controller lose its claim, and decide again, for a tick of the other.
 *
 * The queue is read whole and ordered in memory: a key by due time would make "take this node out, now" a search.
 */

import { claimSlot } from '../domain/tick.ts';
import { type DisruptionRecord, NO_DISRUPTION } from '../domain/zones/disruption.ts';
import type { QueuedNode, ZoneRecord } from '../domain/zones/fleet-records.ts';
import { type GateRecord, UNTRIED_GATE } from '../domain/zones/gate.ts';
import { changeRateUpdates, type Limiter, type LimiterUpdate } from '../domain/zones/limiter.ts';
import type { ZoneState } from '../domain/zones/zone-state.ts';
import type {
  CheckWrite,
  Condition,
  DeleteWrite,
  Item,
  ItemKey,
  ItemStore,
  PutWrite,
  UpdateWrite,
  Write,
} from '../ports/item-store.ts';
import { all, any, is, lacks } from './conditions.ts';
import { controlPages } from './control-pages.ts';
import { ALONE } from './layout.ts';

const PARTITION = 'fleet';
const STATE = 'state';
const ZONE_PREFIX = 'zone#';
const QUEUE_PREFIX = 'queue#';

export interface FleetState {
  /** The last slot of node-monitor that was claimed; undefined before the first. */
  readonly slot: number | undefined;
  /** Grows with every claim; 0 before the first. */
  readonly fence: number;
  readonly gate: GateRecord;
  readonly disruption: DisruptionRecord;
  /** How many Nodes the last claimed tick saw; undefined before the first. */
  readonly nodes: number | undefined;
}

export interface FleetRecords {
  readonly state: FleetState;
  readonly zones: readonly FleetZone[];
  readonly queue: readonly QueuedNode[];
}

export interface FleetZone extends ZoneRecord {
  /** Why evictor tainted nobody of those who wait, as last told to the ledger; absent while nothing holds it. */
  readonly hold?: string;
}

export interface MonitorClaim {
  readonly slot: number;
  /** Fence of the state the decisions rest on. */
  readonly seenFence: number;
  readonly nowMs: number;
  readonly gate: GateRecord;
  readonly disruption: DisruptionRecord;
  /** How many Nodes it saw. */
  readonly nodes: number;
  /** Nothing is left to be done: the claim finishes its tick as well. */
  readonly finished: boolean;
  /** Told with what is claimed, such as records of what was decided about ourselves. Absent in a quiet tick. */
  readonly along?: readonly PutWrite[];
}

export type MonitorClaimOutcome =
  | { readonly kind: 'claimed' }
  /** This slot, or a later one, is somebody else's. */
  | { readonly kind: 'lost' }
  /** An earlier slot was claimed since `seenFence`: decide again on this state. */
  | { readonly kind: 'overtaken'; readonly state: FleetState };

export interface FleetStore {
  /** All of it, strongly consistent. A quiet fleet takes one read unit. */
  read(): Promise<FleetRecords>;
  /** The state alone, strongly consistent. */
  readState(): Promise<FleetState>;
  /** A tick of node-monitor, with what it decided about ourselves. */
  claim(claim: MonitorClaim): Promise<MonitorClaimOutcome>;
  /**
   * A tick of a controller that has nothing to store with it: one conditional update. A claim whose answer was lost and
   * that the SDK sent again is refused by its own success and told `lost`: the slot is then nobody's, which costs one tick
   * and is safe.
   */
  claimBare(controller: string, slot: number, nowMs: number): Promise<'claimed' | 'lost'>;
  /** The tick that began then has done all it could. */
  finish(beganAtMs: number): Promise<void>;
  /** Makes the record of a zone, with a full limiter, unless there is one. */
  createZone(
    zone: string,
    first: { readonly state: ZoneState | undefined; readonly ratePerSecond: number },
    along?: PutWrite,
  ): Promise<void>;
  /** Sets the state of a zone that still has the state `from`. */
  setZoneState(zone: string, from: ZoneState | undefined, to: ZoneState | undefined, along?: PutWrite): Promise<void>;
  /** Notes why nobody of the zone is tainted, if it stands noted as `from`; undefined: nobody waits. */
  setHold(zone: string, from: string | undefined, to: string | undefined, along?: PutWrite): Promise<void>;
  /** Changes the rate of a limiter that still runs at `fromPerSecond`. */
  setZoneRate(
    zone: string,
    at: { readonly nowMs: number; readonly fromPerSecond: number; readonly toPerSecond: number },
    along?: PutWrite,
  ): Promise<void>;
  /** Drops the record of a zone whose limiter is full: it is as good as a new one. */
  dropZone(zone: string, nowMs: number): Promise<void>;
  /** Puts a node into its zone's queue unless it waits there already. */
  enqueue(item: QueuedNode): Promise<'written' | 'refused'>;
  /** Takes a node out of its zone's queue, if it is this uid that waits there. */
  dequeue(item: { readonly zone: string; readonly nodeName: string; readonly uid: string }): Promise<void>;
}

const keyOf = (sk: string): ItemKey => ({ table: 'control', pk: PARTITION, sk });
const stateKey = keyOf(STATE);
const zoneKey = (zone: string): ItemKey => keyOf(`${ZONE_PREFIX}${zone}`);
const queueKey = (zone: string, nodeName: string): ItemKey => keyOf(`${QUEUE_PREFIX}${zone}#${nodeName}`);

/**
 * For a commit's `extra`: taints may be added. Holds while the gate is open and there is no total disruption, at the
 * moment of the commit, however long ago it was decided.
 */
export const mayTaint: CheckWrite = { kind: 'check', key: stateKey, when: all(lacks('holding'), lacks('total')) };

/** For a commit's `extra`: takes a token of the zone's limiter, or refuses the commit. */
export const takeTokenWrite = (zone: string, update: LimiterUpdate): UpdateWrite => ({
  kind: 'update',
  key: zoneKey(zone),
  ...writeOf(update),
});

/** For a commit's `extra`: this very entry leaves the queue, or the commit is refused because it has left already. */
export const leaveQueueWrite = (item: QueuedNode): DeleteWrite => ({
  kind: 'delete',
  key: queueKey(item.zone, item.nodeName),
  when: all(is('uid', item.uid), is('addedAtMs', item.addedAtMs)),
});

export function fleetStore(items: ItemStore): FleetStore {
  /** Refused also when it met another write in the same moment: the next tick decides again. */
  const writeWith = async (write: Write, along: PutWrite | undefined): Promise<'written' | 'refused'> => {
    const outcome = along === undefined ? await items.write(write) : await items.transact([write, along]);
    return outcome.kind === 'written' ? 'written' : 'refused';
  };
  return {
    async read() {
      let state: FleetState = stateOf(undefined);
      const zones: FleetZone[] = [];
      const queue: QueuedNode[] = [];
      const pages = controlPages(items, PARTITION, {
        consistent: true,
        tooMany: 'more control records of the fleet than one read takes',
      });
      for await (const page of pages) {
        for (const item of page) {
          const sk = item['sk'] as string;
          if (sk === STATE) state = stateOf(item);
          else if (sk.startsWith(ZONE_PREFIX)) zones.push(zoneOf(item));
          else if (sk.startsWith(QUEUE_PREFIX)) queue.push(queuedNodeOf(item));
        }
      }
      return { state, zones, queue };
    },

    readState: async () => stateOf(await items.get(stateKey, { consistent: true })),

    async claim({ slot, seenFence, nowMs, gate, disruption, nodes, finished, along = [] }) {
      const { lastTickAtMs: _, ...kept } = gate;
      const holding = gate.reasons.length > 0;
      const next = claimSlot(slot);
      const claim: UpdateWrite = {
        kind: 'update',
        key: stateKey,
        set: {
          ...next.set,
          at: nowMs,
          gate: JSON.stringify(kept),
          disruption: JSON.stringify(disruption),
          nodes,
          ...(holding ? { holding: 1 } : {}),
          ...(disruption.total ? { total: 1 } : {}),
          ...(finished ? { doneAt: nowMs } : {}),
        },
        add: next.add,
        remove: [...(holding ? [] : ['holding']), ...(disruption.total ? [] : ['total'])],
        when: all(next.when as Condition, seenFence === 0 ? lacks('fence') : is('fence', seenFence)),
      };
      if (along.length > 0) {
        const outcome = await items.transact([claim, ...along]);
        if (outcome.kind === 'written') return { kind: 'claimed' };
        const refused = outcome.kind === 'refused' ? outcome.failures.find(({ index }) => index === 0) : undefined;
        return notClaimed(refused === undefined ? (await this.read()).state : stateOf(refused.current), slot);
      }
      const outcome = await items.write(claim);
      return outcome.kind === 'written' ? { kind: 'claimed' } : notClaimed(stateOf(outcome.current), slot);
    },

    async claimBare(controller, slot, nowMs) {
      const { set, add, when } = claimSlot(slot);
      const outcome = await items.write({
        kind: 'update',
        key: { table: 'control', pk: `tick#${controller}`, sk: ALONE },
        set: { ...set, at: nowMs },
        add,
        when: when as Condition,
      });
      return outcome.kind === 'written' ? 'claimed' : 'lost';
    },

    async finish(beganAtMs) {
      await items.write({
        kind: 'update',
        key: stateKey,
        set: { doneAt: beganAtMs },
        when: any(lacks('doneAt'), { kind: 'compare', attribute: 'doneAt', op: '<', value: beganAtMs }),
      });
    },

    async createZone(zone, { state, ratePerSecond }, along) {
      await writeWith(
        {
          kind: 'put',
          key: zoneKey(zone),
          item: { ratePerSecond, ...(state === undefined ? {} : { state }) },
          when: { kind: 'itemAbsent' },
        },
        along,
      );
    },

    async setHold(zone, from, to, along) {
      await writeWith(
        {
          kind: 'update',
          key: zoneKey(zone),
          ...(to === undefined ? { remove: ['hold'] } : { set: { hold: to } }),
          when: all({ kind: 'has', attribute: 'ratePerSecond' }, from === undefined ? lacks('hold') : is('hold', from)),
        },
        along,
      );
    },

    async setZoneState(zone, from, to, along) {
      await writeWith(
        {
          kind: 'update',
          key: zoneKey(zone),
          ...(to === undefined ? { remove: ['state'] } : { set: { state: to } }),
          // Never made by this: a zone without its limiter would find a full bucket (L3).
          when: all(
            { kind: 'has', attribute: 'ratePerSecond' },
            from === undefined ? lacks('state') : is('state', from),
          ),
        },
        along,
      );
    },

    async setZoneRate(zone, at, along) {
      for (const update of changeRateUpdates(at)) {
        const outcome = await writeWith({ kind: 'update', key: zoneKey(zone), ...writeOf(update) }, along);
        if (outcome === 'written') return;
      }
    },

    async dropZone(zone, nowMs) {
      await items.write({
        kind: 'delete',
        key: zoneKey(zone),
        when: any(lacks('tatMs'), { kind: 'compare', attribute: 'tatMs', op: '<=', value: nowMs }),
      });
    },

    async enqueue({ zone, nodeName, uid, addedAtMs }) {
      const outcome = await items.write({
        kind: 'put',
        key: queueKey(zone, nodeName),
        item: { uid, addedAtMs },
        when: { kind: 'itemAbsent' },
      });
      return outcome.kind;
    },

    async dequeue({ zone, nodeName, uid }) {
      await items.write({ kind: 'delete', key: queueKey(zone, nodeName), when: is('uid', uid) });
    },
  };
}

const notClaimed = (state: FleetState, slot: number): MonitorClaimOutcome =>
  state.slot !== undefined && state.slot >= slot ? { kind: 'lost' } : { kind: 'overtaken', state };

const writeOf = ({ when, set }: LimiterUpdate): Pick<UpdateWrite, 'when' | 'set'> => ({
  when: when as Condition,
  set: { ...set } as Item,
});

function stateOf(item: Item | undefined): FleetState {
  const gate = item?.['gate'] as string | undefined;
  const disruption = item?.['disruption'] as string | undefined;
  const doneAtMs = item?.['doneAt'] as number | undefined;
  return {
    slot: item?.['slot'] as number | undefined,
    fence: (item?.['fence'] as number | undefined) ?? 0,
    gate: { ...UNTRIED_GATE, ...(gate === undefined ? {} : JSON.parse(gate)), lastTickAtMs: doneAtMs },
    disruption: disruption === undefined ? NO_DISRUPTION : (JSON.parse(disruption) as DisruptionRecord),
    nodes: item?.['nodes'] as number | undefined,
  };
}

const limiterOf = (item: Item): Limiter => ({
  tatMs: item['tatMs'] as number | undefined,
  ratePerSecond: (item['ratePerSecond'] as number | undefined) ?? 0,
});

const zoneOf = (item: Item): FleetZone => ({
  zone: (item['sk'] as string).slice(ZONE_PREFIX.length),
  state: item['state'] as ZoneState | undefined,
  limiter: limiterOf(item),
  ...(item['hold'] === undefined ? {} : { hold: item['hold'] as string }),
});

function queuedNodeOf(item: Item): QueuedNode {
  const rest = (item['sk'] as string).slice(QUEUE_PREFIX.length);
  // Neither label values nor node names hold a '#'.
  const divide = rest.indexOf('#');
  return {
    zone: rest.slice(0, divide),
    nodeName: rest.slice(divide + 1),
    uid: item['uid'] as string,
    addedAtMs: item['addedAtMs'] as number,
  };
}
