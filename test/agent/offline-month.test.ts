/**
 * A month without the API on virtual time: the real agent over a real directory, with 20 pods that use ConfigMaps,
 * Secrets and tokens. Containers are in memory, and nothing but the directory survives a power cut.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadConfig } from '../../agent/adapters/config/load-config.ts';
import { machineSealer } from '../../agent/adapters/identity/machine-sealer.ts';
import { stateGenerations } from '../../agent/adapters/system/state-generations.ts';
import { PodMemory } from '../../agent/app/pods/pod-memory.ts';
import { runAgent } from '../../agent/app/run-agent.ts';
import type { AgentConfig } from '../../agent/config.ts';
import type { KubeApi } from '../../agent/ports/kube-api.ts';
import type { PodRuntime } from '../../agent/ports/pod-runtime.ts';
import type { StateGenerations } from '../../agent/ports/state-generations.ts';
import type { AgentTime } from '../../agent/ports/time.ts';
import { LOGIND_SHUTDOWN } from '../../agent/rules/shutdown-start.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import { silentLog, silentMeter, timedOut } from '../support/agent-api.ts';
import { type ApiInMemory, apiInMemory, pod, podsIn } from '../support/api-in-memory.ts';
import { edgeMachine as machine } from '../support/edge-machine.ts';
import { folderForTest } from '../support/folder-for-test.ts';
import { type MemoryHeartbeatFile, memoryHeartbeatFile, memoryPermitFile } from '../support/memory-heartbeat-file.ts';
import { type MemoryRuntime, memoryRuntime } from '../support/memory-runtime.ts';
import { type MemoryVolumes, memoryVolumes } from '../support/memory-volumes.ts';
import { SteppedTime, settle } from '../support/stepped-time.ts';
import { until } from '../support/until.ts';

const PODS = 20;
const CONFIG_MAP_BYTES = 40_000;
const SECRET_BYTES = 8_000;
const DISK_BYTES_MAX = 5_000_000;
const MINUTE_MS = 60_000;
/** In which pods are listed and a status is reported. */
const QUARTER_MS = 900_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;
const START_MS = Date.UTC(2026, 0, 1);
/** Of so many probes one fails. */
const PROBES_PER_FAILURE = 500;
const STARTED_WITHIN_MS = 30_000;
const CUTS = 10;
const TIMEOUT_MS = 300_000;
const DAYS_BETWEEN_CUTS = 3;
const CLOCK_ERRORS_MS = [0, YEAR_MS, -YEAR_MS];
/** Turns of the event loop in which a request is answered and what follows is done. */
const TURNS = 40;

let directory: string;
let server: ApiInMemory;
let time: SteppedTime;
let bootedAtMs: number;
let runtime: MemoryRuntime;
let volumes: MemoryVolumes;
let heartbeatFile: MemoryHeartbeatFile;
let stop: AbortController;
let running: Promise<void>;
let isLinkUp: boolean;
/** Nothing happens: all waits last a minute or more. A month then has few enough of them. */
let isAtRest: boolean;
let pending = 0;
let probes: number;
let restarts: number;
/** What the agent wrote into its directory. */
let writes: { count: number; bytes: number };
/** Error of each write; undefined: it succeeds. */
let diskFault: 'ENOSPC' | 'EROFS' | undefined;

const trueMs = (): number => bootedAtMs + time.monotonicMs();

const api: KubeApi = {
  async send({ method, path, body, contentType }) {
    if (!isLinkUp) return timedOut;
    const answer = await server.send(method, path, { body, contentType: contentType ?? 'application/json' });
    return { kind: 'answered', status: answer.code, body: answer.body };
  },
  reconnect() {},
};

const patient = (own: SteppedTime): AgentTime => ({
  nowMs: () => own.nowMs(),
  monotonicMs: () => own.monotonicMs(),
  uptimeMs: () => own.uptimeMs(),
  sleep: (milliseconds, signal) => own.sleep(isAtRest ? Math.max(milliseconds, MINUTE_MS) : milliseconds, signal),
});

function configured(): AgentConfig {
  const args = ['--endpoint', 'https://api.example', '--token', 't', '--root-dir', directory];
  const loaded = loadConfig(args, { readText: () => '', hostname: () => 'edge-1' });
  if (loaded.kind !== 'ok') throw new Error(JSON.stringify(loaded));
  // A heartbeat and a status every 10 s would be all that a month consists of.
  return { ...loaded.config, nodeLeaseDurationSeconds: 3_600, nodeStatusUpdateFrequencyMs: 600_000 };
}

/** A container runs again at once after its liveness probe has failed. */
function restartingRuntime(): MemoryRuntime {
  const made = memoryRuntime(time);
  const restartContainer: PodRuntime['restartContainer'] = async (uid, container) => {
    const found = (await made.pods()).find((each) => each.uid === uid)!;
    const { restartCount } = found.containers.find(({ name }) => name === container)!;
    restarts += 1;
    const more = { restartCount: restartCount + 1, containerId: `memory://${uid}/${container}/${restartCount + 1}` };
    made.setState(found.name, container, { kind: 'running', startedAtMs: time.nowMs() }, more);
  };
  return Object.assign(made, { restartContainer, execute: async () => ({ kind: 'failed', message: '' }) as const });
}

/** Its calls are slower than virtual time, which waits for them. */
function counted(generations: StateGenerations): StateGenerations {
  const underWay = async <T>(call: Promise<T>): Promise<T> => {
    pending += 1;
    return call.finally(() => {
      pending -= 1;
    });
  };
  return {
    remove: () => underWay(generations.remove()),
    read: () => underWay(generations.read()),
    async write(text) {
      if (diskFault !== undefined) throw Object.assign(new Error(`${diskFault}: the disk`), { code: diskFault });
      writes.count += 1;
      writes.bytes += Buffer.byteLength(text);
      await underWay(generations.write(text));
    },
  };
}

/** The machine boots. Its wall clock is wrong by so much. */
async function boot(clockAheadMs = 0): Promise<void> {
  bootedAtMs = time === undefined ? START_MS : trueMs();
  time = new SteppedTime(bootedAtMs);
  time.setClock(clockAheadMs);
  runtime = restartingRuntime();
  heartbeatFile = memoryHeartbeatFile();
  volumes = memoryVolumes();
  stop = new AbortController();
  const config = configured();
  const memory = new PodMemory({
    owner: config,
    generations: counted(stateGenerations(join(directory, 'remembered'))),
    sealer: machineSealer(config),
    log: silentLog,
  });
  running = runAgent(
    {
      ...{ config, agentVersion: 'v1', beatApi: api, api, machine, runtime, memory, heartbeatFile, volumes },
      permitFile: memoryPermitFile(),
      time: patient(time),
      clusterLabels: async () => ({}),
      numa: { nodes: [], distances: undefined },
      swaps: undefined,
      probeClient: {
        async httpGet() {
          probes += 1;
          return { kind: 'answered', status: probes % PROBES_PER_FAILURE === 0 ? 500 : 200, body: '' };
        },
        tcpConnect: async () => undefined,
      },
      shutdownSignal: {
        rules: LOGIND_SHUTDOWN,
        delayMaxMs: async () => 0,
        raiseDelayMax: async () => {},
        hold: async () => ({ release: async () => {} }),
        async *watch() {},
      },
      shutdownState: { read: async () => undefined, write: async () => {} },
      fraction: () => 0.5,
      compress: (bytes) => bytes,
      log: silentLog,
      meter: silentMeter,
      serveHealth: async () => {},
    },
    stop.signal,
  );
  await quiet();
}

async function diskIdle(): Promise<void> {
  if (pending > 0) await until(() => pending === 0, { withinMs: 10_000, everyMs: 1 });
}

/** Files are read and requests answered. No time passes. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) {
    await settle();
    await diskIdle();
  }
}

/** In small parts: what follows from each is done before the next. */
async function pass(milliseconds: number): Promise<void> {
  for (let passedMs = 0; passedMs < milliseconds; passedMs += 1_000) {
    await time.pass(1_000);
    await quiet();
  }
}

/** Everything ends at once. */
async function powerCut(): Promise<void> {
  stop.abort();
  await running;
}

/** A start of a pod that runs is nothing new. */
const asked = (): readonly string[] => [...new Set(runtime.asked)].toSorted();

/** Until so many pods were started. Returns after which time. */
async function passUntilStarted(count: number): Promise<number> {
  const sinceMs = time.monotonicMs();
  while (asked().length < count && time.monotonicMs() - sinceMs < MINUTE_MS) await pass(1_000);
  return time.monotonicMs() - sinceMs;
}

async function rest(milliseconds: number): Promise<void> {
  isAtRest = true;
  for (let passedMs = 0; passedMs < milliseconds; passedMs += MINUTE_MS) {
    await time.pass(MINUTE_MS);
    await diskIdle();
  }
  isAtRest = false;
  await pass(MINUTE_MS);
}

const names = Array.from({ length: PODS }, (_, index) => `web-${index}`);
const starts = names.map((name) => `start ${name}`).toSorted();

const create = async (path: string, body: object): Promise<void> => {
  const answer = await server.send('POST', path, { body });
  if (answer.code !== 201) throw new Error(answer.text);
};

const configMapOf = (name: string, fill: string) => ({
  metadata: { name },
  data: { text: name.padEnd(CONFIG_MAP_BYTES, fill) },
});

async function bindPod(name: string): Promise<void> {
  await create('/api/v1/namespaces/default/configmaps', configMapOf(name, '.'));
  await create('/api/v1/namespaces/default/secrets', {
    metadata: { name },
    stringData: { key: name.padEnd(SECRET_BYTES, '.') },
  });
  const { spec } = pod(name);
  const [container] = recordsOf(spec?.['containers']);
  const main = {
    ...container,
    volumeMounts: ['settings', 'secret', 'token'].map((volume) => ({ name: volume, mountPath: `/${volume}` })),
    env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name, key: 'key' } } }],
    livenessProbe: { httpGet: { port: 8080 }, periodSeconds: 900, failureThreshold: 1 },
  };
  const volumes = [
    { name: 'settings', configMap: { name } },
    { name: 'secret', secret: { secretName: name } },
    { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
  ];
  const own = { nodeName: 'edge-1', serviceAccountName: 'bot', containers: [main], volumes };
  await create(podsIn('default'), pod(name, { spec: { ...spec, ...own } }));
}

/** The pods of the API, with what kubectl shows. */
async function shown(): Promise<readonly string[]> {
  const { items } = (await server.send('GET', podsIn('default'))).body as { readonly items: readonly KubeObject[] };
  return items.map(({ metadata, status }) => {
    const restartsOf = recordsOf(status?.['containerStatuses']).map(
      (each) => `${each['ready']} ${each['restartCount']}`,
    );
    return `${metadata.name} ${textOf(status?.['phase'])} ${restartsOf.join()}`;
  });
}

const readyMessage = async (): Promise<string> => {
  const node = (await server.send('GET', '/api/v1/nodes/edge-1')).body as KubeObject;
  return textOf(recordsOf(node.status?.['conditions']).find(({ type }) => type === 'Ready')?.['message']);
};

const diskBytes = (): number => {
  const remembered = join(directory, 'remembered');
  return readdirSync(remembered).reduce((sum, name) => sum + statSync(join(remembered, name)).size, 0);
};

beforeEach(async () => {
  directory = folderForTest();
  time = new SteppedTime(START_MS);
  bootedAtMs = START_MS;
  server = apiInMemory({ clock: { nowMs: trueMs } });
  isLinkUp = true;
  isAtRest = false;
  probes = 0;
  restarts = 0;
  writes = { count: 0, bytes: 0 };
  diskFault = undefined;
  await boot();
  await pass(5_000);
  await create('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'bot' } });
  for (const name of names) await bindPod(name);
  await rest(HOUR_MS);
  expect(asked()).toEqual(starts);
});
afterEach(powerCut);

it('runs every pod after each power cut of a month, writes nothing, and restarts none when the API returns', {
  timeout: TIMEOUT_MS,
}, async () => {
  // Both states on disk then have all pods.
  await server.send('PUT', '/api/v1/namespaces/default/configmaps/web-0', { body: configMapOf('web-0', '-') });
  await rest(HOUR_MS);
  isLinkUp = false;
  const before = { ...writes };
  const volumesOfPods = volumes.written.size;
  const startsMs: number[] = [];
  for (let cut = 0; cut < CUTS; cut += 1) {
    await powerCut();
    await boot(CLOCK_ERRORS_MS[cut % CLOCK_ERRORS_MS.length]);
    startsMs.push(await passUntilStarted(PODS));
    await rest(DAYS_BETWEEN_CUTS * DAY_MS);
    expect(asked()).toEqual(starts);
    expect(volumes.written.size).toBe(volumesOfPods);
  }
  const containers = (await runtime.pods()).flatMap((each) => each.containers);
  const counts = containers.reduce((sum, { restartCount }) => sum + restartCount, 0);
  isLinkUp = true;
  await pass(2 * MINUTE_MS);
  expect(asked()).toEqual(starts);
  const after = (await runtime.pods()).flatMap((each) => each.containers);
  expect(after.reduce((sum, { restartCount }) => sum + restartCount, 0)).toBe(counts);
  expect((await shown()).filter((each) => !/ Running true \d+$/.test(each))).toEqual([]);
  const written = writes.bytes - before.bytes;
  const slowest = Math.max(...startsMs) / 1_000;
  const days = CUTS * DAYS_BETWEEN_CUTS;
  console.log(
    `${days} days offline, ${CUTS} power cuts, ${PODS} pods: ${probes} probes, ${restarts} restarts by them; all run ` +
      `${slowest} s after a boot; ${written} bytes written, ${diskBytes()} on disk`,
  );
  expect([probes > 10_000, restarts > 50, counts > 0]).toEqual([true, true, true]);
  expect(Math.max(...startsMs)).toBeLessThanOrEqual(STARTED_WITHIN_MS);
  expect(written).toBe(0);
  // While a third one is written.
  expect(1.5 * diskBytes()).toBeLessThanOrEqual(DISK_BYTES_MAX);
});

it.each([
  ['ahead', YEAR_MS],
  ['behind', -YEAR_MS],
])('a clock that is a year %s at boot changes nothing', { timeout: TIMEOUT_MS }, async (_what, clockAheadMs) => {
  const story = async (errorMs: number) => {
    isLinkUp = false;
    await powerCut();
    await boot(errorMs);
    const startedMs = await passUntilStarted(PODS);
    await rest(2 * HOUR_MS);
    const offline = { startedMs, started: asked(), files: [...volumes.written.keys()].toSorted() };
    isLinkUp = true;
    await pass(2 * MINUTE_MS);
    return { offline, started: asked(), shown: await shown(), writes: { ...writes } };
  };
  const correct = await story(0);
  expect(correct.started).toEqual(starts);
  expect(await story(clockAheadMs)).toEqual(correct);
});

it.each(['ENOSPC', 'EROFS'] as const)(
  'pods go on when they cannot be kept (%s), and the Node says so',
  { timeout: TIMEOUT_MS },
  async (fault) => {
    diskFault = fault;
    await bindPod('late');
    await rest(QUARTER_MS);
    expect(asked()).toEqual(['start late', ...starts]);
    expect(await shown()).toContainEqual('late Running true 0');
    expect(await readyMessage()).toContain(`the pods of this machine cannot be remembered: ${fault}`);
    isLinkUp = false;
    await powerCut();
    await boot();
    await passUntilStarted(PODS);
    expect(asked()).toEqual(starts);
    isLinkUp = true;
    await rest(QUARTER_MS);
    expect(asked()).toEqual(['start late', ...starts]);
    expect(await readyMessage()).toContain(fault);
    diskFault = undefined;
    await rest(QUARTER_MS);
    expect(await readyMessage()).not.toContain(fault);
    isLinkUp = false;
    await powerCut();
    await boot();
    await passUntilStarted(PODS + 1);
    expect(asked()).toEqual(['start late', ...starts]);
  },
);
