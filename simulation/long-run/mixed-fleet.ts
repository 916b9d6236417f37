/**
 * A fleet of three kinds of machines, and the policies that are deployed for it in turn. A label selects the profile of
 * a machine. Some policies lack a profile or have other times for it. Each change shortens or lengthens the interval of
 * some machines.
 */
import { DEFAULT_PROFILE, policyOf, profileNameOf } from '../../shared/fleet/nodes/node-profile.ts';
import { defaultPolicy, type NodeProfile, type Policy } from '../../shared/fleet/policy.ts';

const POWER_LABEL = 'sim.nodekeeper.dev/power';

/** What the label of a machine selects. `default`: no profile. */
export const KINDS = [DEFAULT_PROFILE, 'solar', 'fast'] as const;
export type Kind = (typeof KINDS)[number];

/** Half of the machines are `default`. Zones follow from the last two bits of the number of a machine. */
const KINDS_OF_FOUR: readonly Kind[] = ['default', 'solar', 'default', 'fast'];
export const firstKindOf = (node: number): Kind => KINDS_OF_FOUR[(node >> 2) % KINDS_OF_FOUR.length]!;

export const labelsOf = (kind: Kind): Readonly<Record<string, string>> =>
  kind === DEFAULT_PROFILE ? {} : { [POWER_LABEL]: kind };

/** The labels of a Node that becomes another kind. */
export function relabelled(labels: Readonly<Record<string, string>> | undefined, kind: Kind): Record<string, string> {
  const { [POWER_LABEL]: _, ...others } = labels ?? {};
  return { ...others, ...labelsOf(kind) };
}

const profile = (name: Kind, times: Omit<NodeProfile, 'name' | 'nodeSelector'>): NodeProfile => ({
  name,
  nodeSelector: { matchLabels: labelsOf(name) },
  ...times,
});
const SOLAR = profile('solar', {
  beatIntervalSeconds: 60,
  leaseDurationSeconds: 180,
  nodeMonitorGracePeriodSeconds: 200,
  nodeStartupGracePeriodSeconds: 240,
});
const SOLAR_IN_SUMMER = profile('solar', {
  beatIntervalSeconds: 30,
  leaseDurationSeconds: 90,
  nodeMonitorGracePeriodSeconds: 100,
  nodeStartupGracePeriodSeconds: 120,
});
const FAST = profile('fast', {
  beatIntervalSeconds: 5,
  leaseDurationSeconds: 15,
  nodeMonitorGracePeriodSeconds: 15,
  nodeStartupGracePeriodSeconds: 30,
});

/** The first one is deployed first. */
export const MIXED_POLICIES: readonly Policy[] = [
  { ...defaultPolicy, profiles: [SOLAR, FAST] },
  { ...defaultPolicy, nodeMonitorGracePeriodSeconds: 60, profiles: [SOLAR_IN_SUMMER, FAST] },
  { ...defaultPolicy, profiles: [FAST] },
  { ...defaultPolicy, profiles: [SOLAR] },
];

/** The policy for machines of this kind: that of their profile, if the policy has it. */
export const policyOfKind = (policy: Policy, kind: Kind): Policy =>
  policyOf(policy, profileNameOf(labelsOf(kind), policy.profiles));
