/**
 * The scheduler: its rules alone, and passes through the store. The store is in memory, which counts units as DynamoDB
 * does, or the embedded engine, as in local mode. Also the time until a pod is bound, through the whole local mode.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { COMMIT_REFUSALS, SCHEDULING_SLI } from '../functions/scheduler/metrics.ts';
import { schedulePod } from '../functions/scheduler/rule.ts';
import { fleetControllers } from '../server/fleet-controllers.ts';
import { dynamoDbItemStore } from '../shared/aws/dynamodb/item-store.ts';
import { PRICES } from '../shared/cost/prices.ts';
import { nodeHealthWrites } from '../shared/fleet/nodes/node-writes.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { clusterObjects } from '../shared/kinds/cluster-objects.ts';
import type { KubeDecision, KubeNode, KubePod } from '../shared/kinds/types.ts';
import { queueStore } from '../shared/scheduling/queue-store.ts';
import { Snapshot } from '../shared/scheduling/snapshot.rule.ts';
import { schedulableNode, schedulablePod } from '../shared/scheduling/world.rule.ts';
import type { ConsumedUnits, ItemStore } from '../shared/store/item-store.ts';
import { memoryItemStore } from '../shared/store/memory/item-store.ts';
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
const PARTS = ['rules', 'store', 'contention', 'latency', 'burst'];
/** Passes at once. They do not wait for their turn. */
const PASSES_AT_ONCE = 4;
/** Nodes of the latency run. None sends heartbeats. */
const LATENCY_NODES = 10;
/** The run ends before the nodes count as silent. */
const POLICY = 'nodeMonitorGracePeriodSeconds: 3600\nnodeStartupGracePeriodSeconds: 3600\n';
const WAIT_SECONDS_MAX = 240;
/** Between two looks at the pods that wait. Milliseconds. */
const LOOK_MS = 1_000;
/** Creations in progress at once while all pods are created as fast as possible. */
const CREATIONS_AT_ONCE = 32;
const OPTIONS = { percentageOfNodesToScore: 0, defaultTopologySpread: 'system' } as const;

export const scheduler: Benchmark = {
  name: 'scheduler',
  about: 'pods per second by the rules alone and through the store, write units per binding, time until a pod is bound',
  usage:
    '[--nodes 100,1000,5000] [--pods 1000] [--latency-pods 100] [--pods-per-second 10] [--part rules|store|contention|latency|burst]',
  async run(print, words) {
    const options = readOptions(words, {
      nodes: { type: 'string' },
      pods: { type: 'string' },
      'latency-pods': { type: 'string' },
      'pods-per-second': { type: 'string' },
      part: { type: 'string' },
    });
    const { part } = options;
    if (part !== undefined && !PARTS.includes(part)) {
      throw new UsageError(`--part expects one of ${PARTS.join(', ')}, not ${part}`);
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
    if (has('contention')) print(await throughStore('memory', pods, PASSES_AT_ONCE));
    if (has('latency')) print(await timeToBind(latencyPods, podsPerSecond));
    if (has('burst')) print(await timeToBind(pods, undefined));
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

async function throughStore(kind: 'memory' | 'engine', pods: number, passesAtOnce = 1): Promise<Figures> {
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
      fleetControllers({
        items: passesAtOnce === 1 ? items : amongOthers(items),
        clock,
        random,
        pause,
        policy: { ...defaultPolicy, schedulerGate: 'off' },
        log: { debug() {}, info() {}, warn() {}, error: (message, fields) => console.error(message, fields) },
        meter: { add: (name, value, _unit, labels) => onMetric(name, value, labels) },
      }),
    );
    // The first pass reads the cluster.
    const queue = queueStore(items);
    Object.assign(units, { readUnits: 0, writeUnits: 0 });
    startMs = performance.now();
    const startSeconds = cpuSeconds();
    let bound = 0;
    for (let passes = 0; passes < 20 && bound < pods; passes += 1) {
      await queue.request();
      const reports = await Promise.all(processes.map((each) => each.tickScheduler(0, 60_000)));
      for (const report of reports) bound += report.kind === 'ran' ? report.bound : 0;
    }
    const seconds = (performance.now() - startMs) / 1_000;
    return {
      part: passesAtOnce === 1 ? 'store' : 'contention',
      store: kind,
      nodes,
      pods,
      bound,
      ...(passesAtOnce > 1 && { passesAtOnce, refusals: JSON.stringify(refusals) }),
      podsPerSecond: Math.round(bound / seconds),
      podsPerCpuSecond: Math.round(bound / (cpuSeconds() - startSeconds)),
      boundP50Ms: Math.round(percentile(boundMs, 0.5)),
      boundP99Ms: Math.round(percentile(boundMs, 0.99)),
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
 *
 * @param podsPerSecond undefined: all at once
 */
async function timeToBind(pods: number, podsPerSecond: number | undefined): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'nk-bench-'));
  const policyFile = join(folder, 'policy.yaml');
  writeFileSync(policyFile, POLICY);
  const local = await startLocalHost({ dataDirectory: folder, port: 0, policyFile });
  const client = clientOf(local, CREATIONS_AT_ONCE);
  const send: Send = async (method, path, body) => {
    const answer = await client.send({ method, path, ...(body !== undefined && { body }) });
    if (answer.kind !== 'answered' || answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer.body;
  };
  const createdAtMs = new Map<string, number>();
  const create = async (name: string): Promise<void> => {
    const { metadata, spec } = podOf(0, 'plain');
    const { labels = {} } = metadata;
    await send('POST', '/api/v1/namespaces/default/pods', { metadata: { name, labels }, spec });
    createdAtMs.set(name, Date.now());
  };
  try {
    for (let index = 0; index < Math.max(LATENCY_NODES, pods / PODS_PER_NODE); index += 1) {
      const { metadata, status } = nodeOf(index);
      await send('POST', '/api/v1/nodes', { metadata: { name: metadata.name, labels: metadata.labels }, status });
    }
    await create('first');
    await untilAllAreBound(send);
    createdAtMs.clear();
    const startMs = Date.now();
    const startCpuMs = cpuMsOf(local.pid);
    const { functions: before } = await local.counters();
    const names = Array.from({ length: pods }, (_, index) => `pod-${index}`);
    if (podsPerSecond === undefined) await createAll(names, create);
    else await createSteadily(names, create, podsPerSecond);
    const createdSeconds = (Date.now() - startMs) / 1_000;
    await untilAllAreBound(send);
    const cpuMs = cpuMsOf(local.pid) - startCpuMs;
    const { functions: after } = await local.counters();
    const cpuOf = (name: string): number => Math.round((after[name]?.cpuMs ?? 0) - (before[name]?.cpuMs ?? 0));
    const times = await boundTimes(send);
    const waitedMs = [...createdAtMs].map(([name, fromMs]) => Math.max(0, times.get(name)! - fromMs));
    const lastMs = Math.max(...names.map((name) => times.get(name)!));
    return {
      part: podsPerSecond === undefined ? 'burst' : 'latency',
      nodes: Math.max(LATENCY_NODES, pods / PODS_PER_NODE),
      pods,
      podsPerSecond: podsPerSecond ?? Math.round(pods / createdSeconds),
      createdSeconds: rounded(createdSeconds),
      boundSeconds: rounded((lastMs - startMs) / 1_000),
      p50Ms: Math.round(percentile(waitedMs, 0.5)),
      p99Ms: Math.round(percentile(waitedMs, 0.99)),
      maxMs: Math.max(...waitedMs),
      cpuMsPerPod: Math.round(cpuMs / pods),
      cpuSecondsOfApi: rounded(cpuOf('api') / 1_000),
      cpuSecondsOfObjectStream: rounded(cpuOf('object-stream') / 1_000),
      cpuSecondsOfScheduler: rounded(cpuOf('scheduler') / 1_000),
      load: Math.round(loadavg()[0]! * 10) / 10,
    };
  } finally {
    client.close();
    await local.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Send = (method: 'GET' | 'POST', path: string, body?: object) => Promise<unknown>;

async function createAll(names: readonly string[], create: (name: string) => Promise<void>): Promise<void> {
  const left = [...names];
  const worker = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) await create(name);
  };
  await Promise.all(Array.from({ length: CREATIONS_AT_ONCE }, worker));
}

async function createSteadily(
  names: readonly string[],
  create: (name: string) => Promise<void>,
  podsPerSecond: number,
): Promise<void> {
  const startMs = Date.now();
  const sent: Promise<void>[] = [];
  for (const [index, name] of names.entries()) {
    await pause(Math.max(0, startMs + (index * 1_000) / podsPerSecond - Date.now()));
    sent.push(create(name));
  }
  await Promise.all(sent);
}

const cpuMsOf = (pid: number): number => processesBelow([pid]).reduce((sum, { cpuMs }) => sum + cpuMs, 0);

async function untilAllAreBound(send: Send): Promise<void> {
  const untilMs = Date.now() + WAIT_SECONDS_MAX * 1_000;
  for (;;) {
    const path = '/api/v1/namespaces/default/pods?limit=1&fieldSelector=spec.nodeName%3D';
    const { items } = (await send('GET', path)) as { readonly items: readonly unknown[] };
    if (items.length === 0) return;
    if (Date.now() > untilMs) throw new Error(`pods were not bound within ${WAIT_SECONDS_MAX} s`);
    await pause(LOOK_MS);
  }
}

/** Epoch milliseconds of the decisions to bind, by pod name. */
async function boundTimes(send: Send): Promise<ReadonlyMap<string, number>> {
  const path = '/apis/nodekeeper.dev/v1alpha1/decisions?fieldSelector=act%3DPodScheduled';
  const { items } = (await send('GET', path)) as { readonly items: readonly KubeDecision[] };
  return new Map(items.map(({ spec }) => [spec?.about?.name ?? '', (spec as { readonly atMs: number }).atMs]));
}
