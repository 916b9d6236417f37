/** The rules of the policy field `profiles`. Faults name the profile by its position: `profiles[1].nodeSelector`. */
import * as z from 'zod/mini';
import {
  contradictoryKey,
  coversSelector,
  DEFAULT_PROFILE,
  PROFILE_TIMES,
  policyOf,
  timesOf,
} from '../fleet/nodes/node-profile.ts';
import type { NodeProfile, NodeSelector, Policy, ProfileTimes } from '../fleet/policy.ts';
import { utf8Bytes } from '../text.ts';
import type { FieldRule, PolicyFault, Relation } from './policy-rules.ts';

/** node-monitor stores the state of the safety gate per profile in a row that costs one write unit per tick. */
const PROFILES_MAX = 8;
/** The environment of a function holds 4 KB; the other fields of the policy need about 1.5 KB. */
const PROFILES_BYTES_MAX = 1_500;
const PROFILE_NAME = /^[a-z0-9](?:[-a-z0-9]{0,9}[a-z0-9])?$/;
const NAME_RULE = 'must be a DNS label of at most 11 characters: a-z, 0-9 and -';

export const profilesRule: FieldRule<readonly NodeProfile[]> = {
  schema: z.custom<readonly NodeProfile[]>(Array.isArray),
  rule: `must be a list of at most ${PROFILES_MAX} profiles`,
};

/** A label key: a name, with or without a DNS subdomain before it. Source: apimachinery pkg/util/validation. */
const LABEL_KEY =
  /^(?:(?=.{1,253}\/)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?(?=.{1,63}$)[A-Za-z0-9](?:[-\w.]*[A-Za-z0-9])?$/;
const LABEL_VALUE = /^(?=.{0,63}$)(?:[A-Za-z0-9](?:[-\w.]*[A-Za-z0-9])?)?$/;
const isText = (value: unknown): value is string => typeof value === 'string';
const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

type TimeRules = Readonly<Record<keyof ProfileTimes, FieldRule<number>>>;

/** Faults of the profiles by themselves: fields, names, selectors. */
export function profileFaults(value: unknown, rules: TimeRules): readonly PolicyFault[] {
  const field = 'profiles';
  if (!Array.isArray(value) || value.length > PROFILES_MAX) return [{ field, value, rule: profilesRule.rule }];
  const bytes = utf8Bytes(JSON.stringify(value));
  if (bytes > PROFILES_BYTES_MAX) {
    const rule = `must have at most ${PROFILES_BYTES_MAX} bytes as JSON, because functions receive the policy in 4 KB`;
    return [{ field, value: bytes, rule }];
  }
  const faults = value.flatMap((each, index) => faultsOfProfile(each, `${field}[${index}]`, rules));
  return faults.length > 0 ? faults : listFaults(value as readonly NodeProfile[]);
}

function faultsOfProfile(value: unknown, at: string, rules: TimeRules): PolicyFault[] {
  if (!isMap(value)) return [{ field: at, value, rule: 'must be a map of profile fields' }];
  const faults: PolicyFault[] = [];
  const known: readonly string[] = ['name', 'nodeSelector', ...PROFILE_TIMES];
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue;
    const rule = `is no field of a profile; the fields are ${known.join(', ')}`;
    faults.push({ field: `${at}.${name}`, value: value[name], rule });
  }
  const { name, nodeSelector } = value;
  if (!isText(name) || !PROFILE_NAME.test(name)) faults.push({ field: `${at}.name`, value: name, rule: NAME_RULE });
  else if (name === DEFAULT_PROFILE) {
    const rule = 'must not be default, the name of the top-level times';
    faults.push({ field: `${at}.name`, value: name, rule });
  }
  faults.push(...selectorFaults(nodeSelector, `${at}.nodeSelector`));
  for (const time of PROFILE_TIMES) {
    if (!Object.hasOwn(value, time) || rules[time].schema.safeParse(value[time]).success) continue;
    faults.push({ field: `${at}.${time}`, value: value[time], rule: rules[time].rule });
  }
  return faults;
}

const SELECTOR_RULE = 'must be a label selector with matchLabels or matchExpressions, and select by at least one label';

function selectorFaults(value: unknown, at: string): PolicyFault[] {
  if (!isMap(value)) return [{ field: at, value, rule: SELECTOR_RULE }];
  const faults: PolicyFault[] = [];
  for (const name of Object.keys(value)) {
    if (name === 'matchLabels' || name === 'matchExpressions') continue;
    faults.push({ field: `${at}.${name}`, value: value[name], rule: SELECTOR_RULE });
  }
  const { matchLabels = {}, matchExpressions = [] } = value;
  if (!isMap(matchLabels))
    faults.push({ field: `${at}.matchLabels`, value: matchLabels, rule: 'must be a map of labels' });
  else {
    for (const [key, each] of Object.entries(matchLabels)) {
      if (LABEL_KEY.test(key) && isText(each) && LABEL_VALUE.test(each)) continue;
      faults.push({ field: `${at}.matchLabels`, value: { [key]: each }, rule: 'must be a label key with its value' });
    }
  }
  if (!Array.isArray(matchExpressions)) {
    faults.push({ field: `${at}.matchExpressions`, value: matchExpressions, rule: 'must be a list of requirements' });
  } else {
    matchExpressions.forEach((each, index) => {
      const rule = expressionRule(each);
      if (rule !== undefined) faults.push({ field: `${at}.matchExpressions[${index}]`, value: each, rule });
    });
  }
  if (faults.length > 0) return faults;
  const count = Object.keys(matchLabels as object).length + (matchExpressions as readonly unknown[]).length;
  if (count === 0) return [{ field: at, value, rule: SELECTOR_RULE }];
  const key = contradictoryKey(value as NodeSelector);
  if (key === undefined) return [];
  return [{ field: at, value, rule: `selects no node: its requirements for ${key} contradict each other` }];
}

/** The rule that a requirement breaks; undefined for a valid one. */
function expressionRule(value: unknown): string | undefined {
  if (!isMap(value) || !isText(value['key']) || !LABEL_KEY.test(value['key']))
    return 'must have a label key as its key';
  if (Object.keys(value).some((name) => !['key', 'operator', 'values'].includes(name)))
    return 'must have the fields key, operator and values';
  const { operator, values = [] } = value;
  const isList = Array.isArray(values) && values.every((each) => isText(each) && LABEL_VALUE.test(each));
  if (!isList) return 'must have a list of label values as its values';
  if (operator === 'In' || operator === 'NotIn')
    return values.length > 0 ? undefined : `must have values, because its operator is ${operator}`;
  if (operator === 'Exists' || operator === 'DoesNotExist')
    return values.length === 0 ? undefined : `must have no values, because its operator is ${operator}`;
  return 'must have an operator of In, NotIn, Exists, DoesNotExist';
}

/** Faults between profiles. */
function listFaults(profiles: readonly NodeProfile[]): PolicyFault[] {
  return profiles.flatMap(({ name, nodeSelector }, index): PolicyFault[] => {
    const earlier = profiles.slice(0, index);
    const at = `profiles[${index}]`;
    const twin = earlier.findIndex((each) => each.name === name);
    if (twin >= 0) return [{ field: `${at}.name`, value: name, rule: `is the name of profiles[${twin}] too` }];
    const cover = earlier.findIndex((each) => coversSelector(each.nodeSelector, nodeSelector));
    if (cover < 0) return [];
    const rule = `selects no further node: profiles[${cover}] (${earlier[cover]?.name}) matches all of them before`;
    return [{ field: `${at}.nodeSelector`, value: nodeSelector, rule }];
  });
}

/** Faults of the relations between times, for each profile with its inherited times. */
export function profileRelationFaults(policy: Policy, relations: readonly Relation[]): PolicyFault[] {
  return policy.profiles.flatMap((profile, index) => {
    const own = timesOf(profile);
    const times = policyOf(policy, profile.name);
    return relations.flatMap(({ field, other, rule, holds }): PolicyFault[] => {
      if (!(field in own || other in own) || holds(times)) return [];
      const why = `${rule} (${other} is ${JSON.stringify(times[other])})`;
      return [{ field: `profiles[${index}].${field}`, value: times[field], rule: why, other }];
    });
  });
}
