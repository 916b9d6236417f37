// Written by `npm run kinds` from the sources of k8s.io/api and k8s.io/apimachinery.
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  [field: string]: unknown;
}

/** A number, or a share such as `50%`. */
export type IntOrString = number | string;

export type AWSElasticBlockStoreVolumeSource = {
  volumeID: string;
  fsType?: string;
  partition?: number;
  readOnly?: boolean;
};

export type Affinity = {
  nodeAffinity?: NodeAffinity;
  podAffinity?: PodAffinity;
  podAntiAffinity?: PodAntiAffinity;
};

export type AggregationRule = {
  clusterRoleSelectors?: LabelSelector[];
};

export type AppArmorProfile = {
  type: string;
  localhostProfile?: string;
};

export type ApplyConfiguration = {
  expression?: string;
};

export type AttachedVolume = {
  name: string;
  devicePath: string;
};

export type AuditAnnotation = {
  key: string;
  valueExpression: string;
};

export type AzureDiskVolumeSource = {
  diskName: string;
  diskURI: string;
  cachingMode?: string;
  fsType?: string;
  readOnly?: boolean;
  kind?: string;
};

export type AzureFilePersistentVolumeSource = {
  secretName: string;
  shareName: string;
  readOnly?: boolean;
  secretNamespace?: string;
};

export type AzureFileVolumeSource = {
  secretName: string;
  shareName: string;
  readOnly?: boolean;
};

export type CSIDriverSpec = {
  attachRequired?: boolean;
  podInfoOnMount?: boolean;
  volumeLifecycleModes?: string[];
  storageCapacity?: boolean;
  fsGroupPolicy?: string;
  tokenRequests?: TokenRequest[];
  requiresRepublish?: boolean;
  seLinuxMount?: boolean;
  nodeAllocatableUpdatePeriodSeconds?: number;
  serviceAccountTokenInSecrets?: boolean;
};

export type CSINodeDriver = {
  name: string;
  nodeID: string;
  topologyKeys?: string[];
  allocatable?: VolumeNodeResources;
};

export type CSINodeSpec = {
  drivers?: CSINodeDriver[];
};

export type CSIPersistentVolumeSource = {
  driver?: string;
  volumeHandle?: string;
  readOnly?: boolean;
  fsType?: string;
  volumeAttributes?: Record<string, string>;
  controllerPublishSecretRef?: SecretReference;
  nodeStageSecretRef?: SecretReference;
  nodePublishSecretRef?: SecretReference;
  controllerExpandSecretRef?: SecretReference;
  nodeExpandSecretRef?: SecretReference;
};

export type CSIVolumeSource = {
  driver: string;
  readOnly?: boolean;
  fsType?: string;
  volumeAttributes?: Record<string, string>;
  nodePublishSecretRef?: LocalObjectReference;
};

export type Capabilities = {
  add?: string[];
  drop?: string[];
};

export type CephFSPersistentVolumeSource = {
  monitors: string[];
  path?: string;
  user?: string;
  secretFile?: string;
  secretRef?: SecretReference;
  readOnly?: boolean;
};

export type CephFSVolumeSource = {
  monitors: string[];
  path?: string;
  user?: string;
  secretFile?: string;
  secretRef?: LocalObjectReference;
  readOnly?: boolean;
};

export type CertificateSigningRequestCondition = {
  type: string;
  status: ConditionStatus;
  reason?: string;
  message?: string;
  lastUpdateTime?: string | null;
  lastTransitionTime?: string | null;
};

export type CertificateSigningRequestSpec = {
  request?: string;
  signerName?: string;
  expirationSeconds?: number;
  usages?: string[];
  username?: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
};

export type CertificateSigningRequestStatus = {
  conditions?: CertificateSigningRequestCondition[];
  certificate?: string;
};

export type CinderPersistentVolumeSource = {
  volumeID: string;
  fsType?: string;
  readOnly?: boolean;
  secretRef?: SecretReference;
};

export type CinderVolumeSource = {
  volumeID: string;
  fsType?: string;
  readOnly?: boolean;
  secretRef?: LocalObjectReference;
};

export type ClientIPConfig = {
  timeoutSeconds?: number;
};

export type ClusterTrustBundleProjection = {
  name?: string;
  signerName?: string;
  labelSelector?: LabelSelector;
  optional?: boolean;
  path: string;
};

export type Condition = {
  type: string;
  status: string;
  observedGeneration?: number;
  lastTransitionTime: string | null;
  reason: string;
  message: string;
};

export type ConditionStatus = 'True' | 'False' | 'Unknown';

export type ConfigMapEnvSource = LocalObjectReference & {
  optional?: boolean;
};

export type ConfigMapKeySelector = LocalObjectReference & {
  key: string;
  optional?: boolean;
};

export type ConfigMapNodeConfigSource = {
  namespace: string;
  name: string;
  uid?: string;
  resourceVersion?: string;
  kubeletConfigKey: string;
};

export type ConfigMapProjection = LocalObjectReference & {
  items?: KeyToPath[];
  optional?: boolean;
};

export type ConfigMapVolumeSource = LocalObjectReference & {
  items?: KeyToPath[];
  defaultMode?: number;
  optional?: boolean;
};

export type Container = {
  name?: string;
  image?: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  ports?: ContainerPort[];
  envFrom?: EnvFromSource[];
  env?: EnvVar[];
  resources?: ResourceRequirements;
  resizePolicy?: ContainerResizePolicy[];
  restartPolicy?: string;
  restartPolicyRules?: ContainerRestartRule[];
  volumeMounts?: VolumeMount[];
  volumeDevices?: VolumeDevice[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: Lifecycle;
  terminationMessagePath?: string;
  terminationMessagePolicy?: TerminationMessagePolicy;
  imagePullPolicy?: PullPolicy;
  securityContext?: SecurityContext;
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
};

export type ContainerExtendedResourceRequest = {
  containerName: string;
  resourceName: string;
  requestName: string;
};

export type ContainerImage = {
  names?: string[];
  sizeBytes?: number;
};

export type ContainerPort = {
  name?: string;
  hostPort?: number;
  containerPort: number;
  protocol?: string;
  hostIP?: string;
};

export type ContainerResizePolicy = {
  resourceName: string;
  restartPolicy: string;
};

export type ContainerResourceMetricSource = {
  name: string;
  target: MetricTarget;
  container: string;
};

export type ContainerResourceMetricStatus = {
  name?: string;
  current?: MetricValueStatus;
  container?: string;
};

export type ContainerRestartRule = {
  action: string;
  exitCodes?: ContainerRestartRuleOnExitCodes;
};

export type ContainerRestartRuleOnExitCodes = {
  operator: string;
  values?: number[];
};

export type ContainerState = {
  waiting?: ContainerStateWaiting;
  running?: ContainerStateRunning;
  terminated?: ContainerStateTerminated;
};

export type ContainerStateRunning = {
  startedAt?: string | null;
};

export type ContainerStateTerminated = {
  exitCode?: number;
  signal?: number;
  reason?: string;
  message?: string;
  startedAt?: string | null;
  finishedAt?: string | null;
  containerID?: string;
};

export type ContainerStateWaiting = {
  reason?: string;
  message?: string;
};

export type ContainerStatus = {
  name?: string;
  state?: ContainerState;
  lastState?: ContainerState;
  ready?: boolean;
  restartCount?: number;
  image?: string;
  imageID?: string;
  containerID?: string;
  started?: boolean;
  allocatedResources?: Record<string, string>;
  resources?: ResourceRequirements;
  volumeMounts?: VolumeMountStatus[];
  user?: ContainerUser;
  allocatedResourcesStatus?: ResourceStatus[];
  stopSignal?: string;
};

export type ContainerUser = {
  linux?: LinuxContainerUser;
};

export type CoreEndpointPort = {
  name?: string;
  port?: number;
  protocol?: string;
  appProtocol?: string;
};

export type CronJobSpec = {
  schedule?: string;
  timeZone?: string;
  startingDeadlineSeconds?: number;
  concurrencyPolicy?: string;
  suspend?: boolean;
  jobTemplate?: JobTemplateSpec;
  successfulJobsHistoryLimit?: number;
  failedJobsHistoryLimit?: number;
};

export type CronJobStatus = {
  active?: ObjectReference[];
  lastScheduleTime?: string;
  lastSuccessfulTime?: string;
};

export type CrossVersionObjectReference = {
  kind?: string;
  name?: string;
  apiVersion?: string;
};

export type DNSPolicy = 'ClusterFirst' | 'ClusterFirstWithHostNet' | 'Default' | 'None';

export type DaemonEndpoint = {
  Port: number;
};

export type DaemonSetCondition = {
  type: string;
  status: ConditionStatus;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type DaemonSetSpec = {
  selector?: LabelSelector;
  template?: PodTemplateSpec;
  updateStrategy?: DaemonSetUpdateStrategy;
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
};

export type DaemonSetStatus = {
  currentNumberScheduled?: number;
  numberMisscheduled?: number;
  desiredNumberScheduled?: number;
  numberReady?: number;
  observedGeneration?: number;
  updatedNumberScheduled?: number;
  numberAvailable?: number;
  numberUnavailable?: number;
  collisionCount?: number;
  conditions?: DaemonSetCondition[];
};

export type DaemonSetUpdateStrategy = {
  type?: DaemonSetUpdateStrategyType;
  rollingUpdate?: RollingUpdateDaemonSet;
};

export type DaemonSetUpdateStrategyType = 'OnDelete' | 'RollingUpdate';

export type DeploymentCondition = {
  type: string;
  status: ConditionStatus;
  lastUpdateTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type DeploymentSpec = {
  replicas?: number;
  selector?: LabelSelector;
  template?: PodTemplateSpec;
  strategy?: DeploymentStrategy;
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
  paused?: boolean;
  progressDeadlineSeconds?: number;
};

export type DeploymentStatus = {
  observedGeneration?: number;
  replicas?: number;
  updatedReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  unavailableReplicas?: number;
  terminatingReplicas?: number;
  conditions?: DeploymentCondition[];
  collisionCount?: number;
};

export type DeploymentStrategy = {
  type?: string;
  rollingUpdate?: RollingUpdateDeployment;
};

export type DownwardAPIProjection = {
  items?: DownwardAPIVolumeFile[];
};

export type DownwardAPIVolumeFile = {
  path: string;
  fieldRef?: ObjectFieldSelector;
  resourceFieldRef?: ResourceFieldSelector;
  mode?: number;
};

export type DownwardAPIVolumeSource = {
  items?: DownwardAPIVolumeFile[];
  defaultMode?: number;
};

export type EmptyDirVolumeSource = {
  medium?: string;
  sizeLimit?: string;
};

export type Endpoint = {
  addresses: string[];
  conditions?: EndpointConditions;
  hostname?: string;
  targetRef?: ObjectReference;
  deprecatedTopology?: Record<string, string>;
  nodeName?: string;
  zone?: string;
  hints?: EndpointHints;
};

export type EndpointAddress = {
  ip: string;
  hostname?: string;
  nodeName?: string;
  targetRef?: ObjectReference;
};

export type EndpointConditions = {
  ready?: boolean;
  serving?: boolean;
  terminating?: boolean;
};

export type EndpointHints = {
  forZones?: ForZone[];
  forNodes?: ForNode[];
};

export type EndpointPort = {
  name?: string;
  protocol?: string;
  port?: number;
  appProtocol?: string;
};

export type EndpointSubset = {
  addresses?: EndpointAddress[];
  notReadyAddresses?: EndpointAddress[];
  ports?: CoreEndpointPort[];
};

export type EnvFromSource = {
  prefix?: string;
  configMapRef?: ConfigMapEnvSource;
  secretRef?: SecretEnvSource;
};

export type EnvVar = {
  name: string;
  value?: string;
  valueFrom?: EnvVarSource;
};

export type EnvVarSource = {
  fieldRef?: ObjectFieldSelector;
  resourceFieldRef?: ResourceFieldSelector;
  configMapKeyRef?: ConfigMapKeySelector;
  secretKeyRef?: SecretKeySelector;
  fileKeyRef?: FileKeySelector;
};

export type EphemeralContainer = EphemeralContainerCommon & {
  targetContainerName?: string;
};

export type EphemeralContainerCommon = {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  ports?: ContainerPort[];
  envFrom?: EnvFromSource[];
  env?: EnvVar[];
  resources?: ResourceRequirements;
  resizePolicy?: ContainerResizePolicy[];
  restartPolicy?: string;
  restartPolicyRules?: ContainerRestartRule[];
  volumeMounts?: VolumeMount[];
  volumeDevices?: VolumeDevice[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: Lifecycle;
  terminationMessagePath?: string;
  terminationMessagePolicy?: TerminationMessagePolicy;
  imagePullPolicy?: PullPolicy;
  securityContext?: SecurityContext;
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
};

export type EphemeralVolumeSource = {
  volumeClaimTemplate?: PersistentVolumeClaimTemplate;
};

export type EventSeries = {
  count?: number;
  lastObservedTime?: string | null;
};

export type EventSource = {
  component?: string;
  host?: string;
};

export type ExecAction = {
  command?: string[];
};

export type ExpressionWarning = {
  fieldRef: string;
  warning: string;
};

export type ExternalMetricSource = {
  metric: MetricIdentifier;
  target: MetricTarget;
};

export type ExternalMetricStatus = {
  metric?: MetricIdentifier;
  current?: MetricValueStatus;
};

export type FCVolumeSource = {
  targetWWNs?: string[];
  lun?: number;
  fsType?: string;
  readOnly?: boolean;
  wwids?: string[];
};

export type FileKeySelector = {
  volumeName: string;
  path: string;
  key: string;
  optional?: boolean;
};

export type FlexPersistentVolumeSource = {
  driver: string;
  fsType?: string;
  secretRef?: SecretReference;
  readOnly?: boolean;
  options?: Record<string, string>;
};

export type FlexVolumeSource = {
  driver: string;
  fsType?: string;
  secretRef?: LocalObjectReference;
  readOnly?: boolean;
  options?: Record<string, string>;
};

export type FlockerVolumeSource = {
  datasetName?: string;
  datasetUUID?: string;
};

export type ForNode = {
  name: string;
};

export type ForZone = {
  name: string;
};

export type GCEPersistentDiskVolumeSource = {
  pdName: string;
  fsType?: string;
  partition?: number;
  readOnly?: boolean;
};

export type GRPCAction = {
  port: number;
  service?: string;
};

export type GitRepoVolumeSource = {
  repository: string;
  revision?: string;
  directory?: string;
};

export type GlusterfsPersistentVolumeSource = {
  endpoints: string;
  path: string;
  readOnly?: boolean;
  endpointsNamespace?: string;
};

export type GlusterfsVolumeSource = {
  endpoints: string;
  path: string;
  readOnly?: boolean;
};

export type HPAScalingPolicy = {
  type: string;
  value: number;
  periodSeconds: number;
};

export type HPAScalingRules = {
  stabilizationWindowSeconds?: number;
  selectPolicy?: string;
  policies?: HPAScalingPolicy[];
  tolerance?: string;
};

export type HTTPGetAction = {
  path?: string;
  port: IntOrString;
  host?: string;
  scheme?: string;
  httpHeaders?: HTTPHeader[];
};

export type HTTPHeader = {
  name: string;
  value: string;
};

export type HTTPIngressPath = {
  path?: string;
  pathType: string;
  backend: IngressBackend;
};

export type HTTPIngressRuleValue = {
  paths: HTTPIngressPath[];
};

export type HorizontalPodAutoscalerBehavior = {
  scaleUp?: HPAScalingRules;
  scaleDown?: HPAScalingRules;
};

export type HorizontalPodAutoscalerCondition = {
  type: string;
  status: ConditionStatus;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type HorizontalPodAutoscalerSpec = {
  scaleTargetRef?: CrossVersionObjectReference;
  minReplicas?: number;
  maxReplicas?: number;
  metrics?: MetricSpec[];
  behavior?: HorizontalPodAutoscalerBehavior;
};

export type HorizontalPodAutoscalerStatus = {
  observedGeneration?: number;
  lastScaleTime?: string;
  currentReplicas?: number;
  desiredReplicas?: number;
  currentMetrics?: MetricStatus[];
  conditions?: HorizontalPodAutoscalerCondition[];
};

export type HostAlias = {
  ip: string;
  hostnames?: string[];
};

export type HostIP = {
  ip: string;
};

export type HostPathVolumeSource = {
  path: string;
  type?: string;
};

export type IPBlock = {
  cidr: string;
  except?: string[];
};

export type ISCSIPersistentVolumeSource = {
  targetPortal: string;
  iqn: string;
  lun: number;
  iscsiInterface?: string;
  fsType?: string;
  readOnly?: boolean;
  portals?: string[];
  chapAuthDiscovery?: boolean;
  chapAuthSession?: boolean;
  secretRef?: SecretReference;
  initiatorName?: string;
};

export type ISCSIVolumeSource = {
  targetPortal: string;
  iqn: string;
  lun: number;
  iscsiInterface?: string;
  fsType?: string;
  readOnly?: boolean;
  portals?: string[];
  chapAuthDiscovery?: boolean;
  chapAuthSession?: boolean;
  secretRef?: LocalObjectReference;
  initiatorName?: string;
};

export type ImageVolumeSource = {
  reference?: string;
  pullPolicy?: PullPolicy;
};

export type ImageVolumeStatus = {
  imageRef?: string;
};

export type IngressBackend = {
  service?: IngressServiceBackend;
  resource?: TypedLocalObjectReference;
};

export type IngressClassParametersReference = {
  apiGroup?: string;
  kind: string;
  name: string;
  scope?: string;
  namespace?: string;
};

export type IngressClassSpec = {
  controller?: string;
  parameters?: IngressClassParametersReference;
};

export type IngressLoadBalancerIngress = {
  ip?: string;
  hostname?: string;
  ports?: IngressPortStatus[];
};

export type IngressLoadBalancerStatus = {
  ingress?: IngressLoadBalancerIngress[];
};

export type IngressPortStatus = {
  port?: number;
  protocol?: string;
  error?: string;
};

export type IngressRule = IngressRuleValue & {
  host?: string;
};

export type IngressRuleValue = {
  http?: HTTPIngressRuleValue;
};

export type IngressServiceBackend = {
  name: string;
  port?: ServiceBackendPort;
};

export type IngressSpec = {
  ingressClassName?: string;
  defaultBackend?: IngressBackend;
  tls?: IngressTLS[];
  rules?: IngressRule[];
};

export type IngressStatus = {
  loadBalancer?: IngressLoadBalancerStatus;
};

export type IngressTLS = {
  hosts?: string[];
  secretName?: string;
};

export type JSONPatch = {
  expression?: string;
};

export type JobCondition = {
  type: string;
  status: ConditionStatus;
  lastProbeTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type JobSpec = {
  parallelism?: number;
  completions?: number;
  activeDeadlineSeconds?: number;
  podFailurePolicy?: PodFailurePolicy;
  successPolicy?: SuccessPolicy;
  backoffLimit?: number;
  backoffLimitPerIndex?: number;
  maxFailedIndexes?: number;
  selector?: LabelSelector;
  manualSelector?: boolean;
  template?: PodTemplateSpec;
  ttlSecondsAfterFinished?: number;
  completionMode?: string;
  suspend?: boolean;
  podReplacementPolicy?: string;
  managedBy?: string;
};

export type JobStatus = {
  conditions?: JobCondition[];
  startTime?: string;
  completionTime?: string;
  active?: number;
  succeeded?: number;
  failed?: number;
  terminating?: number;
  completedIndexes?: string;
  failedIndexes?: string;
  uncountedTerminatedPods?: UncountedTerminatedPods;
  ready?: number;
};

export type JobTemplateSpec = {
  metadata?: ObjectMeta;
  spec?: JobSpec;
};

export type KeyToPath = {
  key: string;
  path: string;
  mode?: number;
};

export interface KubeCSIDriver extends KubeObject {
  spec?: CSIDriverSpec;
}

export interface KubeCSINode extends KubeObject {
  spec?: CSINodeSpec;
}

export interface KubeCSIStorageCapacity extends KubeObject {
  nodeTopology?: LabelSelector;
  storageClassName?: string;
  capacity?: string;
  maximumVolumeSize?: string;
}

export interface KubeCertificateSigningRequest extends KubeObject {
  spec?: CertificateSigningRequestSpec;
  status?: CertificateSigningRequestStatus;
}

export interface KubeClusterRole extends KubeObject {
  rules?: PolicyRule[];
  aggregationRule?: AggregationRule;
}

export interface KubeClusterRoleBinding extends KubeObject {
  subjects?: Subject[];
  roleRef?: RoleRef;
}

export interface KubeConfigMap extends KubeObject {
  immutable?: boolean;
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

export interface KubeControllerRevision extends KubeObject {
  data?: unknown;
  revision?: number;
}

export interface KubeCronJob extends KubeObject {
  spec?: CronJobSpec;
  status?: CronJobStatus;
}

export interface KubeDaemonSet extends KubeObject {
  spec?: DaemonSetSpec;
  status?: DaemonSetStatus;
}

export interface KubeDeployment extends KubeObject {
  spec?: DeploymentSpec;
  status?: DeploymentStatus;
}

export interface KubeEndpointSlice extends KubeObject {
  addressType?: string;
  endpoints?: Endpoint[];
  ports?: EndpointPort[];
}

export interface KubeEndpoints extends KubeObject {
  subsets?: EndpointSubset[];
}

export interface KubeEvent extends KubeObject {
  involvedObject?: ObjectReference;
  reason?: string;
  message?: string;
  source?: EventSource;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  count?: number;
  type?: string;
  eventTime?: string | null;
  series?: EventSeries;
  action?: string;
  related?: ObjectReference;
  reportingComponent?: string;
  reportingInstance?: string;
}

export interface KubeHorizontalPodAutoscaler extends KubeObject {
  spec?: HorizontalPodAutoscalerSpec;
  status?: HorizontalPodAutoscalerStatus;
}

export interface KubeIngress extends KubeObject {
  spec?: IngressSpec;
  status?: IngressStatus;
}

export interface KubeIngressClass extends KubeObject {
  spec?: IngressClassSpec;
}

export interface KubeJob extends KubeObject {
  spec?: JobSpec;
  status?: JobStatus;
}

export interface KubeLease extends KubeObject {
  spec?: LeaseSpec;
}

export interface KubeLimitRange extends KubeObject {
  spec?: LimitRangeSpec;
}

export interface KubeMutatingAdmissionPolicy extends KubeObject {
  spec?: MutatingAdmissionPolicySpec;
}

export interface KubeMutatingAdmissionPolicyBinding extends KubeObject {
  spec?: MutatingAdmissionPolicyBindingSpec;
}

export interface KubeMutatingWebhookConfiguration extends KubeObject {
  webhooks?: MutatingWebhook[];
}

export interface KubeNamespace extends KubeObject {
  spec?: NamespaceSpec;
  status?: NamespaceStatus;
}

export interface KubeNetworkPolicy extends KubeObject {
  spec?: NetworkPolicySpec;
}

export interface KubeNode extends KubeObject {
  spec?: NodeSpec;
  status?: NodeStatus;
}

export interface KubePersistentVolume extends KubeObject {
  spec?: PersistentVolumeSpec;
  status?: PersistentVolumeStatus;
}

export interface KubePersistentVolumeClaim extends KubeObject {
  spec?: PersistentVolumeClaimSpec;
  status?: PersistentVolumeClaimStatus;
}

export interface KubePod extends KubeObject {
  spec?: PodSpec;
  status?: PodStatus;
}

export interface KubePodDisruptionBudget extends KubeObject {
  spec?: PodDisruptionBudgetSpec;
  status?: PodDisruptionBudgetStatus;
}

export interface KubePodTemplate extends KubeObject {
  template?: PodTemplateSpec;
}

export interface KubePriorityClass extends KubeObject {
  value?: number;
  globalDefault?: boolean;
  description?: string;
  preemptionPolicy?: PreemptionPolicy;
}

export interface KubeReplicaSet extends KubeObject {
  spec?: ReplicaSetSpec;
  status?: ReplicaSetStatus;
}

export interface KubeReplicationController extends KubeObject {
  spec?: ReplicationControllerSpec;
  status?: ReplicationControllerStatus;
}

export interface KubeResourceQuota extends KubeObject {
  spec?: ResourceQuotaSpec;
  status?: ResourceQuotaStatus;
}

export interface KubeRole extends KubeObject {
  rules?: PolicyRule[];
}

export interface KubeRoleBinding extends KubeObject {
  subjects?: Subject[];
  roleRef?: RoleRef;
}

export interface KubeRuntimeClass extends KubeObject {
  handler?: string;
  overhead?: Overhead;
  scheduling?: Scheduling;
}

export interface KubeSecret extends KubeObject {
  immutable?: boolean;
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  type?: string;
}

export interface KubeService extends KubeObject {
  spec?: ServiceSpec;
  status?: ServiceStatus;
}

export interface KubeServiceAccount extends KubeObject {
  secrets?: ObjectReference[];
  imagePullSecrets?: LocalObjectReference[];
  automountServiceAccountToken?: boolean;
}

export interface KubeStatefulSet extends KubeObject {
  spec?: StatefulSetSpec;
  status?: StatefulSetStatus;
}

export interface KubeStorageClass extends KubeObject {
  provisioner?: string;
  parameters?: Record<string, string>;
  reclaimPolicy?: string;
  mountOptions?: string[];
  allowVolumeExpansion?: boolean;
  volumeBindingMode?: string;
  allowedTopologies?: TopologySelectorTerm[];
}

export interface KubeValidatingAdmissionPolicy extends KubeObject {
  spec?: ValidatingAdmissionPolicySpec;
  status?: ValidatingAdmissionPolicyStatus;
}

export interface KubeValidatingAdmissionPolicyBinding extends KubeObject {
  spec?: ValidatingAdmissionPolicyBindingSpec;
}

export interface KubeValidatingWebhookConfiguration extends KubeObject {
  webhooks?: ValidatingWebhook[];
}

export interface KubeVolumeAttachment extends KubeObject {
  spec?: VolumeAttachmentSpec;
  status?: VolumeAttachmentStatus;
}

export type LabelSelector = {
  matchLabels?: Record<string, string>;
  matchExpressions?: LabelSelectorRequirement[];
};

export type LabelSelectorRequirement = {
  key: string;
  operator: string;
  values?: string[];
};

export type LeaseSpec = {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
  strategy?: string;
  preferredHolder?: string;
};

export type Lifecycle = {
  postStart?: LifecycleHandler;
  preStop?: LifecycleHandler;
  stopSignal?: string;
};

export type LifecycleHandler = {
  exec?: ExecAction;
  httpGet?: HTTPGetAction;
  tcpSocket?: TCPSocketAction;
  sleep?: SleepAction;
};

export type LimitRangeItem = {
  type?: string;
  max?: Record<string, string>;
  min?: Record<string, string>;
  default?: Record<string, string>;
  defaultRequest?: Record<string, string>;
  maxLimitRequestRatio?: Record<string, string>;
};

export type LimitRangeSpec = {
  limits?: LimitRangeItem[];
};

export type LinuxContainerUser = {
  uid: number;
  gid: number;
  supplementalGroups?: number[];
};

export type LoadBalancerIngress = {
  ip?: string;
  hostname?: string;
  ipMode?: string;
  ports?: PortStatus[];
};

export type LoadBalancerStatus = {
  ingress?: LoadBalancerIngress[];
};

export type LocalObjectReference = {
  name?: string;
};

export type LocalVolumeSource = {
  path?: string;
  fsType?: string;
};

export type ManagedFieldsEntry = {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: unknown;
  subresource?: string;
};

export type MatchCondition = {
  name: string;
  expression: string;
};

export type MatchResources = {
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  resourceRules?: NamedRuleWithOperations[];
  excludeResourceRules?: NamedRuleWithOperations[];
  matchPolicy?: string;
};

export type MetricIdentifier = {
  name: string;
  selector?: LabelSelector;
};

export type MetricSpec = {
  type?: string;
  object?: ObjectMetricSource;
  pods?: PodsMetricSource;
  resource?: ResourceMetricSource;
  containerResource?: ContainerResourceMetricSource;
  external?: ExternalMetricSource;
};

export type MetricStatus = {
  type?: string;
  object?: ObjectMetricStatus;
  pods?: PodsMetricStatus;
  resource?: ResourceMetricStatus;
  containerResource?: ContainerResourceMetricStatus;
  external?: ExternalMetricStatus;
};

export type MetricTarget = {
  type?: string;
  value?: string;
  averageValue?: string;
  averageUtilization?: number;
};

export type MetricValueStatus = {
  value?: string;
  averageValue?: string;
  averageUtilization?: number;
};

export type ModifyVolumeStatus = {
  targetVolumeAttributesClassName?: string;
  status?: string;
};

export type MutatingAdmissionPolicyBindingSpec = {
  policyName?: string;
  paramRef?: ParamRef;
  matchResources?: MatchResources;
};

export type MutatingAdmissionPolicySpec = {
  paramKind?: ParamKind;
  matchConstraints?: MatchResources;
  variables?: Variable[];
  mutations?: Mutation[];
  failurePolicy?: string;
  matchConditions?: MatchCondition[];
  reinvocationPolicy?: string;
};

export type MutatingWebhook = {
  name: string;
  clientConfig: WebhookClientConfig;
  rules?: RuleWithOperations[];
  failurePolicy?: string;
  matchPolicy?: string;
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  sideEffects: string;
  timeoutSeconds?: number;
  admissionReviewVersions: string[];
  reinvocationPolicy?: string;
  matchConditions?: MatchCondition[];
};

export type Mutation = {
  patchType: string;
  applyConfiguration?: ApplyConfiguration;
  jsonPatch?: JSONPatch;
};

export type NFSVolumeSource = {
  server?: string;
  path?: string;
  readOnly?: boolean;
};

export type NamedRuleWithOperations = RuleWithOperations & {
  resourceNames?: string[];
};

export type NamespaceCondition = {
  type: string;
  status: ConditionStatus;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type NamespacePhase = 'Active' | 'Terminating';

export type NamespaceSpec = {
  finalizers?: string[];
};

export type NamespaceStatus = {
  phase?: NamespacePhase;
  conditions?: NamespaceCondition[];
};

export type NetworkPolicyEgressRule = {
  ports?: NetworkPolicyPort[];
  to?: NetworkPolicyPeer[];
};

export type NetworkPolicyIngressRule = {
  ports?: NetworkPolicyPort[];
  from?: NetworkPolicyPeer[];
};

export type NetworkPolicyPeer = {
  podSelector?: LabelSelector;
  namespaceSelector?: LabelSelector;
  ipBlock?: IPBlock;
};

export type NetworkPolicyPort = {
  protocol?: string;
  port?: IntOrString;
  endPort?: number;
};

export type NetworkPolicySpec = {
  podSelector?: LabelSelector;
  ingress?: NetworkPolicyIngressRule[];
  egress?: NetworkPolicyEgressRule[];
  policyTypes?: string[];
};

export type NodeAddress = {
  type: string;
  address: string;
};

export type NodeAffinity = {
  requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector;
  preferredDuringSchedulingIgnoredDuringExecution?: PreferredSchedulingTerm[];
};

export type NodeCondition = {
  type: string;
  status: ConditionStatus;
  lastHeartbeatTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type NodeConfigSource = {
  configMap?: ConfigMapNodeConfigSource;
};

export type NodeConfigStatus = {
  assigned?: NodeConfigSource;
  active?: NodeConfigSource;
  lastKnownGood?: NodeConfigSource;
  error?: string;
};

export type NodeDaemonEndpoints = {
  kubeletEndpoint?: DaemonEndpoint;
};

export type NodeFeatures = {
  supplementalGroupsPolicy?: boolean;
};

export type NodeInclusionPolicy = 'Honor' | 'Ignore';

export type NodeRuntimeHandler = {
  name?: string;
  features?: NodeRuntimeHandlerFeatures;
};

export type NodeRuntimeHandlerFeatures = {
  recursiveReadOnlyMounts?: boolean;
  userNamespaces?: boolean;
};

export type NodeSelector = {
  nodeSelectorTerms: NodeSelectorTerm[];
};

export type NodeSelectorOperator = 'DoesNotExist' | 'Exists' | 'Gt' | 'In' | 'Lt' | 'NotIn';

export type NodeSelectorRequirement = {
  key: string;
  operator: NodeSelectorOperator;
  values?: string[];
};

export type NodeSelectorTerm = {
  matchExpressions?: NodeSelectorRequirement[];
  matchFields?: NodeSelectorRequirement[];
};

export type NodeSpec = {
  podCIDR?: string;
  podCIDRs?: string[];
  providerID?: string;
  unschedulable?: boolean;
  taints?: Taint[];
  configSource?: NodeConfigSource;
  externalID?: string;
};

export type NodeStatus = {
  capacity?: Record<string, string>;
  allocatable?: Record<string, string>;
  phase?: string;
  conditions?: NodeCondition[];
  addresses?: NodeAddress[];
  daemonEndpoints?: NodeDaemonEndpoints;
  nodeInfo?: NodeSystemInfo;
  images?: ContainerImage[];
  volumesInUse?: string[];
  volumesAttached?: AttachedVolume[];
  config?: NodeConfigStatus;
  runtimeHandlers?: NodeRuntimeHandler[];
  features?: NodeFeatures;
  declaredFeatures?: string[];
};

export type NodeSwapStatus = {
  capacity?: number;
};

export type NodeSystemInfo = {
  machineID?: string;
  systemUUID?: string;
  bootID?: string;
  kernelVersion?: string;
  osImage?: string;
  containerRuntimeVersion?: string;
  kubeletVersion?: string;
  kubeProxyVersion?: string;
  operatingSystem?: string;
  architecture?: string;
  swap?: NodeSwapStatus;
};

export type ObjectFieldSelector = {
  apiVersion?: string;
  fieldPath: string;
};

export type ObjectMeta = {
  name?: string;
  generateName?: string;
  namespace?: string;
  selfLink?: string;
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
  managedFields?: ManagedFieldsEntry[];
};

export type ObjectMetricSource = {
  describedObject: CrossVersionObjectReference;
  target: MetricTarget;
  metric: MetricIdentifier;
};

export type ObjectMetricStatus = {
  metric?: MetricIdentifier;
  current?: MetricValueStatus;
  describedObject?: CrossVersionObjectReference;
};

export type ObjectReference = {
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  apiVersion?: string;
  resourceVersion?: string;
  fieldPath?: string;
};

export type Overhead = {
  podFixed?: Record<string, string>;
};

export type OwnerReference = {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
};

export type ParamKind = {
  apiVersion?: string;
  kind?: string;
};

export type ParamRef = {
  name?: string;
  namespace?: string;
  selector?: LabelSelector;
  parameterNotFoundAction?: string;
};

export type PersistentVolumeClaimCondition = {
  type: string;
  status: ConditionStatus;
  lastProbeTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type PersistentVolumeClaimSpec = {
  accessModes?: string[];
  selector?: LabelSelector;
  resources?: VolumeResourceRequirements;
  volumeName?: string;
  storageClassName?: string;
  volumeMode?: string;
  dataSource?: TypedLocalObjectReference;
  dataSourceRef?: TypedObjectReference;
  volumeAttributesClassName?: string;
};

export type PersistentVolumeClaimStatus = {
  phase?: string;
  accessModes?: string[];
  capacity?: Record<string, string>;
  conditions?: PersistentVolumeClaimCondition[];
  allocatedResources?: Record<string, string>;
  allocatedResourceStatuses?: Record<string, string>;
  currentVolumeAttributesClassName?: string;
  modifyVolumeStatus?: ModifyVolumeStatus;
};

export type PersistentVolumeClaimTemplate = {
  metadata?: ObjectMeta;
  spec?: PersistentVolumeClaimSpec;
};

export type PersistentVolumeClaimVolumeSource = {
  claimName: string;
  readOnly?: boolean;
};

export type PersistentVolumeSource = {
  gcePersistentDisk?: GCEPersistentDiskVolumeSource;
  awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource;
  hostPath?: HostPathVolumeSource;
  glusterfs?: GlusterfsPersistentVolumeSource;
  nfs?: NFSVolumeSource;
  rbd?: RBDPersistentVolumeSource;
  iscsi?: ISCSIPersistentVolumeSource;
  cinder?: CinderPersistentVolumeSource;
  cephfs?: CephFSPersistentVolumeSource;
  fc?: FCVolumeSource;
  flocker?: FlockerVolumeSource;
  flexVolume?: FlexPersistentVolumeSource;
  azureFile?: AzureFilePersistentVolumeSource;
  vsphereVolume?: VsphereVirtualDiskVolumeSource;
  quobyte?: QuobyteVolumeSource;
  azureDisk?: AzureDiskVolumeSource;
  photonPersistentDisk?: PhotonPersistentDiskVolumeSource;
  portworxVolume?: PortworxVolumeSource;
  scaleIO?: ScaleIOPersistentVolumeSource;
  local?: LocalVolumeSource;
  storageos?: StorageOSPersistentVolumeSource;
  csi?: CSIPersistentVolumeSource;
};

export type PersistentVolumeSpec = PersistentVolumeSource & {
  capacity?: Record<string, string>;
  accessModes?: string[];
  claimRef?: ObjectReference;
  persistentVolumeReclaimPolicy?: string;
  storageClassName?: string;
  mountOptions?: string[];
  volumeMode?: string;
  nodeAffinity?: VolumeNodeAffinity;
  volumeAttributesClassName?: string;
};

export type PersistentVolumeStatus = {
  phase?: string;
  message?: string;
  reason?: string;
  lastPhaseTransitionTime?: string;
};

export type PhotonPersistentDiskVolumeSource = {
  pdID: string;
  fsType?: string;
};

export type PodAffinity = {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[];
  preferredDuringSchedulingIgnoredDuringExecution?: WeightedPodAffinityTerm[];
};

export type PodAffinityTerm = {
  labelSelector?: LabelSelector;
  namespaces?: string[];
  topologyKey: string;
  namespaceSelector?: LabelSelector;
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
};

export type PodAntiAffinity = {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[];
  preferredDuringSchedulingIgnoredDuringExecution?: WeightedPodAffinityTerm[];
};

export type PodCertificateProjection = {
  signerName: string;
  keyType: string;
  maxExpirationSeconds?: number;
  credentialBundlePath?: string;
  keyPath?: string;
  certificateChainPath?: string;
  userAnnotations?: Record<string, string>;
};

export type PodCondition = {
  type: string;
  observedGeneration?: number;
  status: ConditionStatus;
  lastProbeTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type PodDNSConfig = {
  nameservers?: string[];
  searches?: string[];
  options?: PodDNSConfigOption[];
};

export type PodDNSConfigOption = {
  name?: string;
  value?: string;
};

export type PodDisruptionBudgetSpec = {
  minAvailable?: IntOrString;
  selector?: LabelSelector;
  maxUnavailable?: IntOrString;
  unhealthyPodEvictionPolicy?: UnhealthyPodEvictionPolicyType;
};

export type PodDisruptionBudgetStatus = {
  observedGeneration?: number;
  disruptedPods?: Record<string, string | null>;
  disruptionsAllowed?: number;
  currentHealthy?: number;
  desiredHealthy?: number;
  expectedPods?: number;
  conditions?: Condition[];
};

export type PodExtendedResourceClaimStatus = {
  requestMappings?: ContainerExtendedResourceRequest[];
  resourceClaimName?: string;
};

export type PodFailurePolicy = {
  rules: PodFailurePolicyRule[];
};

export type PodFailurePolicyOnExitCodesRequirement = {
  containerName?: string;
  operator: string;
  values: number[];
};

export type PodFailurePolicyOnPodConditionsPattern = {
  type: string;
  status?: ConditionStatus;
};

export type PodFailurePolicyRule = {
  action: string;
  onExitCodes?: PodFailurePolicyOnExitCodesRequirement;
  onPodConditions?: PodFailurePolicyOnPodConditionsPattern[];
};

export type PodIP = {
  ip: string;
};

export type PodOS = {
  name: string;
};

export type PodPhase = 'Failed' | 'Pending' | 'Running' | 'Succeeded' | 'Unknown';

export type PodQOSClass = 'BestEffort' | 'Burstable' | 'Guaranteed';

export type PodReadinessGate = {
  conditionType: string;
};

export type PodResourceClaim = {
  name: string;
  resourceClaimName?: string;
  resourceClaimTemplateName?: string;
};

export type PodResourceClaimStatus = {
  name?: string;
  resourceClaimName?: string;
};

export type PodSchedulingGate = {
  name: string;
};

export type PodSecurityContext = {
  seLinuxOptions?: SELinuxOptions;
  windowsOptions?: WindowsSecurityContextOptions;
  runAsUser?: number;
  runAsGroup?: number;
  runAsNonRoot?: boolean;
  supplementalGroups?: number[];
  supplementalGroupsPolicy?: string;
  fsGroup?: number;
  sysctls?: Sysctl[];
  fsGroupChangePolicy?: string;
  seccompProfile?: SeccompProfile;
  appArmorProfile?: AppArmorProfile;
  seLinuxChangePolicy?: string;
};

export type PodSpec = {
  volumes?: Volume[];
  initContainers?: Container[];
  containers?: Container[];
  ephemeralContainers?: EphemeralContainer[];
  restartPolicy?: RestartPolicy;
  terminationGracePeriodSeconds?: number;
  activeDeadlineSeconds?: number;
  dnsPolicy?: DNSPolicy;
  nodeSelector?: Record<string, string>;
  serviceAccountName?: string;
  serviceAccount?: string;
  automountServiceAccountToken?: boolean;
  nodeName?: string;
  hostNetwork?: boolean;
  hostPID?: boolean;
  hostIPC?: boolean;
  shareProcessNamespace?: boolean;
  securityContext?: PodSecurityContext;
  imagePullSecrets?: LocalObjectReference[];
  hostname?: string;
  subdomain?: string;
  affinity?: Affinity;
  schedulerName?: string;
  tolerations?: Toleration[];
  hostAliases?: HostAlias[];
  priorityClassName?: string;
  priority?: number;
  dnsConfig?: PodDNSConfig;
  readinessGates?: PodReadinessGate[];
  runtimeClassName?: string;
  enableServiceLinks?: boolean;
  preemptionPolicy?: PreemptionPolicy;
  overhead?: Record<string, string>;
  topologySpreadConstraints?: TopologySpreadConstraint[];
  setHostnameAsFQDN?: boolean;
  os?: PodOS;
  hostUsers?: boolean;
  schedulingGates?: PodSchedulingGate[];
  resourceClaims?: PodResourceClaim[];
  resources?: ResourceRequirements;
  hostnameOverride?: string;
};

export type PodStatus = {
  observedGeneration?: number;
  phase?: PodPhase;
  conditions?: PodCondition[];
  message?: string;
  reason?: string;
  nominatedNodeName?: string;
  hostIP?: string;
  hostIPs?: HostIP[];
  podIP?: string;
  podIPs?: PodIP[];
  startTime?: string;
  initContainerStatuses?: ContainerStatus[];
  containerStatuses?: ContainerStatus[];
  qosClass?: PodQOSClass;
  ephemeralContainerStatuses?: ContainerStatus[];
  resize?: string;
  resourceClaimStatuses?: PodResourceClaimStatus[];
  extendedResourceClaimStatus?: PodExtendedResourceClaimStatus;
  allocatedResources?: Record<string, string>;
  resources?: ResourceRequirements;
};

export type PodTemplateSpec = {
  metadata?: ObjectMeta;
  spec?: PodSpec;
};

export type PodsMetricSource = {
  metric: MetricIdentifier;
  target: MetricTarget;
};

export type PodsMetricStatus = {
  metric?: MetricIdentifier;
  current?: MetricValueStatus;
};

export type PolicyRule = {
  verbs?: readonly string[];
  apiGroups?: readonly string[];
  resources?: readonly string[];
  resourceNames?: readonly string[];
  nonResourceURLs?: readonly string[];
};

export type PortStatus = {
  port?: number;
  protocol?: string;
  error?: string;
};

export type PortworxVolumeSource = {
  volumeID: string;
  fsType?: string;
  readOnly?: boolean;
};

export type PreemptionPolicy = 'Never' | 'PreemptLowerPriority';

export type PreferredSchedulingTerm = {
  weight: number;
  preference: NodeSelectorTerm;
};

export type Probe = ProbeHandler & {
  initialDelaySeconds?: number;
  timeoutSeconds?: number;
  periodSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
  terminationGracePeriodSeconds?: number;
};

export type ProbeHandler = {
  exec?: ExecAction;
  httpGet?: HTTPGetAction;
  tcpSocket?: TCPSocketAction;
  grpc?: GRPCAction;
};

export type ProjectedVolumeSource = {
  sources?: VolumeProjection[];
  defaultMode?: number;
};

export type PullPolicy = 'Always' | 'IfNotPresent' | 'Never';

export type QuobyteVolumeSource = {
  registry: string;
  volume: string;
  readOnly?: boolean;
  user?: string;
  group?: string;
  tenant?: string;
};

export type RBDPersistentVolumeSource = {
  monitors: string[];
  image: string;
  fsType?: string;
  pool?: string;
  user?: string;
  keyring?: string;
  secretRef?: SecretReference;
  readOnly?: boolean;
};

export type RBDVolumeSource = {
  monitors: string[];
  image: string;
  fsType?: string;
  pool?: string;
  user?: string;
  keyring?: string;
  secretRef?: LocalObjectReference;
  readOnly?: boolean;
};

export type ReplicaSetCondition = {
  type: string;
  status: ConditionStatus;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type ReplicaSetSpec = {
  replicas?: number;
  minReadySeconds?: number;
  selector?: LabelSelector;
  template?: PodTemplateSpec;
};

export type ReplicaSetStatus = {
  replicas?: number;
  fullyLabeledReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  terminatingReplicas?: number;
  observedGeneration?: number;
  conditions?: ReplicaSetCondition[];
};

export type ReplicationControllerCondition = {
  type: string;
  status: ConditionStatus;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type ReplicationControllerSpec = {
  replicas?: number;
  minReadySeconds?: number;
  selector?: Record<string, string>;
  template?: PodTemplateSpec;
};

export type ReplicationControllerStatus = {
  replicas?: number;
  fullyLabeledReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  observedGeneration?: number;
  conditions?: ReplicationControllerCondition[];
};

export type ResourceClaim = {
  name: string;
  request?: string;
};

export type ResourceFieldSelector = {
  containerName?: string;
  resource?: string;
  divisor?: string;
};

export type ResourceHealth = {
  resourceID: string;
  health?: string;
  message?: string;
};

export type ResourceMetricSource = {
  name: string;
  target: MetricTarget;
};

export type ResourceMetricStatus = {
  name?: string;
  current?: MetricValueStatus;
};

export type ResourceQuotaSpec = {
  hard?: Record<string, string>;
  scopes?: string[];
  scopeSelector?: ScopeSelector;
};

export type ResourceQuotaStatus = {
  hard?: Record<string, string>;
  used?: Record<string, string>;
};

export type ResourceRequirements = {
  limits?: Record<string, string>;
  requests?: Record<string, string>;
  claims?: ResourceClaim[];
};

export type ResourceStatus = {
  name?: string;
  resources?: ResourceHealth[];
};

export type RestartPolicy = 'Always' | 'Never' | 'OnFailure';

export type RoleRef = {
  apiGroup?: string;
  kind?: string;
  name?: string;
};

export type RollingUpdateDaemonSet = {
  maxUnavailable?: IntOrString;
  maxSurge?: IntOrString;
};

export type RollingUpdateDeployment = {
  maxUnavailable?: IntOrString;
  maxSurge?: IntOrString;
};

export type RollingUpdateStatefulSetStrategy = {
  partition?: number;
  maxUnavailable?: IntOrString;
};

export type Rule = {
  apiGroups?: string[];
  apiVersions?: string[];
  resources?: string[];
  scope?: string;
};

export type RuleWithOperations = Rule & {
  operations?: string[];
};

export type SELinuxOptions = {
  user?: string;
  role?: string;
  type?: string;
  level?: string;
};

export type ScaleIOPersistentVolumeSource = {
  gateway: string;
  system: string;
  secretRef: SecretReference;
  sslEnabled?: boolean;
  protectionDomain?: string;
  storagePool?: string;
  storageMode?: string;
  volumeName?: string;
  fsType?: string;
  readOnly?: boolean;
};

export type ScaleIOVolumeSource = {
  gateway: string;
  system: string;
  secretRef: LocalObjectReference;
  sslEnabled?: boolean;
  protectionDomain?: string;
  storagePool?: string;
  storageMode?: string;
  volumeName?: string;
  fsType?: string;
  readOnly?: boolean;
};

export type Scheduling = {
  nodeSelector?: Record<string, string>;
  tolerations?: Toleration[];
};

export type ScopeSelector = {
  matchExpressions?: ScopedResourceSelectorRequirement[];
};

export type ScopedResourceSelectorRequirement = {
  scopeName: string;
  operator: string;
  values?: string[];
};

export type SeccompProfile = {
  type: string;
  localhostProfile?: string;
};

export type SecretEnvSource = LocalObjectReference & {
  optional?: boolean;
};

export type SecretKeySelector = LocalObjectReference & {
  key: string;
  optional?: boolean;
};

export type SecretProjection = LocalObjectReference & {
  items?: KeyToPath[];
  optional?: boolean;
};

export type SecretReference = {
  name?: string;
  namespace?: string;
};

export type SecretVolumeSource = {
  secretName?: string;
  items?: KeyToPath[];
  defaultMode?: number;
  optional?: boolean;
};

export type SecurityContext = {
  capabilities?: Capabilities;
  privileged?: boolean;
  seLinuxOptions?: SELinuxOptions;
  windowsOptions?: WindowsSecurityContextOptions;
  runAsUser?: number;
  runAsGroup?: number;
  runAsNonRoot?: boolean;
  readOnlyRootFilesystem?: boolean;
  allowPrivilegeEscalation?: boolean;
  procMount?: string;
  seccompProfile?: SeccompProfile;
  appArmorProfile?: AppArmorProfile;
};

export type ServiceAccountTokenProjection = {
  audience?: string;
  expirationSeconds?: number;
  path: string;
};

export type ServiceBackendPort = {
  name?: string;
  number?: number;
};

export type ServicePort = {
  name?: string;
  protocol?: string;
  appProtocol?: string;
  port: number;
  targetPort?: IntOrString;
  nodePort?: number;
};

export type ServiceReference = {
  namespace: string;
  name: string;
  path?: string;
  port?: number;
};

export type ServiceSpec = {
  ports?: ServicePort[];
  selector?: Record<string, string>;
  clusterIP?: string;
  clusterIPs?: string[];
  type?: string;
  externalIPs?: string[];
  sessionAffinity?: string;
  loadBalancerIP?: string;
  loadBalancerSourceRanges?: string[];
  externalName?: string;
  externalTrafficPolicy?: string;
  healthCheckNodePort?: number;
  publishNotReadyAddresses?: boolean;
  sessionAffinityConfig?: SessionAffinityConfig;
  ipFamilies?: string[];
  ipFamilyPolicy?: string;
  allocateLoadBalancerNodePorts?: boolean;
  loadBalancerClass?: string;
  internalTrafficPolicy?: string;
  trafficDistribution?: string;
};

export type ServiceStatus = {
  loadBalancer?: LoadBalancerStatus;
  conditions?: Condition[];
};

export type SessionAffinityConfig = {
  clientIP?: ClientIPConfig;
};

export type SleepAction = {
  seconds: number;
};

export type StatefulSetCondition = {
  type: string;
  status: ConditionStatus;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
};

export type StatefulSetOrdinals = {
  start?: number;
};

export type StatefulSetPersistentVolumeClaimRetentionPolicy = {
  whenDeleted?: string;
  whenScaled?: string;
};

export type StatefulSetSpec = {
  replicas?: number;
  selector?: LabelSelector;
  template?: PodTemplateSpec;
  volumeClaimTemplates?: KubePersistentVolumeClaim[];
  serviceName?: string;
  podManagementPolicy?: string;
  updateStrategy?: StatefulSetUpdateStrategy;
  revisionHistoryLimit?: number;
  minReadySeconds?: number;
  persistentVolumeClaimRetentionPolicy?: StatefulSetPersistentVolumeClaimRetentionPolicy;
  ordinals?: StatefulSetOrdinals;
};

export type StatefulSetStatus = {
  observedGeneration?: number;
  replicas?: number;
  readyReplicas?: number;
  currentReplicas?: number;
  updatedReplicas?: number;
  currentRevision?: string;
  updateRevision?: string;
  collisionCount?: number;
  conditions?: StatefulSetCondition[];
  availableReplicas?: number;
};

export type StatefulSetUpdateStrategy = {
  type?: string;
  rollingUpdate?: RollingUpdateStatefulSetStrategy;
};

export type StorageOSPersistentVolumeSource = {
  volumeName?: string;
  volumeNamespace?: string;
  fsType?: string;
  readOnly?: boolean;
  secretRef?: ObjectReference;
};

export type StorageOSVolumeSource = {
  volumeName?: string;
  volumeNamespace?: string;
  fsType?: string;
  readOnly?: boolean;
  secretRef?: LocalObjectReference;
};

export type Subject = {
  kind: string;
  apiGroup?: string;
  name: string;
  namespace?: string;
};

export type SuccessPolicy = {
  rules: SuccessPolicyRule[];
};

export type SuccessPolicyRule = {
  succeededIndexes?: string;
  succeededCount?: number;
};

export type Sysctl = {
  name: string;
  value: string;
};

export type TCPSocketAction = {
  port: IntOrString;
  host?: string;
};

export type Taint = {
  key: string;
  value?: string;
  effect: TaintEffect;
  timeAdded?: string;
};

export type TaintEffect = 'NoExecute' | 'NoSchedule' | 'PreferNoSchedule';

export type TerminationMessagePolicy = 'FallbackToLogsOnError' | 'File';

export type TokenRequest = {
  audience: string;
  expirationSeconds?: number;
};

export type Toleration = {
  key?: string;
  operator?: TolerationOperator;
  value?: string;
  effect?: TaintEffect;
  tolerationSeconds?: number;
};

export type TolerationOperator = 'Equal' | 'Exists' | 'Gt' | 'Lt';

export type TopologySelectorLabelRequirement = {
  key: string;
  values: string[];
};

export type TopologySelectorTerm = {
  matchLabelExpressions?: TopologySelectorLabelRequirement[];
};

export type TopologySpreadConstraint = {
  maxSkew: number;
  topologyKey: string;
  whenUnsatisfiable: UnsatisfiableConstraintAction;
  labelSelector?: LabelSelector;
  minDomains?: number;
  nodeAffinityPolicy?: NodeInclusionPolicy;
  nodeTaintsPolicy?: NodeInclusionPolicy;
  matchLabelKeys?: string[];
};

export type TypeChecking = {
  expressionWarnings?: ExpressionWarning[];
};

export type TypedLocalObjectReference = {
  apiGroup?: string;
  kind: string;
  name: string;
};

export type TypedObjectReference = {
  apiGroup?: string;
  kind: string;
  name: string;
  namespace?: string;
};

export type UncountedTerminatedPods = {
  succeeded?: string[];
  failed?: string[];
};

export type UnhealthyPodEvictionPolicyType = 'AlwaysAllow' | 'IfHealthyBudget';

export type UnsatisfiableConstraintAction = 'DoNotSchedule' | 'ScheduleAnyway';

export type ValidatingAdmissionPolicyBindingSpec = {
  policyName?: string;
  paramRef?: ParamRef;
  matchResources?: MatchResources;
  validationActions?: string[];
};

export type ValidatingAdmissionPolicySpec = {
  paramKind?: ParamKind;
  matchConstraints?: MatchResources;
  validations?: Validation[];
  failurePolicy?: string;
  auditAnnotations?: AuditAnnotation[];
  matchConditions?: MatchCondition[];
  variables?: Variable[];
};

export type ValidatingAdmissionPolicyStatus = {
  observedGeneration?: number;
  typeChecking?: TypeChecking;
  conditions?: Condition[];
};

export type ValidatingWebhook = {
  name: string;
  clientConfig: WebhookClientConfig;
  rules?: RuleWithOperations[];
  failurePolicy?: string;
  matchPolicy?: string;
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  sideEffects: string;
  timeoutSeconds?: number;
  admissionReviewVersions: string[];
  matchConditions?: MatchCondition[];
};

export type Validation = {
  expression: string;
  message?: string;
  reason?: string;
  messageExpression?: string;
};

export type Variable = {
  name: string;
  expression: string;
};

export type Volume = VolumeSource & {
  name: string;
};

export type VolumeAttachmentSource = {
  persistentVolumeName?: string;
  inlineVolumeSpec?: PersistentVolumeSpec;
};

export type VolumeAttachmentSpec = {
  attacher?: string;
  source?: VolumeAttachmentSource;
  nodeName?: string;
};

export type VolumeAttachmentStatus = {
  attached?: boolean;
  attachmentMetadata?: Record<string, string>;
  attachError?: VolumeError;
  detachError?: VolumeError;
};

export type VolumeDevice = {
  name: string;
  devicePath: string;
};

export type VolumeError = {
  time?: string | null;
  message?: string;
  errorCode?: number;
};

export type VolumeMount = {
  name: string;
  readOnly?: boolean;
  recursiveReadOnly?: string;
  mountPath: string;
  subPath?: string;
  mountPropagation?: string;
  subPathExpr?: string;
};

export type VolumeMountStatus = {
  name?: string;
  mountPath?: string;
  readOnly?: boolean;
  recursiveReadOnly?: string;
  volumeStatus?: VolumeStatus;
};

export type VolumeNodeAffinity = {
  required?: NodeSelector;
};

export type VolumeNodeResources = {
  count?: number;
};

export type VolumeProjection = {
  secret?: SecretProjection;
  downwardAPI?: DownwardAPIProjection;
  configMap?: ConfigMapProjection;
  serviceAccountToken?: ServiceAccountTokenProjection;
  clusterTrustBundle?: ClusterTrustBundleProjection;
  podCertificate?: PodCertificateProjection;
};

export type VolumeResourceRequirements = {
  limits?: Record<string, string>;
  requests?: Record<string, string>;
};

export type VolumeSource = {
  hostPath?: HostPathVolumeSource;
  emptyDir?: EmptyDirVolumeSource;
  gcePersistentDisk?: GCEPersistentDiskVolumeSource;
  awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource;
  gitRepo?: GitRepoVolumeSource;
  secret?: SecretVolumeSource;
  nfs?: NFSVolumeSource;
  iscsi?: ISCSIVolumeSource;
  glusterfs?: GlusterfsVolumeSource;
  persistentVolumeClaim?: PersistentVolumeClaimVolumeSource;
  rbd?: RBDVolumeSource;
  flexVolume?: FlexVolumeSource;
  cinder?: CinderVolumeSource;
  cephfs?: CephFSVolumeSource;
  flocker?: FlockerVolumeSource;
  downwardAPI?: DownwardAPIVolumeSource;
  fc?: FCVolumeSource;
  azureFile?: AzureFileVolumeSource;
  configMap?: ConfigMapVolumeSource;
  vsphereVolume?: VsphereVirtualDiskVolumeSource;
  quobyte?: QuobyteVolumeSource;
  azureDisk?: AzureDiskVolumeSource;
  photonPersistentDisk?: PhotonPersistentDiskVolumeSource;
  projected?: ProjectedVolumeSource;
  portworxVolume?: PortworxVolumeSource;
  scaleIO?: ScaleIOVolumeSource;
  storageos?: StorageOSVolumeSource;
  csi?: CSIVolumeSource;
  ephemeral?: EphemeralVolumeSource;
  image?: ImageVolumeSource;
};

export type VolumeStatus = {
  image?: ImageVolumeStatus;
};

export type VsphereVirtualDiskVolumeSource = {
  volumePath: string;
  fsType?: string;
  storagePolicyName?: string;
  storagePolicyID?: string;
};

export type WebhookClientConfig = {
  url?: string;
  service?: ServiceReference;
  caBundle?: string;
};

export type WeightedPodAffinityTerm = {
  weight: number;
  podAffinityTerm: PodAffinityTerm;
};

export type WindowsSecurityContextOptions = {
  gmsaCredentialSpecName?: string;
  gmsaCredentialSpec?: string;
  runAsUserName?: string;
  hostProcess?: boolean;
};
