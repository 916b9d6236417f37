import { describe, expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { MachineFacts, MachineUse } from '../ports/machine.ts';
import { NodePressure } from './node-pressure.ts';
import { NodeStatusComputation, type NodeStatusSources } from './node-status.ts';

const NOW_MS = Date.UTC(2024, 4, 1, 10);
const T = '2024-05-01T10:00:00Z';

const FACTS: MachineFacts = {
  cpuCores: 2,
  memoryBytes: 8 * 1_024 ** 3,
  swapBytes: 1_024,
  hugePages: { '2097152': 2 },
  machineId: 'machine',
  systemUuid: 'uuid',
  bootId: 'boot-1',
  kernelVersion: '6.1.0',
  osImage: 'Debian',
  operatingSystem: 'linux',
  architecture: 'arm64',
};
const FS = { capacityBytes: 4_096, availableBytes: 2_000, inodes: 100, inodesFree: 50 };
const USE: MachineUse = {
  cpuBusySeconds: 100,
  memoryAvailableBytes: 4 * 1_024 ** 3,
  nodeFs: FS,
  imageFs: FS,
  pidsMax: 1_000,
  pidsUsed: 10,
};

const EVICTION_HARD = { 'nodefs.available': { kind: 'percent', percent: 10 } } as const;
const pressure = (): NodePressure =>
  new NodePressure(
    {
      evictionHard: EVICTION_HARD,
      evictionSoft: {},
      evictionSoftGracePeriodMs: {},
      evictionMinimumReclaim: {},
      enforceNodeAllocatable: true,
      evictionPressureTransitionPeriodMs: 300_000,
    },
    () => undefined,
  );

function aComputation(sources: Partial<NodeStatusSources> = {}) {
  const logged: unknown[] = [];
  const computation = new NodeStatusComputation({
    settings: {
      nodeName: 'n',
      maxPods: 110,
      podsPerCore: 0,
      systemReserved: { memory: '1Gi' },
      kubeReserved: {},
      evictionHard: EVICTION_HARD,
    },
    pressure: pressure(),
    machine: { facts: async () => FACTS, use: async () => USE },
    nowMs: () => NOW_MS,
    monotonicMs: () => NOW_MS,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: (_message, fields) => logged.push(fields) },
    agentVersion: 'v0.1.0',
    setAddresses: async (node) => ({
      node: { ...node, status: { ...node.status, addresses: [{ type: 'Hostname', address: 'n' }] } },
      events: [],
    }),
    readyErrors: () => ({}),
    runtimeVersion: () => 'exec://1.0.0',
    volumesInUse: () => [],
    declaredFeatures: [],
    ...sources,
  });
  return { computation, logged };
}

const bare: KubeNode = { metadata: { name: 'n' } };
const statusOf = ({ status }: KubeNode, type: string) =>
  status?.conditions?.find((condition) => condition.type === type)?.status;

describe('the computed node status', () => {
  it('sets every part of the status, Ready last', async () => {
    const { node, events } = await aComputation().computation.compute(bare);
    expect(node.metadata.labels).toEqual({ 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64' });
    expect(node.status).toMatchObject({
      capacity: {
        cpu: '2',
        memory: '8Gi',
        pods: '110',
        'hugepages-2Mi': '4Mi',
        'ephemeral-storage': '4Ki',
      },
      allocatable: { cpu: '2', memory: '7164Mi', pods: '110', 'hugepages-2Mi': '4Mi', 'ephemeral-storage': '3687' },
      addresses: [{ type: 'Hostname', address: 'n' }],
      nodeInfo: {
        machineID: 'machine',
        systemUUID: 'uuid',
        bootID: 'boot-1',
        kernelVersion: '6.1.0',
        osImage: 'Debian',
        operatingSystem: 'linux',
        architecture: 'arm64',
        containerRuntimeVersion: 'exec://1.0.0',
        kubeletVersion: 'v0.1.0',
        kubeProxyVersion: '',
        swap: { capacity: 1_024 },
      },
    });
    expect(node.status?.conditions?.map(({ type, status }) => `${type} ${status}`)).toEqual([
      'MemoryPressure False',
      'DiskPressure False',
      'PIDPressure False',
      'Ready True',
    ]);
    expect(events.map(({ reason }) => reason)).toEqual([
      'NodeHasSufficientMemory',
      'NodeHasNoDiskPressure',
      'NodeHasSufficientPID',
    ]);
  });

  it('measures what the machine used in each whole minute', async () => {
    let nowMs = NOW_MS;
    let cpuBusySeconds = 100;
    const { computation } = aComputation({
      machine: { facts: async () => FACTS, use: async () => ({ ...USE, cpuBusySeconds }) },
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
    });
    const usages: unknown[] = [];
    for (let pass = 0; pass <= 12; pass += 1) {
      await computation.compute(bare);
      usages.push(computation.usage()?.cpuCores);
      nowMs += 10_000;
      cpuBusySeconds += pass < 6 ? 5 : 2;
    }
    const none = new Array<undefined>(6).fill(undefined);
    expect(usages).toEqual([...none, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.2]);
    expect(computation.usage()?.memoryBytes).toBe(FACTS.memoryBytes - USE.memoryAvailableBytes);
  });

  it('changes nothing but heartbeat times when computed again', async () => {
    const { computation } = aComputation();
    const first = await computation.compute(bare);
    const again = await computation.compute(first.node);
    expect(again).toEqual({ node: first.node, events: [] });
  });

  it('reports a machine that cannot be read, and computes the rest', async () => {
    const unreadable = async () => {
      throw new Error('no /proc');
    };
    const { computation, logged } = aComputation({ machine: { facts: unreadable, use: unreadable } });
    const { node } = await computation.compute(bare);
    expect(node.status?.capacity).toEqual({ cpu: '0', memory: '0', pods: '110' });
    expect(node.status?.conditions?.at(-1)).toMatchObject({
      status: 'False',
      message: 'missing node capacity for resources: ephemeral-storage',
    });
    expect(logged).toHaveLength(2);
  });

  it('runs the other setters when one fails', async () => {
    const { computation, logged } = aComputation({
      setAddresses: async () => {
        throw new Error("can't get ip address of node n");
      },
    });
    const { node } = await computation.compute({ ...bare, status: { addresses: [] } });
    expect(node.status?.addresses).toEqual([]);
    expect(statusOf(node, 'Ready')).toBe('True');
    expect(logged).toEqual([{ setter: 'addresses', cause: expect.any(Error) }]);
  });

  it('holds a pressure until it was absent for the transition period', async () => {
    let availableBytes = 400;
    let nowMs = NOW_MS;
    const { computation } = aComputation({
      machine: { facts: async () => FACTS, use: async () => ({ ...USE, nodeFs: { ...FS, availableBytes } }) },
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
    });
    const under = await computation.compute(bare);
    expect(statusOf(under.node, 'DiskPressure')).toBe('True');
    availableBytes = 410;
    nowMs += 299_999;
    expect(statusOf((await computation.compute(under.node)).node, 'DiskPressure')).toBe('True');
    nowMs += 1;
    const clear = await computation.compute(under.node);
    expect(statusOf(clear.node, 'DiskPressure')).toBe('False');
    expect(clear.events.map(({ reason }) => reason)).toEqual(['NodeHasNoDiskPressure']);
  });

  it('returns events of a reboot, and of a change of `unschedulable`', async () => {
    const { computation } = aComputation();
    const before = await computation.compute({ ...bare, status: { nodeInfo: { bootID: 'boot-0' } } });
    expect(before.events[0]).toEqual({
      type: 'Warning',
      reason: 'NodeRebooted',
      message: 'Node n has been rebooted, boot id: boot-1',
    });
    const cordoned = await computation.compute({ ...before.node, spec: { unschedulable: true } });
    expect(cordoned.events.map(({ reason }) => reason)).toEqual(['NodeNotSchedulable']);
    expect((await computation.compute(cordoned.node)).events).toEqual([]);
    const { events } = await computation.compute({ ...cordoned.node, spec: {} });
    expect(events.map(({ reason }) => reason)).toEqual(['NodeSchedulable']);
  });

  it('declares features, and removes those of a previous agent', async () => {
    const declaredBy = async (declaredFeatures: string[], before: KubeNode) =>
      (await aComputation({ declaredFeatures }).computation.compute(before)).node.status?.declaredFeatures;
    expect(await declaredBy(['A'], bare)).toEqual(['A']);
    expect(await declaredBy([], bare)).toBeUndefined();
    expect(await declaredBy([], { ...bare, status: { declaredFeatures: ['A'] } })).toEqual([]);
  });

  it('names the errors of a node that is not ready, and sorts the volumes in use', async () => {
    const { computation } = aComputation({
      readyErrors: () => ({ shutdown: 'node is shutting down' }),
      runtimeVersion: () => undefined,
      volumesInUse: () => ['b', 'a'],
    });
    const { node } = await computation.compute({ ...bare, status: { images: [{ names: ['x'] }] } });
    expect(node.status?.conditions?.at(-1)).toEqual({
      type: 'Ready',
      status: 'False',
      reason: 'KubeletNotReady',
      message: 'node is shutting down',
      lastHeartbeatTime: T,
      lastTransitionTime: T,
    });
    expect(node.status).toMatchObject({ volumesInUse: ['a', 'b'], images: [] });
    expect(node.status?.nodeInfo?.['containerRuntimeVersion']).toBe('Unknown');
  });
});
