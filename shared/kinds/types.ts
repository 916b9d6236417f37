/**
 * Kubernetes objects as they are in JSON. The schemas (schemas.ts) check the shape of every body; after that, these
 * types are trusted. Kubernetes' own kinds are generated; kinds of ours follow.
 */
import type {
  ConditionStatus,
  ContainerResourceMetricSource,
  DeploymentStatus,
  IntOrString,
  KubeObject,
  NetworkPolicyEgressRule,
  NetworkPolicyIngressRule,
  ObjectMetricSource,
  ReplicaSetStatus,
  StatefulSetStatus,
} from './generated/types.ts';

export type * from './generated/types.ts';

/** Names one object: plural resource, namespace ('' for cluster-scoped ones), name. */
export interface ObjectRef {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

/** Amounts by resource name, each as a quantity. */
export type ResourceList = Record<string, string>;

/** The counts of pods of any workload. */
export type ReplicaStatus = Omit<Partial<DeploymentStatus & ReplicaSetStatus & StatefulSetStatus>, 'conditions'>;

/** A rule for either direction. */
export type NetworkPolicyRule = NetworkPolicyIngressRule & NetworkPolicyEgressRule;

/** Where a metric comes from, of any type of source. */
export type MetricSource = Partial<ContainerResourceMetricSource & ObjectMetricSource>;

export interface PublicKey {
  kty?: string;
  crv?: string;
  x?: string;
  y?: string;
}

export type NodeIdentitySpec = {
  publicKey?: PublicKey;
  keys?: { keyId?: string; publicKey?: PublicKey; addedAt?: string }[];
  nodeLabels?: Record<string, string>;
  source?: string;
};

export interface KubeNodeIdentity extends KubeObject {
  spec?: NodeIdentitySpec;
}

export type BootstrapTokenSpec = {
  secretSha256?: string;
  expires?: string;
  uses?: number;
  nodeNamePattern?: string;
  nodeLabels?: Record<string, string>;
  reissue?: boolean;
};

export interface KubeBootstrapToken extends KubeObject {
  spec?: BootstrapTokenSpec;
  status?: { usesLeft?: number } & Record<string, unknown>;
}

/** A record of a controller's decision. */
export interface KubeDecision extends KubeObject {
  spec?: {
    act?: string;
    about?: { kind?: string; namespace?: string; name?: string; uid?: string };
    reason?: string;
    rule?: string;
    policy?: string;
  } & Record<string, unknown>;
}

/** What node-monitor stored at its last tick. */
export interface KubeClusterStatus extends KubeObject {
  status?: {
    lastTickTime?: string;
    ticks?: number;
    nodes?: number;
    gate?: { state: 'Open' | 'Closed'; reasons?: string[]; since?: string };
    totalDisruption?: boolean;
    heartbeats?: { profile: string; intervalSeconds: number; graceSeconds: number }[];
    /** Absent: they were not measured. */
    watches?: { form: 'Stream' | 'LongPoll'; paddingBytes?: number; measuredTime: string };
  };
}

/** Silences of live machines in one hour (shared/fleet/silences). */
export interface KubeSilenceHistogram extends KubeObject {
  spec?: SilenceHistogramSpec;
}

export type SilenceHistogramSpec = {
  hour?: string;
  zone?: string;
  profile?: string;
  observedSeconds?: number;
  nodeSeconds?: number;
  nodes?: number;
  beatIntervalSeconds?: number;
  graceSeconds?: number;
  periodSeconds?: number;
  buckets?: { upToMilliseconds: number; silences: number }[];
  uncounted?: number;
};

/** A version of the agent that nodes install themselves (shared/agents/release-rollout.ts). */
export interface KubeAgentRelease extends KubeObject {
  spec?: AgentReleaseSpec;
  status?: AgentReleaseStatus;
}

export interface KubeSitePolicy extends KubeObject {
  spec?: { hub?: string; nodes?: string[]; namespaces?: string[] };
}

export type AgentReleaseArtifactSpec = {
  architecture?: string;
  url?: string;
  sha256?: string;
  signature?: string;
  downgradeSignature?: string;
  sizeBytes?: number;
};

export type AgentReleaseSpec = {
  version?: string;
  artifacts?: AgentReleaseArtifactSpec[];
  waves?: { name?: string; nodeSelector?: Record<string, string> }[];
  maxUnavailable?: IntOrString;
  paused?: boolean;
  allowDowngrade?: boolean;
};

export type AgentReleaseCondition = {
  type: string;
  status: ConditionStatus;
  observedGeneration?: number;
  lastTransitionTime: string;
  reason: string;
  message: string;
};

export type AgentReleaseStatus = {
  observedGeneration?: number;
  refreshedAt?: string;
  nodes?: number;
  updated?: number;
  skipped?: number;
  wave?: number;
  conditions?: AgentReleaseCondition[];
  skippedNodes?: { node: string; reason: string }[];
  updating?: { node: string; sha256: string; since: string }[];
  failed?: { node: string; sha256: string; message: string; at: string }[];
};
