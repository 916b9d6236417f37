/**
 * The scheduler: its rules alone, and passes through the store. The store is in memory, which counts units as DynamoDB
 * does, or the embedded engine, as in local mode. Also the time until a pod is bound, through the whole local mode.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { dynamoDbItemStore } from '../shared/adapters/dynamodb/item-store.ts';
import { memoryItemStore } from '../shared/adapters/memory/item-store.ts';
import { clusterObjects } from '../shared/api/storage/cluster-objects.ts';
import { fleetControllers } from '../shared/controllers/index.ts';
import { queueStore } from '../shared/controllers/scheduler/queue-store.ts';
import { schedulePod } from '../shared/controllers/scheduler/rule.ts';
import { Snapshot } from '../shared/controllers/scheduler/snapshot.rule.ts';
import { schedulableNode, schedulablePod } from '../shared/controllers/scheduler/world.rule.ts';
import { PRICES } from '../shared/domain/cost/prices.ts';
import { defaultPolicy } from '../shared/domain/policy.ts';
import type { KubeDecision, KubeNode, KubePod } from '../shared/kube/types.ts';
import type { ConsumedUnits, ItemStore } from '../shared/ports/item-store.ts';
import { nodeHealthWrites } from '../shared/store/node-writes.ts';
import { readyNode } from '../simulation/ready-node.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import { startEngine } from '../test/support/engine.ts';
import {
  type Benchmark,
  type Figures,
  percentile,
  readOptions,
  rounded,
  UsageError,
  wholeNumber,
  wholeNumbers,
} from './benchmark.ts';
import { clientOf } from './heartbeat.ts';
import { startLocalHost } from './local-host.ts';
import { processesBelow } from './process-cpu.ts';
import { slopeOf } from './slope.ts';

const ZONES = 3;
const PODS_PER_NODE = 10;
const RULE_PODS = 1_000;
const MIXES = ['plain', 'mixed'] as const;
/** Nodes of the latency run. None sends heartbeats: the run ends before they count as silent. */
const LATENCY_NODES = 10;
const WAIT_SECONDS_MAX = 30;
const OPTIONS = { percentageOfNodesToScore: 0, defaultTopologySpread: 'system' } as const;

export const scheduler: Benchmark = {
  name: 'scheduler',
  about: 'pods per second by the rules alone and through the store, write units per binding, time until a pod is bound',
  usage:
    '[--nodes 100,1000,5000] [--pods 1000] [--latency-pods 100] [--pods-per-second 10] [--part rules|store|latency]',
  async run(print, words) {
    const options = readOptions(words, {
      nodes: { type: 'string' },
      pods: { type: 'string' },
      'latency-pods': { type: 'string' },
      'pods-per-second': { type: 'string' },
      part: { type: 'string' },
    });
    const { part } = options;
    if (part !== undefined && !['rules', 'store', 'latency'].includes(part)) {
      throw new UsageError(`--part expects rules, store or latency, not ${part}`);
    }
    const has = (name: string): boolean => part === undefined || part === name;
    const latency = { least: 1, most: 1_000 };
    const latencyPods = wholeNumber('latency-pods', options['latency-pods'], { ...latency, otherwise: 100 });
    const podsPerSecond = wholeNumber('pods-per-second', options['pods-per-second'], { ...latency, otherwise: 10 });
    const sizes = wholeNumbers('nodes', options.nodes, { least: 1, most: 100_000, otherwise: [100, 1_000, 5_000] });
    const pods = wholeNumber('pods', options.pods, { least: 1, most: 100_000, otherwise: 1_000 });
    if (has('rules')) {
      for (const mix of MIXES) {
        const measured = sizes.map((nodes) => rulesAlone(nodes, mix));
        for (const figures of measured) print(figures);
        if (measured.length > 1) print({ part: 'growth', mix, exponentOfNodes: growthOf(measured) });
      }
    }
    if (has('store')) {
      print(await throughStore('memory', pods));
      print(await throughStore('memory', 1));
      print(await throughStore('engine', pods));
    }
    if (has('latency')) print(await timeToBind(latencyPods, podsPerSecond));
  },
};

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

/** One container and a controller. Of ten mixed pods, two have a hard spread, one anti-affinity, two a preferred one. */
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

function rulesAlone(nodes: number, mix: 'plain' | 'mixed'): RuleFigures {
  const snapshot = new Snapshot();
  for (let index = 0; index < nodes; index += 1) snapshot.setNode(schedulableNode(nodeOf(index)));
  const existing = nodes * PODS_PER_NODE;
  // Pods that run have no anti-affinity: there are more of an app than nodes.
  for (let index = 0; index < existing; index += 1) {
    snapshot.setPod(schedulablePod(podOf(index, 'plain', `node-${index % nodes}`)));
  }
  const pods = Array.from({ length: RULE_PODS }, (_, index) => schedulablePod(podOf(existing + index, mix)));
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
    podsPerCpuSecond: Math.round(RULE_PODS / seconds),
    heapMegabytes: Math.round(process.memoryUsage().heapUsed / 1e6),
  };
}

async function throughStore(kind: 'memory' | 'engine', pods: number): Promise<Figures> {
  const nodes = 100;
  const units = { readUnits: 0, writeUnits: 0 };
  const onConsumed = ({ readUnits, writeUnits }: ConsumedUnits): void => {
    units.readUnits += readUnits;
    units.writeUnits += writeUnits;
  };
  const engine = kind === 'engine' ? await startEngine() : undefined;
  try {
    const items: ItemStore =
      engine === undefined
        ? memoryItemStore({ onConsumed })
        : dynamoDbItemStore({ client: engine.client, tables: engine.tables, onConsumed, random: Math.random });
    const clock = { nowMs: () => Date.now() };
    const fraction = seededFraction(7);
    const random = { fraction, uuid: () => crypto.randomUUID() };
    const objects = clusterObjects({ items, clock, random });
    const create = async (resource: string, object: KubeNode | KubePod): Promise<void> => {
      const ref = { resource, namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' };
      const write = { kind: 'create', ref, object } as const;
      await objects.commit({ writes: [write], extra: resource === 'nodes' ? nodeHealthWrites(write, Date.now()) : [] });
    };
    for (let index = 0; index < nodes; index += 1) await create('nodes', nodeOf(index));
    for (let index = 0; index < pods; index += 1) await create('pods', podOf(index, 'mixed'));
    const controllers = fleetControllers({
      items,
      clock,
      random,
      policy: { ...defaultPolicy, schedulerGate: 'off' },
      log: { debug() {}, info() {}, warn() {}, error: (message, fields) => console.error(message, fields) },
      meter: { add() {} },
    });
    // The first pass reads the cluster.
    const queue = queueStore(items);
    Object.assign(units, { readUnits: 0, writeUnits: 0 });
    const startMs = performance.now();
    const startSeconds = cpuSeconds();
    let bound = 0;
    for (let passes = 0; passes < 20 && bound < pods; passes += 1) {
      await queue.request();
      const report = await controllers.tickScheduler(0, 60_000);
      if (report.kind === 'ran') bound += report.bound;
    }
    const seconds = (performance.now() - startMs) / 1_000;
    return {
      part: 'store',
      store: kind,
      nodes,
      pods,
      bound,
      podsPerSecond: Math.round(bound / seconds),
      podsPerCpuSecond: Math.round(bound / (cpuSeconds() - startSeconds)),
      writeUnitsPerBinding: Math.round((units.writeUnits / bound) * 10) / 10,
      readUnits: units.readUnits,
      dollarsPer1000Bindings: rounded(
        ((units.writeUnits * PRICES.writeUnit + units.readUnits * PRICES.readUnit) * 1_000) / bound,
      ),
    };
  } finally {
    await engine?.stop();
  }
}

/**
 * Time from the response to the creation of a pod until the decision that binds it, through the whole local mode. The
 * commit of the decision follows within some milliseconds.
 */
async function timeToBind(pods: number, podsPerSecond: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'nk-bench-'));
  const local = await startLocalHost({ dataDirectory: folder, port: 0 });
  const client = clientOf(local, 8);
  const send = async (method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> => {
    const answer = await client.send({ method, path, ...(body !== undefined && { body }) });
    if (answer.kind !== 'answered' || answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer.body;
  };
  const create = async (name: string): Promise<void> => {
    const { metadata, spec } = podOf(0, 'plain');
    const { labels = {} } = metadata;
    await send('POST', '/api/v1/namespaces/default/pods', { metadata: { name, labels }, spec });
  };
  try {
    for (let index = 0; index < LATENCY_NODES; index += 1) {
      const { metadata, status } = nodeOf(index);
      await send('POST', '/api/v1/nodes', { metadata: { name: metadata.name, labels: metadata.labels }, status });
    }
    await create('first');
    await boundTimes(send, 1);
    const createdAtMs = new Map<string, number>();
    const startMs = Date.now();
    const startCpuMs = cpuMsOf(local.pid);
    const sent: Promise<void>[] = [];
    for (let index = 0; index < pods; index += 1) {
      await pause(Math.max(0, startMs + (index * 1_000) / podsPerSecond - Date.now()));
      const name = `pod-${index}`;
      sent.push(create(name).then(() => void createdAtMs.set(name, Date.now())));
    }
    await Promise.all(sent);
    const times = await boundTimes(send, pods + 1);
    const waitedMs = [...createdAtMs].map(([name, fromMs]) => Math.max(0, times.get(name)! - fromMs));
    return {
      part: 'latency',
      nodes: LATENCY_NODES,
      pods,
      podsPerSecond,
      p50Ms: Math.round(percentile(waitedMs, 0.5)),
      p99Ms: Math.round(percentile(waitedMs, 0.99)),
      maxMs: Math.max(...waitedMs),
      cpuMsPerPod: Math.round((cpuMsOf(local.pid) - startCpuMs) / pods),
      load: Math.round(loadavg()[0]! * 10) / 10,
    };
  } finally {
    client.close();
    await local.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const cpuMsOf = (pid: number): number => processesBelow([pid]).reduce((sum, { cpuMs }) => sum + cpuMs, 0);

/** Epoch milliseconds of the decisions to bind, by pod name, when there are as many. */
async function boundTimes(
  send: (method: 'GET', path: string) => Promise<unknown>,
  wanted: number,
): Promise<ReadonlyMap<string, number>> {
  const path = '/apis/nodekeeper.dev/v1alpha1/decisions?fieldSelector=act%3DPodScheduled';
  for (let waited = 0; waited < WAIT_SECONDS_MAX; waited += 1) {
    const { items } = (await send('GET', path)) as { readonly items: readonly KubeDecision[] };
    if (items.length >= wanted) {
      return new Map(items.map(({ spec }) => [spec?.about?.name ?? '', (spec as { readonly atMs: number }).atMs]));
    }
    await pause(1_000);
  }
  throw new Error(`not all of ${wanted} pods were bound within ${WAIT_SECONDS_MAX} s`);
}
