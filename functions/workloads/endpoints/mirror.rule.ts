/**
 * EndpointSlices with the addresses of Endpoints that a client writes for a Service without a selector. Pure.
 * Source: pkg/controller/endpointslicemirroring/{endpointslicemirroring_controller,reconciler,utils}.go.
 */
import { defined } from '../../../shared/defined.ts';
import type {
  Endpoint,
  EndpointAddress,
  EndpointPort,
  KubeEndpointSlice,
  KubeEndpoints,
} from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import { type AddressFamily, addressFamily } from '../../../shared/kubernetes/validate-addresses.ts';
import { freeName, MANAGED_BY_LABEL, portsText, SERVICE_NAME_LABEL, type SlicePlan } from './rule.ts';

const MIRROR_MANAGER = 'endpointslicemirroring-controller.k8s.io';
/** Annotations of the Endpoints alone. */
const OWN_ANNOTATIONS = [
  'kubectl.kubernetes.io/last-applied-configuration',
  'endpoints.kubernetes.io/last-change-trigger-time',
];
/** The limit for one subset. */
const ADDRESSES_MAX = 1_000;
/**
 * The most endpoints of one slice. Upstream has 1,000, which may not fit an object here: an address takes 38 characters
 * more in a slice than in the largest Endpoints that a client may write.
 */
const SLICE_ENDPOINTS_MAX = 400;

export const isMirrorOf =
  (name: string) =>
  ({ metadata: { labels = {}, deletionTimestamp } }: KubeEndpointSlice): boolean =>
    labels[SERVICE_NAME_LABEL] === name &&
    labels[MANAGED_BY_LABEL] === MIRROR_MANAGER &&
    deletionTimestamp === undefined;

interface Group {
  /** Of its family and ports. */
  readonly key: string;
  readonly family: AddressFamily;
  readonly ports: readonly EndpointPort[];
  readonly endpoints: Endpoint[];
}

/**
 * One slice for each address family and set of ports, more if they are many. @param stored the slices that mirror these
 * Endpoints
 */
export function mirroredSlices(endpoints: KubeEndpoints, stored: readonly KubeEndpointSlice[]): SlicePlan {
  const names = new Set(stored.map(({ metadata }) => metadata.name ?? ''));
  const create: KubeEndpointSlice[] = [];
  const update: SlicePlan['update'][number][] = [];
  const used = new Set<KubeEndpointSlice>();
  const unused = Map.groupBy(stored, ({ addressType = '', ports }) => keyOf(addressType, portsText(ports)));
  for (const group of groupsOf(endpoints)) {
    const previous = unused.get(group.key)?.shift();
    if (previous === undefined) {
      create.push(newSlice(endpoints, group, freeName(endpoints, group.family, names)));
      continue;
    }
    used.add(previous);
    const { annotations: _, ...metadata } = previous.metadata;
    const object = { ...previous, metadata: { ...metadata, ...mirroredMetadata(endpoints) }, ...content(group) };
    if (!jsonEqual(object, previous)) update.push({ previous, object });
  }
  return { create, update, remove: stored.filter((each) => !used.has(each)) };
}

const keyOf = (family: string, portsOfGroup: string): string => `${family} ${portsOfGroup}`;

function groupsOf({ subsets = [] }: KubeEndpoints): readonly Group[] {
  const groups: Group[] = [];
  /** By family and ports: the one with room. */
  const open = new Map<string, Group>();
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    const named = ports.map(({ name, ...port }) => ({ ...(name ? { name } : {}), ...port }));
    const text = portsText(ports);
    // Made once for thousands of addresses with thousands of ports.
    const keys = { IPv4: keyOf('IPv4', text), IPv6: keyOf('IPv6', text) };
    const all = [
      ...addresses.map((address) => ({ address, ready: true })),
      ...notReadyAddresses.map((address) => ({ address, ready: false })),
    ];
    for (const { address, ready } of all.slice(0, ADDRESSES_MAX)) {
      const family = addressFamily(address.ip ?? '', 'ip');
      if (family === undefined) continue;
      const key = keys[family];
      const last = open.get(key);
      const isFull = last === undefined || last.endpoints.length >= SLICE_ENDPOINTS_MAX;
      const group = isFull ? { key, family, ports: named, endpoints: [] } : last;
      if (isFull) groups.push(group);
      open.set(key, group);
      group.endpoints.push(endpointOf(address, ready));
    }
  }
  return groups;
}

const endpointOf = ({ ip = '', hostname, nodeName, targetRef }: EndpointAddress, ready: boolean): Endpoint => ({
  addresses: [ip],
  conditions: { ready },
  ...defined({ hostname, nodeName, targetRef }),
});

const content = ({ ports, endpoints }: Group): Pick<KubeEndpointSlice, 'endpoints' | 'ports'> => ({
  endpoints,
  ports: ports.map((port) => ({ name: '', ...port })),
});

function mirroredMetadata({ metadata }: KubeEndpoints) {
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([name]) => !OWN_ANNOTATIONS.includes(name));
  return {
    labels: {
      ...metadata.labels,
      [SERVICE_NAME_LABEL]: metadata.name ?? '',
      [MANAGED_BY_LABEL]: MIRROR_MANAGER,
    },
    ...(annotations.length === 0 ? {} : { annotations: Object.fromEntries(annotations) }),
  };
}

function newSlice(endpoints: KubeEndpoints, group: Group, name: string): KubeEndpointSlice {
  const { name: owner = '', namespace = '', uid = '' } = endpoints.metadata;
  const reference = {
    apiVersion: 'v1',
    kind: 'Endpoints',
    name: owner,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
  return {
    metadata: {
      name,
      generateName: `${owner}-`,
      namespace,
      ...mirroredMetadata(endpoints),
      ownerReferences: [reference],
    },
    addressType: group.family,
    ...content(group),
  };
}
