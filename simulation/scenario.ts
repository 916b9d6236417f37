/** A scenario as it was read: checked, in milliseconds, with the line of everything that can go wrong when it runs. */

import type { Policy } from '../shared/fleet/policy.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import type { ConditionStatus, Taint, TaintEffect } from '../shared/kubernetes/kubernetes.ts';

export interface Scenario {
  readonly file: string;
  readonly name: string;
  /** Epoch milliseconds of 0 s. */
  readonly startMs: number;
  readonly policy: Policy;
  readonly machines: readonly MachineSpec[];
  readonly steps: readonly Step[];
}

/** One machine and the Node it registers. */
export interface MachineSpec {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly podCount: number;
  /** An EC2 instance stands behind it. */
  readonly hasInstance: boolean;
  readonly beating: boolean;
  /** How old Node and instance are at 0 s. */
  readonly ageMs: number;
  /** By how much the machine's clock is ahead; it shifts what it writes, never when it acts. */
  readonly clockOffsetMs: number;
  readonly beatEveryMs: number;
  /** When it first beats. */
  readonly phaseMs: number;
}

export interface TaintPattern {
  readonly key: string;
  /** Absent: any value. */
  readonly value: string | undefined;
  /** Absent: every effect; only where a taint is removed. */
  readonly effect: TaintEffect | undefined;
}

export interface ObjectName {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
}

export type CloudChange =
  | {
      readonly kind: 'instances';
      readonly say: 'terminate' | 'stop' | 'start' | 'vanish';
      readonly nodes: readonly string[];
    }
  | { readonly kind: 'error'; readonly error: string | undefined };

export const PROPAGATION_POLICIES = ['Background', 'Foreground', 'Orphan'] as const;
export type PropagationPolicy = (typeof PROPAGATION_POLICIES)[number];

export type StepAction =
  | { readonly verb: 'silence'; readonly names: readonly string[] }
  | { readonly verb: 'beat'; readonly machines: readonly (string | MachineSpec)[] }
  | {
      readonly verb: 'status';
      readonly names: readonly string[];
      readonly conditions: Readonly<Record<string, ConditionStatus>>;
    }
  | { readonly verb: 'apply'; readonly objects: readonly KubeObject[] }
  | { readonly verb: 'patch'; readonly target: ObjectName; readonly merge: Readonly<Record<string, unknown>> }
  | {
      readonly verb: 'delete';
      readonly target: ObjectName;
      readonly gracePeriodSeconds: number | undefined;
      readonly propagationPolicy: PropagationPolicy | undefined;
    }
  | { readonly verb: 'evict'; readonly pod: string; readonly namespace: string }
  | {
      readonly verb: 'taint';
      readonly names: readonly string[];
      readonly add: readonly Taint[];
      readonly remove: readonly TaintPattern[];
    }
  | { readonly verb: 'cordon' | 'uncordon' | 'drain'; readonly names: readonly string[] }
  | { readonly verb: 'cloud'; readonly change: CloudChange }
  | { readonly verb: 'controllers'; readonly down: boolean }
  | { readonly verb: 'ingest'; readonly failShare: number }
  | { readonly verb: 'agentShutdown' }
  | { readonly verb: 'expect'; readonly expectation: Expectation };

export type Step = StepAction & {
  /** From the start. */
  readonly atMs: number;
  readonly line: number;
  /** HTTP status with which the API is to refuse it. */
  readonly refused: number | undefined;
};

/** Bounds, both included; one value has both the same. */
export interface Quantity {
  readonly min: number | undefined;
  readonly max: number | undefined;
}

/** Where an expectation stands. */
interface Expected {
  readonly line: number;
}

export interface NodeExpectation extends Expected {
  readonly pattern: string;
  readonly exists: boolean | undefined;
  readonly ready: ConditionStatus | 'absent' | undefined;
  readonly reason: string | undefined;
  readonly unschedulable: boolean | undefined;
  readonly taints: readonly TaintPattern[] | undefined;
  readonly hasTaints: readonly TaintPattern[] | undefined;
  readonly lacksTaints: readonly TaintPattern[] | undefined;
  readonly podCIDRs: readonly string[] | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly conditions: Readonly<Record<string, ConditionStatus | 'absent'>> | undefined;
}

export interface PodExpectation extends Expected {
  /** `namespace/name` */
  readonly pattern: string;
  readonly exists: boolean | undefined;
  readonly deleting: boolean | undefined;
  readonly phase: string | undefined;
  readonly ready: ConditionStatus | 'absent' | undefined;
  /** Name or pattern of the node that the pod is bound to; `none` for a pod without a node. */
  readonly node: string | undefined;
  /** Milliseconds; `none` for no timer. */
  readonly evictionDueIn: Quantity | 'none' | undefined;
}

/** A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job, with the pods that it controls. */
export interface WorkloadExpectation extends Expected {
  /** `deployment default/web` */
  readonly subject: string;
  /** Plural name. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly exists: boolean | undefined;
  /** By its status. */
  readonly ready: Quantity | undefined;
  readonly available: Quantity | undefined;
  readonly updated: Quantity | undefined;
  /** Pods that are neither terminated nor being deleted. */
  readonly pods: Quantity | undefined;
  /** Pods that are being deleted. */
  readonly terminating: Quantity | undefined;
  /** Bound pods, of those, by zone. */
  readonly zones: Readonly<Record<string, Quantity>> | undefined;
  readonly conditions: Readonly<Record<string, ConditionStatus | 'absent'>> | undefined;
}

export interface ZoneExpectation extends Expected {
  readonly zone: string;
  readonly state: string | undefined;
  readonly evictionRatePerSecond: Quantity | undefined;
  readonly queued: Quantity | undefined;
}

export const COUNTS = ['notReady', 'tainted', 'podsDeleted', 'podsCreated', 'nodesDeleted'] as const;
export type CountName = (typeof COUNTS)[number];

export interface CountExpectation extends Expected {
  readonly count: CountName;
  readonly wanted: Quantity;
}

export interface EventExpectation extends Expected {
  readonly kind: string | undefined;
  readonly name: string | undefined;
  readonly reason: string | undefined;
  /** Absent: at least one. */
  readonly count: Quantity | undefined;
}

export interface Expectation {
  readonly nodes: readonly NodeExpectation[];
  readonly pods: readonly PodExpectation[];
  readonly workloads: readonly WorkloadExpectation[];
  readonly zones: readonly ZoneExpectation[];
  readonly counts: readonly CountExpectation[];
  readonly events: readonly EventExpectation[];
}
