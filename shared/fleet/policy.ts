/** A label selector as in Kubernetes: all entries must match. */
export interface NodeSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/** The times of the policy that a profile may replace, with the same relations between them. */
export type ProfileTimes = Pick<
  Policy,
  | 'beatIntervalSeconds'
  | 'leaseDurationSeconds'
  | 'nodeMonitorGracePeriodSeconds'
  | 'nodeStartupGracePeriodSeconds'
  | 'podEvictionTimeoutSeconds'
>;

/** Times for the nodes that a selector matches; an absent time is the one of the policy (nodes/node-profile.ts). */
export interface NodeProfile extends Partial<ProfileTimes> {
  /** A DNS label of at most 11 characters: each heartbeat writes a row that contains it. */
  readonly name: string;
  readonly nodeSelector: NodeSelector;
}

/** Heartbeat intervals in the shortest grace period that a policy may have. */
export const GRACE_INTERVALS_MIN = 2;
/** Machines use a relay with this heartbeat interval and longer ones (docs/relay.md). Seconds. */
export const RELAYED_INTERVAL_SECONDS_MIN = 10;
/** By how much an interval is longer at most, at random. Source: JitterFactor of the kubelet's lease controller. */
export const INTERVAL_JITTER = 0.04;
/**
 * Longest time from one stored heartbeat to the next, besides the interval, if the relay and the first direct request
 * hang. Seconds. agent/rules/relay-use.ts has its parts and keeps them.
 */
export const TWO_HANGS_SECONDS = 11.8;

/**
 * The shortest grace period that a policy may have with this heartbeat interval. One lost heartbeat marks no node. Nor
 * do a relay and a direct request that hang at the same time, where machines use relays. Machines do not know their
 * grace period and rely on this one: it is longer for a longer interval. Seconds; a policy has whole ones.
 */
export const graceSecondsMin = (beatIntervalSeconds: number): number =>
  Math.max(
    GRACE_INTERVALS_MIN * beatIntervalSeconds,
    beatIntervalSeconds < RELAYED_INTERVAL_SECONDS_MIN
      ? 0
      : (1 + INTERVAL_JITTER) * beatIntervalSeconds + TWO_HANGS_SECONDS,
  );

/** 2.6 s for the answer of a relay, and 1 s for a direct heartbeat after it. Seconds. */
const RELAYED_SPARE_SECONDS = 3.6;

/**
 * Longest time from one stored heartbeat to the next, while the cluster answers the machine. No report of witnesses
 * shortens a wait to less. Machines keep it also with a relay that holds back heartbeats and their answers
 * (agent/rules/relay-use.ts). Seconds.
 */
export const steadySeconds = (beatIntervalSeconds: number): number =>
  Math.max(1.25 * beatIntervalSeconds, (1 + INTERVAL_JITTER) * beatIntervalSeconds + RELAYED_SPARE_SECONDS);

/**
 * Every tunable of the controllers: one object for deploy, local mode and scenarios.
 * shared/config/policy.ts validates it (ranges and relations) and reads it from YAML.
 */
export interface Policy {
  /** Time between monitoring passes. Seconds; 5, 10, 15, 20, 30 or 60. */
  readonly nodeMonitorPeriodSeconds: number;
  /**
   * Grace period of a node that has a Ready condition. Seconds; at least 2 heartbeat intervals and 2 periods.
   * Larger means slower failover, smaller means that short network trouble marks nodes.
   */
  readonly nodeMonitorGracePeriodSeconds: number;
  /**
   * Grace period of a silent node that two others of its site report as silent there, a relay among them. Seconds; at
   * most the grace period, which it never lengthens; 0: such reports are not read (docs/decisions/0063).
   */
  readonly witnessGraceSeconds: number;
  /** Grace period, from its creation, of a node without a Ready condition. Seconds; at least one period. */
  readonly nodeStartupGracePeriodSeconds: number;
  /** Time between Lease renewals, sent to agents. Seconds. */
  readonly beatIntervalSeconds: number;
  /** leaseDurationSeconds sent to agents. Seconds; at least 3 heartbeat intervals. */
  readonly leaseDurationSeconds: number;
  /** NoExecute taints per second in a zone that is Normal, or in FullDisruption while another is not. 0 means never. */
  readonly nodeEvictionRatePerSecond: number;
  /** The same in a large zone in partial disruption. 0 means never. */
  readonly secondaryNodeEvictionRatePerSecond: number;
  /** A zone is large when it counts more nodes than this. */
  readonly largeClusterSizeThreshold: number;
  /** Share of not-ready nodes from which a zone is in partial disruption. 0 < x <= 1. */
  readonly unhealthyZoneThreshold: number;
  /** tolerationSeconds added to pods without a toleration of not-ready and unreachable. Seconds. */
  readonly podEvictionTimeoutSeconds: number;
  /** Evictions in a zone in FullDisruption while another is not: at the normal rate as documented, or held. */
  readonly fullDisruption: 'normal' | 'hold';
  /** Close the safety gate when our own probe heartbeats fail. */
  readonly ingestGate: 'on' | 'off';
  /** Close the safety gate when node-monitor missed ticks. */
  readonly tickGate: 'on' | 'off';
  /** Adds the taint out-of-service to a node when EC2 reports this state of its instance; stopped: or terminated. */
  readonly automaticOutOfService: 'off' | 'stopped' | 'terminated';
  /** Seconds for which EC2 must have reported that state. */
  readonly automaticOutOfServiceAfterSeconds: number;
  /** An instance younger than this may exist although EC2 does not know it yet. Seconds. */
  readonly cloudYoungInstanceSeconds: number;
  /** Seconds after which volumes of an unhealthy node are force detached. */
  readonly forceDetachTimeoutSeconds: number;
  /** true: volumes are not force detached after that time. */
  readonly disableForceDetachOnTimeout: boolean;
  /** Time between passes of pod garbage collection. Seconds. */
  readonly podGcPeriodSeconds: number;
  /** Time for which a node must be missing before its pods count as orphaned. Seconds. */
  readonly orphanQuarantineSeconds: number;
  /** Terminated pods kept; 0 keeps all. */
  readonly terminatedPodGcThreshold: number;
  /** Ranges of pods, with a block for each node. Pod CIDR allocation is off while this is empty. */
  readonly clusterCIDRs: readonly string[];
  /** Ranges of Services; no node has a block in them. */
  readonly serviceClusterIPRanges: readonly string[];
  /** Length of the prefix of a node's IPv4 block. Bits. */
  readonly nodeCIDRMaskSizeIPv4: number;
  /** Length of the prefix of a node's IPv6 block. Bits. */
  readonly nodeCIDRMaskSizeIPv6: number;
  /**
   * The creation of a kind that nothing acts on, such as Ingress, is answered with a warning, or refused; that of a
   * NetworkPolicy while no node enforces any.
   */
  readonly unenforcedKinds: 'warn' | 'refuse';
  /** stream: watches are redirected to the streaming function. longPoll: held on the HTTP API, 20 s at most. */
  readonly watchMode: 'stream' | 'longPoll';
  /**
   * on: function `heartbeat` has a URL of its own, at about half the price of a heartbeat through the HTTP API
   * (docs/decisions/0039). Agents learn it from the answer to a heartbeat; the HTTP API stays in service.
   */
  readonly heartbeatUrl: 'on' | 'off';
  /**
   * on: function `api` has a URL of its own, the output `ApiUrl`, for clients that ask often (docs/decisions/0039).
   */
  readonly apiUrl: 'on' | 'off';
  /**
   * Streamed watches at once; one more is answered with 429. Each occupies a concurrent execution of the account, which
   * heartbeats and ticks need as well (docs/operations/quotas.md). Machines and people have shares of them
   * (functions/watch/watch-shares.ts).
   */
  readonly concurrentWatchesMax: number;
  /**
   * A streamed watch without an event ends after this time. Seconds. Nothing shows that its client has disconnected.
   */
  readonly watchQuietSeconds: number;
  /** off: pods are bound by other schedulers, or not at all. */
  readonly scheduling: 'on' | 'off';
  /** Time before a pod that was rejected once is tried again. Seconds; it doubles with each rejection. */
  readonly podInitialBackoffSeconds: number;
  /** Longest time between two attempts. Seconds; at least podInitialBackoffSeconds. */
  readonly podMaxBackoffSeconds: number;
  /** A rejected pod is tried again after this time, even if nothing changed. Seconds; at least podMaxBackoffSeconds. */
  readonly podUnschedulableRetrySeconds: number;
  /** Share of the nodes that are scored for a pod. Per cent; 0: 50 % of 100 nodes to 5 % of 5,600 and more. */
  readonly percentageOfNodesToScore: number;
  /** Pods of lower priority are deleted for a pod that does not fit. */
  readonly preemption: 'on' | 'off';
  /** Soft spread over hosts and zones of pods with the same controller and without constraints of their own. */
  readonly defaultTopologySpread: 'system' | 'none';
  /**
   * hold: while the safety gate is closed, pods are bound only to nodes with a recent heartbeat, and none is preempted.
   */
  readonly schedulerGate: 'hold' | 'off';
  /** Alarm `pods-pending`: a pod without scheduling gates has waited for a node for so long. Seconds. */
  readonly pendingPodAlarmSeconds: number;
  /**
   * Alarm `workload-short-of-pods`: a workload has had too few available pods for so long. Seconds; seen every 900 s.
   */
  readonly workloadShortageAlarmSeconds: number;
  /**
   * Silent nodes that a tick of node-monitor marks itself. Nodes; more are sent to node-marker, which needs a second
   * more for few nodes, but marks 100,000 within three ticks (docs/decisions/0027). 0: all are sent.
   */
  readonly nodesMarkedPerTickMax: number;
  /**
   * Nodes of a zone in its eviction queue. Nodes; each is a write. evictor taints at most 101 nodes of a zone between
   * two ticks of node-monitor. Further nodes wait in their digests (docs/decisions/0046).
   */
  readonly nodesQueuedPerZoneMax: number;
  /** Times for some nodes, selected by labels. At most 8, in order: the first match wins (docs/profiles.md). */
  readonly profiles: readonly NodeProfile[];
  /**
   * How far ahead of our clock a node may promise the end of its own silence. Seconds, up to 30 days; 0: nodes may not.
   * People may promise up to 30 days for any node (docs/planned-silence.md).
   */
  readonly maxPlannedSilenceSeconds: number;
  /**
   * Marks Unknown within flapWindowSeconds that make a node flapping. Marks, up to 5; 0: marks are not counted
   * (docs/flapping.md).
   */
  readonly flapThreshold: number;
  /** Time in which marks count together. Seconds, up to a day. */
  readonly flapWindowSeconds: number;
  /** A flapping node that is not marked for so long is stable. Seconds, up to a day; at least three periods. */
  readonly flapStableSeconds: number;
  /** Effect of the taint `nodekeeper.dev/flapping` of a flapping node. */
  readonly flapEffect: 'NoSchedule' | 'PreferNoSchedule';
}

/** The documentation's defaults (grace: 40 s, as before Kubernetes 1.32; docs/deviations.md). */
export const defaultPolicy: Policy = Object.freeze({
  nodeMonitorPeriodSeconds: 5,
  nodeMonitorGracePeriodSeconds: 40,
  witnessGraceSeconds: 8,
  nodeStartupGracePeriodSeconds: 60,
  beatIntervalSeconds: 10,
  leaseDurationSeconds: 40,
  nodeEvictionRatePerSecond: 0.1,
  secondaryNodeEvictionRatePerSecond: 0.01,
  largeClusterSizeThreshold: 50,
  unhealthyZoneThreshold: 0.55,
  podEvictionTimeoutSeconds: 300,
  fullDisruption: 'normal',
  ingestGate: 'on',
  tickGate: 'on',
  automaticOutOfService: 'off',
  automaticOutOfServiceAfterSeconds: 300,
  cloudYoungInstanceSeconds: 300,
  forceDetachTimeoutSeconds: 360,
  disableForceDetachOnTimeout: false,
  podGcPeriodSeconds: 20,
  orphanQuarantineSeconds: 40,
  terminatedPodGcThreshold: 12_500,
  clusterCIDRs: [],
  serviceClusterIPRanges: [],
  nodeCIDRMaskSizeIPv4: 24,
  nodeCIDRMaskSizeIPv6: 64,
  unenforcedKinds: 'warn',
  watchMode: 'stream',
  heartbeatUrl: 'off',
  apiUrl: 'off',
  concurrentWatchesMax: 40,
  watchQuietSeconds: 300,
  scheduling: 'on',
  podInitialBackoffSeconds: 1,
  podMaxBackoffSeconds: 10,
  podUnschedulableRetrySeconds: 300,
  percentageOfNodesToScore: 0,
  preemption: 'on',
  defaultTopologySpread: 'system',
  schedulerGate: 'hold',
  pendingPodAlarmSeconds: 300,
  workloadShortageAlarmSeconds: 1_800,
  nodesMarkedPerTickMax: 300,
  nodesQueuedPerZoneMax: 200,
  profiles: Object.freeze([]),
  maxPlannedSilenceSeconds: 0,
  flapThreshold: 3,
  flapWindowSeconds: 3_600,
  flapStableSeconds: 600,
  flapEffect: 'NoSchedule',
});
