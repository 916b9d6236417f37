/**
 * A fleet under node-monitor and evictor as they run, over tables in memory and on virtual time. Nodes are written as
 * the API writes them; what the controllers did is read from the stored objects. Times are in milliseconds.
 */

import type { QueuedNode } from '../../shared/fleet/fleet-records.ts';
import { nodeHealthWrites } from '../../shared/fleet/nodes/change-node.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { leaseReplacement } from '../../shared/kinds/leases/lease-record.ts';
import { createLease, renewLease } from '../../shared/kinds/leases/lease-store.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import type { ConditionStatus, Taint } from '../../shared/kubernetes/kubernetes.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import { type ControlledFleet, controlledFleet, type FleetOptions, START_MS } from './controlled-fleet.ts';

export type NoExecuteKind = 'notReady' | 'unreachable';

export interface AskedNode {
  readonly nodeName: string;
  /** `region/zone`, or a zone; '' for a node without such labels. */
  readonly zone?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Status of its Ready condition; undefined: it never posts status. Default 'True'. */
  readonly ready?: ConditionStatus | undefined;
  readonly createdAtMs?: number;
  /** Its last status post; at its creation, if absent. */
  readonly statusAtMs?: number;
  /** Its last renewal of the Lease; absent: it has none. */
  readonly renewedAtMs?: number;
  /** Renews its Lease before each pass. */
  readonly beats?: boolean;
  readonly taint?: NoExecuteKind;
}

const KEYS: Readonly<Record<NoExecuteKind, string>> = {
  notReady: 'node.kubernetes.io/not-ready',
  unreachable: 'node.kubernetes.io/unreachable',
};

export interface Tainting {
  readonly atMs: number;
  readonly nodeName: string;
}

interface NodeState {
  readonly ready: ConditionStatus | undefined;
  readonly taints: readonly NoExecuteKind[];
}

const readyOf = (node: KubeNode): ConditionStatus | undefined =>
  node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;

const noExecuteOf = (node: KubeNode): NoExecuteKind[] =>
  (['notReady', 'unreachable'] as const).filter((kind) =>
    node.spec?.taints?.some(({ key, effect }) => key === KEYS[kind] && effect === 'NoExecute'),
  );

export class MonitoredFleet {
  readonly fleet: ControlledFleet;
  /** Nodes that a pass marked Unknown. */
  readonly marks: Tainting[] = [];
  /** Nodes that got a NoExecute taint and carried none of ours before. */
  readonly taintings: Tainting[] = [];
  /** Instant swaps of NoExecute taints. */
  swaps = 0;
  readonly #beating = new Set<string>();
  readonly #leases = new Set<string>();

  private constructor(fleet: ControlledFleet) {
    this.fleet = fleet;
  }

  /** The gate has cases of its own; here it is off unless asked for. */
  static async of(
    nodes: readonly AskedNode[],
    policy: Partial<Policy> = {},
    options: Omit<FleetOptions, 'policy'> = {},
  ): Promise<MonitoredFleet> {
    const off = { tickGate: 'off', ingestGate: 'off' } as const;
    const monitored = new MonitoredFleet(controlledFleet({ ...options, policy: { ...off, ...policy } }));
    for (const node of nodes) await monitored.add(node);
    return monitored;
  }

  #at(nowMs: number): void {
    this.fleet.at((nowMs - START_MS) / 1_000);
  }

  async #commit(write: ObjectWrite, nowMs: number): Promise<void> {
    const outcome = await this.fleet.objects.commit({ writes: [write], extra: nodeHealthWrites(write, nowMs) });
    if (outcome.kind !== 'committed') throw new Error(`${write.kind} ${write.ref.name}: ${outcome.kind}`);
  }

  async add(asked: AskedNode): Promise<void> {
    const { nodeName, zone = '', createdAtMs = 0, statusAtMs = createdAtMs, taint } = asked;
    const [region, place] = zone.includes('/') ? zone.split('/') : [undefined, zone];
    const labels = {
      ...(region === undefined ? {} : { 'topology.kubernetes.io/region': region }),
      ...(place === '' || place === undefined ? {} : { 'topology.kubernetes.io/zone': place }),
      ...asked.labels,
    };
    const taints: Taint[] =
      taint === undefined ? [] : [{ key: KEYS[taint], effect: 'NoExecute', timeAdded: formatTime(createdAtMs) }];
    const uid = `uid-${nodeName}-${createdAtMs}`;
    const metadata = { name: nodeName, uid, creationTimestamp: formatTime(createdAtMs), labels };
    const object = { apiVersion: 'v1', kind: 'Node', metadata, spec: { taints }, status: {} };
    await this.#commit(
      { kind: 'create', ref: { resource: 'nodes', namespace: '', name: nodeName }, object },
      createdAtMs,
    );
    if (!('ready' in asked) || asked.ready !== undefined) await this.post(nodeName, asked.ready ?? 'True', statusAtMs);
    if (asked.renewedAtMs !== undefined) await this.renew(nodeName, asked.renewedAtMs);
    if (asked.beats === true) this.#beating.add(nodeName);
  }

  /** The node posts status. */
  async post(nodeName: string, ready: ConditionStatus, nowMs: number): Promise<void> {
    this.#at(nowMs);
    await this.fleet.post(nodeName, ready);
  }

  /** The node renews its Lease, and makes one first if it has none. */
  async renew(nodeName: string, nowMs: number): Promise<void> {
    const change = leaseReplacement({
      metadata: { name: nodeName, namespace: 'kube-node-lease' },
      spec: {
        holderIdentity: nodeName,
        leaseDurationSeconds: 40,
        renewTime: formatTime(nowMs).replace('Z', '.000000Z'),
      },
    });
    if (change.kind !== 'change') throw new Error(change.kind);
    const beat = { change: change.change, nowMs, tie: 0.5 };
    if (this.#leases.has(nodeName)) await renewLease(this.fleet.tables, beat);
    else await createLease(this.fleet.tables, { ...beat, uid: `lease-${nodeName}` });
    this.#leases.add(nodeName);
  }

  /** The Node is deleted, its Lease with it. */
  async remove(nodeName: string): Promise<void> {
    await this.fleet.removeNode(nodeName);
    this.#leases.delete(nodeName);
    this.#beating.delete(nodeName);
  }

  /** One tick of node-monitor in the slot of this moment. */
  async pass(nowMs: number): Promise<void> {
    for (const nodeName of this.#beating) await this.renew(nodeName, nowMs);
    this.#at(nowMs);
    await this.#noting(nowMs, async () => {
      const { kind } = await this.fleet.controllers.tickNodeMonitor(this.fleet.slot());
      if (kind !== 'ran') throw new Error(`the tick of node-monitor is ${kind}: one was made in this period already`);
    });
  }

  /** A tick of evictor, or a turn between two ticks. The names it tainted, in their order. */
  async evict(nowMs: number): Promise<string[]> {
    this.#at(nowMs);
    const before = this.taintings.length;
    await this.#noting(nowMs, async () => {
      const { kind } = await this.fleet.controllers.tickEvictor(this.fleet.slot());
      if (kind === 'lost') await this.fleet.controllers.processQueuesBetweenTicks();
    });
    return this.taintings.slice(before).map(({ nodeName }) => nodeName);
  }

  /** From one moment to another, both included: node-monitor, then evictor, each `everyMs` (the period). */
  async run(fromMs: number, toMs: number, everyMs = this.fleet.policy.nodeMonitorPeriodSeconds * 1_000): Promise<void> {
    for (let nowMs = fromMs; nowMs <= toMs; nowMs += everyMs) {
      await this.pass(nowMs);
      await this.evict(nowMs);
    }
  }

  /** Turns of evictor from one moment to another, both included. */
  async evictFor(fromMs: number, toMs: number, everyMs = 1_000): Promise<void> {
    for (let nowMs = fromMs; nowMs <= toMs; nowMs += everyMs) await this.evict(nowMs);
  }

  async #states(): Promise<Map<string, NodeState>> {
    const { objects } = await this.fleet.objects.list({ resource: 'nodes' });
    return new Map(
      (objects as readonly KubeNode[]).map((node) => [
        node.metadata.name ?? '',
        { ready: readyOf(node), taints: noExecuteOf(node) },
      ]),
    );
  }

  async #noting(atMs: number, act: () => Promise<void>): Promise<void> {
    const before = await this.#states();
    await act();
    for (const [nodeName, after] of await this.#states()) {
      const earlier = before.get(nodeName);
      if (after.ready === 'Unknown' && earlier?.ready !== 'Unknown') this.marks.push({ atMs, nodeName });
      if (after.taints.length === 0 || after.taints.join() === earlier?.taints.join()) continue;
      if (earlier?.taints.length === 0) this.taintings.push({ atMs, nodeName });
      else this.swaps += 1;
    }
  }

  async node(nodeName: string): Promise<KubeNode> {
    const node = await this.fleet.node(nodeName);
    if (node === undefined) throw new Error(`no node ${nodeName}`);
    return node;
  }

  ready = async (nodeName: string): Promise<ConditionStatus | undefined> => readyOf(await this.node(nodeName));

  /** NoExecute taints of ours. */
  taints = async (nodeName: string): Promise<NoExecuteKind[]> => noExecuteOf(await this.node(nodeName));

  async zone(zone: string) {
    return (await this.fleet.records()).zones.find((record) => record.zone === zone);
  }

  /** Names that wait, in the order of their turns, with their second. */
  async waiting(): Promise<string[]> {
    const queue: QueuedNode[] = [...(await this.fleet.records()).queue];
    return queue
      .sort((one, other) => one.addedAtMs - other.addedAtMs)
      .map(({ nodeName, addedAtMs }) => `${nodeName} since ${addedAtMs / 1_000} s`);
  }

  /** Events of a reason, as the API lists them. */
  events = (reason: string): Promise<readonly KubeObject[]> => this.fleet.events(reason);

  /** What the last passes measured of a zone under this name, oldest first. */
  measured(name: string, zone: string): number[] {
    return this.fleet.metrics.filter((each) => each.name === name && each.zone === zone).map(({ value }) => value);
  }
}
