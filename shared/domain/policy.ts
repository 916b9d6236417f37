/**
 * Every tunable of the controllers: one object for deploy, local mode and scenarios.
 * shared/config/policy.ts validates it (ranges and relations) and reads it from YAML.
 */
export interface Policy {
  /** Time between monitoring passes. Seconds; 5, 10, 15, 20, 30 or 60. */
  readonly nodeMonitorPeriodSeconds: number;
  /**
   * Silence allowed for a node that has a Ready condition. Seconds; at least 2 beat intervals and 2 periods.
   * Larger means slower failover, smaller means that short network trouble marks nodes.
   */
  readonly nodeMonitorGracePeriodSeconds: number;
  /** Silence allowed, counted from creation, for a node without a Ready condition. Seconds; at least one period. */
  readonly nodeStartupGracePeriodSeconds: number;
  /** Time between lease renewals, told to agents. Seconds. */
  readonly beatIntervalSeconds: number;
  /** leaseDurationSeconds told to agents. Seconds; at least 3 beat intervals. */
  readonly leaseDurationSeconds: number;
  /** NoExecute taints a second in a zone that is Normal (or fully dark alone). 0 means never. */
  readonly nodeEvictionRatePerSecond: number;
  /** The same in a large zone in partial disruption. 0 means never. */
  readonly secondaryNodeEvictionRatePerSecond: number;
  /** A zone is large when it counts more nodes than this. */
  readonly largeClusterSizeThreshold: number;
  /** Share of not-ready nodes from which a zone is in partial disruption. 0 < x <= 1. */
  readonly unhealthyZoneThreshold: number;
  /** tolerationSeconds given to pods that bring no toleration of not-ready and unreachable. Seconds. */
  readonly podEvictionTimeoutSeconds: number;
  /** What a fully dark zone does while others live: evict at the normal rate as documented, or hold. */
  readonly fullDisruption: 'normal' | 'hold';
  /** Doubt ourselves when our own probe beats fail. */
  readonly ingestGate: 'on' | 'off';
  /** Doubt ourselves when ticks were missing. */
  readonly tickGate: 'on' | 'off';
  readonly automaticOutOfService: 'off' | 'stopped' | 'terminated';
  /** Seconds that EC2 must have said so. */
  readonly automaticOutOfServiceAfterSeconds: number;
  /** An instance younger than this that EC2 does not know is not gone. Seconds. */
  readonly cloudYoungInstanceSeconds: number;
  /** Seconds after which volumes of an unhealthy node are detached by force. */
  readonly forceDetachTimeoutSeconds: number;
  readonly disableForceDetachOnTimeout: boolean;
  /** Time between passes of pod garbage collection. Seconds. */
  readonly podGcPeriodSeconds: number;
  /** Time a missing node is watched before its pods are called orphaned. Seconds. */
  readonly orphanQuarantineSeconds: number;
  /** Terminated pods kept; 0 keeps all. */
  readonly terminatedPodGcThreshold: number;
  /** Pod CIDR allocation is off while this is empty. */
  readonly clusterCIDRs: readonly string[];
  readonly serviceClusterIPRanges: readonly string[];
  readonly nodeCIDRMaskSizeIPv4: number;
  readonly nodeCIDRMaskSizeIPv6: number;
  /** stream: watches are redirected to the streaming function. longPoll: held on the HTTP API, 20 s at most. */
  readonly watchMode: 'stream' | 'longPoll';
}

/** The documentation's defaults (grace: 40 s, as before Kubernetes 1.32; docs/deviations.md). */
export const defaultPolicy: Policy = Object.freeze({
  nodeMonitorPeriodSeconds: 5,
  nodeMonitorGracePeriodSeconds: 40,
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
  watchMode: 'stream',
});
