/**
 * Deployments: write units of a pod's life over tables in memory, and times through the whole local mode: until the
 * pods of a Deployment are created, bound and Running, until an evicted pod is replaced, and a Deployment of 5,000
 * pods.
 *
 * Creation, binding and readiness are seen by a client that lists the pods every 200 ms, so they are up to 200 ms and
 * the time of a request late. With 5,000 pods, bindings have the times of their decision records.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ApiClient } from '../demo/fleet/api-client.ts';
import { defined } from '../shared/defined.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import type { KubeDecision, KubeObject, KubePod } from '../shared/kinds/types.ts';
import { queueStore } from '../shared/scheduling/queue-store.ts';
import { startMachines } from '../test/peer/workloads/machines.ts';
import { startEngine } from '../test/support/engine.ts';
import { writePolicy } from '../test/support/local.ts';
import { servedWorkloads } from '../test/support/served-workloads.ts';
import { type Benchmark, type Figures, oneOrAll, percentile, readOptions, rounded, wholeNumber } from './benchmark.ts';
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts';
import { clientOf } from './heartbeat.ts';
import { type LocalHost, startLocalHost } from './local-host.ts';
import { processesBelow } from './process-cpu.ts';

const APPS = '/apis/apps/v1/namespaces/default';
const CORE = '/api/v1/namespaces/default';
const MERGE = 'application/merge-patch+json';
const MACHINES = 10;
/** Pods of the Deployment, and of the life that is counted. */
const PODS = 100;
/** One pod of each of these Deployments is evicted at the same time. */
const OWNERS = 10;
const PODS_PER_MACHINE = 110;
const LOOK_MS = 250;
const OBSERVE_MS = 200;
const WAIT_MS_MAX = 600_000;
const PAGE = 500;
/** Causes of refused writes that are printed. */
const REFUSALS_MAX = 8;

export const workloads: Benchmark = {
  name: 'workloads',
  about: 'Deployments: write units per pod, time until pods are created, bound, Running and replaced, 5,000 pods',
  usage: '[--part units|deployment|replacements|scale] [--rounds 10] [--pods 5000]',
  smallest: ['--part', 'units'],
  onlyByName: true,
  async run(print, words) {
    const text = { type: 'string' } as const;
    const options = readOptions(words, { part: text, rounds: text, pods: text });
    const rounds = wholeNumber('rounds', options.rounds, { least: 1, most: 100, otherwise: 10 });
    const pods = wholeNumber('pods', options.pods, { least: 100, most: 20_000, otherwise: 5_000 });
    const parts = {
      units: unitsOfLife,
      deployment: () => inLocalMode(deploymentTimes),
      replacements: () => inLocalMode((cluster) => replacementTimes(cluster, rounds)),
      scale: () => inLocalMode((cluster) => scaleTimes(cluster, pods)),
    };
    for (const measure of oneOrAll('part', options.part, parts)) {
      for (const figures of [await measure()].flat()) print(figures);
    }
  },
};

const nodeOf = (name: string) => ({
  metadata: { name, labels: { 'kubernetes.io/hostname': name } },
  status: {
    allocatable: { cpu: '64', memory: '256Gi', pods: String(PODS_PER_MACHINE) },
    capacity: { cpu: '64', memory: '256Gi', pods: String(PODS_PER_MACHINE) },
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
  },
});

const deploymentOf = (name: string, replicas: number) => ({
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: 'main',
            image: `registry.example/${name}:1`,
            resources: { requests: { cpu: '10m', memory: '16Mi' } },
            env: [{ name: 'LEVEL', value: 'info' }],
            ports: [{ containerPort: 8080 }],
          },
        ],
      },
    },
  },
});

/** Write units per pod of each part of a life. The records of the stream arrive in batches of at most 10 pods. */
async function unitsOfLife(): Promise<readonly Figures[]> {
  let units = 0;
  const cluster = servedWorkloads({
    onConsumed: ({ writeUnits }) => {
      units += writeUnits;
    },
    policy: { ...defaultPolicy, schedulerGate: 'off' },
  });
  const figures: Figures[] = [];
  let total = 0;
  const done = (change: string): void => {
    figures.push({ part: 'units', change, pods: PODS, writeUnitsPerPod: rounded(units / PODS, 3) });
    total += units;
    units = 0;
  };
  const pods = async (): Promise<readonly KubePod[]> => (await cluster.ok('GET', `${CORE}/pods`)).items;
  const inBatches = async (work: (pod: KubePod, path: string) => Promise<unknown>): Promise<void> => {
    for (const [index, pod] of (await pods()).entries()) {
      await work(pod, `${CORE}/pods/${pod.metadata.name}`);
      if (index % 10 === 9) await cluster.settle();
    }
    await cluster.settle();
  };
  for (let index = 0; index < MACHINES; index += 1) {
    await cluster.ok('POST', '/api/v1/nodes', { ...nodeOf(`node-${index}`), spec: { taints: [] } });
    await cluster.api.send('PATCH', `/api/v1/nodes/node-${index}`, {
      body: { spec: { taints: null } },
      contentType: MERGE,
    });
  }
  await cluster.settle();
  await cluster.tickAfter(5_000);
  units = 0;
  await cluster.ok('POST', `${APPS}/deployments`, deploymentOf('web', PODS));
  await cluster.settle();
  done('created by the Deployment');
  const queue = queueStore(cluster.items);
  for (let pass = 0; pass < 20; pass += 1) {
    if ((await pods()).every(({ spec }) => spec?.nodeName !== undefined)) break;
    await queue.request();
    await cluster.controllers.tickScheduler(pass, 60_000);
    await cluster.settle();
  }
  done('bound');
  await inBatches(async (_pod, path) => {
    const now = new Date(cluster.api.nowMs()).toISOString().replace('.000', '');
    const ready = { type: 'Ready', status: 'True', lastTransitionTime: now };
    const started = { name: 'main', image: 'i', imageID: '', ready: true, restartCount: 0, state: { running: {} } };
    const status = { phase: 'Running', conditions: [ready], podIP: '10.0.0.9', containerStatuses: [started] };
    const { code, text } = await cluster.api.send('PATCH', `${path}/status`, { body: { status }, contentType: MERGE });
    if (code !== 200) throw new Error(text);
  });
  done('Running');
  await cluster.api.send('PATCH', `${APPS}/deployments/web/scale`, {
    body: { spec: { replicas: 0 } },
    contentType: MERGE,
  });
  await cluster.settle();
  done('deleted by the ReplicaSet');
  await inBatches((_pod, path) => cluster.ok('DELETE', `${path}?gracePeriodSeconds=0`));
  done('removed');
  return [...figures, { part: 'units', change: 'all', pods: PODS, writeUnitsPerPod: rounded(total / PODS, 3) }];
}

interface Cluster {
  readonly proxy: CountingProxy;
  readonly local: LocalHost;
  readonly client: ApiClient;
  ok(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<unknown>;
}

async function inLocalMode(measure: (cluster: Cluster) => Promise<Figures>): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'nk-bench-'));
  // Nodes without heartbeats stay Ready for the run.
  const policyFile = writePolicy({ nodeMonitorGracePeriodSeconds: 3_600, nodeStartupGracePeriodSeconds: 3_600 });
  const engine = await startEngine();
  const proxy = await startCountingProxy(engine.endpoint);
  const local = await startLocalHost({ dynamodbEndpoint: proxy.endpoint, dataDirectory: folder, port: 0, policyFile });
  const client = clientOf(local, 8);
  const ok: Cluster['ok'] = async (method, path, body) => {
    const contentType = method === 'PATCH' ? MERGE : undefined;
    const answer = await client.send({ method, path, ...(body && { body }), ...(contentType && { contentType }) });
    if (answer.kind !== 'answered' || answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer.body;
  };
  try {
    return await measure({ proxy, local, client, ok });
  } finally {
    client.close();
    await local.stop();
    await proxy.close();
    await engine.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Sighting {
  readonly owner: string;
  readonly createdAtMs: number;
  readonly boundAtMs?: number;
  readonly readyAtMs?: number;
}

/** When each pod was first seen, first seen with a node, and first seen Ready. */
function observePods({ ok }: Cluster) {
  const seen = new Map<string, Sighting>();
  const stopped = new AbortController();
  const look = async (): Promise<void> => {
    const { items } = (await ok('GET', `${CORE}/pods`)) as { readonly items: readonly KubePod[] };
    const nowMs = Date.now();
    for (const { metadata, spec, status } of items) {
      const name = metadata.name ?? '';
      const before = seen.get(name);
      const isReady = (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True');
      seen.set(name, {
        owner: metadata.ownerReferences?.[0]?.name ?? '',
        createdAtMs: before?.createdAtMs ?? nowMs,
        ...defined({
          boundAtMs: before?.boundAtMs ?? (spec?.nodeName === undefined ? undefined : nowMs),
          readyAtMs: before?.readyAtMs ?? (isReady ? nowMs : undefined),
        }),
      });
    }
  };
  const running = (async () => {
    while (!stopped.signal.aborted) {
      await look();
      await pause(OBSERVE_MS);
    }
  })();
  return {
    seen,
    async stop() {
      stopped.abort();
      await running;
    },
  };
}

async function bindings(cluster: Cluster): Promise<ReadonlyMap<string, number>> {
  const found = await decisions(cluster, 'PodScheduled');
  return new Map(found.map(({ spec }) => [spec?.about?.name ?? '', (spec as { readonly atMs: number }).atMs]));
}

async function decisions({ ok }: Cluster, act: string): Promise<readonly KubeDecision[]> {
  const all: KubeDecision[] = [];
  let next: string | undefined = '';
  while (next !== undefined) {
    const query: string = `fieldSelector=act%3D${act}&limit=${PAGE}${next === '' ? '' : `&continue=${next}`}`;
    const page = (await ok('GET', `/apis/nodekeeper.dev/v1alpha1/decisions?${query}`)) as {
      readonly items: readonly KubeDecision[];
      readonly metadata: { readonly continue?: string };
    };
    all.push(...page.items);
    next = page.metadata.continue || undefined;
  }
  return all;
}

async function waitFor(what: string, holds: () => Promise<boolean>): Promise<number> {
  const endMs = Date.now() + WAIT_MS_MAX;
  while (!(await holds())) {
    if (Date.now() > endMs) throw new Error(`${what}: not within ${WAIT_MS_MAX / 1_000} s`);
    await pause(LOOK_MS);
  }
  return Date.now();
}

const replicasOf = async ({ ok }: Cluster, name: string): Promise<Readonly<Record<string, number>>> =>
  ((await ok('GET', `${APPS}/deployments/${name}`)) as KubeObject).status as Record<string, number>;

const availability = (cluster: Cluster, name: string, wanted: number) => async (): Promise<boolean> =>
  (await replicasOf(cluster, name))['availableReplicas'] === wanted;

const machineNames = Array.from({ length: MACHINES }, (_, index) => `machine-${index}`);
const load = (): number => rounded(loadavg()[0]!, 2);
const cpuMsOf = (pid: number): number => processesBelow([pid]).reduce((sum, { cpuMs }) => sum + cpuMs, 0);
const secondsSince = (startMs: number, atMs: number): number => rounded((atMs - startMs) / 1_000, 3);

/** Consumed since the last call, per pod. The requests of the client that observes count, too. */
function unitsPerPod(proxy: CountingProxy, pods: number) {
  const { readUnits, writeUnits, refusedWriteUnits, refusals } = proxy.take();
  const top = Object.entries(refusals).toSorted(([, one], [, other]) => other - one);
  return {
    writeUnitsPerPod: rounded(writeUnits / pods, 3),
    refusedWriteUnitsPerPod: rounded(refusedWriteUnits / pods, 3),
    readUnitsPerPod: rounded(readUnits / pods, 3),
    refusals: top
      .slice(0, REFUSALS_MAX)
      .map(([cause, count]) => `${cause} ${count}`)
      .join(', '),
  };
}

async function deploymentTimes(cluster: Cluster): Promise<Figures> {
  const machines = await startMachines(cluster.client, machineNames);
  const observed = observePods(cluster);
  try {
    cluster.proxy.take();
    const startMs = Date.now();
    const startCpuMs = cpuMsOf(cluster.local.pid);
    await cluster.ok('POST', `${APPS}/deployments`, deploymentOf('web', PODS));
    const availableAtMs = await waitFor('all pods available', availability(cluster, 'web', PODS));
    const cpuMs = cpuMsOf(cluster.local.pid) - startCpuMs;
    const pods = [...observed.seen.values()];
    const last = (timeOf: (pod: Sighting) => number | undefined): number =>
      secondsSince(startMs, Math.max(...pods.map((pod) => timeOf(pod) ?? Number.NaN)));
    const units = unitsPerPod(cluster.proxy, PODS);
    const downMs = Date.now();
    await cluster.ok('PATCH', `${APPS}/deployments/web/scale`, { spec: { replicas: 1 } });
    const reducedAtMs = await waitFor('one pod', async () => (await replicasOf(cluster, 'web'))['replicas'] === 1);
    return {
      part: 'deployment',
      machines: MACHINES,
      pods: pods.length,
      allCreatedSeconds: last(({ createdAtMs }) => createdAtMs),
      allBoundSeconds: last(({ boundAtMs }) => boundAtMs),
      allReadySeconds: last(({ readyAtMs }) => readyAtMs),
      allAvailableInStatusSeconds: secondsSince(startMs, availableAtMs),
      downToOneInStatusSeconds: secondsSince(downMs, reducedAtMs),
      cpuMsPerPod: rounded(cpuMs / PODS, 3),
      ...units,
      load: load(),
    };
  } finally {
    await observed.stop();
    await machines.stop();
  }
}

/** One pod of each of 10 Deployments is evicted at the same time, again and again. */
async function replacementTimes(cluster: Cluster, rounds: number): Promise<Figures> {
  const machines = await startMachines(cluster.client, machineNames);
  const names = Array.from({ length: OWNERS }, (_, index) => `web-${index}`);
  const size = PODS / OWNERS;
  const created: number[] = [];
  const bound: number[] = [];
  await Promise.all(names.map((name) => cluster.ok('POST', `${APPS}/deployments`, deploymentOf(name, size))));
  const observed = observePods(cluster);
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const name of names) await waitFor(`${name} available`, availability(cluster, name, size));
      // A deletion that was committed a moment ago is in the status.
      await pause(2 * OBSERVE_MS);
      const before = new Set(observed.seen.keys());
      const evictedAtMs = new Map<string, number>();
      await Promise.all(
        names.map(async (name) => {
          const { metadata } = await onePodOf(cluster, name);
          const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: metadata.name } };
          await cluster.ok('POST', `${CORE}/pods/${metadata.name}/eviction`, eviction);
          evictedAtMs.set(metadata.ownerReferences?.[0]?.name ?? '', Date.now());
        }),
      );
      const replacements = (): readonly Sighting[] =>
        [...observed.seen].flatMap(([name, pod]) => (before.has(name) ? [] : [pod]));
      await waitFor('all replacements bound', async () => {
        const found = replacements();
        return found.length === OWNERS && found.every(({ boundAtMs }) => boundAtMs !== undefined);
      });
      for (const { owner, createdAtMs, boundAtMs = Number.NaN } of replacements()) {
        const fromMs = evictedAtMs.get(owner) ?? Number.NaN;
        created.push(Math.max(0, createdAtMs - fromMs));
        bound.push(Math.max(0, boundAtMs - fromMs));
      }
    }
  } finally {
    await observed.stop();
    await machines.stop();
  }
  return {
    part: 'replacements',
    owners: OWNERS,
    evictions: created.length,
    createdP50Ms: Math.round(percentile(created, 0.5)),
    createdP99Ms: Math.round(percentile(created, 0.99)),
    createdTargetMs: 2_000,
    boundP50Ms: Math.round(percentile(bound, 0.5)),
    boundP99Ms: Math.round(percentile(bound, 0.99)),
    boundTargetMs: 4_000,
    load: load(),
  };
}

async function onePodOf({ ok }: Cluster, name: string): Promise<KubePod> {
  const { items } = (await ok('GET', `${CORE}/pods?labelSelector=app%3D${name}`)) as { readonly items: KubePod[] };
  const pod = items.find(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (pod === undefined) throw new Error(`${name} has no pod`);
  return pod;
}

/** No pod is reported Running: what is measured is creation and binding. */
async function scaleTimes(cluster: Cluster, pods: number): Promise<Figures> {
  const nodes = Math.ceil((pods / PODS_PER_MACHINE) * 1.05);
  for (let index = 0; index < nodes; index += 1) await cluster.ok('POST', '/api/v1/nodes', nodeOf(`node-${index}`));
  cluster.proxy.take();
  const startMs = Date.now();
  const startCpuMs = cpuMsOf(cluster.local.pid);
  await cluster.ok('POST', `${APPS}/deployments`, deploymentOf('web', pods));
  const lastMs = await waitFor(
    'all pods in the status',
    async () => (await replicasOf(cluster, 'web'))['replicas'] === pods,
  );
  let times = await bindings(cluster);
  await waitFor('all pods bound', async () => {
    await pause(2_000);
    times = await bindings(cluster);
    return times.size >= pods;
  });
  return {
    part: 'scale',
    nodes,
    pods,
    allCreatedInStatusSeconds: secondsSince(startMs, lastMs),
    createdPerSecond: rounded((pods * 1_000) / (lastMs - startMs), 3),
    allBoundSeconds: secondsSince(startMs, Math.max(...times.values())),
    cpuMsPerPod: rounded((cpuMsOf(cluster.local.pid) - startCpuMs) / pods, 3),
    ...unitsPerPod(cluster.proxy, pods),
    load: load(),
  };
}
