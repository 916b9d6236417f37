/**
 * Objects that stand for the API itself: the Service `kubernetes` with its Endpoints and EndpointSlice, and a
 * ComponentStatus. `kubectl cluster-info`, pods and monitoring look for them. A read creates a missing one.
 *
 * The endpoints have the address of the Service: the endpoint of the API has a name and no fixed address, and no
 * traffic is routed to either.
 */

import type { ListPage, ResourceStorage } from '../../api/resource-storage.ts';
import { formatTime } from '../../kubernetes/time.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import type { NewObjectContext } from '../namespaces/contents.ts';
import type { KubeEndpointSlice, KubeEndpoints, KubeObject, KubeService } from '../types.ts';
import { endpoints, endpointslices, services } from './serve.ts';

const NAMESPACE = 'default';
const NAME = 'kubernetes';
/** The first address of the range of Services. */
const ADDRESS = '10.96.0.1';
const PORT = { name: 'https', port: 443, protocol: 'TCP' } as const;

const service: Omit<KubeService, 'metadata'> = {
  spec: { clusterIP: ADDRESS, ports: [{ ...PORT, targetPort: PORT.port }] },
};
const ready: Omit<KubeEndpoints, 'metadata'> = { subsets: [{ addresses: [{ ip: ADDRESS }], ports: [PORT] }] };
const slice: Omit<KubeEndpointSlice, 'metadata'> = {
  addressType: 'IPv4',
  endpoints: [{ addresses: [ADDRESS], conditions: { ready: true } }],
  ports: [PORT],
};

const CONTENTS: ReadonlyMap<ResourceDescriptor, Omit<KubeObject, 'metadata'>> = new Map<
  ResourceDescriptor,
  Omit<KubeObject, 'metadata'>
>([
  [services, service],
  [endpoints, ready],
  [endpointslices, slice],
]);
const LABELS = new Map<ResourceDescriptor, Readonly<Record<string, string>>>([
  [services, { component: 'apiserver', provider: 'kubernetes' }],
  [endpoints, { 'endpointslice.kubernetes.io/skip-mirror': 'true' }],
  [endpointslices, { 'kubernetes.io/service-name': NAME }],
]);

/** @param descriptor of services, endpoints or endpointslices */
export function withApiObject(
  descriptor: ResourceDescriptor,
  storage: ResourceStorage,
  context: () => NewObjectContext,
): ResourceStorage {
  async function ensure(): Promise<KubeObject | undefined> {
    const existing = await storage.get(NAMESPACE, NAME);
    if (existing !== undefined) return existing;
    const { nowMs, uuid } = context();
    const metadata = {
      name: NAME,
      namespace: NAMESPACE,
      uid: uuid(),
      creationTimestamp: formatTime(nowMs),
      labels: { ...LABELS.get(descriptor) },
    };
    const created = await storage.create(
      descriptor.prepareForCreate({ ...CONTENTS.get(descriptor), metadata }, { nowMs }),
    );
    return created.kind === 'written' ? created.object : storage.get(NAMESPACE, NAME);
  }
  return {
    ...storage,
    get: (namespace, name) => (namespace === NAMESPACE && name === NAME ? ensure() : storage.get(namespace, name)),
    async list(query) {
      const isFirst = query.continueAfter === undefined;
      if (isFirst && (query.namespace === '' || query.namespace === NAMESPACE)) await ensure();
      return storage.list(query);
    },
  };
}

/** The one component. It answered, so it is healthy. */
const API_COMPONENT: KubeObject = {
  apiVersion: 'v1',
  kind: 'ComponentStatus',
  metadata: { name: 'nodekeeper' },
  conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }],
};

/** @param empty the storage of a resource that cannot be written */
export const componentStatusStorage = (empty: ResourceStorage): ResourceStorage => ({
  ...empty,
  get: async (_namespace, name) => (name === API_COMPONENT.metadata.name ? API_COMPONENT : undefined),
  list: async ({ continueAfter }): Promise<ListPage> => ({
    items: continueAfter === undefined ? [API_COMPONENT] : [],
  }),
});
