/** Bugs of workload controllers and of garbage collection, one for each clause of the laws L14, L15 and L16. */

import type { KubeDeployment, KubeReplicaSet, KubeStatefulSet } from '../../functions/workloads/workload-types.ts';
import type { KubeDaemonSet, KubeJob, KubeObject, KubePod } from '../../shared/kinds/types.ts';
import type { Item, TransactWrite } from '../../shared/store/item-store.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';
import type { Plant, PlantedBug } from './find-bug.ts';
import { onlyFor, seenThrough, textOf, unconditional } from './planted-bugs.ts';

const isOf = (resource: string, pk: unknown): boolean => String(pk).startsWith(`o#${resource}#`);

/** `workloads` reads objects of a resource otherwise than they are stored, and stores the specs that it has read. */
function misread<T extends KubeObject>(resource: string, change: (object: T) => T): Plant {
  const specs = new Map<string, unknown>();
  return onlyFor(
    'workloads',
    seenThrough({
      read(item) {
        if (!isOf(resource, item['pk']) || item['o'] === undefined) return item;
        const object = JSON.parse(textOf(item)) as T;
        specs.set(object.metadata.uid ?? '', object.spec);
        return { ...item, o: JSON.stringify(change(object)) };
      },
      transact: (writes) => writes.map((write) => rewritten(write, resource, (object) => withSpec(object, specs))),
    }),
  );
}

const withSpec = (object: KubeObject, specs: ReadonlyMap<string, unknown>): KubeObject => {
  const { uid = '' } = object.metadata;
  return object.kind !== 'ReplicaSet' && specs.has(uid) ? ({ ...object, spec: specs.get(uid) } as KubeObject) : object;
};

function rewritten(write: TransactWrite, resource: string, change: (object: KubeObject) => KubeObject): TransactWrite {
  if (write.kind !== 'put' || !isOf(resource, write.key.pk)) return write;
  const stored = JSON.parse(textOf(write.item)) as KubeObject;
  return { ...write, item: { ...write.item, o: JSON.stringify(change(stored)) } };
}

const ofDeployment = (change: (deployment: KubeDeployment) => object): Plant =>
  misread<KubeDeployment>('deployments', (deployment) => ({
    ...deployment,
    spec: { ...deployment.spec, strategy: change(deployment) },
  }));

/** Adds to a number of the spec. */
const withReplicas = (by: number): Plant =>
  misread<KubeReplicaSet>('replicasets', (set) => ({
    ...set,
    spec: { ...set.spec, replicas: Math.max(0, (set.spec?.replicas ?? 1) + by) },
  }));
const withParallelism = (change: (parallelism: number, job: KubeJob) => number): Plant =>
  misread<KubeJob>('jobs', (job) => ({
    ...job,
    spec: { ...job.spec, parallelism: change(job.spec?.parallelism ?? 1, job), completions: 100 },
  }));

const ownedBy = (kind: string, pod: KubePod): boolean =>
  (pod.metadata.ownerReferences ?? []).some((owner) => owner.kind === kind);
const podsOf = (kind: string, change: (pod: KubePod) => KubePod): Plant =>
  misread<KubePod>('pods', (pod) => (ownedBy(kind, pod) ? change(pod) : pod));

export const withOpenGate = (item: Item): Item => {
  if (item['pk'] !== 'fleet' || item['sk'] !== 'state' || typeof item['gate'] !== 'string') return item;
  return { ...item, gate: JSON.stringify({ ...(JSON.parse(item['gate']) as object), reasons: [] }) };
};

export const withoutTotalDisruption = (item: Item): Item => {
  if (item['pk'] !== 'fleet' || item['sk'] !== 'state' || typeof item['disruption'] !== 'string') return item;
  return { ...item, disruption: JSON.stringify({ ...(JSON.parse(item['disruption']) as object), total: false }) };
};

/** The deletion of a pod of a StatefulSet removes its object. */
export function freed(write: TransactWrite): TransactWrite {
  if (write.kind !== 'put' || !isOf('pods', write.key.pk)) return write;
  const pod = JSON.parse(textOf(write.item)) as KubePod;
  if (!ownedBy('StatefulSet', pod) || pod.metadata.deletionTimestamp === undefined) return write;
  const { kind: _, item: __, ...rest } = write;
  return { kind: 'delete', ...rest };
}

const freesNames: Plant = onlyFor('workloads', seenThrough({ transact: (writes) => writes.map(freed) }));

const losesCounts: Plant = onlyFor(
  'workloads',
  seenThrough({
    transact: (writes) =>
      writes.map((write) =>
        rewritten(write, 'jobs', (job: KubeJob) => ({ ...job, status: { ...job.status, succeeded: 0 } })),
      ),
  }),
);

/** Neither the claim of an owner nor its version is a condition of a transaction. */
const withoutClaims: Plant = onlyFor(
  'workloads',
  seenThrough({
    transact: (writes) =>
      writes.flatMap((write) => {
        if (write.key.pk.startsWith('owner#')) return [unconditional(write)];
        return write.kind === 'check' && /^o#(replicasets|jobs|daemonsets|statefulsets)#/.test(write.key.pk)
          ? []
          : [write];
      }),
  }),
);

const PART: Partial<SimOptions> = { parts: ['workloads'] };
const CALM: Partial<SimOptions> = { ...PART, faults: [] };

export const PLANTED_IN_WORKLOADS: readonly PlantedBug[] = [
  { bug: 'a ReplicaSet that creates one pod too many', laws: ['L14'], plant: withReplicas(1), options: CALM },
  { bug: 'a ReplicaSet that deletes one pod too many', laws: ['L14'], plant: withReplicas(-1), options: CALM },
  {
    bug: 'sets of pods that change without a claim',
    laws: ['L14'],
    seed: 34,
    plant: withoutClaims,
    options: { ...PART, faults: ['slowStore', 'freeze', 'duplicateBatches', 'splitBatches'], faultsAStorm: 25 },
  },
  {
    bug: 'a rollout that ignores maxSurge',
    laws: ['L14'],
    seed: 33,
    plant: ofDeployment(({ spec }) => ({ ...spec?.strategy, rollingUpdate: { maxSurge: 9, maxUnavailable: 0 } })),
    options: CALM,
  },
  {
    bug: 'a rollout that ignores maxUnavailable',
    laws: ['L14'],
    seed: 33,
    plant: ofDeployment(({ spec }) => ({
      ...spec?.strategy,
      ...(spec?.strategy?.type === 'RollingUpdate' && { rollingUpdate: { maxSurge: 0, maxUnavailable: '100%' } }),
    })),
    options: CALM,
  },
  {
    bug: 'a Recreate that does not wait for the old pods',
    laws: ['L14'],
    seed: 9,
    plant: ofDeployment(({ spec }) =>
      spec?.strategy?.type === 'Recreate'
        ? { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: '100%' } }
        : { ...spec?.strategy },
    ),
    options: CALM,
  },
  {
    bug: 'a Job that runs one pod too many',
    laws: ['L14'],
    plant: withParallelism((parallelism) => parallelism + 1),
    options: CALM,
  },
  {
    bug: 'a Job that deletes one pod too many',
    laws: ['L14'],
    plant: withParallelism((parallelism, { status }) => parallelism - Number((status?.active ?? 0) >= parallelism)),
    options: CALM,
  },
  { bug: 'a Job that loses counts', laws: ['L14'], plant: losesCounts, options: CALM },
  {
    bug: 'a DaemonSet that does not see its pods',
    laws: ['L14'],
    plant: podsOf('DaemonSet', (pod) => ({
      ...pod,
      metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
      status: { ...pod.status, phase: 'Failed' },
    })),
    options: CALM,
  },
  {
    bug: 'a DaemonSet that replaces all pods at once',
    laws: ['L14'],
    seed: 36,
    plant: misread<KubeDaemonSet>('daemonsets', (set) => ({
      ...set,
      spec: { ...set.spec, updateStrategy: { rollingUpdate: { maxUnavailable: '100%' } } },
    })),
    options: CALM,
  },
  {
    bug: 'a StatefulSet that frees the name of a pod that still runs',
    laws: ['L14'],
    plant: freesNames,
    options: CALM,
  },
  {
    bug: 'a StatefulSet that replaces a pod while another one is not Ready',
    laws: ['L14'],
    seed: 39,
    plant: podsOf('StatefulSet', (pod) => ({
      ...pod,
      status: { ...pod.status, phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    })),
    options: CALM,
  },
  {
    bug: 'a StatefulSet that deletes its pods in any order',
    laws: ['L14'],
    plant: misread<KubeStatefulSet>('statefulsets', (set) => ({
      ...set,
      spec: { ...set.spec, podManagementPolicy: 'Parallel' },
    })),
    options: CALM,
  },
  {
    bug: 'a rollout that ignores the gate',
    laws: ['L15'],
    seed: 6,
    plant: onlyFor('workloads', seenThrough({ read: withOpenGate })),
    options: { ...PART, faults: ['apiOutage'], faultsAStorm: 28 },
  },
  {
    bug: 'a rollout that ignores total disruption',
    laws: ['L15'],
    seed: 12,
    plant: onlyFor('workloads', seenThrough({ read: withoutTotalDisruption })),
    options: { ...PART, faults: ['siteCut'], faultsAStorm: 28, nodes: 5 },
  },
  {
    bug: 'an eviction that ignores the gate',
    laws: ['L15'],
    seed: 16,
    plant: onlyFor('evictor', seenThrough({ read: withOpenGate })),
    options: { ...PART, faults: ['apiOutage'], faultsAStorm: 28, nodes: 5 },
  },
  {
    bug: 'a collector that does not find owners that are stored',
    laws: ['L16'],
    plant: misread('configmaps', (object) =>
      object.metadata.ownerReferences === undefined
        ? { ...object, metadata: { ...object.metadata, uid: 'another' } }
        : object,
    ),
    options: CALM,
  },
  {
    bug: 'a collector that treats an owner of an unknown kind as deleted',
    laws: ['L16'],
    plant: misread('configmaps', (object) => {
      const owners = object.metadata.ownerReferences?.map((owner) => ({
        ...owner,
        apiVersion: 'v1',
        kind: 'ConfigMap',
      }));
      return owners === undefined ? object : { ...object, metadata: { ...object.metadata, ownerReferences: owners } };
    }),
    options: CALM,
  },
  {
    bug: 'a collector that deletes what shall be orphaned',
    laws: ['L16'],
    seed: 32,
    plant: onlyFor(
      'workloads',
      seenThrough({
        read: (item) =>
          String(item['pk']).startsWith('o#') && item['o'] !== undefined && textOf(item).includes('"orphan"')
            ? { ...item, o: textOf(item).replaceAll('"orphan"', '"foregroundDeletion"') }
            : item,
      }),
    ),
    options: CALM,
  },
  {
    bug: 'a stream record of workloads that is lost',
    laws: ['workloads'],
    plant: {
      controllers: (controllers) => ({
        ...controllers,
        onWorkloadRecords: (records) => controllers.onWorkloadRecords(records.filter((_, index) => index % 3 !== 1)),
      }),
    },
    options: CALM,
  },
];
