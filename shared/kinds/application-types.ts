/** The kinds that applications consist of, with the members that this code reads. types.ts explains the form. */
import type { LabelSelectorSpec } from '../kubernetes/selectors.ts';
import type {
  IntOrString,
  KubeObject,
  NodeSelectorTerm,
  ObjectMeta,
  ObjectReference,
  PodSpec,
  ResourceList,
  Toleration,
} from './types.ts';

export interface KubeConfigMap extends KubeObject {
  immutable?: boolean;
  data?: Record<string, string>;
  /** Base64. */
  binaryData?: Record<string, string>;
}

export interface KubeSecret extends KubeObject {
  immutable?: boolean;
  /** Base64. */
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  type?: string;
}

export interface KubeServiceAccount extends KubeObject {
  secrets?: ObjectReference[];
  imagePullSecrets?: { name?: string }[];
  automountServiceAccountToken?: boolean;
}

export interface PodTemplateSpec {
  metadata?: ObjectMeta;
  spec?: PodSpec;
}

export interface KubePodTemplate extends KubeObject {
  template?: PodTemplateSpec;
}

export type DeploymentSpec = {
  replicas?: number;
  selector?: LabelSelectorSpec;
  template?: PodTemplateSpec;
  strategy?: { type?: string; rollingUpdate?: { maxUnavailable?: IntOrString; maxSurge?: IntOrString } };
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
  paused?: boolean;
  progressDeadlineSeconds?: number;
};

/** The counts of pods that the workload kinds have in common. */
export type ReplicaStatus = {
  observedGeneration?: number;
  replicas?: number;
  updatedReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  unavailableReplicas?: number;
  currentReplicas?: number;
  fullyLabeledReplicas?: number;
  collisionCount?: number;
};

export interface KubeDeployment extends KubeObject {
  spec?: DeploymentSpec;
  status?: ReplicaStatus;
}

export type ReplicaSetSpec = {
  replicas?: number;
  minReadySeconds?: number;
  selector?: LabelSelectorSpec;
  template?: PodTemplateSpec;
};

export interface KubeReplicaSet extends KubeObject {
  spec?: ReplicaSetSpec;
  status?: ReplicaStatus;
}

export type ReplicationControllerSpec = Omit<ReplicaSetSpec, 'selector'> & { selector?: Record<string, string> };

export interface KubeReplicationController extends KubeObject {
  spec?: ReplicationControllerSpec;
  status?: ReplicaStatus;
}

export type StatefulSetSpec = {
  replicas?: number;
  selector?: LabelSelectorSpec;
  template?: PodTemplateSpec;
  volumeClaimTemplates?: KubePersistentVolumeClaim[];
  serviceName?: string;
  podManagementPolicy?: string;
  updateStrategy?: { type?: string; rollingUpdate?: { partition?: number; maxUnavailable?: IntOrString } };
  revisionHistoryLimit?: number;
  minReadySeconds?: number;
  persistentVolumeClaimRetentionPolicy?: { whenDeleted?: string; whenScaled?: string };
  ordinals?: { start?: number };
};

export interface KubeStatefulSet extends KubeObject {
  spec?: StatefulSetSpec;
  status?: ReplicaStatus;
}

export interface KubeControllerRevision extends KubeObject {
  data?: unknown;
  revision?: number;
}

/** Exit codes of the containers of a failed pod. */
export interface ExitCodesRequirement {
  containerName?: string;
  operator?: string;
  values?: number[];
}

export interface PodFailureRule {
  action?: string;
  onExitCodes?: ExitCodesRequirement;
  onPodConditions?: { type?: string; status?: string }[];
}

export type JobSpec = {
  parallelism?: number;
  completions?: number;
  activeDeadlineSeconds?: number;
  podFailurePolicy?: { rules?: PodFailureRule[] };
  successPolicy?: unknown;
  managedBy?: string;
  backoffLimit?: number;
  backoffLimitPerIndex?: number;
  maxFailedIndexes?: number;
  selector?: LabelSelectorSpec;
  manualSelector?: boolean;
  template?: PodTemplateSpec;
  ttlSecondsAfterFinished?: number;
  completionMode?: string;
  suspend?: boolean;
  podReplacementPolicy?: string;
};

export interface JobCondition {
  type?: string;
  status?: string;
  reason?: string;
  message?: string;
  lastProbeTime?: string;
  lastTransitionTime?: string;
}

export type JobStatus = {
  conditions?: JobCondition[];
  startTime?: string;
  completionTime?: string;
  active?: number;
  ready?: number;
  terminating?: number;
  succeeded?: number;
  failed?: number;
  /** Such as `0,2-4`. */
  completedIndexes?: string;
  failedIndexes?: string;
  uncountedTerminatedPods?: { succeeded?: string[]; failed?: string[] };
};

export interface KubeJob extends KubeObject {
  spec?: JobSpec;
  status?: JobStatus;
}

export type CronJobSpec = {
  schedule?: string;
  timeZone?: string;
  startingDeadlineSeconds?: number;
  concurrencyPolicy?: string;
  suspend?: boolean;
  jobTemplate?: { metadata?: ObjectMeta; spec?: JobSpec };
  successfulJobsHistoryLimit?: number;
  failedJobsHistoryLimit?: number;
};

export interface KubeCronJob extends KubeObject {
  spec?: CronJobSpec;
  status?: { active?: ObjectReference[]; lastScheduleTime?: string; lastSuccessfulTime?: string };
}

export interface ServicePort {
  name?: string;
  protocol?: string;
  appProtocol?: string;
  port?: number;
  targetPort?: IntOrString;
  nodePort?: number;
}

export type ServiceSpec = {
  ports?: ServicePort[];
  selector?: Record<string, string>;
  clusterIP?: string;
  clusterIPs?: string[];
  type?: string;
  externalIPs?: string[];
  sessionAffinity?: string;
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
  externalName?: string;
  externalTrafficPolicy?: string;
  internalTrafficPolicy?: string;
  ipFamilies?: string[];
  ipFamilyPolicy?: string;
  allocateLoadBalancerNodePorts?: boolean;
  publishNotReadyAddresses?: boolean;
  loadBalancerSourceRanges?: string[];
  loadBalancerClass?: string;
  healthCheckNodePort?: number;
  trafficDistribution?: string;
};

export interface KubeService extends KubeObject {
  spec?: ServiceSpec;
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

export interface EndpointPort {
  name?: string;
  port?: number;
  protocol?: string;
  appProtocol?: string;
}

export interface EndpointAddress {
  ip?: string;
  hostname?: string;
  nodeName?: string;
  targetRef?: ObjectReference;
}

export interface KubeEndpoints extends KubeObject {
  subsets?: { addresses?: EndpointAddress[]; notReadyAddresses?: EndpointAddress[]; ports?: EndpointPort[] }[];
}

export interface SliceEndpoint {
  addresses?: string[];
  conditions?: { ready?: boolean; serving?: boolean; terminating?: boolean };
  hostname?: string;
  nodeName?: string;
  targetRef?: ObjectReference;
  hints?: { forZones?: { name?: string }[] };
  deprecatedTopology?: Record<string, string>;
}

export interface KubeEndpointSlice extends KubeObject {
  addressType?: string;
  endpoints?: SliceEndpoint[];
  ports?: EndpointPort[];
}

export interface ScopeRequirement {
  scopeName?: string;
  /** In, NotIn, Exists or DoesNotExist. */
  operator?: string;
  values?: string[];
}

export interface KubeResourceQuota extends KubeObject {
  spec?: {
    hard?: ResourceList;
    scopes?: string[];
    scopeSelector?: { matchExpressions?: ScopeRequirement[] };
  };
  status?: { hard?: ResourceList; used?: ResourceList };
}

export interface LimitRangeItem {
  type?: string;
  max?: ResourceList;
  min?: ResourceList;
  default?: ResourceList;
  defaultRequest?: ResourceList;
  maxLimitRequestRatio?: ResourceList;
}

export interface KubeLimitRange extends KubeObject {
  spec?: { limits?: LimitRangeItem[] };
}

export interface CsiSource {
  driver?: string;
  volumeHandle?: string;
  controllerPublishSecretRef?: ObjectReference;
  controllerExpandSecretRef?: ObjectReference;
  nodePublishSecretRef?: ObjectReference;
  nodeExpandSecretRef?: ObjectReference;
}

export type PersistentVolumeSpec = {
  capacity?: ResourceList;
  accessModes?: string[];
  claimRef?: ObjectReference;
  persistentVolumeReclaimPolicy?: string;
  storageClassName?: string;
  volumeMode?: string;
  hostPath?: { path?: string; type?: string };
  nfs?: { server?: string; path?: string };
  local?: { path?: string };
  csi?: CsiSource;
  nodeAffinity?: { required?: { nodeSelectorTerms?: NodeSelectorTerm[] } };
};

export interface KubePersistentVolume extends KubeObject {
  spec?: PersistentVolumeSpec;
  status?: { phase?: string; reason?: string };
}

export type PersistentVolumeClaimSpec = {
  accessModes?: string[];
  resources?: { requests?: ResourceList };
  storageClassName?: string;
  volumeMode?: string;
  volumeName?: string;
  selector?: LabelSelectorSpec;
  dataSource?: ResourceBackend;
  dataSourceRef?: ResourceBackend & { namespace?: string };
};

export interface KubePersistentVolumeClaim extends KubeObject {
  spec?: PersistentVolumeClaimSpec;
  status?: { phase?: string; accessModes?: string[]; capacity?: ResourceList };
}

export interface ScaleTarget {
  kind?: string;
  name?: string;
  apiVersion?: string;
}

export interface MetricTarget {
  type?: string;
  averageUtilization?: number;
  averageValue?: string;
  value?: string;
}

/** Where a metric comes from. Which fields it has depends on its type. */
export interface MetricSource {
  name?: string;
  container?: string;
  metric?: { name?: string };
  describedObject?: ScaleTarget;
  target?: MetricTarget;
}

/** A metric of an autoscaler, in autoscaling/v2. */
export interface MetricSpec {
  type?: string;
  resource?: MetricSource;
  containerResource?: MetricSource;
  pods?: MetricSource;
  object?: MetricSource;
  external?: MetricSource;
}

export interface ScalingRules {
  stabilizationWindowSeconds?: number;
  selectPolicy?: string;
  policies?: { type?: string; value?: number; periodSeconds?: number }[];
}

/** An autoscaler in the form of autoscaling/v2, which is the form that is stored. */
export interface KubeHorizontalPodAutoscaler extends KubeObject {
  spec?: {
    scaleTargetRef?: ScaleTarget;
    minReplicas?: number;
    maxReplicas?: number;
    metrics?: MetricSpec[];
    behavior?: { scaleUp?: ScalingRules; scaleDown?: ScalingRules };
  };
  status?: {
    currentReplicas?: number;
    desiredReplicas?: number;
    observedGeneration?: number;
    lastScaleTime?: string;
    currentMetrics?: unknown[];
    conditions?: unknown[];
  };
}

export interface PolicyRule {
  readonly verbs?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export interface KubeRole extends KubeObject {
  rules?: readonly PolicyRule[];
}

export interface KubeClusterRole extends KubeRole {
  aggregationRule?: { clusterRoleSelectors?: readonly LabelSelectorSpec[] };
}

export interface RoleSubject {
  kind?: string;
  apiGroup?: string;
  name?: string;
  namespace?: string;
}

export interface KubeRoleBinding extends KubeObject {
  subjects?: RoleSubject[];
  roleRef?: { apiGroup?: string; kind?: string; name?: string };
}

export interface IngressBackend {
  service?: { name?: string; port?: { name?: string; number?: number } };
  resource?: ResourceBackend;
}

export interface ResourceBackend {
  apiGroup?: string;
  kind?: string;
  name?: string;
}

export interface KubeIngress extends KubeObject {
  spec?: {
    ingressClassName?: string;
    defaultBackend?: IngressBackend;
    tls?: { hosts?: string[]; secretName?: string }[];
    rules?: { host?: string; http?: { paths?: { path?: string; pathType?: string; backend?: IngressBackend }[] } }[];
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

export interface KubeIngressClass extends KubeObject {
  spec?: { controller?: string; parameters?: ResourceBackend & { scope?: string; namespace?: string } };
}

export interface NetworkPolicyPort {
  protocol?: string;
  port?: IntOrString;
  endPort?: number;
}

export interface NetworkPolicyPeer {
  podSelector?: LabelSelectorSpec;
  namespaceSelector?: LabelSelectorSpec;
  ipBlock?: { cidr?: string; except?: string[] };
}

export interface NetworkPolicyRule {
  ports?: NetworkPolicyPort[];
  from?: NetworkPolicyPeer[];
  to?: NetworkPolicyPeer[];
}

export interface KubeNetworkPolicy extends KubeObject {
  spec?: {
    podSelector?: LabelSelectorSpec;
    ingress?: NetworkPolicyRule[];
    egress?: NetworkPolicyRule[];
    policyTypes?: string[];
  };
}

export interface KubeRuntimeClass extends KubeObject {
  handler?: string;
  overhead?: { podFixed?: ResourceList };
  scheduling?: { nodeSelector?: Record<string, string>; tolerations?: Toleration[] };
}

export interface KubeStorageClass extends KubeObject {
  provisioner?: string;
  parameters?: Record<string, string>;
  reclaimPolicy?: string;
  allowVolumeExpansion?: boolean;
  volumeBindingMode?: string;
  allowedTopologies?: { matchLabelExpressions?: { key?: string; values?: string[] }[] }[];
}

export interface KubeCsiDriver extends KubeObject {
  spec?: {
    attachRequired?: boolean;
    podInfoOnMount?: boolean;
    volumeLifecycleModes?: string[];
    storageCapacity?: boolean;
    fsGroupPolicy?: string;
    tokenRequests?: { audience?: string; expirationSeconds?: number }[];
    nodeAllocatableUpdatePeriodSeconds?: number;
    requiresRepublish?: boolean;
    seLinuxMount?: boolean;
  };
}

export interface KubeCsiStorageCapacity extends KubeObject {
  storageClassName?: string;
  capacity?: string;
  nodeTopology?: LabelSelectorSpec;
}

export interface KubeCertificateSigningRequest extends KubeObject {
  spec?: {
    request?: string;
    signerName?: string;
    expirationSeconds?: number;
    usages?: string[];
    username?: string;
    uid?: string;
    groups?: string[];
    extra?: Record<string, string[]>;
  };
  status?: {
    conditions?: {
      type?: string;
      status?: string;
      lastUpdateTime?: string | null;
      lastTransitionTime?: string | null;
    }[];
    certificate?: string;
  };
}
