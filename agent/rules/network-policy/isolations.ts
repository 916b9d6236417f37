/**
 * Which connections of the pods of this machine the NetworkPolicies of the cluster allow, as lists per pod. Pure.
 *
 * A pod that no policy selects for a direction is not isolated in it. A pod that some select may have the connections
 * that one of them allows (Kubernetes: "Network Policies"). A connection needs both the egress of its client and the
 * ingress of its server. Answers belong to their connection.
 *
 * Pods are distinguished by their addresses. A pod with the address of its machine is not isolated: `unenforced` names
 * those that a policy selects. As a peer it stands for its machine, and pods with `hostNetwork` are no peers at all.
 * Pods of other machines may have addresses in the networks of this machine, where these belong to other pods: such
 * peers are left out.
 */
import { isTerminated } from '../../../shared/kinds/pods/resource.ts';
import type {
  KubeNetworkPolicy,
  KubeObject,
  KubePod,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '../../../shared/kinds/types.ts';
import { type LabelSelectorSpec, selectorFromSpec } from '../../../shared/kubernetes/selectors.ts';
import { type AddressRange, addressOf, type Family, isIn, rangesOf, unionOf, without } from '../address-ranges.ts';

export type PolicyProtocol = 'tcp' | 'udp' | 'sctp';

export interface PortRange {
  readonly protocol: PolicyProtocol;
  /** Absent: all ports. */
  readonly first?: number;
  readonly last?: number;
}

/** Connections with one of the peers, to one of the ports. */
export interface AllowRule {
  /** Absent: anyone. */
  readonly peers?: readonly AddressRange[];
  /** Absent: all ports of all protocols. */
  readonly ports?: readonly PortRange[];
}

export interface Isolation {
  readonly address: bigint;
  /** Absent: not isolated in this direction. Empty: no connection. */
  readonly ingress?: readonly AllowRule[];
  readonly egress?: readonly AllowRule[];
}

export interface PolicyObjects {
  readonly policies: readonly KubeNetworkPolicy[];
  /** Of the cluster. */
  readonly pods: readonly KubePod[];
  readonly namespaces: readonly KubeObject[];
}

export interface PolicyPlace {
  readonly nodeName: string;
  readonly family: Family;
  /** Networks of the pods of this machine, as CIDRs. */
  readonly podNetworks: readonly string[];
}

export interface Isolations {
  readonly isolated: readonly Isolation[];
  /** `NAMESPACE/NAME` of pods of this machine that a policy selects, and that share an address with others. */
  readonly unenforced: readonly string[];
}

export function isolations({ policies, pods, namespaces }: PolicyObjects, place: PolicyPlace): Isolations {
  const networks = rangesOf(place.podNetworks, place.family);
  const labelsOf = new Map(namespaces.map(({ metadata: { name = '', labels = {} } }) => [name, labels]));
  const running = pods.filter((pod) => !isTerminated(pod));
  const peers = running.flatMap((pod) => peerOf(pod, place, networks));
  const world: World = { labelsOf, peers, family: place.family };
  const read = policies.map((policy) => ({
    policy,
    ...directionsOf(policy),
    selects: selectorOf(policy.spec?.podSelector),
  }));
  const isolated = new Map<bigint, Isolation>();
  const unenforced: string[] = [];
  for (const pod of running) {
    if (pod.spec?.nodeName !== place.nodeName) continue;
    const { namespace = '', name = '', labels = {} } = pod.metadata;
    const selecting = read.filter(({ policy, selects }) => policy.metadata.namespace === namespace && selects(labels));
    if (selecting.length === 0) continue;
    const addresses = addressesIn(pod, place.family);
    if (addresses.length === 0) continue;
    const own = addresses.filter((address) => isIn(networks, address));
    if (pod.spec.hostNetwork === true || own.length === 0) {
      unenforced.push(`${namespace}/${name}`);
      continue;
    }
    const of = (direction: Direction): readonly KubeNetworkPolicy[] =>
      selecting.filter((each) => each[direction]).map(({ policy }) => policy);
    const [ingress, egress] = [of('ingress'), of('egress')];
    for (const address of own) {
      isolated.set(address, {
        address,
        ...(ingress.length > 0 && { ingress: ingress.flatMap((policy) => ingressRules(policy, pod, world)) }),
        ...(egress.length > 0 && { egress: egress.flatMap((policy) => egressRules(policy, world)) }),
      });
    }
  }
  return { isolated: [...isolated.values()], unenforced };
}

type Direction = 'ingress' | 'egress';
type Labels = Readonly<Record<string, string>>;

interface World {
  readonly labelsOf: ReadonlyMap<string, Labels>;
  readonly peers: readonly Peer[];
  readonly family: Family;
}

interface Peer {
  readonly namespace: string;
  readonly labels: Labels;
  readonly addresses: readonly bigint[];
  readonly pod: KubePod;
}

const selectorOf = (spec: LabelSelectorSpec | undefined): ((labels: Labels) => boolean) => {
  const selector = selectorFromSpec(spec ?? {});
  return (labels) => selector.matches(labels);
};

/** Without policyTypes a policy is about ingress, and about egress if it has such rules. */
function directionsOf({ spec = {} }: KubeNetworkPolicy): Readonly<Record<Direction, boolean>> {
  const types = spec.policyTypes ?? [];
  if (types.length === 0) return { ingress: true, egress: (spec.egress ?? []).length > 0 };
  return { ingress: types.includes('Ingress'), egress: types.includes('Egress') };
}

function addressesIn({ status }: KubePod, family: Family): readonly bigint[] {
  const texts = new Set([status?.podIP ?? '', ...(status?.podIPs ?? []).map(({ ip = '' }) => ip)]);
  return [...texts].flatMap((text) => addressOf(text, family) ?? []);
}

function peerOf(pod: KubePod, { nodeName, family }: PolicyPlace, networks: readonly AddressRange[]): Peer[] {
  if (pod.spec?.hostNetwork === true) return [];
  const isHere = pod.spec?.nodeName === nodeName;
  const addresses = addressesIn(pod, family).filter((address) => isHere || !isIn(networks, address));
  const { namespace = '', labels = {} } = pod.metadata;
  return addresses.length === 0 ? [] : [{ namespace, labels, addresses, pod }];
}

function ingressRules({ metadata, spec }: KubeNetworkPolicy, pod: KubePod, world: World): readonly AllowRule[] {
  return (spec?.ingress ?? []).map(({ from, ports = [] }) => ({
    ...peersPart(metadata.namespace ?? '', from, world),
    ...(ports.length > 0 && { ports: ports.flatMap((port) => rangeOf(port, pod) ?? []) }),
  }));
}

/** A named port is another number for each server. */
function egressRules({ metadata, spec }: KubeNetworkPolicy, world: World): readonly AllowRule[] {
  const { namespace = '' } = metadata;
  return (spec?.egress ?? []).flatMap(({ to, ports = [] }): AllowRule[] => {
    const part = peersPart(namespace, to, world);
    if (ports.length === 0) return [part];
    const named = ports.filter(({ port }) => typeof port === 'string');
    const numbers = ports.flatMap((port) => (typeof port.port === 'string' ? [] : (rangeOf(port) ?? [])));
    const servers = named.length === 0 ? [] : serversOf(namespace, to, world);
    return [
      ...(numbers.length > 0 ? [{ ...part, ports: numbers }] : []),
      ...servers.flatMap(({ addresses, pod }): AllowRule[] => {
        const found = named.flatMap((port) => rangeOf(port, pod) ?? []);
        return found.length === 0 ? [] : [{ peers: unionOf(addresses.map(single)), ports: found }];
      }),
    ];
  });
}

/** The pods that peers name, also by their addresses. */
function serversOf(namespace: string, to: readonly NetworkPolicyPeer[] | undefined, world: World): readonly Peer[] {
  if ((to ?? []).length === 0) return world.peers;
  const blocks = blocksOf(to, world);
  const inBlocks = world.peers.flatMap((peer) => {
    const addresses = peer.addresses.filter((address) => isIn(blocks, address));
    return addresses.length === 0 ? [] : [{ ...peer, addresses }];
  });
  return [...selectedPeers(namespace, to, world), ...inBlocks];
}

const single = (address: bigint): AddressRange => [address, address];

/** Without peers a rule is about anyone. */
function peersPart(
  namespace: string,
  peers: readonly NetworkPolicyPeer[] | undefined,
  world: World,
): Pick<AllowRule, 'peers'> {
  if ((peers ?? []).length === 0) return {};
  const blocks = blocksOf(peers, world);
  const pods = selectedPeers(namespace, peers, world).flatMap(({ addresses }) => addresses.map(single));
  return { peers: unionOf([...blocks, ...pods]) };
}

function blocksOf(peers: readonly NetworkPolicyPeer[] | undefined, { family }: World): readonly AddressRange[] {
  return (peers ?? []).flatMap(({ ipBlock }) => {
    const except = rangesOf(ipBlock?.except ?? [], family);
    return rangesOf([ipBlock?.cidr ?? ''], family).flatMap((range) => without(range, except));
  });
}

function selectedPeers(
  namespace: string,
  peers: readonly NetworkPolicyPeer[] | undefined,
  world: World,
): readonly Peer[] {
  const tests = (peers ?? []).flatMap(({ ipBlock, podSelector, namespaceSelector }) => {
    if (ipBlock !== undefined || (podSelector === undefined && namespaceSelector === undefined)) return [];
    const selectsPod = selectorOf(podSelector);
    const selectsNamespace = namespaceSelector === undefined ? undefined : selectorOf(namespaceSelector);
    return [
      (peer: Peer): boolean =>
        (selectsNamespace === undefined
          ? peer.namespace === namespace
          : selectsNamespace(world.labelsOf.get(peer.namespace) ?? {})) && selectsPod(peer.labels),
    ];
  });
  return world.peers.filter((peer) => tests.some((isSelected) => isSelected(peer)));
}

const PROTOCOLS: Readonly<Record<string, PolicyProtocol>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' };

/** @param server resolves a name. Undefined: it has no such port, or the protocol is unknown */
function rangeOf(
  { protocol: name = 'TCP', port, endPort }: NetworkPolicyPort,
  server?: KubePod,
): PortRange | undefined {
  const protocol = PROTOCOLS[name];
  if (protocol === undefined) return undefined;
  if (port === undefined) return { protocol };
  if (typeof port === 'number') return { protocol, first: port, last: endPort ?? port };
  const { containers = [], initContainers = [] } = server?.spec ?? {};
  const number = [...containers, ...initContainers]
    .flatMap(({ ports = [] }) => ports)
    .find((each) => each.name === port && (each.protocol || 'TCP') === name)?.containerPort;
  return number === undefined ? undefined : { protocol, first: number, last: number };
}
