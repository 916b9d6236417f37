/**
 * Profiles: machines of different kinds need different patience. A profile replaces some times of the policy for the
 * nodes that its selector matches. The list is ordered, and the first match wins. A node without a match has the
 * top-level times of the policy, the profile `default`.
 *
 * The API writes the name of the profile into the Node and into its digest, in the transaction that writes the Node.
 * Controllers use the stored name and evaluate no selector. A name that the policy no longer has means `default`.
 */
import type { NodeProfile, NodeSelector, Policy, ProfileTimes } from '../policy.ts';

/** Name of the top-level times of the policy. */
export const DEFAULT_PROFILE = 'default';
/** Annotation of a Node with the name of its profile; absent: `default`. Clients cannot set it. */
export const PROFILE_ANNOTATION = 'nodekeeper.dev/profile';
/** Annotations in the answer to a heartbeat. Agents follow them from their next heartbeat on; kubelets ignore them. */
export const BEAT_INTERVAL_ANNOTATION = 'nodekeeper.dev/beat-interval-seconds';
export const LEASE_DURATION_ANNOTATION = 'nodekeeper.dev/lease-duration-seconds';

/** Interval and duration of Leases by profile, in seconds: what the heartbeat function needs of the policy. */
export type BeatTimes = Readonly<Record<string, readonly [intervalSeconds: number, durationSeconds: number]>>;

/** Fields of the policy that a profile may replace. */
export const PROFILE_TIMES = [
  'beatIntervalSeconds',
  'leaseDurationSeconds',
  'nodeMonitorGracePeriodSeconds',
  'nodeStartupGracePeriodSeconds',
  'podEvictionTimeoutSeconds',
] as const satisfies readonly (keyof ProfileTimes)[];

type Labels = Readonly<Record<string, string>> | undefined;

/** One condition of a selector: In, NotIn, Exists or DoesNotExist. `matchLabels` is In with one value. */
interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

const requirementsOf = ({ matchLabels = {}, matchExpressions = [] }: NodeSelector): Requirement[] => [
  ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: 'In', values: [value] })),
  ...matchExpressions.map(({ key, operator, values = [] }) => ({ key, operator, values })),
];

function holds({ key, operator, values }: Requirement, labels: Labels): boolean {
  const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    default:
      return value === undefined;
  }
}

/** The profile of a node with these labels; undefined: `default`. */
export const profileNameOf = (labels: Labels, profiles: readonly Pick<NodeProfile, 'name' | 'nodeSelector'>[]) =>
  profiles.find(({ nodeSelector }) => requirementsOf(nodeSelector).every((each) => holds(each, labels)))?.name;

/** The keys of labels that the selectors read. */
export const selectedKeys = (profiles: readonly Pick<NodeProfile, 'nodeSelector'>[]): string[] => [
  ...new Set(profiles.flatMap(({ nodeSelector }) => requirementsOf(nodeSelector).map(({ key }) => key))),
];

/** Whether every node that fulfils `given` fulfils `wanted`. Of two requirements for the same key. */
function implies(given: Requirement, wanted: Requirement): boolean {
  if (given.key !== wanted.key) return false;
  switch (wanted.operator) {
    case 'In':
      return given.operator === 'In' && given.values.every((value) => wanted.values.includes(value));
    case 'NotIn':
      if (given.operator === 'In') return given.values.every((value) => !wanted.values.includes(value));
      if (given.operator === 'NotIn') return wanted.values.every((value) => given.values.includes(value));
      return given.operator === 'DoesNotExist';
    case 'Exists':
      return given.operator === 'Exists' || given.operator === 'In';
    default:
      return given.operator === 'DoesNotExist';
  }
}

/** Whether `earlier` matches every node that `later` matches: a profile behind it is never used. */
export const coversSelector = (earlier: NodeSelector, later: NodeSelector): boolean =>
  requirementsOf(earlier).every((wanted) => requirementsOf(later).some((given) => implies(given, wanted)));

/** A key for which no label value fulfils the whole selector; undefined when there is none. */
export function contradictoryKey(selector: NodeSelector): string | undefined {
  const requirements = requirementsOf(selector);
  return requirements.find(({ key }) => {
    const ofKey = requirements.filter((each) => each.key === key);
    const isAbsent = ofKey.every((each) => holds(each, undefined));
    const mustExist = ofKey.some(({ operator }) => operator === 'In' || operator === 'Exists');
    if (!mustExist) return !isAbsent;
    if (ofKey.some(({ operator }) => operator === 'DoesNotExist')) return true;
    const listed = ofKey.find(({ operator }) => operator === 'In')?.values;
    return listed !== undefined && !listed.some((value) => ofKey.every((each) => holds(each, { [key]: value })));
  })?.key;
}

/** Policies by profile, computed once per policy: a tick needs one for each of 100,000 nodes. */
const policiesOf = new WeakMap<object, ReadonlyMap<string, object>>();

/**
 * The policy for nodes of this profile. A policy without profiles, such as a recorded part of one, holds for every
 * node.
 */
export function policyOf<P extends Partial<Policy>>(policy: P, profile: string | undefined): P {
  if (profile === undefined || policy.profiles === undefined || policy.profiles.length === 0) return policy;
  let known = policiesOf.get(policy);
  if (known === undefined) {
    known = new Map(policy.profiles.map((each) => [each.name, { ...policy, ...timesOf(each) }]));
    policiesOf.set(policy, known);
  }
  return (known.get(profile) as P | undefined) ?? policy;
}

export function timesOf(profile: Partial<ProfileTimes>): Partial<ProfileTimes> {
  const given = PROFILE_TIMES.filter((field) => profile[field] !== undefined);
  return Object.fromEntries(given.map((field) => [field, profile[field]]));
}

/** Seconds of the default tolerations on a node with these labels; undefined when they are the same on every node. */
export function podEvictionTimeoutOn(policy: Policy): ((labels: Labels) => number) | undefined {
  const isSame = policy.profiles.every(
    ({ podEvictionTimeoutSeconds: own }) =>
      (own ?? policy.podEvictionTimeoutSeconds) === policy.podEvictionTimeoutSeconds,
  );
  if (isSame) return undefined;
  return (labels) => policyOf(policy, profileNameOf(labels, policy.profiles)).podEvictionTimeoutSeconds;
}

/** Names of all profiles, `default` last. */
export const profileNames = ({ profiles = [] }: Partial<Pick<Policy, 'profiles'>>): string[] => [
  ...profiles.map(({ name }) => name),
  DEFAULT_PROFILE,
];

export const beatTimesOf = (policy: Policy): BeatTimes =>
  Object.fromEntries(
    profileNames(policy).map((name) => {
      const { beatIntervalSeconds, leaseDurationSeconds } = policyOf(policy, name);
      return [name, [beatIntervalSeconds, leaseDurationSeconds]];
    }),
  );

/** The value of a time that suits every profile: the least or the most of all. Seconds. */
export const overProfiles = (
  policy: Pick<Policy, keyof ProfileTimes | 'profiles'>,
  field: keyof ProfileTimes,
  choose: (...values: number[]) => number,
): number => choose(...profileNames(policy).map((name) => policyOf(policy, name)[field]));
