/** Ingress, IngressClass and NetworkPolicy (pkg/apis/networking/validation/validation.go). */
import type { IngressBackend, KubeIngress, KubeIngressClass, KubeNetworkPolicy } from '../application-types.ts';
import type { Cause } from '../status.ts';
import { immutable, invalidValue, notSupported, required } from './causes.ts';
import { validateSelector } from './disruption-budget.ts';
import { validateObjectMetadata } from './metadata.ts';
import { subdomainErrors, subdomainName } from './names.ts';
import { portRange } from './probes.ts';

const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];
const POLICY_TYPES = ['Egress', 'Ingress'];
const CONTROLLER_LENGTH_MAX = 250;

function validateBackend(backend: IngressBackend | undefined, field: string): Cause[] {
  const { service, resource } = backend ?? {};
  if (resource !== undefined && service !== undefined) {
    return [invalidValue(field, '', 'cannot set both resource and service backends')];
  }
  if (resource !== undefined) return [];
  if (service === undefined) return [required(field, 'service or resource backend is required')];
  const { name = '', port = {} } = service;
  const causes: Cause[] = [];
  if (name === '') causes.push(required(`${field}.service.name`));
  if (port.name !== undefined && port.number !== undefined) {
    causes.push(invalidValue(field, '', 'cannot set both port name & port number'));
  } else if (port.number !== undefined) causes.push(...portRange(`${field}.service.port.number`, port.number));
  else if ((port.name ?? '') === '') causes.push(required(field, 'port name or number is required'));
  return causes;
}

function validateHost(host: string, field: string): Cause[] {
  const name = host.startsWith('*.') ? host.slice(2) : host;
  return subdomainErrors(name).map((error) => invalidValue(field, host, error));
}

export function validateIngress(ingress: KubeIngress, old: KubeIngress | undefined, subresource: string): Cause[] {
  const causes = validateObjectMetadata(ingress, old, { namespaced: true, name: subdomainName });
  if (subresource === 'status') return causes;
  const { defaultBackend, rules = [] } = ingress.spec ?? {};
  if (defaultBackend !== undefined) causes.push(...validateBackend(defaultBackend, 'spec.defaultBackend'));
  else if (rules.length === 0) {
    causes.push(invalidValue('spec', rules, 'either `defaultBackend` or `rules` must be specified'));
  }
  for (const [index, { host = '', http }] of rules.entries()) {
    const field = `spec.rules[${index}]`;
    if (host !== '') causes.push(...validateHost(host, `${field}.host`));
    if (http === undefined) continue;
    if ((http.paths ?? []).length === 0) causes.push(required(`${field}.http.paths`));
    for (const [at, { path = '', pathType, backend }] of (http.paths ?? []).entries()) {
      const pathField = `${field}.http.paths[${at}]`;
      if (pathType === undefined) causes.push(required(`${pathField}.pathType`, 'pathType must be specified'));
      else if (!PATH_TYPES.includes(pathType)) {
        causes.push(notSupported(`${pathField}.pathType`, pathType, PATH_TYPES));
      } else if (pathType !== 'ImplementationSpecific' && !path.startsWith('/')) {
        causes.push(invalidValue(`${pathField}.path`, path, 'must be an absolute path'));
      }
      causes.push(...validateBackend(backend, `${pathField}.backend`));
    }
  }
  return causes;
}

export function validateIngressClass(ingressClass: KubeIngressClass, old: KubeIngressClass | undefined): Cause[] {
  const causes = validateObjectMetadata(ingressClass, old, { namespaced: false, name: subdomainName });
  const { controller = '' } = ingressClass.spec ?? {};
  if (old !== undefined) return [...causes, ...immutable('spec.controller', controller, old.spec?.controller)];
  if (controller === '') causes.push(required('spec.controller'));
  else if (controller.length > CONTROLLER_LENGTH_MAX) {
    causes.push(
      invalidValue('spec.controller', controller, `must be no more than ${CONTROLLER_LENGTH_MAX} characters`),
    );
  } else if (!controller.includes('/')) {
    causes.push(invalidValue('spec.controller', controller, 'must be a domain-prefixed path (such as "acme.io/foo")'));
  }
  return causes;
}

export function validateNetworkPolicy(policy: KubeNetworkPolicy, old: KubeNetworkPolicy | undefined): Cause[] {
  const { podSelector, policyTypes = [] } = policy.spec ?? {};
  const causes = [
    ...validateObjectMetadata(policy, old, { namespaced: true, name: subdomainName }),
    ...validateSelector(podSelector, 'spec.podSelector'),
  ];
  for (const [index, type] of policyTypes.entries()) {
    if (!POLICY_TYPES.includes(type)) causes.push(notSupported(`spec.policyTypes[${index}]`, type, POLICY_TYPES));
  }
  return causes;
}
