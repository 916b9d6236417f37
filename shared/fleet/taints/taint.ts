/**
 * Taint keys, and functions on lists of taints. They return new lists.
 * A taint is identified by key and effect; value and time are not part of it (pkg/util/taints/taints.go).
 */
import type { Taint, TaintEffect } from '../../kubernetes/kubernetes.ts';

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
