/**
 * What an object counts in a ResourceQuota, whether the quota permits it, and what it has used. Pure. Source:
 * pkg/quota/v1/evaluator/core/{pods,services,persistent_volume_claims}.go, pkg/controller/resourcequota and
 * k8s.io/apiserver pkg/quota/v1/generic/evaluator.go, pkg/admission/plugin/resourcequota/controller.go (CheckRequest).
 */

import { parseTimeMs } from '../../kubernetes/time.ts';
import { countedResources, countedText, podQosClass } from '../pods/pod-needs.ts';
import { isTerminated } from '../pods/resource.ts';
import type {
  Container,
  KubeObject,
  KubePod,
  KubeResourceQuota,
  KubeService,
  PersistentVolumeClaimSpec,
  PodAffinityTerm,
  PodSpec,
  ResourceList,
  ScopedResourceSelectorRequirement,
} from '../types.ts';
import {
  type Amounts,
  add,
  amountsOf,
  highest,
  increaseOf,
  listOf,
  namesAbove,
  namesOf,
  only,
  textOf,
  whole,
} from './amounts.ts';

export interface CountedResource {
  readonly group: string;
  /** Plural name. */
  readonly resource: string;
}

/** Counts of core resources that have a name without the prefix `count/`. */
const LEGACY_COUNTS = new Set(['configmaps', 'replicationcontrollers', 'resourcequotas', 'secrets']);
const SERVICE_NAMES = ['services', 'services.loadbalancers', 'services.nodeports'];
const CLAIM_NAMES = ['persistentvolumeclaims', 'requests.storage'];
const CLASS_SUFFIX = '.storageclass.storage.k8s.io/';
const POD_NAMES = [
  'cpu',
  'memory',
  'ephemeral-storage',
  'requests.cpu',
  'requests.memory',
  'requests.ephemeral-storage',
  'limits.cpu',
  'limits.memory',
  'limits.ephemeral-storage',
  'pods',
];
const HUGE_PAGES = 'hugepages-';
const REQUESTS = 'requests.';

const countName = ({ group, resource }: CountedResource): string =>
  `count/${resource}${group === '' ? '' : `.${group}`}`;

const isCore = ({ group, resource }: CountedResource, name: string): boolean => group === '' && resource === name;

/** Has a domain that is not one of Kubernetes, such as `nvidia.com/gpu`. */
const isExtended = (name: string): boolean => name.includes('/') && !name.includes('kubernetes.io/');

/** The names of a quota that objects of this resource count for. */
export function matchingNames(of: CountedResource, names: readonly string[]): readonly string[] {
  return names.filter((name) => {
    if (name === countName(of)) return true;
    if (isCore(of, 'pods')) {
      if (POD_NAMES.includes(name) || name.startsWith(HUGE_PAGES)) return true;
      return name.startsWith(REQUESTS) && (name.startsWith(REQUESTS + HUGE_PAGES) || isExtended(name));
    }
    if (isCore(of, 'services')) return SERVICE_NAMES.includes(name);
    if (isCore(of, 'persistentvolumeclaims')) {
      return CLAIM_NAMES.includes(name) || CLAIM_NAMES.some((each) => name.endsWith(CLASS_SUFFIX + each));
    }
    return of.group === '' && LEGACY_COUNTS.has(of.resource) && name === of.resource;
  });
}

/** Events are never counted. */
export const isCounted = ({ resource }: CountedResource): boolean => resource !== 'events';

/** Updates of these may count more than before. Other kinds are counted by number alone. */
export const mayGrow = (of: CountedResource): boolean => isCore(of, 'services') || isCore(of, 'persistentvolumeclaims');

export function usageOf(of: CountedResource, object: KubeObject, nowMs: number): Amounts {
  const counted = new Map([[countName(of), whole(1)]]);
  if (isCore(of, 'pods')) return podCounts(object, nowMs) ? add(counted, podUsage(object)) : counted;
  if (isCore(of, 'services')) return add(counted, serviceUsage(object));
  if (isCore(of, 'persistentvolumeclaims')) return add(counted, claimUsage(object.spec));
  if (of.group === '' && LEGACY_COUNTS.has(of.resource)) counted.set(of.resource, whole(1));
  return counted;
}

/**
 * A pod that terminated, or that outlived its grace period, counts as an object only. Its node may have failed, and it
 * must not prevent its own replacement.
 */
const podCounts = (pod: KubePod, nowMs: number): boolean =>
  !isTerminated(pod) && nowMs <= (outlivedAtMs(pod) ?? Number.POSITIVE_INFINITY);

/** When a pod that is being deleted stops to count. Epoch milliseconds; undefined: it is not being deleted. */
export function outlivedAtMs({ metadata }: KubePod): number | undefined {
  const deletedAtMs = parseTimeMs(metadata.deletionTimestamp);
  const graceSeconds = metadata.deletionGracePeriodSeconds;
  return deletedAtMs === undefined || graceSeconds === undefined ? undefined : deletedAtMs + graceSeconds * 1_000;
}

const isSidecar = ({ restartPolicy }: Container): boolean => restartPolicy === 'Always';

/** The total of all containers: the sum of those that run together, or what an init container needs if that is more. */
function totalOf(spec: PodSpec, amountsIn: (container: Container) => Amounts): Amounts {
  let together: Amounts = new Map();
  for (const container of spec.containers ?? []) together = add(together, amountsIn(container));
  let sidecars: Amounts = new Map();
  let steps: Amounts = new Map();
  for (const container of spec.initContainers ?? []) {
    const own = amountsIn(container);
    if (isSidecar(container)) {
      sidecars = add(sidecars, own);
      together = add(together, own);
      steps = highest(steps, sidecars);
    } else {
      steps = highest(steps, add(sidecars, own));
    }
  }
  return highest(together, steps);
}

function podUsage(pod: KubePod): Amounts {
  const { spec = {} } = pod;
  const countedOf = countedResources(pod);
  const requests = add(
    totalOf(spec, (container) => amountsOf(countedOf(container).requests)),
    amountsOf(spec.overhead),
  );
  const limits = totalOf(spec, (container) => amountsOf(countedOf(container).limits));
  return computeUsage(requests, limits);
}

/** Whether the resources of the pod count more or less than before. Most changes of a pod leave them as they are. */
export const usesOtherAmounts = (before: KubePod, after: KubePod): boolean =>
  countedText(before) !== countedText(after) && textOf(podUsage(before)) !== textOf(podUsage(after));

const NATIVE = ['cpu', 'memory', 'ephemeral-storage'];

function computeUsage(requests: Amounts, limits: Amounts): Amounts {
  const usage = new Map([['pods', whole(1)]]);
  for (const [name, amount] of requests) {
    const isNative = NATIVE.includes(name) || name.startsWith(HUGE_PAGES);
    if (isNative) usage.set(name, amount);
    if (isNative || isExtended(name)) usage.set(REQUESTS + name, amount);
  }
  for (const name of NATIVE) {
    const limit = limits.get(name);
    if (limit !== undefined) usage.set(`limits.${name}`, limit);
  }
  return usage;
}

/** A quota of these requires every container to state them. */
const REQUIRED_NAMES = ['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'];

/** Why a pod may not be created beside a quota of these names. undefined: each container states its amounts. */
export function missingAmounts({ spec = {} }: KubePod, names: readonly string[]): string | undefined {
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  const missing = REQUIRED_NAMES.filter((name) => names.includes(name)).flatMap((name) => {
    const without = containers.filter(({ resources = {} }) => !statesAmount(resources, name));
    const containerNames = without.map((each) => each.name ?? '').sort();
    return containerNames.length === 0 ? [] : [`${name} for: ${[...new Set(containerNames)].join(',')}`];
  });
  return missing.length === 0 ? undefined : `must specify ${missing.sort().join('; ')}`;
}

const statesAmount = (
  { requests, limits }: { readonly requests?: ResourceList; readonly limits?: ResourceList },
  name: string,
): boolean => computeUsage(amountsOf(requests), amountsOf(limits)).has(name);

function serviceUsage({ spec = {} }: KubeService): Amounts {
  const ports = spec.ports ?? [];
  const assigned = ports.filter(({ nodePort = 0 }) => nodePort !== 0).length;
  const isBalanced = spec.type === 'LoadBalancer';
  const allocates = spec.allocateLoadBalancerNodePorts !== false;
  const nodePorts = spec.type === 'NodePort' || (isBalanced && allocates) ? ports.length : isBalanced ? assigned : 0;
  return new Map([
    ['services', whole(1)],
    ['services.nodeports', whole(nodePorts)],
    ['services.loadbalancers', whole(isBalanced ? 1 : 0)],
  ]);
}

function claimUsage(spec: PersistentVolumeClaimSpec = {}): Amounts {
  const { storageClassName = '' } = spec;
  const storage = amountsOf(spec.resources?.requests).get('storage');
  const own = new Map([['persistentvolumeclaims', whole(1)]]);
  if (storage !== undefined) own.set('requests.storage', storage);
  if (storageClassName === '') return own;
  const prefix = storageClassName + CLASS_SUFFIX;
  return add(own, new Map([...own].map(([name, amount]) => [prefix + name, amount])));
}

export interface CountedChange extends CountedResource {
  readonly object: KubeObject;
  /** The stored object. Absent: `object` is created. */
  readonly old?: KubeObject;
  readonly nowMs: number;
}

export type QuotaCheck =
  /** The quota does not count the object, or it counts as much as before. */
  | { readonly kind: 'uncounted' }
  /** The quota to store together with the object. */
  | { readonly kind: 'charged'; readonly quota: KubeResourceQuota }
  /** Answer 403 with this text. */
  | { readonly kind: 'refused'; readonly why: string };

const UNCOUNTED: QuotaCheck = { kind: 'uncounted' };

/** True if a quota may count a change of this kind. */
export const isQuotaChange = (of: CountedResource, isCreation: boolean): boolean =>
  isCounted(of) && (isCreation || mayGrow(of));

/** Limits that apply are those of the status: the controller has counted for these. */
export function checkQuota(quota: KubeResourceQuota, change: CountedChange): QuotaCheck {
  const { object, old, nowMs } = change;
  const hard = amountsOf(quota.status?.hard);
  const used = amountsOf(quota.status?.used);
  const name = quota.metadata.name ?? '';
  const names = matchingNames(change, namesOf(hard));
  if (names.length === 0 || !isInScope(quota, change, object)) return UNCOUNTED;
  const missing = isPod(change) ? missingAmounts(object, names) : undefined;
  if (missing !== undefined) return { kind: 'refused', why: `failed quota: ${name}: ${missing}` };
  if (names.some((each) => !used.has(each))) {
    return { kind: 'refused', why: `status unknown for quota: ${name}, resources: ${[...names].sort().join(',')}` };
  }
  const before = old === undefined ? new Map() : usageOf(change, old, nowMs);
  const requested = only(increaseOf(usageOf(change, object, nowMs), before), namesOf(hard));
  if (requested.size === 0) return UNCOUNTED;
  const next = add(used, requested);
  const exceeded = namesAbove(only(next, namesOf(requested)), hard);
  if (exceeded.length > 0) {
    const part = (amounts: Amounts) => textOf(only(amounts, exceeded));
    const why = `exceeded quota: ${name}, requested: ${part(requested)}, used: ${part(used)}, limited: ${part(hard)}`;
    return { kind: 'refused', why };
  }
  return { kind: 'charged', quota: { ...quota, status: { ...quota.status, used: listOf(next) } } };
}

/** Objects of one resource in the namespace of a quota. */
export interface CountedObjects extends CountedResource {
  readonly objects: readonly KubeObject[];
}

/** The quota with what its namespace uses. undefined: its status is right. */
export function recountedQuota(
  quota: KubeResourceQuota,
  counted: readonly CountedObjects[],
  nowMs: number,
): KubeResourceQuota | undefined {
  const hard = amountsOf(quota.spec?.hard);
  const names = namesOf(hard);
  let used: Amounts = only(amountsOf(quota.status?.used), names);
  for (const of of counted) {
    const tracked = matchingNames(of, names);
    let sum: Amounts = new Map(tracked.map((name) => [name, whole(0)]));
    for (const object of of.objects) {
      if (isInScope(quota, of, object)) sum = add(sum, usageOf(of, object, nowMs));
    }
    used = new Map([...used, ...only(sum, tracked)]);
  }
  const status = { hard: listOf(hard), used: listOf(used) };
  const isSame =
    textOf(amountsOf(quota.status?.hard)) === textOf(hard) &&
    textOf(amountsOf(quota.status?.used)) === textOf(used) &&
    quota.status?.used !== undefined;
  return isSame ? undefined : { ...quota, status: { ...quota.status, ...status } };
}

/** Resources that the quota counts. */
export const countedBy = (
  quota: KubeResourceQuota,
  resources: readonly CountedResource[],
): readonly CountedResource[] =>
  resources.filter((of) => isCounted(of) && matchingNames(of, Object.keys(quota.spec?.hard ?? {})).length > 0);

const isPod = ({ group, resource }: CountedResource): boolean => group === '' && resource === 'pods';

/** Only pods have scopes: a quota with a scope counts nothing else. */
function isInScope({ spec = {} }: KubeResourceQuota, of: CountedResource, object: KubeObject): boolean {
  const requirements = [
    ...(spec.scopes ?? []).map((scopeName): ScopedResourceSelectorRequirement => ({ scopeName, operator: 'Exists' })),
    ...(spec.scopeSelector?.matchExpressions ?? []),
  ];
  return requirements.every((requirement) => isPod(of) && podMatches(object, requirement));
}

function podMatches(pod: KubePod, { scopeName, operator, values = [] }: ScopedResourceSelectorRequirement): boolean {
  const { spec = {} } = pod;
  switch (scopeName) {
    case 'Terminating':
      return (spec.activeDeadlineSeconds ?? -1) >= 0;
    case 'NotTerminating':
      return (spec.activeDeadlineSeconds ?? -1) < 0;
    case 'BestEffort':
      return podQosClass(pod) === 'BestEffort';
    case 'NotBestEffort':
      return podQosClass(pod) !== 'BestEffort';
    case 'PriorityClass':
      return classMatches(spec.priorityClassName ?? '', operator, values);
    case 'CrossNamespacePodAffinity':
      return affinityTermsOf(pod).some(
        ({ namespaces = [], namespaceSelector }) => namespaces.length > 0 || namespaceSelector !== undefined,
      );
    default:
      return false;
  }
}

/** The rule is that of a label selector on a label that is absent when the pod names no class. */
function classMatches(name: string, operator: string | undefined, values: readonly string[]): boolean {
  switch (operator) {
    case 'In':
      return name !== '' && values.includes(name);
    case 'NotIn':
      return name === '' || !values.includes(name);
    case 'Exists':
      return name !== '';
    case 'DoesNotExist':
      return name === '';
    default:
      return false;
  }
}

function affinityTermsOf({ spec = {} }: KubePod): readonly PodAffinityTerm[] {
  return [spec.affinity?.podAffinity, spec.affinity?.podAntiAffinity].flatMap((each) => [
    ...(each?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(each?.preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap(({ podAffinityTerm }) =>
      podAffinityTerm === undefined ? [] : [podAffinityTerm],
    ),
  ]);
}
