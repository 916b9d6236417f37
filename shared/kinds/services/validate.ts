/** Service, Endpoints and EndpointSlice (pkg/apis/core/validation, pkg/apis/discovery/validation). */

import {
  duplicate,
  errorsAt,
  forbiddenField,
  immutable,
  invalidValue,
  notSupported,
  oneOf,
  optionalAt,
  required,
  requiredAt,
  requiredOneOf,
  tooMany,
} from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { addressErrors, addressFamily, cidrErrors, peerAddressErrors } from '../../kubernetes/validate-addresses.ts';
import {
  dns1035LabelErrors,
  labelErrors,
  labelValueErrors,
  type NameRule,
  qualifiedNameErrors,
  subdomainErrors,
  subdomainName,
  validateLabels,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import { portRange, validatePort as validatePortOrName } from '../pods/validate-containers.ts';
import type {
  Endpoint,
  EndpointAddress,
  EndpointPort,
  KubeEndpointSlice,
  KubeEndpoints,
  KubeService,
  ServicePort,
  ServiceSpec,
} from '../types.ts';

const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6'];
const FAMILIES = ['IPv4', 'IPv6'];
const FAMILY_POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];
const ADDRESSES_MAX = 100;
const TOPOLOGY_LABELS_MAX = 16;
const HINTS_MAX = 8;
const ENDPOINTS_MAX = 1_000;
const PORTS_MAX = 20_000;

/** The name of a Service is a label of DNS that starts with a letter. */
export const serviceName: NameRule = (name, prefix) =>
  dns1035LabelErrors(prefix && name.endsWith('-') ? `${name.slice(0, -1)}a` : name);

function validatePort(port: Partial<ServicePort>, field: string, isNameRequired: boolean): Cause[] {
  const { name, protocol, port: number = 0, targetPort, appProtocol } = port;
  return [
    ...(isNameRequired ? requiredAt : optionalAt)(`${field}.name`, name, labelErrors),
    ...portRange(`${field}.port`, number),
    ...requiredOneOf(`${field}.protocol`, protocol ?? '', PROTOCOLS),
    ...(targetPort === undefined ? [] : validatePortOrName(`${field}.targetPort`, targetPort)),
    ...(appProtocol === undefined ? [] : errorsAt(`${field}.appProtocol`, appProtocol, qualifiedNameErrors)),
  ];
}

function validatePorts({ ports = [], type }: ServiceSpec): Cause[] {
  const causes: Cause[] = [];
  const [names, numbers, nodePorts] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const [index, port] of ports.entries()) {
    const field = `spec.ports[${index}]`;
    causes.push(...validatePort(port, field, ports.length > 1));
    const { name = '', protocol = '', port: number = 0, nodePort = 0 } = port;
    if (name !== '' && names.has(name)) causes.push(duplicate(`${field}.name`, name));
    names.add(name);
    const key = `${protocol}/${number}`;
    if (numbers.has(key)) causes.push(duplicate(field, { protocol, port: number }));
    numbers.add(key);
    if (nodePort === 0) continue;
    if (type === 'ClusterIP') {
      causes.push(forbiddenField(`${field}.nodePort`, "may not be used when `type` is 'ClusterIP'"));
    }
    const nodeKey = `${protocol}/${nodePort}`;
    if (nodePorts.has(nodeKey)) causes.push(duplicate(`${field}.nodePort`, nodePort));
    nodePorts.add(nodeKey);
  }
  return causes;
}

const CLUSTER_IPS_MAX = 2;

/** pkg/apis/core/validation/validation.go (ValidateServiceClusterIPsRelatedFields). */
function validateAddresses(spec: ServiceSpec): Cause[] {
  const { clusterIP = '', clusterIPs = [], ipFamilies = [], ipFamilyPolicy, type } = spec;
  const field = 'spec.clusterIPs';
  if (type === 'ExternalName') {
    const isSet = { clusterIPs: clusterIP !== '', ipFamilies: ipFamilies.length > 0, ipFamilyPolicy: ipFamilyPolicy };
    return Object.entries(isSet)
      .filter(([, value]) => value !== undefined && value !== false)
      .map(([name]) => forbiddenField(`spec.${name}`, 'may not be set for ExternalName services'));
  }
  const causes: Cause[] = [];
  const refuse = (isWrong: boolean, why: string, path = field, value: unknown = clusterIPs): void => {
    if (isWrong) causes.push(invalidValue(path, value, why));
  };
  if (clusterIP === '') refuse(clusterIPs.length > 0, 'must be empty when `clusterIP` is not specified');
  else if (clusterIPs.length === 0) causes.push(required(field));
  else refuse(clusterIPs[0] !== clusterIP, 'first value must match `clusterIP`');
  const seen = new Set<string>();
  for (const [index, family] of ipFamilies.entries()) {
    const path = `spec.ipFamilies[${index}]`;
    if (!FAMILIES.includes(family)) causes.push(notSupported(path, family, FAMILIES));
    if (seen.has(family)) causes.push(duplicate(path, family));
    seen.add(family);
  }
  causes.push(...oneOf('spec.ipFamilyPolicy', ipFamilyPolicy, FAMILY_POLICIES));
  refuse(clusterIPs.length > CLUSTER_IPS_MAX, 'may only hold up to 2 values');
  const isHeadless = clusterIPs[0] === 'None';
  refuse(isHeadless && clusterIPs.length > 1, "'None' must be the first and only value");
  const malformed = clusterIPs.flatMap((ip, index) =>
    isHeadless && index === 0 ? [] : errorsAt(`${field}[${index}]`, ip, addressErrors),
  );
  if (malformed.length > 0 || isHeadless) return [...causes, ...malformed];
  const families = clusterIPs.map((ip) => addressFamily(ip, 'ip'));
  refuse(new Set(families).size < clusterIPs.length, 'may specify no more than one IP for each IP family');
  for (const [index, family] of families.entries()) {
    const expected = ipFamilies[index] ?? '';
    const isWrong = FAMILIES.includes(expected) && family !== expected;
    const why = `expected an ${expected} value as indicated by \`ipFamilies[${index}]\``;
    refuse(isWrong, why, `${field}[${index}]`, clusterIPs[index]);
  }
  return causes;
}

const BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'";
const RANGES_ANNOTATION = 'service.beta.kubernetes.io/load-balancer-source-ranges';

function validateBalancer({ metadata, spec = {} }: KubeService, old: KubeService | undefined): Cause[] {
  const isBalancer = spec.type === 'LoadBalancer';
  const { loadBalancerSourceRanges: ranges = [], loadBalancerClass: name } = spec;
  const text = ranges.length > 0 ? undefined : metadata.annotations?.[RANGES_ANNOTATION];
  const only = (field: string, isSet: boolean): Cause[] =>
    isSet && !isBalancer ? [forbiddenField(field, BALANCER_ONLY)] : [];
  const field = ranges.length > 0 ? 'spec.LoadBalancerSourceRanges' : `metadata.annotations[${RANGES_ANNOTATION}]`;
  const written = ranges.length > 0 ? ranges : (text ?? '').split(',').filter((each) => each.trim() !== '');
  const isOld = old?.spec?.type === 'LoadBalancer' && isBalancer && old.spec.loadBalancerClass !== name;
  return [
    ...only(field, ranges.length > 0 || text !== undefined),
    ...written.flatMap((each, index) =>
      errorsAt(ranges.length > 0 ? `${field}[${index}]` : field, each.trim(), cidrErrors),
    ),
    ...only('spec.allocateLoadBalancerNodePorts', spec.allocateLoadBalancerNodePorts !== undefined),
    ...only('spec.loadBalancerClass', name !== undefined),
    ...(isBalancer && name !== undefined ? errorsAt('spec.loadBalancerClass', name, qualifiedNameErrors) : []),
    ...(isOld ? [invalidValue('spec.loadBalancerClass', name, 'may not change once set')] : []),
  ];
}

const isReachable = ({ type, externalIPs = [] }: ServiceSpec): boolean =>
  type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && externalIPs.length > 0);

const TRAFFIC = ['Cluster', 'Local'];
const DISTRIBUTIONS = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];
const AFFINITY_SECONDS_MAX = 86_400;
const HINTS = 'service.kubernetes.io/topology-aware-hints';
const MODE = 'service.kubernetes.io/topology-mode';

function validateTraffic({ metadata: { annotations = {} }, spec = {} }: KubeService): Cause[] {
  const { externalTrafficPolicy: policy, healthCheckNodePort = 0, sessionAffinity, sessionAffinityConfig } = spec;
  const causes: Cause[] = [];
  if (isReachable(spec)) causes.push(...oneOf('spec.externalTrafficPolicy', policy, TRAFFIC));
  else if ((policy ?? '') !== '') {
    const why = 'may only be set for externally-accessible services';
    causes.push(invalidValue('spec.externalTrafficPolicy', policy, why));
  }
  if (healthCheckNodePort !== 0 && !(spec.type === 'LoadBalancer' && policy === 'Local')) {
    const why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    causes.push(invalidValue('spec.healthCheckNodePort', healthCheckNodePort, why));
  }
  causes.push(
    ...oneOf('spec.internalTrafficPolicy', spec.internalTrafficPolicy, TRAFFIC),
    ...oneOf('spec.trafficDistribution', spec.trafficDistribution, DISTRIBUTIONS),
  );
  if (sessionAffinity === 'None' && sessionAffinityConfig !== undefined) {
    const why = 'must not be set when session affinity is None';
    causes.push(forbiddenField('spec.sessionAffinityConfig', why));
  }
  const { timeoutSeconds: seconds } = sessionAffinityConfig?.clientIP ?? {};
  if (sessionAffinity === 'ClientIP' && seconds !== undefined && (seconds <= 0 || seconds > AFFINITY_SECONDS_MAX)) {
    const why = `must be greater than 0 and less than ${AFFINITY_SECONDS_MAX}`;
    causes.push(invalidValue('spec.sessionAffinityConfig.clientIP.timeoutSeconds', seconds, why));
  }
  const [mode, hints] = [annotations[MODE], annotations[HINTS]];
  if (mode !== undefined && hints !== undefined && mode !== hints) {
    const why = `must match annotations[${HINTS}] when both are specified`;
    causes.push(invalidValue(`metadata.annotations[${MODE}]`, mode, why));
  }
  return causes;
}

const isHeadless = ({ clusterIPs = [] }: ServiceSpec): boolean => clusterIPs[0] === 'None';

/** The primary address and family stay, unless the Service was or becomes an alias or headless. */
function validateKept(spec: ServiceSpec, before: ServiceSpec): Cause[] {
  if (spec.type === 'ExternalName' || before.type === 'ExternalName') return [];
  const fields = isHeadless(spec) && isHeadless(before) ? [] : (['clusterIPs', 'ipFamilies'] as const);
  return fields.flatMap((name) => {
    const [next = [], old = []] = [spec[name], before[name]];
    if (old[0] === undefined || next[0] === old[0]) return [];
    if (name === 'ipFamilies' && isHeadless(spec) !== isHeadless(before)) return [];
    const why = next.length === 0 ? 'primary clusterIP can not be unset' : 'may not change once set';
    return [invalidValue(`spec.${name}[0]`, next, why)];
  });
}

interface BalancerIngress {
  readonly ip?: string;
  readonly ipMode?: string;
  readonly hostname?: string;
}

export const hostNameErrors = (name: string): string[] =>
  addressFamily(name, 'ip') === undefined ? subdomainErrors(name) : ['must be a DNS name, not an IP address'];

/** Addresses under which a load balancer serves, of a Service or of an Ingress. */
export const validateBalancerStatus = (ingress: readonly BalancerIngress[] = []): Cause[] =>
  ingress.flatMap(({ ip = '', ipMode, hostname }, index) => {
    const field = `status.loadBalancer.ingress[${index}]`;
    return [
      ...optionalAt(`${field}.ip`, ip, addressErrors),
      ...(ipMode !== undefined && ip === ''
        ? [forbiddenField(`${field}.ipMode`, 'may not be specified when `ip` is not set')]
        : oneOf(`${field}.ipMode`, ipMode, ['Proxy', 'VIP'])),
      ...optionalAt(`${field}.hostname`, hostname, hostNameErrors),
    ];
  });

export function validateService(service: KubeService, old: KubeService | undefined, subresource: string): Cause[] {
  const causes = validateObjectMetadata(service, old, { namespaced: true, name: serviceName });
  if (subresource === 'status') return [...causes, ...validateBalancerStatus(service.status?.loadBalancer?.ingress)];
  const spec = service.spec ?? {};
  const { type = '', ports = [], clusterIP = '', sessionAffinity: affinity = '', externalName = '' } = spec;
  const isHeadless = clusterIP === 'None';
  if (ports.length === 0 && !isHeadless && type !== 'ExternalName') causes.push(required('spec.ports'));
  if (type === 'LoadBalancer' && isHeadless) {
    causes.push(invalidValue('spec.clusterIPs[0]', clusterIP, "may not be set to 'None' for LoadBalancer services"));
  }
  if (type === 'NodePort' && isHeadless) {
    causes.push(invalidValue('spec.clusterIPs[0]', clusterIP, "may not be set to 'None' for NodePort services"));
  }
  if (type === '') causes.push(required('spec.type'));
  else if (!TYPES.includes(type)) causes.push(notSupported('spec.type', type, TYPES));
  if (type === 'ExternalName') {
    const name = externalName.replace(/\.$/, '');
    if (name === '') causes.push(required('spec.externalName'));
    else for (const error of subdomainErrors(name)) causes.push(invalidValue('spec.externalName', externalName, error));
  }
  causes.push(
    ...validatePorts(spec),
    ...validateLabels(spec.selector, 'spec.selector'),
    ...requiredOneOf('spec.sessionAffinity', affinity, ['ClientIP', 'None']),
    ...validateAddresses(spec),
    ...(spec.externalIPs ?? []).flatMap((ip, index) => errorsAt(`spec.externalIPs[${index}]`, ip, peerAddressErrors)),
    ...validateBalancer(service, old),
    ...validateTraffic(service),
  );
  return old === undefined ? causes : [...causes, ...validateKept(spec, old.spec ?? {})];
}

const validateEndpointPorts = (ports: readonly EndpointPort[], field: string): Cause[] =>
  ports.flatMap((port, index) => validatePort(port, `${field}[${index}]`, ports.length > 1));

function validateEndpointAddress({ ip = '', hostname, nodeName }: EndpointAddress, field: string): Cause[] {
  return [
    ...errorsAt(`${field}.ip`, ip, peerAddressErrors),
    ...optionalAt(`${field}.hostname`, hostname, labelErrors),
    ...(nodeName === undefined ? [] : errorsAt(`${field}.nodeName`, nodeName, subdomainErrors)),
  ];
}

export function validateEndpoints(endpoints: KubeEndpoints, old: KubeEndpoints | undefined): Cause[] {
  const causes = validateObjectMetadata(endpoints, old, { namespaced: true, name: subdomainName });
  for (const [index, { addresses = [], notReadyAddresses = [], ports = [] }] of (endpoints.subsets ?? []).entries()) {
    const field = `subsets[${index}]`;
    if (addresses.length === 0 && notReadyAddresses.length === 0) {
      causes.push(required(field, 'must specify `addresses` or `notReadyAddresses`'));
    }
    for (const [list, items] of Object.entries({ addresses, notReadyAddresses })) {
      causes.push(...items.flatMap((each, at) => validateEndpointAddress(each, `${field}.${list}[${at}]`)));
    }
    causes.push(...validateEndpointPorts(ports, `${field}.ports`));
  }
  return causes;
}

/** A domain of two labels or more. */
const domainErrors = (name: string): string[] => {
  const labels = name.replace(/\.$/, '').split('.');
  if (labels.length < 2) return ['should be a domain with at least two segments separated by dots'];
  return labels.flatMap((label) => labelErrors(label));
};

function sliceAddressErrors(address: string, type: string): string[] {
  if (type === 'FQDN') return domainErrors(address);
  if (!ADDRESS_TYPES.includes(type)) return [];
  const errors = addressFamily(address, 'ip') === type ? [] : [`must be a valid ${type} address`];
  return [...errors, ...peerAddressErrors(address)];
}

const limited = (field: string, count: number, countMax: number): Cause[] =>
  count > countMax ? [tooMany(field, count, countMax)] : [];

function validateHints(
  field: string,
  hints: readonly { readonly name?: string }[] = [],
  nameErrors: (name: string) => string[],
): Cause[] {
  const seen = new Set<string>();
  return [
    ...limited(field, hints.length, HINTS_MAX),
    ...hints.flatMap(({ name = '' }, index) => {
      const path = `${field}[${index}].name`;
      const causes = seen.has(name) ? [duplicate(path, name)] : [];
      seen.add(name);
      return [...causes, ...errorsAt(path, name, nameErrors)];
    }),
  ];
}

function validateSliceEndpoint(endpoint: Endpoint, type: string, field: string): Cause[] {
  const { addresses = [], nodeName, hostname, hints, deprecatedTopology: topology = {} } = endpoint;
  return [
    ...(addresses.length === 0 ? [required(`${field}.addresses`, 'must contain at least 1 address')] : []),
    ...limited(`${field}.addresses`, addresses.length, ADDRESSES_MAX),
    ...addresses.flatMap((address, at) =>
      errorsAt(`${field}.addresses[${at}]`, address, (text) => sliceAddressErrors(text, type)),
    ),
    ...(nodeName === undefined ? [] : errorsAt(`${field}.nodeName`, nodeName, subdomainErrors)),
    ...limited(`${field}.deprecatedTopology`, Object.keys(topology).length, TOPOLOGY_LABELS_MAX),
    ...validateLabels(topology, `${field}.deprecatedTopology`),
    ...(hostname === undefined ? [] : errorsAt(`${field}.hostname`, hostname, labelErrors)),
    ...validateHints(`${field}.hints.forZones`, hints?.forZones, labelValueErrors),
    ...validateHints(`${field}.hints.forNodes`, hints?.forNodes, subdomainErrors),
  ];
}

export function validateEndpointSlice(slice: KubeEndpointSlice, old: KubeEndpointSlice | undefined): Cause[] {
  const causes = validateObjectMetadata(slice, old, { namespaced: true, name: subdomainName });
  const { addressType = '', endpoints = [], ports = [] } = slice;
  if (old !== undefined) causes.push(...immutable('addressType', addressType, old.addressType));
  causes.push(
    ...requiredOneOf('addressType', addressType, ADDRESS_TYPES),
    ...limited('endpoints', endpoints.length, ENDPOINTS_MAX),
    ...limited('ports', ports.length, PORTS_MAX),
    ...endpoints
      .slice(0, ENDPOINTS_MAX)
      .flatMap((endpoint, index) => validateSliceEndpoint(endpoint, addressType, `endpoints[${index}]`)),
  );
  const seen = new Set<string>();
  for (const [index, { name = '', protocol = '', appProtocol }] of ports.entries()) {
    const field = `ports[${index}]`;
    causes.push(...optionalAt(`${field}.name`, name, labelErrors));
    if (seen.has(name)) causes.push(duplicate(`${field}.name`, name));
    seen.add(name);
    causes.push(...requiredOneOf(`${field}.protocol`, protocol, PROTOCOLS));
    if (appProtocol !== undefined) causes.push(...errorsAt(`${field}.appProtocol`, appProtocol, qualifiedNameErrors));
  }
  return causes;
}
