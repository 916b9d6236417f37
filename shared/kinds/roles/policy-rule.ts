/**
 * What one rule of a role allows, and whether it covers another rule. Kubernetes: "Using RBAC Authorization"; upstream
 * pkg/apis/rbac/v1/evaluation_helpers.go and k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go.
 */
import type { PolicyRule } from '../types.ts';

export const ALL = '*';

/** A request for a resource, or for a path that is not a resource. */
export type RuleRequest =
  | {
      readonly verb: string;
      readonly group: string;
      readonly resource: string;
      /** '' for the object itself. */
      readonly subresource: string;
      /** '' for a collection. */
      readonly name: string;
    }
  | { readonly verb: string; readonly path: string };

/** Rules that allow everything: those of the role cluster-admin. */
export const FULL_AUTHORITY: readonly PolicyRule[] = [
  { verbs: [ALL], apiGroups: [ALL], resources: [ALL] },
  { verbs: [ALL], nonResourceURLs: [ALL] },
];

const hasOrAll = (values: readonly string[] = [], value: string): boolean =>
  values.includes(ALL) || values.includes(value);

export function ruleAllows(rule: PolicyRule, request: RuleRequest): boolean {
  if (!hasOrAll(rule.verbs, request.verb)) return false;
  if ('path' in request) return (rule.nonResourceURLs ?? []).some((pattern) => coversPath(pattern, request.path));
  const { group, resource, subresource, name } = request;
  const { resources = [], resourceNames = [] } = rule;
  const isResource =
    hasOrAll(resources, subresource === '' ? resource : `${resource}/${subresource}`) ||
    (subresource !== '' && resources.includes(`*/${subresource}`));
  return isResource && hasOrAll(rule.apiGroups, group) && (resourceNames.length === 0 || resourceNames.includes(name));
}

/** `*` at the end of a pattern stands for any text, also for none. */
export function coversPath(pattern: string, path: string): boolean {
  if (pattern === path) return true;
  let end = pattern.length;
  while (pattern[end - 1] === ALL) end -= 1;
  return end < pattern.length && path.startsWith(pattern.slice(0, end));
}

/** Parts of one rule that are compared at most. A role of 100,000 characters could name billions of combinations. */
const PARTS_MAX = 20_000;

/**
 * The rules among `wanted` that `held` does not cover, each with one verb and one resource or path. undefined: `wanted`
 * has too many combinations to compare.
 */
export function missingRules(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] | undefined {
  // Most writers hold everything. They may also write roles with too many combinations.
  const open = wanted.filter((rule) => !held.some((each) => coversWhole(each, rule)));
  if (open.reduce((sum, rule) => sum + partCount(rule), 0) > PARTS_MAX) return undefined;
  return open.flatMap(partsOf).filter((part) => !held.some((each) => covers(each, part)));
}

const isAll = (values: readonly string[] = []): boolean => values.includes(ALL);

/** True only for rules without a limit, which cover all others of their sort. */
function coversWhole(held: PolicyRule, wanted: PolicyRule): boolean {
  if (!isAll(held.verbs)) return false;
  if ((wanted.nonResourceURLs ?? []).length > 0) {
    return isAll(held.nonResourceURLs) && (wanted.resources ?? []).length === 0;
  }
  return isAll(held.apiGroups) && isAll(held.resources) && (held.resourceNames ?? []).length === 0;
}

function partCount({
  verbs = [],
  apiGroups = [],
  resources = [],
  resourceNames = [],
  nonResourceURLs = [],
}: PolicyRule) {
  return (
    verbs.length * (apiGroups.length * resources.length * Math.max(1, resourceNames.length) + nonResourceURLs.length)
  );
}

/** Rules with one verb, and one resource with at most one name, or one path. */
function partsOf(rule: PolicyRule): PolicyRule[] {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const parts: PolicyRule[] = [];
  for (const group of apiGroups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        const part = { verbs: [verb], apiGroups: [group], resources: [resource] };
        if (resourceNames.length === 0) parts.push(part);
        for (const name of resourceNames) parts.push({ ...part, resourceNames: [name] });
      }
    }
  }
  for (const path of nonResourceURLs) for (const verb of verbs) parts.push({ verbs: [verb], nonResourceURLs: [path] });
  return parts;
}

/** Whether one rule covers a part of another. A rule for some names does not cover a part for all names. */
function covers(held: PolicyRule, part: PolicyRule): boolean {
  const { resourceNames = [], resources = [], nonResourceURLs = [] } = held;
  const [verb = ''] = part.verbs ?? [];
  if (!hasOrAll(held.verbs, verb)) return false;
  const [path] = part.nonResourceURLs ?? [];
  if (path !== undefined) return nonResourceURLs.some((pattern) => coversPath(pattern, path));
  const [group = ''] = part.apiGroups ?? [];
  const [resource = ''] = part.resources ?? [];
  const [name] = part.resourceNames ?? [];
  const slash = resource.indexOf('/');
  return (
    hasOrAll(held.apiGroups, group) &&
    (hasOrAll(resources, resource) || (slash >= 0 && resources.includes(`*${resource.slice(slash)}`))) &&
    (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name)))
  );
}

const goList = (values: readonly string[]): string => `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;

/** A rule as upstream's messages print it: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`. */
export function ruleText({
  verbs = [],
  apiGroups = [],
  resources = [],
  resourceNames = [],
  nonResourceURLs = [],
}: PolicyRule) {
  const parts: readonly (readonly [string, readonly string[]])[] = [
    ['APIGroups', apiGroups],
    ['Resources', resources],
    ['NonResourceURLs', nonResourceURLs],
    ['ResourceNames', resourceNames],
    ['Verbs', verbs],
  ];
  const printed = parts.filter(([, values]) => values.length > 0).map(([name, values]) => `${name}:${goList(values)}`);
  return `{${printed.join(', ')}}`;
}

/** Lines of a message, sorted. Parts that differ only in the verb are one line. */
export function ruleLines(parts: readonly PolicyRule[]): string[] {
  const joined = new Map<string, PolicyRule>();
  for (const part of parts) {
    const key = (part.nonResourceURLs ?? []).length > 0 ? ruleText(part) : ruleText({ ...part, verbs: [] });
    const known = joined.get(key);
    joined.set(key, { ...part, verbs: [...(known?.verbs ?? []), ...(part.verbs ?? [])] });
  }
  return [...new Set([...joined.values()].map(ruleText))].sort();
}
