/**
 * The agent's configuration after the file and the flags were read and checked: frozen, typed, with defaults. Field
 * names are those of KubeletConfiguration (kubelet.config.k8s.io/v1beta1), with units added where they have none.
 */
import type { Taint } from '../shared/kubernetes/kubernetes.ts';

/** The threshold of one resource: an amount, or a share of the capacity. */
export type ThresholdValue =
  | { readonly kind: 'quantity'; readonly value: number }
  /** The number of the text, such as 10 for 10%. */
  | { readonly kind: 'percent'; readonly percent: number };

/** memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available */
export type EvictionThresholds = Readonly<Record<string, ThresholdValue>>;

export interface PriorityGrace {
  readonly priority: number;
  readonly shutdownGracePeriodSeconds: number;
}

/** This machine relays the heartbeats of its site (docs/relay.md). */
export interface RelayConfig {
  /** Where it listens; '' for all addresses of the machine. */
  readonly address: string;
  readonly port: number;
  /** Server certificate in PEM, signed by the site CA. */
  readonly certificateFile: string;
  readonly privateKeyFile: string;
}

/** Where this machine answers probes of its site (docs/witnesses.md). */
export interface WitnessConfig {
  /** '' for all addresses of the machine. */
  readonly address: string;
  readonly port: number;
}

/** This machine routes Services and answers their names (docs/services.md). */
export interface ServicesConfig {
  /** Endpoints of the machine's zone alone, or of all zones. */
  readonly endpoints: 'zone' | 'all';
  /** Address of this machine at which pods ask for names. */
  readonly dnsAddress: string;
  /** Domain of the cluster. */
  readonly clusterDomain: string;
}

export type RuntimeName = 'none' | 'exec' | 'podman';
export type TopologyPolicy = 'none' | 'best-effort' | 'restricted' | 'single-numa-node';

export interface AgentConfig {
  readonly endpoint: string;
  /** The endpoint of the configuration, if the cluster has moved since. */
  readonly configuredEndpoint?: string;
  /** PEM text of the authority that signed the server's certificate; the system's when absent. */
  readonly certificateAuthority?: string;
  /** `sha256:` and the hash of the public key of that authority, which is then read from the server. */
  readonly caHash?: string;
  /** Base URL of the relay of this site. Absent: heartbeats are sent directly. */
  readonly heartbeatEndpoint?: string;
  /** PEM text of the site CA; the authorities of the system when absent. */
  readonly heartbeatCertificateAuthority?: string;
  /** Base URL of the hub of this site. Absent: statuses are sent to the cluster alone. */
  readonly hubEndpoint?: string;
  /** PEM text; the authorities of the system when absent. */
  readonly hubCertificateAuthority?: string;
  readonly relay?: RelayConfig;
  /** Absent: no relay, or turned off. This machine is then not watched by its site. */
  readonly witness?: WitnessConfig;
  /** Absent: Services are not routed on this machine. */
  readonly services?: ServicesConfig;
  /** `id.secret`, exchanged once for a node identity. */
  readonly bootstrapToken?: string;
  /** A bearer token that is sent unchanged, instead of an identity of our own. */
  readonly token?: string;
  /** Name of the cluster that our tokens are for. */
  readonly clusterId: string;
  /** Age at which the machine's key is replaced at the latest; 0: never. */
  readonly keyRotationPeriodMs: number;
  /** PEM of the Ed25519 key that signs releases of the agent. Absent: the agent does not update itself. */
  readonly updatePublicKey?: string;
  /** Interval at which the agent reports its version, and learns of a release. */
  readonly updateCheckPeriodMs: number;
  /** Keys, state file, pod logs. */
  readonly rootDirectory: string;
  readonly runtime: RuntimeName;

  readonly nodeName: string;
  readonly registerNode: boolean;
  readonly registerSchedulable: boolean;
  readonly registerWithTaints: readonly Taint[];
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** The configured text; the rules of the node IP argument parse it. */
  readonly nodeIp: string;
  readonly providerId: string;
  readonly cloudProvider: '' | 'external';

  readonly nodeLeaseDurationSeconds: number;
  readonly nodeStatusUpdateFrequencyMs: number;
  readonly nodeStatusReportFrequencyMs: number;
  readonly enableControllerAttachDetach: boolean;

  /** Whether a node without ephemeral-storage capacity counts as not ready; true when absent. */
  readonly localStorageCapacityIsolation?: boolean;

  readonly maxPods: number;
  readonly podsPerCore: number;
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  readonly evictionHard: EvictionThresholds;
  readonly evictionSoft: EvictionThresholds;
  /** The grace period of each signal in `evictionSoft`. */
  readonly evictionSoftGracePeriodMs: Readonly<Record<string, number>>;
  readonly evictionMinimumReclaim: EvictionThresholds;
  /** Longest grace period of a pod that a soft threshold evicts. */
  readonly evictionMaxPodGracePeriodSeconds: number;
  readonly evictionPressureTransitionPeriodMs: number;

  readonly shutdownGracePeriodMs: number;
  readonly shutdownGracePeriodCriticalPodsMs: number;
  readonly shutdownGracePeriodByPodPriority: readonly PriorityGrace[];

  /** Silence that the agent announces when the machine suspends. 0: none. */
  readonly plannedSilenceOnSleepSeconds: number;

  /** Group of pods, below the root of cgroup v2; '': the unit of pods, or the root. */
  readonly cgroupRoot: string;
  /** Processes of one pod; undefined: no limit. */
  readonly podPidsMax: number | undefined;
  /** Whether CPU limits are enforced. */
  readonly cpuCfsQuota: boolean;
  /** Whether all pods together are limited to the machine without its reservations. */
  readonly enforceNodeAllocatable: boolean;

  readonly topologyManagerPolicy: TopologyPolicy;
  readonly topologyManagerScope: 'container' | 'pod';
  readonly topologyManagerPolicyOptions: Readonly<Record<string, string>>;

  /** Directory of manifests of static pods; '' for none. */
  readonly staticPodPath: string;
  /** Which pods run again after a start without the API: `withoutSecrets` keeps no Secret and no token on the disk. */
  readonly rememberPods: 'all' | 'withoutSecrets' | 'none';
  readonly failSwapOn: boolean;
  readonly swapBehavior: '' | 'NoSwap' | 'LimitedSwap';
  /** Feature gates by name. Only NodeSwap has an effect; it is on by default. */
  readonly featureGates?: Readonly<Record<string, boolean>>;

  /** Port of /healthz and /metrics on loopback; 0: none. */
  readonly healthzPort: number;
}
