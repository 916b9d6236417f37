/**
 * State of the fleet that node-monitor and evictor share, in one partition of the `control` table. A quiet tick reads
 * it by one query:
 *
 *   state            the last claim, and what it decided (STATE_ROW)
 *   zone#<zone>      state and limiter of a zone (ZONE_ROW)
 *   profiles         progress of the evaluation of Nodes after a change of the policy's profiles: of, sinceMs, round,
 *                    after
 *   queue#<zone>#<node>   a node that waits for its zone's limiter (QUEUE_ROW)
 *
 * The claim of a node-monitor tick also stores what the tick decided about our own health: gate, probes, total
 * disruption.
 *   - A quiet tick is one write.
 *   - If the tick is killed later, its decision is already stored.
 *   - A tick that decided on an older state loses the claim.
 * Evictor makes no such decision. It reads first, and claims only slots in which it has work, in an item of its own
 * (`tick#evictor`: slot, fence, at). Both use one rule for claims (tick.ts). With one item for both, a tick of
 * one controller would make the other lose its claim.
 *
 * The queue is read completely and sorted in memory. With due times as keys, a node could not be removed by its name.
 */
import { defined } from '../defined.ts';
import {
  type CheckWrite,
  controlPages,
  type DeleteWrite,
  type Item,
  type ItemKey,
  type ItemPosition,
  type ItemStore,
  type PutWrite,
  type UpdateWrite,
  type Write,
} from '../store/item-store.ts';
import {
  ALONE,
  type Attribute,
  all,
  any,
  below,
  changeOf,
  flag,
  holds,
  is,
  json,
  number,
  present,
  readRow,
  text,
  word,
} from '../store/layout.ts';
import { CLAIMED_SECONDS, type ClaimedSlot, claimSlot, slotStartMs } from '../ticks/tick.ts';
import type { QueuedNode, ZoneRecord } from './fleet-records.ts';
import { type GateRecord, type Probe, type ProfileGate, UNTRIED_GATE } from './gate.ts';
import { changeRateUpdates, type LimiterUpdate } from './limiter.ts';
import { type DisruptionRecord, NO_DISRUPTION, type ZoneState } from './zone-state.ts';

const PARTITION = 'fleet';
const STATE = 'state';
const PROFILES = 'profiles';
const ZONE_PREFIX = 'zone#';
const QUEUE_PREFIX = 'queue#';

export interface FleetState {
  /** The last slot that node-monitor claimed; undefined before the first. */
  readonly slot: number | undefined;
  /** When it began. Epoch milliseconds; undefined before the first. */
  readonly slotStartMs?: number | undefined;
  /** Grows with every claim; 0 before the first. */
  readonly fence: number;
  readonly gate: GateRecord;
  readonly disruption: DisruptionRecord;
  /** When the last slot was claimed. Epoch milliseconds; undefined before the first. */
  readonly claimedAtMs: number | undefined;
  /** The id of the tick that claimed it. */
  readonly claimId: string | undefined;
  /** Number of Nodes that the last claimed tick read; undefined before the first. */
  readonly nodes: number | undefined;
  /** Ticks that sent parts to node-marker; undefined before the first. */
  readonly sent: SentParts | undefined;
  /** When the probe of a look between two ticks last failed; undefined: never. Epoch milliseconds. */
  readonly lookFailedAtMs: number | undefined;
}

/** When ticks sent parts to node-marker (shared/fleet/mark-parts.ts). */
export interface SentParts {
  /** The last tick that sent every silent node. Epoch milliseconds. */
  readonly fullAtMs: number;
  /** The last tick that sent any. Epoch milliseconds. */
  readonly lastAtMs: number;
}

export interface FleetRecords {
  readonly state: FleetState;
  readonly zones: readonly FleetZone[];
  readonly queue: readonly QueuedNode[];
  /** undefined: the cluster never had profiles. */
  readonly profileSweep?: ProfileSweep | undefined;
}

/** How far the evaluation of Nodes after a change of the policy's profiles is. */
export interface ProfileSweep {
  /** Hash of the names and selectors that it evaluates. */
  readonly of: string;
  /** When a tick first saw them. Epoch milliseconds. */
  readonly sinceMs: number;
  /** 3: both rounds are finished. */
  readonly round: 1 | 2 | 3;
  /** Name of the last Node that was evaluated in this round; '' before the first. */
  readonly after: string;
  /** A Node failed in this round; absent: none. */
  readonly failed?: true | undefined;
  /** A repeated round begins at this time; absent: the round is not repeated. Epoch milliseconds. */
  readonly againAtMs?: number | undefined;
}

export interface FleetZone extends ZoneRecord {
  /** The last recorded reason why evictor taints no queued node; absent while there is none. */
  readonly hold?: string;
  /** Tokens acquired since the record was created; absent: none. */
  readonly evictions?: number;
}

export interface MonitorClaim extends ClaimedSlot {
  /** Fence of the state that the decisions are based on. */
  readonly seenFence: number;
  readonly nowMs: number;
  /** The id of the tick that claims: its claim may be sent twice, and be refused by itself. */
  readonly claimId: string;
  readonly gate: GateRecord;
  readonly disruption: DisruptionRecord;
  /** Number of Nodes that the tick read. */
  readonly nodes: number;
  /** No work is left: the claim also finishes the tick. */
  readonly finished: boolean;
  /** Written in one transaction with the claim, such as decision records. Absent in a quiet tick. */
  readonly along?: readonly PutWrite[];
}

export type MonitorClaimOutcome =
  | { readonly kind: 'claimed' }
  /** Another process has claimed this slot or a later one. */
  | { readonly kind: 'lost' }
  /** An earlier slot was claimed since `seenFence`: decide again on this state. */
  | { readonly kind: 'overtaken'; readonly state: FleetState };

export interface FleetStore {
  /** All of it, strongly consistent. A quiet fleet costs one read unit. */
  read(): Promise<FleetRecords>;
  /** The state alone, strongly consistent. */
  readState(): Promise<FleetState>;
  /** Claims a tick of node-monitor and stores what it decided about our own health. */
  claim(claim: MonitorClaim): Promise<MonitorClaimOutcome>;
  /**
   * Claims a tick of a controller that stores nothing with it: one conditional update. If the response is lost, the SDK
   * sends the claim again, and its own success refuses it: `lost`. No process then runs the slot, which costs one tick
   * and is safe.
   */
  claimBare(controller: string, claimed: ClaimedSlot, nowMs: number): Promise<'claimed' | 'lost'>;
  /** The tick that began at this time has finished. `sent`: it has sent parts; absent: the stored times stay. */
  finish(beganAtMs: number, sent?: SentParts): Promise<void>;
  /** The probe of a look between two ticks failed at this time. A later time stays. */
  noteFailedLook(atMs: number): Promise<void>;
  /** Creates the record of a zone, with a full limiter, unless it exists. */
  createZone(
    zone: string,
    first: { readonly state: ZoneState | undefined; readonly ratePerSecond: number; readonly nowMs: number },
    along?: PutWrite,
  ): Promise<void>;
  /** Sets the state of a zone that still has the state `from`. */
  setZoneState(zone: string, from: ZoneState | undefined, to: ZoneState | undefined, along?: PutWrite): Promise<void>;
  /** Stores why no queued node of the zone is tainted, if `from` is stored; undefined: no node is queued. */
  setHold(zone: string, from: string | undefined, to: string | undefined, along?: PutWrite): Promise<void>;
  /** Changes the rate of a limiter that still runs at `fromPerSecond`. */
  setZoneRate(
    zone: string,
    at: { readonly nowMs: number; readonly fromPerSecond: number; readonly toPerSecond: number },
    along?: PutWrite,
  ): Promise<void>;
  /** Deletes the record of a zone if its limiter is full: a new record would be equal. */
  dropZone(zone: string, nowMs: number): Promise<void>;
  /** Stores the progress, if `from` is the stored one: another tick may have continued it. */
  setProfileSweep(from: ProfileSweep | undefined, to: ProfileSweep): Promise<void>;
  /** Adds a node to its zone's queue, unless it is queued already. */
  enqueue(item: QueuedNode): Promise<'written' | 'refused'>;
  /** Removes a node from its zone's queue, if the queued entry has this uid. */
  dequeue(item: { readonly zone: string; readonly nodeName: string; readonly uid: string }): Promise<void>;
}

const STATE_ROW = {
  /** The last claim. */
  slot: number('slot'),
  slotSeconds: CLAIMED_SECONDS,
  fence: number('fence'),
  claimedAtMs: number('at'),
  /** The id of the tick that claimed it. */
  claimId: text('by'),
  /** Start of the last finished tick. */
  doneAtMs: number('doneAt'),
  /** See gateText. */
  gate: text('gate'),
  /** The gate is closed. */
  holding: flag('holding'),
  disruption: json<DisruptionRecord>('disruption'),
  /** Total disruption. */
  total: flag('total'),
  nodes: number('nodes'),
  sent: json<SentParts>('sent'),
  lookFailedAtMs: number('lookFailed'),
};
const ZONE_ROW = {
  state: word<ZoneState>('state'),
  hold: text('hold'),
  /** The limiter: its attributes are those of LimiterUpdate. */
  tatMs: number('tatMs'),
  ratePerSecond: number('ratePerSecond'),
  createdAtMs: number('createdAtMs'),
  evictions: number('evictions'),
};
const QUEUE_ROW = { uid: present(text('uid')), addedAtMs: present(number('addedAtMs')) };

const keyOf = (sk: string): ItemKey => ({ table: 'control', pk: PARTITION, sk });
export const stateKey = keyOf(STATE);
const zoneKey = (zone: string): ItemKey => keyOf(`${ZONE_PREFIX}${zone}`);
const queueKey = (zone: string, nodeName: string): ItemKey => keyOf(`${QUEUE_PREFIX}${zone}#${nodeName}`);

export type FleetKey =
  | { readonly kind: 'state' }
  | { readonly kind: 'profiles' }
  | { readonly kind: 'zone'; readonly zone: string }
  | { readonly kind: 'queue'; readonly zone: string; readonly nodeName: string };

/** The record that a key of the `control` table names; undefined for one that is not of the fleet. */
export function fleetKeyOf({ pk, sk }: ItemPosition): FleetKey | undefined {
  if (pk !== PARTITION) return undefined;
  if (sk === STATE || sk === PROFILES) return { kind: sk };
  if (sk.startsWith(ZONE_PREFIX)) return { kind: 'zone', zone: sk.slice(ZONE_PREFIX.length) };
  if (!sk.startsWith(QUEUE_PREFIX)) return undefined;
  // Neither label values nor node names contain a '#'.
  const [zone = '', nodeName = ''] = sk.slice(QUEUE_PREFIX.length).split('#', 2);
  return { kind: 'queue', zone, nodeName };
}

/**
 * For a commit's `extra`: refuses the commit unless taints may be added. It holds if the gate is open and there is no
 * total disruption when the commit is applied, regardless of when the decision was made.
 */
export const mayTaint: CheckWrite = {
  kind: 'check',
  key: stateKey,
  when: all(holds(STATE_ROW.holding, false), holds(STATE_ROW.total, false)),
};

/** For a commit's `extra`: acquires a token of the zone's limiter, or refuses the commit. */
export const acquireTokenWrite = (zone: string, update: LimiterUpdate): UpdateWrite => ({
  kind: 'update',
  key: zoneKey(zone),
  ...writeOf(update),
  add: { [ZONE_ROW.evictions.name]: 1 },
});

/** For a commit's `extra`: deletes this queue entry, or refuses the commit if the entry no longer exists. */
export const dequeueWrite = (item: QueuedNode): DeleteWrite => ({
  kind: 'delete',
  key: queueKey(item.zone, item.nodeName),
  when: all(holds(QUEUE_ROW.uid, item.uid), holds(QUEUE_ROW.addedAtMs, item.addedAtMs)),
});

/** A write, with another one in the same transaction. `refused` also after a conflict: the next tick decides again. */
async function writeWith(items: ItemStore, write: Write, along: PutWrite | undefined): Promise<'written' | 'refused'> {
  const outcome = along === undefined ? await items.write(write) : await items.transact([write, along]);
  return outcome.kind === 'written' ? 'written' : 'refused';
}

async function readFleet(items: ItemStore): Promise<FleetRecords> {
  let state: FleetState = stateOf(undefined);
  const zones: FleetZone[] = [];
  const queue: QueuedNode[] = [];
  let profileSweep: ProfileSweep | undefined;
  const pages = controlPages(items, PARTITION, {
    consistent: true,
    tooMany: 'the fleet has more control records than one read may return',
  });
  for await (const page of pages) {
    for (const item of page) {
      const key = fleetKeyOf({ pk: PARTITION, sk: String(item['sk']) });
      if (key === undefined) continue;
      if (key.kind === 'state') state = stateOf(item);
      else if (key.kind === 'profiles') profileSweep = sweepOf(item);
      else if (key.kind === 'zone') zones.push(zoneOf(key.zone, item));
      else queue.push({ zone: key.zone, nodeName: key.nodeName, ...readRow(QUEUE_ROW, item) });
    }
  }
  return { state, zones, queue, profileSweep };
}

function claimWrite(claim: MonitorClaim): UpdateWrite {
  const { seenFence, nowMs, claimId, gate, disruption, nodes, finished } = claim;
  const next = claimSlot(claim);
  const { set, remove } = changeOf(STATE_ROW, {
    claimedAtMs: nowMs,
    claimId,
    gate: gateText(gate),
    holding: gate.reasons.length > 0,
    disruption,
    total: disruption.total,
    nodes,
    ...(finished ? { doneAtMs: nowMs } : {}),
  });
  return {
    kind: 'update',
    key: stateKey,
    set: { ...next.set, ...set },
    add: next.add,
    remove,
    when: all(next.when, holds(STATE_ROW.fence, seenFence === 0 ? undefined : seenFence)),
  };
}

async function claimTick(items: ItemStore, claim: MonitorClaim): Promise<MonitorClaimOutcome> {
  const { along = [] } = claim;
  if (along.length > 0) {
    const outcome = await items.transact([claimWrite(claim), ...along]);
    if (outcome.kind === 'written') return { kind: 'claimed' };
    const refused = outcome.kind === 'refused' ? outcome.failures.find(({ index }) => index === 0) : undefined;
    return refusedClaim(refused === undefined ? (await readFleet(items)).state : stateOf(refused.current), claim);
  }
  const outcome = await items.write(claimWrite(claim));
  return outcome.kind === 'written' ? { kind: 'claimed' } : refusedClaim(stateOf(outcome.current), claim);
}

async function claimBareTick(
  items: ItemStore,
  controller: string,
  claimed: ClaimedSlot,
  nowMs: number,
): Promise<'claimed' | 'lost'> {
  const { set, add, when } = claimSlot(claimed);
  const outcome = await items.write({
    kind: 'update',
    key: { table: 'control', pk: `tick#${controller}`, sk: ALONE },
    set: { ...set, [STATE_ROW.claimedAtMs.name]: nowMs },
    add,
    when,
  });
  return outcome.kind === 'written' ? 'claimed' : 'lost';
}

/**
 * Sets or removes one attribute of a zone's record, if it still has the value `from`. It must not create the record: a
 * record without limiter attributes would have a full bucket (L3).
 */
const changeZoneWrite = <T>(
  zone: string,
  attribute: Attribute<T>,
  { from, to }: { readonly from: T; readonly to: T },
): UpdateWrite => ({
  kind: 'update',
  key: zoneKey(zone),
  ...changeOf({ attribute }, { attribute: to }),
  when: all({ kind: 'has', attribute: ZONE_ROW.ratePerSecond.name }, holds(attribute, from)),
});

async function setZoneRate(items: ItemStore, ...args: Parameters<FleetStore['setZoneRate']>): Promise<void> {
  const [zone, change, along] = args;
  for (const update of changeRateUpdates(change)) {
    const outcome = await writeWith(items, { kind: 'update', key: zoneKey(zone), ...writeOf(update) }, along);
    if (outcome === 'written') return;
  }
}

/**
 * Makes it seem that no tick has finished: the gate closes, and every node has a full grace period. The record must
 * exist.
 */
export const forgetLastTick = (): UpdateWrite => ({
  kind: 'update',
  key: stateKey,
  remove: [STATE_ROW.doneAtMs.name],
});

export const fleetStore = (items: ItemStore): FleetStore => ({
  read: () => readFleet(items),
  readState: async () => stateOf(await items.get(stateKey, { consistent: true })),
  claim: (claim) => claimTick(items, claim),
  claimBare: (controller, claimed, nowMs) => claimBareTick(items, controller, claimed, nowMs),

  async finish(beganAtMs, sent) {
    await items.write({
      kind: 'update',
      key: stateKey,
      set: changeOf(STATE_ROW, { doneAtMs: beganAtMs, ...defined({ sent }) }).set,
      when: below(STATE_ROW.doneAtMs, beganAtMs),
    });
  },

  async noteFailedLook(lookFailedAtMs) {
    await items.write({
      kind: 'update',
      key: stateKey,
      set: changeOf(STATE_ROW, { lookFailedAtMs }).set,
      when: below(STATE_ROW.lookFailedAtMs, lookFailedAtMs),
    });
  },

  async createZone(zone, { state, ratePerSecond, nowMs: createdAtMs }, along) {
    const item = changeOf(ZONE_ROW, { ratePerSecond, createdAtMs, state }).set;
    await writeWith(items, { kind: 'put', key: zoneKey(zone), item, when: { kind: 'itemAbsent' } }, along);
  },

  async setHold(zone, from, to, along) {
    await writeWith(items, changeZoneWrite(zone, ZONE_ROW.hold, { from, to }), along);
  },

  async setZoneState(zone, from, to, along) {
    await writeWith(items, changeZoneWrite(zone, ZONE_ROW.state, { from, to }), along);
  },

  setZoneRate: (zone, change, along) => setZoneRate(items, zone, change, along),

  async dropZone(zone, nowMs) {
    await items.write({
      kind: 'delete',
      key: zoneKey(zone),
      when: any(holds(ZONE_ROW.tatMs, undefined), {
        kind: 'compare',
        attribute: ZONE_ROW.tatMs.name,
        op: '<=',
        value: nowMs,
      }),
    });
  },

  async setProfileSweep(from, to) {
    await items.write({
      kind: 'put',
      key: keyOf(PROFILES),
      item: defined({ ...to }),
      when:
        from === undefined
          ? { kind: 'itemAbsent' }
          : all(is('of', from.of), is('round', from.round), is('after', from.after), is('sinceMs', from.sinceMs)),
    });
  },

  async enqueue({ zone, nodeName, uid, addedAtMs }) {
    const key = queueKey(zone, nodeName);
    const item = changeOf(QUEUE_ROW, { uid, addedAtMs }).set;
    const outcome = await items.write({ kind: 'put', key, item, when: { kind: 'itemAbsent' } });
    return outcome.kind;
  },

  async dequeue({ zone, nodeName, uid }) {
    await items.write({ kind: 'delete', key: queueKey(zone, nodeName), when: holds(QUEUE_ROW.uid, uid) });
  },
});

/** After a lost response a claim is sent again, and its own success refuses it: it is claimed. */
function refusedClaim(state: FleetState, { claimId, ...claimed }: MonitorClaim): MonitorClaimOutcome {
  if (!isClaimed(state, claimed)) return { kind: 'overtaken', state };
  return state.slot === claimed.slot && state.claimId === claimId ? { kind: 'claimed' } : { kind: 'lost' };
}

/** Whether this slot or a later one is claimed, with the same period or another one. */
export const isClaimed = ({ slotStartMs: claimedMs }: FleetState, { slot, periodSeconds }: ClaimedSlot): boolean =>
  claimedMs !== undefined && claimedMs >= slotStartMs(slot, periodSeconds);

const writeOf = ({ when, set }: LimiterUpdate): Pick<UpdateWrite, 'when' | 'set'> => ({
  when,
  set: { ...set } as Item,
});

/**
 * The gate as text. The row is written with each tick, and up to 1 KB costs one write unit:
 *   - probes as three numbers per tick: milliseconds after the one before, accepted, failed;
 *   - of each profile only what differs from the whole record.
 */
function gateText({ lastTickAtMs: _, probes, profiles, ...gate }: GateRecord): string {
  const ticks = new Map<number, [number, number]>();
  for (const { sentAtMs, accepted } of probes) {
    const counts = ticks.get(sentAtMs) ?? [0, 0];
    counts[accepted ? 0 : 1] += 1;
    ticks.set(sentAtMs, counts);
  }
  let beforeMs = 0;
  const numbers = [...ticks].flatMap(([sentAtMs, counts]) => {
    const sinceMs = sentAtMs - beforeMs;
    beforeMs = sentAtMs;
    return [sinceMs, ...counts];
  });
  const whole: Readonly<Record<string, unknown>> = gate;
  const differing = (own: ProfileGate) =>
    Object.fromEntries(
      Object.entries(own).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(whole[name])),
    );
  const stored = Object.entries(profiles ?? {}).map(([name, own]) => [name, differing(own)]);
  return JSON.stringify({
    ...gate,
    probes: numbers,
    ...(profiles === undefined ? {} : { profiles: Object.fromEntries(stored) }),
  });
}

function gateFrom(text: string | undefined, lastTickAtMs: number | undefined): GateRecord {
  if (text === undefined) return { ...UNTRIED_GATE, lastTickAtMs };
  const {
    probes = [],
    profiles,
    ...gate
  } = JSON.parse(text) as Omit<Partial<GateRecord>, 'probes'> & {
    readonly probes?: readonly number[];
  };
  const shared = { ...UNTRIED_GATE, ...gate, lastTickAtMs };
  const { reasons, sinceMs, freshSinceMs, provenAtMs, beatSeconds } = shared;
  const whole: ProfileGate = { reasons, sinceMs, freshSinceMs, provenAtMs, beatSeconds };
  const ofProfiles = Object.entries(profiles ?? {}).map(([name, own]) => [name, { ...whole, ...own }]);
  return {
    ...shared,
    probes: probesFrom(probes),
    ...(profiles === undefined ? {} : { profiles: Object.fromEntries(ofProfiles) as Record<string, ProfileGate> }),
  };
}

function probesFrom(numbers: readonly number[]): readonly Probe[] {
  const probes: Probe[] = [];
  let sentAtMs = 0;
  for (let at = 0; at + 2 < numbers.length; at += 3) {
    sentAtMs += numbers[at]!;
    for (let count = 0; count < numbers[at + 1]!; count += 1) probes.push({ sentAtMs, accepted: true });
    for (let count = 0; count < numbers[at + 2]!; count += 1) probes.push({ sentAtMs, accepted: false });
  }
  return probes;
}

function stateOf(item: Item = {}): FleetState {
  const row = readRow(STATE_ROW, item);
  return {
    slot: row.slot,
    slotStartMs: row.slotSeconds === undefined ? undefined : row.slotSeconds * 1_000,
    claimedAtMs: row.claimedAtMs,
    claimId: row.claimId,
    fence: row.fence ?? 0,
    gate: gateFrom(row.gate, row.doneAtMs),
    disruption: row.disruption ?? NO_DISRUPTION,
    nodes: row.nodes,
    sent: row.sent,
    lookFailedAtMs: row.lookFailedAtMs,
  };
}

function sweepOf(item: Item): ProfileSweep {
  const { of, sinceMs, round, after, failed, againAtMs } = item as unknown as ProfileSweep;
  return { of, sinceMs, round, after, ...defined({ failed, againAtMs }) };
}

function zoneOf(zone: string, item: Item): FleetZone {
  const { state, tatMs, ratePerSecond = 0, ...others } = readRow(ZONE_ROW, item);
  return { zone, state, limiter: { tatMs, ratePerSecond }, ...defined(others) };
}
