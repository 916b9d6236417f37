/** Which changes agents have to read to route Services, and in which zones. Pure. */
import { ALL_ZONES } from '../../../shared/fleet/nodes/service-readers.ts';
import { isTerminated } from '../../../shared/kinds/pods/resource.ts';
import type { Endpoint, KubeEndpointSlice, KubeObject, KubePod, ObjectRef } from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';

/** Zones that one announcement names. More: it is for all. */
const ZONES_MAX = 16;

/**
 * The zones in which agents must read this change; none: it concerns no agent. A Service or a policy concerns all
 * zones, an endpoint its own one, and one without a zone all of them.
 */
export function concernedZones(
  { resource }: Pick<ObjectRef, 'resource'>,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
): readonly string[] {
  if (resource === 'services' || resource === 'networkpolicies') {
    return jsonEqual(before?.spec, after?.spec) ? [] : [ALL_ZONES];
  }
  return resource === 'endpointslices' ? zonesOfEndpoints(changedEndpoints(before, after)) : [];
}

/** Whether NetworkPolicies may select other addresses. A pod without an address is not selected. */
export function changesPeers(
  { resource }: Pick<ObjectRef, 'resource'>,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
): boolean {
  if (resource === 'namespaces') return !jsonEqual(before?.metadata.labels, after?.metadata.labels);
  return resource === 'pods' && !jsonEqual(podPart(before), podPart(after));
}

const podPart = (pod: KubePod | undefined): unknown =>
  pod?.status?.podIP && !isTerminated(pod) ? [pod.metadata.labels, pod.status.podIP, pod.status.podIPs] : undefined;

/** Two sets of zones as one. */
export function unitedZones(one: readonly string[], other: readonly string[]): readonly string[] {
  const zones = new Set([...one, ...other]);
  return zones.has(ALL_ZONES) || zones.size > ZONES_MAX ? [ALL_ZONES] : [...zones];
}

const zonesOfEndpoints = (endpoints: readonly Endpoint[]): readonly string[] =>
  unitedZones(
    endpoints.map(({ zone }) => zone || ALL_ZONES),
    [],
  );

/** Endpoints that only one of the two has, or all, if what they have in common changed. */
function changedEndpoints(
  before: KubeEndpointSlice | undefined,
  after: KubeEndpointSlice | undefined,
): readonly Endpoint[] {
  const [old, now] = [before?.endpoints ?? [], after?.endpoints ?? []];
  if (!jsonEqual(commonPart(before), commonPart(after))) return [...old, ...now];
  const [oldTexts, nowTexts] = [textsOf(old), textsOf(now)];
  return [
    ...old.filter((_, index) => !nowTexts.set.has(oldTexts.list[index]!)),
    ...now.filter((_, index) => !oldTexts.set.has(nowTexts.list[index]!)),
  ];
}

const commonPart = (slice: KubeEndpointSlice | undefined): unknown => [
  slice?.metadata.labels,
  slice?.addressType,
  slice?.ports,
];

function textsOf(endpoints: readonly Endpoint[]): { readonly list: readonly string[]; readonly set: Set<string> } {
  const list = endpoints.map((endpoint) => JSON.stringify(endpoint));
  return { list, set: new Set(list) };
}
