import { storedResource } from '../stored-resource.ts';
import type { KubeService } from '../types.ts';

export const SERVICES = storedResource({
  group: '',
  resource: 'services',
  kind: 'Service',
  scope: 'namespaced',
  selectableFields: {
    'spec.clusterIP': (object: KubeService) => object.spec?.clusterIP ?? '',
    'spec.type': (object: KubeService) => object.spec?.type ?? '',
  },
});

export const ENDPOINTS = storedResource({
  group: '',
  resource: 'endpoints',
  kind: 'Endpoints',
  scope: 'namespaced',
});

export const ENDPOINT_SLICES = storedResource({
  group: 'discovery.k8s.io',
  resource: 'endpointslices',
  kind: 'EndpointSlice',
  scope: 'namespaced',
});
