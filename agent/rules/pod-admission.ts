/**
 * Whether this node runs a pod that was bound to it. The node may have changed since the binding, or a user may have
 * made the binding. Source: upstream pkg/kubelet/lifecycle/predicate.go and handlers.go
 * (declaredFeaturesAdmitHandler); kube-scheduler's AdmissionCheck and the plugins NodeResourcesFit, NodeAffinity,
 * NodeName and NodePorts. Not implemented: preemption for a critical pod.
 */

import { tolerationFor } from '../../shared/fleet/nodes/taint.ts';
import { featuresToRun, missingFeatures } from '../../shared/kinds/pods/declared-features.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import type { Taint, Toleration } from '../../shared/kubernetes/kubernetes.ts';
import { type Json, numberOf, recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import { isStaticPod } from './critical-pod.ts';
import { matchesNodeAffinity } from './node-affinity.ts';

export interface Refusal {
  readonly kind: 'refused';
  readonly reason: string;
  readonly message: string;
}
export type Admission = { readonly kind: 'admitted' } | Refusal;

export const ADMITTED: Admission = Object.freeze({ kind: 'admitted' });
/** The pod is rejected on this node, and is not evaluated again. */
export const refused = (reason: string, message: string): Refusal => ({ kind: 'refused', reason, message });

const NANO = 1_000_000_000n;
const OS_LABEL = 'kubernetes.io/os';

type Amounts = Map<string, bigint>;

/** cpu in millicores, other resources in whole units. Rounded up, as by upstream's MilliValue() and Value(). */
function amountOf(resource: string, value: unknown): bigint {
  const parsed = parseQuantity(String(value));
  if (parsed.kind !== 'parsed') return 0n;
  const unit = resource === 'cpu' ? NANO / 1_000n : NANO;
  const { nanos } = parsed.quantity;
  return nanos <= 0n ? 0n : (nanos + unit - 1n) / unit;
}

const amountsOf = (quantities: unknown): Amounts =>
  new Map(Object.entries(recordOf(quantities)).map(([name, value]) => [name, amountOf(name, value)]));

function plus(into: Amounts, other: Amounts): Amounts {
  const sum = new Map(into);
  for (const [name, amount] of other) sum.set(name, (sum.get(name) ?? 0n) + amount);
  return sum;
}

function larger(one: Amounts, other: Amounts): Amounts {
  const most = new Map(one);
  for (const [name, amount] of other) if (amount > (most.get(name) ?? 0n)) most.set(name, amount);
  return most;
}

const requestsOf = (container: Json): Amounts => amountsOf(recordOf(container['resources'])['requests']);

/**
 * The requests of a pod: the sum of its containers, or the maximum during its start if that is more (an init container
 * plus the sidecars started before it), plus its overhead. Pod-level requests replace those of the containers.
 */
export function podRequests(pod: KubeObject): ReadonlyMap<string, bigint> {
  const spec = recordOf(pod.spec);
  let together: Amounts = new Map();
  for (const container of recordsOf(spec['containers'])) together = plus(together, requestsOf(container));
  let sidecars: Amounts = new Map();
  let starting: Amounts = new Map();
  for (const container of recordsOf(spec['initContainers'])) {
    const own = requestsOf(container);
    if (container['restartPolicy'] === 'Always') {
      sidecars = plus(sidecars, own);
      starting = larger(starting, sidecars);
    } else starting = larger(starting, plus(sidecars, own));
  }
  const most = larger(plus(together, sidecars), starting);
  for (const [name, amount] of requestsOf(spec)) most.set(name, amount);
  return plus(most, amountsOf(spec['overhead']));
}

export const allocatableOf = (node: KubeObject): ReadonlyMap<string, bigint> =>
  amountsOf(recordOf(node.status)['allocatable']);

/** The refusal for the first insufficient resource, undefined if all are sufficient. */
export function resourceShortage(
  pod: KubeObject,
  others: readonly KubeObject[],
  allocatable: ReadonlyMap<string, bigint>,
): Refusal | undefined {
  const lacking = (resource: string, requested: bigint, used: bigint, capacity: bigint): Refusal =>
    refused(
      `OutOf${resource}`,
      `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
    );
  const places = allocatable.get('pods') ?? 0n;
  if (BigInt(others.length) + 1n > places) return lacking('pods', 1n, BigInt(others.length), places);
  const wanted = podRequests(pod);
  let used: Amounts = new Map();
  for (const other of others) used = plus(used, podRequests(other) as Amounts);
  const first = ['cpu', 'memory', 'ephemeral-storage'];
  const rest = [...wanted.keys()].filter((name) => !first.includes(name)).sort();
  for (const resource of [...first, ...rest]) {
    const requested = wanted.get(resource) ?? 0n;
    const taken = used.get(resource) ?? 0n;
    const capacity = allocatable.get(resource);
    if (requested === 0n) continue;
    // A resource that this node does not have is managed outside the node, so it is not checked here.
    if (capacity === undefined && !first.includes(resource)) continue;
    if (requested > (capacity ?? 0n) - taken) return lacking(resource, requested, taken, capacity ?? 0n);
  }
  return undefined;
}

interface HostPort {
  readonly address: string;
  readonly protocol: string;
  readonly port: number;
}

const anyAddress = (address: string): boolean => address === '' || address === '0.0.0.0' || address === '::';

function hostPortsOf(pod: KubeObject): HostPort[] {
  const spec = recordOf(pod.spec);
  const containers = [
    ...recordsOf(spec['containers']),
    ...recordsOf(spec['initContainers']).filter((each) => each['restartPolicy'] === 'Always'),
  ];
  return containers.flatMap((container) =>
    recordsOf(container['ports']).flatMap((each) => {
      const port = numberOf(each['hostPort']) ?? 0;
      return port <= 0 ? [] : [{ address: textOf(each['hostIP']), protocol: textOf(each['protocol']) || 'TCP', port }];
    }),
  );
}

const collide = (one: HostPort, other: HostPort): boolean =>
  one.port === other.port &&
  one.protocol === other.protocol &&
  (one.address === other.address || anyAddress(one.address) || anyAddress(other.address));

export interface AdmissionFacts {
  readonly pod: KubeObject;
  readonly node: KubeObject;
  /** Other pods that run or will run on this node. */
  readonly others: readonly KubeObject[];
  /** Operating system of this machine, as Go names it. */
  readonly operatingSystem: string;
  /** What this node declares. */
  readonly declaredFeatures: readonly string[];
}

/** Checks in the order of the kubelet; the first refusal is returned. */
export function admitPod({ pod, node, others, operatingSystem, declaredFeatures }: AdmissionFacts): Admission {
  const spec = recordOf(pod.spec);
  const labels = node.metadata.labels ?? {};
  // The label of the pod, not its node selector, which is part of its affinity.
  const labelled = pod.metadata.labels?.[OS_LABEL];
  if (labelled !== undefined && labelled !== operatingSystem) {
    return refused(
      'PodOSSelectorNodeLabelDoesNotMatch',
      "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    );
  }
  const system = textOf(recordOf(spec['os'])['name']);
  if (system !== '' && system !== operatingSystem) {
    return refused('PodOSNotSupported', "Failed to admit pod as the OS field doesn't match node OS");
  }
  // Groups of the image's own /etc/group would be added nevertheless.
  if (recordOf(spec['securityContext'])['supplementalGroupsPolicy'] === 'Strict') {
    return refused(
      'SupplementalGroupsPolicyNotSupported',
      'SupplementalGroupsPolicy=Strict is not supported in this node',
    );
  }
  const short = resourceShortage(pod, others, allocatableOf(node));
  if (short !== undefined) return short;
  if (!matchesNodeAffinity(pod, labels, node.metadata.name ?? '')) {
    return predicate('NodeAffinity', "node(s) didn't match Pod's node affinity/selector");
  }
  const boundTo = textOf(spec['nodeName']);
  if (boundTo !== '' && boundTo !== node.metadata.name) {
    return predicate('NodeName', "node(s) didn't match the requested node name");
  }
  const ports = hostPortsOf(pod);
  if (ports.length > 0 && others.flatMap(hostPortsOf).some((taken) => ports.some((port) => collide(port, taken)))) {
    return predicate('NodePorts', "node(s) didn't have free ports for the requested pod ports");
  }
  const taints = recordsOf(recordOf(node.spec)['taints']) as unknown as readonly Taint[];
  const tolerations = recordsOf(spec['tolerations']) as unknown as readonly Toleration[];
  // Only NoExecute applies to a pod that is already bound.
  const barred = taints.some(
    (taint) => taint.effect === 'NoExecute' && tolerationFor(tolerations, taint) === undefined,
  );
  if (barred && !isStaticPod(pod)) {
    return predicate('TaintToleration', "node(s) had taints that the pod didn't tolerate");
  }
  const missing = missingFeatures(featuresToRun((pod as KubePod).spec ?? {}), declaredFeatures);
  return missing.length === 0
    ? ADMITTED
    : refused('PodFeatureUnsupported', `Pod requires node features that are not available: ${missing.join(', ')}`);
}

const predicate = (name: string, why: string): Refusal => refused(name, `Predicate ${name} failed: ${why}`);
