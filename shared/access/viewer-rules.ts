/**
 * What the group nodekeeper:viewers may read, as rules: every kind but Secrets. The group needs no role for it
 * (shared/access/authorize.ts); the rules are for `kubectl auth can-i --list`, and for what a viewer may grant.
 */

import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { METRICS_PATH } from './authorize.ts';

interface ResourceRule {
  readonly verbs: string[];
  readonly apiGroups: string[];
  readonly resources: string[];
}

/** One rule per API group. */
export function viewerRulesOf(resources: readonly ResourceDescriptor[]): ResourceRule[] {
  const byGroup = new Map<string, Set<string>>();
  for (const { group, resource, subresources } of resources) {
    if (group === '' && resource === 'secrets') continue;
    const names = byGroup.get(group) ?? new Set<string>();
    byGroup.set(group, names);
    names.add(resource);
    for (const { name, verbs } of subresources) if (verbs.includes('get')) names.add(`${resource}/${name}`);
  }
  return [...byGroup].map(([group, names]) => ({
    verbs: ['get', 'list', 'watch'],
    apiGroups: [group],
    resources: [...names].sort(),
  }));
}

export const VIEWER_PATHS = { verbs: ['get'], nonResourceURLs: [METRICS_PATH] };
