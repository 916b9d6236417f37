/**
 * Rules of Services and NetworkPolicies in a real kernel: whatever a cluster has, nft accepts each update, and many
 * updates lead to the same tables as one complete transaction. Objects are as odd as the API accepts them. Otherwise
 * one of them would hold back the rules of all others.
 */
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nftPacketFilter } from '../../agent/adapters/services/nft.ts';
import { isolations } from '../../agent/rules/network-policy/isolations.ts';
import { policyTable } from '../../agent/rules/network-policy/policy-table.ts';
import { balancedPorts } from '../../agent/rules/services/load-balancing.ts';
import { type NftState, type NftTable, nftRemoval, nftUpdate } from '../../agent/rules/services/nft-table.ts';
import { serviceTable } from '../../agent/rules/services/service-table.ts';
import type { KubeEndpointSlice, KubeNetworkPolicy, KubePod, KubeService } from '../../shared/kinds/types.ts';
import { missingNamespaces } from '../support/machine-network.ts';
import { randomFrom } from '../support/seeded.ts';

const missing = missingNamespaces();
const suite = missing === undefined ? describe : describe.skip;
const title = missing === undefined ? 'nft' : `nft (skipped: no network namespaces: ${missing})`;

const NAMESPACE = `nk${process.pid}updates`;
const NFT = ['ip', 'netns', 'exec', NAMESPACE, 'nft'];
const STEPS = 30;
const SERVICES_MAX = 8;
const PLACE = { nodeName: 'here', podNetworks: ['0.0.0.0/0', '::/0'] };
/** Addresses and names at the ends of their ranges; words of nft; the longest names. */
const IPV4 = ['10.0.0.1', '10.88.0.5', '255.255.255.255', '0.0.0.0', '127.0.0.1', '224.0.0.1', '169.254.1.1'];
const IPV6 = ['::1', '::', 'fe80::1', 'fd00::1', 'ff02::1', '::ffff:1.2.3.4', '2001:DB8:0:0:0:0:0:1', 'ffff::ffff'];
const NAMES = ['web', 'a'.repeat(63), '1a', '0', 'a--b', 'map', 'type', 'drop', 'filter'];
const PORTS = [1, 80, 443, 30_000, 65_535];
const PROTOCOLS = ['TCP', 'UDP', 'SCTP', undefined];

interface Objects {
  readonly services: readonly KubeService[];
  readonly slices: readonly KubeEndpointSlice[];
  readonly policies: readonly KubeNetworkPolicy[];
  readonly pods: readonly KubePod[];
}

function generator(random: () => number) {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const some = <T>(max: number, make: () => T): T[] => Array.from({ length: Math.floor(random() * (max + 1)) }, make);
  const cidr = () =>
    pick([`${pick(IPV4)}/${Math.floor(random() * 33)}`, `${pick(IPV6)}/${Math.floor(random() * 129)}`, '0.0.0.0/0']);

  function service(): readonly [KubeService, KubeEndpointSlice] {
    const [namespace, name, addresses] = [pick(NAMES), pick(NAMES), pick([IPV4, IPV6])];
    const ports = [...some(2, () => pick(PORTS)), 8_080].map((port) => ({
      ...{ name: pick(NAMES), port, protocol: pick(PROTOCOLS), nodePort: pick([undefined, ...PORTS]) },
    }));
    const spec = {
      ...{ clusterIP: pick(addresses), clusterIPs: pick([undefined, [pick(IPV4), pick(IPV6)]]), ports },
      ...{ sessionAffinity: pick(['ClientIP', 'None']), internalTrafficPolicy: pick(['Local', 'Cluster']) },
      sessionAffinityConfig: { clientIP: { timeoutSeconds: pick([1, 86_400]) } },
      externalTrafficPolicy: pick(['Local', 'Cluster']),
    };
    const endpoint = () => ({
      ...{ addresses: [pick(addresses)], nodeName: pick(['here', 'there', undefined]) },
      conditions: { ready: random() < 0.8 },
    });
    const slice = {
      metadata: { namespace, name, labels: { 'kubernetes.io/service-name': name } },
      endpoints: some(5, endpoint),
      ports: ports.map((port) => ({ name: port.name, protocol: port.protocol, port: pick(PORTS) })),
    };
    return [{ metadata: { namespace, name }, spec }, slice] as unknown as readonly [KubeService, KubeEndpointSlice];
  }

  function policy(): KubeNetworkPolicy {
    const labels = { matchLabels: { app: 'a' } };
    const ipBlock = () => ({ ipBlock: { cidr: cidr(), except: some(2, cidr) } });
    const peer = () => pick([ipBlock(), { podSelector: {} }, { namespaceSelector: {} }, { podSelector: labels }]);
    const port = () => {
      const first = pick([...PORTS, 'http', undefined]);
      const endPort = typeof first === 'number' && random() < 0.5 ? Math.min(65_535, first + 2) : undefined;
      return { protocol: pick(PROTOCOLS), port: first, endPort };
    };
    const rule = (peers: 'from' | 'to') => () => ({ [peers]: pick([undefined, some(3, peer)]), ports: some(2, port) });
    const spec = { podSelector: pick([{}, labels]), ingress: some(2, rule('from')), egress: some(2, rule('to')) };
    return { metadata: { namespace: 'shop', name: 'p' }, spec } as unknown as KubeNetworkPolicy;
  }

  const pod = (): KubePod =>
    ({
      metadata: { namespace: 'shop', name: 'p', labels: { app: pick(['a', 'b']) } },
      spec: { nodeName: 'here', containers: [{ ports: [{ name: 'http', containerPort: pick(PORTS) }] }] },
      status: { phase: 'Running', podIP: pick(IPV4), podIPs: [{ ip: pick(IPV4) }, { ip: pick(IPV6) }] },
    }) as unknown as KubePod;

  const all: {
    services: (readonly [KubeService, KubeEndpointSlice])[];
    policies: KubeNetworkPolicy[];
    pods: KubePod[];
  } = { services: [], policies: [], pods: [] };
  /** One more object of each kind, and one less above a bound. */
  return (): Objects => {
    const change = <T>(list: T[], max: number, make: () => T): void => {
      list.push(make());
      while (list.length > max) list.splice(Math.floor(random() * list.length), 1);
    };
    change(all.services, SERVICES_MAX, service);
    change(all.policies, 2, policy);
    change(all.pods, 4, pod);
    const { services, policies, pods } = all;
    return { services: services.map(([one]) => one), slices: services.map(([, slice]) => slice), policies, pods };
  };
}

function tablesOf({ services, slices, policies, pods }: Objects): readonly NftTable[] {
  const namespaces = [{ metadata: { name: 'shop' } }];
  return (['ip', 'ip6'] as const).flatMap((family) => [
    serviceTable(family, balancedPorts(services, slices, PLACE)),
    policyTable(family, isolations({ policies, pods, namespaces }, { ...PLACE, family }).isolated),
  ]);
}

const keyOf = ({ family, name }: NftTable): string => `${family} ${name}`;

/** An entry of `nft -j list`. */
interface Listed {
  readonly rule?: { readonly family: string; readonly table: string; readonly chain: string; readonly expr: unknown };
  readonly map?: ListedSet;
  readonly set?: ListedSet;
}

interface ListedSet {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  readonly elem?: readonly unknown[];
}

/** What the kernel has: rules by chain, elements by set. Chains without rules are left out. */
function kernelState(): Readonly<Record<string, unknown>> {
  const [program, ...args] = NFT;
  const { stdout } = spawnSync(program!, [...args, '-j', '-s', 'list', 'ruleset'], { encoding: 'utf8' });
  const found: Record<string, unknown[]> = {};
  for (const item of (JSON.parse(stdout) as { nftables: readonly Listed[] }).nftables) {
    const { rule, map, set } = item;
    if (rule !== undefined) {
      const key = `${rule.family} ${rule.table} ${rule.chain}`;
      found[key] = [...(found[key] ?? []), rule.expr];
    }
    const elements = map ?? set;
    if (elements === undefined) continue;
    const texts = (elements.elem ?? []).map((each) => JSON.stringify(each)).toSorted();
    found[`${elements.family} ${elements.table} set ${elements.name}`] = texts;
  }
  return found;
}

suite(title, () => {
  const filter = nftPacketFilter(NFT);

  beforeAll(() => {
    expect(spawnSync('ip', ['netns', 'add', NAMESPACE]).status).toBe(0);
  });
  afterAll(() => {
    spawnSync('ip', ['netns', 'delete', NAMESPACE]);
  });

  it.each([1, 2, 3])(
    'accepts each update, and has the same in the end as after one transaction (seed %s)',
    async (seed) => {
      const next = generator(randomFrom(seed));
      const states = new Map<string, NftState>();
      let tables: readonly NftTable[] = [];
      let updates = 0;
      for (let step = 0; step < STEPS; step += 1) {
        tables = tablesOf(next());
        const commands = tables.flatMap((table) => {
          const update = nftUpdate(states.get(keyOf(table)), table);
          states.set(keyOf(table), update.state);
          return update.commands;
        });
        if (commands.length === 0) continue;
        updates += 1;
        await filter.apply(commands);
      }
      expect(updates).toBeGreaterThan(STEPS / 2);
      const changed = kernelState();
      await filter.apply(tables.flatMap((table) => nftUpdate(undefined, table).commands));
      expect(Object.keys(changed).length).toBeGreaterThan(20);
      expect(changed).toEqual(kernelState());
      await filter.apply(tables.flatMap(nftRemoval));
    },
  );
});
