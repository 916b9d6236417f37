import { condition, metadata, objectReference } from '../../kubernetes/schema/meta.ts';
import {
  atomicStruct,
  atomicTextMap,
  bool,
  embedded,
  int32,
  intOrString,
  keyDefault,
  keyedList,
  kindStruct,
  list,
  optionalStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  textList,
} from '../../kubernetes/schema/schema.ts';

const CORE = 'io.k8s.api.core.v1';

const servicePort = struct(`${CORE}.ServicePort`, 'A port of a Service.', {
  name: text('Name of the port, unique in the Service. Needed if there are several.'),
  protocol: keyDefault(text('TCP, UDP or SCTP.'), 'TCP'),
  appProtocol: pointer(text('Application protocol, as a hint for load balancers.')),
  port: required(int32('Port of the Service.')),
  targetPort: intOrString('Number or name of the port of the pods; the same as port if not set.'),
  nodePort: int32('Port on every node, for types NodePort and LoadBalancer.'),
});

const clientIPConfig = struct(`${CORE}.ClientIPConfig`, 'Session affinity by client address.', {
  timeoutSeconds: pointer(int32('Seconds for which a client stays with one pod, 1 to 86400.')),
});

const sessionAffinityConfig = struct(`${CORE}.SessionAffinityConfig`, 'Settings of session affinity.', {
  clientIP: optionalStruct(clientIPConfig, 'Settings of affinity by client address.'),
});

const serviceSpec = struct(`${CORE}.ServiceSpec`, 'Desired state of a Service.', {
  ports: keyedList(servicePort, 'The ports.', { mergeKey: 'port', mapKeys: ['port', 'protocol'] }),
  selector: atomicTextMap('Labels of the pods behind the Service. Without it, endpoints are managed by others.'),
  clusterIP: text('Virtual address; None for a headless Service. Assigned if not set.'),
  clusterIPs: textList('Virtual addresses, one per address family.'),
  type: text('ClusterIP, NodePort, LoadBalancer or ExternalName.'),
  externalIPs: textList('Further addresses that lead to the Service.'),
  sessionAffinity: text('ClientIP or None.'),
  loadBalancerIP: text('Deprecated request for an address of the load balancer.'),
  loadBalancerSourceRanges: textList('Client ranges that the load balancer admits.'),
  externalName: text('DNS name that the Service is an alias of, for type ExternalName.'),
  externalTrafficPolicy: text('Whether traffic from outside stays on its node: Cluster or Local.'),
  healthCheckNodePort: int32('Port for health checks of a load balancer.'),
  publishNotReadyAddresses: bool('Whether endpoints include pods that are not ready.'),
  sessionAffinityConfig: optionalStruct(sessionAffinityConfig, 'Settings of session affinity.'),
  ipFamilies: textList('IPv4, IPv6 or both.'),
  ipFamilyPolicy: pointer(text('SingleStack, PreferDualStack or RequireDualStack.')),
  allocateLoadBalancerNodePorts: pointer(bool('Whether a load balancer has node ports.')),
  loadBalancerClass: pointer(text('Class of the load balancer.')),
  internalTrafficPolicy: pointer(text('Whether traffic from inside stays on its node: Cluster or Local.')),
  trafficDistribution: pointer(text('Preference for close endpoints.')),
});

const portStatus = struct(`${CORE}.PortStatus`, 'State of one port of a load balancer.', {
  port: required(int32('The port.')),
  protocol: required(text('TCP, UDP or SCTP.')),
  error: pointer(text('Why the port does not work.')),
});

const loadBalancerIngress = struct(`${CORE}.LoadBalancerIngress`, 'An address of a load balancer.', {
  ip: text('Its address.'),
  hostname: text('Its DNS name.'),
  ipMode: pointer(text('VIP or Proxy.')),
  ports: list(portStatus, 'State of its ports.'),
});

const loadBalancerStatus = struct(`${CORE}.LoadBalancerStatus`, 'State of a load balancer.', {
  ingress: list(loadBalancerIngress, 'Its addresses.'),
});

const serviceStatus = struct(`${CORE}.ServiceStatus`, 'Observed state of a Service.', {
  loadBalancer: embedded(loadBalancerStatus, 'State of the load balancer.'),
  conditions: keyedList(condition, 'Conditions of the object, one per type.', { mergeKey: 'type' }),
});

export const service: StructSchema = kindStruct(
  `${CORE}.Service`,
  { group: '', version: 'v1', kind: 'Service' },
  'Service is a named abstraction of a set of pods and the port they listen on. It is recorded here; no traffic is routed.',
  {
    metadata,
    spec: embedded(serviceSpec, 'Desired state of the Service.'),
    status: embedded(serviceStatus, 'Observed state of the Service.'),
  },
);

const endpointAddress = atomicStruct(`${CORE}.EndpointAddress`, 'An address behind a Service.', {
  ip: required(text('The address.')),
  hostname: text('Host name of the endpoint.'),
  nodeName: pointer(text('Node of the endpoint.')),
  targetRef: optionalStruct(objectReference, 'Object behind the address, such as a pod.'),
});

const endpointPort = atomicStruct(`${CORE}.EndpointPort`, 'A port behind a Service.', {
  name: text('Name of the port of the Service.'),
  port: required(int32('Port number.')),
  protocol: text('TCP, UDP or SCTP.'),
  appProtocol: pointer(text('Application protocol.')),
});

const endpointSubset = struct(`${CORE}.EndpointSubset`, 'Addresses with the same ports.', {
  addresses: list(endpointAddress, 'Addresses that are ready.'),
  notReadyAddresses: list(endpointAddress, 'Addresses that are not ready.'),
  ports: list(endpointPort, 'Ports of the addresses.'),
});

export const endpoints: StructSchema = kindStruct(
  `${CORE}.Endpoints`,
  { group: '', version: 'v1', kind: 'Endpoints' },
  'Endpoints is a collection of addresses that implement a Service.',
  {
    metadata,
    subsets: list(endpointSubset, 'Addresses, grouped by their ports.'),
  },
);
