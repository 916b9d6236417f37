/**
 * Quality of service of a pod, which orders evictions when a node runs out of resources
 * (pkg/apis/core/v1/helper/qos/qos.go).
 */
import { parseQuantity } from '../../kubernetes/quantity.ts';
import type { KubePod, PodQOSClass, PodSpec, ResourceList, ResourceRequirements } from '../types.ts';

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
