import { describe, expect, it } from 'vitest';
import type { Log } from '../../shared/observability/log.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { AgentConfig } from '../config.ts';
import type { Machine, MachineFacts } from '../ports/machine.ts';
import { AgentStartError, checkStart, type StartParts } from './start-checks.ts';

const SWAPS = 'Filename Type Size\n/swap file 1\n';
const facts = {
  ...{ cpuCores: 2, memoryBytes: 1_000_000, swapBytes: 0, hugePages: {} },
  ...{ operatingSystem: 'linux', architecture: 'amd64' },
} as Partial<MachineFacts> as MachineFacts;
const config = {
  ...{ failSwapOn: true, nodeIp: '', maxPods: 110, podsPerCore: 0 },
  ...{ systemReserved: {}, kubeReserved: {}, evictionHard: {} },
  ...{ topologyManagerPolicy: 'none', topologyManagerScope: 'container', topologyManagerPolicyOptions: {} },
} as Partial<AgentConfig> as AgentConfig;

function check(
  more: {
    config?: Partial<AgentConfig>;
    swaps?: string;
    use?: Machine['use'];
    facts?: object;
    numa?: StartParts['numa'];
  } = {},
) {
  const logged: unknown[][] = [];
  const log = Object.fromEntries(
    ['debug', 'info', 'warn', 'error'].map((level) => [level, (...line: unknown[]) => logged.push([level, ...line])]),
  ) as unknown as Log;
  const use = async () => ({ nodeFs: { capacityBytes: 1_000 }, pidsMax: 100 });
  const machine = {
    facts: async () => ({ ...facts, ...more.facts }),
    use: more.use ?? use,
  } as unknown as Machine;
  const parts: StartParts = {
    ...{ config: { ...config, ...more.config }, machine, swaps: more.swaps, log },
    numa: more.numa ?? { nodes: [], distances: undefined },
    time: new SteppedTime(0),
    meter: { count: () => {}, set: () => {}, observe: () => {} } as unknown as StartParts['meter'],
  };
  return { logged, started: checkStart(parts) };
}
const faultOf = async (more: Parameters<typeof check>[0]) => {
  const fault = await check(more).started.catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(AgentStartError);
  return (fault as Error).message;
};

describe('the start of an agent', () => {
  it('is possible on a machine that fits its configuration', async () => {
    const { started, logged } = check({ config: { nodeIp: '10.0.0.7' }, facts: { osLabels: { a: 'b' } } });
    expect(await started).toMatchObject({
      ...{ operatingSystem: 'linux', architecture: 'amd64', osLabels: { a: 'b' } },
      nodeIps: [{ text: '10.0.0.7', family: 4 }],
    });
    expect(logged).toEqual([]);
    expect((await check().started).osLabels).toEqual({});
  });

  it('is refused with swap, unless that may be on', async () => {
    expect(await faultOf({ swaps: SWAPS })).toMatch(/^running with swap on is not supported/);
    expect((await check({ swaps: SWAPS, config: { failSwapOn: false } }).started).nodeIps).toEqual([]);
  });

  it('is refused with reservations that are larger than the machine', async () => {
    expect(await faultOf({ config: { systemReserved: { cpu: '3' } } })).toMatch(/"cpu" has a reservation of 3/);
    expect(await faultOf({ config: { kubeReserved: { pid: '101' } } })).toMatch(/"pid" has a reservation of 101/);
    expect(await faultOf({ config: { systemReserved: { 'ephemeral-storage': '1001' } } })).toMatch(
      /"ephemeral-storage"/,
    );
    await check({ config: { systemReserved: { cpu: '2', pid: '100', 'ephemeral-storage': '1000' } } }).started;
  });

  it('does not need the use of the machine, which is logged', async () => {
    const error = new Error('no statfs');
    const { started, logged } = check({ use: () => Promise.reject(error), config: { kubeReserved: { pid: '101' } } });
    await started;
    expect(logged).toEqual([['error', 'the use of the machine could not be read', { error }]]);
  });

  it('is refused with node IPs that are none, and names parts that are no addresses', async () => {
    expect(await faultOf({ config: { nodeIp: '10.0.0.7,10.0.0.8' } })).toMatch(/^nodeIp 10.0.0.7,10.0.0.8: /);
    const { started, logged } = check({ config: { nodeIp: '10.0.0.7,x' } });
    expect((await started).nodeIps).toHaveLength(1);
    expect(logged).toEqual([['warn', 'parts of the node IP are not addresses', { ignored: ['x'] }]]);
  });

  it('is refused with options of a topology policy that do not exist', async () => {
    const wrong = { topologyManagerPolicy: 'best-effort', topologyManagerPolicyOptions: { none: 'true' } } as const;
    expect(await faultOf({ config: wrong })).toMatch(/none/);
  });

  it('has the topology policy of its configuration, for the nodes of the machine', async () => {
    const nodes = [0, 1].map((id) => ({ id, cpus: [id], memoryBytes: 2 ** 30 }));
    const policy = { topologyManagerPolicy: 'single-numa-node' } as const;
    const { started } = check({ config: policy, numa: { nodes, distances: undefined } });
    const limits = { cpu: '2', memory: '1Mi' };
    const pod = {
      metadata: { uid: 'u1' },
      spec: { containers: [{ name: 'c', resources: { limits, requests: limits } }] },
    };
    expect((await started).topology.admit(pod)).toMatchObject({ kind: 'refused', reason: 'TopologyAffinityError' });
    expect((await check({ numa: { nodes, distances: undefined } }).started).topology.admit(pod)).toEqual({
      kind: 'admitted',
    });
  });
});
