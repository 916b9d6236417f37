import { describe, expect, it } from 'vitest';
import type { KubeEndpointSlice, KubeNode, KubePod, KubeService } from '../../../shared/kinds/types.ts';
import { silentLog, silentMeter } from '../../../test/support/agent-api.ts';
import { NftKernel } from '../../../test/support/nft-kernel.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import type { ServiceObjects, ServicesRead } from './read-service-objects.ts';
import { type RememberedServices, ServiceRules } from './service-rules.ts';

const HOUR_MS = 3_600_000;
const TABLE = 'ip nodekeeper';

const service = (name: string, clusterIP: string): KubeService => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name },
  spec: { clusterIP, ports: [{ port: 80 }] },
});

const slice = (name: string, zones: Readonly<Record<string, string>>): KubeEndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  endpoints: Object.entries(zones).map(([address, zone]) => ({ addresses: [address], nodeName: 'edge-9', zone })),
  ports: [{ port: 8080 }],
});

const objects = (...addresses: string[]): ServiceObjects => ({
  services: [service('web', '10.96.0.10'), service('db', '10.96.0.11')],
  endpointSlices: [slice('web', Object.fromEntries(addresses.map((each) => [each, 'north'])))],
  networkPolicies: [],
  cursors: { services: '1', endpointSlices: '1', networkPolicies: '1' },
});

interface World {
  readonly kernel: NftKernel;
  readonly events: NodeEvent[];
  readonly time: SteppedTime;
  readonly reads: (ServiceObjects | undefined)[];
  saved: RememberedServices | undefined;
  cluster: ServiceObjects;
  readFault: string | undefined;
  filterFault: string | undefined;
  diskFault: string | undefined;
  filtersBridges: boolean;
  zone: string;
  saves: number;
  /** How often the figure of Services was set. */
  gauges: number;
  start(registered?: Promise<unknown>): { rules: ServiceRules; stop(): Promise<void> };
  addressesIn(): string;
}

function world(given: Partial<World> = {}): World {
  const kernel = new NftKernel();
  const node = (): KubeNode => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'edge-1', labels: { 'topology.kubernetes.io/zone': made.zone } },
  });
  const made: World = {
    kernel,
    events: [],
    time: new SteppedTime(1_700_000_000_000),
    reads: [],
    saved: undefined,
    cluster: objects('10.0.0.1'),
    readFault: undefined,
    filterFault: undefined,
    diskFault: undefined,
    filtersBridges: true,
    zone: 'north',
    saves: 0,
    gauges: 0,
    addressesIn: () => JSON.stringify(kernel.content(TABLE)?.chains['cluster/shop/web/tcp/80']),
    start(registered = Promise.resolve()) {
      const stop = new AbortController();
      const rules = new ServiceRules({
        nodeName: 'edge-1',
        endpoints: 'zone',
        domain: 'cluster.local',
        node,
        async read(known): Promise<ServicesRead> {
          made.reads.push(known);
          if (made.readFault !== undefined) return { kind: 'failed', why: made.readFault };
          const isChanged = JSON.stringify(known) !== JSON.stringify(made.cluster);
          return { kind: 'read', objects: made.cluster, isChanged };
        },
        memory: {
          read: async () => made.saved,
          async write(remembered) {
            if (made.diskFault !== undefined) throw new Error(made.diskFault);
            made.saved = remembered;
            made.saves += 1;
          },
        },
        filter: {
          async apply(commands) {
            if (made.filterFault !== undefined) throw new Error(made.filterFault);
            kernel.apply(commands);
          },
        },
        podNetworks: async () => ['10.88.0.0/16'],
        filtersBridges: async () => made.filtersBridges,
        time: made.time,
        fraction: () => 0,
        log: silentLog,
        meter: {
          ...silentMeter,
          gauge(name) {
            if (name === 'nodekeeper_agent_services') made.gauges += 1;
          },
        },
        recordEvent: (event) => made.events.push(event),
      });
      const running = rules.run(registered, stop.signal);
      return {
        rules,
        async stop() {
          stop.abort();
          await running;
        },
      };
    },
    ...given,
  };
  return made;
}

const never = new Promise<never>(() => undefined);

describe('the rules of Services', () => {
  it('are written once, and again only where something differs', async () => {
    const cluster = world();
    const { rules, stop } = cluster.start();
    await cluster.time.pass(0);
    expect(cluster.addressesIn()).toContain('10.0.0.1');
    expect(cluster.saved).toMatchObject({ zone: 'north' });
    rules.changed();
    await cluster.time.pass(2_000);
    expect(cluster.reads).toHaveLength(2);
    expect(cluster.kernel.applied).toHaveLength(1);
    cluster.cluster = objects('10.0.0.2');
    rules.changed();
    await cluster.time.pass(2_000);
    expect(cluster.kernel.applied).toHaveLength(2);
    expect(cluster.kernel.applied[1]).toHaveLength(2);
    expect(cluster.addressesIn()).toContain('10.0.0.2');
    expect(rules.answer('web.shop.svc.cluster.local', 'A')).toMatchObject({ kind: 'records' });
    await stop();
  });

  it('are those of the disk until the API answers, with the zone of then', async () => {
    const elsewhere = {
      ...objects('10.0.0.1'),
      endpointSlices: [slice('web', { '10.0.0.1': 'north', '10.9.0.1': 'south' })],
    };
    const cluster = world({ saved: { objects: elsewhere, zone: 'north' } });
    const { rules, stop } = cluster.start(never);
    await cluster.time.pass(0);
    expect(cluster.addressesIn()).toContain('10.0.0.1');
    expect(cluster.addressesIn()).not.toContain('10.9.0.1');
    expect(rules.answer('web.shop.svc.cluster.local', 'A')).toMatchObject({ kind: 'records' });
    expect(cluster.reads).toEqual([]);
    void stop();
  });

  it('are no table for a cluster without Services, and one of before is removed', async () => {
    const cluster = world();
    cluster.cluster = { ...objects(), services: [], endpointSlices: [] };
    cluster.kernel.apply([{ add: { table: { family: 'ip', name: 'nodekeeper' } } }]);
    const { stop } = cluster.start();
    await cluster.time.pass(0);
    expect(cluster.kernel.content(TABLE)).toBeUndefined();
    await cluster.time.pass(24 * HOUR_MS);
    expect(cluster.kernel.applied).toHaveLength(2);
    await stop();
  });

  it('enforce NetworkPolicies for pods with an address of their own, and report the others once', async () => {
    const pod = (name: string, podIP: string): KubePod => ({
      metadata: { namespace: 'shop', name, labels: {} },
      spec: { nodeName: 'edge-1', containers: [] },
      status: { phase: 'Running', podIP },
    });
    const cluster = world();
    cluster.cluster = {
      ...objects('10.0.0.1'),
      networkPolicies: [{ metadata: { namespace: 'shop', name: 'deny' }, spec: { podSelector: {} } }],
      pods: [pod('web', '10.88.0.5'), pod('exec', '10.11.0.1')],
      namespaces: [],
    };
    cluster.filtersBridges = false;
    const { rules, stop } = cluster.start();
    await cluster.time.pass(0);
    const drop = [{ match: { op: '==', left: { payload: { protocol: 'ip', field: 'saddr' } }, right: '10.88.0.5' } }];
    expect(cluster.kernel.content('ip nodekeeper-policy')?.chains['ingress/10.88.0.5']).toEqual([
      [...drop, { return: null }],
      [{ drop: null }],
    ]);
    rules.changed();
    await cluster.time.pass(2_000);
    expect(cluster.events.map(({ message }) => message)).toEqual([
      'NetworkPolicies: pod shop/exec has the address of this node, so no policy is enforced for it',
      'NetworkPolicies: connections between pods of this node are not filtered: net.bridge.bridge-nf-call-iptables is not 1',
    ]);
    cluster.cluster = objects('10.0.0.1');
    rules.changed();
    await cluster.time.pass(2_000);
    expect(cluster.kernel.content('ip nodekeeper-policy')?.chains['ingress/10.88.0.5']).toBeUndefined();
    await stop();
  });

  it('are saved when an object or the zone of the machine has changed, and not for any other read', async () => {
    const cluster = world();
    cluster.filtersBridges = false;
    const { rules, stop } = cluster.start();
    await cluster.time.pass(0);
    expect([cluster.saves, cluster.gauges]).toEqual([1, 1]);
    await cluster.time.pass(HOUR_MS);
    expect(cluster.reads.length).toBeGreaterThan(1);
    expect([cluster.saves, cluster.gauges]).toEqual([1, 1]);
    cluster.zone = 'south';
    await cluster.time.pass(HOUR_MS);
    expect([cluster.saves, cluster.saved?.zone, cluster.gauges]).toEqual([2, 'south', 1]);
    cluster.cluster = objects('10.0.0.2');
    rules.changed();
    await cluster.time.pass(2_000);
    expect([cluster.saves, cluster.gauges]).toEqual([3, 2]);
    // Without policies it is no matter what bridges filter.
    expect(cluster.events).toEqual([]);
    await stop();
  });

  it('stay while the cluster does not answer, which is reported once and tried with growing waits', async () => {
    const cluster = world();
    const { rules, stop } = cluster.start();
    await cluster.time.pass(0);
    cluster.readFault = 'no answer';
    rules.changed();
    await cluster.time.pass(60_000);
    const reads = cluster.reads.length;
    expect(reads).toBeLessThan(8);
    await cluster.time.pass(HOUR_MS);
    expect(cluster.reads.length - reads).toBeLessThan(20);
    expect(cluster.addressesIn()).toContain('10.0.0.1');
    expect(rules.complaint()).toBe('no answer');
    cluster.readFault = undefined;
    await cluster.time.pass(400_000);
    expect(rules.complaint()).toBeUndefined();
    expect(cluster.events.map(({ reason }) => reason)).toEqual(['ServicesNotRouted', 'ServicesRouted']);
    await stop();
  });

  it('are replaced as a whole after an update that failed', async () => {
    const cluster = world();
    const { rules, stop } = cluster.start();
    await cluster.time.pass(0);
    cluster.cluster = objects('10.0.0.2');
    cluster.filterFault = 'the program nft is not installed';
    rules.changed();
    await cluster.time.pass(2_000);
    expect(rules.complaint()).toBe('the program nft is not installed');
    cluster.filterFault = undefined;
    await cluster.time.pass(10_000);
    expect(cluster.kernel.applied.at(-1)).toContainEqual({ delete: { table: { family: 'ip', name: 'nodekeeper' } } });
    expect(cluster.addressesIn()).toContain('10.0.0.2');
    await stop();
  });

  it('return within half an hour when another program has removed them', async () => {
    const cluster = world();
    const { stop } = cluster.start();
    await cluster.time.pass(0);
    cluster.kernel.flushRuleset();
    await cluster.time.pass(0.6 * HOUR_MS);
    expect(cluster.addressesIn()).toContain('10.0.0.1');
    await stop();
  });

  it('are written although the disk is full, and the copy when it is not any more', async () => {
    const cluster = world({ diskFault: 'ENOSPC' });
    const { rules, stop } = cluster.start();
    await cluster.time.pass(0);
    expect(cluster.addressesIn()).toContain('10.0.0.1');
    expect(rules.complaint()).toBe('ENOSPC');
    cluster.diskFault = undefined;
    await cluster.time.pass(20_000);
    expect(cluster.saved?.objects).toEqual(cluster.cluster);
    await stop();
  });

  it('are the same whenever an agent was killed, and with two at once', async () => {
    for (const steps of [0, 1, 2, 3, 5, 8, 13, 21]) {
      const cluster = world({ saved: { objects: objects('10.0.0.9'), zone: 'north' } });
      void cluster.start();
      for (let step = 0; step < steps; step += 1) await Promise.resolve();
      cluster.cluster = objects('10.0.0.1', '10.0.0.2');
      // The first one is not stopped: its child process may still be at work.
      const { stop } = cluster.start();
      await cluster.time.pass(0);
      await cluster.time.pass(1.2 * HOUR_MS);
      expect(cluster.addressesIn()).toContain('10.0.0.2');
      expect(cluster.addressesIn()).not.toContain('10.0.0.9');
      await stop();
    }
  });
});
