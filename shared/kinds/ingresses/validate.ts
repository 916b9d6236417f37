/** Ingress, IngressClass and NetworkPolicy (pkg/apis/networking/validation/validation.go). */

import {
  errorsAt,
  forbiddenField,
  immutable,
  invalidValue,
  notSupported,
  oneOf,
  optionalAt,
  required,
  requiredAt,
  tooLong,
} from '../../kubernetes/causes.ts';
import { validateSelector } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { cidrErrors, isStrictSubset } from '../../kubernetes/validate-addresses.ts';
import {
  byteLength,
  domainPathErrors,
  labelErrors,
  pathSegmentErrors,
  portNameErrors,
  subdomainErrors,
  subdomainName,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import { portRange, validatePort } from '../pods/validate-containers.ts';
import { hostNameErrors, serviceName, validateBalancerStatus } from '../services/validate.ts';
import type {
  IngressBackend,
  KubeIngress,
  KubeIngressClass,
  KubeNetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  NetworkPolicyRule,
  TypedLocalObjectReference,
} from '../types.ts';

const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];
const POLICY_TYPES = ['Ingress', 'Egress'];
const CONTROLLER_BYTES_MAX = 250;
const CLASS_ANNOTATION = 'kubernetes.io/ingress.class';
const PATH_PARTS = ['//', '/./', '/../', '%2f', '%2F'];
const PATH_ENDS = ['/..', '/.'];

const validateReference = (reference: TypedLocalObjectReference, field: string): Cause[] => [
  ...(reference.apiGroup === undefined ? [] : errorsAt(`${field}.apiGroup`, reference.apiGroup, subdomainErrors)),
  ...requiredAt(`${field}.kind`, reference.kind, pathSegmentErrors, 'kind is required'),
  ...requiredAt(`${field}.name`, reference.name, pathSegmentErrors, 'name is required'),
];

function validateBackend(backend: IngressBackend | undefined, field: string): Cause[] {
  const { service, resource } = backend ?? {};
  if (resource !== undefined && service !== undefined) {
    return [invalidValue(field, '', 'cannot set both resource and service backends')];
  }
  if (resource !== undefined) return validateReference(resource, `${field}.resource`);
  if (service === undefined) return [invalidValue(field, '', 'resource or service backend is required')];
  const { name: portName = '', number = 0 } = service.port ?? {};
  const causes = requiredAt(`${field}.service.name`, service.name, (name) => serviceName(name, false));
  if (portName !== '' && number !== 0) {
    causes.push(invalidValue(field, '', 'cannot set both port name & port number'));
  } else if (portName !== '') causes.push(...errorsAt(`${field}.service.port.name`, portName, portNameErrors));
  else if (number !== 0) causes.push(...portRange(`${field}.service.port.number`, number));
  else causes.push(required(field, 'port name or number is required'));
  return causes;
}

/** A host, or `*.` and a host. */
function wildcardErrors(host: string): string[] {
  if (!host.includes('*')) return hostNameErrors(host);
  if (host.startsWith('*.')) return subdomainErrors(host.slice(2));
  return ["a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain"];
}

function pathErrors(path: string, type: string): string[] {
  const isSpecific = type === 'ImplementationSpecific';
  const isRelative = !path.startsWith('/') && !(isSpecific && path === '');
  const errors = isRelative ? ['must be an absolute path'] : [];
  if (isSpecific) return errors;
  return [
    ...errors,
    ...PATH_PARTS.filter((part) => path.includes(part)).map((part) => `must not contain '${part}'`),
    ...PATH_ENDS.filter((end) => path.endsWith(end)).map((end) => `cannot end with '${end}'`),
  ];
}

export function validateIngress(ingress: KubeIngress, old: KubeIngress | undefined, subresource: string): Cause[] {
  const causes = validateObjectMetadata(ingress, old, { namespaced: true, name: subdomainName });
  if (subresource === 'status') return [...causes, ...validateBalancerStatus(ingress.status?.loadBalancer?.ingress)];
  const { defaultBackend, rules = [], tls = [], ingressClassName } = ingress.spec ?? {};
  if (defaultBackend !== undefined) causes.push(...validateBackend(defaultBackend, 'spec.defaultBackend'));
  else if (rules.length === 0) {
    causes.push(invalidValue('spec', rules, 'either `defaultBackend` or `rules` must be specified'));
  }
  for (const [index, { host, http }] of rules.entries()) {
    const field = `spec.rules[${index}]`;
    causes.push(...optionalAt(`${field}.host`, host, wildcardErrors));
    if (http === undefined) continue;
    if ((http.paths ?? []).length === 0) causes.push(required(`${field}.http.paths`));
    for (const [at, { path = '', pathType, backend }] of (http.paths ?? []).entries()) {
      const pathField = `${field}.http.paths[${at}]`;
      if (pathType === undefined) {
        causes.push(required(`${pathField}.pathType`, 'pathType must be specified'));
        continue;
      }
      if (PATH_TYPES.includes(pathType)) {
        causes.push(...errorsAt(`${pathField}.path`, path, (text) => pathErrors(text, pathType)));
      } else causes.push(notSupported(`${pathField}.pathType`, pathType, PATH_TYPES));
      causes.push(...validateBackend(backend, `${pathField}.backend`));
    }
  }
  for (const [index, { hosts = [], secretName }] of tls.entries()) {
    const field = `spec.tls[${index}]`;
    for (const [at, host] of hosts.entries()) causes.push(...errorsAt(`${field}.hosts[${at}]`, host, tlsHostErrors));
    causes.push(...optionalAt(`${field}.secretName`, secretName, subdomainErrors));
  }
  if (ingressClassName !== undefined) {
    causes.push(...errorsAt('spec.ingressClassName', ingressClassName, subdomainErrors));
    const annotation = ingress.metadata.annotations?.[CLASS_ANNOTATION];
    if (old === undefined && annotation !== undefined && annotation !== ingressClassName) {
      const why = 'must match `ingressClassName` when both are specified';
      causes.push(invalidValue(`annotations.${CLASS_ANNOTATION}`, annotation, why));
    }
  }
  return causes;
}

const tlsHostErrors = (host: string): string[] => (host.includes('*') ? wildcardErrors(host) : subdomainErrors(host));

function validateParameters(parameters: NonNullable<KubeIngressClass['spec']>['parameters']): Cause[] {
  if (parameters === undefined) return [];
  const { scope, namespace } = parameters;
  const field = 'spec.parameters';
  const causes = [...validateReference(parameters, field), ...oneOf(`${field}.scope`, scope, ['Cluster', 'Namespace'])];
  if (scope === 'Namespace') {
    if (namespace === undefined) {
      causes.push(required(`${field}.namespace`, "`parameters.scope` is set to 'Namespace'"));
    } else causes.push(...errorsAt(`${field}.namespace`, namespace, labelErrors));
  } else if (scope === 'Cluster' && namespace !== undefined) {
    causes.push(forbiddenField(`${field}.namespace`, "`parameters.scope` is set to 'Cluster'"));
  }
  return causes;
}

export function validateIngressClass(ingressClass: KubeIngressClass, old: KubeIngressClass | undefined): Cause[] {
  const { controller = '', parameters } = ingressClass.spec ?? {};
  const field = 'spec.controller';
  return [
    ...validateObjectMetadata(ingressClass, old, { namespaced: false, name: subdomainName }),
    ...(old === undefined ? [] : immutable(field, controller, old.spec?.controller)),
    ...(byteLength(controller) > CONTROLLER_BYTES_MAX ? [tooLong(field, CONTROLLER_BYTES_MAX)] : []),
    ...requiredAt(field, controller, domainPathErrors),
    ...validateParameters(parameters),
  ];
}

function validatePolicyPort({ protocol, port, endPort }: NetworkPolicyPort, field: string): Cause[] {
  const causes = [
    ...oneOf(`${field}.protocol`, protocol, ['TCP', 'UDP', 'SCTP']),
    ...(port === undefined ? [] : validatePort(`${field}.port`, port)),
  ];
  if (endPort === undefined) return causes;
  if (typeof port !== 'number') {
    const what = port === undefined ? 'not specified' : 'non-numeric';
    const why = `may not be specified when \`port\` is ${what}`;
    return [...causes, invalidValue(`${field}.endPort`, endPort, why)];
  }
  if (endPort < port) causes.push(invalidValue(`${field}.endPort`, port, 'must be greater than or equal to `port`'));
  return [...causes, ...portRange(`${field}.endPort`, endPort)];
}

function validatePeer({ podSelector, namespaceSelector, ipBlock }: NetworkPolicyPeer, field: string): Cause[] {
  const causes = [
    ...validateSelector(podSelector, `${field}.podSelector`),
    ...validateSelector(namespaceSelector, `${field}.namespaceSelector`),
  ];
  const hasSelector = podSelector !== undefined || namespaceSelector !== undefined;
  if (ipBlock === undefined) return hasSelector ? causes : [required(field, 'must specify a peer')];
  if (hasSelector) causes.push(forbiddenField(field, 'may not specify both ipBlock and another peer'));
  const { cidr = '', except = [] } = ipBlock;
  causes.push(...requiredAt(`${field}.ipBlock.cidr`, cidr, cidrErrors));
  if (cidrErrors(cidr).length > 0) return causes;
  const errorsOf = (text: string): string[] => {
    const errors = cidrErrors(text);
    return errors.length > 0 || isStrictSubset(text, cidr) ? errors : ['must be a strict subset of `cidr`'];
  };
  return [...causes, ...except.flatMap((each, index) => errorsAt(`${field}.ipBlock.except[${index}]`, each, errorsOf))];
}

const validatePolicyRules = (rules: readonly NetworkPolicyRule[], side: 'from' | 'to', field: string): Cause[] =>
  rules.flatMap((rule, index) => [
    ...(rule.ports ?? []).flatMap((port, at) => validatePolicyPort(port, `${field}[${index}].ports[${at}]`)),
    ...(rule[side] ?? []).flatMap((peer, at) => validatePeer(peer, `${field}[${index}].${side}[${at}]`)),
  ]);

export function validateNetworkPolicy(policy: KubeNetworkPolicy, old: KubeNetworkPolicy | undefined): Cause[] {
  const { podSelector, policyTypes = [], ingress = [], egress = [] } = policy.spec ?? {};
  const causes = [
    ...validateObjectMetadata(policy, old, { namespaced: true, name: subdomainName }),
    ...validateSelector(podSelector, 'spec.podSelector'),
    ...validatePolicyRules(ingress, 'from', 'spec.ingress'),
    ...validatePolicyRules(egress, 'to', 'spec.egress'),
  ];
  const field = 'spec.policyTypes';
  if (policyTypes.length > POLICY_TYPES.length) {
    return [...causes, invalidValue(field, policyTypes, 'may not specify more than two policyTypes')];
  }
  return [...causes, ...policyTypes.flatMap((type, index) => oneOf(`${field}[${index}]`, type, POLICY_TYPES))];
}
