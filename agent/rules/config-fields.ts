/**
 * The settings of the agent: the fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1,
 * staging/src/k8s.io/kubelet/config/v1beta1/types.go), our own in AgentConfiguration (nodekeeper.dev/v1alpha1), and
 * flags.
 */
import { PLANNED_SILENCE_SECONDS_MAX } from '../../shared/fleet/nodes/planned-silence.ts';
import {
  duration,
  enforcements,
  evictionThresholds,
  flag,
  flagMap,
  flagText,
  labelsText,
  mapOf,
  minimumReclaims,
  NO_SUCH_FIELD,
  priorityGraces,
  type Reader,
  relaySettings,
  reservation,
  servicesSettings,
  signalDurations,
  taints,
  taintsText,
  text,
  textMap,
  wholeNumber,
  wholeNumberText,
  witnessSettings,
} from './config-readers.ts';
import { EVICTION_SIGNALS } from './eviction-signals.ts';

const PORT_MAX = 65_535;

/** Fields of KubeletConfiguration that the agent supports. */
export const KUBELET_FIELDS = {
  registerNode: flag,
  registerWithTaints: taints,
  providerID: text,
  nodeLeaseDurationSeconds: wholeNumber(),
  nodeStatusUpdateFrequency: duration,
  nodeStatusReportFrequency: duration,
  enableControllerAttachDetach: flag,
  localStorageCapacityIsolation: flag,
  maxPods: wholeNumber(0),
  podsPerCore: wholeNumber(0),
  systemReserved: reservation,
  kubeReserved: reservation,
  evictionHard: evictionThresholds(EVICTION_SIGNALS),
  evictionSoft: evictionThresholds(EVICTION_SIGNALS),
  evictionSoftGracePeriod: signalDurations(EVICTION_SIGNALS),
  evictionMinimumReclaim: minimumReclaims(EVICTION_SIGNALS),
  evictionMaxPodGracePeriod: wholeNumber(0),
  mergeDefaultEvictionSettings: flag,
  evictionPressureTransitionPeriod: duration,
  shutdownGracePeriod: duration,
  shutdownGracePeriodCriticalPods: duration,
  shutdownGracePeriodByPodPriority: priorityGraces,
  staticPodPath: text,
  clusterDomain: text,
  cgroupRoot: text,
  podPidsLimit: wholeNumber(),
  cpuCFSQuota: flag,
  enforceNodeAllocatable: enforcements,
  topologyManagerPolicy: text,
  topologyManagerScope: text,
  topologyManagerPolicyOptions: textMap,
  failSwapOn: flag,
  memorySwap: mapOf<string>((value, key) =>
    key === 'swapBehavior' ? text(value) : { kind: 'unfit', faults: [{ path: [], expected: NO_SUCH_FIELD }] },
  ),
  featureGates: flagMap,
  healthzPort: wholeNumber(0, PORT_MAX),
} satisfies Record<string, Reader<unknown>>;

/** Fields of AgentConfiguration. */
export const AGENT_FIELDS = {
  endpoint: text,
  clusterId: text,
  certificateAuthorityFile: text,
  certificateAuthority: text,
  caHash: text,
  heartbeatEndpoint: text,
  heartbeatCertificateAuthorityFile: text,
  heartbeatCertificateAuthority: text,
  hubEndpoint: text,
  hubCertificateAuthorityFile: text,
  hubCertificateAuthority: text,
  relay: relaySettings,
  witness: witnessSettings,
  services: servicesSettings,
  bootstrapTokenFile: text,
  bootstrapToken: text,
  tokenFile: text,
  token: text,
  keyRotationPeriod: duration,
  updatePublicKeyFile: text,
  updatePublicKey: text,
  updateCheckPeriod: duration,
  runtime: text,
  rootDirectory: text,
  rememberPods: text,
  hostnameOverride: text,
  nodeIP: text,
  nodeLabels: textMap,
  cloudProvider: text,
  providerID: text,
  registerSchedulable: flag,
  plannedSilenceOnSleepSeconds: wholeNumber(0, PLANNED_SILENCE_SECONDS_MAX),
  healthzPort: wholeNumber(0, PORT_MAX),
} satisfies Record<string, Reader<unknown>>;

type ValueOf<Field> = Field extends Reader<infer Value> ? Value : never;
type Values<Fields> = { -readonly [Name in keyof Fields]?: ValueOf<Fields[Name]> };

/** The configured settings, checked field by field. Settings that are not configured are absent. */
export type Settings = Values<typeof KUBELET_FIELDS> & Values<typeof AGENT_FIELDS>;
export type SettingName = keyof Settings;

/** Flags by name, each with the setting that it overrides. */
export const FLAGS: Readonly<Record<string, { readonly setting: SettingName; readonly reader: Reader<unknown> }>> = {
  'register-node': { setting: 'registerNode', reader: flagText },
  'register-schedulable': { setting: 'registerSchedulable', reader: flagText },
  'register-with-taints': { setting: 'registerWithTaints', reader: taintsText },
  'node-ip': { setting: 'nodeIP', reader: text },
  'node-labels': { setting: 'nodeLabels', reader: labelsText },
  'node-status-update-frequency': { setting: 'nodeStatusUpdateFrequency', reader: duration },
  'hostname-override': { setting: 'hostnameOverride', reader: text },
  'provider-id': { setting: 'providerID', reader: text },
  'root-dir': { setting: 'rootDirectory', reader: text },
  'cloud-provider': { setting: 'cloudProvider', reader: text },
  'max-pods': { setting: 'maxPods', reader: wholeNumberText(0, 1_000_000) },
  'fail-swap-on': { setting: 'failSwapOn', reader: flagText },
  'healthz-port': { setting: 'healthzPort', reader: wholeNumberText(0, PORT_MAX) },
  endpoint: { setting: 'endpoint', reader: text },
  'cluster-id': { setting: 'clusterId', reader: text },
  'certificate-authority': { setting: 'certificateAuthorityFile', reader: text },
  'ca-hash': { setting: 'caHash', reader: text },
  'heartbeat-endpoint': { setting: 'heartbeatEndpoint', reader: text },
  'heartbeat-certificate-authority': { setting: 'heartbeatCertificateAuthorityFile', reader: text },
  'bootstrap-token': { setting: 'bootstrapToken', reader: text },
  'bootstrap-token-file': { setting: 'bootstrapTokenFile', reader: text },
  token: { setting: 'token', reader: text },
  'token-file': { setting: 'tokenFile', reader: text },
  runtime: { setting: 'runtime', reader: text },
};

/** Flags that mean `true` without a value. */
export const BOOLEAN_FLAGS: readonly string[] = Object.keys(FLAGS).filter((name) => FLAGS[name]?.reader === flagText);

/**
 * Known fields of KubeletConfiguration that have no effect here. They are accepted, so a kubelet's file can be used.
 */
export const UNUSED_KUBELET_FIELDS: ReadonlySet<string> = new Set(
  `address allowedUnsafeSysctls authentication authorization cgroupDriver cgroupsPerQOS clusterDNS
  configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize
  containerLogMaxWorkers containerLogMonitorInterval containerRuntimeEndpoint contentType cpuCFSQuotaPeriod cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod crashLoopBackOff
  enableContentionProfiling enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler enableServer
  enableSystemLogHandler enableSystemLogQuery eventBurst eventRecordQPS
  failCgroupV1
  fileCheckFrequency hairpinMode healthzBindAddress httpCheckFrequency imageGCHighThresholdPercent
  imageGCLowThresholdPercent imageMaximumGCAge imageMinimumGCAge imagePullCredentialsVerificationPolicy
  imageServiceEndpoint iptablesDropBit iptablesMasqueradeBit kernelMemcgNotification kubeAPIBurst kubeAPIQPS
  kubeReservedCgroup kubeletCgroups logging makeIPTablesUtilChains maxOpenFiles maxParallelImagePulls
  memoryManagerPolicy memoryThrottlingFactor nodeStatusMaxImages oomScoreAdj podCIDR podLogsDir port
  preloadedImagesVerificationAllowlist protectKernelDefaults qosReserved readOnlyPort registryBurst registryPullQPS
  reservedMemory reservedSystemCPUs resolvConf rotateCertificates runOnce runtimeRequestTimeout seccompDefault
  serializeImagePulls serverTLSBootstrap showHiddenMetricsForVersion singleProcessOOMKill staticPodURL
  staticPodURLHeader streamingConnectionIdleTimeout syncFrequency systemCgroups systemReservedCgroup tlsCertFile
  tlsCipherSuites tlsMinVersion tlsPrivateKeyFile tracing userNamespaces volumePluginDir volumeStatsAggPeriod`.split(
    /\s+/,
  ),
);
