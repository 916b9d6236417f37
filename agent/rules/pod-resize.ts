/**
 * A change of the resources of a running pod: whether this node allocates it, what it asks of each container, and what
 * is reported about it. Source: upstream pkg/kubelet/allocation (allocation_manager.go, handlers.go,
 * features_windows.go), pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodResizeAction,
 * validateMemoryResizeAction), pkg/kubelet/events/resize.go.
 *
 *   desired: spec of the API → allocated: reserved on this node → actual: what a container runs with
 */
import { podQosClass } from '../../shared/kinds/pods/pod-needs.ts';
import type { Container, KubeObject, KubePod, ResourceList, ResourceRequirements } from '../../shared/kinds/types.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import type { PodUsage } from '../ports/pod-runtime.ts';
import { isCriticalPod, isStaticPod, priorityOf } from './critical-pod.ts';
import type { NodeEvent } from './node-event.ts';
import { allocatableOf, podRequests, resourceShortage } from './pod-admission.ts';

const NANO = 1_000_000_000n;
/** The resources that a resize changes. */
const RESIZED = ['cpu', 'memory'] as const;
const KINDS = ['limits', 'requests'] as const;

/** 0 for an absent amount: it limits and requests nothing. */
function nanosOf(amounts: ResourceList | undefined, name: string): bigint {
  const parsed = parseQuantity(String(amounts?.[name] ?? '0'));
  return parsed.kind === 'parsed' ? parsed.quantity.nanos : 0n;
}
const bytesOf = (limits: ResourceList | undefined): bigint => (nanosOf(limits, 'memory') + NANO - 1n) / NANO;

export const sameResources = (one: ResourceRequirements | undefined, other: ResourceRequirements | undefined) =>
  one === other ||
  KINDS.every((kind) => {
    const names = new Set([...Object.keys(one?.[kind] ?? {}), ...Object.keys(other?.[kind] ?? {})]);
    return [...names].every((name) => nanosOf(one?.[kind], name) === nanosOf(other?.[kind], name));
  });

export const sameMemoryLimit = (one: ResourceRequirements | undefined, other: ResourceRequirements | undefined) =>
  bytesOf(one?.limits) === bytesOf(other?.limits);

const isSidecar = ({ restartPolicy }: Container): boolean => restartPolicy === 'Always';

/** The containers with resources that can change: init containers have terminated. */
const resizable = ({ spec = {} }: KubePod): readonly Container[] => [
  ...(spec.initContainers ?? []).filter(isSidecar),
  ...(spec.containers ?? []),
];

/** By pod, which does not change: a pod of n containers is asked n times. */
const RESOURCES = new WeakMap<KubePod, ReadonlyMap<string, ResourceRequirements>>();

/** Undefined: the pod has no such container that can be resized. */
export function resourcesOf(pod: KubePod, name: string): ResourceRequirements | undefined {
  const byName =
    RESOURCES.get(pod) ?? new Map(resizable(pod).map(({ name: own = '', resources = {} }) => [own, resources]));
  RESOURCES.set(pod, byName);
  return byName.get(name);
}

/** The pod with other resources of its containers; the same object if these are no others. */
export function withResources(
  pod: KubePod,
  resourcesFor: (container: string) => ResourceRequirements | undefined,
): KubePod {
  let isChanged = false;
  const changed = (container: Container): Container => {
    const resources = resourcesFor(container.name ?? '');
    if (resources === undefined || sameResources(container.resources, resources)) return container;
    isChanged = true;
    return { ...container, resources };
  };
  const { initContainers, containers } = pod.spec ?? {};
  const spec = {
    ...pod.spec,
    ...(initContainers && { initContainers: initContainers.map((each) => (isSidecar(each) ? changed(each) : each)) }),
    ...(containers && { containers: containers.map(changed) }),
  };
  return isChanged ? { ...pod, spec } : pod;
}

/** What of a machine decides about a resize. */
interface ResizeMachine {
  readonly operatingSystem: string;
  /** Containers of Burstable pods may use swap. */
  readonly maySwap: boolean;
  /** Containers of Guaranteed pods have processors and NUMA nodes of their own. */
  readonly assignsProcessors: boolean;
}

interface ResizeFacts {
  readonly desired: KubePod;
  readonly allocated: KubePod;
  readonly node: KubeObject;
  /** The other pods of this node, with their allocated resources. */
  readonly others: readonly KubeObject[];
  readonly machine: ResizeMachine;
}

/** Why the desired resources are not allocated. Infeasible: not before the pod changes. */
interface ResizeRefusal {
  readonly reason: 'Infeasible' | 'Deferred';
  readonly message: string;
}

const infeasible = (message: string): ResizeRefusal => ({ reason: 'Infeasible', message });

/** Undefined: the desired resources are allocated. */
export function resizeRefusal({ desired, allocated, node, others, machine }: ResizeFacts): ResizeRefusal | undefined {
  if (machine.operatingSystem === 'windows') return infeasible('In-place pod resize is not supported on Windows');
  if (isStaticPod(desired)) return infeasible('In-place resize of static-pods is not supported');
  if (machine.maySwap && changesSwap(desired, allocated)) {
    return infeasible('In-place resize of containers with swap is not supported.');
  }
  if (machine.assignsProcessors && podQosClass(desired) === 'Guaranteed') {
    const policy = 'Resize is infeasible for Guaranteed Pods alongside';
    if (isRequestChanged(desired, allocated, 'cpu')) return infeasible(`${policy} CPU Manager policy "static"`);
    if (isRequestChanged(desired, allocated, 'memory')) return infeasible(`${policy} Memory Manager policy "Static"`);
  }
  const requests = podRequests(desired);
  const allocatable = allocatableOf(node);
  for (const resource of ['memory', 'cpu']) {
    const [requested, capacity] = [requests.get(resource) ?? 0n, allocatable.get(resource) ?? 0n];
    if (requested <= capacity) continue;
    const amounts = `${resource}, requested: ${requested}, capacity: ${capacity}`;
    return infeasible(`Node didn't have enough capacity: ${amounts}`);
  }
  const shortage = resourceShortage(desired, others, allocatable);
  return shortage && { reason: 'Deferred', message: shortage.message };
}

const isRequestChanged = (desired: KubePod, allocated: KubePod, resource: string): boolean =>
  resizable(desired).some(
    ({ name = '', resources }) =>
      nanosOf(resources?.requests, resource) !== nanosOf(resourcesOf(allocated, name)?.requests, resource),
  );

/** Swap follows the request of memory, and does not change while a container runs. */
const changesSwap = (desired: KubePod, allocated: KubePod): boolean =>
  podQosClass(desired) === 'Burstable' &&
  !isCriticalPod(desired) &&
  resizable(desired).some(({ name = '', resources, resizePolicy = [] }) => {
    const before = resourcesOf(allocated, name);
    if (nanosOf(resources?.requests, 'memory') === nanosOf(before?.requests, 'memory')) return false;
    return policyOf(resizePolicy, 'memory') !== 'RestartContainer' && [resources, before].some(hasSwap);
  });

const hasSwap = (resources: ResourceRequirements | undefined): boolean =>
  nanosOf(resources?.requests, 'memory') !== nanosOf(resources?.limits, 'memory');

const policyOf = (policies: NonNullable<Container['resizePolicy']>, resource: string): string | undefined =>
  policies.find(({ resourceName }) => resourceName === resource)?.restartPolicy;

interface RequestedResize {
  readonly desired: KubePod;
  readonly allocated: KubePod;
  /** Since when it has been refused; undefined: it is new. */
  readonly pendingSinceMs: number | undefined;
}

/** Those that need no more, then by priority, then Guaranteed pods, then the longest refused, and new ones last. */
export const byUrgency = (one: RequestedResize, other: RequestedResize): number =>
  Number(needsMore(one)) - Number(needsMore(other)) ||
  priorityOf(other.desired) - priorityOf(one.desired) ||
  Number(isGuaranteed(other)) - Number(isGuaranteed(one)) ||
  (one.pendingSinceMs ?? Number.MAX_SAFE_INTEGER) - (other.pendingSinceMs ?? Number.MAX_SAFE_INTEGER);

const isGuaranteed = ({ desired }: RequestedResize): boolean => podQosClass(desired) === 'Guaranteed';

function needsMore({ desired, allocated }: RequestedResize): boolean {
  const [after, before] = [podRequests(desired), podRequests(allocated)];
  return RESIZED.some((name) => (after.get(name) ?? 0n) > (before.get(name) ?? 0n));
}

/** What a container needs to run with its resources instead of the actual ones. */
export function containerResize(
  { resources, resizePolicy = [] }: Container,
  actual: ResourceRequirements,
): 'nothing' | 'update' | 'restart' {
  const changed = RESIZED.filter((name) =>
    KINDS.some((kind) => nanosOf(resources?.[kind], name) !== nanosOf(actual[kind], name)),
  );
  if (changed.length === 0) return 'nothing';
  return changed.some((name) => policyOf(resizePolicy, name) === 'RestartContainer') ? 'restart' : 'update';
}

/** 0 is no limit. */
const isLower = (limit: bigint, before: bigint): boolean => limit > 0n && (before === 0n || limit < before);

/** Whether a container gets a lower limit of memory. */
export const lowersMemory = ({ resources }: Container, actual: ResourceRequirements): boolean =>
  isLower(bytesOf(resources?.limits), bytesOf(actual.limits));

/**
 * Why limits of memory cannot be lowered now: more than that is in use. Undefined: they can.
 *
 * @param actual the pod with the resources that its containers run with
 * @param updated names of the running containers that get other limits
 */
export function memoryInUse(
  pod: KubePod,
  actual: KubePod,
  updated: readonly string[],
  usage: PodUsage | undefined,
): string | undefined {
  const faults: string[] = [];
  const check = (owner: string, limit: bigint, before: bigint, usedBytes = 0): void => {
    if (isLower(limit, before) && BigInt(usedBytes) >= limit)
      faults.push(`attempting to set ${owner} memory limit (${limit}) below current usage (${usedBytes})`);
  };
  check('pod', podMemoryLimit(pod), podMemoryLimit(actual), usage?.memoryBytes);
  for (const name of updated) {
    const used = usage?.containers.find((each) => each.name === name)?.memoryBytes;
    const limitIn = (each: KubePod): bigint => bytesOf(resourcesOf(each, name)?.limits);
    check(`container ${JSON.stringify(name)}`, limitIn(pod), limitIn(actual), used);
  }
  if (faults.length === 0) return undefined;
  return `cannot decrease memory limits: ${faults.length === 1 ? faults[0] : `[${faults.join(', ')}]`}`;
}

/** 0: a container has none. */
function podMemoryLimit(pod: KubePod): bigint {
  const limits = resizable(pod).map(({ resources }) => bytesOf(resources?.limits));
  return limits.includes(0n) ? 0n : limits.reduce((sum, limit) => sum + limit, 0n);
}

/** What is reported about the resize of a pod. */
export interface ResizeProgress {
  /** The desired resources are not allocated. */
  readonly pending?: (ResizeRefusal & { readonly generation?: number }) | undefined;
  /** Containers do not run with the allocated resources yet. `error`: why that is not possible now. */
  readonly inProgress?: { readonly generation?: number; readonly error?: string } | undefined;
}

const EVENTS = {
  started: { type: 'Normal', reason: 'ResizeStarted', words: 'started' },
  completed: { type: 'Normal', reason: 'ResizeCompleted', words: 'completed' },
  failed: { type: 'Warning', reason: 'ResizeError', words: 'error' },
  Deferred: { type: 'Warning', reason: 'ResizeDeferred', words: 'Deferred' },
  Infeasible: { type: 'Warning', reason: 'ResizeInfeasible', words: 'Infeasible' },
} as const;

/** @param pod with the resources that the event is about */
export function resizeEvent(kind: keyof typeof EVENTS, pod: KubePod, generation = 0, error = ''): NodeEvent {
  const { type, reason, words } = EVENTS[kind];
  const shown = ({ name, resources = {} }: Container) => ({ name, resources: sorted(resources) });
  const { initContainers = [], containers = [] } = pod.spec ?? {};
  const details = {
    ...(initContainers.length > 0 ? { initContainers: initContainers.map(shown) } : {}),
    containers: containers.map(shown),
    generation,
    ...(error === '' ? {} : { error }),
  };
  return { type, reason, message: `Pod resize ${words}: ${JSON.stringify(details)}` };
}

/** As Go prints them. */
const sorted = (resources: ResourceRequirements): object =>
  Object.fromEntries(
    KINDS.filter((kind) => Object.keys(resources[kind] ?? {}).length > 0).map((kind) => [
      kind,
      Object.fromEntries(Object.entries(resources[kind] ?? {}).toSorted(([one], [other]) => (one < other ? -1 : 1))),
    ]),
  );
