/**
 * What a pod needs of its node: counted resources, its class, host ports and claims.
 *
 * - The resources of a container count on its node and in quotas. While the node changes them: the highest of what the
 *   spec wants, what the node promised and what the container has. Source: determineEffectiveRequests in
 *   staging/src/k8s.io/component-helpers/resource/helpers.go.
 * - The quality of service orders evictions when a node runs out of resources (pkg/apis/core/v1/helper/qos/qos.go).
 * - Two pods of a node never have the same host port, as the scheduler and a kubelet compare them. Source: HostPortInfo
 *   in staging/src/k8s.io/kube-scheduler/framework/types.go.
 * - The claims are those that the pod names, and those of its ephemeral volumes, which are named after it.
 */

import { NAME_LENGTH_MAX } from '../../kubernetes/kubernetes.ts';
import { compareQuantities, parseQuantity } from '../../kubernetes/quantity.ts';
import type { Container, KubePod, PodQOSClass, PodSpec, ResourceList, ResourceRequirements, Volume } from '../types.ts';

export interface CountedResources {
  readonly requests?: ResourceList | undefined;
  readonly limits?: ResourceList | undefined;
}

function isMore(text: string, than: string): boolean {
  const [one, other] = [parseQuantity(String(text)), parseQuantity(String(than))];
  return one.kind === 'parsed' && other.kind === 'parsed' && compareQuantities(one.quantity, other.quantity) > 0;
}

function highestOf(lists: readonly (ResourceList | undefined)[]): ResourceList {
  const highest: ResourceList = {};
  for (const list of lists) {
    for (const name in list) {
      const [amount, known] = [list[name]!, highest[name]];
      if (known === undefined || (known !== amount && isMore(amount, known))) highest[name] = amount;
    }
  }
  return highest;
}

/** A node that can never do a resize keeps the resources that the container has. */
const isInfeasible = ({ status }: KubePod): boolean =>
  status?.conditions?.find(({ type }) => type === 'PodResizePending')?.reason === 'Infeasible';

/** An init container counts by its spec, unless it is a sidecar. */
export function countedResources(pod: KubePod): (container: Container) => CountedResources {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  // A pod may have thousands of containers: none is searched for.
  const [own, first] = [containerStatuses, initContainerStatuses].map(
    (statuses) => new Map(statuses.map((each) => [each.name, each])),
  );
  const keepsFormer = isInfeasible(pod);
  return ({ name, restartPolicy, resources = {} }) => {
    const found = own!.get(name) ?? (restartPolicy === 'Always' ? first!.get(name) : undefined);
    if (found?.resources === undefined) return resources;
    const wanted = keepsFormer ? {} : resources;
    return {
      requests: highestOf([wanted.requests, found.resources.requests, found.allocatedResources]),
      limits: highestOf([wanted.limits, found.resources.limits]),
    };
  };
}

/** What counts, as a text. Two states of a pod with the same text count the same. */
export function countedText(pod: KubePod): string {
  const { spec, status } = pod;
  return JSON.stringify([
    [spec?.containers, spec?.initContainers].map((list) => list?.map(({ resources }) => resources)),
    [status?.containerStatuses, status?.initContainerStatuses].map((list) =>
      list?.map(({ name, resources, allocatedResources }) => resources && [name, resources, allocatedResources]),
    ),
    isInfeasible(pod),
  ]);
}

export type QosClass = PodQOSClass;

/** Only these two resources determine the class. */
const COUNTED = ['cpu', 'memory'] as const;

type Amounts = Map<string, bigint>;

/** Adds the amounts of the counted resources; zero and negative amounts do not count. */
function addCounted(total: Amounts, amounts: ResourceList = {}): ReadonlySet<string> {
  const found = new Set<string>();
  for (const name of COUNTED) {
    const value = amounts[name];
    if (value === undefined) continue;
    const parsed = parseQuantity(String(value));
    if (parsed.kind !== 'parsed' || parsed.quantity.nanos <= 0n) continue;
    found.add(name);
    total.set(name, (total.get(name) ?? 0n) + parsed.quantity.nanos);
  }
  return found;
}

const hasAmounts = ({ requests, limits }: ResourceRequirements): boolean =>
  [requests, limits].some((amounts = {}) => COUNTED.some((name) => name in amounts));

/** The class by the spec alone. Resources of the pod, if set, count instead of those of its containers. */
export function qosClassOf(spec: PodSpec): QosClass {
  const podResources = spec.resources ?? {};
  const holders = hasAmounts(podResources)
    ? [podResources]
    : [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ resources }) => resources ?? {});
  const requests: Amounts = new Map();
  const limits: Amounts = new Map();
  let limited = true;
  for (const resources of holders) {
    addCounted(requests, resources.requests);
    const found = addCounted(limits, resources.limits);
    if (found.size < COUNTED.length) limited = false;
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort';
  const same = requests.size === limits.size && [...requests].every(([name, amount]) => limits.get(name) === amount);
  return limited && same ? 'Guaranteed' : 'Burstable';
}

/** The class of a stored pod: that of its status, which never changes, or else that of its spec. */
export const podQosClass = (pod: KubePod): QosClass => pod.status?.qosClass ?? qosClassOf(pod.spec ?? {});

export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

/** All IPv4 addresses. `::` is an ordinary address here, as upstream. */
const ANY = '0.0.0.0';
const NONE: readonly never[] = Object.freeze([]);

/** Ports of containers and sidecars. Other init containers run before them. */
export function hostPortsOf(spec: PodSpec): readonly HostPort[] {
  const ports: HostPort[] = [];
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  for (const { ports: listed } of [...(spec.containers ?? []), ...sidecars]) {
    for (const { hostPort = 0, hostIP = '', protocol = 'TCP' } of listed ?? []) {
      if (hostPort > 0) ports.push({ ip: hostIP === '' ? ANY : hostIP, protocol: protocol || 'TCP', port: hostPort });
    }
  }
  return ports.length === 0 ? NONE : ports;
}

/** Whether used ports conflict with these. Made once for many nodes: a pod may have thousands of ports. */
export function conflictsWith(wanted: readonly HostPort[]): (used: readonly HostPort[]) => boolean {
  const byPort = new Map<string, Set<string>>();
  for (const { ip, protocol, port } of wanted) {
    const key = `${protocol}/${port}`;
    const ips = byPort.get(key);
    if (ips === undefined) byPort.set(key, new Set([ip]));
    else ips.add(ip);
  }
  return (used) =>
    used.some(({ ip, protocol, port }) => {
      const ips = byPort.get(`${protocol}/${port}`);
      return ips !== undefined && (ip === ANY || ips.has(ANY) || ips.has(ip));
    });
}

/** Source: EphemeralVolumeClaimName of component-helpers. A key of the store is not longer than a name may be. */
export const ephemeralClaimName = ({ metadata }: KubePod, volume: Pick<Volume, 'name'>): string =>
  `${metadata.name ?? ''}-${volume.name}`.slice(0, NAME_LENGTH_MAX);

/** The claim of a volume; undefined: it is of another source. */
export function claimNameOf(pod: KubePod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim !== undefined) return volume.persistentVolumeClaim.claimName ?? '';
  return volume.ephemeral === undefined ? undefined : ephemeralClaimName(pod, volume);
}

/** Each volume's, in their order. */
export function claimNamesOf(pod: KubePod): readonly string[] {
  const names = (pod.spec?.volumes ?? NONE).flatMap((volume) => claimNameOf(pod, volume) ?? []);
  return names.length === 0 ? NONE : names;
}
