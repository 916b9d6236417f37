/**
 * Objects that stand for the API itself: the Service `kubernetes` with its Endpoints and EndpointSlice, and a
 * ComponentStatus. `kubectl cluster-info`, pods and monitoring look for them. A read or a watch creates a missing one.
 *
 * The endpoints have the address of the API where it has one. On AWS it has a name and no fixed address: they have the
 * address of the Service, and no traffic is routed to either.
 */

import type { ListPage, ResourceStorage } from '../../api/resource-storage.ts';
import { sameJson } from '../../kubernetes/causes.ts';
import { isStatusError } from '../../kubernetes/http.ts';
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

/** What follows the address of the API. The Service does not: its address never changes. */
function endpointsAt(descriptor: ResourceDescriptor, ip: string, port: number): Omit<KubeObject, 'metadata'> {
  const ports = [{ ...PORT, port }];
  const mirrored: Omit<KubeEndpoints, 'metadata'> = { subsets: [{ addresses: [{ ip }], ports }] };
  const slice: Omit<KubeEndpointSlice, 'metadata'> = {
    addressType: 'IPv4',
    endpoints: [{ addresses: [ip], conditions: { ready: true } }],
    ports,
  };
  return descriptor === endpoints ? mirrored : slice;
}

const LABELS = new Map<ResourceDescriptor, Readonly<Record<string, string>>>([
  [services, { component: 'apiserver', provider: 'kubernetes' }],
  [endpoints, { 'endpointslice.kubernetes.io/skip-mirror': 'true' }],
  [endpointslices, { 'kubernetes.io/service-name': NAME }],
]);

const isPartOf = (content: object, object: object): boolean =>
  Object.entries(content).every(([key, value]) => sameJson(value, Reflect.get(object, key)));

/** @param descriptor of services, endpoints or endpointslices */
export function withApiObject(
  descriptor: ResourceDescriptor,
  storage: ResourceStorage,
  context: () => NewObjectContext,
): ResourceStorage {
  async function ensure(): Promise<KubeObject | undefined> {
    const existing = await storage.get(NAMESPACE, NAME);
    const { nowMs, uuid, apiAddress } = context();
    const address = apiAddress?.();
    const { ip, port } = address ?? { ip: ADDRESS, port: PORT.port };
    const content = descriptor === services ? service : endpointsAt(descriptor, ip, port);
    if (existing !== undefined) {
      // A process that knows no address leaves what another one wrote.
      const isCurrent = address === undefined || descriptor === services || isPartOf(content, existing);
      if (isCurrent) return existing;
      const updated = await storage.update({ ...existing, ...content }, existing);
      return updated.kind === 'written' ? updated.object : storage.get(NAMESPACE, NAME);
    }
    const metadata = {
      name: NAME,
      namespace: NAMESPACE,
      uid: uuid(),
      creationTimestamp: formatTime(nowMs),
      labels: { ...LABELS.get(descriptor) },
    };
    try {
      const created = await storage.create(descriptor.prepareForCreate({ ...content, metadata }, { nowMs }));
      if (created.kind === 'written') return created.object;
    } catch (refusal) {
      // Another reader holds the address and creates the Service, or was killed before it did.
      if (!isStatusError(refusal)) throw refusal;
    }
    return storage.get(NAMESPACE, NAME);
  }
  return {
    ...storage,
    get: (namespace, name) => (namespace === NAMESPACE && name === NAME ? ensure() : storage.get(namespace, name)),
    async list(query) {
      const isFirst = query.continueAfter === undefined;
      if (isFirst && (query.namespace === '' || query.namespace === NAMESPACE)) await ensure();
      return storage.list(query);
    },
    async makeInitial() {
      await ensure();
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
