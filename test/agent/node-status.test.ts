/** What the agent says of its Node, through the API as it is deployed: registration, patches, and quiet in between. */
import { describe, expect, it } from 'vitest';
import { NodePressure } from '../../agent/app/node-pressure.ts';
import { NodeStatusComputation } from '../../agent/app/node-status.ts';
import { createRegistration } from '../../agent/app/registration.ts';
import { addressSetter } from '../../agent/app/set-addresses.ts';
import { StatusLoop } from '../../agent/app/status-loop.ts';
import type { KubeAnswer, KubeApi } from '../../agent/ports/kube-api.ts';
import type { MachineUse } from '../../agent/ports/machine.ts';
import { checkConfig } from '../../agent/rules/config-settings.ts';
import { parseIp } from '../../agent/rules/ip-address.ts';
import { initialNode } from '../../agent/rules/node-registration.ts';
import { type ApiInMemory, apiInMemory } from '../support/api-in-memory.ts';

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const FS = { capacityBytes: 100_000_000_000, availableBytes: 50_000_000_000, inodes: 1_000, inodesFree: 900 };
const FACTS = {
  cpuCores: 4,
  memoryBytes: 25_276_502_016,
  swapBytes: 4_096,
  hugePages: { '2097152': 0, '1073741824': 1 },
  machineId: 'machine',
  systemUuid: 'uuid',
  bootId: 'boot',
  kernelVersion: '6.1.0',
  osImage: 'Debian',
  operatingSystem: 'linux',
  architecture: 'arm64',
};

function clientOf(server: ApiInMemory, token: string): KubeApi & { readonly requests: string[] } {
  const requests: string[] = [];
  return {
    requests,
    async send({ method, path, body, contentType }): Promise<KubeAnswer> {
      requests.push(`${method} ${path}`);
      const answer = await server.send(method, path, {
        ...(body === undefined ? {} : { body }),
        ...(contentType === undefined ? {} : { contentType }),
        headers: { authorization: `Bearer ${token}` },
      });
      return { kind: 'answered', status: answer.code, body: answer.body };
    },
    reconnect: () => {},
  };
}

function anAgent() {
  const server = apiInMemory({ users: { 'node-token': { name: 'system:node:n', groups: ['system:nodes'] } } });
  const api = clientOf(server, 'node-token');
  const { config, faults } = checkConfig({
    documents: [],
    flags: { endpoint: 'https://example.test', 'node-labels': 'site=a', 'node-ip': '10.0.0.5,fd00::5' },
    hostname: 'n',
  });
  expect(faults).toEqual([]);
  const world = { availableBytes: FS.availableBytes, storage: undefined as string | undefined, hostIp: '10.0.0.5' };
  const use = (): MachineUse => ({
    memoryAvailableBytes: FACTS.memoryBytes / 2,
    nodeFs: { ...FS, availableBytes: world.availableBytes },
    imageFs: FS,
    pidsMax: 1_000,
    pidsUsed: 10,
    cpuBusySeconds: 100,
  });
  const machine = {
    facts: async () => FACTS,
    use: async () => use(),
    addresses: () => [
      { interfaceName: 'eth0', address: world.hostIp, family: 4 as const },
      { interfaceName: 'eth0', address: 'fd00::5', family: 6 as const },
    ],
    defaultAddress: async () => undefined,
    lookup: async () => [],
  };
  const time = {
    nowMs: () => server.nowMs(),
    monotonicMs: () => server.nowMs(),
    uptimeMs: () => server.nowMs(),
    sleep: async (milliseconds: number) => server.advance(milliseconds),
  };
  const nodeIps = ['10.0.0.5', 'fd00::5'].map(parseIp).filter((address) => address !== undefined);
  const computation = new NodeStatusComputation({
    settings: config,
    pressure: new NodePressure(config, () => undefined),
    machine,
    nowMs: () => server.nowMs(),
    monotonicMs: () => server.nowMs(),
    log: SILENT,
    agentVersion: 'v0.1.0',
    setAddresses: addressSetter(machine, config, nodeIps),
    readyErrors: () => ({ storage: world.storage }),
    runtimeVersion: () => 'exec://1.0.0',
    volumesInUse: () => [],
    declaredFeatures: [],
  });
  const stop = new AbortController().signal;
  const registration = createRegistration(config, {
    api,
    time,
    fraction: () => 0.5,
    log: SILENT,
    buildNode: async () => (await computation.compute(initialNode(config, { hostname: 'n', ...FACTS }))).node,
    stop,
    timeoutMs: 10_000,
  });
  const events: string[] = [];
  const loop = new StatusLoop({
    settings: config,
    api,
    time,
    fraction: () => 0.5,
    log: SILENT,
    compute: (node) => computation.compute(node),
    registration,
    recordEvent: ({ reason }) => events.push(reason),
    onRepeatedFailure: () => {},
  });
  const stored = async () => (await server.send('GET', '/api/v1/nodes/n')).body;
  return { server, api, world, loop, events, stop, stored };
}

const condition = (node: { status: { conditions: { type: string; status: string }[] } }, type: string) =>
  node.status.conditions.find((each) => each.type === type);

describe('the node status of the agent, against the API', () => {
  it('registers with all of it, reports once, and is quiet after', async () => {
    const { api, loop, stop, stored, server } = anAgent();
    expect(await loop.registerAndPass(stop)).toEqual({ kind: 'written' });
    const node = await stored();
    expect(node.metadata.labels).toMatchObject({ site: 'a', 'kubernetes.io/arch': 'arm64' });
    expect(node.status).toMatchObject({
      capacity: { cpu: '4', pods: '110', memory: '24684084Ki', 'hugepages-1Gi': '1Gi', 'hugepages-2Mi': '0' },
      addresses: [
        { type: 'InternalIP', address: '10.0.0.5' },
        { type: 'InternalIP', address: 'fd00::5' },
        { type: 'Hostname', address: 'n' },
      ],
      nodeInfo: { kubeletVersion: 'v0.1.0', swap: { capacity: 4_096 } },
    });
    expect(condition(node, 'Ready')?.status).toBe('True');
    for (let pass = 0; pass < 5; pass += 1) {
      server.advance(10_000);
      expect(await loop.registerAndPass(stop)).toEqual({ kind: 'quiet' });
    }
    expect(api.requests).toEqual(['POST /api/v1/nodes', 'PATCH /api/v1/nodes/n/status']);
    server.advance(250_000);
    expect(await loop.registerAndPass(stop)).toEqual({ kind: 'written' });
    expect(server.faults).toEqual([]);
  });

  it('writes what changed, and keeps both addresses of one type', async () => {
    const { world, loop, events, stop, stored, server } = anAgent();
    await loop.registerAndPass(stop);
    world.availableBytes = 1;
    world.storage = 'no disk';
    server.advance(10_000);
    expect(await loop.registerAndPass(stop)).toEqual({ kind: 'written' });
    const node = await stored();
    expect(condition(node, 'DiskPressure')?.status).toBe('True');
    expect(condition(node, 'Ready')).toMatchObject({ status: 'False', message: 'no disk' });
    expect(node.status.addresses).toHaveLength(3);
    expect(events).toEqual(['NodeHasDiskPressure', 'NodeNotReady']);
  });

  it('registers again after the Node was deleted', async () => {
    const { loop, stop, stored, server } = anAgent();
    await loop.registerAndPass(stop);
    await server.send('DELETE', '/api/v1/nodes/n');
    loop.invalidate();
    expect(await loop.registerAndPass(stop)).toEqual({ kind: 'gone' });
    // The new Node carries the whole status already.
    expect(await loop.registerAndPass(stop)).toEqual({ kind: 'quiet' });
    expect(condition(await stored(), 'Ready')?.status).toBe('True');
  });

  it('overwrites a mark of the controller once it reads the Node again', async () => {
    const { loop, stop, stored, server } = anAgent();
    await loop.registerAndPass(stop);
    await server.send('PATCH', '/api/v1/nodes/n/status', {
      body: { status: { conditions: [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }] } },
      contentType: 'application/strategic-merge-patch+json',
    });
    loop.invalidate();
    expect(await loop.registerAndPass(stop)).toEqual({ kind: 'written' });
    expect(condition(await stored(), 'Ready')).toMatchObject({ status: 'True', reason: 'KubeletReady' });
  });
});
