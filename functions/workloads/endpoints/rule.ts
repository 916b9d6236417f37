/**
 * The Endpoints and EndpointSlices of a Service: the addresses of the pods that it selects. Pure.
 * Sources: pkg/controller/endpoint/endpoints_controller.go, pkg/controller/endpointslice/reconciler.go,
 * staging/src/k8s.io/endpointslice/trafficdist/trafficdist.go.
 */
import { defined } from '../../../shared/defined.ts';
import { isTerminated } from '../../../shared/kinds/pods/resource.ts';
import type {
  Endpoint,
  EndpointAddress,
  EndpointPort,
  KubeEndpointSlice,
  KubeEndpoints,
  KubeObject,
  KubePod,
  KubeService,
  ServicePort,
} from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import { addressFamily } from '../../../shared/kubernetes/validate-addresses.ts';
import { podNameFor } from '../template.rule.ts';
import type { Zones } from './node-zones.ts';

export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
export const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';
export const MANAGER = 'endpointslice-controller.k8s.io';
const HEADLESS_LABEL = 'service.kubernetes.io/headless';
const OVER_CAPACITY = 'endpoints.kubernetes.io/over-capacity';
/** PreferClose is the former name of PreferSameZone. */
const DISTRIBUTIONS: ReadonlySet<string | undefined> = new Set(['PreferClose', 'PreferSameZone', 'PreferSameNode']);
/** The limit for one slice, as upstream. */
const SLICE_ENDPOINTS_MAX = 100;
/**
 * The limit for one Endpoints object. Upstream has 1,000, which do not fit an object here. Slices have all addresses.
 */
export const ADDRESSES_MAX = 250;

/** A client writes its Endpoints. */
export const hasNoSelector = ({ spec }: KubeService): boolean => Object.keys(spec?.selector ?? {}).length === 0;

/** Whether this controller writes its endpoints. */
export const isFilled = (service: KubeService): boolean =>
  service.metadata.deletionTimestamp === undefined && service.spec?.type !== 'ExternalName' && !hasNoSelector(service);

export const selectsPod = ({ spec }: KubeService, labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(spec?.selector ?? {}).every(([key, value]) => labels[key] === value);

const byName = (one: KubeObject, other: KubeObject): number =>
  (one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1;

interface Backend {
  readonly ip: string;
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  /** The same list for all backends with equal ports. */
  readonly ports: readonly EndpointPort[];
  /** Host name, node and pod. */
  readonly about: Pick<EndpointAddress, 'hostname' | 'nodeName' | 'targetRef'>;
  /** Of its node. Endpoints do not have it. */
  readonly zone?: string | undefined;
}

function backendsOf(service: KubeService, pods: readonly KubePod[], family: string): readonly Backend[] {
  const portsOf = portLists(service);
  return pods
    .filter((pod) => selectsPod(service, pod.metadata.labels ?? {}) && !isTerminated(pod))
    .toSorted(byName)
    .flatMap((pod): Backend[] => {
      const ip = addressOf(pod, family);
      if (ip === undefined) return [];
      const { name = '', namespace = '', uid = '' } = pod.metadata;
      const { hostname, nodeName, subdomain } = pod.spec ?? {};
      return [
        {
          ip,
          isReady: pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true,
          isTerminating: pod.metadata.deletionTimestamp !== undefined,
          ports: portsOf(pod),
          about: defined({
            hostname: subdomain === service.metadata.name ? hostname || undefined : undefined,
            nodeName: nodeName || undefined,
            targetRef: { kind: 'Pod', namespace, name, uid },
          }),
        },
      ];
    });
}

const addressOf = ({ status }: KubePod, family: string): string | undefined =>
  [...(status?.podIPs ?? []).map(({ ip }) => ip), status?.podIP].find(
    (ip) => ip !== undefined && ip !== '' && addressFamily(ip, 'ip') === family,
  );

/**
 * The ports of the Service by pod. Both may be thousands: pods share a list if their containers have the same ports, of
 * those that the Service names.
 */
function portLists(service: KubeService): (pod: KubePod) => readonly EndpointPort[] {
  const named = new Set((service.spec?.ports ?? []).map(({ targetPort }) => targetPort));
  const byTargets = new Map<string, readonly EndpointPort[]>();
  const byText = new Map<string, readonly EndpointPort[]>();
  return (pod) => {
    const targets = (pod.spec?.containers ?? []).flatMap(({ ports = [] }) =>
      ports.flatMap(({ name, protocol, containerPort }) => (named.has(name) ? [name, protocol, containerPort] : [])),
    );
    const key = JSON.stringify(targets);
    let list = byTargets.get(key);
    if (list === undefined) {
      const made = portsOf(service, pod);
      const text = JSON.stringify(made);
      list = byText.get(text) ?? made;
      byText.set(text, list);
      byTargets.set(key, list);
    }
    return list;
  };
}

/** A port with a name that no container of the pod has is left out. */
function portsOf({ spec }: KubeService, pod: KubePod): readonly EndpointPort[] {
  return (spec?.ports ?? []).flatMap((port): EndpointPort[] => {
    const number = targetOf(port, pod);
    const { name, protocol = 'TCP', appProtocol } = port;
    return number === undefined ? [] : [{ ...defined({ name, appProtocol }), port: number, protocol }];
  });
}

function targetOf({ targetPort, port, protocol = 'TCP' }: ServicePort, { spec }: KubePod): number | undefined {
  if (typeof targetPort !== 'string') return targetPort || port;
  return (spec?.containers ?? [])
    .flatMap(({ ports = [] }) => ports)
    .find((each) => each.name === targetPort && (each.protocol || 'TCP') === protocol)?.containerPort;
}

const familiesOf = ({ spec }: KubeService): readonly string[] => spec?.ipFamilies ?? ['IPv4'];
const isHeadless = ({ spec }: KubeService): boolean => spec?.clusterIP === 'None';
const serviceLabels = (service: KubeService): Record<string, string> => ({
  ...service.metadata.labels,
  ...(isHeadless(service) ? { [HEADLESS_LABEL]: '' } : {}),
});

/** Backends with the same ports, in the order of their first backend. */
function byPorts(backends: readonly Backend[]): readonly (readonly [readonly EndpointPort[], readonly Backend[]])[] {
  const groups = new Map<readonly EndpointPort[], Backend[]>();
  for (const backend of backends) {
    const group = groups.get(backend.ports);
    if (group === undefined) groups.set(backend.ports, [backend]);
    else group.push(backend);
  }
  return [...groups];
}

/** The content that the Endpoints of the Service must have, with the labels and annotations. */
export function endpointsFor(
  service: KubeService,
  pods: readonly KubePod[],
): Pick<KubeEndpoints, 'subsets'> & { readonly labels: Record<string, string>; readonly isTruncated: boolean } {
  const publishesAll = service.spec?.publishNotReadyAddresses === true;
  const hasPorts = (service.spec?.ports ?? []).length > 0;
  const all = backendsOf(service, pods, familiesOf(service)[0] ?? 'IPv4').filter(
    ({ isTerminating, ports }) => (publishesAll || !isTerminating) && (ports.length > 0 || !hasPorts),
  );
  const isUsable = ({ isReady }: Backend): boolean => publishesAll || isReady;
  const kept = all.toSorted((one, other) => Number(isUsable(other)) - Number(isUsable(one))).slice(0, ADDRESSES_MAX);
  const subsets = byPorts(kept).map(([ports, group]) => {
    const addresses = group.filter(isUsable).map(({ ip, about }) => ({ ip, ...about }));
    const notReady = group.filter((each) => !isUsable(each)).map(({ ip, about }) => ({ ip, ...about }));
    return {
      ...(addresses.length === 0 ? {} : { addresses }),
      ...(notReady.length === 0 ? {} : { notReadyAddresses: notReady }),
      ...(ports.length === 0 ? {} : { ports: [...ports] }),
    };
  });
  return {
    ...(subsets.length === 0 ? {} : { subsets }),
    labels: serviceLabels(service),
    isTruncated: kept.length < all.length,
  };
}

/** The stored Endpoints with the content of `endpointsFor`. Returns the same object if nothing changes. */
export function filledEndpoints(stored: KubeEndpoints, wanted: ReturnType<typeof endpointsFor>): KubeEndpoints {
  const { labels: _labels, annotations = {}, ...metadata } = stored.metadata;
  const { [OVER_CAPACITY]: _over, ...others } = annotations;
  const noted = wanted.isTruncated ? { ...others, [OVER_CAPACITY]: 'truncated' } : others;
  const { subsets: _subsets, ...rest } = stored;
  const next: KubeEndpoints = {
    ...rest,
    metadata: {
      ...metadata,
      ...(Object.keys(wanted.labels).length === 0 ? {} : { labels: wanted.labels }),
      ...(Object.keys(noted).length === 0 ? {} : { annotations: noted }),
    },
    ...defined({ subsets: wanted.subsets }),
  };
  return jsonEqual(next, stored) ? stored : next;
}

export interface SlicePlan {
  readonly create: readonly KubeEndpointSlice[];
  readonly update: readonly { readonly previous: KubeEndpointSlice; readonly object: KubeEndpointSlice }[];
  readonly remove: readonly KubeEndpointSlice[];
}

/**
 * @param stored the slices of the Service that this controller wrote
 * @param zones by node name
 */
export function slicesFor(
  service: KubeService,
  pods: readonly KubePod[],
  stored: readonly KubeEndpointSlice[],
  zones: Zones = new Map(),
): SlicePlan {
  const withZone = (backend: Backend): Backend => ({ ...backend, zone: zones.get(backend.about.nodeName ?? '') });
  const plans = familiesOf(service).map((family) =>
    planOf(service, family, backendsOf(service, pods, family).map(withZone), stored),
  );
  const foreign = stored.filter(({ addressType = '' }) => !familiesOf(service).includes(addressType));
  return {
    create: plans.flatMap(({ create }) => create),
    update: plans.flatMap(({ update }) => update),
    remove: [...plans.flatMap(({ remove }) => remove), ...foreign],
  };
}

function planOf(
  service: KubeService,
  family: string,
  backends: readonly Backend[],
  stored: readonly KubeEndpointSlice[],
): SlicePlan {
  const own = stored.filter(({ addressType }) => addressType === family).toSorted(byName);
  const ownByPorts = Map.groupBy(own, (each) => portsText(each.ports));
  const names = new Set(stored.map(({ metadata }) => metadata.name ?? ''));
  const create: KubeEndpointSlice[] = [];
  const update: SlicePlan['update'][number][] = [];
  const used = new Set<KubeEndpointSlice>();
  const hasPorts = (service.spec?.ports ?? []).length > 0;
  const groups = byPorts(backends.filter(({ ports }) => ports.length > 0 || !hasPorts));
  // A Service without pods has one empty slice, as upstream.
  for (const [ports, group] of groups.length === 0 ? [[[], []] as const] : groups) {
    const same = ownByPorts.get(portsText(ports)) ?? [];
    for (const [index, endpoints] of spread(group, same, service).entries()) {
      const previous = same[index];
      const slice = sliceOf(service, {
        family,
        ports,
        endpoints,
        previous,
        name: () => freeName(service, family, names),
      });
      if (previous === undefined) create.push(slice);
      else used.add(previous);
      if (previous !== undefined && !jsonEqual(slice, previous)) update.push({ previous, object: slice });
    }
  }
  return { create, update, remove: own.filter((each) => !used.has(each)) };
}

/** Equal for equal ports. A stored port without a name has an empty one. */
export const portsText = (ports: readonly EndpointPort[] = []): string =>
  JSON.stringify(
    ports.map(({ name, port, protocol, appProtocol }) => [name || undefined, port, protocol, appProtocol]),
  );

/** Endpoints stay in the slice that has them. Others fill free places, then new slices. Empty slices are left out. */
function spread(
  group: readonly Backend[],
  same: readonly KubeEndpointSlice[],
  service: KubeService,
): readonly (readonly Endpoint[])[] {
  const endpointsOfGroup = group.map((backend) => endpointOf(backend, service));
  const wanted = new Map(endpointsOfGroup.map((endpoint) => [keyOf(endpoint), endpoint]));
  const lists = same.map(({ endpoints = [] }) =>
    endpoints.flatMap((stored): Endpoint[] => {
      const endpoint = wanted.get(keyOf(stored));
      wanted.delete(keyOf(stored));
      return endpoint === undefined ? [] : [endpoint];
    }),
  );
  for (const endpoint of wanted.values()) {
    const list = lists.find(({ length }) => length < SLICE_ENDPOINTS_MAX);
    if (list === undefined) lists.push([endpoint]);
    else list.push(endpoint);
  }
  if (group.length === 0 && lists.length === 0) return [[]];
  // The first list of an empty group stays as its slice.
  const last = lists.findLastIndex(({ length }) => length > 0);
  return lists.slice(0, Math.max(1, last + 1));
}

/** Pods in the network of their node have its address. */
const keyOf = ({ addresses = [], targetRef }: Endpoint): string => `${addresses[0]}/${targetRef?.uid}`;

function endpointOf({ ip, isReady, isTerminating, about, zone }: Backend, { spec }: KubeService): Endpoint {
  const ready = spec?.publishNotReadyAddresses === true || (isReady && !isTerminating);
  return {
    addresses: [ip],
    conditions: { ready, serving: isReady, terminating: isTerminating },
    ...about,
    ...defined({ zone, hints: ready ? hintsOf(spec?.trafficDistribution, about.nodeName, zone) : undefined }),
  };
}

/**
 * The zones and nodes that prefer an endpoint. Each program that routes Services decides by the hints of all ready
 * endpoints.
 */
function hintsOf(distribution: string | undefined, nodeName: string | undefined, zone: string | undefined) {
  if (!DISTRIBUTIONS.has(distribution)) return undefined;
  const isForNode = distribution === 'PreferSameNode' && nodeName !== undefined;
  if (zone === undefined && !isForNode) return undefined;
  return {
    ...(zone === undefined ? {} : { forZones: [{ name: zone }] }),
    ...(isForNode ? { forNodes: [{ name: nodeName }] } : {}),
  };
}

function sliceOf(
  service: KubeService,
  of: {
    readonly family: string;
    readonly ports: readonly EndpointPort[];
    readonly endpoints: readonly Endpoint[];
    readonly previous: KubeEndpointSlice | undefined;
    readonly name: () => string;
  },
): KubeEndpointSlice {
  const { name: serviceName = '', namespace = '' } = service.metadata;
  const labels = {
    ...serviceLabels(service),
    [SERVICE_NAME_LABEL]: serviceName,
    [MANAGED_BY_LABEL]: MANAGER,
  };
  const ports = of.ports.map((port) => ({ name: '', ...port }));
  if (of.previous !== undefined) {
    return {
      ...of.previous,
      metadata: { ...of.previous.metadata, labels },
      endpoints: [...of.endpoints],
      ports,
    };
  }
  const owner = { apiVersion: 'v1', kind: 'Service', name: serviceName, uid: service.metadata.uid ?? '' };
  const name = of.name();
  return {
    metadata: {
      name,
      generateName: `${serviceName}-`,
      namespace,
      labels,
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
    },
    addressType: of.family,
    endpoints: [...of.endpoints],
    ports,
  };
}

/** More than the names that are the same by chance. */
const EQUAL_NAMES_MAX = 64;

/**
 * The name follows from the Service and the names in use, so a repeated creation is refused. The names in use may be
 * any row of positions: the steps are longer than such a row, so the first or second name is free in most cases.
 */
export function freeName({ metadata }: KubeObject, family: string, names: Set<string>): string {
  const { name = '', uid = '' } = metadata;
  for (let steps = 1; steps <= names.size + EQUAL_NAMES_MAX; steps += 1) {
    const position = steps * (names.size + 1) - 1;
    const candidate = podNameFor(name, { uid: `${uid}/${family}`, fence: 0, position });
    if (names.has(candidate)) continue;
    names.add(candidate);
    return candidate;
  }
  throw new RangeError('more names are in use than were tried');
}

/** What endpoints read of a pod. */
function partOf(pod: KubePod | undefined): unknown {
  if (pod === undefined) return undefined;
  const { metadata, spec, status } = pod;
  return [
    metadata.labels,
    metadata.deletionTimestamp !== undefined,
    [status?.podIP, status?.podIPs],
    isTerminated(pod),
    status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True',
    [spec?.nodeName, spec?.hostname, spec?.subdomain],
  ];
}

/**
 * Services that select pods with these labels are concerned by a change. A pod without an address is in no endpoints.
 */
export function labelsOfEndpoints(
  before: KubePod | undefined,
  after: KubePod | undefined,
): readonly Readonly<Record<string, string>>[] {
  if (jsonEqual(partOf(before), partOf(after))) return [];
  return [before, after].flatMap((pod) => (pod?.status?.podIP ? [pod.metadata.labels ?? {}] : []));
}

/** Names of the nodes of its pods. */
export const nodeNamesOf = (service: KubeService, pods: readonly KubePod[]): readonly string[] =>
  pods.flatMap(({ metadata, spec }) =>
    spec?.nodeName && selectsPod(service, metadata.labels ?? {}) ? [spec.nodeName] : [],
  );

/** The zones that endpoints have already. */
export const zonesIn = (slices: readonly KubeEndpointSlice[]): Zones =>
  new Map(
    slices.flatMap(({ endpoints = [] }) =>
      endpoints.flatMap(({ nodeName, zone }) => (nodeName && zone ? [[nodeName, zone] as const] : [])),
    ),
  );
