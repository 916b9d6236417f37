/**
 * The controllers over tables in memory, on virtual time. The test calls stand for machines and users. Streams are
 * processed on request, with the filters of the deployed ones.
 */
import { createHash } from 'node:crypto';
import { memoryCloud } from '../../demo/ec2/cloud.ts';
import type { TickQueue } from '../../functions/node-monitor/chain.ts';
import type { Probe } from '../../functions/node-monitor/probes.ts';
import { passesHealthFilter, passesObjectFilter } from '../../server/changes/change-filters.ts';
import { fleetControllers } from '../../server/fleet-controllers.ts';
import { defined } from '../../shared/defined.ts';
import type { EventBus } from '../../shared/events/cluster-event.ts';
import { evictionTimerStore } from '../../shared/fleet/eviction-timer-store.ts';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import type { PartQueue } from '../../shared/fleet/mark-parts.ts';
import { nodeHealthWrites } from '../../shared/fleet/nodes/change-node.ts';
import { readHealth } from '../../shared/fleet/nodes/health-store.ts';
import { withProfile, withSilenceMarks } from '../../shared/fleet/nodes/node-digest.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { leaseReplacement } from '../../shared/kinds/leases/lease-record.ts';
import { createLease, renewLease } from '../../shared/kinds/leases/lease-store.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { markDeleted } from '../../shared/kubernetes/deletion.ts';
import type { NodeCondition, Taint, Toleration } from '../../shared/kubernetes/kubernetes.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { Meter, MetricUnit } from '../../shared/observability/log.ts';
import type { ConsumedUnits, ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import type { Waker } from '../../shared/ticks/tick.ts';

export const START_MS = Date.UTC(2026, 0, 1);

export interface FleetOptions {
  readonly policy?: Partial<Policy>;
  readonly probe?: Probe;
  /** The controllers may ask `fleet.cloud`, a region that is empty at first. */
  readonly hasCloud?: boolean;
  /** Gets what the controllers measure, besides `fleet.metrics`. */
  readonly meter?: Meter;
  readonly eventBus?: EventBus;
  /** Receives the messages of the next ticks. */
  readonly tickQueue?: TickQueue;
  /** Receives the parts of mass failures. */
  readonly partQueue?: PartQueue;
  /** Starts the functions that have work. */
  readonly waker?: Waker;
  /** What the controllers see in place of the tables, such as ones that fail. */
  readonly between?: (items: ItemStore) => ItemStore;
  /** What the API and the heartbeats see in place of the tables. */
  readonly serving?: (items: ItemStore) => ItemStore;
  /** `streams` accepts works that are parked or left to a tick. */
  readonly mayPostpone?: boolean;
}

export interface ToldMetric {
  readonly name: string;
  readonly value: number;
  readonly unit: MetricUnit;
  readonly zone?: string;
  readonly reason?: string;
}

export function controlledFleet(options: FleetOptions = {}) {
  const policy: Policy = { ...defaultPolicy, ...options.policy };
  let nowMs = START_MS;
  let uuids = 0;
  const units: ConsumedUnits[] = [];
  const told: { level: string; message: string; fields: Record<string, unknown> | undefined }[] = [];
  const metrics: ToldMetric[] = [];
  const tables = memoryItemStore({ changesOf: ['objects', 'health'], onConsumed: (each) => units.push(each) });
  const clock = { nowMs: () => nowMs };
  const random = {
    uuid: () => {
      uuids += 1;
      return `00000000-0000-4000-8000-${String(uuids).padStart(12, '0')}`;
    },
    fraction: () => 0.5,
  };
  const cloud = memoryCloud({ clock, region: 'eu-central-1', accountId: '111122223333', clusterId: 'test' });
  const serving = options.serving?.(tables) ?? tables;
  const objects = clusterObjects({ items: serving, clock, random });
  const note = (level: string) => (message: string, fields?: Record<string, unknown>) => {
    told.push({ level, message, fields });
  };
  const makeControllers = (
    items: ItemStore,
    pause?: (milliseconds: number) => Promise<unknown>,
    /** Another policy than that of the fleet, as after a deployment. */
    deployed: Policy = policy,
  ) =>
    fleetControllers({
      items,
      ...(pause === undefined ? {} : { pause }),
      clock,
      random,
      policy: deployed,
      log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
      meter: {
        add: (name, value, unit, dimensions) => {
          options.meter?.add(name, value, unit, dimensions);
          metrics.push({
            name,
            value,
            unit,
            ...(dimensions?.['zone'] === undefined ? {} : { zone: dimensions['zone'] }),
            ...(dimensions?.['reason'] === undefined ? {} : { reason: dimensions['reason'] }),
          });
        },
      },
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      ...(options.hasCloud === true ? { cloud } : {}),
      ...(options.probe === undefined ? {} : { probe: options.probe }),
      ...defined({ eventBus: options.eventBus, tickQueue: options.tickQueue, waker: options.waker }),
      ...defined({ partQueue: options.partQueue }),
    });
  const controllers = makeControllers(options.between?.(tables) ?? tables);
  const seen = { objects: 0, health: 0 };

  const slot = () => Math.floor(nowMs / (policy.nodeMonitorPeriodSeconds * 1_000));

  async function commit(given: ObjectWrite): Promise<KubeObject> {
    // The API stores Nodes in this form (shared/kinds/nodes/storage.ts).
    const isNode = given.ref.resource === 'nodes' && given.kind !== 'delete';
    const write = isNode
      ? { ...given, object: withSilenceMarks(withProfile(given.object as KubeNode, policy.profiles), nowMs) }
      : given;
    const extra = write.ref.resource === 'nodes' ? nodeHealthWrites(write, nowMs) : [];
    const outcome = await objects.commit({ writes: [write], extra });
    if (outcome.kind !== 'committed') throw new Error(`${write.kind} ${write.ref.name}: ${outcome.kind}`);
    return outcome.objects[0]!;
  }

  const nodeRef = (name: string) => ({ resource: 'nodes', namespace: '', name });
  const podRef = (name: string) => ({ resource: 'pods', namespace: 'default', name });
  const lease = (name: string) => {
    const change = leaseReplacement({
      metadata: { name, namespace: 'kube-node-lease' },
      spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: `${formatTime(nowMs).slice(0, -1)}.000000Z` },
    });
    if (change.kind !== 'change') throw new Error(change.kind);
    return { change: change.change, nowMs, tie: 0.5 };
  };
  const conditions = (ready: NodeCondition['status']): NodeCondition[] => [
    { type: 'Ready', status: ready, lastHeartbeatTime: formatTime(nowMs), lastTransitionTime: formatTime(nowMs) },
    { type: 'MemoryPressure', status: 'False', lastTransitionTime: formatTime(nowMs) },
  ];

  const fleet = {
    tables,
    /** What the API and the heartbeats see. */
    serving,
    cloud,
    policy,
    controllers,
    makeControllers,
    objects,
    told,
    metrics,
    slot,
    nowMs: () => nowMs,
    /** Seconds from the start. */
    seconds: (): number => (nowMs - START_MS) / 1_000,
    at(seconds: number): void {
      nowMs = START_MS + Math.round(seconds * 1_000);
    },
    /** Units consumed since last asked, by table. */
    consumed(): { readUnits: number; writeUnits: number; writes: number; requests: readonly ConsumedUnits[] } {
      const requests = units.splice(0, units.length);
      return {
        readUnits: requests.reduce((sum, each) => sum + each.readUnits, 0),
        writeUnits: requests.reduce((sum, each) => sum + each.writeUnits, 0),
        writes: requests.filter((each) => each.writeUnits > 0).length,
        requests,
      };
    },

    async register(
      name: string,
      parts: { zone?: string; labels?: Record<string, string>; taints?: Taint[]; providerID?: string } = {},
    ) {
      const labels = {
        ...(parts.zone === undefined ? {} : { 'topology.kubernetes.io/zone': parts.zone }),
        ...parts.labels,
      };
      const metadata = { name, uid: random.uuid(), creationTimestamp: formatTime(nowMs), labels };
      const taints: Taint[] = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }, ...(parts.taints ?? [])];
      const spec = { taints, ...(parts.providerID === undefined ? {} : { providerID: parts.providerID }) };
      const object = { apiVersion: 'v1', kind: 'Node', metadata, spec, status: {} };
      await commit({ kind: 'create', ref: nodeRef(name), object });
      await createLease(serving, { ...lease(name), uid: random.uuid() });
    },
    async post(name: string, ready: NodeCondition['status'] = 'True', more: NodeCondition[] = []) {
      const previous = (await objects.get(nodeRef(name)))!;
      const object = { ...previous, status: { ...previous.status, conditions: [...conditions(ready), ...more] } };
      await commit({ kind: 'update', ref: nodeRef(name), object, previous });
    },
    async beat(...names: string[]) {
      for (const name of names) {
        const outcome = await renewLease(serving, lease(name));
        if (outcome.kind !== 'written') throw new Error(`beat of ${name}: ${outcome.kind}`);
      }
    },
    async changeNode(name: string, change: (node: KubeNode) => KubeNode) {
      const previous = (await objects.get(nodeRef(name))) as KubeNode;
      await commit({ kind: 'update', ref: nodeRef(name), object: change(previous), previous });
    },
    async removeNode(name: string) {
      await commit({ kind: 'delete', ref: nodeRef(name), previous: (await objects.get(nodeRef(name)))! });
    },
    async addPod(
      name: string,
      nodeName: string,
      parts: { tolerations?: Toleration[]; phase?: string; reason?: string; volumes?: Record<string, unknown>[] } = {},
    ) {
      const now = formatTime(nowMs);
      await commit({
        kind: 'create',
        ref: podRef(name),
        object: {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name, namespace: 'default', uid: random.uuid(), creationTimestamp: now },
          spec: {
            ...(nodeName === '' ? {} : { nodeName }),
            ...(parts.volumes === undefined ? {} : { volumes: parts.volumes }),
            tolerations: parts.tolerations ?? [
              { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
              {
                key: 'node.kubernetes.io/unreachable',
                operator: 'Exists',
                effect: 'NoExecute',
                tolerationSeconds: 300,
              },
            ],
          },
          status: {
            phase: parts.phase ?? 'Running',
            ...(parts.reason === undefined ? {} : { reason: parts.reason }),
            conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }],
          },
        },
      });
    },
    async changePod(name: string, change: (pod: KubeObject) => KubeObject) {
      const previous = (await objects.get(podRef(name)))!;
      await commit({ kind: 'update', ref: podRef(name), object: change(previous), previous });
    },
    /** Marks it like a DELETE; no kubelet confirms. */
    async endPod(name: string) {
      await this.changePod(name, (pod) => markDeleted(pod, 30, nowMs));
    },
    async removePod(name: string) {
      await commit({ kind: 'delete', ref: podRef(name), previous: (await objects.get(podRef(name)))! });
    },

    /** The records since the last call of `streams` are not delivered. */
    loseRecords() {
      seen.objects = tables.changes('objects', seen.objects).at(-1)?.sequence ?? seen.objects;
      seen.health = tables.changes('health', seen.health).at(-1)?.sequence ?? seen.health;
    },
    /** Streams until quiet; answers how many rounds had records that passed the filters. */
    async streams(): Promise<number> {
      for (let rounds = 0; rounds < 50; rounds += 1) {
        const objectChanges = tables.changes('objects', seen.objects).filter(passesObjectFilter);
        const healthChanges = tables.changes('health', seen.health).filter(passesHealthFilter);
        seen.objects = tables.changes('objects', seen.objects).at(-1)?.sequence ?? seen.objects;
        seen.health = tables.changes('health', seen.health).at(-1)?.sequence ?? seen.health;
        if (objectChanges.length + healthChanges.length === 0) return rounds;
        for (const outcome of [
          await controllers.onHealthRecords(healthChanges),
          await controllers.onObjectRecords(objectChanges),
        ]) {
          const faults = [...outcome.faults, ...(options.mayPostpone === true ? [] : outcome.postponed)];
          if (faults.length > 0) throw faults[0];
        }
      }
      throw new Error('the streams never come to rest');
    },
    /** A pass of pod-gc in its present slot, and what the streams make of it. */
    async collect(by = controllers) {
      const report = await by.tickPodGc(Math.floor(nowMs / (policy.podGcPeriodSeconds * 1_000)));
      await this.streams();
      return report;
    },
    async tick() {
      const monitor = await controllers.tickNodeMonitor(slot());
      const evictor = await controllers.tickEvictor(slot());
      await this.streams();
      return { monitor, evictor };
    },
    /** Ticks from one time to another, both included, each preceded by `before`. Seconds. */
    async run(from: number, to: number, before?: (seconds: number) => Promise<unknown>) {
      for (let seconds = from; seconds <= to; seconds += policy.nodeMonitorPeriodSeconds) {
        this.at(seconds);
        await before?.(seconds);
        await this.tick();
      }
    },

    node: async (name: string): Promise<KubeNode | undefined> =>
      (await objects.get(nodeRef(name))) as KubeNode | undefined,
    async ready(name: string) {
      return (await this.node(name))?.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    },
    /** `key:Effect`, without the domain of the key. */
    async taints(name: string): Promise<string[]> {
      const taints = (await this.node(name))?.spec?.taints ?? [];
      return taints.map(({ key, effect }) => `${key.split('/')[1]}:${effect}`).sort();
    },
    /** A VolumeAttachment as a CSI attacher leaves it, of a volume named in it. */
    async attach(name: string, nodeName: string, parts: { spec?: object; metadata?: object } = {}) {
      await commit({
        kind: 'create',
        ref: { resource: 'volumeattachments', namespace: '', name },
        object: {
          apiVersion: 'storage.k8s.io/v1',
          kind: 'VolumeAttachment',
          metadata: { name, uid: random.uuid(), creationTimestamp: formatTime(nowMs), ...parts.metadata },
          spec: { attacher: 'ebs.csi.aws.com', nodeName, source: { persistentVolumeName: 'pv' }, ...parts.spec },
          status: { attached: true },
        },
      });
    },
    attachment: (name: string) => objects.get({ resource: 'volumeattachments', namespace: '', name }),
    pod: (name: string) => objects.get(podRef(name)),
    health: async (name: string) => (await readHealth(serving, [name])).get(name),
    records: () => fleetStore(tables).read(),
    timers: async (nodeName: string) => (await evictionTimerStore(tables).read(nodeName)).timers,
    async events(reason?: string): Promise<readonly KubeObject[]> {
      const { objects: all } = await objects.list({ resource: 'events' });
      return reason === undefined ? all : all.filter((event) => event['reason'] === reason);
    },
  };
  return fleet;
}

export type ControlledFleet = ReturnType<typeof controlledFleet>;

/** Registers machines that are Ready and beat, as of now. */
export async function settledFleet(
  zones: Readonly<Record<string, number>>,
  options: FleetOptions = {},
): Promise<{ fleet: ControlledFleet; names: string[]; ofZone: (zone: string) => string[] }> {
  const fleet = controlledFleet(options);
  const names: string[] = [];
  for (const [zone, count] of Object.entries(zones)) {
    for (let index = 0; index < count; index += 1) {
      const name = `${zone}-${index}`;
      await fleet.register(name, { zone });
      await fleet.post(name);
      names.push(name);
    }
  }
  await fleet.streams();
  const ofZone = (zone: string) => names.filter((name) => name.startsWith(`${zone}-`));
  return { fleet, names, ofZone };
}
