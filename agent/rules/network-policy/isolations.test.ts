import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type {
  KubeNetworkPolicy,
  KubeObject,
  KubePod,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '../../../shared/kinds/types.ts';
import { addressOf, isIn } from '../address-ranges.ts';
import { type AllowRule, type Isolation, isolations } from './isolations.ts';
import { policyTable } from './policy-table.ts';

const PLACE = { nodeName: 'here', family: 'ip', podNetworks: ['10.88.0.0/16'] } as const;

const pod = (
  namespace: string,
  name: string,
  ip: string,
  more: { labels?: Record<string, string>; node?: string; spec?: object } = {},
): KubePod => ({
  metadata: { namespace, name, labels: more.labels ?? {} },
  spec: {
    nodeName: more.node ?? 'here',
    containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 8_080, protocol: 'TCP' }] }],
    ...more.spec,
  } as NonNullable<KubePod['spec']>,
  status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
});
const policy = (namespace: string, spec: KubeNetworkPolicy['spec']): KubeNetworkPolicy => ({
  metadata: { namespace, name: 'p' },
  ...(spec !== undefined && { spec }),
});
const namespace = (name: string, labels: Record<string, string> = {}): KubeObject => ({ metadata: { name, labels } });

interface Connection {
  /** Addresses. */
  readonly from: string;
  readonly to: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
}
interface Objects {
  readonly policies: readonly KubeNetworkPolicy[];
  readonly pods: readonly KubePod[];
  readonly namespaces: readonly KubeObject[];
}

/** By the lists that the rule made: what the rules of nftables would do. */
function allowedByLists(isolated: readonly Isolation[], { from, to, protocol, port }: Connection): boolean {
  const [source, target] = [addressOf(from, 'ip')!, addressOf(to, 'ip')!];
  if (source === target) return true;
  const passes = (rules: readonly AllowRule[] | undefined, peer: bigint): boolean =>
    rules === undefined ||
    rules.some(
      ({ peers, ports }) =>
        (peers === undefined || isIn(peers, peer)) &&
        (ports === undefined ||
          ports.some(
            (each) =>
              each.protocol === protocol.toLowerCase() &&
              (each.first === undefined || (each.first <= port && port <= (each.last ?? each.first))),
          )),
    );
  const of = (address: bigint) => isolated.find((each) => each.address === address);
  return passes(of(source)?.egress, target) && passes(of(target)?.ingress, source);
}

/** Directly, by the words of the documentation of NetworkPolicy. */
function allowedByPolicies({ policies, pods, namespaces }: Objects, connection: Connection): boolean {
  const { from, to } = connection;
  if (from === to) return true;
  const podAt = (ip: string) => pods.find(({ status }) => status?.podIP === ip);
  const [client, server] = [podAt(from), podAt(to)];
  const matches = (
    selector: { matchLabels?: Record<string, string> } | undefined,
    labels: Record<string, string> = {},
  ) => Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  const number = (ip: string) => ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const isInside = (ip: string, cidr: string) => {
    const [base = '', length = ''] = cidr.split('/');
    const size = 2 ** (32 - Number(length));
    return Math.floor(number(ip) / size) === Math.floor(number(base) / size);
  };
  const isPeer = (own: string, each: NetworkPolicyPeer, peer: KubePod | undefined, ip: string): boolean => {
    if (each.ipBlock !== undefined) {
      return isInside(ip, each.ipBlock.cidr) && !(each.ipBlock.except ?? []).some((cidr) => isInside(ip, cidr));
    }
    if (peer === undefined) return false;
    const labels = namespaces.find(({ metadata }) => metadata.name === peer.metadata.namespace)?.metadata.labels;
    const isNamespace =
      each.namespaceSelector === undefined ? peer.metadata.namespace === own : matches(each.namespaceSelector, labels);
    return isNamespace && matches(each.podSelector, peer.metadata.labels);
  };
  const isPort = ({ protocol = 'TCP', port, endPort }: NetworkPolicyPort): boolean => {
    if (protocol !== connection.protocol) return false;
    if (port === undefined) return true;
    if (typeof port === 'number') return port <= connection.port && connection.port <= (endPort ?? port);
    const named = server?.spec?.containers?.flatMap(({ ports = [] }) => ports).find(({ name }) => name === port);
    return named?.containerPort === connection.port && (named.protocol ?? 'TCP') === protocol;
  };
  const passes = (own: KubePod | undefined, peer: KubePod | undefined, ip: string, type: 'Ingress' | 'Egress') => {
    if (own?.spec?.nodeName !== PLACE.nodeName) return true;
    const selecting = policies.filter(
      ({ metadata, spec }) =>
        metadata.namespace === own.metadata.namespace &&
        matches(spec?.podSelector, own.metadata.labels) &&
        (spec?.policyTypes ?? ['Ingress', ...(spec?.egress === undefined ? [] : ['Egress'])]).includes(type),
    );
    if (selecting.length === 0) return true;
    return selecting.some(({ metadata, spec }) => {
      const rules: readonly { peers?: NetworkPolicyPeer[]; ports?: NetworkPolicyPort[] }[] =
        type === 'Ingress'
          ? (spec?.ingress ?? []).map(({ from: peers, ports }) => ({
              ...(peers && { peers }),
              ...(ports && { ports }),
            }))
          : (spec?.egress ?? []).map(({ to: peers, ports }) => ({ ...(peers && { peers }), ...(ports && { ports }) }));
      return rules.some(
        ({ peers = [], ports = [] }) =>
          (peers.length === 0 || peers.some((each) => isPeer(metadata.namespace ?? '', each, peer, ip))) &&
          (ports.length === 0 || ports.some(isPort)),
      );
    });
  };
  return passes(client, server, to, 'Egress') && passes(server, client, from, 'Ingress');
}

const PODS = [
  pod('a', 'web', '10.88.0.1', { labels: { app: 'web' } }),
  // Its port of the same name has another number.
  pod('a', 'db', '10.88.0.2', {
    labels: { app: 'db' },
    spec: { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 80, protocol: 'TCP' }] }] },
  }),
  pod('b', 'web', '10.88.0.3', { labels: { app: 'web' } }),
  pod('b', 'far', '10.77.0.1', { labels: { app: 'web' }, node: 'there' }),
  pod('a', 'far', '10.77.0.2', { labels: { app: 'db' }, node: 'there' }),
];
const NAMESPACES = [namespace('a', { team: 'x' }), namespace('b', { team: 'y' })];
const ADDRESSES = [...PODS.map(({ status }) => status!.podIP!), '192.0.2.7', '192.0.2.130', '10.99.0.1'];

const selector = fc.constantFrom(
  {},
  { matchLabels: { app: 'web' } },
  { matchLabels: { app: 'db' } },
  { matchLabels: { app: 'none' } },
);
const namespaceSelector = fc.constantFrom({}, { matchLabels: { team: 'x' } }, { matchLabels: { team: 'y' } });
const peer: fc.Arbitrary<NetworkPolicyPeer> = fc.oneof(
  fc.record({ podSelector: selector }),
  fc.record({ namespaceSelector }),
  fc.record({ podSelector: selector, namespaceSelector }),
  fc.record({
    ipBlock: fc.constantFrom<NonNullable<NetworkPolicyPeer['ipBlock']>[]>(
      { cidr: '192.0.2.0/24' },
      { cidr: '192.0.2.0/24', except: ['192.0.2.128/25', '192.0.2.7/32'] },
      { cidr: '0.0.0.0/0', except: ['10.0.0.0/8'] },
      { cidr: '10.88.0.0/30' },
    ),
  }),
);
const port: fc.Arbitrary<NetworkPolicyPort> = fc.oneof(
  fc.record({ protocol: fc.constantFrom('TCP' as const, 'UDP' as const) }),
  fc.record({ port: fc.constantFrom(80, 8_080, 'http', 'none') }),
  fc.constant({ protocol: 'TCP' as const, port: 80, endPort: 90 }),
);
const lists = { peers: fc.array(peer, { maxLength: 2 }), ports: fc.array(port, { maxLength: 2 }) };
const anyPolicy = fc
  .record(
    {
      namespace: fc.constantFrom('a', 'b'),
      podSelector: selector,
      policyTypes: fc.constantFrom<string[][]>(['Ingress'], ['Egress'], ['Ingress', 'Egress']),
      ingress: fc.array(fc.record(lists), { maxLength: 2 }),
      egress: fc.array(fc.record(lists), { minLength: 1, maxLength: 2 }),
    },
    { requiredKeys: ['namespace', 'podSelector'] },
  )
  .map(({ namespace: own, podSelector, policyTypes, ingress, egress }) =>
    policy(own, {
      podSelector,
      ...(policyTypes && { policyTypes }),
      ...(ingress && { ingress: ingress.map(({ peers, ports }) => ({ from: peers, ports })) }),
      ...(egress && { egress: egress.map(({ peers, ports }) => ({ to: peers, ports })) }),
    }),
  );
const connection: fc.Arbitrary<Connection> = fc.record({
  from: fc.constantFrom(...ADDRESSES),
  to: fc.constantFrom(...ADDRESSES),
  protocol: fc.constantFrom('TCP', 'UDP'),
  port: fc.constantFrom(80, 85, 90, 91, 8_080),
});

describe('the lists of a machine', () => {
  it('allow the connections of its pods that the policies allow, and no others', () => {
    const property = fc.property(
      fc.array(anyPolicy, { maxLength: 4 }),
      fc.array(connection, { minLength: 20, maxLength: 20 }),
      (policies, some) => {
        const objects = { policies, pods: PODS, namespaces: NAMESPACES };
        const { isolated } = isolations(objects, PLACE);
        for (const each of some) {
          expect([each, allowedByLists(isolated, each)]).toEqual([each, allowedByPolicies(objects, each)]);
        }
      },
    );
    fc.assert(property, { numRuns: 1_000 });
  });

  it('have no entry for a pod that no policy selects, and an empty one for a policy that denies all', () => {
    const objects = { pods: PODS, namespaces: NAMESPACES };
    const deny = policy('a', { podSelector: { matchLabels: { app: 'db' } }, policyTypes: ['Ingress', 'Egress'] });
    const { isolated } = isolations({ ...objects, policies: [deny] }, PLACE);
    expect(isolated).toEqual([{ address: addressOf('10.88.0.2', 'ip'), ingress: [], egress: [] }]);
    expect(isolations({ ...objects, policies: [] }, PLACE)).toEqual({ isolated: [], unenforced: [] });
  });

  it('have for the name of a port its number at each server', () => {
    const spec = {
      podSelector: { matchLabels: { app: 'web' } },
      policyTypes: ['Egress'],
      egress: [{ ports: [{ port: 'http' }] }],
    };
    const { isolated } = isolations({ policies: [policy('a', spec)], pods: PODS, namespaces: NAMESPACES }, PLACE);
    const ports = (to: string) =>
      [80, 8_080].filter((each) => allowedByLists(isolated, { from: '10.88.0.1', to, protocol: 'TCP', port: each }));
    expect([ports('10.88.0.2'), ports('10.88.0.3'), ports('192.0.2.7')]).toEqual([[80], [8_080], []]);
  });

  it('name pods that share the address of the machine: they cannot be distinguished', () => {
    const pods = [
      pod('a', 'exec', '10.11.0.1'),
      pod('a', 'host', '10.11.0.1', { spec: { hostNetwork: true } }),
      pod('a', 'ended', '10.11.0.1'),
      pod('a', 'web', '10.88.0.9'),
    ];
    pods[2]!.status!.phase = 'Succeeded';
    const all = policy('a', { podSelector: {} });
    const { isolated, unenforced } = isolations({ policies: [all], pods, namespaces: [namespace('a')] }, PLACE);
    expect(unenforced).toEqual(['a/exec', 'a/host']);
    expect(isolated).toHaveLength(1);
  });

  it('leave out peers of other machines with an address that belongs to another pod here, and pods on hosts', () => {
    const pods = [
      pod('a', 'web', '10.88.0.1'),
      pod('a', 'same-range', '10.88.0.7', { labels: { app: 'peer' }, node: 'there' }),
      pod('a', 'host', '10.11.0.2', { labels: { app: 'peer' }, node: 'there', spec: { hostNetwork: true } }),
      pod('a', 'exec', '10.11.0.3', { labels: { app: 'peer' }, node: 'there' }),
    ];
    const from = [{ podSelector: { matchLabels: { app: 'peer' } } }];
    const allow = policy('a', { podSelector: {}, ingress: [{ from }] });
    const { isolated } = isolations({ policies: [allow], pods, namespaces: [namespace('a')] }, PLACE);
    const exec = addressOf('10.11.0.3', 'ip');
    expect(isolated).toEqual([{ address: addressOf('10.88.0.1', 'ip'), ingress: [{ peers: [[exec, exec]] }] }]);
  });

  it('are of one family of addresses each', () => {
    const both = pod('a', 'web', '10.88.0.1');
    both.status!.podIPs = [{ ip: '10.88.0.1' }, { ip: 'fd00::5' }];
    const from = [{ ipBlock: { cidr: 'fd00:1::/32', except: ['fd00:1:2::/48'] } }];
    const objects = { policies: [policy('a', { podSelector: {}, ingress: [{ from }] })], pods: [both], namespaces: [] };
    const place = { ...PLACE, podNetworks: ['10.88.0.0/16', 'fd00::/64'] };
    expect(isolations(objects, place).isolated).toEqual([
      { address: addressOf('10.88.0.1', 'ip'), ingress: [{ peers: [] }] },
    ]);
    const { isolated } = isolations(objects, { ...place, family: 'ip6' });
    const table = policyTable('ip6', isolated);
    expect(JSON.stringify(table.chains.get('ingress/fd00..5'))).toContain(
      '{"range":["fd00:1::","fd00:1:1:ffff:ffff:ffff:ffff:ffff"]},{"range":["fd00:1:3::","fd00:1:ffff:ffff:ffff:ffff:ffff:ffff"]}',
    );
  });
});

it('a port of an unknown protocol, or without such a name, allows nothing', () => {
  const allowed = (port: NetworkPolicyPort) =>
    isolations(
      {
        policies: [policy('a', { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ ports: [port] }] })],
        pods: [pod('a', 'web', '10.88.0.1')],
        namespaces: [namespace('a')],
      },
      PLACE,
    ).isolated[0]?.ingress;
  expect(allowed({ port: 80 })).not.toEqual([]);
  expect(allowed({ port: 'http' })).not.toEqual([]);
  expect(allowed({ port: 80, protocol: 'ICMP' as 'TCP' })).toEqual(allowed({ port: 'other' }));
});
