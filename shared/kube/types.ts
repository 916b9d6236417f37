import type { NodeCondition, Taint } from '../domain/kubernetes.ts';

export type { ConditionStatus, NodeCondition, Taint, TaintEffect, Toleration } from '../domain/kubernetes.ts';

/** A Kubernetes object as it stands in JSON. Shapes are checked at the door (validation), then trusted. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: unknown[];
  selfLink?: string;
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  [field: string]: unknown;
}

/** Names one object: plural resource, namespace ('' for cluster-scoped ones), name. */
export interface ObjectRef {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface NodeSpec {
  podCIDR?: string;
  podCIDRs?: string[];
  providerID?: string;
  taints?: Taint[];
  unschedulable?: boolean;
  [field: string]: unknown;
}

export interface NodeStatus {
  capacity?: Record<string, string>;
  allocatable?: Record<string, string>;
  conditions?: NodeCondition[];
  addresses?: { type: string; address: string }[];
  nodeInfo?: Record<string, string>;
  [field: string]: unknown;
}

export interface KubeNode extends KubeObject {
  spec?: NodeSpec & Record<string, unknown>;
  status?: NodeStatus & Record<string, unknown>;
}

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
  strategy?: string;
  preferredHolder?: string;
}
