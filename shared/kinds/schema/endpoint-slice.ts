import { metadata, objectReference } from '../../kubernetes/schema/meta.ts';
import {
  atomicStruct,
  bool,
  embedded,
  int32,
  kindStruct,
  list,
  listOf,
  optionalStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  textMap,
} from '../../kubernetes/schema/schema.ts';

const DISCOVERY = 'io.k8s.api.discovery.v1';

const endpointConditions = struct(`${DISCOVERY}.EndpointConditions`, 'State of an endpoint.', {
  ready: pointer(bool('Whether it is ready for traffic.')),
  serving: pointer(bool('Whether it serves traffic, also while it terminates.')),
  terminating: pointer(bool('Whether it is terminating.')),
});

const forZone = struct(`${DISCOVERY}.ForZone`, 'A zone that should use an endpoint.', {
  name: required(text('Name of the zone.')),
});

const forNode = struct(`${DISCOVERY}.ForNode`, 'A node that should use an endpoint.', {
  name: required(text('Name of the node.')),
});

const endpointHints = struct(`${DISCOVERY}.EndpointHints`, 'Who should use an endpoint.', {
  forZones: list(forZone, 'Zones that should use it.'),
  forNodes: list(forNode, 'Nodes that should use it.'),
});

const endpoint = struct(`${DISCOVERY}.Endpoint`, 'An endpoint of a Service.', {
  addresses: required(listOf({ kind: 'string' }, 'Its addresses.', { listType: 'set' })),
  conditions: embedded(endpointConditions, 'Its state.'),
  hostname: pointer(text('Its host name.')),
  targetRef: optionalStruct(objectReference, 'Object behind it, such as a pod.'),
  deprecatedTopology: textMap('Topology labels of former versions.'),
  nodeName: pointer(text('Node of the endpoint.')),
  zone: pointer(text('Zone of the endpoint.')),
  hints: optionalStruct(endpointHints, 'Who should use it.'),
});

const endpointPort = atomicStruct(`${DISCOVERY}.EndpointPort`, 'A port of the endpoints.', {
  name: pointer(text('Name of the port.')),
  protocol: pointer(text('TCP, UDP or SCTP.')),
  port: pointer(int32('Port number; all if not set.')),
  appProtocol: pointer(text('Application protocol.')),
});

export const endpointSlice: StructSchema = kindStruct(
  `${DISCOVERY}.EndpointSlice`,
  { group: 'discovery.k8s.io', version: 'v1', kind: 'EndpointSlice' },
  'EndpointSlice represents a set of service endpoints.',
  {
    metadata,
    addressType: required(text('IPv4, IPv6 or FQDN. Cannot change.')),
    endpoints: required(list(endpoint, 'The endpoints.')),
    ports: list(endpointPort, 'Ports of all endpoints.'),
  },
);
