/**
 * The true state of the simulated world, independent of the state that the system computes: when each heartbeat was
 * stored (true time), the state of each Node and pod, who wrote it, and the state of machines and instances. The laws
 * are checked against this state only, never against results of the rules.
 */

import { fleetKeyOf } from '../../shared/fleet/fleet-store.ts';
import { zoneKeyOf } from '../../shared/fleet/nodes/node-digest.ts';
import { PROFILE_ANNOTATION } from '../../shared/fleet/nodes/node-profile.ts';
import { plannedUntilMs } from '../../shared/fleet/nodes/planned-silence.ts';
import { FLAPPING_TAINT_KEY } from '../../shared/fleet/silences/flapping.ts';
import { siteHubOf } from '../../shared/kinds/pods/site-permit.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import type { ConditionStatus, NodeCondition, Taint, Toleration } from '../../shared/kubernetes/kubernetes.ts';
import { objectPartition } from '../../shared/store/layout.ts';
import type { TimedChange } from '../recent-changes.ts';
import { storedObject } from './stored-object.ts';

/** The writer: the function and its caller ('' for ticks and streams). */
export interface Writer {
  readonly name: string;
  readonly who: string;
  /** When its invocation began; absent: it writes at once. Epoch milliseconds. */
  readonly sinceMs?: number;
}

export interface TrueNode {
  readonly name: string;
  readonly uid: string;
  readonly zone: string;
  readonly createdAtMs: number;
  ready: ConditionStatus | undefined;
  /** NoExecute taints by key, and since when. */
  readonly noExecute: Map<string, { readonly value: string; readonly sinceMs: number }>;
  /** When they last changed. */
  noExecuteChangedAtMs: number;
  /** Keys of NoSchedule taints. */
  noSchedule: ReadonlySet<string>;
  /** The last renewal or status post of its own that was stored. */
  lastHeartbeatAtMs: number;
  /** Since when a heartbeat arrived at least every (grace − period). */
  steadySinceMs: number;
  /** Has the label exclude-disruption: it is not counted in its zone. */
  isExcluded: boolean;
  /** Name of its profile; undefined: `default`. */
  profile: string | undefined;
  /** When it last changed; undefined: never. */
  profileChangedAtMs: number | undefined;
  /** Promised end of its silence; undefined without a promise. */
  plannedUntilMs: number | undefined;
  /** When its last promise ended; -Infinity before the first. */
  promiseEndedAtMs: number;
}

export interface TruePod {
  readonly path: string;
  readonly uid: string;
  readonly nodeName: string;
  readonly tolerations: readonly Toleration[];
  /** The hub of its site decides about it: no eviction does. */
  readonly isOfSite: boolean;
  readonly sinceMs: number;
  isTerminating: boolean;
}

export type Happened =
  | { readonly kind: 'heard'; readonly node: TrueNode; readonly beforeMs: number }
  | { readonly kind: 'nodeCreated'; readonly node: TrueNode }
  | { readonly kind: 'nodeGone'; readonly node: TrueNode }
  | {
      readonly kind: 'ready';
      readonly node: TrueNode;
      readonly from: ConditionStatus | undefined;
      readonly to: ConditionStatus | undefined;
    }
  | { readonly kind: 'tainted'; readonly node: TrueNode; readonly key: string; readonly isSwap: boolean }
  | { readonly kind: 'untainted'; readonly node: TrueNode; readonly key: string; readonly isSwap: boolean }
  /** A promise of silence began or ended: the node is not counted in its zone meanwhile. */
  | { readonly kind: 'promise'; readonly node: TrueNode; readonly stands: boolean }
  | { readonly kind: 'flapping'; readonly node: TrueNode; readonly isFlapping: boolean }
  | { readonly kind: 'shutdownTaint'; readonly node: TrueNode; readonly isThere: boolean }
  | { readonly kind: 'podEnds'; readonly pod: TruePod; readonly isGone: boolean }
  /** The counter in the annotation of a Node changed. */
  | {
      readonly kind: 'counted';
      readonly node: TrueNode;
      readonly from: number;
      readonly to: number;
      readonly token: string;
    }
  | { readonly kind: 'control'; readonly change: TimedChange };

export const COUNTER = 'sim.nodekeeper.dev/counter';
const SHUTDOWN = 'node.cloudprovider.kubernetes.io/shutdown';
const EXCLUDED = 'node.kubernetes.io/exclude-disruption';
export const UNREACHABLE = 'node.kubernetes.io/unreachable';
export const NOT_READY = 'node.kubernetes.io/not-ready';
/** Whether a function of this name marks silent nodes. */
export const marksNodes = (name: string): boolean => name === 'node-monitor' || name === 'node-marker';
export const isOurs = (key: string): boolean => key === UNREACHABLE || key === NOT_READY;

/** Whether a node does not count in its zone: excluded by its label, or with a promise of silence. */
export const isUncounted = ({ isExcluded, plannedUntilMs: untilMs }: TrueNode): boolean =>
  isExcluded || untilMs !== undefined;

export interface Truth {
  readonly nodes: ReadonlyMap<string, TrueNode>;
  readonly pods: ReadonlyMap<string, TruePod>;
  /** Nodes that wait in a queue, `zone#node`. */
  readonly queued: ReadonlySet<string>;
  /** The stored flag of total disruption, and since when it has this value. */
  readonly total: { readonly isOn: boolean; readonly sinceMs: number };
  /** Since when no zone with counted nodes has a Ready node; undefined while one has. */
  readonly darkSinceMs: number | undefined;
  /** The last such interval that has ended. */
  readonly lastDark: { readonly fromMs: number; readonly untilMs: number } | undefined;
  /** Counted nodes of a zone by their Ready status. */
  zone(zone: string): { readonly ready: number; readonly notReady: number };
  /** Processes the writes of one step. */
  learn(changes: readonly TimedChange[], by: Writer): readonly Happened[];
}

export const readyOf = (node: KubeNode): ConditionStatus | undefined =>
  (node.status?.conditions as readonly NodeCondition[] | undefined)?.find(({ type }) => type === 'Ready')?.status;
const taintsOf = (node: KubeNode): readonly Taint[] => node.spec?.taints ?? [];
const counterOf = (node: KubeNode): string => node.metadata.annotations?.[COUNTER] ?? '0:';

export function createTruth(steadyGapMs: () => number): Truth {
  return new ObservedTruth(steadyGapMs);
}

class ObservedTruth implements Truth {
  readonly #steadyGapMs: () => number;
  readonly nodes = new Map<string, TrueNode>();
  readonly pods = new Map<string, TruePod>();
  readonly queued = new Set<string>();
  #total = { isOn: false, sinceMs: 0 };
  #darkSinceMs: number | undefined;
  #lastDark: { fromMs: number; untilMs: number } | undefined;

  constructor(steadyGapMs: () => number) {
    this.#steadyGapMs = steadyGapMs;
  }

  get total() {
    return this.#total;
  }

  get darkSinceMs() {
    return this.#darkSinceMs;
  }

  get lastDark() {
    return this.#lastDark;
  }

  zone(zone: string) {
    return this.#countZone(zone);
  }

  learn(changes: readonly TimedChange[], by: Writer): readonly Happened[] {
    const happened: Happened[] = [];
    for (const change of changes) {
      const { table, pk } = change.key;
      if (table === 'objects') {
        if (pk.startsWith(objectPartition('nodes'))) happened.push(...this.#changeNode(change));
        else if (pk.startsWith(objectPartition('pods'))) happened.push(...this.#changePod(change));
      } else if (table === 'control') {
        const record = fleetKeyOf(change.key);
        if (record?.kind === 'queue') {
          const place = `${record.zone}#${record.nodeName}`;
          if (change.newImage === undefined) this.queued.delete(place);
          else this.queued.add(place);
        } else if (record?.kind === 'state') {
          const isOn = change.newImage?.['total'] === 1;
          if (isOn !== this.#total.isOn) this.#total = { isOn, sinceMs: change.atMs };
        }
        happened.push({ kind: 'control', change });
      }
    }
    // A heartbeat counts when the node's own request is stored in its row. A relay sends those of its machines.
    const own = changes.filter(
      ({ key, newImage }) =>
        key.table === 'health' && (key.sk === by.who || by.name === 'heartbeat') && newImage !== undefined,
    );
    return [...happened, ...own.flatMap(({ key, atMs }) => this.#recordHeartbeat(key.sk, by.sinceMs ?? atMs) ?? [])];
  }

  #countZone(zone: string): { ready: number; notReady: number } {
    const counts = { ready: 0, notReady: 0 };
    for (const node of this.nodes.values()) {
      if (node.zone !== zone || isUncounted(node)) continue;
      if (node.ready === 'True') counts.ready += 1;
      else counts.notReady += 1;
    }
    return counts;
  }

  #updateDarkTime(nowMs: number): void {
    let counted = 0;
    let ready = 0;
    for (const node of this.nodes.values()) {
      if (isUncounted(node)) continue;
      counted += 1;
      if (node.ready === 'True') ready += 1;
    }
    const isDark = counted > 0 && ready === 0;
    if (isDark) this.#darkSinceMs ??= nowMs;
    else if (this.#darkSinceMs !== undefined) {
      this.#lastDark = { fromMs: this.#darkSinceMs, untilMs: nowMs };
      this.#darkSinceMs = undefined;
    }
  }

  *#changeNode(change: TimedChange): Generator<Happened> {
    const name = change.key.sk;
    const { atMs } = change;
    const before = this.nodes.get(name);
    const object = change.newImage === undefined ? undefined : (storedObject(change.newImage) as KubeNode);
    const uid = object?.metadata.uid ?? '';
    if (before !== undefined && before.uid !== uid) {
      this.nodes.delete(name);
      this.#updateDarkTime(atMs);
      yield { kind: 'nodeGone', node: before };
    }
    if (object === undefined) return;
    let node = this.nodes.get(name);
    if (node === undefined) {
      node = {
        name,
        uid,
        zone: zoneKeyOf(object.metadata.labels),
        createdAtMs: atMs,
        ready: readyOf(object),
        noExecute: new Map(),
        noExecuteChangedAtMs: atMs,
        noSchedule: new Set(),
        lastHeartbeatAtMs: atMs,
        steadySinceMs: atMs,
        isExcluded: object.metadata.labels?.[EXCLUDED] !== undefined,
        profile: object.metadata.annotations?.[PROFILE_ANNOTATION],
        profileChangedAtMs: undefined,
        plannedUntilMs: plannedUntilMs(object.metadata.annotations),
        promiseEndedAtMs: Number.NEGATIVE_INFINITY,
      };
      this.nodes.set(name, node);
      yield { kind: 'nodeCreated', node };
    }
    const profile = object.metadata.annotations?.[PROFILE_ANNOTATION];
    if (profile !== node.profile) node.profileChangedAtMs = atMs;
    node.profile = profile;
    const untilMs = plannedUntilMs(object.metadata.annotations);
    if (node.plannedUntilMs !== undefined && untilMs === undefined) {
      node.promiseEndedAtMs = Math.min(node.plannedUntilMs, atMs);
    }
    const stands = untilMs !== undefined;
    const isChanged = stands !== (node.plannedUntilMs !== undefined);
    node.plannedUntilMs = untilMs;
    if (isChanged) yield { kind: 'promise', node, stands };
    yield* this.#changeTaints(node, taintsOf(object), atMs);
    const ready = readyOf(object);
    const from = node.ready;
    node.ready = ready;
    this.#updateDarkTime(atMs);
    if (from !== ready) yield { kind: 'ready', node, from, to: ready };
    const old = change.oldImage === undefined ? undefined : (storedObject(change.oldImage) as KubeNode);
    if (old === undefined || old.metadata.uid !== uid) return;
    const isShut = (of: KubeNode): boolean => taintsOf(of).some(({ key }) => key === SHUTDOWN);
    if (isShut(old) !== isShut(object)) yield { kind: 'shutdownTaint', node, isThere: isShut(object) };
    if (counterOf(old) !== counterOf(object)) {
      const [to = '', token = ''] = counterOf(object).split(':');
      yield { kind: 'counted', node, from: Number(counterOf(old).split(':')[0]), to: Number(to), token };
    }
  }

  *#changeTaints(node: TrueNode, taints: readonly Taint[], atMs: number): Generator<Happened> {
    const present = new Map(
      taints.flatMap(({ key, value, effect }) => (effect === 'NoExecute' ? [[key, value ?? ''] as const] : [])),
    );
    const wasFlapping = node.noSchedule.has(FLAPPING_TAINT_KEY);
    node.noSchedule = new Set(taints.flatMap(({ key, effect }) => (effect === 'NoSchedule' ? [key] : [])));
    const isFlapping = node.noSchedule.has(FLAPPING_TAINT_KEY);
    if (isFlapping !== wasFlapping) yield { kind: 'flapping', node, isFlapping };
    const gone = [...node.noExecute].filter(([key]) => !present.has(key));
    const added = [...present].filter(([key]) => !node.noExecute.has(key));
    if (gone.length + added.length > 0) node.noExecuteChangedAtMs = atMs;
    const swapped = gone.find(([key]) => isOurs(key));
    for (const [key] of gone) node.noExecute.delete(key);
    for (const [key, value] of added) {
      const isSwap = isOurs(key) && (swapped !== undefined || [...node.noExecute.keys()].some(isOurs));
      // To a pod it is one silence, whatever it is called.
      node.noExecute.set(key, { value, sinceMs: (isSwap ? swapped?.[1].sinceMs : undefined) ?? atMs });
      yield { kind: 'tainted', node, key, isSwap };
    }
    const isSwap = added.some(([key]) => isOurs(key));
    for (const [key] of gone) yield { kind: 'untainted', node, key, isSwap: isSwap && isOurs(key) };
  }

  *#changePod(change: TimedChange): Generator<Happened> {
    const object: KubeObject | undefined = change.newImage === undefined ? undefined : storedObject(change.newImage);
    const path = change.key.sk;
    const before = this.pods.get(path);
    if (before !== undefined && before.uid !== object?.metadata.uid) {
      this.pods.delete(path);
      yield { kind: 'podEnds', pod: before, isGone: true };
    }
    const nodeName = (object?.spec?.['nodeName'] as string | undefined) ?? '';
    if (object === undefined || nodeName === '') return;
    const known = this.pods.get(path);
    const pod: TruePod = known ?? {
      path,
      uid: object.metadata.uid ?? '',
      nodeName,
      isOfSite: siteHubOf(object) !== undefined,
      tolerations: (object.spec?.['tolerations'] as Toleration[] | undefined) ?? [],
      sinceMs: change.atMs,
      isTerminating: false,
    };
    this.pods.set(path, pod);
    if (!pod.isTerminating && object.metadata.deletionTimestamp !== undefined) {
      pod.isTerminating = true;
      yield { kind: 'podEnds', pod, isGone: false };
    }
  }

  /** A process may freeze between the receipt of a heartbeat and its write. The receipt counts. */
  #recordHeartbeat(name: string, receivedAtMs: number): Happened | undefined {
    const node = this.nodes.get(name);
    if (node === undefined) return undefined;
    const beforeMs = node.lastHeartbeatAtMs;
    if (receivedAtMs - beforeMs > this.#steadyGapMs()) node.steadySinceMs = receivedAtMs;
    node.lastHeartbeatAtMs = Math.max(beforeMs, receivedAtMs);
    return { kind: 'heard', node, beforeMs };
  }
}
