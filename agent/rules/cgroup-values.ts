/**
 * What is written to the control groups of a pod (cgroup v2), as a kubelet and runc compute it. Source:
 * pkg/kubelet/cm/helpers_linux.go (MilliCPUToQuota, MilliCPUToShares, ResourceConfigForPod),
 * pkg/kubelet/cm/qos_container_manager_linux.go, pkg/kubelet/cm/node_container_manager_linux.go,
 * pkg/kubelet/kuberuntime/kuberuntime_container_linux.go, pkg/kubelet/qos/policy.go; the conversion of shares to a
 * weight is that of runc (libcontainer/cgroups/utils.go). memory.high and memory.min stay unset, as without the feature
 * gate MemoryQoS.
 */
import { podQosClass } from '../../shared/kinds/pods/pod-needs.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import type { CpuPlacement } from '../ports/pod-runtime.ts';
import { isCriticalPod } from './critical-pod.ts';
import { type ResourceTexts, reservedOf } from './node-resources.ts';
import { podRequests } from './pod-admission.ts';
import { type Container, containersOf } from './pod-containers.ts';
import { type SwapNode, swapLimits } from './swap.ts';

/** Texts by file name, such as memory.max. */
export type CgroupFiles = Readonly<Record<string, string>>;

const NANO = 1_000_000_000n;
const SHARES_MIN = 2;
const SHARES_MAX = 262_144;
const SHARES_PER_CPU = 1_024;
const MILLI_PER_CPU = 1_000;
/** The default of cpuCFSQuotaPeriod, which only a feature gate may change. Microseconds. */
export const QUOTA_PERIOD_MICROSECONDS = 100_000;
const QUOTA_MICROSECONDS_MIN = 1_000;
/** The kernel's word for no limit. */
const UNLIMITED = 'max';

/** 0 for an absent amount. Rounded up, as upstream's MilliValue() and Value(). */
function amount(value: unknown, unit: bigint): number {
  if (typeof value !== 'string' && typeof value !== 'number') return 0;
  const parsed = parseQuantity(String(value));
  if (parsed.kind !== 'parsed' || parsed.quantity.nanos <= 0n) return 0;
  return Number((parsed.quantity.nanos + unit - 1n) / unit);
}
const milliCpu = (value: unknown): number => amount(value, NANO / 1_000n);
const bytes = (value: unknown): number => amount(value, NANO);

/** CFS quota per period; 0 means none. Microseconds. */
export function cpuQuota(milli: number): number {
  if (milli === 0) return 0;
  return Math.max(QUOTA_MICROSECONDS_MIN, Math.trunc((milli * QUOTA_PERIOD_MICROSECONDS) / MILLI_PER_CPU));
}

/** cpu.shares of cgroup v1, in which upstream computes. */
export function cpuShares(milli: number): number {
  const shares = Math.trunc((milli * SHARES_PER_CPU) / MILLI_PER_CPU);
  return Math.min(SHARES_MAX, Math.max(SHARES_MIN, shares));
}

/** cpu.weight, from 1 to 10000. */
export const cpuWeight = (milli: number): number =>
  1 + Math.trunc(((cpuShares(milli) - SHARES_MIN) * 9_999) / (SHARES_MAX - SHARES_MIN));

const cpuMax = (milli: number): string => `${cpuQuota(milli) || UNLIMITED} ${QUOTA_PERIOD_MICROSECONDS}`;
const memoryMax = (limitBytes: number): string => (limitBytes > 0 ? String(limitBytes) : UNLIMITED);

export interface CgroupNode {
  /** For LimitedSwap, and for the OOM score of Burstable pods. */
  readonly swap: SwapNode;
  /** cpuCFSQuota: whether CPU limits are enforced. */
  readonly enforceCpuLimits: boolean;
  /** podPidsLimit; undefined: no limit. */
  readonly podPidsMax: number | undefined;
}

export const ANYWHERE: CpuPlacement = Object.freeze({ cpus: [], memoryNodes: [], exclusive: false });

/** A list as the kernel reads and prints it, such as `0-3,5`. */
export function cpuList(ids: readonly number[]): string {
  const sorted = [...new Set(ids)].sort((left, right) => left - right);
  const ranges: string[] = [];
  for (let from = 0, to = 0; from < sorted.length; from = to + 1) {
    to = from;
    while (sorted[to + 1] === (sorted[to] ?? 0) + 1) to += 1;
    ranges.push(from === to ? `${sorted[from]}` : `${sorted[from]}-${sorted[to]}`);
  }
  return ranges.join(',');
}

/** cpuset.cpus and cpuset.mems. An empty text means: as the group above. */
export const placementFiles = ({ cpus, memoryNodes }: CpuPlacement): CgroupFiles => ({
  'cpuset.cpus': cpuList(cpus),
  'cpuset.mems': cpuList(memoryNodes),
});

/** A container without a limit has that of its pod (getCPULimit, getMemoryLimit). 0: there is none. */
const limitOf = ({ limits, podLimits }: Container, resource: string, read: (value: unknown) => number): number =>
  read(limits[resource]) || read(podLimits?.[resource]);

/** A missing request is the limit (generateLinuxContainerResources). */
const weighedMilliCpu = (container: Container): number =>
  milliCpu(container.requests['cpu']) || limitOf(container, 'cpu', milliCpu);

export const cpuSharesOf = (container: Container): number => cpuShares(weighedMilliCpu(container));

/** CFS quota of a container's limit per period; 0: no limit. Microseconds. */
export const cpuQuotaOf = (container: Container): number => cpuQuota(limitOf(container, 'cpu', milliCpu));

/** The group of one container. */
export function containerFiles(
  node: CgroupNode,
  pod: KubePod,
  container: Container,
  placement: CpuPlacement,
): CgroupFiles {
  const limited = limitOf(container, 'cpu', milliCpu);
  const swap = swapLimits(node.swap, pod).get(container.name);
  return {
    'cpu.weight': String(cpuWeight(weighedMilliCpu(container))),
    // A quota would throttle processors that no other container may use (feature gate
    // DisableCPUQuotaWithExclusiveCPUs).
    'cpu.max': cpuMax(node.enforceCpuLimits && !placement.exclusive ? limited : 0),
    'memory.max': memoryMax(memoryLimitBytes(container)),
    // The kernel kills the container as a whole, not one of its processes (singleProcessOOMKill: false).
    'memory.oom.group': '1',
    ...(swap?.kind === 'swapMax' ? { 'memory.swap.max': String(swap.bytes) } : {}),
    ...placementFiles(placement),
  };
}

/** Sum over the containers, or the largest amount while the pod starts if that is more (PodRequestsAndLimits). */
function podLimit(pod: KubePod, resource: 'cpu' | 'memory', read: (value: unknown) => number): number {
  let together = 0;
  let sidecars = 0;
  let starting = 0;
  for (const { kind, limits } of containersOf(pod)) {
    const limit = read(limits[resource]);
    if (kind === 'app') together += limit;
    else if (kind === 'restartable') sidecars += limit;
    else starting = Math.max(starting, sidecars + limit);
  }
  return Math.max(together + sidecars, starting);
}

/** The group around all containers of a pod. It has the limit of the pod, or else one if every container has one. */
export function podFiles(node: CgroupNode, pod: KubePod, hasExclusiveCpus = false): CgroupFiles {
  const qosClass = podQosClass(pod);
  const containers = containersOf(pod).filter(({ kind }) => kind !== 'init');
  const allLimit = (resource: string): boolean =>
    qosClass !== 'BestEffort' && containers.every(({ limits }) => bytes(limits[resource]) > 0);
  const own = pod.spec?.resources?.limits;
  const limit = (resource: 'cpu' | 'memory', read: (value: unknown) => number): number =>
    read(own?.[resource]) || (allLimit(resource) ? podLimit(pod, resource, read) : 0);
  const milli = node.enforceCpuLimits && !hasExclusiveCpus ? limit('cpu', milliCpu) : 0;
  return {
    'cpu.weight': String(cpuWeight(qosClass === 'BestEffort' ? 0 : requestedMilliCpu(pod))),
    'cpu.max': cpuMax(milli),
    'memory.max': memoryMax(limit('memory', bytes)),
    'pids.max': node.podPidsMax === undefined ? UNLIMITED : String(node.podPidsMax),
  };
}

const requestedMilliCpu = (pod: KubePod): number => Number(podRequests(pod).get('cpu') ?? 0n);

/** The groups of the two lower QoS classes. The share of Burstable pods follows their requests. */
export function qosFiles(pods: readonly KubePod[]): Readonly<Record<'burstable' | 'besteffort', CgroupFiles>> {
  const burstable = pods.filter((pod) => podQosClass(pod) === 'Burstable');
  const milli = burstable.reduce((sum, pod) => sum + requestedMilliCpu(pod), 0);
  return {
    burstable: { 'cpu.weight': String(cpuWeight(milli)) },
    besteffort: { 'cpu.weight': String(cpuWeight(0)) },
  };
}

export interface NodeAllocatable {
  /** With cpu in cores, memory in bytes, and pid. */
  readonly capacity: ResourceTexts;
  readonly systemReserved: ResourceTexts;
  readonly kubeReserved: ResourceTexts;
  /** enforceNodeAllocatable contains `pods`; otherwise pods may use the whole machine. */
  readonly enforced: boolean;
}

/** The group of all pods. Hard eviction thresholds are not subtracted: eviction acts before the kernel. */
export function allPodsFiles({ capacity, systemReserved, kubeReserved, enforced }: NodeAllocatable): CgroupFiles {
  const settings = { systemReserved, kubeReserved, evictionHard: {} };
  const reserved = enforced ? reservedOf(capacity, settings) : {};
  const left = (name: string, unit: bigint): number =>
    Math.max(0, amount(capacity[name], unit) - Number((reserved[name]?.nanos ?? 0n) / unit));
  return {
    'cpu.weight': String(cpuWeight(left('cpu', NANO / 1_000n))),
    'memory.max': memoryMax(left('memory', NANO)),
    ...(capacity['pid'] === undefined ? {} : { 'pids.max': String(left('pid', NANO)) }),
  };
}

const OOM_SCORE_LAST = -997;
const OOM_SCORE_FIRST = 1_000;

/** Each container's part of the memory that the pod requests beyond its containers (remainingPodMemReqPerContainer). */
function unassignedBytes(pod: KubePod, containers: number): number {
  const requested = bytes(pod.spec?.resources?.requests?.['memory']);
  if (requested === 0) return 0;
  const { resources: _, overhead: __, ...spec } = pod.spec!;
  return Math.trunc((requested - Number(podRequests({ ...pod, spec }).get('memory') ?? 0n)) / containers);
}

/** oom_score_adj of a container's processes: the kernel kills the highest first (GetContainerOOMScoreAdjust). */
export function oomScoreAdjust(pod: KubePod, container: Container, nodeMemoryBytes: number): number {
  const qosClass = podQosClass(pod);
  if (isCriticalPod(pod) || qosClass === 'Guaranteed') return OOM_SCORE_LAST;
  if (qosClass === 'BestEffort' || nodeMemoryBytes <= 0) return OOM_SCORE_FIRST;
  const containers = containersOf(pod);
  const requestOf = ({ requests }: Container): number => bytes(requests['memory']);
  // A sidecar is killed after the containers that it serves.
  const least = container.kind === 'restartable' ? containers.filter(({ kind }) => kind === 'app').map(requestOf) : [];
  const request = Math.max(requestOf(container), least.length === 0 ? 0 : Math.min(...least));
  const share = Math.trunc((1_000 * (request + unassignedBytes(pod, containers.length))) / nodeMemoryBytes);
  const score = OOM_SCORE_FIRST - share;
  // Above a Guaranteed pod that uses all memory, and below BestEffort pods.
  return Math.min(OOM_SCORE_FIRST - 1, Math.max(OOM_SCORE_FIRST + OOM_SCORE_LAST, score));
}

/** The limit of a container's memory in bytes; 0: none. */
export const memoryLimitBytes = (container: Container): number => limitOf(container, 'memory', bytes);

/** Path below the root of pods: `kubepods/<class>/pod<uid>`. Guaranteed pods are directly in `kubepods`. */
export function podCgroup(pod: KubePod): string {
  const qosClass = podQosClass(pod);
  const own = `pod${pod.metadata.uid ?? ''}`;
  return qosClass === 'Guaranteed' ? `${ALL_PODS}/${own}` : `${ALL_PODS}/${qosClass.toLowerCase()}/${own}`;
}

export const ALL_PODS = 'kubepods';
