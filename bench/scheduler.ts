/**
 * The scheduler: its rules alone, and passes through the store in memory, which counts units as DynamoDB does.
 * `workloads` has the time until a pod is bound.
 */
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { COMMIT_REFUSALS, SCHEDULING_SLI } from '../functions/scheduler/metrics.ts';
import { schedulePod } from '../functions/scheduler/rule.ts';
import { PRICES } from '../shared/cost/prices.ts';
import { nodeHealthWrites } from '../shared/fleet/nodes/change-node.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { clusterObjects } from '../shared/kinds/resources.ts';
import type { KubeNode, KubePod } from '../shared/kinds/types.ts';
import { queueStore } from '../shared/scheduling/queue-store.ts';
import { Snapshot } from '../shared/scheduling/snapshot.rule.ts';
import { schedulableNode, schedulablePod } from '../shared/scheduling/world.rule.ts';
import type { ItemStore } from '../shared/store/item-store.ts';
import { memoryItemStore } from '../shared/store/memory/item-store.ts';
import { readyNode } from '../simulation/ready-node.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import {
  type Benchmark,
  type Figures,
  oneOrAll,
  percentile,
  readOptions,
  rounded,
  wholeNumber,
  wholeNumbers,
} from './benchmark.ts';
import { slopeOf } from './slope.ts';
import { controllersOf } from './system.ts';

const ZONES = 3;
const PODS_PER_NODE = 10;
const MIXES = ['plain', 'mixed'] as const;
/** Passes at once. They do not wait for their turn. */
const PASSES_AT_ONCE = 4;
const STORE_NODES = 100;
const PASSES_MAX = 20;
const OPTIONS = { percentageOfNodesToScore: 0, defaultTopologySpread: 'system' } as const;

export const scheduler: Benchmark = {
  name: 'scheduler',
  about: 'pods per second by the rules alone and through the store, write units per binding',
  usage: '[--nodes 100,1000,5000] [--pods 1000] [--part rules|store|contention]',
  smallest: ['--nodes', '10', '--pods', '20'],
  async run(print, words) {
    const text = { type: 'string' } as const;
    const options = readOptions(words, { nodes: text, pods: text, part: text });
    const sizes = wholeNumbers('nodes', options.nodes, { least: 1, most: 100_000, otherwise: [100, 1_000, 5_000] });
    const pods = wholeNumber('pods', options.pods, { least: 1, most: 100_000, otherwise: 1_000 });
    const parts = {
      rules: () => MIXES.flatMap((mix) => rulesOfMix(sizes, pods, mix)),
      store: async () => [await throughStore(pods), await throughStore(1)],
      contention: async () => [await throughStore(pods, PASSES_AT_ONCE)],
    };
    for (const measure of oneOrAll('part', options.part, parts)) {
      for (const figures of await measure()) print(figures);
    }
  },
};

function rulesOfMix(sizes: readonly number[], pods: number, mix: 'plain' | 'mixed'): readonly Figures[] {
  const measured = sizes.map((nodes) => rulesAlone(nodes, pods, mix));
  return measured.length < 2 ? measured : [...measured, { part: 'growth', mix, exponentOfNodes: growthOf(measured) }];
}

/** Seconds per pod grow with the number of nodes, and of pods on them, to this power. */
const growthOf = (measured: readonly RuleFigures[]): number =>
  rounded(
    slopeOf(measured.map(({ nodes, podsPerCpuSecond }) => [Math.log(nodes), -Math.log(podsPerCpuSecond)] as const)),
    2,
  );

const uidOf = (index: number): string => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;

function nodeOf(index: number): KubeNode {
  const node = readyNode(`node-${index}`, `zone-${index % ZONES}`, Date.now(), uidOf(index)) as KubeNode;
  const allocatable = { cpu: '16', memory: '64Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  return { ...node, spec: {}, status: { ...node.status, allocatable } };
}

/**
 * One container and a controller. Of ten mixed pods, two have a hard spread, one anti-affinity, two a preferred one.
 */
function podOf(index: number, mix: 'plain' | 'mixed', nodeName = ''): KubePod {
  const app = `app-${Math.floor(index / 10) % 50}`;
  const labels = { app };
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } };
  const kind = mix === 'plain' ? 9 : index % 10;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `pod-${index}`,
      namespace: 'default',
      uid: uidOf(1_000_000 + index),
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels,
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: app, uid: app, controller: true }],
    },
    spec: {
      ...(nodeName !== '' && { nodeName }),
      schedulerName: 'default-scheduler',
      containers: [
        { name: 'main', image: `registry.example/${app}:1`, resources: { requests: { cpu: '100m', memory: '128Mi' } } },
      ],
      ...(kind < 2 && {
        topologySpreadConstraints: [
          {
            maxSkew: 5,
            topologyKey: 'topology.kubernetes.io/zone',
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchLabels: labels },
          },
        ],
      }),
      ...(kind === 2 && { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } }),
      ...((kind === 3 || kind === 4) && {
        affinity: {
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 10, podAffinityTerm: term }],
          },
        },
      }),
    },
    status: { phase: nodeName === '' ? 'Pending' : 'Running' },
  };
}

const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

type RuleFigures = Figures & { readonly nodes: number; readonly podsPerCpuSecond: number };

function rulesAlone(nodes: number, count: number, mix: 'plain' | 'mixed'): RuleFigures {
  const snapshot = new Snapshot();
  for (let index = 0; index < nodes; index += 1) snapshot.setNode(schedulableNode(nodeOf(index)));
  const existing = nodes * PODS_PER_NODE;
  // Pods that run have no anti-affinity: there are more of an app than nodes.
  for (let index = 0; index < existing; index += 1) {
    snapshot.setPod(schedulablePod(podOf(index, 'plain', `node-${index % nodes}`)));
  }
  const pods = Array.from({ length: count }, (_, index) => schedulablePod(podOf(existing + index, mix)));
  let bound = 0;
  const startSeconds = cpuSeconds();
  for (const pod of pods) {
    const outcome = schedulePod(pod, snapshot, OPTIONS);
    if (outcome.kind !== 'fits') continue;
    snapshot.setPod({ ...pod, nodeName: outcome.nodeName });
    bound += 1;
  }
  const seconds = cpuSeconds() - startSeconds;
  return {
    part: 'rules',
    nodes,
    existingPods: existing,
    mix,
    bound,
    podsPerCpuSecond: Math.round(count / seconds),
    heapMegabytes: Math.round(process.memoryUsage().heapUsed / 1e6),
  };
}

/** What one of several passes at once sees: other calls run between its own, and its turn has always come. */
function amongOthers(items: ItemStore): ItemStore {
  const around = async <T>(run: () => Promise<T>): Promise<T> => {
    await turn();
    return run();
  };
  return {
    get: (...args) => around(() => items.get(...args)),
    getMany: (...args) => around(() => items.getMany(...args)),
    query: (...args) => around(() => items.query(...args)),
    scan: (...args) => around(() => items.scan(...args)),
    transact: (writes) => around(() => items.transact(writes)),
    write: (write, options) =>
      around(() => {
        const { when: _when, ...free } = write;
        return items.write(write.key.sk === 'turn' ? free : write, options);
      }),
  };
}

async function throughStore(pods: number, passesAtOnce = 1): Promise<Figures> {
  const units = { readUnits: 0, writeUnits: 0 };
  const items = memoryItemStore({
    onConsumed({ readUnits, writeUnits }) {
      units.readUnits += readUnits;
      units.writeUnits += writeUnits;
    },
  });
  const clock = { nowMs: () => Date.now() };
  const fraction = seededFraction(7);
  const objects = clusterObjects({ items, clock, random: { fraction, uuid: () => crypto.randomUUID() } });
  const create = async (resource: string, object: KubeNode | KubePod): Promise<void> => {
    const ref = { resource, namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' };
    const write = { kind: 'create', ref, object } as const;
    await objects.commit({ writes: [write], extra: resource === 'nodes' ? nodeHealthWrites(write, Date.now()) : [] });
  };
  for (let index = 0; index < STORE_NODES; index += 1) await create('nodes', nodeOf(index));
  for (let index = 0; index < pods; index += 1) await create('pods', podOf(index, 'mixed'));
  let startMs = 0;
  /** From the request of the first pass, when all pods exist. */
  const boundMs: number[] = [];
  const refusals: Record<string, number> = {};
  const onMetric = (name: string, value: number, labels: Readonly<Record<string, string>> = {}): void => {
    const { cause = '' } = labels;
    if (name === COMMIT_REFUSALS) refusals[cause] = (refusals[cause] ?? 0) + value;
    if (name === SCHEDULING_SLI) boundMs.push(performance.now() - startMs);
  };
  const processes = Array.from({ length: passesAtOnce }, () =>
    controllersOf({
      ...{ clock, fraction, pause, onError: console.error },
      items: passesAtOnce === 1 ? items : amongOthers(items),
      policy: { ...defaultPolicy, schedulerGate: 'off' },
      meter: { add: (name, value, _unit, labels) => onMetric(name, value, labels) },
    }),
  );
  // The first pass reads the cluster.
  const queue = queueStore(items);
  Object.assign(units, { readUnits: 0, writeUnits: 0 });
  startMs = performance.now();
  const startSeconds = cpuSeconds();
  let bound = 0;
  for (let passes = 0; passes < PASSES_MAX && bound < pods; passes += 1) {
    await queue.request();
    const reports = await Promise.all(processes.map((each) => each.tickScheduler(0, 60_000)));
    for (const report of reports) bound += report.kind === 'ran' ? report.bound : 0;
  }
  return {
    part: passesAtOnce === 1 ? 'store' : 'contention',
    nodes: STORE_NODES,
    pods,
    bound,
    ...(passesAtOnce > 1 && { passesAtOnce, refusals: JSON.stringify(refusals) }),
    podsPerCpuSecond: Math.round(bound / (cpuSeconds() - startSeconds)),
    boundP50Ms: Math.round(percentile(boundMs, 0.5)),
    boundP99Ms: Math.round(percentile(boundMs, 0.99)),
    writeUnitsPerBinding: Math.round((units.writeUnits / bound) * 10) / 10,
    readUnits: units.readUnits,
    dollarsPer1000Bindings: rounded(
      ((units.writeUnits * PRICES.writeUnit + units.readUnits * PRICES.readUnit) * 1_000) / bound,
    ),
  };
}
