import type { Descriptions } from './descriptions.ts';

export const networking: Descriptions = {
  'networking/v1.HTTPIngressPath': {
    '': 'A path and its backend.',
    path: 'Path of the request.',
    pathType: 'Exact, Prefix or ImplementationSpecific.',
    backend: 'Where requests go.',
  },
  'networking/v1.HTTPIngressRuleValue': {
    '': 'Paths of a host.',
    paths: 'The paths.',
  },
  'networking/v1.IPBlock': {
    '': 'A range of addresses.',
    cidr: 'The range.',
    except: 'Ranges within it that are excluded.',
  },
  'networking/v1.Ingress': {
    '': 'Ingress is a collection of rules that allow inbound connections to reach Services. It is stored here; no traffic is routed.',
    spec: 'Desired state of the Ingress.',
    status: 'Observed state of the Ingress.',
  },
  'networking/v1.IngressBackend': {
    '': 'Where requests go.',
    service: 'A Service.',
    resource: 'Another object in the same namespace.',
  },
  'networking/v1.IngressClass': {
    '': 'IngressClass represents the class of the Ingress, referenced by the Ingress Spec.',
    spec: 'Definition of the class.',
  },
  'networking/v1.IngressClassParametersReference': {
    '': 'Names the settings of a class.',
    apiGroup: 'API group of the settings.',
    kind: 'Kind of the settings.',
    name: 'Name of the settings.',
    scope: 'Cluster or Namespace.',
    namespace: 'Namespace of the settings.',
  },
  'networking/v1.IngressClassSpec': {
    '': 'Definition of a class of Ingresses.',
    controller: 'Name of the controller.',
    parameters: 'Settings of the class.',
  },
  'networking/v1.IngressLoadBalancerIngress': {
    '': 'An address of a load balancer.',
    ip: 'Its address.',
    hostname: 'Its DNS name.',
    ports: 'State of its ports.',
  },
  'networking/v1.IngressLoadBalancerStatus': {
    '': 'State of a load balancer.',
    ingress: 'Its addresses.',
  },
  'networking/v1.IngressPortStatus': {
    '': 'State of one port.',
    port: 'The port.',
    protocol: 'TCP, UDP or SCTP.',
    error: 'Why the port does not work.',
  },
  'networking/v1.IngressRule': {
    '': 'A host and its paths.',
    host: 'The host; all if not set.',
    http: 'Paths of the host.',
  },
  'networking/v1.IngressServiceBackend': {
    '': 'A Service behind an Ingress.',
    name: 'Name of the Service.',
    port: 'Port of the Service.',
  },
  'networking/v1.IngressSpec': {
    '': 'Desired state of an Ingress.',
    ingressClassName: 'Class of the Ingress.',
    defaultBackend: 'Where requests go that match no rule.',
    tls: 'Certificates.',
    rules: 'Hosts and paths.',
  },
  'networking/v1.IngressStatus': {
    '': 'Observed state of an Ingress.',
    loadBalancer: 'State of the load balancer.',
  },
  'networking/v1.IngressTLS': {
    '': 'A certificate and its hosts.',
    hosts: 'Hosts of the certificate.',
    secretName: 'Secret with the certificate.',
  },
  'networking/v1.NetworkPolicy': {
    '': 'NetworkPolicy describes what network traffic is allowed for a set of pods. Agents that route Services enforce it.',
    spec: 'Traffic that is allowed.',
  },
  'networking/v1.NetworkPolicyEgressRule': {
    '': 'Outgoing traffic that is allowed.',
    ports: 'Ports.',
    to: 'Destinations.',
  },
  'networking/v1.NetworkPolicyIngressRule': {
    '': 'Incoming traffic that is allowed.',
    ports: 'Ports.',
    from: 'Sources.',
  },
  'networking/v1.NetworkPolicyPeer': {
    '': 'The other side of a connection.',
    podSelector: 'Pods, by label.',
    namespaceSelector: 'Namespaces, by label.',
    ipBlock: 'A range of addresses.',
  },
  'networking/v1.NetworkPolicyPort': {
    '': 'Ports that a rule applies to.',
    protocol: 'TCP, UDP or SCTP.',
    port: 'Number or name of the port; all if not set.',
    endPort: 'Last port of a range.',
  },
  'networking/v1.NetworkPolicySpec': {
    '': 'Traffic that is allowed to and from pods.',
    podSelector: 'Pods that the policy applies to.',
    ingress: 'Incoming traffic that is allowed.',
    egress: 'Outgoing traffic that is allowed.',
    policyTypes: 'Ingress, Egress or both.',
  },
  'networking/v1.ServiceBackendPort': {
    '': 'A port of a Service.',
    name: 'Name of the port.',
    number: 'Number of the port.',
  },
};
