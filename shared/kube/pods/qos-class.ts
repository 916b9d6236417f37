/**
 * Quality of service of a pod: who is killed last when a node runs short
 * (pkg/apis/core/v1/helper/qos/qos.go).
 */

import { type Json, recordOf, recordsOf, textOf } from '../normal-form.ts';
import { parseQuantity } from '../quantity.ts';
import type { KubeObject } from '../types.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

/** Only these two count; other resources do not make a class. */
const COUNTED = ['cpu', 'memory'] as const;

type Amounts = Map<string, bigint>;

/** Adds what is asked for of the counted resources; nothing and less than nothing do not count. */
function addCounted(total: Amounts, amounts: Json): ReadonlySet<string> {
  const found = new Set<string>();
  for (const name of COUNTED) {
    const value = amounts[name];
    if (typeof value !== 'string' && typeof value !== 'number') continue;
    const parsed = parseQuantity(String(value));
    if (parsed.kind !== 'parsed' || parsed.quantity.nanos <= 0n) continue;
    found.add(name);
    total.set(name, (total.get(name) ?? 0n) + parsed.quantity.nanos);
  }
  return found;
}

const hasAmounts = (resources: Json): boolean =>
  [resources['requests'], resources['limits']].some((amounts) => COUNTED.some((name) => name in recordOf(amounts)));

/** The class by the spec alone. Resources of the pod, where given, count instead of those of its containers. */
export function qosClassOf(spec: Json): QosClass {
  const podResources = recordOf(spec['resources']);
  const holders = hasAmounts(podResources)
    ? [podResources]
    : [...recordsOf(spec['containers']), ...recordsOf(spec['initContainers'])].map((each) =>
        recordOf(each['resources']),
      );
  const requests: Amounts = new Map();
  const limits: Amounts = new Map();
  let limited = true;
  for (const resources of holders) {
    addCounted(requests, recordOf(resources['requests']));
    const found = addCounted(limits, recordOf(resources['limits']));
    if (found.size < COUNTED.length) limited = false;
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort';
  const same = requests.size === limits.size && [...requests].every(([name, amount]) => limits.get(name) === amount);
  return limited && same ? 'Guaranteed' : 'Burstable';
}

/** The class a stored pod has: that in its status, which never changes, else that of its spec. */
export function podQosClass(pod: KubeObject): QosClass {
  const stored = textOf(pod.status?.['qosClass']);
  return stored === '' ? qosClassOf(recordOf(pod.spec)) : (stored as QosClass);
}
