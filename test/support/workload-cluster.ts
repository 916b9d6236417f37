/**
 * The workload controllers over tables in memory, on virtual time. The test stands for users, the scheduler and
 * machines. The stream has the filter of the deployed one.
 */

import type { WorkloadPorts } from '../../functions/workloads/dependencies.ts';
import type { DeploymentSpec, KubeDeployment, KubeReplicaSet } from '../../functions/workloads/workload-types.ts';
import { passesWorkloadFilter } from '../../server/changes/change-filters.ts';
import { fleetControllers } from '../../server/fleet-controllers.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { defined } from '../../shared/defined.ts';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { applyDisruption } from '../../shared/fleet/zone-state.ts';
import { clusterObjects, findStored } from '../../shared/kinds/resources.ts';
import type { KubeObject, KubePod, ObjectRef } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { ConsumedUnits, ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';

const ROUNDS_MAX = 400;
const DECISIONS_MAX = 1_000;
export const START_MS = Date.UTC(2026, 0, 1);

export function workloadCluster({
  admitObjects,
  ...options
}: { readonly onConsumed?: (units: ConsumedUnits) => void } & Pick<WorkloadPorts, 'admitObjects'> = {}) {
  let nowMs = START_MS;
  let uuids = 0;
  let seen = 0;
  const tables = memoryItemStore({ changesOf: ['objects'], ...options });
  const clock = { nowMs: () => nowMs };
  const random = {
    uuid: () => {
      uuids += 1;
      return `00000000-0000-4000-8000-${String(uuids).padStart(12, '0')}`;
    },
    fraction: () => 0.5,
  };
  const objects = clusterObjects({ items: tables, clock, random });
  const silent = () => {};
  const metrics: { readonly name: string; readonly value: number }[] = [];
  const meter = { add: (name: string, value: number) => void metrics.push({ name, value }) };
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const makeControllers = (items: ItemStore) =>
    fleetControllers({ items, clock, random, policy: defaultPolicy, log, meter, ...defined({ admitObjects }) });
  const controllers = makeControllers(tables);

  async function commit(write: ObjectWrite): Promise<KubeObject> {
    const outcome = await objects.commit({ writes: [write] });
    if (outcome.kind !== 'committed') throw new Error(`${write.kind} ${write.ref.name}: ${outcome.kind}`);
    return outcome.objects[0]!;
  }
  const refTo = (resource: string, name: string): ObjectRef => ({
    resource,
    namespace: findStored(resource)?.namespaced === false ? '' : 'default',
    name,
  });

  async function create(resource: string, object: KubeObject): Promise<KubeObject> {
    const metadata = {
      ...(refTo(resource, '').namespace === '' ? {} : { namespace: 'default' }),
      uid: random.uuid(),
      generation: 1,
      creationTimestamp: formatTime(nowMs),
      ...object.metadata,
    };
    return commit({ kind: 'create', ref: refTo(resource, metadata.name ?? ''), object: { ...object, metadata } });
  }

  /** Raises the generation if the spec changes. */
  async function change(resource: string, name: string, next: (object: KubeObject) => KubeObject): Promise<void> {
    const previous = await objects.get(refTo(resource, name));
    if (previous === undefined) throw new Error(`no ${resource} ${name}`);
    const object = next(structuredClone(previous));
    if (JSON.stringify(object.spec) !== JSON.stringify(previous.spec)) {
      object.metadata.generation = (previous.metadata.generation ?? 0) + 1;
    }
    await commit({ kind: 'update', ref: refTo(resource, name), object, previous });
  }

  const list = async <T extends KubeObject>(resource: string): Promise<readonly T[]> =>
    (await objects.list({ resource, namespace: 'default' })).objects as readonly T[];

  const fleet = fleetStore(tables);
  /** Whether ticks of node-monitor keep the safety gate open. */
  let hasTicks = true;

  /** Records of the stream since the last call, as they are delivered. */
  async function records() {
    if (hasTicks) await fleet.finish(nowMs);
    const changes = tables.changes('objects', seen);
    seen = changes.at(-1)?.sequence ?? seen;
    return changes.filter(passesWorkloadFilter);
  }

  const cluster = {
    tables,
    /** What the controllers measured. */
    metrics,
    objects,
    controllers,
    makeControllers,
    list,
    create,
    change,
    records,
    now: () => nowMs,
    /** From now on node-monitor does not tick, and the safety gate closes. */
    stopTicks() {
      hasTicks = false;
    },
    startTicks() {
      hasTicks = true;
    },
    /** Stores it as a tick of node-monitor does. */
    async setTotalDisruption(isTotal: boolean) {
      const { fence, gate, disruption } = await fleet.readState();
      const claimed = await fleet.claim({
        slot: Math.floor(nowMs / 5_000),
        periodSeconds: 5,
        seenFence: fence,
        nowMs,
        claimId: random.uuid(),
        gate,
        disruption: applyDisruption(disruption, isTotal ? 'enter' : 'leave', nowMs),
        nodes: 1,
        finished: true,
      });
      if (claimed.kind !== 'claimed') throw new Error(claimed.kind);
    },
    async decisions() {
      const { decisions } = await decisionStore(tables).list({ nowMs, limit: DECISIONS_MAX });
      return decisions.map(({ record }) => record);
    },
    advance(milliseconds: number) {
      nowMs += milliseconds;
    },
    /** Delivers records until the controllers change nothing. Returns the number of batches. */
    async settle(): Promise<number> {
      for (let round = 0; round < ROUNDS_MAX; round += 1) {
        const batch = await records();
        if (batch.length === 0) return round;
        const { faults, postponed } = await controllers.onWorkloadRecords(batch);
        if (faults.length + postponed.length > 0) throw new AggregateError([...faults, ...postponed], 'faults');
      }
      throw new Error('the controllers do not settle');
    },
    async tick() {
      if (hasTicks) await fleet.finish(nowMs);
      return controllers.tickWorkloads(Math.floor(nowMs / 5_000));
    },
    deployment: async (name = 'web') => (await objects.get(refTo('deployments', name))) as KubeDeployment | undefined,
    sets: () => list<KubeReplicaSet>('replicasets'),
    pods: async () => (await list<KubePod>('pods')).filter(({ metadata }) => metadata.deletionTimestamp === undefined),
    createDeployment: (spec: Partial<DeploymentSpec> = {}, name = 'web') =>
      create('deployments', {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name },
        spec: {
          replicas: 3,
          selector: { matchLabels: { app: name } },
          template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'v1' }] } },
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
          revisionHistoryLimit: 10,
          progressDeadlineSeconds: 600,
          ...spec,
        },
      }),
    createSet: (replicas: number, more: { readonly name?: string; readonly labels?: Record<string, string> } = {}) =>
      create('replicasets', {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata: { name: more.name ?? 'web' },
        spec: {
          replicas,
          selector: { matchLabels: { app: 'web' } },
          template: {
            metadata: { labels: more.labels ?? { app: 'web' } },
            spec: { containers: [{ name: 'c', image: 'v1' }] },
          },
        },
        status: { replicas: 0 },
      }),
    /** Does what scheduler and kubelet do: every pod is bound and Ready. */
    async runPods(nodeName = 'n1'): Promise<void> {
      for (const pod of await cluster.pods()) {
        if ((pod.status?.phase ?? 'Pending') !== 'Pending') continue;
        const ready = { type: 'Ready', status: 'True' as const, lastTransitionTime: formatTime(nowMs) };
        await commit({
          kind: 'update',
          ref: refTo('pods', pod.metadata.name ?? ''),
          object: {
            ...pod,
            spec: { ...pod.spec, nodeName: pod.spec?.nodeName ?? nodeName },
            status: { ...pod.status, phase: 'Running', conditions: [ready] },
          },
          previous: pod,
        });
      }
    },
    /** Until every pod that is created runs. */
    async settleRunning(): Promise<void> {
      for (let round = 0; round < ROUNDS_MAX; round += 1) {
        const batches = await cluster.settle();
        await cluster.runPods();
        if (batches === 0) return;
      }
    },
    async remove(resource: string, name: string): Promise<void> {
      const previous = await objects.get(refTo(resource, name));
      if (previous !== undefined) await commit({ kind: 'delete', ref: refTo(resource, name), previous });
    },
    /** A pod that is being deleted with its grace period, as on a silent node. */
    markPod: (name: string) =>
      cluster.change('pods', name, (pod) => ({
        ...pod,
        metadata: { ...pod.metadata, deletionTimestamp: formatTime(nowMs + 30_000), deletionGracePeriodSeconds: 30 },
      })),
    async events(reason: string): Promise<readonly string[]> {
      const found = await list<KubeObject & { reason?: string; message?: string }>('events');
      return found.flatMap((event) => (event.reason === reason ? [event.message ?? ''] : []));
    },
  };
  return cluster;
}

export type WorkloadCluster = ReturnType<typeof workloadCluster>;
