import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { silentLog, silentMeter } from '../../test/support/agent-api.ts';
import { type ApiInMemory, apiInMemory, NODES, node, pod, podsIn } from '../../test/support/api-in-memory.ts';
import { noHeartbeats } from '../../test/support/memory-heartbeat-file.ts';
import { type MemoryRuntime, memoryRuntime } from '../../test/support/memory-runtime.ts';
import { memoryVolumes } from '../../test/support/memory-volumes.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import type { KubeRequest } from '../ports/kube-api.ts';
import type { MachineUse } from '../ports/machine.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { PodUsage } from '../ports/pod-runtime.ts';
import type { ProbeClient } from '../ports/probe-client.ts';
import { ADMITTED } from '../rules/pod-admission.ts';
import { Eviction } from './eviction.ts';
import { NodePressure } from './node-pressure.ts';
import { createPodLoop, type PodLoop } from './pod-loop.ts';
import { PodInputs } from './pods/pod-inputs.ts';
import { PodProbes } from './pods/pod-probes.ts';

const MIB = 1_024 ** 2;
const FS = { capacityBytes: 1_000 * MIB, availableBytes: 500 * MIB, inodes: 1_000, inodesFree: 500 };

let server: ApiInMemory;
let time: SteppedTime;
let runtime: MemoryRuntime;
let loop: PodLoop;
let eviction: Eviction;
let events: string[];
let counted: string[];
let use: MachineUse;
let isReadable: boolean;
/** By name. */
let usages: Map<string, PodUsage>;
let reclaimed: number;
let onReclaim: () => void;
let stop: AbortController;
let unmeasured: string | undefined;
let killFault: Error | undefined;

const usage = (memoryMib: number, storageMib = 0): PodUsage => ({
  memoryBytes: memoryMib * MIB,
  processes: 1,
  containers: [{ name: 'main', memoryBytes: memoryMib * MIB, storage: { bytes: storageMib * MIB, inodes: 1 } }],
  volumes: new Map(),
});

const api = {
  async send(request: KubeRequest) {
    const { code, body } = await server.send(request.method, request.path, {
      body: request.body,
      contentType: request.contentType ?? 'application/json',
      headers: { authorization: 'Bearer edge-1-token' },
    });
    return { kind: 'answered' as const, status: code, body };
  },
  reconnect() {},
};

async function readUse(): Promise<MachineUse> {
  if (!isReadable) throw new Error('/proc/meminfo cannot be read');
  return use;
}

/** No pod here has probes. */
const noProbes: ProbeClient = {
  httpGet: async () => ({ kind: 'failed', message: '' }),
  tcpConnect: async () => undefined,
};

const EVENTS_OF_STARTS = /Started|Killing/;

function start(over: { evictionSoft?: number; softGraceMs?: number } = {}): void {
  const pressure = new NodePressure(
    {
      evictionHard: {
        'memory.available': { kind: 'quantity', value: 100 * MIB },
        'nodefs.available': { kind: 'percent', percent: 10 },
      },
      evictionSoft:
        over.evictionSoft === undefined
          ? {}
          : { 'memory.available': { kind: 'quantity', value: over.evictionSoft * MIB } },
      evictionSoftGracePeriodMs: { 'memory.available': over.softGraceMs ?? 0 },
      evictionMinimumReclaim: {},
      enforceNodeAllocatable: true,
      evictionPressureTransitionPeriodMs: 300_000,
    },
    () => undefined,
  );
  const meter: AgentMeter = {
    ...silentMeter,
    count: (name, labels) => void counted.push(`${name} ${labels?.['eviction_signal'] ?? ''}`),
  };
  const common = { time, fraction: () => 0, log: silentLog, meter };
  const allocatable = () => ({ cpu: '2', memory: '2000Mi' });
  const recordEvent = (): void => {};
  const inputs = new PodInputs({
    ...common,
    api,
    volumes: memoryVolumes(),
    allocatable,
    hostIp: () => undefined,
    recordEvent,
    services: {},
  });
  loop = createPodLoop({
    ...common,
    inputs,
    probes: new PodProbes({ ...common, runtime, probeClient: noProbes, hostIp: () => undefined, recordEvent }),
    heartbeats: noHeartbeats(time),
    nodeName: 'edge-1',
    api,
    runtime,
    operatingSystem: 'linux',
    hostIp: () => '192.0.2.7',
    recordEvent: ({ metadata }, { type, reason, message }) => {
      if (!EVENTS_OF_STARTS.test(reason)) events.push(`${metadata.name}: ${type} ${reason} ${message}`);
    },
    gate: (each) => pressure.admit(each, time.monotonicMs()),
    topology: { admit: () => ADMITTED, release() {} },
  });
  eviction = new Eviction({
    ...common,
    pressure,
    maxPodGracePeriodSeconds: 20,
    machine: { facts: async () => ({ memoryBytes: 2_000 * MIB }) as never, use: readUse },
    runtime: {
      usage: async (podUid) => {
        const known = loop.activePods().find(({ metadata }) => metadata.uid === podUid);
        if (known?.metadata.name === unmeasured) throw new Error('no cgroup');
        return usages.get(known?.metadata.name ?? '');
      },
      async reclaimStorage() {
        reclaimed += 1;
        onReclaim();
      },
    },
    activePods: () => loop.activePods(),
    async killPod(...args) {
      if (killFault !== undefined) throw killFault;
      await loop.killPod(...args);
    },
    recordNodeEvent: ({ type, reason, message }) => void events.push(`node: ${type} ${reason} ${message}`),
    recordPodEvent: ({ metadata }, { type, reason, message }) =>
      void events.push(`${metadata.name}: ${type} ${reason} ${message}`),
  });
  stop = new AbortController();
}

async function rest(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await settle();
}

/** One pass; time passes for the pods that it stops. */
async function pass(): Promise<boolean> {
  let result: boolean | undefined;
  const passing = eviction.pass().then((evicted) => {
    result = evicted;
  });
  for (let second = 0; second < 40 && result === undefined; second += 1) {
    await rest();
    if (result === undefined) await time.pass(1_000);
  }
  await passing;
  await rest();
  return result ?? false;
}

async function bind(name: string, spec: Record<string, unknown> = {}): Promise<void> {
  const made = await server.send('POST', podsIn('default'), {
    body: pod(name, { spec: { nodeName: 'edge-1', terminationGracePeriodSeconds: 30, ...pod(name).spec, ...spec } }),
  });
  expect(made.code).toBe(201);
  loop.podsChanged();
  await loop.sync();
  await loop.settled();
}
const stored = async (name: string): Promise<KubeObject> =>
  (await server.send('GET', `${podsIn('default')}/${name}`)).body as KubeObject;
const phases = async (...names: string[]) =>
  Promise.all(names.map(async (name) => (await stored(name)).status?.['phase']));
const withMemory = (memoryMib: number): void => {
  use = { ...use, memoryAvailableBytes: memoryMib * MIB };
};
const withDisk = (availableMib: number): void => {
  use = { ...use, nodeFs: { ...FS, availableBytes: availableMib * MIB } };
};
const limited = (limits: Record<string, string>) => ({
  containers: [{ name: 'main', image: 'i', resources: { limits } }],
});

beforeEach(async () => {
  server = apiInMemory({
    users: { 'edge-1-token': { name: 'system:node:edge-1', groups: ['system:nodes', 'system:authenticated'] } },
  });
  time = new SteppedTime(server.nowMs());
  runtime = memoryRuntime(time);
  events = [];
  counted = [];
  usages = new Map();
  reclaimed = 0;
  isReadable = true;
  unmeasured = undefined;
  killFault = undefined;
  onReclaim = () => undefined;
  use = { memoryAvailableBytes: 1_000 * MIB, nodeFs: FS, imageFs: FS, cpuBusySeconds: 0, pidsMax: 1_000, pidsUsed: 1 };
  await server.send('POST', NODES, { body: node('edge-1') });
  await server.send('PATCH', `${NODES}/edge-1/status`, {
    contentType: 'application/merge-patch+json',
    body: { status: { allocatable: { cpu: '2', memory: '4Gi', pods: '9', 'ephemeral-storage': '10Gi' } } },
  });
  start();
});

describe('a node below a hard threshold of memory', () => {
  it('evicts the largest pod, one per pass, with the status and the events of a kubelet', async () => {
    await bind('small');
    await bind('large');
    usages.set('small', usage(50)).set('large', usage(300));
    withMemory(90);
    expect(await pass()).toBe(true);
    const message =
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container main was using 300Mi, request is 0, has larger consumption of memory. ';
    expect((await stored('large')).status).toMatchObject({ phase: 'Failed', reason: 'Evicted', message });
    expect(
      recordsOf((await stored('large')).status?.['conditions']).find(({ type }) => type === 'DisruptionTarget'),
    ).toMatchObject({ status: 'True', reason: 'TerminationByKubelet', message });
    expect(await phases('small')).toEqual(['Running']);
    expect(events).toEqual([
      'node: Warning EvictionThresholdMet Attempting to reclaim memory',
      `large: Warning Evicted ${message}`,
    ]);
    expect(counted).toContain('kubelet_evictions memory.available');
    expect(runtime.asked).toContain('stop large 1');
    expect(await pass()).toBe(true);
    expect(await phases('small')).toEqual(['Failed']);
    expect(await pass()).toBe(false);
  });

  it('evicts nothing above it', async () => {
    await bind('web');
    usages.set('web', usage(900));
    withMemory(100);
    expect(await pass()).toBe(false);
    expect(await phases('web')).toEqual(['Running']);
    expect(events).toEqual([]);
  });

  it('never evicts a critical pod, and evicts the next one', async () => {
    await bind('critical', { priorityClassName: 'system-node-critical' });
    await bind('web');
    usages.set('critical', usage(900)).set('web', usage(1));
    withMemory(90);
    expect(await pass()).toBe(true);
    expect(await phases('critical', 'web')).toEqual(['Running', 'Failed']);
    expect(await pass()).toBe(false);
  });

  it('refuses a new BestEffort pod and admits others, until the transition period is over', async () => {
    withMemory(90);
    await pass();
    withMemory(1_000);
    await pass();
    await bind('late');
    expect((await stored('late')).status).toMatchObject({
      phase: 'Failed',
      reason: 'Evicted',
      message: 'Pod was rejected: The node had condition: [MemoryPressure]. ',
    });
    await bind('asking', limited({ memory: '10Mi' }));
    expect(await phases('asking')).toEqual(['Running']);
    await time.pass(300_000);
    await bind('later');
    expect(await phases('later')).toEqual(['Running']);
  });
});

describe('a node below a soft threshold', () => {
  it.each([
    [30, 20],
    [5, 5],
  ])(
    'evicts after its grace period, and leaves the pod the smaller of both grace periods (%i s)',
    async (own, left) => {
      start({ evictionSoft: 300, softGraceMs: 30_000 });
      await bind('web', { terminationGracePeriodSeconds: own });
      usages.set('web', usage(500));
      withMemory(200);
      expect(await pass()).toBe(false);
      await time.pass(29_000);
      expect(await pass()).toBe(false);
      await time.pass(1_000);
      expect(await pass()).toBe(true);
      expect(await phases('web')).toEqual(['Failed']);
      expect(runtime.asked).toContain(`stop web ${left}`);
    },
  );
});

describe('a pod that cannot be measured', () => {
  it('is evicted before pods that are known, and is evicted for no limit', async () => {
    await bind('known', limited({ 'ephemeral-storage': '100Mi' }));
    await bind('unknown', limited({ 'ephemeral-storage': '100Mi' }));
    unmeasured = 'unknown';
    usages.set('known', usage(1, 150));
    expect(await pass()).toBe(true);
    expect(await phases('known', 'unknown')).toEqual(['Failed', 'Running']);
    expect(counted).toEqual(expect.arrayContaining(['kubelet_evictions ephemeralpodfs.limit']));
    withMemory(90);
    expect(await pass()).toBe(true);
    expect(await phases('unknown')).toEqual(['Failed']);
  });
});

describe('a pod that does not terminate in time', () => {
  it('counts as evicted', async () => {
    await bind('web');
    killFault = new Error('timeout');
    withMemory(90);
    expect(await pass()).toBe(true);
    expect(counted).toContain('kubelet_evictions memory.available');
  });
});

describe('a node that is low on disk', () => {
  it('first removes what no pod needs, and evicts no pod if that is enough', async () => {
    await bind('web');
    usages.set('web', usage(1, 300));
    withDisk(50);
    onReclaim = () => withDisk(200);
    expect(await pass()).toBe(false);
    expect(reclaimed).toBe(1);
    expect(await phases('web')).toEqual(['Running']);
  });

  it('evicts a pod where what no pod needs cannot be removed', async () => {
    await bind('web');
    withDisk(50);
    onReclaim = () => {
      throw new Error('EIO');
    };
    expect(await pass()).toBe(true);
    expect(await phases('web')).toEqual(['Failed']);
  });

  it('evicts the pod that stores most', async () => {
    await bind('little');
    await bind('much');
    usages.set('little', usage(900, 1)).set('much', usage(1, 300));
    withDisk(50);
    expect(await pass()).toBe(true);
    expect(await phases('little', 'much')).toEqual(['Running', 'Failed']);
    expect((await stored('much')).status?.['message']).toBe(
      'The node was low on resource: ephemeral-storage. Threshold quantity: 104857601, available: 50Mi. Container main was using 300Mi, request is 0, has larger consumption of ephemeral-storage. ',
    );
  });

  it('refuses every new pod that is not critical', async () => {
    withDisk(50);
    await pass();
    await bind('late', limited({ memory: '10Mi' }));
    expect(await phases('late')).toEqual(['Failed']);
    await bind('critical', { priorityClassName: 'system-node-critical' });
    expect(await phases('critical')).toEqual(['Running']);
  });
});

describe('a pod above its own limit on storage', () => {
  it('is evicted without any pressure, and measured once per minute', async () => {
    await bind('web', limited({ 'ephemeral-storage': '100Mi' }));
    usages.set('web', usage(1, 50));
    expect(await pass()).toBe(false);
    usages.set('web', usage(1, 150));
    await time.pass(59_000);
    expect(await pass()).toBe(false);
    await time.pass(1_000);
    expect(await pass()).toBe(true);
    expect((await stored('web')).status).toMatchObject({
      reason: 'Evicted',
      message: 'Pod ephemeral local storage usage exceeds the total limit of containers 100Mi. ',
    });
  });
});

describe('a machine that cannot be read', () => {
  it('evicts no pod, and the loop continues', async () => {
    await bind('web');
    usages.set('web', usage(900));
    withMemory(90);
    isReadable = false;
    void eviction.run(stop.signal);
    await rest();
    expect(await phases('web')).toEqual(['Running']);
    expect(time.waits).toContain(10_000);
    isReadable = true;
    for (let second = 0; second < 15; second += 1) {
      await time.pass(1_000);
      await rest();
    }
    expect(await phases('web')).toEqual(['Failed']);
    expect(time.waits).toContain(1_000);
    stop.abort();
  });
});
