import * as z from 'zod/mini';
import { formatCidr } from '../fleet/cidrs/cidr.ts';
import { createCidrSets } from '../fleet/cidrs/cluster-cidrs.ts';
import {
  defaultPolicy,
  GRACE_INTERVALS_MIN,
  graceSecondsMin,
  type Policy,
  RELAYED_INTERVAL_SECONDS_MIN,
  TWO_HANGS_SECONDS,
} from '../fleet/policy.ts';
import { FLAP_THRESHOLD_MAX } from '../fleet/silences/flapping.ts';
import type { FieldRule, PolicyFault, Relation } from './policy-rules.ts';
import { profileFaults, profileRelationFaults, profilesRule } from './profiles.ts';

export type ParsedPolicy =
  | { readonly kind: 'ok'; readonly policy: Policy }
  | { readonly kind: 'faults'; readonly faults: readonly PolicyFault[] };

/** One year: a longer time is probably in the wrong unit, and its milliseconds stay far below 2^53. */
const SECONDS_MAX = 31_536_000;
/** Nodes or pods in one cluster; a bound against typing errors, not a supported size. */
const COUNT_MAX = 10_000_000;
/** Upstream's limit for IPv6: a set of node blocks is a bitmap of at most 2^16. */
const IPV6_NODE_BITS_MAX = 16;

const wholeSeconds = (minimum: number): FieldRule<number> => ({
  schema: z.int().check(z.gte(minimum), z.lte(SECONDS_MAX)),
  rule: `must be whole seconds, ${minimum} to ${SECONDS_MAX}`,
});

const secondsOfDay = (minimum: number): FieldRule<number> => ({
  schema: z.int().check(z.gte(minimum), z.lte(86_400)),
  rule: `must be whole seconds, ${minimum} to 86400 (a day)`,
});

const count = (what: string): FieldRule<number> => ({
  schema: z.int().check(z.gte(0), z.lte(COUNT_MAX)),
  rule: `must be a whole number of ${what}, 0 to ${COUNT_MAX}`,
});

const rate: FieldRule<number> = {
  schema: z.number().check(z.gte(0), z.lte(1_000)),
  rule: 'must be taints a second, 0 (never) to 1000',
};

const maskBits = (maximum: number): FieldRule<number> => ({
  schema: z.int().check(z.gte(1), z.lte(maximum)),
  rule: `must be a whole number of bits, 1 to ${maximum}`,
});

const oneOf = <const Word extends string>(words: readonly Word[]): FieldRule<Word> => ({
  schema: z.enum(words),
  rule: `must be one of ${words.join(', ')}`,
});

const isIPv6 = (cidr: string): boolean => cidr.includes(':');
const prefixBits = (cidr: string): number => Number(cidr.slice(cidr.indexOf('/') + 1));

const cidrs: FieldRule<readonly string[]> = {
  schema: z
    .readonly(z.array(z.union([z.cidrv4(), z.cidrv6()])))
    .check(z.refine((list) => list.length <= 2 && new Set(list.map(isIPv6)).size === list.length)),
  rule: 'must be a list of CIDRs: empty, one, or one IPv4 and one IPv6',
};

const backoffSeconds: FieldRule<number> = {
  schema: z.int().check(z.gte(1), z.lte(300)),
  rule: 'must be whole seconds, 1 to 300',
};

const MONITOR_PERIODS_SECONDS: readonly number[] = [5, 10, 15, 20, 30, 60];

/** The mapped type makes a policy field without a rule a compile error. */
const fieldRules: { readonly [Field in keyof Policy]: FieldRule<Policy[Field]> } = {
  nodeMonitorPeriodSeconds: {
    schema: z.number().check(z.refine((seconds) => MONITOR_PERIODS_SECONDS.includes(seconds))),
    rule: `must be one of ${MONITOR_PERIODS_SECONDS.join(', ')} (seconds)`,
  },
  nodeMonitorGracePeriodSeconds: wholeSeconds(1),
  witnessGraceSeconds: wholeSeconds(0),
  nodeStartupGracePeriodSeconds: wholeSeconds(1),
  beatIntervalSeconds: wholeSeconds(1),
  leaseDurationSeconds: wholeSeconds(1),
  nodeEvictionRatePerSecond: rate,
  secondaryNodeEvictionRatePerSecond: rate,
  largeClusterSizeThreshold: count('nodes'),
  unhealthyZoneThreshold: {
    schema: z.number().check(z.gt(0), z.lte(1)),
    rule: 'must be a share of nodes, above 0 and at most 1',
  },
  podEvictionTimeoutSeconds: wholeSeconds(0),
  fullDisruption: oneOf(['normal', 'hold']),
  ingestGate: oneOf(['on', 'off']),
  tickGate: oneOf(['on', 'off']),
  automaticOutOfService: oneOf(['off', 'stopped', 'terminated']),
  automaticOutOfServiceAfterSeconds: wholeSeconds(0),
  cloudYoungInstanceSeconds: wholeSeconds(0),
  forceDetachTimeoutSeconds: wholeSeconds(0),
  disableForceDetachOnTimeout: { schema: z.boolean(), rule: 'must be true or false' },
  podGcPeriodSeconds: {
    schema: z.number().check(
      z.int(),
      z.gte(1),
      z.refine((seconds) => 60 % seconds === 0),
    ),
    rule: 'must divide 60 (seconds), because ticks start at whole minutes',
  },
  orphanQuarantineSeconds: wholeSeconds(0),
  terminatedPodGcThreshold: count('pods'),
  clusterCIDRs: cidrs,
  serviceClusterIPRanges: cidrs,
  nodeCIDRMaskSizeIPv4: maskBits(32),
  nodeCIDRMaskSizeIPv6: maskBits(128),
  unenforcedKinds: oneOf(['warn', 'refuse']),
  watchMode: oneOf(['stream', 'longPoll']),
  heartbeatUrl: oneOf(['on', 'off']),
  apiUrl: oneOf(['on', 'off']),
  concurrentWatchesMax: {
    schema: z.int().check(z.gte(1), z.lte(1_000)),
    rule: 'must be a whole number of watches, 1 to 1000',
  },
  watchQuietSeconds: {
    schema: z.int().check(z.gte(5), z.lte(900)),
    rule: 'must be whole seconds, 5 to 900: a function runs for 15 minutes at most',
  },
  scheduling: oneOf(['on', 'off']),
  podInitialBackoffSeconds: backoffSeconds,
  podMaxBackoffSeconds: backoffSeconds,
  podUnschedulableRetrySeconds: wholeSeconds(1),
  percentageOfNodesToScore: {
    schema: z.int().check(z.gte(0), z.lte(100)),
    rule: 'must be a whole number of per cent, 0 to 100',
  },
  preemption: oneOf(['on', 'off']),
  defaultTopologySpread: oneOf(['system', 'none']),
  schedulerGate: oneOf(['hold', 'off']),
  pendingPodAlarmSeconds: wholeSeconds(60),
  workloadShortageAlarmSeconds: wholeSeconds(60),
  nodesMarkedPerTickMax: {
    schema: z.int().check(z.gte(0), z.lte(100_000)),
    rule: 'must be a whole number of nodes, 0 to 100000',
  },
  nodesQueuedPerZoneMax: {
    schema: z.int().check(z.gte(1), z.lte(100_000)),
    rule: 'must be a whole number of nodes, 1 to 100000',
  },
  profiles: profilesRule,
  maxPlannedSilenceSeconds: {
    schema: z.int().check(z.gte(0), z.lte(2_592_000)),
    rule: 'must be whole seconds, 0 (nodes may not promise) to 2592000 (30 days)',
  },
  flapThreshold: {
    schema: z.int().check(z.gte(0), z.lte(FLAP_THRESHOLD_MAX)),
    rule: `must be a whole number of marks, 0 (off) to ${FLAP_THRESHOLD_MAX}`,
  },
  flapWindowSeconds: secondsOfDay(60),
  flapStableSeconds: secondsOfDay(15),
  flapEffect: oneOf(['NoSchedule', 'PreferNoSchedule']),
};

export const policyFields = Object.keys(fieldRules) as readonly (keyof Policy)[];

const relations: readonly Relation[] = [
  {
    field: 'nodeMonitorGracePeriodSeconds',
    other: 'beatIntervalSeconds',
    rule: `must be at least ${GRACE_INTERVALS_MIN} × beatIntervalSeconds, because one lost beat must not mark a node`,
    holds: (policy) => policy.nodeMonitorGracePeriodSeconds >= GRACE_INTERVALS_MIN * policy.beatIntervalSeconds,
  },
  {
    field: 'nodeMonitorGracePeriodSeconds',
    other: 'beatIntervalSeconds',
    rule:
      `must be at least 1.04 × beatIntervalSeconds + ${TWO_HANGS_SECONDS}, because a relay and a direct request that hang ` +
      `must not mark a node (intervals of ${RELAYED_INTERVAL_SECONDS_MIN} s and more)`,
    holds: ({ nodeMonitorGracePeriodSeconds: graceSeconds, beatIntervalSeconds }) =>
      graceSeconds < GRACE_INTERVALS_MIN * beatIntervalSeconds || graceSeconds >= graceSecondsMin(beatIntervalSeconds),
  },
  {
    field: 'nodeMonitorGracePeriodSeconds',
    other: 'nodeMonitorPeriodSeconds',
    rule: 'must be at least 2 × nodeMonitorPeriodSeconds',
    holds: (policy) => policy.nodeMonitorGracePeriodSeconds >= 2 * policy.nodeMonitorPeriodSeconds,
  },
  {
    field: 'witnessGraceSeconds',
    other: 'nodeMonitorGracePeriodSeconds',
    rule: 'must be at most nodeMonitorGracePeriodSeconds, which it shortens',
    holds: (policy) => policy.witnessGraceSeconds <= policy.nodeMonitorGracePeriodSeconds,
  },
  {
    field: 'nodeStartupGracePeriodSeconds',
    other: 'nodeMonitorPeriodSeconds',
    rule: 'must be at least nodeMonitorPeriodSeconds',
    holds: (policy) => policy.nodeStartupGracePeriodSeconds >= policy.nodeMonitorPeriodSeconds,
  },
  {
    field: 'leaseDurationSeconds',
    other: 'beatIntervalSeconds',
    rule: 'must be at least 3 × beatIntervalSeconds',
    holds: (policy) => policy.leaseDurationSeconds >= 3 * policy.beatIntervalSeconds,
  },
  {
    field: 'flapStableSeconds',
    other: 'nodeMonitorPeriodSeconds',
    rule: 'must be at least 3 × nodeMonitorPeriodSeconds, because a later tick than that of the mark begins flapping',
    holds: (policy) => policy.flapStableSeconds >= 3 * policy.nodeMonitorPeriodSeconds,
  },
  {
    field: 'podMaxBackoffSeconds',
    other: 'podInitialBackoffSeconds',
    rule: 'must be at least podInitialBackoffSeconds',
    holds: (policy) => policy.podMaxBackoffSeconds >= policy.podInitialBackoffSeconds,
  },
  {
    field: 'podUnschedulableRetrySeconds',
    other: 'podMaxBackoffSeconds',
    rule: 'must be at least podMaxBackoffSeconds',
    holds: (policy) => policy.podUnschedulableRetrySeconds >= policy.podMaxBackoffSeconds,
  },
  {
    field: 'nodeCIDRMaskSizeIPv4',
    other: 'clusterCIDRs',
    rule: 'must be at least the prefix length of the IPv4 cluster CIDR',
    holds: (policy) =>
      policy.clusterCIDRs.every((cidr) => isIPv6(cidr) || prefixBits(cidr) <= policy.nodeCIDRMaskSizeIPv4),
  },
  {
    field: 'nodeCIDRMaskSizeIPv6',
    other: 'clusterCIDRs',
    rule: `must be at least the prefix length of the IPv6 cluster CIDR, and at most ${IPV6_NODE_BITS_MAX} more`,
    holds: (policy) =>
      policy.clusterCIDRs.every((cidr) => {
        const nodeBits = policy.nodeCIDRMaskSizeIPv6 - prefixBits(cidr);
        return !isIPv6(cidr) || (nodeBits >= 0 && nodeBits <= IPV6_NODE_BITS_MAX);
      }),
  },
];

/**
 * A policy from a plain map of its fields; absent fields have the default. All faults are reported, not only the first:
 * unknown fields by name with the nearest known one, ranges, then relations between fields that are each in range.
 */
export function parsePolicy(input: unknown): ParsedPolicy {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return { kind: 'faults', faults: [{ field: '', value: input, rule: 'must be a map of policy fields' }] };
  }
  const given = input as Readonly<Record<string, unknown>>;
  const faults: PolicyFault[] = [];

  for (const field of Object.keys(given)) {
    if (Object.hasOwn(fieldRules, field)) continue;
    const rule = `is no policy field; the nearest is ${nearestField(field)}`;
    faults.push({ field, value: given[field], rule });
  }

  const policy: Record<string, unknown> = {};
  const wrong = new Set<keyof Policy>();
  for (const field of policyFields) {
    const value = Object.hasOwn(given, field) ? given[field] : defaultPolicy[field];
    if (field === 'profiles') {
      const found = profileFaults(value, fieldRules);
      faults.push(...found);
      if (found.length > 0) wrong.add(field);
      policy[field] = found.length > 0 ? [] : deepFrozen(value);
      continue;
    }
    const parsed = fieldRules[field].schema.safeParse(value);
    if (parsed.success) {
      policy[field] = parsed.data;
    } else {
      wrong.add(field);
      faults.push({ field, value, rule: fieldRules[field].rule });
    }
  }

  for (const { field, other, rule, holds } of relations) {
    if (wrong.has(field) || wrong.has(other)) continue;
    const candidate = policy as unknown as Policy;
    if (holds(candidate)) continue;
    faults.push({
      field,
      value: candidate[field],
      rule: `${rule} (${other} is ${JSON.stringify(candidate[other])})`,
      other,
    });
  }

  if (faults.length === 0) {
    const candidate = policy as unknown as Policy;
    faults.push(...cidrFaults(candidate), ...profileRelationFaults(candidate, relations));
  }

  return faults.length > 0
    ? { kind: 'faults', faults }
    : { kind: 'ok', policy: Object.freeze(policy) as unknown as Policy };
}

/** An immutable copy. The value is JSON. */
function deepFrozen(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const copy: object = Array.isArray(value)
    ? value.map(deepFrozen)
    : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, deepFrozen(each)]));
  return Object.freeze(copy);
}

/** Faults that the allocator finds, checked after the fields and their relations are valid. */
function cidrFaults(policy: Policy): PolicyFault[] {
  const creation = createCidrSets(policy);
  switch (creation.kind) {
    case 'off':
      return [];
    case 'refused':
      return creation.reasons.map((rule) => ({ field: 'clusterCIDRs', value: policy.clusterCIDRs, rule }));
    case 'created':
      return creation.sets
        .filter((set) => set.usedCount >= set.size)
        .map((set) => ({
          field: 'serviceClusterIPRanges',
          value: policy.serviceClusterIPRanges,
          rule: `must leave a block for nodes in cluster CIDR ${formatCidr(set.cluster)}`,
          other: 'clusterCIDRs',
        }));
    default:
      return creation satisfies never;
  }
}

/** One line per fault: `file:line field value rule`. */
export function describePolicyFault(fault: PolicyFault): string {
  const { value } = fault;
  const valueText = typeof value === 'number' ? String(value) : JSON.stringify(value);
  const words = [fault.at, fault.field, valueText, fault.rule];
  return words.filter((word) => word !== undefined && word !== '').join(' ');
}

function nearestField(name: string): string {
  let nearest = '';
  let nearestDistance = Number.POSITIVE_INFINITY;
  for (const field of policyFields) {
    const distance = editDistance(name.toLowerCase(), field.toLowerCase());
    if (distance < nearestDistance) {
      nearest = field;
      nearestDistance = distance;
    }
  }
  return nearest;
}

/** Levenshtein distance: insertions, deletions and substitutions that turn one word into the other. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const substitution = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[to.length]!;
}
