/** Services, Endpoints and EndpointSlices. They are recorded; no traffic is routed here. */

import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { addressFamily } from '../../kubernetes/validation/addresses.ts';
import { sameJson } from '../../kubernetes/validation/causes.ts';
import type {
  EndpointPort,
  KubeEndpointSlice,
  KubeEndpoints,
  KubeService,
  ServicePort,
  ServiceSpec,
} from '../application-types.ts';
import { ageOf, labelsCell, nameOf, shortList } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { type KindNames, preparesStatus, preparesWhole, STATUS_PART, storedKind } from '../stored-kind.ts';
import { validateEndpointSlice, validateEndpoints, validateService } from './validate.ts';

const SERVICES: KindNames = {
  group: '',
  resource: 'services',
  kind: 'Service',
  shortNames: ['svc'],
  categories: ['all'],
  scope: 'namespaced',
};

/** Seconds that a client stays with one pod, by default. */
const AFFINITY_SECONDS = 10_800;
const HEADLESS = 'None';

function storedPort(given: ServicePort): ServicePort {
  const port = withoutEmpty(given, 'name', 'nodePort');
  const { targetPort } = port;
  const hasTarget = targetPort !== undefined && targetPort !== 0 && targetPort !== '';
  return { ...port, protocol: port.protocol || 'TCP', targetPort: hasTarget ? targetPort : (port.port ?? 0) };
}

/** Defaults of pkg/apis/core/v1/defaults.go. The storage assigns the address. */
function storedSpec(given: ServiceSpec = {}): ServiceSpec {
  const spec = withoutNulls(given);
  const type = spec.type || 'ClusterIP';
  const affinity = spec.sessionAffinity || 'None';
  const isExposed = type === 'NodePort' || type === 'LoadBalancer';
  const stored: ServiceSpec = {
    ...spec,
    type,
    sessionAffinity: affinity,
    ports: (spec.ports ?? []).map(storedPort),
    ...(affinity === 'ClientIP' && spec.sessionAffinityConfig === undefined
      ? { sessionAffinityConfig: { clientIP: { timeoutSeconds: AFFINITY_SECONDS } } }
      : {}),
    ...(type === 'ExternalName' ? {} : { internalTrafficPolicy: spec.internalTrafficPolicy ?? 'Cluster' }),
    ...(isExposed ? { externalTrafficPolicy: spec.externalTrafficPolicy || 'Cluster' } : {}),
    ...(type === 'LoadBalancer' ? { allocateLoadBalancerNodePorts: spec.allocateLoadBalancerNodePorts ?? true } : {}),
    ...addressFields(spec, type),
  };
  return withoutEmpty(stored, 'ports', 'selector', 'externalIPs', 'externalName', 'clusterIP', 'clusterIPs');
}

/** The fields that follow from the address. A Service of type ExternalName has none of them. */
export function addressFields(spec: ServiceSpec, type: string | undefined): ServiceSpec {
  if (type === 'ExternalName') return {};
  const address = spec.clusterIP || (spec.clusterIPs?.[0] ?? '');
  const family = addressFamily(address, 'ip') ?? 'IPv4';
  return {
    ipFamilies: spec.ipFamilies ?? [family],
    ipFamilyPolicy: spec.ipFamilyPolicy ?? 'SingleStack',
    ...(address === '' ? {} : { clusterIP: address, clusterIPs: spec.clusterIPs ?? [address] }),
  };
}

/** True for a Service that needs an address and has none. */
export const needsAddress = ({ spec }: KubeService): boolean =>
  spec?.type !== 'ExternalName' && (spec?.clusterIP ?? '') === '';

/** The address that a Service holds, undefined for a headless Service and for an alias. */
export function addressOf({ spec }: KubeService): string | undefined {
  const { clusterIP = '' } = spec ?? {};
  return clusterIP === '' || clusterIP === HEADLESS ? undefined : clusterIP;
}

const prepareService = preparesStatus(SERVICES, storedSpec, {
  emptyStatus: { loadBalancer: {} },
  hasGeneration: false,
});

/** An update without an address keeps the stored one. Source: pkg/registry/core/service/storage, patchAllocatedValues. */
function withOldAddress(next: KubeService, old: KubeService): KubeService {
  const address = addressOf(old);
  if (address === undefined || (next.spec?.clusterIP ?? '') !== '' || next.spec?.type === 'ExternalName') return next;
  return { ...next, spec: { ...next.spec, clusterIP: address, clusterIPs: [address] } };
}

/** Fields of a type that the Service no longer has, as far as the client left them as they were. */
const OF_EXPOSED = [
  'allocateLoadBalancerNodePorts',
  'loadBalancerClass',
  'externalTrafficPolicy',
  'healthCheckNodePort',
] as const;
const OF_ADDRESS = ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const;

/** Source: pkg/registry/core/service/strategy.go, dropTypeDependentFields. */
function withoutFieldsOfOldType(next: KubeService, old: KubeService): KubeService {
  const [{ type = 'ClusterIP' } = {}, before = {}] = [next.spec, old.spec];
  if (type === before.type) return next;
  const spec = { ...next.spec };
  const dropped = [
    ...(type === 'LoadBalancer' ? [] : OF_EXPOSED.slice(0, 2)),
    ...(type === 'LoadBalancer' || type === 'NodePort' ? [] : OF_EXPOSED.slice(2)),
    ...(type === 'ExternalName' ? OF_ADDRESS : []),
  ];
  for (const name of dropped) if (sameJson(spec[name], before[name])) delete spec[name];
  if (type === 'ClusterIP' || type === 'ExternalName') {
    const kept = new Set((before.ports ?? []).map(({ nodePort }) => nodePort));
    spec.ports = (spec.ports ?? []).map(({ nodePort, ...port }) =>
      nodePort === undefined || kept.has(nodePort) ? port : { ...port, nodePort },
    );
  }
  return { ...next, spec };
}

function externalCell({ spec = {}, status }: KubeService): string {
  const { externalIPs = [], type } = spec;
  const ingress = (status?.loadBalancer?.ingress ?? []).map(({ ip = '', hostname = '' }) => ip || hostname);
  switch (type) {
    case 'ExternalName':
      return spec.externalName ?? NONE;
    case 'LoadBalancer':
      return [...ingress, ...externalIPs].join(',') || '<pending>';
    default:
      return externalIPs.join(',') || NONE;
  }
}

const portsCell = (ports: readonly ServicePort[] = []): string =>
  ports
    .map(({ port = 0, nodePort = 0, protocol = '' }) => `${port}${nodePort > 0 ? `:${nodePort}` : ''}/${protocol}`)
    .join(',') || NONE;

export const services: ResourceDescriptor = storedKind(SERVICES, {
  creationWarning: 'no traffic is routed to the address of the Service',
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Type', 'ClusterIP, NodePort, LoadBalancer or ExternalName.'),
    textColumn('Cluster-IP', 'Virtual address.'),
    textColumn('External-IP', 'Addresses for clients from outside.'),
    textColumn('Port(s)', 'Ports of the Service.'),
    ageColumn,
    textColumn('Selector', 'Labels of the pods.', 1),
  ],
  row: (object: KubeService, nowMs) => [
    nameOf(object),
    object.spec?.type ?? '',
    object.spec?.clusterIP || NONE,
    externalCell(object),
    portsCell(object.spec?.ports),
    ageOf(object, nowMs),
    labelsCell(object.spec?.selector),
  ],
  selectableFields: {
    'spec.clusterIP': (object: KubeService) => object.spec?.clusterIP ?? '',
    'spec.type': (object: KubeService) => object.spec?.type ?? '',
  },
  prepare: {
    ...prepareService,
    prepareForUpdate: (next, old, context) => {
      const sent = context.subresource === 'status' ? next : withoutFieldsOfOldType(next, old);
      return prepareService.prepareForUpdate(withOldAddress(sent, old), old, context);
    },
  },
  validate: validateService,
});

const storedEndpointPort = (port: EndpointPort): EndpointPort => ({ ...port, protocol: port.protocol || 'TCP' });

const ENDPOINTS: KindNames = {
  group: '',
  resource: 'endpoints',
  kind: 'Endpoints',
  shortNames: ['ep'],
  scope: 'namespaced',
};

/** Addresses with ports, as upstream prints them: the first three. */
function endpointsCell({ subsets = [] }: KubeEndpoints): string {
  const pairs = subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip = '' }) => ip)
      : ports.flatMap(({ port }) => addresses.map(({ ip = '' }) => `${ip}:${port}`)),
  );
  return shortList(pairs, 3);
}

export const endpoints: ResourceDescriptor = {
  ...storedKind(ENDPOINTS, {
    createOnUpdate: true,
    columns: [nameColumn, textColumn('Endpoints', 'Addresses with their ports.'), ageColumn],
    row: (object: KubeEndpoints, nowMs) => [nameOf(object), endpointsCell(object), ageOf(object, nowMs)],
    prepare: preparesWhole(ENDPOINTS, (object: KubeEndpoints) => ({
      ...object,
      ...(object.subsets === undefined
        ? {}
        : {
            subsets: object.subsets.map((subset) =>
              subset.ports === undefined ? subset : { ...subset, ports: subset.ports.map(storedEndpointPort) },
            ),
          }),
    })),
    validate: validateEndpoints,
  }),
  listKind: 'EndpointsList',
};

const SLICES: KindNames = {
  group: 'discovery.k8s.io',
  resource: 'endpointslices',
  kind: 'EndpointSlice',
  scope: 'namespaced',
};

export const endpointslices: ResourceDescriptor = storedKind(SLICES, {
  columns: [
    nameColumn,
    textColumn('AddressType', 'IPv4, IPv6 or FQDN.'),
    textColumn('Ports', 'Ports of the endpoints.'),
    textColumn('Endpoints', 'Addresses of the endpoints.'),
    ageColumn,
  ],
  row: (object: KubeEndpointSlice, nowMs) => [
    nameOf(object),
    object.addressType ?? '',
    object.ports === undefined
      ? '<unset>'
      : shortList(
          object.ports.map(({ port }) => String(port ?? '*')),
          3,
        ),
    shortList(
      (object.endpoints ?? []).flatMap(({ addresses = [] }) => addresses),
      3,
    ),
    ageOf(object, nowMs),
  ],
  prepare: preparesWhole(SLICES, (object: KubeEndpointSlice) => ({
    ...object,
    endpoints: object.endpoints ?? [],
    ...(object.ports === undefined
      ? {}
      : { ports: object.ports.map((port) => ({ name: '', ...storedEndpointPort(port) })) }),
  })),
  validate: validateEndpointSlice,
});
