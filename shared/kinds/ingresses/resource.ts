import { storedResource } from '../stored-resource.ts';

const GROUP = 'networking.k8s.io';

export const INGRESSES = storedResource({
  group: GROUP,
  resource: 'ingresses',
  kind: 'Ingress',
  scope: 'namespaced',
});

export const INGRESS_CLASSES = storedResource({
  group: GROUP,
  resource: 'ingressclasses',
  kind: 'IngressClass',
  scope: 'cluster',
});

export const NETWORK_POLICIES = storedResource({
  group: GROUP,
  resource: 'networkpolicies',
  kind: 'NetworkPolicy',
  scope: 'namespaced',
});
