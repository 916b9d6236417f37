/**
 * Whether a ResourceQuota permits an object, and what it has used. Pure. Source: k8s.io/apiserver
 * pkg/admission/plugin/resourcequota/controller.go (CheckRequest), pkg/controller/resourcequota.
 */

import { podQosClass } from '../pods/qos-class.ts';
import type {
  KubeObject,
  KubePod,
  KubeResourceQuota,
  PodAffinityTerm,
  ScopedResourceSelectorRequirement,
} from '../types.ts';
import {
  type Amounts,
  add,
  amountsOf,
  increaseOf,
  listOf,
  namesAbove,
  namesOf,
  only,
  textOf,
  whole,
} from './amounts.ts';
import { type CountedResource, isCounted, matchingNames, mayGrow, missingAmounts, usageOf } from './usage.ts';

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
