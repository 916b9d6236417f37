import { labelSelector, metadata } from '../../kubernetes/schema/meta.ts';
import {
  atomicStruct,
  embedded,
  int32,
  intOrString,
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
import { typedReference } from './volume.ts';

const NETWORKING = 'io.k8s.api.networking.v1';

const serviceBackendPort = atomicStruct(`${NETWORKING}.ServiceBackendPort`, 'A port of a Service.', {
  name: text('Name of the port.'),
  number: int32('Number of the port.'),
});

const ingressServiceBackend = struct(`${NETWORKING}.IngressServiceBackend`, 'A Service behind an Ingress.', {
  name: required(text('Name of the Service.')),
  port: embedded(serviceBackendPort, 'Port of the Service.'),
});

const ingressBackend = struct(`${NETWORKING}.IngressBackend`, 'Where requests go.', {
  service: optionalStruct(ingressServiceBackend, 'A Service.'),
  resource: optionalStruct(typedReference, 'Another object in the same namespace.'),
});

const ingressTLS = struct(`${NETWORKING}.IngressTLS`, 'A certificate and its hosts.', {
  hosts: textList('Hosts of the certificate.'),
  secretName: text('Secret with the certificate.'),
});

const httpIngressPath = struct(`${NETWORKING}.HTTPIngressPath`, 'A path and its backend.', {
  path: text('Path of the request.'),
  pathType: required(pointer(text('Exact, Prefix or ImplementationSpecific.'))),
  backend: required(embedded(ingressBackend, 'Where requests go.')),
});

const httpIngressRuleValue = struct(`${NETWORKING}.HTTPIngressRuleValue`, 'Paths of a host.', {
  paths: required(list(httpIngressPath, 'The paths.')),
});

const ingressRule = struct(`${NETWORKING}.IngressRule`, 'A host and its paths.', {
  host: text('The host; all if not set.'),
  http: optionalStruct(httpIngressRuleValue, 'Paths of the host.'),
});

const ingressSpec = struct(`${NETWORKING}.IngressSpec`, 'Desired state of an Ingress.', {
  ingressClassName: pointer(text('Class of the Ingress.')),
  defaultBackend: optionalStruct(ingressBackend, 'Where requests go that match no rule.'),
  tls: list(ingressTLS, 'Certificates.'),
  rules: list(ingressRule, 'Hosts and paths.'),
});

const ingressPortStatus = struct(`${NETWORKING}.IngressPortStatus`, 'State of one port.', {
  port: required(int32('The port.')),
  protocol: required(text('TCP, UDP or SCTP.')),
  error: pointer(text('Why the port does not work.')),
});

const ingressLoadBalancerIngress = struct(
  `${NETWORKING}.IngressLoadBalancerIngress`,
  'An address of a load balancer.',
  {
    ip: text('Its address.'),
    hostname: text('Its DNS name.'),
    ports: list(ingressPortStatus, 'State of its ports.'),
  },
);

const ingressLoadBalancerStatus = struct(`${NETWORKING}.IngressLoadBalancerStatus`, 'State of a load balancer.', {
  ingress: list(ingressLoadBalancerIngress, 'Its addresses.'),
});

const ingressStatus = struct(`${NETWORKING}.IngressStatus`, 'Observed state of an Ingress.', {
  loadBalancer: embedded(ingressLoadBalancerStatus, 'State of the load balancer.'),
});

export const ingress: StructSchema = kindStruct(
  `${NETWORKING}.Ingress`,
  { group: 'networking.k8s.io', version: 'v1', kind: 'Ingress' },
  'Ingress is a collection of rules that allow inbound connections to reach Services. It is stored here; no traffic is routed.',
  {
    metadata,
    spec: embedded(ingressSpec, 'Desired state of the Ingress.'),
    status: embedded(ingressStatus, 'Observed state of the Ingress.'),
  },
);

const ingressClassParametersReference = struct(
  `${NETWORKING}.IngressClassParametersReference`,
  'Names the settings of a class.',
  {
    apiGroup: pointer(text('API group of the settings.')),
    kind: required(text('Kind of the settings.')),
    name: required(text('Name of the settings.')),
    scope: pointer(text('Cluster or Namespace.')),
    namespace: pointer(text('Namespace of the settings.')),
  },
);

const ingressClassSpec = struct(`${NETWORKING}.IngressClassSpec`, 'Definition of a class of Ingresses.', {
  controller: text('Name of the controller.'),
  parameters: optionalStruct(ingressClassParametersReference, 'Settings of the class.'),
});

export const ingressClass: StructSchema = kindStruct(
  `${NETWORKING}.IngressClass`,
  { group: 'networking.k8s.io', version: 'v1', kind: 'IngressClass' },
  'IngressClass represents the class of the Ingress, referenced by the Ingress Spec.',
  {
    metadata,
    spec: embedded(ingressClassSpec, 'Definition of the class.'),
  },
);

const networkPolicyPort = struct(`${NETWORKING}.NetworkPolicyPort`, 'Ports that a rule applies to.', {
  protocol: pointer(text('TCP, UDP or SCTP.')),
  port: intOrString('Number or name of the port; all if not set.'),
  endPort: pointer(int32('Last port of a range.')),
});

const ipBlock = struct(`${NETWORKING}.IPBlock`, 'A range of addresses.', {
  cidr: required(text('The range.')),
  except: textList('Ranges within it that are excluded.'),
});

const networkPolicyPeer = struct(`${NETWORKING}.NetworkPolicyPeer`, 'The other side of a connection.', {
  podSelector: optionalStruct(labelSelector, 'Pods, by label.'),
  namespaceSelector: optionalStruct(labelSelector, 'Namespaces, by label.'),
  ipBlock: optionalStruct(ipBlock, 'A range of addresses.'),
});

const networkPolicyIngressRule = struct(`${NETWORKING}.NetworkPolicyIngressRule`, 'Incoming traffic that is allowed.', {
  ports: list(networkPolicyPort, 'Ports.'),
  from: list(networkPolicyPeer, 'Sources.'),
});

const networkPolicyEgressRule = struct(`${NETWORKING}.NetworkPolicyEgressRule`, 'Outgoing traffic that is allowed.', {
  ports: list(networkPolicyPort, 'Ports.'),
  to: list(networkPolicyPeer, 'Destinations.'),
});

const networkPolicySpec = struct(`${NETWORKING}.NetworkPolicySpec`, 'Traffic that is allowed to and from pods.', {
  podSelector: embedded(labelSelector, 'Pods that the policy applies to.'),
  ingress: list(networkPolicyIngressRule, 'Incoming traffic that is allowed.'),
  egress: list(networkPolicyEgressRule, 'Outgoing traffic that is allowed.'),
  policyTypes: textList('Ingress, Egress or both.'),
});

export const networkPolicy: StructSchema = kindStruct(
  `${NETWORKING}.NetworkPolicy`,
  { group: 'networking.k8s.io', version: 'v1', kind: 'NetworkPolicy' },
  'NetworkPolicy describes what network traffic is allowed for a set of pods. It is stored here; no traffic is filtered.',
  {
    metadata,
    spec: embedded(networkPolicySpec, 'Traffic that is allowed.'),
  },
);
