/** Ingresses, their classes, and NetworkPolicies. No traffic is routed by an Ingress. Agents filter by policies. */

import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutNulls } from '../../kubernetes/normal-form.ts';
import { ageOf, nameOf, selectorCell, shortList } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesSpec, preparesStatus, STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubeIngress, KubeIngressClass, KubeNetworkPolicy, NetworkPolicyRule } from '../types.ts';
import { INGRESS_CLASSES, INGRESSES, NETWORK_POLICIES } from './resource.ts';
import { validateIngress, validateIngressClass, validateNetworkPolicy } from './validate.ts';

function hostsCell({ spec = {} }: KubeIngress): string {
  const hosts = (spec.rules ?? []).map(({ host = '' }) => host).filter((host) => host !== '');
  return hosts.length === 0 ? '*' : shortList(hosts, 3);
}

export const ingresses: ResourceDescriptor = servedKind(INGRESSES, {
  shortNames: ['ing'],
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Class', 'Class of the Ingress.'),
    textColumn('Hosts', 'Hosts of the rules.'),
    textColumn('Address', 'Addresses of the load balancer.'),
    textColumn('Ports', 'Ports that clients connect to.'),
    ageColumn,
  ],
  row: (object: KubeIngress, nowMs) => [
    nameOf(object),
    object.spec?.ingressClassName ?? NONE,
    hostsCell(object),
    (object.status?.loadBalancer?.ingress ?? []).map(({ ip = '', hostname = '' }) => ip || hostname).join(','),
    (object.spec?.tls ?? []).length > 0 ? '80, 443' : '80',
    ageOf(object, nowMs),
  ],
  prepare: preparesStatus(INGRESSES, (spec = {}) => withoutNulls(spec), { emptyStatus: { loadBalancer: {} } }),
  validate: validateIngress,
});

function storedClassSpec(given: KubeIngressClass['spec'] = {}): NonNullable<KubeIngressClass['spec']> {
  const { parameters, ...spec } = withoutNulls(given);
  return parameters === undefined ? spec : { ...spec, parameters: { scope: 'Cluster', ...parameters } };
}

function parametersCell({ spec }: KubeIngressClass): string {
  const { apiGroup, kind = '', name = '' } = spec?.parameters ?? {};
  if (spec?.parameters === undefined) return NONE;
  return `${kind}${apiGroup === undefined ? '' : `.${apiGroup}`}/${name}`;
}

export const ingressclasses: ResourceDescriptor = servedKind(INGRESS_CLASSES, {
  columns: [
    nameColumn,
    textColumn('Controller', 'Controller of the class.'),
    textColumn('Parameters', 'Settings of the class.'),
    ageColumn,
  ],
  row: (object: KubeIngressClass, nowMs) => [
    nameOf(object),
    object.spec?.controller ?? '',
    parametersCell(object),
    ageOf(object, nowMs),
  ],
  prepare: preparesSpec(INGRESS_CLASSES, storedClassSpec),
  validate: validateIngressClass,
});

const storedRule = (rule: NetworkPolicyRule): NetworkPolicyRule =>
  rule.ports === undefined
    ? rule
    : { ...rule, ports: rule.ports.map((port) => ({ ...port, protocol: port.protocol || 'TCP' })) };

/** Defaults of pkg/apis/networking/v1/defaults.go. */
function storedPolicySpec(given: KubeNetworkPolicy['spec'] = {}): NonNullable<KubeNetworkPolicy['spec']> {
  const spec = withoutNulls(given);
  const { ingress, egress, policyTypes = [] } = spec;
  const types = (egress ?? []).length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
  return {
    ...spec,
    ...(ingress === undefined ? {} : { ingress: ingress.map(storedRule) }),
    ...(egress === undefined ? {} : { egress: egress.map(storedRule) }),
    policyTypes: policyTypes.length > 0 ? policyTypes : types,
  };
}

export const networkpolicies: ResourceDescriptor = servedKind(NETWORK_POLICIES, {
  shortNames: ['netpol'],
  columns: [nameColumn, textColumn('Pod-Selector', 'Pods that the policy applies to.'), ageColumn],
  row: (object: KubeNetworkPolicy, nowMs) => [
    nameOf(object),
    selectorCell(object.spec?.podSelector),
    ageOf(object, nowMs),
  ],
  prepare: preparesSpec(NETWORK_POLICIES, storedPolicySpec),
  validate: validateNetworkPolicy,
});
