/**
 * The rules of a ClusterRole that is composed of others by labels. Kubernetes: "Using RBAC Authorization", aggregated
 * ClusterRoles; upstream pkg/controller/clusterroleaggregation.
 */

import { jsonEqual } from '../../kubernetes/json.ts';
import { selectorFromSpec } from '../../kubernetes/selectors.ts';
import type { KubeClusterRole, PolicyRule } from '../types.ts';

/**
 * The rules that apply for a role: its own, or those of the roles that its selectors match, in upstream's order. A role
 * in a circle is visited once.
 *
 * @param all every ClusterRole, ordered by name
 */
export function effectiveRules(role: KubeClusterRole, all: readonly KubeClusterRole[]): readonly PolicyRule[] {
  if (role.aggregationRule === undefined) return role.rules ?? [];
  const rules: PolicyRule[] = [];
  const visited = new Set<string>([role.metadata.name ?? '']);
  const visit = ({ aggregationRule, rules: own = [] }: KubeClusterRole): void => {
    if (aggregationRule === undefined) {
      for (const rule of own) if (!rules.some((each) => jsonEqual(each, rule))) rules.push(rule);
      return;
    }
    for (const spec of aggregationRule.clusterRoleSelectors ?? []) {
      const selector = selectorFromSpec(spec);
      for (const other of all) {
        const name = other.metadata.name ?? '';
        if (visited.has(name) || !selector.matches(other.metadata.labels ?? {})) continue;
        visited.add(name);
        visit(other);
      }
    }
  };
  visit(role);
  return rules;
}
