/**
 * What a pod requests, and what a node offers, as whole numbers.
 *
 * Source: staging/src/k8s.io/component-helpers/resource/helpers.go (PodRequests, AggregateContainerRequests).
 */

import { countedResources } from '../kinds/pods/pod-needs.ts';
import type { Container, KubePod, PodSpec, ResourceList } from '../kinds/types.ts';
import { parseQuantity } from '../kubernetes/quantity.ts';

/** cpu in millicores; the others in whole units, such as bytes. */
export interface Amounts {
  readonly cpu: number;
  readonly memory: number;
  readonly ephemeralStorage: number;
  /** Extended resources, huge pages and the like, by name; requests in the order of their names. */
  readonly scalars: Readonly<Record<string, number>>;
}

/** Requests for scoring: a container without a request counts with a default. */
export interface ScoredAmounts {
  readonly cpu: number;
  readonly memory: number;
}

/** pkg/scheduler/util/pod_resources.go: DefaultMilliCPURequest and DefaultMemoryRequest. Millicores, bytes. */
const SCORED_CPU_DEFAULT = 100;
const SCORED_MEMORY_DEFAULT = 200 * 1_024 * 1_024;

const CPU = 'cpu';
const MEMORY = 'memory';
const EPHEMERAL_STORAGE = 'ephemeral-storage';
const NO_SCALARS: Amounts['scalars'] = Object.freeze({});
const NANOS = 1_000_000_000n;
const NANOS_PER_MILLI = 1_000_000n;

const OWN_AMOUNTS = [
  ['cpu', CPU],
  ['memory', MEMORY],
  ['ephemeralStorage', EPHEMERAL_STORAGE],
] as const;

export const NO_AMOUNTS: Amounts = Object.freeze({ cpu: 0, memory: 0, ephemeralStorage: 0, scalars: NO_SCALARS });

/** Requests of a node-local resource that the scheduler counts beside cpu, memory and ephemeral storage. */
const isScalar = (name: string): boolean =>
  name.startsWith('hugepages-') || name.startsWith('attachable-volumes-') || name.includes('/');

const dividedRoundedUp = (value: bigint, divisor: bigint): number =>
  Number(value / divisor + (value % divisor > 0n ? 1n : 0n));

/** In millicores for cpu, else in whole units; rounded up. A text that is no quantity counts 0. */
export function amountOf(name: string, text: string | number): number {
  const parsed = parseQuantity(String(text));
  if (parsed.kind !== 'parsed') return 0;
  return dividedRoundedUp(parsed.quantity.nanos, name === CPU ? NANOS_PER_MILLI : NANOS);
}

type Sums = Map<string, number>;

function addTo(sums: Sums, list: ResourceList | undefined): void {
  for (const name in list) sums.set(name, (sums.get(name) ?? 0) + amountOf(name, list[name]!));
}

function raiseTo(sums: Sums, list: Iterable<readonly [string, number]>): void {
  for (const [name, amount] of list) if (amount > (sums.get(name) ?? 0)) sums.set(name, amount);
}

export const isSidecar = (container: Container): boolean => container.restartPolicy === 'Always';

/** Containers run together with the sidecars. An init container runs with the sidecars that started before it. */
function requestsOfContainers(spec: PodSpec, requestsOf: (container: Container) => ResourceList | undefined): Sums {
  const together: Sums = new Map();
  for (const container of spec.containers ?? []) addTo(together, requestsOf(container));
  const sidecars: Sums = new Map();
  const highestStep: Sums = new Map();
  for (const container of spec.initContainers ?? []) {
    const requests = requestsOf(container);
    if (isSidecar(container)) {
      addTo(together, requests);
      addTo(sidecars, requests);
      raiseTo(highestStep, sidecars);
    } else {
      const step = new Map(sidecars);
      addTo(step, requests);
      raiseTo(highestStep, step);
    }
  }
  raiseTo(together, highestStep);
  return together;
}

const isPodLevel = (name: string): boolean => name === CPU || name === MEMORY || name.startsWith('hugepages-');

/** Requests of the pod replace those of its containers, for the resources that a pod may request. */
function withPodLevel(sums: Sums, spec: PodSpec): Sums {
  const { requests = {} } = spec.resources ?? {};
  for (const name in requests) if (isPodLevel(name)) sums.set(name, amountOf(name, requests[name]!));
  addTo(sums, spec.overhead);
  return sums;
}

function amountsOf(sums: Sums): Amounts {
  const scalars: Record<string, number> = {};
  let hasScalars = false;
  // Sorted once: a pod may request thousands, and is compared with each node.
  for (const name of [...sums.keys()].sort()) {
    if (!isScalar(name)) continue;
    scalars[name] = sums.get(name)!;
    hasScalars = true;
  }
  return {
    cpu: sums.get(CPU) ?? 0,
    memory: sums.get(MEMORY) ?? 0,
    ephemeralStorage: sums.get(EPHEMERAL_STORAGE) ?? 0,
    scalars: hasScalars ? scalars : NO_SCALARS,
  };
}

/** `defaults`: requests of a container that states none. An explicit request of 0 stays 0. */
function sumsOf(pod: KubePod, defaults?: ResourceList): Sums {
  const { spec = { containers: [] } } = pod;
  const countedOf = countedResources(pod);
  return withPodLevel(
    requestsOfContainers(spec, (container) => {
      const { requests } = countedOf(container);
      return defaults === undefined ? requests : { ...defaults, ...requests };
    }),
    spec,
  );
}

export const requestsOf = (pod: KubePod): Amounts => amountsOf(sumsOf(pod));

export function scoredRequestsOf(pod: KubePod): ScoredAmounts {
  const sums = sumsOf(pod, { [CPU]: `${SCORED_CPU_DEFAULT}m`, [MEMORY]: String(SCORED_MEMORY_DEFAULT) });
  return { cpu: sums.get(CPU) ?? 0, memory: sums.get(MEMORY) ?? 0 };
}

/** The amounts of a list such as `status.allocatable`. */
export function listedAmounts(list: ResourceList | undefined): Amounts {
  const sums: Sums = new Map();
  addTo(sums, list);
  return amountsOf(sums);
}

export function plus(one: Amounts, other: Amounts, sign: 1 | -1 = 1): Amounts {
  let { scalars } = one;
  if (other.scalars !== NO_SCALARS) {
    const sums: Record<string, number> = { ...one.scalars };
    for (const name in other.scalars) sums[name] = (sums[name] ?? 0) + sign * other.scalars[name]!;
    scalars = sums;
  }
  return {
    cpu: one.cpu + sign * other.cpu,
    memory: one.memory + sign * other.memory,
    ephemeralStorage: one.ephemeralStorage + sign * other.ephemeralStorage,
    scalars,
  };
}

export interface ResourceAmount {
  /** The name in `Insufficient <name>`. */
  readonly name: string;
  readonly requested: number;
  readonly allocatable: number;
  readonly used: number;
}

/** What `requests` needs, beside what a node offers and has in use. */
export function* comparedAmounts(requests: Amounts, allocatable: Amounts, used: Amounts): Generator<ResourceAmount> {
  for (const [key, name] of OWN_AMOUNTS) {
    if (requests[key] > 0) yield { name, requested: requests[key], allocatable: allocatable[key], used: used[key] };
  }
  if (requests.scalars === NO_SCALARS) return;
  for (const name in requests.scalars) {
    const requested = requests.scalars[name]!;
    if (requested <= 0) continue;
    yield { name, requested, allocatable: allocatable.scalars[name] ?? 0, used: used.scalars[name] ?? 0 };
  }
}
