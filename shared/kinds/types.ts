/**
 * Kubernetes objects as they are in JSON, with the members that this code reads. The schemas (schema/decode.ts) check
 * the shape of every body; after that, these types are trusted.
 *
 * A KubeObject is assignable to the type of its kind and back, so no cast is needed where the kind is known. The types
 * of `spec` and `status` are aliases: unlike an interface, an alias is assignable to a record of unknown members, and a
 * misspelt member is an error.
 */
import type { ConditionStatus, NodeCondition, Taint, Toleration } from '../kubernetes/kubernetes.ts';
import type { LabelSelectorSpec } from '../kubernetes/selectors.ts';

export type { ConditionStatus, NodeCondition, Taint, TaintEffect, Toleration } from '../kubernetes/kubernetes.ts';

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

export type NodeSpec = {
  podCIDR?: string;
  podCIDRs?: string[];
  providerID?: string;
  taints?: Taint[];
  unschedulable?: boolean;
  configSource?: unknown;
  externalID?: string;
};

export type NodeStatus = {
  capacity?: ResourceList;
  allocatable?: ResourceList;
  phase?: string;
  conditions?: NodeCondition[];
  addresses?: { type: string; address: string }[];
  daemonEndpoints?: { kubeletEndpoint?: { Port: number } };
  nodeInfo?: Record<string, string>;
  images?: { names?: string[]; sizeBytes?: number }[];
  volumesInUse?: string[];
  volumesAttached?: { name?: string; devicePath?: string }[];
};

export interface KubeNode extends KubeObject {
  spec?: NodeSpec;
  status?: NodeStatus;
}

export type LeaseSpec = {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
  strategy?: string;
  preferredHolder?: string;
};

export type PreemptionPolicy = 'PreemptLowerPriority' | 'Never';

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';

export type PodQosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

export interface PodCondition {
  type: string;
  status: ConditionStatus;
  observedGeneration?: number;
  lastProbeTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
}

/** Amounts by resource name, each as a quantity. */
export type ResourceList = Record<string, string>;

export interface ResourceRequirements {
  limits?: ResourceList;
  requests?: ResourceList;
  claims?: { name: string; request?: string }[];
}

export interface ContainerPort {
  name?: string;
  containerPort?: number;
  hostPort?: number;
  hostIP?: string;
  protocol?: 'TCP' | 'UDP' | 'SCTP';
}

export interface EnvVar {
  name?: string;
  value?: string;
  valueFrom?: {
    fieldRef?: FieldReference;
    resourceFieldRef?: ResourceFieldReference;
    configMapKeyRef?: { name?: string; key?: string; optional?: boolean };
    secretKeyRef?: { name?: string; key?: string; optional?: boolean };
  };
}

/** All variables of an object; exactly one of the references is set. */
export interface EnvFromSource {
  prefix?: string;
  configMapRef?: { name?: string; optional?: boolean };
  secretRef?: { name?: string; optional?: boolean };
}

export interface ResourceFieldReference {
  containerName?: string;
  resource?: string;
  divisor?: string;
}

export interface VolumeMount {
  name?: string;
  mountPath?: string;
  subPath?: string;
  subPathExpr?: string;
  readOnly?: boolean;
  recursiveReadOnly?: string;
  mountPropagation?: string;
}

/** A key of a ConfigMap or Secret as a file. */
export interface KeyToPath {
  key?: string;
  path?: string;
  mode?: number;
}

export interface LifecycleHandler {
  exec?: { command?: string[] };
  httpGet?: {
    path?: string;
    port?: IntOrString;
    host?: string;
    scheme?: string;
    httpHeaders?: { name?: string; value?: string }[];
  };
  sleep?: { seconds?: number };
  tcpSocket?: { port?: IntOrString; host?: string };
}

export interface Probe extends LifecycleHandler {
  grpc?: { port?: number; service?: string };
  initialDelaySeconds?: number;
  timeoutSeconds?: number;
  periodSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
  terminationGracePeriodSeconds?: number;
}

export interface ProjectedSource {
  serviceAccountToken?: { audience?: string; expirationSeconds?: number; path?: string };
  configMap?: { name?: string; items?: KeyToPath[]; optional?: boolean };
  secret?: { name?: string; items?: KeyToPath[]; optional?: boolean };
  downwardAPI?: { items?: DownwardItem[] };
}

/** A file of a downward API volume. */
export interface DownwardItem {
  path?: string;
  mode?: number;
  fieldRef?: FieldReference;
  resourceFieldRef?: ResourceFieldReference;
}

export interface FieldReference {
  apiVersion?: string;
  fieldPath?: string;
}

/** An init container with restartPolicy Always is a sidecar. */
export interface Container {
  name?: string;
  image?: string;
  imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  command?: string[];
  args?: string[];
  workingDir?: string;
  ports?: ContainerPort[];
  env?: EnvVar[];
  envFrom?: EnvFromSource[];
  resources?: ResourceRequirements;
  restartPolicy?: string;
  volumeMounts?: VolumeMount[];
  securityContext?: Record<string, unknown>;
  lifecycle?: { postStart?: LifecycleHandler; preStop?: LifecycleHandler; stopSignal?: string };
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
  terminationMessagePath?: string;
  terminationMessagePolicy?: 'File' | 'FallbackToLogsOnError';
}

/** A volume of a pod; exactly one source is set. */
export interface Volume {
  name?: string;
  awsElasticBlockStore?: { volumeID?: string; fsType?: string; readOnly?: boolean };
  csi?: { driver?: string };
  ephemeral?: unknown;
  configMap?: { name?: string; items?: KeyToPath[]; optional?: boolean; defaultMode?: number };
  emptyDir?: { medium?: string; sizeLimit?: string };
  downwardAPI?: { items?: DownwardItem[]; defaultMode?: number };
  hostPath?: { path?: string; type?: string };
  persistentVolumeClaim?: { claimName?: string; readOnly?: boolean };
  projected?: { sources?: ProjectedSource[]; defaultMode?: number };
  secret?: { secretName?: string; items?: KeyToPath[]; optional?: boolean; defaultMode?: number };
  [source: string]: unknown;
}

export interface NodeSelectorRequirement {
  key: string;
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
  values?: string[];
}

export interface NodeSelectorTerm {
  matchExpressions?: NodeSelectorRequirement[];
  matchFields?: NodeSelectorRequirement[];
}

export interface NodeSelector {
  nodeSelectorTerms?: NodeSelectorTerm[];
}

export interface Affinity {
  nodeAffinity?: {
    requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector;
    preferredDuringSchedulingIgnoredDuringExecution?: { weight: number; preference: NodeSelectorTerm }[];
  };
  podAffinity?: PodAffinity;
  podAntiAffinity?: PodAffinity;
}

export interface PodAffinityTerm {
  labelSelector?: LabelSelectorSpec;
  namespaces?: string[];
  namespaceSelector?: LabelSelectorSpec;
  topologyKey: string;
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
}

/** Also that of `podAntiAffinity`. */
export interface PodAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[];
  preferredDuringSchedulingIgnoredDuringExecution?: { weight: number; podAffinityTerm: PodAffinityTerm }[];
}

export interface TopologySpreadConstraint {
  maxSkew: number;
  topologyKey: string;
  whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway';
  labelSelector?: LabelSelectorSpec;
  matchLabelKeys?: string[];
  minDomains?: number;
  nodeAffinityPolicy?: 'Honor' | 'Ignore';
  nodeTaintsPolicy?: 'Honor' | 'Ignore';
}

export type PodSpec = {
  activeDeadlineSeconds?: number;
  affinity?: Affinity;
  automountServiceAccountToken?: boolean;
  containers?: Container[];
  dnsConfig?: { nameservers?: string[]; searches?: string[]; options?: { name?: string; value?: string }[] };
  dnsPolicy?: 'ClusterFirst' | 'ClusterFirstWithHostNet' | 'Default' | 'None';
  enableServiceLinks?: boolean;
  ephemeralContainers?: Container[];
  hostAliases?: { ip?: string; hostnames?: string[] }[];
  hostNetwork?: boolean;
  hostPID?: boolean;
  hostname?: string;
  imagePullSecrets?: { name?: string }[];
  initContainers?: Container[];
  nodeName?: string;
  nodeSelector?: Record<string, string>;
  os?: { name?: string };
  overhead?: ResourceList;
  preemptionPolicy?: PreemptionPolicy;
  priority?: number;
  priorityClassName?: string;
  readinessGates?: { conditionType?: string }[];
  resourceClaims?: { name: string }[];
  resources?: ResourceRequirements;
  restartPolicy?: 'Always' | 'OnFailure' | 'Never';
  runtimeClassName?: string;
  schedulerName?: string;
  schedulingGates?: { name?: string }[];
  securityContext?: Record<string, unknown>;
  serviceAccount?: string;
  serviceAccountName?: string;
  shareProcessNamespace?: boolean;
  subdomain?: string;
  terminationGracePeriodSeconds?: number;
  tolerations?: Toleration[];
  topologySpreadConstraints?: TopologySpreadConstraint[];
  volumes?: Volume[];
};

/** At most one member is set; none of them means waiting. */
export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string | null };
  terminated?: {
    exitCode?: number;
    signal?: number;
    reason?: string;
    message?: string;
    startedAt?: string | null;
    finishedAt?: string | null;
    containerID?: string;
  };
}

export interface ContainerStatus {
  name?: string;
  state?: ContainerState;
  lastState?: ContainerState;
  ready?: boolean;
  restartCount?: number;
  image?: string;
  imageID?: string;
  containerID?: string;
  started?: boolean;
}

export type PodStatus = {
  phase?: PodPhase;
  conditions?: PodCondition[];
  message?: string;
  reason?: string;
  nominatedNodeName?: string;
  hostIP?: string;
  hostIPs?: { ip?: string }[];
  podIP?: string;
  podIPs?: { ip?: string }[];
  startTime?: string;
  initContainerStatuses?: ContainerStatus[];
  containerStatuses?: ContainerStatus[];
  ephemeralContainerStatuses?: ContainerStatus[];
  qosClass?: PodQosClass;
  resourceClaimStatuses?: { name: string; resourceClaimName?: string }[];
};

export interface KubePod extends KubeObject {
  spec?: PodSpec;
  status?: PodStatus;
}

export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  resourceVersion?: string;
  fieldPath?: string;
}

/** An event in the form of v1, which is the form that is stored. */
export interface KubeEvent extends KubeObject {
  involvedObject?: ObjectReference;
  related?: ObjectReference;
  type?: string;
  reason?: string;
  message?: string;
  action?: string;
  count?: number;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  series?: { count?: number; lastObservedTime?: string | null };
  source?: { component?: string; host?: string };
  reportingComponent?: string;
  reportingInstance?: string;
}

export interface KubeLease extends KubeObject {
  spec?: LeaseSpec;
}

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
    heartbeats?: { profile: string; intervalSeconds: number }[];
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

export type NamespaceSpec = { finalizers?: string[] };

export type NamespaceCondition = {
  type: string;
  status: ConditionStatus;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
};

export type NamespaceStatus = { phase?: 'Active' | 'Terminating'; conditions?: NamespaceCondition[] };

export interface KubeNamespace extends KubeObject {
  spec?: NamespaceSpec;
  status?: NamespaceStatus;
}

export interface VolumeAttachmentSource {
  persistentVolumeName?: string;
  inlineVolumeSpec?: { csi?: { driver?: string; volumeHandle?: string } };
}

export type VolumeAttachmentSpec = {
  attacher?: string;
  nodeName?: string;
  source?: VolumeAttachmentSource;
};

export interface VolumeError {
  time?: string | null;
  message?: string;
  errorCode?: number;
}

export type VolumeAttachmentStatus = {
  attached?: boolean;
  attachmentMetadata?: Record<string, string>;
  attachError?: VolumeError;
  detachError?: VolumeError;
};

export interface KubeVolumeAttachment extends KubeObject {
  spec?: VolumeAttachmentSpec;
  status?: VolumeAttachmentStatus;
}

export type CsiNodeSpec = {
  drivers?: { name?: string; nodeID?: string; topologyKeys?: string[]; allocatable?: { count?: number } }[];
};

export interface KubeCsiNode extends KubeObject {
  spec?: CsiNodeSpec;
}

/** A number of pods, or a share of them such as `50%`. */
export type IntOrString = number | string;

export type PodDisruptionBudgetSpec = {
  minAvailable?: IntOrString;
  maxUnavailable?: IntOrString;
  selector?: LabelSelectorSpec;
  unhealthyPodEvictionPolicy?: 'IfHealthyBudget' | 'AlwaysAllow';
};

export interface BudgetCondition {
  type?: string;
  status?: ConditionStatus;
  observedGeneration?: number;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}

export type PodDisruptionBudgetStatus = {
  observedGeneration?: number;
  disruptedPods?: Record<string, string | null>;
  disruptionsAllowed?: number;
  currentHealthy?: number;
  desiredHealthy?: number;
  expectedPods?: number;
  conditions?: BudgetCondition[];
};

export interface KubePodDisruptionBudget extends KubeObject {
  spec?: PodDisruptionBudgetSpec;
  status?: PodDisruptionBudgetStatus;
}

export interface KubePriorityClass extends KubeObject {
  value?: number;
  globalDefault?: boolean;
  description?: string;
  preemptionPolicy?: PreemptionPolicy;
}

export type DaemonSetSpec = {
  selector?: LabelSelectorSpec;
  template?: { metadata?: ObjectMeta; spec?: PodSpec };
  updateStrategy?: {
    type?: 'RollingUpdate' | 'OnDelete';
    rollingUpdate?: { maxSurge?: IntOrString; maxUnavailable?: IntOrString };
  };
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
};

export type DaemonSetStatus = {
  currentNumberScheduled?: number;
  desiredNumberScheduled?: number;
  numberMisscheduled?: number;
  numberReady?: number;
  numberAvailable?: number;
  numberUnavailable?: number;
  observedGeneration?: number;
  updatedNumberScheduled?: number;
  collisionCount?: number;
};

export interface KubeDaemonSet extends KubeObject {
  spec?: DaemonSetSpec;
  status?: DaemonSetStatus;
}
