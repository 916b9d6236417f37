import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SERVICES_ANNOTATION } from '../../shared/fleet/nodes/service-readers.ts';
import type { KubeObject, KubePod, KubeService } from '../../shared/kinds/types.ts';
import { recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import { linePath } from '../../shared/sessions/session-request.ts';
import { silentLog, silentMeter } from '../../test/support/agent-api.ts';
import { type ApiInMemory, apiInMemory, pod, podsIn } from '../../test/support/api-in-memory.ts';
import { CutDisk } from '../../test/support/cut-disk.ts';
import { edgeMachine as machine } from '../../test/support/edge-machine.ts';
import { memoryHeartbeatFile, memoryPermitFile } from '../../test/support/memory-heartbeat-file.ts';
import { memoryRuntime } from '../../test/support/memory-runtime.ts';
import { memoryVolumes } from '../../test/support/memory-volumes.ts';
import { NftKernel } from '../../test/support/nft-kernel.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import { loadConfig } from '../adapters/config/load-config.ts';
import type { AgentConfig } from '../config.ts';
import type { HealthCheck } from '../ports/health-check.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { MachineKeys, PublicHalf } from '../ports/machine-keys.ts';
import type { PodRuntime } from '../ports/pod-runtime.ts';
import type { SessionApi } from '../ports/session-api.ts';
import type { UpdateSource } from '../ports/update-source.ts';
import {
  LOGS_VERSION_ANNOTATION,
  PODS_VERSION_ANNOTATION,
  SERVICES_VERSION_ANNOTATION,
  VOLUMES_VERSION_ANNOTATION,
} from '../rules/lease.ts';
import { logsPath } from '../rules/log-request.ts';
import type { NameAnswer } from '../rules/services/names.ts';
import { LOGIND_SHUTDOWN } from '../rules/shutdown-start.ts';
import { staticPod } from '../rules/static-pod.ts';
import { volumesPath } from '../rules/volume-work.ts';
import { PodMemory } from './pods/pod-memory.ts';
import { type AgentParts, runAgent } from './run-agent.ts';
import { SilenceReport } from './silence-report.ts';
import { AgentStartError } from './start-checks.ts';
import { InstalledVersions } from './updates/installed-versions.ts';

function configured(): AgentConfig {
  const loaded = loadConfig(['--endpoint', 'https://api.example', '--token', 't', '--root-dir', '/x'], {
    readText: () => '',
    hostname: () => 'edge-1',
  });
  if (loaded.kind !== 'ok') throw new Error(JSON.stringify(loaded));
  return loaded.config;
}

const distant: AgentConfig = {
  ...configured(),
  topologyManagerPolicy: 'restricted',
  topologyManagerPolicyOptions: { 'prefer-closest-numa-nodes': 'true' },
};

describe('the agent', () => {
  let server: ApiInMemory;
  let time: SteppedTime;
  let runtime: ReturnType<typeof memoryRuntime>;
  let checks: readonly HealthCheck[];
  let stop: AbortController;
  let announce: (preparing: boolean) => void;
  let holds: number;

  beforeEach(() => {
    server = apiInMemory();
    time = new SteppedTime(server.nowMs());
    runtime = memoryRuntime(time);
    checks = [];
    stop = new AbortController();
    holds = 0;
  });
  afterEach(() => stop.abort());

  function parts(over: Partial<AgentParts> = {}): AgentParts {
    const api: KubeApi = {
      async send({ method, path, body, contentType }) {
        const answer = await server.send(method, path, { body, contentType: contentType ?? 'application/json' });
        return { kind: 'answered', status: answer.code, body: answer.body };
      },
      reconnect() {},
    };
    const announced: boolean[] = [];
    let heard = new AbortController();
    announce = (preparing) => {
      announced.push(preparing);
      heard.abort();
    };
    return {
      config: configured(),
      agentVersion: 'v1',
      beatApi: api,
      api,
      clusterLabels: async () => ({ site: 'north' }),
      machine,
      numa: { nodes: [], distances: undefined },
      swaps: undefined,
      runtime,
      heartbeatFile: memoryHeartbeatFile(),
      permitFile: memoryPermitFile(),
      volumes: memoryVolumes(),
      probeClient: { httpGet: async () => ({ kind: 'failed', message: '' }), tcpConnect: async () => undefined },
      shutdownSignal: {
        rules: LOGIND_SHUTDOWN,
        delayMaxMs: async () => 60_000,
        raiseDelayMax: async () => {},
        async hold() {
          holds += 1;
          return {
            async release() {
              holds -= 1;
            },
          };
        },
        async *watch(signal) {
          while (!signal.aborted) {
            const next = announced.shift();
            if (next !== undefined) yield next;
            else {
              heard = new AbortController();
              await time.sleep(3_600_000, AbortSignal.any([signal, heard.signal]));
            }
          }
        },
      },
      shutdownState: { read: async () => undefined, write: async () => {} },
      time,
      fraction: () => 0,
      compress: (bytes) => bytes,
      log: silentLog,
      meter: silentMeter,
      async serveHealth(given) {
        checks = given;
      },
      ...over,
    };
  }

  async function pass(milliseconds: number): Promise<void> {
    for (let gone = 0; gone < milliseconds; gone += 500) {
      await time.pass(500);
      for (let turn = 0; turn < 20; turn += 1) await settle();
    }
  }
  const get = async (path: string): Promise<KubeObject> => (await server.send('GET', path)).body as KubeObject;
  const readyOf = async () =>
    recordsOf((await get('/api/v1/nodes/edge-1')).status?.['conditions']).find((each) => each['type'] === 'Ready');

  it.each([
    ['with swap on', { swaps: 'Filename Type\n/dev/sda2 partition\n' }, /running with swap on is not supported/],
    [
      'with more held back than there is',
      { config: { ...configured(), systemReserved: { memory: '9Gi' } } },
      /invalid Node Allocatable configuration\. Resource "memory" has a reservation of .* but capacity of 8Gi/,
    ],
    ['without the distances its topology policy asks for', { config: distant }, /error getting NUMA distances/],
  ] as const)('does not start %s', async (_what, over, message) => {
    const started = runAgent(parts(over), stop.signal);
    await expect(started).rejects.toThrow(AgentStartError);
    await expect(started).rejects.toThrow(message);
    expect((await server.send('GET', '/api/v1/nodes/edge-1')).code).toBe(404);
  });

  it('registers, renews its Lease, reports, runs pods, and stops without terminating them', async () => {
    const running = runAgent(parts(), stop.signal);
    await pass(3_000);
    expect(await get('/api/v1/nodes/edge-1')).toMatchObject({
      metadata: { labels: { site: 'north', 'kubernetes.io/arch': 'arm64' } },
      status: { addresses: [{ type: 'InternalIP', address: '192.0.2.7' }, { type: 'Hostname' }] },
    });
    expect(await readyOf()).toMatchObject({ status: 'True' });
    await get('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-1');
    await server.send('POST', podsIn('default'), {
      body: pod('web', { spec: { nodeName: 'edge-1', ...pod('web').spec } }),
    });
    await pass(20_000);
    // No heartbeat says that pods changed; the periodic list finds the change.
    await pass(1_800_000);
    expect(runtime.asked).toContain('start web');
    expect(checks.map(({ complaint }) => complaint())).toEqual([undefined, undefined, undefined]);
    stop.abort();
    await running;
    expect(runtime.asked.filter((each) => each.startsWith('stop'))).toEqual([]);
  });

  it('stops a pod that must not run twice 10 min after the last heartbeat of the agent before', async () => {
    const metadata = { name: 'web', annotations: { 'nodekeeper.dev/offline-stop-after': '10m' } };
    const spec = { nodeName: 'edge-1', terminationGracePeriodSeconds: 30, ...pod('web').spec };
    await server.send('POST', podsIn('default'), { body: pod('web', { metadata, spec }) });
    const heartbeatFile = memoryHeartbeatFile();
    const before = runAgent(parts({ heartbeatFile }), stop.signal);
    await pass(30_000);
    expect(runtime.asked).toEqual(['start web']);
    stop.abort();
    await before;
    stop = new AbortController();
    const api: KubeApi = { send: async () => ({ kind: 'failed', cause: new Error('unreachable') }), reconnect() {} };
    const stops = () => runtime.asked.filter((each) => each.startsWith('stop'));
    const sentAtMs = heartbeatFile.kept!.uptimeMs;
    void runAgent(parts({ heartbeatFile, api, beatApi: api }), stop.signal);
    await pass(sentAtMs + 600_000 - time.uptimeMs() - 1_000);
    expect(stops()).toEqual([]);
    await pass(1_000);
    expect(stops()).toEqual(['stop web 30']);
  });

  it.each([
    ['kept for another trial if its own first heartbeat fails, too', 1, []],
    ['failed if its own first heartbeat is accepted', 0, [{ version: '2.0.0' }]],
  ])('starts after a trial without heartbeats; the artifact is %s', async (_what, failures, expected) => {
    const versions = new InstalledVersions(new CutDisk().files());
    const trial = { version: '2.0.0', sha256: 'a'.repeat(64), file: 'agent-2.0.0-a.mjs', previous: '', starts: 1 };
    await versions.rollBack(trial, 'no accepted heartbeats in 120 s', { isDoubtful: true });
    const known = parts();
    let left = failures;
    const beatApi: KubeApi = {
      ...known.beatApi,
      send: async (request) => {
        if (!request.path.includes('/leases') || left === 0) return known.beatApi.send(request);
        left -= 1;
        return { kind: 'failed', cause: new Error('unreachable') };
      },
    };
    const source = { isSigned: () => false } as unknown as UpdateSource;
    const updates = { version: '1.0.0', versions, source, restart: () => undefined };
    void runAgent({ ...known, beatApi, updates }, stop.signal);
    await pass(20_000);
    await get('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-1');
    expect(await versions.failed()).toEqual(expected.map((each) => expect.objectContaining(each)));
    for (const each of await versions.failed()) expect(each.isDoubtful).toBeUndefined();
  });

  const eventsOf = async (name: string): Promise<string[]> => {
    const list = await get(`/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${name}`);
    return recordsOf(list['items']).map((each) => textOf(each['reason']));
  };

  it('sends the events of its first report, also about a Node that already exists', async () => {
    const first = ['NodeHasSufficientMemory', 'NodeHasNoDiskPressure', 'NodeHasSufficientPID'];
    const before = runAgent(parts(), stop.signal);
    await pass(3_000);
    expect(await eventsOf('edge-1')).toEqual(expect.arrayContaining(['Starting', ...first]));
    stop.abort();
    await before;
    stop = new AbortController();
    await pass(1_000);
    void runAgent(parts(), stop.signal);
    await pass(3_000);
    const reasons = await eventsOf('edge-1');
    for (const reason of first) expect(reasons.filter((each) => each === reason)).toHaveLength(2);
  });

  it.each([3_600_000, -10_800_000])(
    'stays healthy and keeps its intervals when the clock is set by %s ms',
    async (byMs) => {
      const beats: number[] = [];
      let hangs = false;
      const given = parts();
      const beatApi: KubeApi = {
        async send(request) {
          if (request.method === 'PUT') beats.push(time.monotonicMs());
          if (hangs) await time.sleep(3_600_000);
          return given.beatApi.send(request);
        },
        reconnect() {},
      };
      void runAgent({ ...given, beatApi }, stop.signal);
      await pass(30_000);
      const before = beats.length;
      time.setClock(byMs);
      expect(checks.map(({ complaint }) => complaint())).toEqual([undefined, undefined, undefined]);
      await pass(40_000);
      expect(checks.map(({ complaint }) => complaint())).toEqual([undefined, undefined, undefined]);
      expect(beats.length - before).toBe(4);
      hangs = true;
      await pass(75_000);
      expect(checks.map(({ complaint }) => complaint())).toContainEqual(
        expect.stringMatching(/^no round of the lease loop ended for [678]\d s$/),
      );
    },
  );

  it('reads its Node again after a lease duration without a heartbeat, and not after a shorter time', async () => {
    const given = parts();
    let silent = false;
    let reads = 0;
    const beatApi: KubeApi = {
      async send(request) {
        const isLease = request.path.includes('/leases/');
        if (silent && isLease) return { kind: 'failed', cause: new Error('no answer') };
        if (request.method === 'GET' && !isLease) reads += 1;
        return given.beatApi.send(request);
      },
      reconnect() {},
    };
    void runAgent({ ...given, beatApi }, stop.signal);
    await pass(60_000);
    reads = 0;
    // The controller cannot have marked the Node yet, so it is not read.
    await pass(60_000);
    expect(reads).toBe(0);
    silent = true;
    await pass(25_000);
    silent = false;
    await pass(20_000);
    expect(reads).toBe(0);
    silent = true;
    await pass(60_000);
    silent = false;
    await pass(20_000);
    expect(reads).toBe(1);
  });

  it('reports on its Node, in an event and in its health that the runtime cannot write its state', async () => {
    let complaint: string | undefined;
    const forgetful = { ...runtime, complaint: () => complaint };
    void runAgent(parts({ runtime: forgetful }), stop.signal);
    await pass(3_000);
    complaint = 'the records of pods cannot be written: ENOSPC: no space left on device';
    await pass(30_000);
    expect(checks.map((each) => each.complaint())).toContain(complaint);
    expect(await readyOf()).toMatchObject({
      status: 'True',
      message: `kubelet is posting ready status. WARNING: ${complaint}`,
    });
    expect(await eventsOf('edge-1')).toContain('StateNotWritten');
    complaint = undefined;
    await pass(30_000);
    expect(checks.map((each) => each.complaint())).toEqual([undefined, undefined, undefined]);
    expect(await readyOf()).toMatchObject({ message: 'kubelet is posting ready status' });
    expect(await eventsOf('edge-1')).toContain('StateWritten');
  });

  it('has sent every event of a shutdown before it releases the lock', async () => {
    const config = { ...configured(), shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000 };
    const names = ['one', 'two', 'three'];
    for (const name of names) {
      await server.send('POST', podsIn('default'), {
        body: pod(name, { spec: { nodeName: 'edge-1', ...pod(name).spec } }),
      });
    }
    const given = parts({ config });
    const sent: string[][] = [];
    const { shutdownSignal } = given;
    const held: AgentParts['shutdownSignal'] = {
      ...shutdownSignal,
      async hold() {
        const lock = await shutdownSignal.hold();
        return {
          async release() {
            sent.push(...(await Promise.all(['edge-1', ...names].map(eventsOf))));
            await lock.release();
          },
        };
      },
    };
    const api: KubeApi = {
      async send(request) {
        if (request.path.endsWith('/events')) await time.sleep(100);
        return given.api.send(request);
      },
      reconnect() {},
    };
    void runAgent({ ...given, api, shutdownSignal: held }, stop.signal);
    await pass(3_000);
    announce(true);
    await pass(10_000);
    expect(holds).toBe(0);
    expect(sent[0]).toEqual(expect.arrayContaining(['NodeShutdown', 'NodeNotReady']));
    for (const reasons of sent.slice(1)) expect(reasons).toContain('Killing');
    expect(sent).toHaveLength(4);
  });

  it('promises its silence by the clock of the cluster before a suspend, and beats at once after the resume', async () => {
    const config = { ...configured(), plannedSilenceOnSleepSeconds: 3_600, keyRotationPeriodMs: 0 };
    const aheadMs = 600_000;
    const keys = { signingKeyId: () => 'k1', serverNowMs: () => time.nowMs() + aheadMs } as MachineKeys;
    const given = parts({ config, keys });
    const beats: number[] = [];
    const beatApi: KubeApi = {
      ...given.beatApi,
      send(request) {
        if (request.method === 'PUT') beats.push(time.nowMs());
        return given.beatApi.send(request);
      },
    };
    void runAgent({ ...given, beatApi, sleepSignal: given.shutdownSignal }, stop.signal);
    await pass(13_000);
    expect(holds).toBe(1);
    announce(true);
    await pass(100);
    expect(holds).toBe(0);
    const { annotations } = (await get('/api/v1/nodes/edge-1')).metadata;
    const untilMs = Date.parse(annotations?.['nodekeeper.dev/planned-silence-until'] ?? '');
    expect(Math.abs(untilMs - time.nowMs() - aheadMs - 3_600_000)).toBeLessThan(1_500);
    const count = beats.length;
    announce(false);
    await pass(100);
    expect(beats).toHaveLength(count + 1);
    expect(holds).toBe(1);
    await pass(9_000);
    expect(beats).toHaveLength(count + 1);
  });

  it('reports the shutdown, terminates its pods, rejects new ones, and releases the lock', async () => {
    const config = { ...configured(), shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000 };
    await server.send('POST', podsIn('default'), {
      body: pod('web', { spec: { nodeName: 'edge-1', ...pod('web').spec } }),
    });
    void runAgent(parts({ config }), stop.signal);
    await pass(3_000);
    expect(holds).toBe(1);
    runtime.endsAfterSeconds = 5;
    announce(true);
    await pass(2_000);
    expect(await readyOf()).toMatchObject({ status: 'False', message: 'node is shutting down' });
    await pass(5_000);
    expect(await get(`${podsIn('default')}/web`)).toMatchObject({ status: { phase: 'Failed', reason: 'Terminated' } });
    expect(holds).toBe(0);
    await server.send('POST', podsIn('default'), {
      body: pod('late', { spec: { nodeName: 'edge-1', ...pod('late').spec } }),
    });
    await pass(300_000);
    expect(await get(`${podsIn('default')}/late`)).toMatchObject({
      status: { phase: 'Failed', reason: 'NodeShutdown' },
    });
  });

  it('does not measure the machine for a faster report while its runtime is not ready, or it shuts down', async () => {
    let measured = 0;
    const counted = {
      ...machine,
      use() {
        measured += 1;
        return machine.use();
      },
    };
    let isReady = false;
    const starting = {
      ...runtime,
      health: async () =>
        isReady ? ({ kind: 'ready' } as const) : ({ kind: 'notReady', reason: 'starting' } as const),
    };
    const config = { ...configured(), shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000 };
    void runAgent(parts({ config, machine: counted, runtime: starting }), stop.signal);
    await pass(8_000);
    expect(await readyOf()).toMatchObject({ status: 'False', message: 'starting' });
    const { nodeInfo } = (await get('/api/v1/nodes/edge-1')).status as { nodeInfo: Record<string, unknown> };
    expect(nodeInfo['containerRuntimeVersion']).not.toBe(runtime.version);
    announce(true);
    isReady = true;
    await pass(20_000);
    // Each report and each check of the pressure measures once per 10 s.
    expect(measured).toBeLessThan(12);
  });

  it('reports that its runtime became ready, with its version', async () => {
    let isReady = false;
    const starting = {
      ...runtime,
      health: async () =>
        isReady ? ({ kind: 'ready' } as const) : ({ kind: 'notReady', reason: 'starting' } as const),
    };
    void runAgent(parts({ runtime: starting }), stop.signal);
    await pass(11_500);
    isReady = true;
    await pass(15_000);
    expect(await readyOf()).toMatchObject({ status: 'True' });
    expect((await get('/api/v1/nodes/edge-1')).status).toMatchObject({
      nodeInfo: { containerRuntimeVersion: runtime.version },
    });
  });

  it('lists pods, logs and volumes when the answer to a heartbeat says that they changed', async () => {
    const given = parts();
    const asked: string[] = [];
    const versions: Record<string, string> = {};
    const beatApi: KubeApi = {
      ...given.beatApi,
      async send(request) {
        const answer = await given.beatApi.send(request);
        if (request.method !== 'PUT' || answer.kind !== 'answered') return answer;
        const lease = answer.body as KubeObject;
        const annotations = { ...lease.metadata.annotations, ...versions };
        return { ...answer, body: { ...lease, metadata: { ...lease.metadata, annotations } } };
      },
    };
    const api: KubeApi = {
      ...given.api,
      send(request) {
        if (request.method === 'GET') asked.push(request.path.split('?', 1)[0] ?? '');
        return given.api.send(request);
      },
    };
    const claimDirectories = {
      make: async () => ({ path: '', unlimited: undefined }),
      remove: async () => {},
      freeBytes: () => 0,
    };
    void runAgent({ ...given, api, beatApi, claimDirectories }, stop.signal);
    await pass(30_000);
    const paths = {
      [PODS_VERSION_ANNOTATION]: '/api/v1/pods',
      [LOGS_VERSION_ANNOTATION]: logsPath('edge-1'),
      [VOLUMES_VERSION_ANNOTATION]: volumesPath('edge-1'),
    };
    for (const [annotation, path] of Object.entries(paths)) {
      asked.length = 0;
      versions[annotation] = 'new';
      await pass(11_000);
      expect(new Set(asked)).toEqual(new Set([path]));
    }
  });

  it('routes Services and answers their names, announces that, and follows what heartbeats report', async () => {
    const given = parts();
    const kernel = new NftKernel();
    const versions: Record<string, string> = {};
    let ask: ((name: string, type: string) => NameAnswer) | undefined;
    const beatApi: KubeApi = {
      ...given.beatApi,
      async send(request) {
        const answer = await given.beatApi.send(request);
        if (request.method !== 'PUT' || answer.kind !== 'answered') return answer;
        const body = answer.body as KubeObject;
        const annotations = { ...body.metadata.annotations, ...versions };
        return { ...answer, body: { ...body, metadata: { ...body.metadata, annotations } } };
      },
    };
    const services: AgentParts['services'] = {
      filter: { apply: async (commands) => kernel.apply(commands) },
      memory: { read: async () => undefined, write: async () => {} },
      podNetworks: async () => [],
      filtersBridges: async () => true,
      machineResolver: () => ({ nameservers: [], searches: [], options: [] }),
      async serveNames(answer) {
        ask = answer;
        return {
          async close() {
            ask = undefined;
          },
        };
      },
    };
    const config = {
      ...configured(),
      services: { endpoints: 'zone', dnsAddress: '169.254.20.10', clusterDomain: 'cluster.local' },
    } as const;
    const running = runAgent({ ...given, beatApi, config, services }, stop.signal);
    await pass(10_000);
    expect((await get('/api/v1/nodes/edge-1')).metadata.annotations).toMatchObject({
      [SERVICES_ANNOTATION]: 'nftables',
    });
    await server.send('POST', '/api/v1/namespaces/default/services', {
      body: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } },
    });
    const { clusterIP = '' } = ((await get('/api/v1/namespaces/default/services/web')) as KubeService).spec ?? {};
    expect(ask?.('web.default.svc.cluster.local', 'A')).toEqual({ kind: 'unknown' });
    versions[SERVICES_VERSION_ANNOTATION] = 'new';
    await pass(12_000);
    expect(ask?.('web.default.svc.cluster.local', 'A')).toMatchObject({ answers: [{ data: clusterIP }] });
    expect(JSON.stringify(kernel.content('ip nodekeeper'))).toContain(clusterIP);
    stop.abort();
    await running;
    expect(ask).toBeUndefined();
    // Rules stay while no agent runs.
    expect(kernel.content('ip nodekeeper')).toBeDefined();
  });

  it('keeps its pods on disk, and what they need of the machine', async () => {
    const texts: string[] = [];
    const memory = new PodMemory({
      generations: { read: async () => [], write: async (text) => void texts.push(text), remove: async () => {} },
      owner: { nodeName: 'edge-1', clusterId: 'c' },
      sealer: undefined,
      log: silentLog,
    });
    await server.send('POST', podsIn('default'), {
      body: pod('web', { spec: { nodeName: 'edge-1', ...pod('web').spec } }),
    });
    void runAgent(parts({ memory }), stop.signal);
    await pass(10_000);
    const { state } = JSON.parse(texts.at(-1) ?? '');
    expect(state).toMatchObject({ hostIp: '192.0.2.7', allocatable: { cpu: '4' } });
    expect(state.pods).toEqual([expect.objectContaining({ metadata: expect.objectContaining({ name: 'web' }) })]);
  });

  it('sends the hub of its site a status that the cluster does not answer', async () => {
    const given = parts();
    let isCut = false;
    const cut = (api: KubeApi): KubeApi => ({
      ...api,
      send: async (request) => (isCut ? { kind: 'failed', cause: new Error('unreachable') } : api.send(request)),
    });
    const asked: string[] = [];
    const hub: KubeApi = {
      async send({ method, path }) {
        asked.push(`${method} ${path}`);
        return { kind: 'answered', status: 200, body: {} };
      },
      reconnect() {},
    };
    void runAgent({ ...given, api: cut(given.api), beatApi: cut(given.beatApi), hub }, stop.signal);
    await pass(12_000);
    // It has no permits for pods of the site.
    const permits = 'POST /apis/nodekeeper.dev/v1alpha1/sitepermits';
    expect(asked.toSorted()).toEqual(['GET /api/v1/nodes/edge-1', permits]);
    isCut = true;
    await pass(320_000);
    expect(asked).toContain('PATCH /api/v1/nodes/edge-1/status');
  });

  it('opens the line for sessions while a container runs', async () => {
    await server.send('POST', podsIn('default'), {
      body: pod('web', { spec: { nodeName: 'edge-1', ...pod('web').spec } }),
    });
    const opened: string[] = [];
    const sessionApi: SessionApi = {
      async open(path) {
        opened.push(path);
        return { kind: 'refused', status: 404 };
      },
    };
    const connectPort = () => Promise.reject(new Error('no port'));
    void runAgent(parts({ sessions: { sessionApi, connectPort } }), stop.signal);
    await pass(10_000);
    expect(opened).toEqual([linePath('edge-1')]);
  });

  it('does not wait for the API where a pod may have to stop, or where it is unknown which pods run', async () => {
    const api: KubeApi = { send: async () => ({ kind: 'failed', cause: new Error('unreachable') }), reconnect() {} };
    const waits = async (pods: PodRuntime['pods']): Promise<boolean> => {
      let listed = 0;
      const counted: PodRuntime = {
        ...runtime,
        pods() {
          listed += 1;
          return pods();
        },
      };
      const over = new AbortController();
      void runAgent(parts({ runtime: counted, api, beatApi: api }), over.signal);
      await pass(2_000);
      over.abort();
      return listed === 1;
    };
    const running = (annotations: Record<string, string>) => async () =>
      [{ uid: 'u', namespace: 'default', name: 'web', pod: { metadata: { annotations } }, containers: [] }] as never;
    expect(await waits(async () => [])).toBe(true);
    expect(await waits(running({}))).toBe(true);
    expect(await waits(running({ 'nodekeeper.dev/offline-stop-after': '10m' }))).toBe(false);
    expect(await waits(() => Promise.reject(new Error('no records')))).toBe(false);
  });

  it('starts the pods that it remembers while the API does not answer', async () => {
    const texts: string[] = [];
    const memory = () =>
      new PodMemory({
        generations: {
          read: async () => texts.slice(-1).map((text) => ({ kind: 'read' as const, text })),
          write: async (text) => void texts.push(text),
          remove: async () => {},
        },
        owner: { nodeName: 'edge-1', clusterId: 'c' },
        sealer: undefined,
        log: silentLog,
      });
    await server.send('POST', podsIn('default'), {
      body: pod('web', { spec: { nodeName: 'edge-1', automountServiceAccountToken: false, ...pod('web').spec } }),
    });
    const before = runAgent(parts({ memory: memory() }), stop.signal);
    await pass(10_000);
    stop.abort();
    await before;
    stop = new AbortController();
    runtime = memoryRuntime(time);
    const api: KubeApi = { send: async () => ({ kind: 'failed', cause: new Error('unreachable') }), reconnect() {} };
    void runAgent(parts({ memory: memory(), api, beatApi: api }), stop.signal);
    await pass(60_000);
    expect(runtime.asked).toEqual(['start web']);
    expect(JSON.parse(texts.at(-1) ?? '').state).toMatchObject({ hostIp: '192.0.2.7', allocatable: { cpu: '4' } });
  });

  it('sends what its runtime reports of a container as an event of the pod', async () => {
    await server.send('POST', podsIn('default'), {
      body: pod('web', { spec: { nodeName: 'edge-1', ...pod('web').spec } }),
    });
    let report: Parameters<NonNullable<PodRuntime['onEvent']>>[0] = () => {};
    const onEvent: PodRuntime['onEvent'] = (listener) => {
      report = listener;
    };
    void runAgent(parts({ runtime: { ...runtime, onEvent } }), stop.signal);
    await pass(10_000);
    report((await get(`${podsIn('default')}/web`)) as never, { type: 'Warning', reason: 'OOM', message: 'no memory' });
    await pass(20_000);
    expect(await eventsOf('web')).toContain('OOM');
  });

  it('places containers on the processors that a topology policy assigns', async () => {
    const GIB = 2 ** 30;
    const nodes = [0, 1].map((id) => ({ id, cpus: [2 * id, 2 * id + 1], memoryBytes: 4 * GIB }));
    let placementOf: Parameters<NonNullable<PodRuntime['usePlacement']>>[0] | undefined;
    let changes = 0;
    const usePlacement: PodRuntime['usePlacement'] = (given) => {
      placementOf = given;
      changes += 1;
    };
    const config: AgentConfig = { ...configured(), topologyManagerPolicy: 'single-numa-node' };
    const numa = { nodes, distances: undefined };
    void runAgent(parts({ config, numa, runtime: { ...runtime, usePlacement } }), stop.signal);
    await pass(5_000);
    expect(changes).toBe(1);
    const limits = { cpu: '1', memory: '1Gi' };
    const containers = [{ name: 'main', image: 'i', resources: { limits, requests: limits } }];
    await server.send('POST', podsIn('default'), { body: pod('web', { spec: { nodeName: 'edge-1', containers } }) });
    await pass(1_810_000);
    const { uid = '' } = (await get(`${podsIn('default')}/web`)).metadata;
    expect(placementOf?.(uid, 'main')).toEqual({ cpus: [0], memoryNodes: [0], exclusive: true });
    expect(changes).toBe(2);
  });

  it('evicts a pod with an emptyDir above its limit', async () => {
    const volumes = memoryVolumes();
    volumes.usedPerVolume = 2_000;
    const spec = { nodeName: 'edge-1', ...pod('web').spec, volumes: [{ name: 'data', emptyDir: { sizeLimit: '1k' } }] };
    await server.send('POST', podsIn('default'), { body: pod('web', { spec }) });
    void runAgent(parts({ volumes }), stop.signal);
    await pass(90_000);
    expect((await get(`${podsIn('default')}/web`)).status).toMatchObject({ phase: 'Failed', reason: 'Evicted' });
  });

  it('shows its static pods in the API, owned by its Node', async () => {
    const manifest = pod('local') as KubePod;
    const local = staticPod(manifest, 'edge-1', 's1', '2026-01-01T00:00:00Z');
    void runAgent(parts({ staticPods: () => [local] }), stop.signal);
    await pass(20_000);
    const node = await get('/api/v1/nodes/edge-1');
    expect((await get(`${podsIn('default')}/local-edge-1`)).metadata.ownerReferences).toMatchObject([
      { kind: 'Node', name: 'edge-1', uid: node.metadata.uid },
    ]);
  });

  it('replaces its key when that is due, proves the new one by a heartbeat, and seals with it first', async () => {
    const steps: string[] = [];
    const half = (keyId: string): PublicHalf => ({ keyId, publicKey: { kty: 'EC', crv: 'P-256', x: keyId, y: keyId } });
    let enrolled = [{ keyId: 'k1', addedAt: '2020-01-01T00:00:00Z' }];
    let [current, next, signing]: [PublicHalf, PublicHalf | undefined, string] = [half('k1'), undefined, 'k1'];
    const keys: MachineKeys = {
      held: async () => ({ current, next }),
      async makeNext() {
        next = half('k2');
        return next;
      },
      signWithNext() {
        signing = 'k2';
      },
      signingKeyId: () => signing,
      async adoptNext() {
        steps.push('adopt');
        current = half('k2');
        next = undefined;
      },
      serverNowMs: () => time.nowMs(),
    };
    const given = parts();
    const api: KubeApi = {
      ...given.api,
      async send(request) {
        if (!request.path.includes('nodeidentities')) return given.api.send(request);
        if (request.method !== 'GET') {
          const keyId = (request.body as { spec: { publicKey: { x: string } } }).spec.publicKey.x;
          const added = { keyId, addedAt: '2030-01-01T00:00:00Z' };
          enrolled = signing === 'k2' ? [added] : [...enrolled, added];
        }
        return { kind: 'answered', status: 200, body: { metadata: { name: 'edge-1' }, spec: { keys: enrolled } } };
      },
    };
    const memory = { read: async () => undefined, save: async () => {}, complaint: () => undefined };
    const reseal = async () => void steps.push('seal');
    const config = { ...configured(), keyRotationPeriodMs: 86_400_000 };
    void runAgent({ ...given, api, config, keys, memory: { ...memory, reseal } as unknown as PodMemory }, stop.signal);
    await pass(30_000);
    expect(steps).toEqual(['seal', 'adopt']);
    expect(enrolled.map(({ keyId }) => keyId)).toEqual(['k2']);
  });

  it('reports machines of its site that are silent, beats at once then, and leaves the site before a suspend', async () => {
    const silence = new SilenceReport({ role: 'machine', time });
    const given = parts();
    const reported: unknown[] = [];
    const beatApi: KubeApi = {
      ...given.beatApi,
      send(request) {
        const { metadata } = (request.body ?? {}) as KubeObject;
        if (request.method === 'PUT') reported.push(metadata?.annotations?.['nodekeeper.dev/silent-machines']);
        return given.beatApi.send(request);
      },
    };
    const sent: string[] = [];
    const site: AgentParts['site'] = {
      join: async () => ({
        kind: 'joined',
        line: { address: '192.0.2.1', send: (line) => void sent.push(line), close: async () => {} },
      }),
      probe: async () => true,
      report: silence,
      witnessPort: () => 0,
    };
    void runAgent({ ...given, beatApi, silence, site, sleepSignal: given.shutdownSignal }, stop.signal);
    await pass(13_000);
    const joined = sent.length;
    expect(joined).toBeGreaterThan(0);
    const before = reported.length;
    silence.update(['edge-2']);
    await pass(500);
    expect(reported.slice(before)).toEqual([expect.stringContaining('edge-2')]);
    announce(true);
    await pass(500);
    expect(sent.length).toBeGreaterThan(joined);
    const away = sent.length;
    announce(false);
    await pass(5_000);
    expect(sent.length).toBeGreaterThan(away);
  });
});
