/**
 * Where this machine sends connections to a Service: its ports, each with the endpoints that are chosen for it.
 *
 * Sources: pkg/proxy/topology.go (CategorizeEndpoints), pkg/proxy/endpointslicecache.go, pkg/proxy/serviceport.go.
 *
 * Difference from upstream: endpoints that this machine cannot reach are left out first, as if they did not exist. A
 * Service that has others alone refuses connections at once, where packets to them would be lost.
 */
import { defined } from '../../../shared/defined.ts';
import type {
  Endpoint,
  EndpointPort,
  KubeEndpointSlice,
  KubeService,
  ServicePort,
} from '../../../shared/kinds/types.ts';
import { addressOf, type Family, isIn, rangesOf } from '../address-ranges.ts';
import { parseIp } from '../ip-address.ts';

export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
/** Another program serves this Service (well-known label of Kubernetes). */
const PROXY_NAME_LABEL = 'service.kubernetes.io/service-proxy-name';
const AFFINITY_SECONDS = 10_800;
const PORT_MAX = 65_535;

/** What decides which endpoints this machine can reach. */
export interface Place {
  readonly nodeName: string;
  /** Value of topology.kubernetes.io/zone of this Node. */
  readonly zone?: string;
  /** Otherwise endpoints of other zones are not reached, if this Node has a zone. */
  readonly reachesAllZones?: boolean;
  /** Networks of pods on this machine, as CIDRs. Pods of other machines may have the same addresses in theirs. */
  readonly podNetworks: readonly string[];
}

export type Protocol = 'tcp' | 'udp' | 'sctp';

/** An address and a port that accepts connections. */
export interface Target {
  /** In canonical form. */
  readonly address: string;
  readonly port: number;
}

/** One port of a Service, for one of its addresses. */
export interface BalancedPort {
  /** `namespace/service/protocol/port`, unique in its family. The last part is the name of the port, or its number. */
  readonly id: string;
  readonly family: Family;
  readonly protocol: Protocol;
  /** Cluster address and port of the Service. */
  readonly at: Target;
  readonly nodePort?: number;
  /** Endpoints for connections that may leave this machine. */
  readonly cluster: readonly Target[];
  /** Endpoints on this machine. */
  readonly local: readonly Target[];
  /** Connections to the cluster address, and those to the node port, stay on this machine. */
  readonly isInternalLocal: boolean;
  readonly isExternalLocal: boolean;
  /** For so long a client keeps its endpoint. Absent: each connection may have another one. Seconds. */
  readonly affinitySeconds?: number;
}

/** An endpoint of a slice, with what decides about it. */
interface Candidate {
  readonly target: Target;
  readonly isLocal: boolean;
  readonly isReady: boolean;
  /** Serves connections although its pod terminates. */
  readonly isLeaving: boolean;
  /** What the endpoint is preferred for. Absent: no hint. */
  readonly nodes?: ReadonlySet<string>;
  readonly zones?: ReadonlySet<string>;
}

/** Services without a cluster address are left to names. @returns in the order of their ids */
export function balancedPorts(
  services: readonly KubeService[],
  slices: readonly KubeEndpointSlice[],
  place: Place,
): readonly BalancedPort[] {
  const slicesOf = Map.groupBy(slices, ({ metadata: { namespace, labels } }) =>
    keyOf(namespace, labels?.[SERVICE_NAME_LABEL]),
  );
  const isReachable = reachability(place);
  return services
    .flatMap((service) => {
      const own = slicesOf.get(keyOf(service.metadata.namespace, service.metadata.name)) ?? [];
      return portsOfService(service, own, { place, isReachable });
    })
    .toSorted((one, other) => compareText(one.id, other.id));
}

const compareText = (one: string, other: string): number => (one < other ? -1 : Number(one > other));

const keyOf = (namespace = '', name = ''): string => `${namespace}/${name}`;

/** Addresses of the Service in the cluster. None for a headless Service, and for one that is only another name. */
export function clusterAddresses({
  spec,
}: KubeService): readonly { readonly family: Family; readonly address: string }[] {
  if (spec?.type === 'ExternalName') return [];
  const texts = spec?.clusterIPs ?? [spec?.clusterIP ?? ''];
  return texts.flatMap((text) => {
    const parsed = parseIp(text);
    return parsed === undefined ? [] : [{ family: familyOf(parsed.family), address: parsed.text }];
  });
}

const familyOf = (family: 4 | 6): Family => (family === 4 ? 'ip' : 'ip6');

interface Choosing {
  readonly place: Place;
  readonly isReachable: (endpoint: Endpoint, address: string, family: Family) => boolean;
}

function portsOfService(
  service: KubeService,
  slices: readonly KubeEndpointSlice[],
  choosing: Choosing,
): readonly BalancedPort[] {
  if (Object.hasOwn(service.metadata.labels ?? {}, PROXY_NAME_LABEL)) return [];
  return clusterAddresses(service).flatMap(({ family, address }) =>
    (service.spec?.ports ?? []).flatMap((port) => {
      const protocol = protocolOf(port.protocol);
      if (protocol === undefined || !isPort(port.port)) return [];
      const at = { address, port: port.port };
      const {
        metadata: { namespace, name },
        spec,
      } = service;
      const affinity = spec?.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? AFFINITY_SECONDS;
      return [
        {
          id: `${namespace}/${name}/${protocol}/${port.name || port.port}`,
          family,
          protocol,
          at,
          ...chosen(candidatesOf(slices, port, { family, address }, choosing), choosing.place),
          isInternalLocal: spec?.internalTrafficPolicy === 'Local',
          isExternalLocal: spec?.externalTrafficPolicy === 'Local',
          ...defined({
            nodePort: isPort(port.nodePort) ? port.nodePort : undefined,
            affinitySeconds: spec?.sessionAffinity === 'ClientIP' ? affinity : undefined,
          }),
        },
      ];
    }),
  );
}

const isPort = (port: number | undefined): port is number => port !== undefined && port > 0 && port <= PORT_MAX;

export function protocolOf(text = 'TCP'): Protocol | undefined {
  const lower = text.toLowerCase();
  return lower === 'tcp' || lower === 'udp' || lower === 'sctp' ? lower : undefined;
}

/** Ready endpoints, or those that still serve while they terminate if none is ready. For each of both lists. */
function chosen(candidates: readonly Candidate[], place: Place): Pick<BalancedPort, 'cluster' | 'local'> {
  const targetsOf = (from: readonly Candidate[]): readonly Target[] => from.map(({ target }) => target);
  const leaving = (from: readonly Candidate[]): readonly Candidate[] => from.filter(({ isLeaving }) => isLeaving);
  const ready = candidates.filter(({ isReady }) => isReady);
  const local = ready.filter(({ isLocal }) => isLocal);
  return {
    cluster: targetsOf(ready.length > 0 ? preferred(ready, place) : leaving(candidates)),
    local: targetsOf(local.length > 0 ? local : leaving(candidates.filter(({ isLocal }) => isLocal))),
  };
}

/**
 * Those for this Node, if all have hints for Nodes and one is for this; otherwise so by zones; otherwise all.
 * Source: pkg/proxy/topology.go (topologyModeFromHints).
 */
function preferred(ready: readonly Candidate[], { nodeName, zone }: Place): readonly Candidate[] {
  const isForNode = ({ nodes }: Candidate): boolean => nodes?.has(nodeName) === true;
  if (ready.every(({ nodes }) => nodes !== undefined) && ready.some(isForNode)) return ready.filter(isForNode);
  const isForZone = ({ zones }: Candidate): boolean => zone !== undefined && zones?.has(zone) === true;
  if (ready.every(({ zones }) => zones !== undefined) && ready.some(isForZone)) return ready.filter(isForZone);
  return ready;
}

/** In the order of their addresses: the order of slices and endpoints has no meaning. */
function candidatesOf(
  slices: readonly KubeEndpointSlice[],
  port: ServicePort,
  service: { readonly family: Family; readonly address: string },
  { place, isReachable }: Choosing,
): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  for (const { ports = [], endpoints = [] } of slices) {
    const target = ports.find((each) => isSamePort(each, port))?.port;
    if (!isPort(target)) continue;
    for (const endpoint of endpoints) {
      // Kubernetes defines no meaning for further addresses of an endpoint.
      const parsed = parseIp(endpoint.addresses[0] ?? '');
      if (parsed === undefined || familyOf(parsed.family) !== service.family) continue;
      // So has the Service `kubernetes` of an API without an address. A connection would be sent to itself.
      if (parsed.text === service.address || !isReachable(endpoint, parsed.text, service.family)) continue;
      const { ready = true, serving = ready, terminating = false } = endpoint.conditions ?? {};
      const key = `${parsed.text} ${target}`;
      const before = found.get(key);
      // While an endpoint moves from one slice to another, both may have it.
      if (before?.isReady === true) continue;
      found.set(key, {
        target: { address: parsed.text, port: target },
        isLocal: endpoint.nodeName === place.nodeName,
        isReady: ready,
        isLeaving: !ready && serving && terminating,
        ...defined({ nodes: namesIn(endpoint.hints?.forNodes), zones: namesIn(endpoint.hints?.forZones) }),
      });
    }
  }
  return [...found].toSorted(([one], [other]) => compareText(one, other)).map(([, candidate]) => candidate);
}

const namesIn = (hints: readonly { readonly name?: string }[] = []): ReadonlySet<string> | undefined =>
  hints.length === 0 ? undefined : new Set(hints.map(({ name = '' }) => name));

const isSamePort = (one: EndpointPort, other: ServicePort): boolean =>
  (one.name ?? '') === (other.name ?? '') && protocolOf(one.protocol) === protocolOf(other.protocol);

/** An endpoint without a zone or a node, as people write them, is reached from everywhere. */
function reachability({ nodeName, zone, reachesAllZones = false, podNetworks }: Place): Choosing['isReachable'] {
  const own = { ip: rangesOf(podNetworks, 'ip'), ip6: rangesOf(podNetworks, 'ip6') };
  return (endpoint, text, family) => {
    if (endpoint.nodeName === nodeName) return true;
    if (!reachesAllZones && zone !== undefined && endpoint.zone !== undefined && endpoint.zone !== zone) return false;
    if (endpoint.nodeName === undefined || own[family].length === 0) return true;
    const address = addressOf(text, family);
    return address === undefined || !isIn(own[family], address);
  };
}
