/**
 * Services between three machines of a site: network namespaces with the rules of nftables that the agent writes, real
 * connections, and real DNS questions.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { nftPacketFilter } from '../../agent/adapters/services/nft.ts';
import { balancedPorts } from '../../agent/rules/services/load-balancing.ts';
import { type NftState, nftUpdate } from '../../agent/rules/services/nft-table.ts';
import { serviceTable } from '../../agent/rules/services/service-table.ts';
import type { Endpoint, KubeEndpointSlice, KubeService, ServiceSpec } from '../../shared/kinds/types.ts';
import {
  type MachineNetwork,
  machineNetwork,
  missingNamespaces,
  type NetworkMachine,
} from '../support/machine-network.ts';

const missing = missingNamespaces();
const suite = missing === undefined ? describe : describe.skip;
const title = missing === undefined ? 'Services' : `Services (skipped: no network namespaces: ${missing})`;

const ADDRESS = '10.96.0.10';
const ADDRESS6 = 'fd00:96::10';
const PORT = 80;
const TARGET_PORT = 8080;
const NODE_PORT = 30_080;
const TIMES = 40;
const DNS_ADDRESS = '169.254.20.10';

let network: MachineNetwork;
let pod: NetworkMachine;
let states: Map<string, NftState>;

const service = (spec: Partial<ServiceSpec> = {}): KubeService => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name: 'web' },
  spec: { clusterIP: ADDRESS, ports: [{ name: 'http', port: PORT, targetPort: TARGET_PORT }], ...spec },
});

const nodePorts = [{ name: 'http', port: PORT, targetPort: TARGET_PORT, nodePort: NODE_PORT }];

const slice = (endpoints: Endpoint[]): KubeEndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { namespace: 'shop', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  endpoints,
  ports: [{ name: 'http', port: TARGET_PORT, protocol: 'TCP' }],
});

/** An endpoint per machine, and the pod behind the first one. */
const endpointOf = (machine: NetworkMachine): Endpoint => ({
  addresses: [machine.address],
  nodeName: nameOf(machine),
  conditions: { ready: true },
});
const machineAt = (index: number): NetworkMachine => network.machines[index] as NetworkMachine;
const nameOf = (machine: NetworkMachine): string =>
  machine === pod ? 'node-0' : `node-${network.machines.indexOf(machine)}`;

/** Each machine writes what it has to, as its agent. */
async function apply(services: readonly KubeService[], slices: readonly KubeEndpointSlice[]): Promise<void> {
  for (const machine of network.machines) {
    const ports = balancedPorts(services, slices, { nodeName: nameOf(machine), podNetworks: [] });
    for (const family of ['ip', 'ip6'] as const) {
      const key = `${machine.namespace} ${family}`;
      const { commands, state } = nftUpdate(states.get(key), serviceTable(family, ports));
      states.set(key, state);
      if (commands.length > 0) {
        await nftPacketFilter(['ip', 'netns', 'exec', machine.namespace, 'nft']).apply(commands);
      }
    }
  }
}

/** Names of the servers that answered, without their clients. */
const serversOf = (reached: readonly string[]): ReadonlySet<string> =>
  new Set(reached.map((each) => each.split(' ')[0] ?? ''));

suite(title, () => {
  beforeAll(async () => {
    network = machineNetwork(['10.11.0.1', '10.11.0.2', '10.11.0.3']);
    pod = network.addPod(machineAt(0), '10.88.0.5', '10.88.0.1');
    for (const [index, machine] of network.machines.entries()) await machine.serve(TARGET_PORT, `server-${index}`);
    await pod.serve(TARGET_PORT, 'pod');
  });
  afterAll(() => network.close());
  beforeEach(() => {
    states = new Map();
  });

  it('are reached from each machine, and connections are balanced over all endpoints', async () => {
    await apply([service()], [slice([endpointOf(machineAt(1)), endpointOf(machineAt(2))])]);
    for (const machine of network.machines) {
      expect(serversOf(await machine.connect(ADDRESS, PORT, TIMES))).toEqual(new Set(['server-1', 'server-2']));
    }
  });

  it('no longer use an endpoint that was removed', async () => {
    const [one, two] = [endpointOf(machineAt(1)), endpointOf(machineAt(2))];
    await apply([service()], [slice([one, two])]);
    await apply([service()], [slice([two])]);
    for (const machine of network.machines) {
      expect(serversOf(await machine.connect(ADDRESS, PORT, TIMES))).toEqual(new Set(['server-2']));
    }
  });

  it('refuse connections at once while there is no endpoint, and accept them afterwards', async () => {
    await apply([service({ type: 'NodePort', ports: nodePorts })], [slice([])]);
    const startedMs = performance.now();
    expect(await machineAt(0).connect(ADDRESS, PORT)).toEqual(['ECONNREFUSED']);
    expect(await pod.connect(ADDRESS, PORT)).toEqual(['ECONNREFUSED']);
    expect(await machineAt(1).connect(machineAt(0).address, NODE_PORT)).toEqual(['ECONNREFUSED']);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    await apply([service()], [slice([endpointOf(machineAt(1))])]);
    expect(serversOf(await machineAt(0).connect(ADDRESS, PORT))).toEqual(new Set(['server-1']));
    await apply([service()], [slice([])]);
    expect(await machineAt(0).connect(ADDRESS, PORT)).toEqual(['ECONNREFUSED']);
  });

  it('are reached by a pod with an address of its own, which also reaches itself', async () => {
    await apply([service()], [slice([endpointOf(pod)])]);
    // Its own address would be the sender of the answer: it must come from the machine.
    expect(await pod.connect(ADDRESS, PORT)).toEqual(['pod 10.88.0.1']);
    expect(serversOf(await machineAt(0).connect(ADDRESS, PORT))).toEqual(new Set(['pod']));
  });

  it('keep the endpoint of a client with session affinity, also when another endpoint joins or leaves', async () => {
    const spec = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } };
    const [one, two, three] = [0, 1, 2].map((index) => endpointOf(machineAt(index))) as [Endpoint, Endpoint, Endpoint];
    await apply([service(spec)], [slice([one, two])]);
    const first = serversOf(await machineAt(2).connect(ADDRESS, PORT, TIMES));
    expect(first.size).toBe(1);
    await apply([service(spec)], [slice([one, two, three])]);
    expect(serversOf(await machineAt(2).connect(ADDRESS, PORT, TIMES))).toEqual(first);
    const [kept] = first.has('server-0') ? [one] : [two];
    await apply([service(spec)], [slice([kept as Endpoint])]);
    expect(serversOf(await machineAt(2).connect(ADDRESS, PORT, TIMES))).toEqual(first);
    await apply([service(spec)], [slice([three])]);
    expect(serversOf(await machineAt(2).connect(ADDRESS, PORT, TIMES))).toEqual(new Set(['server-2']));
  });

  it('answer on their node port on each machine', async () => {
    const spec = { type: 'NodePort', ports: nodePorts };
    await apply([service(spec)], [slice([endpointOf(machineAt(1)), endpointOf(pod)])]);
    expect(serversOf(await machineAt(2).connect(machineAt(0).address, NODE_PORT, TIMES))).toEqual(
      new Set(['server-1', 'pod']),
    );
    expect(serversOf(await machineAt(0).connect(machineAt(0).address, NODE_PORT, TIMES))).toEqual(
      new Set(['server-1', 'pod']),
    );
  });

  it('keep the address of the client with externalTrafficPolicy Local, and use no endpoint elsewhere', async () => {
    const spec = { type: 'NodePort', externalTrafficPolicy: 'Local', ports: nodePorts };
    await apply([service(spec)], [slice([endpointOf(machineAt(1)), endpointOf(pod)])]);
    const reached = await machineAt(2).connect(machineAt(0).address, NODE_PORT, TIMES);
    expect(new Set(reached)).toEqual(new Set([`pod ${machineAt(2).address}`]));
    expect(await machineAt(1).connect(machineAt(2).address, NODE_PORT)).toEqual(['ETIMEDOUT']);
    // The machine itself is inside of the cluster.
    await apply([service(spec)], [slice([endpointOf(machineAt(1))])]);
    expect(serversOf(await machineAt(2).connect(machineAt(2).address, NODE_PORT))).toEqual(new Set(['server-1']));
  });

  it('have IPv6 addresses, with session affinity, node ports and refusals', async () => {
    const affinity = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } };
    const spec = { clusterIP: ADDRESS6, type: 'NodePort', ports: nodePorts, ...affinity };
    const endpoints = [1, 2].map((index) => ({
      ...endpointOf(machineAt(index)),
      addresses: [machineAt(index).address6],
    }));
    await apply([service(spec)], [{ ...slice(endpoints), addressType: 'IPv6' }]);
    expect(serversOf(await machineAt(0).connect(ADDRESS6, PORT, TIMES)).size).toBe(1);
    // Only its own endpoint: these machines do not forward IPv6.
    await apply([service(spec)], [{ ...slice(endpoints.slice(0, 1)), addressType: 'IPv6' }]);
    const onNodePort = await machineAt(2).connect(machineAt(1).address6, NODE_PORT, TIMES);
    expect(serversOf(onNodePort)).toEqual(new Set(['server-1']));
    await apply([service({ ...spec, sessionAffinity: 'None' })], [{ ...slice(endpoints), addressType: 'IPv6' }]);
    expect(serversOf(await machineAt(0).connect(ADDRESS6, PORT, TIMES))).toEqual(new Set(['server-1', 'server-2']));
    await apply([service(spec)], []);
    expect(await machineAt(0).connect(ADDRESS6, PORT)).toEqual(['ECONNREFUSED']);
  });

  it('are reached over UDP, and refuse that too while there is no endpoint', async () => {
    const server = machineAt(1);
    await server.serveNames(server.address, [service()], []);
    const dns = service({ clusterIP: '10.96.0.53', ports: [{ name: 'dns', protocol: 'UDP', port: 53 }] });
    const slices = [{ ...slice([endpointOf(server)]), ports: [{ name: 'dns', protocol: 'UDP', port: 53 }] }];
    await apply([dns], slices);
    expect(await machineAt(2).resolve('10.96.0.53', 'web.shop.svc.cluster.local')).toEqual([ADDRESS]);
    await apply([dns], []);
    expect(await machineAt(2).resolve('10.96.0.53', 'web.shop.svc.cluster.local')).toBe('ECONNREFUSED');
  });

  it('with the same node port, or the same address, do not block each other', async () => {
    const spec = { type: 'NodePort', ports: nodePorts };
    const other = service(spec);
    other.metadata.name = 'other';
    await apply([service(spec), other], [slice([endpointOf(machineAt(1))])]);
    await apply([service(spec)], [slice([endpointOf(machineAt(1))])]);
    expect(serversOf(await machineAt(0).connect(ADDRESS, PORT))).toEqual(new Set(['server-1']));
  });

  it('have names, for the machine and for its pods with addresses of their own', async () => {
    const slices = [slice([endpointOf(machineAt(1))])];
    await apply([service()], slices);
    await machineAt(0).serveNames(DNS_ADDRESS, [service()], slices);
    for (const client of [machineAt(0), pod]) {
      const [address] = (await client.resolve(DNS_ADDRESS, 'web.shop.svc.cluster.local')) as string[];
      expect(address).toBe(ADDRESS);
      expect(serversOf(await client.connect(address ?? '', PORT))).toEqual(new Set(['server-1']));
      expect(await client.resolve(DNS_ADDRESS, 'absent.shop.svc.cluster.local')).toBe('ENOTFOUND');
    }
    expect(await pod.resolve(DNS_ADDRESS, '_http._tcp.web.shop.svc.cluster.local', 'SRV')).toMatchObject([
      { name: 'web.shop.svc.cluster.local', port: PORT },
    ]);
  });

  it('stay on the machine with internalTrafficPolicy Local', async () => {
    const spec = { internalTrafficPolicy: 'Local' };
    await apply([service(spec)], [slice([endpointOf(machineAt(1)), endpointOf(machineAt(2))])]);
    expect(serversOf(await machineAt(1).connect(ADDRESS, PORT, TIMES))).toEqual(new Set(['server-1']));
    expect(await machineAt(0).connect(ADDRESS, PORT)).toEqual(['ETIMEDOUT']);
  });
});
