/**
 * Taint keys, and functions on lists of taints. They return new lists.
 * A taint is identified by key and effect; value and time are not part of it (pkg/util/taints/taints.go).
 *
 * Which taints a pod tolerates, and for how long.
 *
 * Only `NoExecute` taints evict pods, with any key. For each taint the first matching toleration in list order is used.
 * A later one is ignored, even if it is shorter. Source: Kubernetes "Taints and Tolerations";
 * staging/src/k8s.io/api/core/v1/toleration.go, pkg/controller/tainteviction/taint_eviction.go.
 *
 * Tolerations that pods get when they bring none for silent and not-ready nodes: with them every pod survives a short
 * silence, and leaves after it.
 *
 * Source: plugin/pkg/admission/defaulttolerationseconds/admission.go.
 */
import type { Taint, TaintEffect, Toleration } from '../../kubernetes/kubernetes.ts';
import { parseRfc3339, rfc3339RoundedUp } from '../../kubernetes/rfc3339.ts';
import { boundedSeconds } from '../../kubernetes/time.ts';

export const TAINT_NOT_READY = 'node.kubernetes.io/not-ready';
export const TAINT_UNREACHABLE = 'node.kubernetes.io/unreachable';
export const TAINT_MEMORY_PRESSURE = 'node.kubernetes.io/memory-pressure';
export const TAINT_DISK_PRESSURE = 'node.kubernetes.io/disk-pressure';
export const TAINT_PID_PRESSURE = 'node.kubernetes.io/pid-pressure';
export const TAINT_NETWORK_UNAVAILABLE = 'node.kubernetes.io/network-unavailable';
export const TAINT_UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';
/** Users or tools set it. pod-gc and volume-detacher read it. */
export const TAINT_OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
/** The kubelet sets it at registration. cloud-node removes it when it has initialised the node. */
export const TAINT_UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized';
/**
 * Label of a node with the agent: its runtime. With the runtime `exec` also a taint: pods there are processes, and
 * those that need an image belong elsewhere.
 */
export const NODE_RUNTIME = 'nodekeeper.dev/runtime';
/** cloud-node sets it while the instance of the node is shut down. */
export const TAINT_SHUTDOWN = 'node.cloudprovider.kubernetes.io/shutdown';

export interface TaintIdentity {
  readonly key: string;
  readonly effect: TaintEffect;
}

export type TaintList = readonly Readonly<Taint>[];

export const sameTaint = (a: TaintIdentity, b: TaintIdentity): boolean => a.key === b.key && a.effect === b.effect;

export const findTaint = (taints: TaintList, wanted: TaintIdentity): Readonly<Taint> | undefined =>
  taints.find((taint) => sameTaint(taint, wanted));

export const hasTaint = (taints: TaintList, wanted: TaintIdentity): boolean => findTaint(taints, wanted) !== undefined;

/** The list with this taint. It replaces a taint with the same key and effect, otherwise it is appended. */
export const addTaint = (taints: TaintList, taint: Taint): Taint[] =>
  hasTaint(taints, taint)
    ? taints.map((present) => (sameTaint(present, taint) ? { ...taint } : { ...present }))
    : [...taints.map((present) => ({ ...present })), { ...taint }];

/** The list without the taints with these keys and effects. */
export const removeTaints = (taints: TaintList, unwanted: readonly TaintIdentity[]): Taint[] =>
  taints.filter((taint) => !unwanted.some((identity) => sameTaint(taint, identity))).map((taint) => ({ ...taint }));

/** A NoExecute taint with its time as a number. */
export interface NoExecuteTaint {
  readonly key: string;
  readonly value: string;
  /** Server time at which the taint was added. Undefined without a readable timeAdded: it then counts as added now. */
  readonly addedAtMs: number | undefined;
}

/** The NoExecute taints of a node. A malformed timeAdded counts as absent. */
export const noExecuteTaints = (taints: TaintList): NoExecuteTaint[] =>
  taints
    .filter((taint) => taint.effect === 'NoExecute')
    .map((taint) => ({
      key: taint.key,
      value: taint.value ?? '',
      addedAtMs: taint.timeAdded === undefined ? undefined : parseRfc3339(taint.timeAdded),
    }));

/**
 * The list that a client wrote, with the server's `timeAdded` on every NoExecute taint: the stored time of a taint with
 * the same key and value, otherwise now. A time that the client sent has no effect, because evictions count from it.
 */
export const withTaintTimes = (before: TaintList, after: TaintList, nowMs: number): Taint[] =>
  after.map((taint) => {
    if (taint.effect !== 'NoExecute') return { ...taint };
    const known = findTaint(before, taint);
    const sameValue = known !== undefined && (known.value ?? '') === (taint.value ?? '');
    return { ...taint, timeAdded: (sameValue ? known.timeAdded : undefined) ?? rfc3339RoundedUp(nowMs) };
  });

/** The stored taints, with timeAdded = now on each NoExecute taint without one. Undefined when each has one. */
export const stampedTaints = (taints: TaintList, nowMs: number): Taint[] | undefined =>
  taints.some(({ effect, timeAdded }) => effect === 'NoExecute' && timeAdded === undefined)
    ? withTaintTimes(taints, taints, nowMs)
    : undefined;

/** How long a pod tolerates a taint: forever, or a number of seconds. 0: it is evicted immediately. */
export type TolerationTime = { readonly kind: 'forever' } | { readonly kind: 'seconds'; readonly seconds: number };

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

function int64(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d{1,19}$/.test(text)) return undefined;
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text);
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}

/**
 * Whether a toleration matches a taint. An empty effect or key matches all. `Exists` ignores the value; `Equal`, the
 * default, requires the same value. `Lt` and `Gt` require 64-bit integers, with the taint's value smaller or larger
 * than the toleration's.
 */
export function tolerates(toleration: Toleration, taint: Pick<Taint, 'key' | 'value' | 'effect'>): boolean {
  if (toleration.effect !== undefined && (toleration.effect as string) !== '' && toleration.effect !== taint.effect) {
    return false;
  }
  if (toleration.key !== undefined && toleration.key !== '' && toleration.key !== taint.key) return false;
  switch (toleration.operator ?? '') {
    case 'Exists':
      return true;
    case '':
    case 'Equal':
      return (toleration.value ?? '') === (taint.value ?? '');
    case 'Lt':
    case 'Gt': {
      const ofTaint = int64(taint.value);
      const ofToleration = int64(toleration.value);
      if (ofTaint === undefined || ofToleration === undefined) return false;
      return toleration.operator === 'Lt' ? ofTaint < ofToleration : ofTaint > ofToleration;
    }
    default:
      return false;
  }
}

/** The toleration used for a taint: the first that matches, in list order. */
export function tolerationFor(
  tolerations: readonly Toleration[],
  taint: Pick<Taint, 'key' | 'value' | 'effect'>,
): Toleration | undefined {
  return tolerations.find((toleration) => tolerates(toleration, taint));
}

/**
 * How long a toleration delays the eviction:
 *   - without seconds: forever; also if tolerationSeconds is not a number, because a mistake must not delete a pod
 *   - zero or less, or no toleration at all: 0
 *   - too large a number: SECONDS_MAX
 */
export function tolerationTime(toleration: Toleration | undefined): TolerationTime {
  if (toleration === undefined) return { kind: 'seconds', seconds: 0 };
  // Some clients send null for an unset field.
  const seconds = boundedSeconds(toleration.tolerationSeconds);
  return seconds === undefined ? { kind: 'forever' } : { kind: 'seconds', seconds };
}

/**
 * When a pod is bound to a node of a profile with another podEvictionTimeoutSeconds: the tolerations that
 * withDefaultTolerations added have the seconds of the profile. One that a user wrote in the same form, with the
 * seconds of the policy, cannot be distinguished. Returns the same list if nothing changes.
 */
export function withProfileTolerations(
  tolerations: readonly Toleration[],
  { fromSeconds, toSeconds }: { readonly fromSeconds: number; readonly toSeconds: number },
): readonly Toleration[] {
  const isAdded = ({ key, operator, effect, tolerationSeconds, value = '' }: Toleration): boolean =>
    (key === TAINT_NOT_READY || key === TAINT_UNREACHABLE) &&
    operator === 'Exists' &&
    effect === 'NoExecute' &&
    value === '' &&
    tolerationSeconds === fromSeconds;
  if (fromSeconds === toSeconds || !tolerations.some(isAdded)) return tolerations;
  return tolerations.map((each) => (isAdded(each) ? { ...each, tolerationSeconds: toSeconds } : each));
}

const covers = (toleration: Toleration, key: string, effect: TaintEffect): boolean =>
  (toleration.key === undefined || toleration.key === '' || toleration.key === key) &&
  (toleration.effect === undefined || (toleration.effect as string) === '' || toleration.effect === effect);

/**
 * On create and on update of a pod (no subresource): appends tolerations of not-ready, then of unreachable (`Exists`,
 * `NoExecute`, both with `tolerationSeconds`; 0 is allowed). Neither is added if a toleration covers its key and
 * NoExecute; operator and seconds of that toleration do not matter. Returns the same list if nothing is added.
 */
export function withDefaultTolerations(
  tolerations: readonly Toleration[],
  tolerationSeconds: number,
): readonly Toleration[] {
  const added: Toleration[] = [];
  for (const key of [TAINT_NOT_READY, TAINT_UNREACHABLE]) {
    if (tolerations.some((toleration) => covers(toleration, key, 'NoExecute'))) continue;
    added.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds });
  }
  return added.length === 0 ? tolerations : [...tolerations, ...added];
}
