/** Constraints of Services, Endpoints, EndpointSlices and networking.k8s.io. */
import {
  at,
  type Constraint,
  duplicate,
  type Edits,
  type ExpectedCause,
  forbidden,
  IMMUTABLE,
  invalid,
  leftOut,
  on,
  onStatus,
  onUpdate,
  required,
  tooLong,
  tooMany,
  unsupported,
} from './constraint.ts';
import { labels } from './metadata.ts';
import { labelSelector } from './workloads.ts';

const PORT_RANGE = 'must be between 1 and 65535, inclusive';
const IP_TEXT = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const CIDR_TEXT = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
const PROTOCOLS = unsupported('supported values: "SCTP", "TCP", "UDP"');
const DNS_NAME = invalid('must be a DNS name, not an IP address');

/** Addresses that stand for no other machine. */
const special = (field: string, make: (ip: string) => Edits): Constraint[] =>
  (
    [
      ['unspecified', '0.0.0.0', 'may not be unspecified (0.0.0.0)'],
      ['of loopback', '127.0.0.1', 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
      ['link-local', '169.254.169.254', 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'],
      ['link-local multicast', '224.0.0.1', 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'],
    ] as const
  ).map(([what, ip, text]) => on(field, `not ${what}`, make(ip), invalid(text)));

const PORT = 'spec.ports[0]';
const two = [
  { name: 'a', port: 80 },
  { name: 'b', port: 81 },
];
const balancer = { 'spec.type': 'LoadBalancer' };
const nodePort = { 'spec.type': 'NodePort' };
const external = { 'spec.type': 'ExternalName', 'spec.ports': undefined, 'spec.externalName': 'example.com' };
const BALANCER_ONLY = forbidden("may only be used when `type` is 'LoadBalancer'");
const ingress = (field: string, what: string, value: object, cause: ExpectedCause): Constraint =>
  onStatus(`status.loadBalancer.ingress[0].${field}`, what, { 'status.loadBalancer.ingress': [value] }, cause);

/** The constraints of a Service and of an Ingress. */
const loadBalancer: Constraint[] = [
  ingress('ip', 'an address', { ip: 'a' }, invalid(IP_TEXT)),
  ingress('hostname', 'a DNS subdomain', { hostname: 'A_b' }, invalid()),
  ingress('hostname', 'no address', { hostname: '10.0.0.1' }, DNS_NAME),
];

export const services: Constraint[] = [
  at('spec.ports', 'at least one', [], required()),
  on(`${PORT}.name`, 'set for several ports', { 'spec.ports': [{ port: 80 }, two[1]] }, required()),
  at(`${PORT}.name`, 'a DNS label', 'A_b', invalid()),
  on('spec.ports[1].name', 'unique', { 'spec.ports': [two[0], { ...two[1], name: 'a' }] }, duplicate()),
  at(`${PORT}.port`, '1 to 65535', 0, invalid(PORT_RANGE)),
  at(`${PORT}.protocol`, 'TCP, UDP or SCTP', 'ICMP', PROTOCOLS),
  at(`${PORT}.targetPort`, '1 to 65535', 70_000, invalid(PORT_RANGE)),
  at(`${PORT}.targetPort`, 'or the name of a port', 'A_b', invalid()),
  at(`${PORT}.appProtocol`, 'a qualified name', 'a b', invalid()),
  on(
    'spec.ports[1]',
    'unique by protocol and number',
    { 'spec.ports': [two[0], { ...two[1], port: 80 }] },
    duplicate(),
  ),
  on(
    'spec.ports[1].nodePort',
    'unique by protocol',
    { ...nodePort, 'spec.ports': two.map((port) => ({ ...port, nodePort: 30_000 })) },
    duplicate(),
  ),
  at(`${PORT}.nodePort`, 'not for ClusterIP', 30_000, forbidden("may not be used when `type` is 'ClusterIP'")),
  ...labels('spec.selector').slice(0, 4),
  at(
    'spec.type',
    'known',
    'Other',
    unsupported('supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'),
  ),
  at('spec.sessionAffinity', 'ClientIP or None', 'Other', unsupported('supported values: "ClientIP", "None"')),
  on(
    'spec.sessionAffinityConfig',
    'only with ClientIP',
    { 'spec.sessionAffinityConfig': { clientIP: { timeoutSeconds: 10 } } },
    forbidden('must not be set when session affinity is None'),
  ),
  on(
    'spec.sessionAffinityConfig.clientIP.timeoutSeconds',
    '1 to 86400',
    { 'spec.sessionAffinity': 'ClientIP', 'spec.sessionAffinityConfig': { clientIP: { timeoutSeconds: 0 } } },
    invalid('must be greater than 0 and less than 86400'),
  ),
  ...['LoadBalancer', 'NodePort'].map((type) =>
    on(
      'spec.clusterIPs[0]',
      `not None for ${type}`,
      { 'spec.type': type, 'spec.clusterIP': 'None' },
      invalid(`may not be set to 'None' for ${type} services`),
    ),
  ),
  on(
    'spec.clusterIPs',
    'not for ExternalName',
    { ...external, 'spec.clusterIP': '10.96.0.9' },
    forbidden('may not be set for ExternalName services'),
  ),
  on(
    'spec.ipFamilies',
    'not for ExternalName',
    { ...external, 'spec.ipFamilies': ['IPv4'] },
    forbidden('may not be set for ExternalName services'),
  ),
  on(
    'spec.ipFamilyPolicy',
    'not for ExternalName',
    { ...external, 'spec.ipFamilyPolicy': 'SingleStack' },
    forbidden('may not be set for ExternalName services'),
  ),
  on('spec.externalName', 'set for ExternalName', { ...external, 'spec.externalName': '' }, required()),
  on('spec.externalName', 'a DNS subdomain', { ...external, 'spec.externalName': 'A_b' }, invalid()),
  at('spec.clusterIP', 'an address', 'a', invalid(IP_TEXT, 'spec.clusterIPs[0]')),
  on(
    'spec.clusterIPs',
    'begin with clusterIP',
    { 'spec.clusterIP': '10.96.0.9', 'spec.clusterIPs': ['10.96.0.8'] },
    invalid('first value must match `clusterIP`'),
  ),
  on(
    'spec.clusterIPs',
    'None stands alone',
    { 'spec.clusterIP': 'None', 'spec.clusterIPs': ['None', '10.96.0.8'] },
    invalid("'None' must be the first and only value"),
  ),
  on(
    'spec.clusterIPs',
    'at most two',
    { 'spec.clusterIP': '10.96.0.9', 'spec.clusterIPs': ['10.96.0.9', 'fd00::9', 'fd00::8'] },
    invalid('may only hold up to 2 values'),
  ),
  on(
    'spec.clusterIPs',
    'one for each family',
    { 'spec.clusterIP': '10.96.0.9', 'spec.clusterIPs': ['10.96.0.9', '10.96.0.8'] },
    invalid('may specify no more than one IP for each IP family'),
  ),
  on(
    'spec.clusterIPs[0]',
    'of the first family',
    { 'spec.clusterIP': '10.96.0.9', 'spec.ipFamilies': ['IPv6'] },
    invalid('expected an IPv6 value as indicated by `ipFamilies[0]`'),
  ),
  on(
    'spec.ipFamilies[0]',
    'IPv4 or IPv6',
    { 'spec.ipFamilies': ['IPv5'] },
    unsupported('supported values: "IPv4", "IPv6"'),
  ),
  on('spec.ipFamilies[1]', 'unique', { 'spec.ipFamilies': ['IPv4', 'IPv4'] }, duplicate()),
  at(
    'spec.ipFamilyPolicy',
    'known',
    'Other',
    unsupported('supported values: "PreferDualStack", "RequireDualStack", "SingleStack"'),
  ),
  on('spec.externalIPs[0]', 'addresses', { 'spec.externalIPs': ['a'] }, invalid(IP_TEXT)),
  ...special('spec.externalIPs[0]', (ip) => ({ 'spec.externalIPs': [ip] })),
  on(
    'spec.LoadBalancerSourceRanges',
    'only for LoadBalancer',
    { 'spec.loadBalancerSourceRanges': ['10.0.0.0/8'] },
    BALANCER_ONLY,
  ),
  on(
    'spec.LoadBalancerSourceRanges[0]',
    'CIDRs',
    { ...balancer, 'spec.loadBalancerSourceRanges': ['a'] },
    invalid(CIDR_TEXT),
  ),
  on(
    'metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]',
    'only for LoadBalancer',
    { 'metadata.annotations': { 'service.beta.kubernetes.io/load-balancer-source-ranges': '10.0.0.0/8' } },
    BALANCER_ONLY,
  ),
  on(
    'spec.allocateLoadBalancerNodePorts',
    'only for LoadBalancer',
    { 'spec.allocateLoadBalancerNodePorts': true },
    BALANCER_ONLY,
  ),
  on('spec.loadBalancerClass', 'only for LoadBalancer', { 'spec.loadBalancerClass': 'example.com/a' }, BALANCER_ONLY),
  on('spec.loadBalancerClass', 'a qualified name', { ...balancer, 'spec.loadBalancerClass': 'a b' }, invalid()),
  onUpdate(
    'spec.loadBalancerClass',
    'set at the creation only',
    { 'spec.loadBalancerClass': 'example.com/b' },
    invalid('may not change once set'),
    balancer,
  ),
  at(
    'spec.externalTrafficPolicy',
    'only for services that are reachable from outside',
    'Local',
    invalid('may only be set for externally-accessible services'),
  ),
  on(
    'spec.externalTrafficPolicy',
    'Cluster or Local',
    { ...nodePort, 'spec.externalTrafficPolicy': 'Other' },
    unsupported('supported values: "Cluster", "Local"'),
  ),
  at(
    'spec.healthCheckNodePort',
    'only for LoadBalancer with Local',
    30_000,
    invalid("may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"),
  ),
  leftOut('spec.healthCheckNodePort', 'set with Local, immutable', 'no proxy serves it: the server assigns none'),
  at('spec.internalTrafficPolicy', 'Cluster or Local', 'Other', unsupported('supported values: "Cluster", "Local"')),
  at(
    'spec.trafficDistribution',
    'known',
    'Other',
    unsupported('supported values: "PreferClose", "PreferSameZone", "PreferSameNode"'),
  ),
  on(
    'metadata.annotations[service.kubernetes.io/topology-mode]',
    'the same as topology-aware-hints',
    {
      'metadata.annotations': {
        'service.kubernetes.io/topology-mode': 'Auto',
        'service.kubernetes.io/topology-aware-hints': 'auto',
      },
    },
    invalid('must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified'),
  ),
  onUpdate(
    'spec.clusterIPs[0]',
    'does not change',
    { 'spec.clusterIP': '10.96.0.8', 'spec.clusterIPs': ['10.96.0.8'] },
    invalid('may not change once set'),
    { 'spec.clusterIP': '10.96.0.9' },
  ),
  onUpdate(
    'spec.ipFamilies[0]',
    'does not change',
    { 'spec.ipFamilies': ['IPv6'], 'spec.clusterIP': 'fd00::9', 'spec.clusterIPs': ['fd00::9'] },
    invalid('may not change once set'),
  ),
  leftOut('spec.clusterIPs, ipFamilies', 'how a second one is added or removed', 'addresses are of one family'),
  ...loadBalancer,
  ingress(
    'ipMode',
    'only with ip',
    { hostname: 'a', ipMode: 'VIP' },
    forbidden('may not be specified when `ip` is not set'),
  ),
  ingress(
    'ipMode',
    'VIP or Proxy',
    { ip: '10.0.0.1', ipMode: 'Other' },
    unsupported('supported values: "Proxy", "VIP"'),
  ),
];

const ADDRESS = 'subsets[0].addresses[0]';
const endpointPort = (field: string, what: string, ports: object[], cause: ExpectedCause): Constraint =>
  on(`subsets[0].ports[0].${field}`, what, { 'subsets[0].ports': ports }, cause);

export const endpoints: Constraint[] = [
  on(
    'subsets[0]',
    'an address',
    { 'subsets[0].addresses': [] },
    required('must specify `addresses` or `notReadyAddresses`'),
  ),
  at(`${ADDRESS}.ip`, 'an address', 'a', invalid(IP_TEXT)),
  on(
    'subsets[0].notReadyAddresses[0].ip',
    'an address',
    { 'subsets[0].notReadyAddresses': [{ ip: 'a' }] },
    invalid(IP_TEXT),
  ),
  ...special(`${ADDRESS}.ip`, (ip) => ({ [`${ADDRESS}.ip`]: ip })),
  at(`${ADDRESS}.hostname`, 'a DNS label', 'A_b', invalid()),
  at(`${ADDRESS}.nodeName`, 'a DNS subdomain', 'A_b', invalid()),
  endpointPort('name', 'set for several ports', [{ port: 80 }, { name: 'b', port: 81 }], required()),
  endpointPort('name', 'a DNS label', [{ name: 'A_b', port: 80 }], invalid()),
  endpointPort('port', '1 to 65535', [{ port: 0 }], invalid(PORT_RANGE)),
  endpointPort('protocol', 'TCP, UDP or SCTP', [{ port: 80, protocol: 'ICMP' }], PROTOCOLS),
  endpointPort('appProtocol', 'a qualified name', [{ port: 80, appProtocol: 'a b' }], invalid()),
  leftOut(
    'annotations[endpoints.kubernetes.io/last-change-trigger-time]',
    'a time',
    'no controller here writes or reads it',
  ),
];

const many = (count: number, value: unknown): unknown[] => Array.from({ length: count }, () => value);

export const endpointSlices: Constraint[] = [
  at('addressType', 'set', '', required()),
  at('addressType', 'known', 'Other', unsupported('supported values: "FQDN", "IPv4", "IPv6"')),
  onUpdate('addressType', 'immutable', { addressType: 'FQDN', endpoints: [] }, invalid(IMMUTABLE)),
  at('endpoints', 'at most 1000', many(1_001, { addresses: ['10.0.0.1'] }), tooMany('must have at most 1000 items')),
  on(
    'endpoints[0].addresses',
    'at least one',
    { 'endpoints[0].addresses': [] },
    required('must contain at least 1 address'),
  ),
  on(
    'endpoints[0].addresses',
    'at most 100',
    { 'endpoints[0].addresses': many(101, '10.0.0.1') },
    tooMany('must have at most 100 items'),
  ),
  on(
    'endpoints[0].addresses[0]',
    'IPv4',
    { 'endpoints[0].addresses': ['fd00::1'] },
    invalid('must be a valid IPv4 address'),
  ),
  on('endpoints[0].addresses[0]', 'IPv6', { addressType: 'IPv6' }, invalid('must be a valid IPv6 address')),
  ...special('endpoints[0].addresses[0]', (ip) => ({ 'endpoints[0].addresses': [ip] })),
  on(
    'endpoints[0].addresses[0]',
    'domains of two labels',
    { addressType: 'FQDN', 'endpoints[0].addresses': ['a'] },
    invalid('should be a domain with at least two segments separated by dots'),
  ),
  on(
    'endpoints[0].addresses[0]',
    'DNS labels',
    { addressType: 'FQDN', 'endpoints[0].addresses': ['A_b.c'] },
    invalid(),
  ),
  at('endpoints[0].nodeName', 'a DNS subdomain', 'A_b', invalid()),
  at('endpoints[0].hostname', 'a DNS label', 'A_b', invalid()),
  on(
    'endpoints[0].hints.forZones',
    'at most 8',
    { 'endpoints[0].hints': { forZones: many(9, { name: 'a' }) } },
    tooMany('must have at most 8 items'),
  ),
  on(
    'endpoints[0].hints.forZones[1].name',
    'unique',
    { 'endpoints[0].hints': { forZones: many(2, { name: 'a' }) } },
    duplicate(),
  ),
  on(
    'endpoints[0].hints.forZones[0].name',
    'the form of a label value',
    { 'endpoints[0].hints': { forZones: [{ name: 'a b' }] } },
    invalid(),
  ),
  on(
    'endpoints[0].hints.forNodes',
    'at most 8',
    { 'endpoints[0].hints': { forNodes: many(9, { name: 'a' }) } },
    tooMany('must have at most 8 items'),
  ),
  on(
    'endpoints[0].hints.forNodes[1].name',
    'unique',
    { 'endpoints[0].hints': { forNodes: many(2, { name: 'a' }) } },
    duplicate(),
  ),
  on(
    'endpoints[0].hints.forNodes[0].name',
    'a DNS subdomain',
    { 'endpoints[0].hints': { forNodes: [{ name: 'a_b' }] } },
    invalid(),
  ),
  on(
    'endpoints[0].deprecatedTopology',
    'has the form of labels',
    { 'endpoints[0].deprecatedTopology': { 'a b': 'c' } },
    invalid(),
  ),
  on(
    'endpoints[0].deprecatedTopology',
    'at most 16',
    {
      'endpoints[0].deprecatedTopology': Object.fromEntries(
        Array.from({ length: 17 }, (_, index) => [`a${index}`, 'b']),
      ),
    },
    tooMany('must have at most 16 items'),
  ),
  leftOut('ports', 'at most 20,000', 'objects have at most 100,000 characters (413)'),
  on('ports[0].name', 'a DNS label', { 'ports[0].name': 'A_b' }, invalid()),
  on('ports[1].name', 'unique', { ports: [{ port: 80 }, { port: 81 }] }, duplicate()),
  on('ports[0].protocol', 'TCP, UDP or SCTP', { 'ports[0].protocol': 'ICMP' }, PROTOCOLS),
  on('ports[0].appProtocol', 'a qualified name', { 'ports[0].appProtocol': 'a b' }, invalid()),
];

const BACKEND = 'spec.defaultBackend';
const backend = (field: string, what: string, value: object, cause: ExpectedCause): Constraint =>
  on(`${BACKEND}${field}`, what, { [BACKEND]: value }, cause);
const service = { name: 's', port: { number: 80 } };
const resource = { apiGroup: 'a.b', kind: 'K', name: 'n' };
const PATH = 'spec.rules[0].http.paths[0]';
const path = (field: string, what: string, edits: object, cause: ExpectedCause): Constraint =>
  on(`${PATH}.${field}`, what, { [PATH]: { path: '/', pathType: 'Prefix', backend: { service }, ...edits } }, cause);
const reference = (
  at: (field: string, what: string, edits: object, cause: ExpectedCause) => Constraint,
): Constraint[] => [
  at('apiGroup', 'a DNS subdomain', { apiGroup: 'A_b' }, invalid()),
  at('kind', 'set', { kind: '' }, required('kind is required')),
  at('kind', 'a path segment', { kind: 'a%b' }, invalid("may not contain '%'")),
  at('name', 'set', { name: '' }, required('name is required')),
  at('name', 'a path segment', { name: 'a%b' }, invalid("may not contain '%'")),
];

export const ingresses: Constraint[] = [
  on(
    'spec',
    'a backend or rules',
    { [BACKEND]: undefined },
    invalid('either `defaultBackend` or `rules` must be specified'),
  ),
  backend('', 'one backend', { service, resource }, invalid('cannot set both resource and service backends')),
  backend('', 'a backend', {}, invalid('resource or service backend is required')),
  backend('.service.name', 'set', { service: { ...service, name: '' } }, required()),
  backend('.service.name', 'the name of a Service', { service: { ...service, name: '1a' } }, invalid()),
  backend(
    '',
    'one port',
    { service: { name: 's', port: { number: 80, name: 'a' } } },
    invalid('cannot set both port name & port number'),
  ),
  backend('', 'a port', { service: { name: 's', port: {} } }, required('port name or number is required')),
  backend('.service.port.name', 'the name of a port', { service: { name: 's', port: { name: 'A_b' } } }, invalid()),
  backend(
    '.service.port.number',
    '1 to 65535',
    { service: { name: 's', port: { number: 70_000 } } },
    invalid(PORT_RANGE),
  ),
  ...reference((field, what, edits, cause) =>
    backend(`.resource.${field}`, what, { resource: { ...resource, ...edits } }, cause),
  ),
  on('spec.rules[0].host', 'no address', { 'spec.rules': [{ host: '10.0.0.1' }] }, DNS_NAME),
  on('spec.rules[0].host', 'a DNS subdomain', { 'spec.rules': [{ host: 'A_b' }] }, invalid()),
  on('spec.rules[0].host', 'one wildcard at its start', { 'spec.rules': [{ host: 'a.*.b' }] }, invalid()),
  on('spec.rules[0].http.paths', 'at least one', { 'spec.rules': [{ http: { paths: [] } }] }, required()),
  path('pathType', 'set', { pathType: undefined }, required('pathType must be specified')),
  path(
    'pathType',
    'known',
    { pathType: 'Other' },
    unsupported('supported values: "Exact", "ImplementationSpecific", "Prefix"'),
  ),
  ...['Exact', 'Prefix', 'ImplementationSpecific'].map((pathType) =>
    path('path', `absolute for ${pathType}`, { pathType, path: 'a' }, invalid('must be an absolute path')),
  ),
  ...['//', '/./', '/../', '%2f', '%2F'].map((part) =>
    path('path', `without ${part}`, { path: `/a${part}b` }, invalid(`must not contain '${part}'`)),
  ),
  ...['/..', '/.'].map((part) =>
    path('path', `not at its end: ${part}`, { path: `/a${part}` }, invalid(`cannot end with '${part}'`)),
  ),
  on('spec.tls[0].hosts[0]', 'DNS subdomains', { 'spec.tls': [{ hosts: ['A_b'] }] }, invalid()),
  on('spec.tls[0].hosts[0]', 'one wildcard at their start', { 'spec.tls': [{ hosts: ['a.*.b'] }] }, invalid()),
  on('spec.tls[0].secretName', 'a DNS subdomain', { 'spec.tls': [{ secretName: 'A_b' }] }, invalid()),
  at('spec.ingressClassName', 'a DNS subdomain', 'A_b', invalid()),
  on(
    'annotations.kubernetes.io/ingress.class',
    'the same as ingressClassName',
    { 'metadata.annotations': { 'kubernetes.io/ingress.class': 'a' }, 'spec.ingressClassName': 'b' },
    invalid('must match `ingressClassName` when both are specified'),
  ),
  ...loadBalancer,
];

const PARAMETERS = 'spec.parameters';
const parameters = (field: string, what: string, edits: object, cause: ExpectedCause): Constraint =>
  on(`${PARAMETERS}.${field}`, what, { [PARAMETERS]: { kind: 'K', name: 'n', scope: 'Cluster', ...edits } }, cause);

export const ingressClasses: Constraint[] = [
  at('spec.controller', 'set', '', required()),
  at('spec.controller', 'domain and path', 'a', invalid('must be a domain-prefixed path (such as "acme.io/foo")')),
  at('spec.controller', 'the domain is a DNS subdomain', 'A_b/c', invalid()),
  at('spec.controller', 'at most 250 bytes', `a.b/${'c'.repeat(250)}`, tooLong('may not be more than 250 bytes')),
  onUpdate('spec.controller', 'immutable', { 'spec.controller': 'a.b/other' }, invalid(IMMUTABLE)),
  ...reference(parameters),
  leftOut(`${PARAMETERS}.scope`, 'set', 'it is set to Cluster'),
  parameters(
    'scope',
    'Cluster or Namespace',
    { scope: 'Other' },
    unsupported('supported values: "Cluster", "Namespace"'),
  ),
  parameters(
    'namespace',
    'set for Namespace',
    { scope: 'Namespace' },
    required("`parameters.scope` is set to 'Namespace'"),
  ),
  parameters('namespace', 'a DNS label', { scope: 'Namespace', namespace: 'A_b' }, invalid()),
  parameters('namespace', 'not for Cluster', { namespace: 'a' }, forbidden("`parameters.scope` is set to 'Cluster'")),
];

const peerRules = (list: 'ingress' | 'egress', side: 'from' | 'to'): Constraint[] => {
  const port = (field: string, what: string, value: object, cause: ExpectedCause): Constraint =>
    on(`spec.${list}[0].ports[0].${field}`, what, { [`spec.${list}`]: [{ ports: [value] }] }, cause);
  const PEER = `spec.${list}[0].${side}[0]`;
  const peer = (field: string, what: string, value: object, cause: ExpectedCause): Constraint =>
    on(`${PEER}${field}`, what, { [`spec.${list}`]: [{ [side]: [value] }] }, cause);
  return [
    port('protocol', 'TCP, UDP or SCTP', { protocol: 'ICMP' }, unsupported('supported values: "TCP", "UDP", "SCTP"')),
    port('port', '1 to 65535', { port: 0 }, invalid(PORT_RANGE)),
    port('port', 'or the name of a port', { port: 'A_b' }, invalid()),
    port('endPort', 'at least port', { port: 2, endPort: 1 }, invalid('must be greater than or equal to `port`')),
    port('endPort', '1 to 65535', { port: 2, endPort: 70_000 }, invalid(PORT_RANGE)),
    port(
      'endPort',
      'not with a named port',
      { port: 'a', endPort: 1 },
      invalid('may not be specified when `port` is non-numeric'),
    ),
    port('endPort', 'not without port', { endPort: 1 }, invalid('may not be specified when `port` is not specified')),
    peer('', 'set', {}, required('must specify a peer')),
    peer(
      '',
      'ipBlock stands alone',
      { ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} },
      forbidden('may not specify both ipBlock and another peer'),
    ),
    peer(
      '.podSelector.matchLabels',
      'has the form of labels',
      { podSelector: { matchLabels: { 'a b': 'c' } } },
      invalid(),
    ),
    peer(
      '.namespaceSelector.matchLabels',
      'has the form of labels',
      { namespaceSelector: { matchLabels: { 'a b': 'c' } } },
      invalid(),
    ),
    peer('.ipBlock.cidr', 'set', { ipBlock: { cidr: '' } }, required()),
    peer('.ipBlock.cidr', 'a CIDR', { ipBlock: { cidr: 'a' } }, invalid(CIDR_TEXT)),
    peer('.ipBlock.except[0]', 'a CIDR', { ipBlock: { cidr: '10.0.0.0/8', except: ['a'] } }, invalid(CIDR_TEXT)),
    peer(
      '.ipBlock.except[0]',
      'within cidr',
      { ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] } },
      invalid('must be a strict subset of `cidr`'),
    ),
    peer(
      '.ipBlock.except[0]',
      'smaller than cidr',
      { ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.0/8'] } },
      invalid('must be a strict subset of `cidr`'),
    ),
  ];
};

export const networkPolicies: Constraint[] = [
  ...labelSelector('spec.podSelector'),
  ...peerRules('ingress', 'from'),
  ...peerRules('egress', 'to'),
  at(
    'spec.policyTypes',
    'at most two',
    ['Ingress', 'Egress', 'Ingress'],
    invalid('may not specify more than two policyTypes'),
  ),
  on(
    'spec.policyTypes[0]',
    'Ingress or Egress',
    { 'spec.policyTypes': ['Other'] },
    unsupported('supported values: "Ingress", "Egress"'),
  ),
];
