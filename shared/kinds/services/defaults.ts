import { sameJson } from '../../kubernetes/causes.ts';
import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { addressFamily } from '../../kubernetes/validate-addresses.ts';
import { type Prepare, preparesStatus, preparesWhole } from '../served-kind.ts';
import type {
  EndpointPort,
  KubeEndpointSlice,
  KubeEndpoints,
  KubeService,
  ServicePort,
  ServiceSpec,
} from '../types.ts';
import { withOldNodePorts } from './node-ports.rule.ts';
import { ENDPOINT_SLICES, ENDPOINTS, SERVICES } from './resource.ts';

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

const prepared = preparesStatus(SERVICES, storedSpec, {
  emptyStatus: { loadBalancer: {} },
  hasGeneration: false,
});

/**
 * An update without an address keeps the stored one. Source: pkg/registry/core/service/storage, patchAllocatedValues.
 */
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

export const prepareService: Prepare = {
  ...prepared,
  prepareForUpdate: (next, old, context) => {
    const sent = context.subresource === 'status' ? next : withoutFieldsOfOldType(next, old);
    return prepared.prepareForUpdate(withOldNodePorts(withOldAddress(sent, old), old), old, context);
  },
};

const storedEndpointPort = (port: EndpointPort): EndpointPort => ({ ...port, protocol: port.protocol || 'TCP' });

export const prepareEndpoints = preparesWhole(ENDPOINTS, (object: KubeEndpoints) => ({
  ...object,
  ...(object.subsets === undefined
    ? {}
    : {
        subsets: object.subsets.map((subset) =>
          subset.ports === undefined ? subset : { ...subset, ports: subset.ports.map(storedEndpointPort) },
        ),
      }),
}));

export const prepareEndpointSlice = preparesWhole(ENDPOINT_SLICES, (object: KubeEndpointSlice) => ({
  ...object,
  endpoints: object.endpoints ?? [],
  ...(object.ports === undefined
    ? {}
    : { ports: object.ports.map((port) => ({ name: '', ...storedEndpointPort(port) })) }),
}));
